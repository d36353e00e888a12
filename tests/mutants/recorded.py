"""A quarter of the recorded verdicts, in parts: what `make mutants` asks besides the quick tests.

`make test` asks all of them (tests/corpora), in one test that is too long to be met by each mutant.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.corpora.cases import case
from tests.corpora.take import Recorded, kept, moved
from tests.corpora.theory import VERDICTS, verdict_of

PARTS, SHARE = 5, 4


@cache
def by_case() -> dict[str, Recorded]:
    return {one.case: one for one in kept("verdicts")}


@pytest.mark.parametrize("part", range(PARTS))
def test_a_part_of_the_recorded_verdicts_is_as_recorded(part: int) -> None:
    seeds = range(part * SHARE, VERDICTS, PARTS * SHARE)
    new = [(str(seed), verdict_of(case(seed), certified=seed % 5 == 0)) for seed in seeds]
    old = [by_case()[name] for name, _ in new]
    assert not [move for move in moved("verdicts", old, new) if not move.mended]
