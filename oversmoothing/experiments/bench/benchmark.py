"""Ratios of running times: ours against what a user would otherwise run, interleaved, medians.

Speed is stated as a ratio within one process, since machines are shared. A measurement is a
function that `measurement` decorates, in one of the modules that `bench.running` names; the
command `oversmoothing bench` runs them all.
"""

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TypeVar

from oversmoothing.experiments.threads import one_thread
from oversmoothing.theory.support.errors import RequirementError
from oversmoothing.theory.support.files import json_number

T = TypeVar("T")

_LOADED = [
    "oversmoothing.experiments.bench.engine",
    "oversmoothing.experiments.bench.scaling",
    "oversmoothing.simulations.sweep.runner",
]


@dataclass(frozen=True)
class Row:
    """One line of the table.

    ratio: the measured quantity, a quotient of times unless the name says otherwise. seconds: the
    absolute medians behind it, by name (noisy: never a bound). note: one line of context (shapes,
    conditioning met). at_most, at_least: what is aimed at; neither for a line that only compares.
    """

    name: str
    ratio: float
    seconds: dict[str, float] = field(default_factory=dict)
    note: str = ""
    at_most: float | None = None
    at_least: float | None = None

    @property
    def target(self) -> float | None:
        """The one that is aimed at, if any."""
        return self.at_least if self.at_most is None else self.at_most

    @property
    def holds(self) -> bool | None:
        """Whether the target is met; None without one. A NaN ratio never holds."""
        if self.target is None:
            return None
        return self.ratio >= self.target if self.at_most is None else self.ratio <= self.target

    def to_json_object(self) -> dict[str, Any]:
        """{name, ratio, target, at_most, holds, seconds, note}; at_most: whether the target is."""
        return {
            "name": self.name,
            "ratio": json_number(self.ratio),
            "target": self.target,
            "at_most": self.at_least is None,
            "holds": self.holds,
            "seconds": {name: json_number(value) for name, value in self.seconds.items()},
            "note": self.note,
        }


@dataclass(frozen=True)
class Measurement:
    """A named benchmark. run(device) returns its rows.

    device: 'cpu' or 'cuda'. Measurements with cuda=False are skipped on cuda. data: needs the
    folder of real inputs (`OVERSMOOTHING_DATA`), and is skipped, with a line that says so, without.
    """

    name: str
    summary: str
    run: Callable[[str], list[Row]]
    cuda: bool = False
    data: bool = False


def measurement(
    name: str, summary: str, *, cuda: bool = False, data: bool = False, pinned: bool = True
) -> Callable[[Callable[..., list[Row]]], Measurement]:
    """Declare the decorated function, () -> rows, or with cuda device -> rows, a `Measurement`.

    pinned: it runs on one thread throughout; otherwise it says itself what runs on how many.
    """

    def declare(run: Callable[..., list[Row]]) -> Measurement:
        def measured(device: str) -> list[Row]:
            with one_thread() if pinned else nullcontext():
                return run(device) if cuda else run()

        return Measurement(name, summary, measured, cuda, data)

    return declare


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
