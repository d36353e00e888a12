"""A run of the benchmarks: which are asked for, which can run here, their rows and the table."""

import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from tqdm import tqdm

from benchmarks.benchmark import FULL, Measurement, Row
from benchmarks.history import Past, settled
from oversmoothing.theory.support.errors import InputError

_MODULES = (
    "certificates",
    "engine",
    "spectra_at_scale",
    "fused_heads",
    "libraries",
    "scaling",
    "inspecting",
    "watcher_cost",
    "reparameterised_training",
    "training_cost",
    "trained_spectra",
    "beside_peers",
    "predictions",
    "starting",
)


def measurements() -> list[Measurement]:
    """What the modules declare with `benchmark.measurement`, in their order."""
    modules = (import_module(f"{__package__}.{name}") for name in _MODULES)
    return [each for module in modules for each in vars(module).values()
            if isinstance(each, Measurement)]  # fmt: skip


def measure(
    chosen: Sequence[Measurement], device: str, data: Path | None, past: Past
) -> tuple[list[Row], list[str]]:
    """(rows of those that can run here, names of rows that are worse than the record of this
    machine); a line on stderr says why another cannot run."""
    rows: list[Row] = []
    worse: list[str] = []
    with tqdm(chosen, disable=None, file=sys.stderr, unit="measurement") as bar:
        for each in bar:
            bar.set_postfix_str(each.name)
            reason = skipped(each, device, data)
            if reason is None:
                seen, slower = settled(each.run(device), partial(each.run, device), past, device)
                rows += seen
                worse += slower
            else:
                tqdm.write(f"{each.name}: skipped, {reason}", file=sys.stderr)
    return rows, worse


def select(offered: list[Measurement], only: list[str] | None) -> list[Measurement]:
    """Those whose name holds one of the words. Raises `InputError` where none does."""
    if not only:
        return offered
    matches = [each for each in offered if any(word in each.name for word in only)]
    if not matches:
        names = ", ".join(each.name for each in offered)
        raise InputError(f"no measurement is named like {only}: choose from {names}")
    return matches


def skipped(measurement: Measurement, device: str, data: Path | None) -> str | None:
    """Why a measurement cannot run here, None where it can."""
    if device == "cuda" and not measurement.cuda:
        return "it runs on the CPU only"
    if measurement.data and data is None:
        return "it needs real inputs: give --data-dir or set OVERSMOOTHING_DATA"
    if measurement.long and not os.environ.get(FULL):
        return f"it takes minutes: set {FULL}=1"
    return None


def record(rows: list[Row], device: str) -> dict[str, Any]:
    """The rows with date, device and versions: what is kept of a run."""
    import torch

    from oversmoothing.simulations.running import provenance

    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    return {
        "date": time.strftime("%Y-%m-%d"),
        "device": name,
        "provenance": provenance(),
        "rows": [row.to_json_object() for row in rows],
    }


def table(rows: list[Row]) -> str:
    """One line a row and a closing line that counts the targets."""
    lines = [f"{'':58s} {'ratio':>10s} {'target':>10s}"]
    for row in rows:
        target = (
            "" if row.target is None else f"{'<=' if row.at_least is None else '>='} {row.target:g}"
        )
        holds = {None: "", True: "holds", False: "MISSED"}[row.holds]
        seconds = ", ".join(f"{name} {_time(value)}" for name, value in row.seconds.items())
        note = f"  [{row.note}]" if row.note else ""
        lines.append(f"{row.name:58s} {row.ratio:10.4g} {target:>10s} {holds:7s} {seconds}{note}")
    aimed = [row for row in rows if row.target is not None]
    held = sum(bool(row.holds) for row in aimed)
    lines.append(
        f"{held} of {len(aimed)} targets hold; medians of runs in turn, but where a row says more"
    )
    return "\n".join(lines)


def held(runs: Sequence[Sequence[Row]]) -> tuple[str, bool]:
    """(a line for each row with a target: in how many of the runs it was met; whether in all)."""
    lines, every = [f"{'':58s} {'target':>10s} {'held':>8s} {'median':>10s}  all runs"], True
    for k, first in enumerate(runs[0]):
        if first.target is not None:
            rows = [run[k] for run in runs]
            target = f"{'<=' if first.at_least is None else '>='} {first.target:g}"
            met, ratios = sum(bool(row.holds) for row in rows), [row.ratio for row in rows]
            every &= met == len(rows)
            lines.append(
                f"{first.name:58s} {target:>10s} {met:>3d} of {len(rows):d} "
                f"{median(ratios):10.4g}  {' '.join(f'{ratio:.4g}' for ratio in ratios)}"
            )
    return "\n".join(lines), every


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
