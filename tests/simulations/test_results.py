"""A result of an experiment: its files hold all of it, and it says what carries it."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from hypothesis import given, settings, strategies as st

import oversmoothing
from oversmoothing import open_model
from oversmoothing.commands import options
from oversmoothing.experiments.inspection.spectra import certified_attention
from oversmoothing.experiments.power_method.tilt import tilts
from oversmoothing.experiments.remedies.shift import remedy_shifts
from oversmoothing.experiments.repeated.flips import sign_flips
from oversmoothing.experiments.repeated.loop import loop, recalled
from oversmoothing.experiments.repeated.stability import stability
from oversmoothing.experiments.study.atlas import atlas, rows_of
from oversmoothing.experiments.study.lever import intervene
from oversmoothing.experiments.study.readings import readings
from oversmoothing.simulations.drawing import result as results
from oversmoothing.simulations.drawing.picture import new_figure
from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured, proved
from oversmoothing.simulations.drawing.web_page import typeset
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tiny_transformers import pixels, tiny

# Of every kind that a column may have.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
CELLS = {
    "number": st.floats(),
    "integer": st.integers(-(10**30), 10**30),
    "small": st.integers(-(2**63), 2**63 - 1),
    "truth": st.booleans(),
    "text": st.one_of(TEXT, st.none()),
}


@st.composite
def tables(draw: st.DrawFn) -> Table:
    names = draw(st.lists(TEXT, min_size=1, max_size=4, unique=True))
    length = draw(st.integers(0, 4))
    columns = {}
    for name in names:
        cells = CELLS[draw(st.sampled_from(sorted(CELLS)))]
        held = draw(st.lists(cells, min_size=length, max_size=length))
        columns[name] = pd.Series(held, dtype=None if length else object)
    return Table(pd.DataFrame(columns), {names[0]: draw(TEXT)}, draw(st.sampled_from([(), names])))


EVIDENCE = st.one_of(
    st.builds(proved, TEXT.filter(bool)),
    st.builds(measured, st.integers(1, 10**20)),
    st.builds(measured, st.integers(1, 9), st.floats(max_value=0), st.floats(min_value=0)),
    st.builds(measured, st.integers(1, 9), of=TEXT),
    st.just(results.UNTESTED),
)
SENTENCES = st.lists(st.builds(Sentence, TEXT, EVIDENCE, EVIDENCE), max_size=2)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(TEXT, inner, max_size=2)),
    max_leaves=4,
)


@settings(max_examples=25)
@given(tables(), tables(), SENTENCES, VALUES)
def test_the_files_hold_what_the_result_does(tmp_path_factory, one, two, sentences, value):
    folder = tmp_path_factory.mktemp("results")
    parts = {"first": one, "second": two}, sentences, {"asked": value}
    result = Result("found", "Ü: a title", *parts, details={"more": [value]})
    paths = results.write(result, folder)
    record = json.loads(paths[0].read_text("utf-8"))
    assert record == result.to_json_object()
    for name, table in result.tables.items():
        assert len(record[name]) == len(table.rows)
        for column, kind in record["form"]["tables"][name]["kinds"].items():
            cells = [row[column] for row in record[name]]
            if kind == "number":
                cells = [math.nan if x is None else float(x) for x in cells]
            wanted = table.rows[column]
            read = pd.Series(cells, wanted.index, wanted.dtype, column)
            pd.testing.assert_series_equal(read, wanted)
    names = {f"found.{kind}" for kind in ("json", "csv", "txt", "html")}
    assert {p.name for p in paths} == names | {"second.csv"}


PACKAGE = Path(oversmoothing.__file__).parent


def drawn(**changed) -> Result:
    def draw():
        figure, axes = new_figure()
        axes[0, 0].plot([1, 2], [0.5, 2.0])
        return figure

    table = Table(pd.DataFrame({"layer": [1, 2], "effect": [0.5, np.nan]}), {"effect": "nats"})
    given = {
        "name": "small", "title": "Two layers", "tables": {"layers": table},
        "sentences": [Sentence("It grows by 0.5.", measured(20, 0.25, 0.75), proved("T8d"))],
        "configuration": {"model": "m", "sizes": (1, 2), "top": np.inf}, "picture": draw,
    }  # fmt: skip
    return Result(**given | changed)


def test_a_picture_is_written_in_both_forms_and_the_json_has_the_parts_by_name(tmp_path):
    result = drawn()
    paths = results.write(result, tmp_path)
    assert {p.suffix for p in paths} == {".json", ".csv", ".txt", ".html", ".png", ".pdf"}
    assert results.contents(drawn()) == results.contents(result)
    assert (tmp_path / "small.pdf").read_bytes()[:4] == b"%PDF"
    record = json.loads(paths[0].read_text())
    assert record["model"] == "m" and record["sizes"] == [1, 2] and record["top"] == "inf"
    assert record["layers"] == [{"layer": 1, "effect": 0.5}, {"layer": 2, "effect": None}]
    assert record["words"] == ["It grows by 0.5."]
    assert record["form"]["tables"]["layers"]["units"] == {"effect": "nats"}
    assert record["provenance"]["versions"]["numpy"] == np.__version__


def test_a_reader_sees_units_and_the_evidence_of_each_sentence():
    result = drawn()
    assert result.words() == "It grows by 0.5."
    assert "effect [nats]" in result.text()
    carried = "[measured on 20 inputs, 95 % interval 0.25 to 0.75; proved: T8d]"
    # What was asked, the answer, and then the table.
    assert result.text().startswith(f"{result.title}\n  It grows by 0.5. {carried}\n\n")
    assert carried in results.page(result) and "effect" in result._repr_html_()


# Columns whose names say it, or the sentences.
PLAIN = {
    *("layer", "layers", "eigenvalue", "inputs", "input", "images", "blocks", "outcome", "cases"),
    *("predictor", "count", "model", "weights", "modality", "d", "head_negative", "H of"),
    *("Re h < 0, %", "SMOOTHING", "NON_SMOOTHING", "TIE", "UNDECIDED"),
    *("agree on the choosing half", "remedy", "rung", "r2", "images", "flip"),
}


def test_every_column_of_a_page_says_what_it_is():
    model, X = open_model(tiny("vit"), dtype=torch.float64), pixels(5).double()
    made = (
        tilts(model, X, random=2, steer=True), loop(model, X, loops=20),
        recalled(model, X, 0.5, loops=20), readings(model, X, ["E1"], "unfolded", 2),
        certified_attention(model, X), atlas(rows_of(model, X)), stability(model, X[:2]),
        sign_flips(model, X), intervene(model, X[:2], doses=[0.1], parts=[]),
        remedy_shifts(["layerscale"], draws=2),
    )  # fmt: skip
    for result in made:
        first, *more = result.tables.values()
        for table in (first, *(each for each in more if each.shown)):
            for name in set(table.shown or table.rows) - set(table.means) - set(table.units):
                assert name in PLAIN or re.search("(^|_)(low|high)$", name), (result.name, name)
            assert all(f"<b>{typeset(each)}</b>" in results.page(result) for each in table.means)
            assert all(f"  {name}: {words}" in result.text() for name, words in table.means.items())


def test_what_a_sentence_rests_on_is_a_claim_of_the_ledger():
    chapters = " ".join(path.read_text("utf-8") for path in PACKAGE.glob("theory/claims/*.md"))
    claims = set(re.findall(r"^## ([^:\n]+):", chapters, flags=re.MULTILINE))
    for path in PACKAGE.rglob("*.py"):
        for name in re.findall(r'\bproved\("([^"]+)"\)', path.read_text("utf-8")):
            assert name in claims, (path.name, name)


def test_evidence_says_what_it_is():
    said = list(map(str, (proved("T2b"), measured(1), measured(3, of="run"), results.UNTESTED)))
    assert said == ["proved: T2b", "measured on 1 input", "measured on 3 runs", "untested"]


def test_a_sentence_that_speaks_of_intervals_keeps_its_own():
    """Of "the 95 % interval of a layer is in the file" the sentence's own interval was dropped."""
    own = Sentence("It grows by 0.5; the 95 % interval of a layer: in the file.", measured(9, 0, 1))
    assert str(own).endswith("[measured on 9 inputs, 95 % interval 0 to 1]")
    said = Sentence("It grows by 50 % (95 % interval 0 to 100 %).", measured(9, 0, 1, told=True))
    assert str(said).endswith(" [measured on 9 inputs]")


