"""Ratios of running times: ours against what a user would otherwise run, interleaved, medians.

Speed is stated as a ratio within one process, since machines are shared. A measurement is a
function that `measurement` decorates, in one of the modules that `benchmarks.running` names;
`make bench` runs them all.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from oversmoothing.simulations.state import one_thread
from oversmoothing.theory.support.files import json_number

# Set in the environment: all of what is measured on a part, and what takes minutes.
FULL = "OVERSMOOTHING_BENCH_FULL"


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
    long: takes minutes, and is skipped likewise unless the environment sets FULL.
    """

    name: str
    summary: str
    run: Callable[[str], list[Row]]
    cuda: bool = False
    data: bool = False
    long: bool = False


def measurement(
    name: str,
    summary: str,
    *,
    cuda: bool = False,
    data: bool = False,
    long: bool = False,
    pinned: bool = True,
) -> Callable[[Callable[..., list[Row]]], Measurement]:
    """Declare the decorated function, () -> rows, or with cuda device -> rows, a `Measurement`.

    pinned: it runs on one thread throughout; otherwise it says itself what runs on how many.
    """

    def declare(run: Callable[..., list[Row]]) -> Measurement:
        def measured(device: str) -> list[Row]:
            with one_thread() if pinned else nullcontext():
                return run(device) if cuda else run()

        return Measurement(name, summary, measured, cuda, data, long)

    return declare
