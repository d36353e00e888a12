"""500 drawn runs of the command line: no traceback, none without its sentence, none without end."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

from tests.fuzz import values

ROOT = Path(__file__).resolve().parents[2]


def test_drawn_runs_end_with_an_answer_or_a_sentence(tmp_path):
    # A process of its own, whose memory is limited.
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "500", "--seed", "0"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=1800,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "500 runs, 0 wrong" in done.stdout


def test_slips_leave_the_odd_values_as_they_are():
    # A run must not depend on those drawn before it.
    rng, before = random.Random(0), repr(values.ODD)
    for _ in range(20_000):
        values.mutated(values.case(rng), rng)
    assert repr(values.ODD) == before
