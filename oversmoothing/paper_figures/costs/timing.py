"""Seconds and memory: of runs in turn, and of a run in a process of its own."""

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from statistics import median
from typing import TypeVar

from oversmoothing.theory.support.errors import RequirementError

T = TypeVar("T")

_LOADED = [
    "oversmoothing.paper_figures.costs.growth",
    "oversmoothing.simulations.engine.evolve",
    "oversmoothing.simulations.sweep.runner",
]


def timed(run: Callable[[], T]) -> tuple[float, T]:
    """(seconds, what it gave) of one run."""
    start = time.perf_counter()
    found = run()
    return time.perf_counter() - start, found


def in_fresh_process(run: Callable[..., T], *given: object, start: str = "forkserver") -> T:
    """run(*given) in a process of its own, forked from a server that has loaded the libraries.

    start: 'spawn' where what the libraries take is to be counted, which takes seconds. Raises
    `RequirementError` where the process dies.
    """
    context = multiprocessing.get_context(start)
    context.set_forkserver_preload(_LOADED)
    with ProcessPoolExecutor(1, context) as pool:
        try:
            return pool.submit(run, *given).result()
        except BrokenProcessPool as error:
            raise RequirementError(f"the process that measures {given} died") from error


def peak_mib() -> float:
    """The peak of this process's resident memory."""
    # Linux counts kibibytes, macOS bytes.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


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
