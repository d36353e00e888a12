"""One thread: the same last digits on any number of cores, and small matrices run faster.

Times are of runs in turn.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """torch and every BLAS on one thread within the context (or decorated function).

    Sums are split by thread, so that another number of cores would give other last digits; and two
    thread pools side by side slow each other down many times.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        torch.set_num_threads(before)


def interleaved_medians(
    runs: Sequence[Callable[[], object]],
    repeats: int = 5,
    synchronise: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Median seconds of each, in turn A B A B ..., after one warm-up of each.

    synchronise is called before each clock reading (torch.cuda.synchronize on a GPU). clock:
    `time.process_time` counts what the process computes, however busy the machine.
    """
    times: list[list[float]] = [[] for _ in runs]
    for repeat in range(repeats + 1):
        for k, run in enumerate(runs):
            synchronise()
            start = clock()
            run()
            synchronise()
            if repeat:
                times[k].append(clock() - start)
    return [median(each) for each in times]
