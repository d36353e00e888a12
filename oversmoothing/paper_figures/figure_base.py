"""What every figure shares: its contract, its words beside the paper's, how its files are written.

A figure is a file of `figures/` with the parts of a `PaperFigure`. It computes its table once,
draws from the table alone and writes four files side by side: NAME.pdf and NAME.png (the picture),
NAME.csv (every number in it) and NAME.txt (the caption, with the verdict in words, computed from
the table). The same input gives the same bytes: no date enters a file.

What a paper reports is typed in, and nowhere else is a number; where the paper's own value, its
models or its data are not at hand the verdict says that it cannot be checked, and why.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_lowercase
from typing import Any, Self

import numpy as np
import pandas as pd
import psutil
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from oversmoothing.simulations.drawing.picture import page_width, style, write_figure
from oversmoothing.simulations.drawing.wording import signed
from oversmoothing.simulations.state import choose_device
from oversmoothing.theory.support.files import output_folder


@dataclass(frozen=True)
class Context:
    """What a figure may know besides its own code.

    results: folder of earlier results (JSON, CSV or Parquet), for figures that show experiments.
    seed: of every random number the figure draws. device: 'auto', 'cpu' or 'cuda'.
    progress: whether a bar may be shown on stderr.
    """

    results: Path
    seed: int = 0
    device: str = "auto"
    progress: bool = True

    @classmethod
    def checked(cls, results: Path, seed: int, device: str) -> Self:
        """With a device that is there and a folder that can be written. Raises `InputError`."""
        choose_device(device)
        return cls(output_folder(results), seed, device)


REPRODUCED, DIFFERS, UNCHECKED = "reproduced", "differs", "cannot be checked"
SAME_SIGN = "same sign, far from the paper's accuracy"
VERDICTS = (REPRODUCED, SAME_SIGN, DIFFERS, UNCHECKED)
# Points of test error within which a model of ours is as accurate as the paper's.
NEAR = 3.0


@dataclass(frozen=True)
class Comparison:
    """what: the number or statement. paper: as it is reported, typed in. tolerance: how far ours
    may be, in words. verdict: one of VERDICTS. why: what it rests on. interval: our mean and the
    ends of its 95 % interval, where there is one. recorded: ours is a row of a recorded run, which
    this run has not computed."""

    what: str
    paper: str
    ours: str
    tolerance: str
    verdict: str
    why: str
    interval: tuple[float, float, float] | None = None
    recorded: bool = False

    def __str__(self) -> str:
        word = "tolerance" if self.tolerance[0].isdigit() else "rule"
        ours = "not compared" if self.ours == "-" else self.ours
        within = "" if self.tolerance == "-" else f" ({word}: {self.tolerance})"
        return (
            f"{self.what}. The paper: {self.paper}. Ours: {ours}. "
            f"{self.verdict.capitalize()}{within}: {self.why}."
        )


def counted(compared: Sequence[Comparison]) -> str:
    """'3 comparisons with the paper: 2 reproduced, 0 same sign, 1 differ, 0 cannot be checked.'"""
    words = {SAME_SIGN: "same sign", DIFFERS: "differ"}
    said = [f"{sum(each.verdict == name for each in compared)} {words.get(name, name)}"
            for name in VERDICTS]  # fmt: skip
    many = "s" if len(compared) > 1 else ""
    return f"{len(compared)} comparison{many} with the paper: {', '.join(said)}."


def number(what: str, paper: float, ours: float, tolerance: float, why: str) -> Comparison:
    """Of two numbers that mean the same thing: reproduced where they are within the tolerance."""
    near = abs(paper - ours) <= tolerance
    words = f"{paper:.2f}", f"{ours:.2f}", f"{tolerance:.3g}"
    return Comparison(what, *words, REPRODUCED if near else DIFFERS, why)


def sign(
    what: str, paper: str, interval: tuple[float, float, float], positive: bool, why: str
) -> Comparison:
    """Of a statement about a sign; interval: a mean and the ends of its 95 % interval.

    Reproduced where the whole interval has the sign, differs where it has the other one; an
    interval with zero in it, or none, decides nothing. Of a change: ours is a rise or a fall.
    """
    mean, low, high = interval
    rule = "the whole interval has one sign"
    if not (math.isfinite(low) and math.isfinite(high)):
        why = f"{why}; there is no interval"
        return Comparison(what, paper, signed(mean), rule, UNCHECKED, why)
    verdict = REPRODUCED if (low > 0) == positive else DIFFERS
    if low <= 0 <= high:
        verdict, why = UNCHECKED, f"{why}; the interval holds both signs"
    way = "a rise" if low > 0 else "a fall" if high < 0 else "either way"
    ours = f"{signed(mean)} [{signed(low)}, {signed(high)}], {way}"
    return Comparison(what, paper, ours, rule, verdict, why, interval)


def at_accuracy(compared: Comparison, ours: float, paper: float, of: str = "") -> Comparison:
    """A comparison of models whose test errors (` of` which) are ours and the paper's, in per cent:
    beyond NEAR points what would be reproduced has the same sign alone. NaN where one is not
    known."""
    if compared.verdict != REPRODUCED or abs(ours - paper) <= NEAR:
        return compared
    why = f"{compared.why}; test error{of} {ours:.1f} %, the paper's {paper:.1f} %"
    return replace(compared, verdict=SAME_SIGN, why=why)


def unchecked(what: str, paper: str, why: str, ours: str = "-") -> Comparison:
    """What there is nothing here to hold against."""
    return Comparison(what, paper, ours, "-", UNCHECKED, why)


@dataclass(frozen=True)
class PaperFigure:
    """One figure, of what its file holds: TITLE, SHORT, NOT_SHOWN, data, draw, words, compared.

    title: what the picture is. short: for the report, what is seen, in two sentences without a
    number of the run. not_shown: what a reader must not take from it. data(context): one table with
    every number of the figure. draw(table): the picture, from the table alone. words(table): what
    is shown and the verdict, computed from the table. compared(table): of a figure of the paper,
    what the paper reports beside ours. name: that of its file.
    """

    title: str
    short: str
    not_shown: str
    data: Callable[[Context], pd.DataFrame]
    draw: Callable[[pd.DataFrame], Figure]
    words: Callable[[pd.DataFrame], str]
    compared: Callable[[pd.DataFrame], list[Comparison]] = lambda _: []
    name: str = ""

    def caption(self, table: pd.DataFrame) -> str:
        """The title and the words, then of comparisons how many came out how, and each."""
        rows = self.compared(table)
        said = [counted(rows), *map(str, rows)] if rows else []
        return "\n".join([f"{self.title}. {self.words(table)}", *said])

    def make(
        self, context: Context, out: Path, kinds: Sequence[str] = ("png", "pdf"),
        page: str = "two-column",
    ) -> list[Path]:  # fmt: skip
        """Compute, draw and write CSV, caption and pictures in `out`, together or not at all.

        kinds: of 'pdf', 'png' and 'svg'; page: 'one-column' or 'two-column'. Returns the paths, in
        this order. Raises what the figure raises; `InputError` for a folder that takes no file.
        """
        with page_width(page):
            stem = output_folder(out) / self.name
            table = self.data(context)
            with style():
                figure = self.draw(table)
            return write_figure(figure, table, self.caption(table), stem, self.title, kinds)


def label_panels(axes: NDArray[np.object_]) -> None:
    """Set a bold letter above the left end of each panel, row by row."""
    for letter, axis in zip(ascii_lowercase, axes.flatten().tolist(), strict=False):
        axis.annotate(
            letter, (0.0, 1.0), (-2, 4), xycoords="axes fraction", textcoords="offset points",
            ha="right", va="bottom", fontweight="bold", fontsize="large",
        )  # fmt: skip


def mark(label: str, marker: str = "o", **look: Any) -> Line2D:
    """A mark without a line, for a legend."""
    return Line2D([], [], linestyle="none", marker=marker, label=label, **look)


def paler(colour: str) -> str:
    """A tint of a colour, under dots of the same."""
    red, green, blue = (0.35 * part + 0.65 for part in to_rgb(colour))
    return to_hex((red, green, blue))


def label_ends(axis: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write (height, words, colour) of each line right of the panel, a tenth of it apart."""
    low, high = axis.get_ylim()
    taken = -math.inf
    for y, text, colour in sorted(ends):
        taken = max((y - low) / (high - low), taken + 0.1)
        axis.annotate(
            text, (1.02, taken), xycoords="axes fraction", color=colour, va="center",
            annotation_clip=False,
        )  # fmt: skip


def processor_seconds() -> float:
    """What a figure costs, however busy the machine: processor time of this process, its finished
    children, and its living ones with theirs (of these the finished ones on Linux alone)."""
    total, own = 0.0, psutil.Process()
    for process in (own, *own.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # finished meanwhile
            spent = process.cpu_times()
            total += spent.user + spent.system + spent.children_user + spent.children_system
    return total
