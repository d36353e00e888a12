"""The record of speed: each run of `make bench`, by commit and machine, and what became slower.

A run is one line of `history.jsonl`: date, commit, machine and the ratio of each row. A row is
worse where its ratio of times is worse by more than `NOISE` than the median of the latest runs of
this machine; ratios that only compare, without a side that is better, and errors are kept and
drawn, but are never worse.
"""

import itertools
import json
import os
import platform
import textwrap
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.benchmark import Row
from oversmoothing.simulations.drawing.picture import new_figure, png
from oversmoothing.simulations.running import provenance
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import json_number, write_atomically

RECORD = Path(__file__).with_name("history.jsonl")
# The bar of the bench between one state of the program and the next, by medians.
NOISE = 0.15
# Of the runs on record, so many are looked back at: a machine may change for good.
LATEST = 10


def machine() -> str:
    """What this machine is: ratios are compared with those of the same one alone."""
    try:
        told = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        model = next(line.partition(":")[2].strip() for line in told if "model name" in line)
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"


@dataclass(frozen=True)
class Past:
    """The runs on record, oldest first."""

    runs: list[dict[str, Any]]

    @classmethod
    def read(cls, path: Path) -> "Past":
        """Raises `InputError` where a line is no run, naming the line."""
        runs = []
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
        for number, line in enumerate(lines, 1):
            try:
                run = json.loads(line)
                ratios = {name: float(value) for name, value in run["ratios"].items()
                          if value is not None}  # fmt: skip
                commit = run["commit"] or "no commit"
                place = {name: str(run[name]) for name in ("machine", "device")}
                runs.append(run | place | {"ratios": ratios, "commit": commit})
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(
                    f"{path}, line {number}, is no run of the benchmarks: take the line out"
                ) from error
        return cls(runs)

    def ratios(self, name: str, device: str) -> list[float]:
        """The latest of a row on this machine."""
        mine = machine()
        return [
            run["ratios"][name]
            for run in self.runs
            if run["machine"] == mine and run["device"] == device and name in run["ratios"]
        ][-LATEST:]

    def is_worse(self, row: Row, device: str) -> bool:
        """Whether it is worse than the median of the latest by more than noise.

        Rows without times are errors and shares, which have their targets alone.
        """
        earlier = self.ratios(row.name, device)
        if row.target is None or not row.seconds or not earlier:
            return False
        if row.at_most is not None:
            return not row.ratio <= (1 + NOISE) * median(earlier)
        return not row.ratio >= median(earlier) / (1 + NOISE)


def line_of(rows: Iterable[Row], device: str) -> str:
    """A run as one line of the record."""
    run = {
        "date": time.strftime("%Y-%m-%d"),
        "commit": provenance()["commit"],
        "machine": machine(),
        "device": device,
        "ratios": {row.name: json_number(row.ratio) for row in rows},
    }
    return json.dumps(run, allow_nan=False, ensure_ascii=False) + "\n"


def append(rows: Sequence[Row], device: str, path: Path) -> None:
    """The run is added to the file, all of it or nothing."""
    before = path.read_text("utf-8") if path.is_file() else ""
    write_atomically(path, before + line_of(rows, device))


def settled(
    rows: list[Row], again: Callable[[], list[Row]], past: Past, device: str
) -> tuple[list[Row], list[str]]:
    """(rows, names of those that are worse): what looks worse is measured twice more first.

    again measures the same rows anew. Of the three tries the median counts.
    """
    suspected = {row.name for row in rows if past.is_worse(row, device)}
    if not suspected:
        return rows, []
    tries = [rows, again(), again()]
    middle = [
        _middle([row for each in tries for row in each if row.name == name])
        if name in suspected
        else row
        for name, row in ((row.name, row) for row in rows)
    ]
    return middle, [row.name for row in middle if past.is_worse(row, device)]


def _middle(tries: Sequence[Row]) -> Row:
    ratio = median(row.ratio for row in tries)
    return min(tries, key=lambda row: abs(row.ratio - ratio))


def draw(past: Past, device: str, path: Path, rows: Sequence[Row]) -> None:
    """A PNG: the ratio of each of these rows over the runs of this machine; its target dashed."""
    mine = [run for run in past.runs if run["machine"] == machine() and run["device"] == device]
    across = 3
    down = -(-len(rows) // across)
    figure, axes = new_figure(down, across, height=0.3 + 1.1 * down)
    for axis, row in itertools.zip_longest(axes.flat, rows):
        if row is None:
            axis.set_axis_off()
            continue
        at = [k for k, run in enumerate(mine) if row.name in run["ratios"]]
        axis.plot(at, [mine[k]["ratios"][row.name] for k in at], ".-")
        if row.target is not None:
            axis.axhline(row.target, linestyle="--", color="grey")
        axis.set_title("\n".join(textwrap.wrap(row.name, 38)), fontsize=6)
        axis.set_xlim(-0.5, len(mine) - 0.5)
        axis.set_ylim(bottom=min(0, *axis.get_ylim()))
        axis.set_xticks([0, len(mine) - 1], [mine[0]["commit"][:7], mine[-1]["commit"][:7]])
        axis.tick_params(labelsize=6)
    figure.supylabel("ratio (dashed: its target)", fontsize=7)
    figure.suptitle(f"Runs on record, by commit: {machine()}, {device}", fontsize=8)
    write_atomically(path, png(figure))
