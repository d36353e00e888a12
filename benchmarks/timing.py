"""Seconds and memory of a run, in a process of its own."""

import ctypes
import multiprocessing
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from oversmoothing.theory.support.errors import RequirementError

T = TypeVar("T")

_LOADED = [
    "benchmarks.libraries",
    "benchmarks.scaling",
    "oversmoothing.simulations.engine.evolve",
    "oversmoothing.simulations.sweep.runner",
]


def timed(run: Callable[[], T]) -> tuple[float, T]:
    """(seconds, what it gave) of one run."""
    start = time.perf_counter()
    answer = run()
    return time.perf_counter() - start, answer


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


# Of mallopt: beyond how many bytes memory is taken from the system, and given back, by itself.
TAKEN = -3


@contextmanager
def peak() -> Iterator[list[float]]:
    """[MiB of anonymous memory that were taken at most within]."""
    most, stop = [0.0], threading.Event()

    def now() -> float:
        said = Path("/proc/self/status").read_text().split("RssAnon:")[1]
        return int(said.split()[0]) / 1024

    def watch() -> None:
        while not stop.is_set():
            most[0] = max(most[0], now() - start)
            time.sleep(0.002)

    libc = ctypes.CDLL(None)
    libc.mallopt(TAKEN, 2**16)  # what is freed is not kept for later
    start, thread = now(), threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        stop.set()
        thread.join()
        libc.mallopt(TAKEN, 2**25)
