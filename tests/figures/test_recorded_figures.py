"""Figures of recorded runs, of remedies and of rates: their numbers, and README's picture."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from oversmoothing.experiments.remedies.shift import MOST
from oversmoothing.paper_figures import (
    ladder_scores,
    lambda_plane,
    loops,
    rates_and_depths,
    remedy_shifts,
    rotation_and_rank,
)
from oversmoothing.paper_figures.figure_base import Context, make_figure
from tests.figures.pictures import AS_KEPT

ROOT = Path(__file__).resolve().parents[2]


def record_of(name: str) -> dict:
    found: dict = json.loads((ROOT / "experiments" / name).read_text("utf-8"))
    return found


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(tmp_path, progress=False, device="cpu")


def test_loops_are_those_of_the_record(context: Context) -> None:
    table, run = loops.data(context), record_of("repeated/results/loop_deit_tiny.json")
    blocks = table[table["kind"] == "block"]
    for name in ("start", "end", "end_by_local_law", "end_by_8_tokens"):
        assert blocks[name].tolist() == [row[name] for row in run["by_block"]]
    collapsed = sum(row["end"] <= run["collapsed_at"] for row in run["by_block"])
    assert f"{collapsed} of {len(blocks)} blocks end below it" in loops.caption(table)
    # A median below the line is most of the inputs below it.
    for row in run["by_block"]:
        assert (row["end"] <= run["collapsed_at"]) == (row["collapsed"] > 10)
    scores = table[table["kind"] == "score"]
    assert ((scores["agree_low"] <= scores["agree"]) & (scores["agree"] <= 1)).all()


def test_the_ladder_is_that_of_the_record(context: Context) -> None:
    table = ladder_scores.data(context)
    rungs = {r["rung"]: r for r in record_of("ladder/results/ladder_deit_tiny_200.json")["rungs"]}
    for row in table.itertuples():
        assert row.r2 == rungs[row.rung]["r2"]
        assert row.r2_low <= row.r2 <= row.r2_high
    assert len(ladder_scores.draw(table).axes[0].patches) == len(table)
    assert "P5 and a linear FFN" in ladder_scores.caption(table)


def test_remedies_move_the_radii_as_their_formulas_say(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remedy_shifts, "DRAWS", 3)
    table = remedy_shifts.data(context)
    assert (table["error"] < MOST).all()
    finite = table[np.isfinite(table["log_shift_C"])]
    for side in ("C", "Q"):
        off = (finite[f"log_shift_{side}"] - finite[f"measured_shift_{side}"]).abs()
        assert off.max() < 1e-6
    known = finite.set_index("name")
    # Consensus is not touched by a change of A that keeps its rows summing to 1.
    assert abs(known.loc["attnscale", "log_shift_C"]) < 1e-12
    assert known.loc["attnscale", "log_shift_Q"] > 0
    files = make_figure(remedy_shifts, context, context.results / "a")
    assert files.csv.read_text() == table.to_csv(index=False)
    monkeypatch.setattr(remedy_shifts, "data", lambda context: table)
    again = make_figure(remedy_shifts, context, context.results / "b")
    assert files.csv.read_bytes() == again.csv.read_bytes()
    assert files.png.read_bytes() == again.png.read_bytes()


def test_rates_and_bounds_hold(context: Context) -> None:
    table = rates_and_depths.data(context)
    assert table["holds"].all() and {"equal", "bound"} == set(table["kind"])
    for start in (*rates_and_depths.RATES, *rates_and_depths.BOUNDS):
        assert table["quantity"].str.startswith(start).any(), start
    rates = table[table["quantity"].str.startswith(tuple(rates_and_depths.RATES))]
    assert (rates["measured"] / rates["predicted"]).to_numpy() == pytest.approx(1, abs=5e-3)
    left, right = rates_and_depths.draw(table).axes
    drawn = sum(len(line.get_xdata()) for line in [*left.lines[1:], *right.lines[1:]])
    bounds = table[table["quantity"].str.startswith(tuple(rates_and_depths.BOUNDS))]
    assert drawn == len(rates) + len(bounds)
    assert f"{len(bounds)} of {len(bounds)} bounds hold" in rates_and_depths.caption(table)


def test_turning_layers_smooth_though_none_does_and_ranks_are_the_limit_s(context: Context) -> None:
    table = rotation_and_rank.data(context)
    rotation = table[table["kind"] == "rotation"]
    assert set(rotation["each_layer"]) == {"NON_SMOOTHING"}
    ends = rotation.groupby("run")["log_hfc_lfc"].last()
    assert ends["in turn"] < -3 and ends["the first, repeated"] > 0
    # sqrt(.4875)/.76, by hand.
    assert rotation_and_rank.rotating_rate() == pytest.approx(0.4875**0.5 / 0.76, rel=1e-12)
    turning = rotation[rotation["run"] == "in turn"]
    slope = np.polyfit(turning["layer"], turning["log_hfc_lfc"], 1)[0]
    assert slope == pytest.approx(np.log(0.4875**0.5 / 0.76), rel=0.1)
    # By matrices: the product of all layers on the stream at once.
    product = np.eye(4)
    for W in rotation_and_rank.weights(rotation_and_rank.LAYERS):
        product = (np.eye(4) + np.kron(W.T, np.array(rotation_and_rank.A))) @ product
    X = (product @ np.array(rotation_and_rank.X0).ravel("F")).reshape(2, 2, order="F")
    mean = X.mean(axis=0)
    ratio = np.linalg.norm(X - mean) / (np.linalg.norm(mean) * 2**0.5)
    assert ends["in turn"] == pytest.approx(np.log(ratio), abs=1e-6)
    ranks = table[table["kind"] == "rank"].groupby("run", sort=False).last()
    assert ranks["limit_rank"].tolist() == [1, 2, 3]  # min(3, d), and 1 where h differ
    assert (ranks["verdict"] == "NON_SMOOTHING").all()
    # The limit's rank is the most that its effective rank can be; where h differ, the next mode
    # is (.64/.8)^40 = 1.3e-4 of the first after 40 layers, and x of it adds x (1 - ln x).
    assert (ranks["effective_rank"] <= ranks["limit_rank"] + 5e-3).all()
    assert ranks["effective_rank"].iloc[0] < 1.01 < 1.5 < ranks["effective_rank"].iloc[1]
    caption = rotation_and_rank.caption(table)
    assert "NON_SMOOTHING" in caption and "3-4-5" in caption


@pytest.mark.skipif(not AS_KEPT, reason="drawn by another version of matplotlib")
def test_the_picture_of_readme_is_the_figure_of_today(context: Context) -> None:
    """Loosely: another font or build moves some pixels, another theory moves many."""
    files = make_figure(lambda_plane, context, context.results)

    def grey(content: bytes) -> np.ndarray:
        picture = Image.open(io.BytesIO(content)).convert("RGB")
        return np.asarray(picture.resize((260, 160)), dtype=float)

    stored = grey((ROOT / "docs/pictures/lambda_plane.png").read_bytes())
    now = grey(files.png.read_bytes())
    assert np.abs(stored - now).mean() < 4
    # What one panel moved into the other's place would do.
    assert np.abs(stored - now[:, ::-1]).mean() > 8
