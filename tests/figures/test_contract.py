"""What every figure owes: its names, four files, a CSV that is held to theory or record, a picture.

A new file of `paper_figures/figures/` meets all of it here; it brings a check of its CSV
(`held_theory.py`, `held_models.py`) and a thumbnail (`python -m tests.figures.pictures NAME`).
"""

import io
import itertools
import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from oversmoothing import main
from oversmoothing.paper_figures import FIGURES, RENAMED, figure, title
from oversmoothing.paper_figures.figure_base import Context, counted
from oversmoothing.simulations.drawing.picture import FigureFiles
from tests.figures import held_models, held_theory, pictures
from tests.figures.held import HELD
from tests.figures.small import Tables, patched, timed_by_a_law

assert held_models and held_theory  # they declare the checks

TOLERANCE: dict[str, float] = json.loads(pictures.TOLERANCES.read_text("utf-8"))
every_figure = pytest.mark.parametrize("name", FIGURES)


def read_back(csv: str) -> pd.DataFrame:
    """As a reader of the CSV has it, to the last digit, which pandas took an option for once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return pd.read_csv(io.StringIO(csv), float_precision="round_trip")


def checked(name: str, csv: pd.DataFrame, small: Tables) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patched(patch)
        HELD[name].check(csv, small.context)


@every_figure
def test_a_figure_has_its_words(name):
    own = figure(name)
    assert own.name == name and own.title == title(name)
    assert 20 < len(own.title) < 100 and not own.title.endswith(".")
    assert 40 < len(own.short) < 260 and 40 < len(own.not_shown) < 260
    # A number of a run is no text of the program.
    assert not re.search(r"\d\.\d|\d %", own.short)


@every_figure
def test_a_figure_writes_the_same_four_files_and_its_csv_says_it_all(name, small, tmp_path):
    table = small[name]
    own = replace(figure(name), data=lambda context: table)
    first, second = (
        FigureFiles(*own.make(Context(tmp_path), tmp_path / folder)) for folder in "ab"
    )
    for kind in ("pdf", "png", "csv", "txt"):
        one, other = getattr(first, kind), getattr(second, kind)
        assert one.name == f"{name}.{kind}" and one.read_bytes() == other.read_bytes()
    assert first.pdf.read_bytes().startswith(b"%PDF")
    assert first.png.read_bytes().startswith(b"\x89PNG")
    assert b"CreationDate" not in first.pdf.read_bytes()
    csv = read_back(first.csv.read_text("utf-8"))
    pd.testing.assert_frame_equal(csv, read_back(table.to_csv(index=False)))
    # Whoever has the CSV alone can draw the figure, and say of it what the caption says.
    said = first.txt.read_text("utf-8")
    assert said.startswith(f"{own.title}. ") and not re.search(r"\bnan\b", said)
    assert own.compared(csv) == own.compared(table)
    rows = own.compared(csv)
    lines = [counted(rows), *map(str, rows)] if rows else []
    assert said.endswith("\n".join(["", *lines, ""]) if rows else "\n")
    assert len(re.findall(r"^\d+ comparisons? with the paper: ", said, re.M)) == bool(rows)
    again = pictures.shrunk(pictures.drawn(name, csv))
    assert pictures.distance(again, pictures.shrunk(pictures.drawn(name, table))) < 1


@every_figure
def test_no_word_is_cut_or_stands_on_another(name, small):
    drawn = pictures.drawn(name, small[name])
    drawn.canvas.draw()
    page, inside = drawn.bbox.padded(1.0), [text for axis in drawn.axes for text in axis.texts]
    named = [part for axis in drawn.axes for part in (axis.title, axis._left_title,
             axis.xaxis.label, axis.yaxis.label)]  # fmt: skip
    for text in [*inside, *named]:
        box = text.get_window_extent()
        assert not text.get_text() or (page.containsx(box.x0) and page.containsx(box.x1)), text
        assert not text.get_text() or (page.containsy(box.y0) and page.containsy(box.y1)), text
    for one, other in itertools.combinations(inside, 2):
        # Two points of leading belong to no letter.
        a, b = (each.get_window_extent().padded(-1.0) for each in (one, other))
        assert not a.overlaps(b), (one, other)


@every_figure
def test_a_csv_is_what_theory_or_record_say(name, small):
    csv = read_back(small[name].to_csv(index=False))
    assert set(HELD[name].free) <= set(csv)
    checked(name, csv, small)


def planted(csv: pd.DataFrame, column: str, row: int) -> pd.DataFrame:
    """One number off by a twentieth of its column's size, one word replaced."""
    wrong, values = csv.copy(), csv[column]
    if pd.api.types.is_bool_dtype(values):
        wrong[column] = values ^ (csv.index == row)
    elif pd.api.types.is_numeric_dtype(values):
        finite = values[np.isfinite(values)]
        size = max(abs(values[row]), finite.max() - finite.min(), 1e-3)
        whole = (values.dropna() % 1 == 0).all()
        wrong[column] = values.astype(float)
        wrong.loc[row, column] = values[row] + (1 if whole else 0.05 * size)
    else:
        wrong.loc[row, column] = f"{values[row]}?"
    return wrong


@every_figure
def test_an_error_in_a_column_is_seen(name, small):
    csv = read_back(small[name].to_csv(index=False))
    own = HELD[name]
    rng = np.random.default_rng(0)
    chosen = csv if own.rows is None else csv[own.rows(csv)]
    unseen = []
    for column in csv:
        filled = chosen.index[chosen[column].notna()]
        if column in own.free or not len(filled):
            continue
        wrong = planted(csv, column, int(rng.choice(filled)))
        try:
            checked(name, wrong, small)
        except (AssertionError, KeyError, StopIteration, ValueError):
            continue
        unseen.append(column)
    assert not unseen


def test_every_figure_and_nothing_else_has_a_check_and_a_thumbnail():
    kept = {path.stem for path in pictures.KEPT.glob("*.png")}
    assert kept == set(FIGURES) == set(TOLERANCE), "python -m tests.figures.pictures"
    assert set(HELD) == set(FIGURES)
    # All of them are a small thing to keep.
    assert sum(path.stat().st_size for path in pictures.KEPT.iterdir()) < 150_000


@pytest.mark.skipif(not pictures.AS_KEPT, reason="drawn by another version of matplotlib")
@every_figure
def test_a_figure_looks_as_it_did_and_faults_would_be_seen(name, small):
    table, kept = timed_by_a_law().get(name), pictures.stored(name)
    table = small[name] if table is None else table
    away = pictures.distance(pictures.shrunk(pictures.drawn(name, table)), kept)
    assert away < TOLERANCE[name], f"if it is meant: python -m tests.figures.pictures {name}"
    # Another font, as of another platform, is no fault.
    other = pictures.drawn(name, table, **{"font.family": "DejaVu Serif"})
    assert pictures.distance(pictures.shrunk(other), kept) < TOLERANCE[name]
    for words, wrong in pictures.faulty(name, table):
        assert pictures.distance(wrong, kept) > TOLERANCE[name], words


@pytest.mark.parametrize("name", RENAMED)
def test_an_old_name_lists_its_new_figure_and_says_so(name, capsys):
    new = RENAMED[name][0]
    assert name not in FIGURES and (not new or new in FIGURES)
    assert main(["figures", "--list", name]) == 0
    printed = capsys.readouterr()
    assert printed.out.split()[:1] == ([new] if new else [])
    assert printed.err.count("\n") == 1 and f"figure '{name}' is " in printed.err
