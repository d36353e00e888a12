"""The picture of mixed streams says what the theory says, and runs do that."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from oversmoothing.paper_figures import FIGURES, stream_mixing
from oversmoothing.paper_figures.figure_base import Context, make_figure


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"H_CELLS": 8, "MIX_CELLS": 4, "RUNS_H": 3, "RUNS_MIX": 2}.items():
            patch.setattr(stream_mixing, name, value)
        return stream_mixing.data(Context(tmp_path_factory.mktemp("results"), progress=False))


def test_runs_do_what_the_eigenvalues_say(table: pd.DataFrame) -> None:
    runs = table[table["kind"] == "run"]
    assert (runs["measured"] == runs["outcome"]).all()
    assert f"{len(runs)} of {len(runs)} do what" in stream_mixing.caption(table)


def test_within_the_band_differences_between_tokens_win(table: pd.DataFrame) -> None:
    cells = table[(table["kind"] == "cell") & table["band"].notna()]
    within = cells[(cells["h"] >= cells["band"]) & (cells["h"] < 0)]
    assert len(within) and set(within["outcome"]) == {"NON_SMOOTHING"}
    # Never smoothing down to -1, though ties are not excluded.
    assert "SMOOTHING" not in set(cells[(cells["h"] >= -1) & (cells["h"] < 0)]["outcome"])


def test_a_small_rotation_smooths_where_one_stream_does_not(table: pd.DataFrame) -> None:
    cells = table[(table["kind"] == "cell") & (table["panel"] == "orthogonal")]
    assert "SMOOTHING" in set(cells[(cells["h"] >= -1) & (cells["h"] < 0)]["outcome"])


def test_four_streams_agree_no_later_than_certified(table: pd.DataFrame) -> None:
    layers = table[table["kind"] == "layer"]
    assert (layers["log_spread"] <= layers["log_bound"] + 1e-9).all()
    assert stream_mixing.caption(table).count("1e-06") == 2


def test_the_figure_is_listed_and_drawn(table: pd.DataFrame, tmp_path: Path) -> None:
    assert FIGURES["stream_mixing"] == "oversmoothing.paper_figures.stream_mixing"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_mixing, "data", lambda context: table)
        files = make_figure(stream_mixing, Context(tmp_path), tmp_path)
    assert files.png.read_bytes().startswith(b"\x89PNG")
