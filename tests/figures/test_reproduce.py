"""The main job: what its presets run, and what it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from oversmoothing.experiments.study.protocol import TIERS, Protocol
from oversmoothing.paper_figures import reproduce as main_job
from oversmoothing.paper_figures.figure_base import Context


@pytest.mark.parametrize("full", [False, True])
def test_full_runs_every_study_and_the_page_says_which_preset_it_was(
    full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def studied(chosen: Protocol, folder: Path, **given: object) -> None:
        asked.append((given["tiers"], folder, given["workers"]))

    monkeypatch.setattr(main_job, "run_blocks", studied)
    monkeypatch.setattr(main_job, "_checks", lambda context: iter(()))
    monkeypatch.setattr(main_job, "FIGURES", ("tables_2_3",))
    done = main_job.reproduce(Context(tmp_path, progress=False), full=full, workers=2)
    assert done == 0
    assert asked == ([(TIERS, tmp_path / "study", 2)] if full else [])
    text = (tmp_path / "index.html").read_text("utf-8")
    assert ("The reduced preset" in text) == (not full)
    assert "cannot be checked" in text
    kept = pd.read_csv(tmp_path / "verdicts.csv")
    assert set(kept["figure"]) == {"tables_2_3"} and "cannot be checked" in set(kept["verdict"])