def test_a_page_escapes_what_it_shows_and_says_what_it_leaves_out():
    cells = {"<b>": "<script>", "x": -0.5, "clear": "|lambda|", "kept_out": -0.25}
    shown = Table(pd.DataFrame(cells, range(results.ROWS + 3)), {}, ["<b>", "x", "clear"])
    text = results.page(drawn(tables={"layers": shown}, title="<i>"))
    assert '<th scope="col">clear</th>' in text and "<td>|λ|</td>" in text
    assert "<i>" not in text and "&lt;script&gt;" in text
    assert "3 further rows and 1 further column." in text
    assert "<td>−0.5</td>" in text and "kept_out" not in text and "−0.25" not in text


def test_a_terminal_shows_every_cell_and_unit_of_a_wide_table(monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    text = options.table_text(pd.DataFrame({f"long_name_{k} [ln]": [k + 1e-12] for k in range(9)}))
    plain = re.sub(r"\x1b\[\d*m", "", text)
    assert all(repr(k + 1e-12) in plain for k in range(9)) and plain.count("[ln]") > 9
    assert max(map(len, plain.splitlines())) <= 60
    monkeypatch.setenv("TERM", "xterm")
    text = options.table_text(pd.DataFrame({f"abcdefg{k}": [12345678] for k in range(9)}))
    assert "\x1b" in text and options.wrapped(text) == text
    # Columns without a name of their own.
    assert "12345678" in options.table_text(pd.DataFrame([[1, 12345678]]))


def test_lines_of_a_pipe_are_whole(capsys):
    options.shown(False, {}, "refused: " + "a word " * 99)
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_the_kinds_of_columns_are_those_of_their_cells():
    cells = {"a": [1, 2**70], "b": [None, 3], "c": [np.float32(0.5), 1], "d": [True, False]}
    table = Table(pd.DataFrame(cells))
    assert table.kinds == {"a": "integer", "b": "number", "c": "number", "d": "truth"}
    assert table.to_json_object()[0] == {"a": 1, "b": None, "c": 0.5, "d": True}


@cases(
    "made, said",
    (lambda: Sentence("alone"), "nothing carries"),
    (lambda: results.Evidence("proved"), "names no statement"),
    (lambda: measured(0), "at least 1"),
    (lambda: measured(3, 2.0, 1.0), "is none"),
    (lambda: Table(pd.DataFrame({"a": [1, "b"]})), "several kinds"),
    (lambda: Table(pd.DataFrame({"a": [2**70 + 1, None]}, dtype=object)), "several kinds"),
    (lambda: Table(pd.DataFrame()), "needs columns"),
    (lambda: Table(pd.DataFrame({"a": [1]}), {"b": "s"}), "no column 'b'"),
    (lambda: drawn(tables={}), "has no table"),
    (lambda: drawn(details={"model": 1}), "two parts 'model'"),
    (lambda: drawn(configuration={"words": 1}), "two parts 'words'"),
    (lambda: drawn(name="../up"), "no name of a file"),
    (lambda: drawn(configuration={"x": object()}), "no form in JSON"),
)
def test_what_is_no_result_is_refused(made, said):
    refuses(said, made)
