"""The main job: what its presets run, and what it leaves."""

import io
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import date
from typing import Any

import pandas as pd
import pytest

from oversmoothing.experiments.study.protocol import TIERS
from oversmoothing.paper_figures import reproduce as main_job
from oversmoothing.paper_figures.figure_base import Context
from oversmoothing.paper_figures.figures import tables_2_3
from oversmoothing.paper_figures.page import Check, Drawn, draw_figure, write_page
from oversmoothing.simulations.drawing.picture import FigureFiles
from tests.support.cases import cases


@pytest.mark.parametrize("full", [False, True])
def test_full_runs_every_study_and_the_page_says_which_preset_it_was(full, tmp_path, monkeypatch):
    asked: list[Any] = []

    def studied(chosen, folder, **given):
        asked.append((given["tiers"], folder, given["workers"]))

    monkeypatch.setattr(main_job, "run_blocks", studied)
    monkeypatch.setattr(main_job, "_checks", lambda *_: iter(()))
    monkeypatch.setattr(main_job, "FIGURES", ("tables_2_3",))
    done = main_job.reproduce(Context(tmp_path, progress=False), full=full, workers=2)
    assert done == 0
    assert asked == ([(TIERS, tmp_path / "study", 2)] if full else [])
    text = (tmp_path / "index.html").read_text("utf-8")
    assert ("The reduced preset" in text) == (not full)
    assert "cannot be checked" in text
    rows = pd.read_csv(tmp_path / "verdicts.csv")
    assert set(rows["figure"]) == {"tables_2_3"} and "cannot be checked" in set(rows["verdict"])


DRAWN: dict[tuple[str, int], tuple[Drawn, list[bytes]]] = {}


def drawn_once(name: str, context: Context) -> Drawn:
    """A figure as it is drawn, and from then on its files again: what is tested is who asks."""
    key = name, context.seed
    if key not in DRAWN:
        first = draw_figure(name, context)
        DRAWN[key] = first, [path.read_bytes() for path in first.files]
    first, contents = DRAWN[key]
    places = [context.results / "figures" / path.name for path in first.files]
    places[0].parent.mkdir(parents=True, exist_ok=True)
    for place, content in zip(places, contents, strict=True):
        place.write_bytes(content)
    return replace(first, files=FigureFiles(*places))


@pytest.fixture
def small(monkeypatch, tmp_path):
    """`reproduce` with one check and two figures, and a package of its own to hash: its log."""
    package = tmp_path / "package"
    for name in ("a.py", "paper_figures/figures/ladder.py", "paper_figures/page.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("x = 1\n")
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(main_job, "_PACKAGE", package)
    monkeypatch.setattr(main_job, "real_inputs", lambda: None)
    monkeypatch.setattr(main_job, "FIGURES", ("tables_2_3", "ladder"))
    monkeypatch.setattr(main_job, "draw_figure", drawn_once)
    one = Check("one", "one is one", "1", True)
    monkeypatch.setattr(main_job, "_checks", lambda *_: iter((one,)))
    real = main_job.write_page
    monkeypatch.setattr(main_job, "write_page", lambda folder, *_: folder / "index.html")

    def run(seed=0, fresh=False, page=False):
        if page:
            monkeypatch.setattr(main_job, "write_page", real)
        context = Context(tmp_path / "results", seed=seed, progress=False)
        told = io.StringIO()
        with redirect_stdout(told):
            assert main_job.reproduce(context, fresh=fresh) == 0
        return told.getvalue()

    run()
    yield run


def test_what_nothing_changed_is_taken_over_and_marked_with_its_date(small, tmp_path):
    results = tmp_path / "results"
    before = {path: path.read_bytes() for path in (results / "figures").iterdir()}
    today, log = f"{date.today():%Y-%m-%d}", small(page=True)
    assert log.count("from cache") == 3 and f"ladder: from cache, drawn on {today}" in log
    assert before == {path: path.read_bytes() for path in (results / "figures").iterdir()}
    page = (results / "index.html").read_text("utf-8")
    assert page.count(f"from cache, {today}") == 3
    # The date is that of the run that drew it, through any number of runs.
    record = results / "kept.json"
    record.write_text(record.read_text().replace(today, "2024-02-29"))
    assert small().count("2024-02-29") == small().count("2024-02-29") == 3
    assert "from cache" not in small(fresh=True)
    assert "from cache" in small()


@cases(
    "changed, taken",
    ("package/a.py", 0),
    ("package/new.json", 0),
    ("package/paper_figures/figures/ladder.py", 2),
    ("package/paper_figures/page.py", 3),
    ("results/study/rows.json", 0),
    ("results/figures/ladder.csv", 2),
    ("results/figures/ladder.png", 2),
    ("results/index.html", 3),
)
def test_what_a_change_of_code_or_data_touches_is_made_anew(small, tmp_path, changed, taken):
    path = tmp_path / changed
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((path.read_bytes() if path.exists() else b"") + b"\n")
    assert small().count("from cache") == taken


def test_another_seed_ci_a_damaged_record_and_a_failed_check_take_nothing_over(
    small, tmp_path, monkeypatch
):
    assert "from cache" not in small(seed=1)
    assert "from cache" in small(seed=1)
    monkeypatch.setenv("CI", "true")
    assert "from cache" not in small(seed=1)
    monkeypatch.delenv("CI")
    (tmp_path / "results" / "kept.json").write_text("{")
    assert "from cache" not in small(seed=1)
    context = Context(tmp_path / "results", seed=1, progress=False)
    failed = Check("one", "one is two", "1", False)
    monkeypatch.setattr(main_job, "_checks", lambda *_: iter((failed,)))
    assert main_job.reproduce(context, fresh=True) == 1
    assert main_job.reproduce(context) == 1


def test_rows_of_a_recorded_run_are_marked_as_records(tmp_path):
    row = pd.Series(
        {"question": "one", "says": "so", "decision": "open", "seeds": 3, "planned": 3, "size": "S",
         "value": 1.0, "low": -1.0, "high": 2.0, "paper": 2.0, "margin": 0.0}
    )  # fmt: skip
    asked = [
        tables_2_3._order(pd.Series({**row, "recorded": when}), "here")
        for when in ("2026-01-01", "")
    ]
    assert [each.recorded for each in asked] == [True, False]
    ladder = draw_figure("ladder", Context(tmp_path, progress=False))
    for number in (0, 1):
        drawn = replace(ladder, comparisons=tuple(asked[1 - number :]))
        page = write_page(tmp_path, {"ladder": drawn}, [], 0).read_text("utf-8")
        assert page.count('<span class="pill none">record</span>') == number
