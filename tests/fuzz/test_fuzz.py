"""500 drawn runs of the command line: no traceback, none without its sentence, none without end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
