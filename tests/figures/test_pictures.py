"""Every figure looks as it did, loosely: no panel is empty, no legend is lost."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from oversmoothing.paper_figures import FIGURES
from tests.figures import pictures
from tests.figures.small import Tables, timed_by_a_law

TOLERANCE: dict[str, float] = json.loads(pictures.TOLERANCES.read_text("utf-8"))


def table_of(name: str, small: Tables) -> pd.DataFrame:
    return timed_by_a_law().get(name) if name in timed_by_a_law() else small[name]


def test_every_figure_and_nothing_else_has_a_thumbnail() -> None:
    kept = {path.stem for path in pictures.KEPT.glob("*.png")}
    assert kept == set(FIGURES) == set(TOLERANCE), "python -m tests.figures.pictures"
    # All of them are a small thing to keep.
    assert sum(path.stat().st_size for path in pictures.KEPT.iterdir()) < 150_000


@pytest.mark.skipif(not pictures.AS_KEPT, reason="drawn by another version of matplotlib")
@pytest.mark.parametrize("name", list(FIGURES))
def test_a_figure_looks_as_it_did_and_faults_would_be_seen(name: str, small: Tables) -> None:
    table, kept = table_of(name, small), pictures.stored(name)
    found = pictures.distance(pictures.shrunk(pictures.drawn(name, table)), kept)
    assert found < TOLERANCE[name], f"if it is meant: python -m tests.figures.pictures {name}"
    # Another font, as of another platform, is no fault.
    other = pictures.drawn(name, table, **{"font.family": "DejaVu Serif"})
    assert pictures.distance(pictures.shrunk(other), kept) < TOLERANCE[name]
    for words, wrong in pictures.faulty(name, table):
        assert pictures.distance(wrong, kept) > TOLERANCE[name], words
