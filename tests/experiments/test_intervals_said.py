"""What commands say of few inputs: no interval, and how many it takes; every interval has its n."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from oversmoothing import main
from oversmoothing.experiments.stability.growth import DRAWS

NONE = "at least 5 are needed"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


def test_loops_of_two_runs_have_no_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was 'agrees on collapse in 100 % of 2 runs (95 % 100 to 100)'."""
    words = ("loop", "vit-random", "--loops", "20", "--out", str(tmp_path))
    few = said(capsys, *words, "--count", "2")
    assert f"no interval: 1 input, {NONE}" in few and "95 %" not in few
    many = said(capsys, *words, "--count", "10")
    assert "95 % interval" in many and ", 5 inputs" in many


def test_flips_scored_on_two_inputs_have_no_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was 'R² .89 (.89 to .89)'; the share is Wilson's over the inputs, as many as there are."""
    words = ("flips", "vit-random", "--out", str(tmp_path))
    few = said(capsys, *words, "--count", "4")
    assert few.count(NONE) == 3 and "95 %" not in few
    (scores,) = tmp_path.rglob("flips.json")
    assert all(row["r2_low"] is None for row in json.loads(scores.read_text())["scores"])
    many = said(capsys, *words, "--count", "10")
    assert ", 10 inputs" in many and ", 5 inputs" in many


def test_readings_of_two_images_have_no_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was '61.11 [61.11, 61.11]'."""
    words = ("readings", "vit-random", "--out", str(tmp_path))
    assert "[" not in said(capsys, *words, "--count", "2").split("wrote")[0]
    assert "[" in said(capsys, *words, "--count", "5").split("wrote")[0]


def test_stability_shows_the_spread_of_its_random_directions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One direction an input was shown as a property of the layer."""
    words = ("stability", "vit-random", "--count", "2", "--out", str(tmp_path), "--json")
    record = json.loads(said(capsys, *words))
    assert record["gaussian_draws"] == DRAWS
    spreads = np.array([[row[f"{name}_spread"] for name in ("closed", "observed")]
                        for row in record["layers"]])  # fmt: skip
    assert (spreads > 0).all() and (spreads < 1).all()
