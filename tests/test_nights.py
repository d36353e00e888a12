"""A night of drawn cases: everything is asked once, what is known is not asked again."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import nights
from tests.support.processes import python

WORDS = {tool: nights.chunks([tool], 1.0) for tool in nights.TOOLS}


@pytest.mark.parametrize("tool", ["oracle", "evolve_errors", "fuzz", "honest"])
def test_the_chunks_of_a_night_are_all_its_cases_once(tool):
    found = WORDS[tool]
    cases = [k for chunk in found for k in range(chunk.first, chunk.first + chunk.count)]
    assert cases == list(range(nights.TOOLS[tool].cases))


def test_a_share_of_a_night_draws_as_many_fewer():
    assert sum(chunk.count for chunk in nights.chunks(["oracle"], 0.01)) == 200
    assert [chunk.count for chunk in nights.chunks(["mutants", "honest"], 0.001)] == [1, 1]


@pytest.mark.parametrize("tool", nights.TOOLS)
def test_what_a_night_calls_takes_these_words(tool):
    module, *words = WORDS[tool][0].words(20260131)
    if tool == "mutants":
        pytest.importorskip("mutmut")
    done = python("-m", module, *words, "--help")
    assert done.returncode == 0, done.stderr


def told_in(folder: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> list[list[str]]:
    """What is asked of `subprocess.run` in nights of that folder, which ends as told."""
    asked: list[list[str]] = []

    def run(words: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        asked.append(words)
        return subprocess.CompletedProcess(words, code, stdout="said\n")

    monkeypatch.setattr(nights, "WORK", folder)
    monkeypatch.setattr(nights, "ROOT", folder)
    monkeypatch.setattr(nights.subprocess, "run", run)
    return asked


@pytest.mark.parametrize("code", [0, 1, -9])
def test_a_chunk_is_known_by_how_it_ended(tmp_path, monkeypatch, code):
    """But for what a signal ended, which is wrong and asked again."""
    told = told_in(tmp_path, monkeypatch, code)
    words = ["--only", "honest", "--share", "0.2", "--jobs", "1", "--seed", "7"]
    assert nights.main(words) == nights.main(words) == int(code != 0)
    assert len(told) == (4 if code < 0 else 2)
    assert told[1][-4:] == ["--seed", "7", "--first", "100"]


def test_other_code_or_another_seed_begins_anew(tmp_path, monkeypatch):
    told = told_in(tmp_path, monkeypatch, 0)
    words = ["--only", "honest", "--share", "0.1", "--jobs", "1", "--seed"]
    nights.main([*words, "7"])
    nights.main([*words, "8"])
    assert len(told) == 2
    (tmp_path / "oversmoothing").mkdir()
    (tmp_path / "oversmoothing" / "new.py").write_text("")
    nights.main([*words, "8"])
    assert len(told) == 3
