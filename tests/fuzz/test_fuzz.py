"""500 drawn runs of the command line: no traceback, none without its sentence, none without end."""

from __future__ import annotations

import random

from tests.fuzz import values
from tests.support.processes import python


def test_drawn_runs_end_with_an_answer_or_a_sentence(tmp_path):
    # A process of its own, whose memory is limited.
    done = python("-m", "tests.fuzz", "500", "--seed", "0", cwd=tmp_path, timeout=1800)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "500 runs, 0 wrong" in done.stdout


def test_slips_leave_the_odd_values_as_they_are():
    # A run must not depend on those drawn before it.
    rng, before = random.Random(0), repr(values.ODD)
    for _ in range(20_000):
        values.mutated(values.case(rng), rng)
    assert repr(values.ODD) == before
