"""Ratios of running times: ours against what a user would otherwise run, interleaved, medians.

Speed is stated as a ratio within one process, since machines are shared. A measurement is a
function that `measurement` decorates, in one of the modules that `experiments.bench` names; the
command `oversmoothing bench` runs them all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from statistics import median
from typing import Any

from oversmoothing.experiments.threads import one_thread
from oversmoothing.theory.support.files import json_number


@dataclass(frozen=True)
class Row:
    """One line of the table.

    ratio: the measured quantity, a quotient of times unless the name says otherwise. target: what
    is aimed at, None for a line that only compares; at_most: whether the ratio must stay below the
    target or reach it. seconds: the absolute medians behind it, by name (noisy: never a bound).
    note: one line of context (shapes, conditioning met), may be empty.
    """

    name: str
    ratio: float
    target: float | None
    at_most: bool
    seconds: dict[str, float]
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the target is met; None without one. A NaN ratio never holds."""
        if self.target is None:
            return None
        return self.ratio <= self.target if self.at_most else self.ratio >= self.target

    def to_json_object(self) -> dict[str, Any]:
        """{name, ratio, target, at_most, holds, seconds, note}."""
        return {
            "name": self.name,
            "ratio": json_number(self.ratio),
            "target": self.target,
            "at_most": self.at_most,
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


def interleaved_medians(
    runs: Sequence[Callable[[], object]],
    repeats: int = 5,
    synchronise: Callable[[], None] = lambda: None,
) -> list[float]:
    """Median seconds of each, in turn A B A B ..., after one warm-up of each.

    synchronise is called before each clock reading (torch.cuda.synchronize on a GPU).
    """
    times: list[list[float]] = [[] for _ in runs]
    for repeat in range(repeats + 1):
        for k, run in enumerate(runs):
            synchronise()
            start = time.perf_counter()
            run()
            synchronise()
            if repeat:
                times[k].append(time.perf_counter() - start)
    return [median(each) for each in times]
