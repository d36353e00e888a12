"""What commands say of few inputs: no interval, and how many it takes; every interval has its n."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from oversmoothing import main
from oversmoothing.experiments.repeated.growth import DRAWS

NONE = "at least 5 are needed"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return " ".join(capsys.readouterr().out.split())


def kept(folder: Path, name: str, *tables: str) -> dict[str, Any]:
    """The JSON of the one NAME beneath a folder, with its picture and these tables beside it."""
    (path,) = folder.rglob(f"{name}.json")
    beside = {each.name for each in path.parent.iterdir()}
    kinds = {f"{name}.{kind}" for kind in ("csv", "txt", "html", "png", "pdf")}
    assert kinds | {f"{each}.csv" for each in tables} <= beside
    return json.loads(path.read_text())


def test_loops_of_two_runs_have_no_interval(tmp_path, capsys):
    """It was 'agrees on collapse in 100 % of 2 runs (95 % 100 to 100)'."""
    words = ("probe", "vit-random", "loop", "--loops", "20", "--out", str(tmp_path), "--plot")
    few = said(capsys, *words, "--count", "2")
    assert kept(tmp_path, "loop", "runs", "predictors")["loops"] == 20
    assert f"no interval: 1 input, {NONE}" in few and "95 %" not in few
    # Five of ten inputs are scored, and 3 of 6 blocks: both are drawn again.
    more = said(capsys, *words, "--count", "10")
    assert "(groups: 3, inputs: 5) it is right on collapse in 100 % of runs" in more
    assert f"100 % of runs (no interval: 3 groups, {NONE}" in more


def test_runs_that_all_agree_have_an_interval_with_a_width(tmp_path, capsys):
    """With the default count it was '100 % of 40 runs (95 % interval 100% to 100%, 10 inputs)'."""
    words = ("probe", "vit-random", "loop", "--loops", "20", "--out", str(tmp_path), "--json")
    found = json.loads(said(capsys, *words, "--count", "5"))["scores"]
    for score in found.values():
        assert (score["blocks"], score["inputs"]) == (6, 5)
        assert 0 <= score["agree_low"] < score["agree_high"] <= 1
    whole = [score for score in found.values() if score["agree"] == 1]
    # Wilson's for 5 of 5, 5 / (5 + 1.96^2).
    assert whole and all(abs(score["agree_low"] - 0.5655) < 1e-4 for score in whole)


def test_flips_scored_on_two_inputs_have_no_interval(tmp_path, capsys):
    """It was 'R² .89 (.89 to .89)'; the share is Wilson's over the inputs, as many as there are."""
    words = ("probe", "vit-random", "flips", "--out", str(tmp_path), "--plot")
    few = said(capsys, *words, "--count", "4")
    assert few.count(NONE) == 3 and "95 %" not in few
    assert all(row["r2_low"] is None for row in kept(tmp_path, "flips", "scores")["scores"])
    many = said(capsys, *words, "--count", "10")
    assert ", 10 inputs" in many and ", 5 inputs" in many


def test_readings_of_two_images_have_no_interval(tmp_path, capsys):
    """It was '61.11 [61.11, 61.11]'."""
    words = ("probe", "vit-random", "readings", "--out", str(tmp_path))
    assert f"no interval: 2 inputs, {NONE}" in said(capsys, *words, "--count", "2")
    assert pd.read_csv(tmp_path / "readings.csv")["percent_low"].isna().all()
    assert "over 5 inputs" in said(capsys, *words, "--count", "5")
    assert pd.read_csv(tmp_path / "readings.csv")["percent_low"].notna().all()


def test_few_inputs_say_nothing_of_heads_percentiles_or_tilts(tmp_path, capsys):
    """Of three images it was said that no head is told to smooth."""
    words = ("inspect", "vit-random", "--count", "3", "--out", str(tmp_path))
    record = json.loads(said(capsys, *words, "--json"))
    assert "no head" not in record["summary"].lower()
    assert all(row["cos_mean_p05"] is None for row in record["layers"])
    words = ("probe", "vit-random", "tilt", "--count", "1", "--out", str(tmp_path))
    few = " ".join(said(capsys, *words).split())
    assert f"no interval: 1 input, {NONE}" in few and "for which is not known" in few


def test_stability_shows_the_spread_of_its_random_directions(tmp_path, capsys):
    """One direction an input was shown as a property of the layer."""
    words = ("probe", "vit-random", "stability", "--count", "2", "--out", str(tmp_path), "--plot")
    assert "r2_jvp_observed" in said(capsys, *words)
    record = kept(tmp_path, "stability", "distances")
    assert record["gaussian_draws"] == DRAWS and record["inputs"] == 2
    spreads = np.array([[row[f"{name}_spread"] for name in ("closed", "observed")]
                        for row in record["layers"]])  # fmt: skip
    assert (spreads > 0).all() and (spreads < 1).all()
