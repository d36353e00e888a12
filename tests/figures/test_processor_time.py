"""What a figure is said to cost: its workers count, whoever they descend from."""

from __future__ import annotations

import sys
import time

import pytest

from oversmoothing.paper_figures.costs.timing import in_fresh_process
from oversmoothing.paper_figures.processor_time import processor_seconds

WORK = 0.5  # seconds


def burn(seconds: float) -> None:
    start = time.process_time()
    while time.process_time() - start < seconds:
        pass


def test_the_work_of_this_process_counts_and_its_waiting_does_not() -> None:
    start = processor_seconds()
    time.sleep(WORK)
    burn(WORK)
    # os.times counts hundredths.
    assert WORK - 0.05 < processor_seconds() - start < 2 * WORK - 0.05


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell of such children")
def test_the_work_of_a_worker_of_a_server_counts() -> None:
    in_fresh_process(burn, 0.0)  # the server has loaded its libraries
    start = processor_seconds()
    in_fresh_process(burn, WORK)
    assert processor_seconds() - start > WORK - 0.05
