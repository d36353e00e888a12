"""Others' public layers beside our remedies: how far apart, at what time, and what is recorded.

Their code is run only where the folder of real inputs holds it and `--run-peers-code` is given;
else a row says what is missing and shows what was recorded (`benchmarks/peers/results`). Beside it
the published figures that can be computed anew without their authors' code or weights.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.benchmark import Row, measurement
from benchmarks.peers import precursor_sign
from benchmarks.peers.mixing_series import from_uniform
from benchmarks.peers.peer_code import OPTION, Source, is_allowed, load
from benchmarks.peers.peer_layers import COMPARISONS, FLOW, ROUNDING, Comparison
from benchmarks.peers.walk_collapse import Blocks, accuracy_in_theory, accuracy_of_regression, rates
from oversmoothing.experiments.intervals import share_interval
from oversmoothing.experiments.models.pictures import real_inputs

RECORD = "results/peers.json"


@measurement("peers/layers", f"others' public layers beside our remedies (runs them with {OPTION})")
def layers() -> list[Row]:
    """Rows of each comparison, run or as recorded."""
    data = real_inputs()
    reasons = [not_run(each.sources, data) for each in COMPARISONS]
    if None in reasons and data is not None:
        print(f"executing other people's Python from {data / 'peers'}", file=sys.stderr)
    return [
        row
        for each, reason in zip(COMPARISONS, reasons, strict=True)
        for row in (
            compared(each, data) if data and reason is None else recorded(each.name, reason)
        )
    ]


def not_run(sources: Sequence[Source], data: Path | None) -> str | None:
    """Why code is not run here, None where it is."""
    for source in sources:
        if data is None or not source.place(data).is_file():
            return f"not run: {source.wanted(data)}"
    if not is_allowed():
        return f"not run: it is other people's Python, and loading executes it: give {OPTION}"
    return None


@torch.no_grad()
def compared(comparison: Comparison, data: Path) -> list[Row]:
    """The largest relative difference from ours as stated and from ours as explained; the times."""
    parts: dict[str, Any] = {}
    said: list[str] = []
    for source in comparison.sources:
        peer = load(source, data, parts)
        parts |= peer.parts
        other = "" if peer.digest == source.digest else f", NOT the {source.digest} of that commit"
        stood = f", with our stand-ins for {', '.join(peer.stand_ins)}" if peer.stand_ins else ""
        said.append(
            f"{source.repository} {source.path} {source.commit[:12]}, "
            f"sha256 {peer.digest}{other}{stood}"
        )
    pair = comparison.pair(parts)
    apart = relative_difference(pair.theirs(), pair.ours())
    theirs, ours = shortest([pair.theirs, pair.ours])
    explained = None
    if comparison.but and pair.explained is not None:
        explained = relative_difference(pair.theirs(), pair.explained())
    name = f"peers: {comparison.name}"
    note = "; ".join([verdict(apart, explained, comparison.but), *said])
    rows = [Row(f"{name}, difference", apart, note=note,
                at_most=ROUNDING if explained is None else None)]  # fmt: skip
    if explained is not None:
        rows.append(Row(f"{name}, difference explained", explained, at_most=ROUNDING))
    times = {"ours": ours, "theirs": theirs}
    note = "shortest of 9 in turn, processor time of one thread"
    return [*rows, Row(f"{name}, time ours/theirs", ours / theirs, times, note)]


def shortest(runs: Sequence[Callable[[], object]], rounds: int = 9) -> list[float]:
    """The least seconds of this thread's processor time that each took, of runs in turn.

    What else the machine does only ever adds, and does not count here.
    """
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, each in zip(runs, times, strict=True):
            start = time.thread_time()
            run()
            each.append(time.thread_time() - start)
    return [min(each) for each in times]


def verdict(apart: float, explained: float | None, but: str) -> str:
    """What a difference is, in words: apart from ours as stated, and from ours as explained."""
    if apart <= ROUNDING:
        return "equal to rounding"
    if explained is not None and explained <= ROUNDING:
        return f"differs, explained: {but}"
    return "DIFFERS, unexplained"


def relative_difference(theirs: Tensor, ours: Tensor) -> float:
    """max |theirs - ours| / max |theirs|; NaN where shapes differ or an entry is no number."""
    if theirs.shape != ours.shape:
        return float("nan")
    return float((theirs - ours).abs().max() / theirs.abs().max())


@cache
def record() -> dict[str, Any]:
    """The report that the command wrote when others' code was last run."""
    text = files("benchmarks.peers").joinpath(RECORD).read_text("utf-8")
    report: dict[str, Any] = json.loads(text)
    return report


def recorded(name: str, reason: str | None) -> Iterable[Row]:
    """The rows of the record, marked as such and without a target; a NaN where there are none."""
    kept, begins = record(), f"peers: {name}, "
    mine = [row for row in kept["rows"] if row["name"].startswith(begins)]
    if not mine:
        yield Row(f"{begins}difference", float("nan"), note=f"nothing is recorded; {reason}")
    torch_version = kept["provenance"]["versions"]["torch"]
    mark = f"RECORDED on {kept['date']}, torch {torch_version}, {kept['provenance']['commit']}"
    for row in mine:
        note = "; ".join(filter(None, (mark, row["note"], reason)))
        yield Row(row["name"], float(row["ratio"]), note=note)


@measurement("peers/sign", f"starts with W = -S S^T that smooth, of 20 (runs code with {OPTION})")
def sign() -> list[Row]:
    """Shares of the gradient flow's untrained runs that lose e^5 of HFC/LFC over 64 tied layers."""
    data, name = real_inputs(), "gradient flow at its own start"
    reason = not_run([FLOW], data)
    if reason is not None or data is None:
        return list(recorded(name, reason))
    parts = load(FLOW, data).parts
    rows = []
    for words, direction, bounded in (
        ("W = -S S^T", -1, False),
        ("W = S S^T", 1, False),
        ("W = -S S^T over its norm", -1, True),
    ):
        runs = precursor_sign.runs(parts, direction, bounded, range(20))
        share = runs.smoothed() / 20
        low, high = share_interval(share, 20)
        note = (
            f"{runs.smoothed()} of 20 lose e^5 of HFC/LFC in 64 layers, share {low:.2f} to "
            f"{high:.2f} (95 %); largest |h| {runs.largest.min():.2f} to {runs.largest.max():.2f}"
        )
        rows.append(Row(f"peers: {name}, {words}, smoothed", share, note=note))
    return rows


@measurement("peers/random walk", "the published test of Oversmoothing.jl, anew; takes minutes")
def random_walk() -> list[Row]:
    """Its `test/depth.jl`, with as many graphs: theory against regression, relative 2-norm."""
    blocks, rng = Blocks(), np.random.default_rng(0)
    theory = np.mean(
        [[accuracy_in_theory(blocks, depth, 10, rng) for depth in range(6)] for _ in range(10)],
        axis=0,
    )
    guessed = np.mean(
        [accuracy_of_regression(blocks, range(6), 100, rng) for _ in range(10)], axis=0
    )
    apart = np.linalg.norm(theory - guessed) / max(map(np.linalg.norm, (theory, guessed)))
    measured, predicted = rates(blocks, rng, (1000, 2000))
    series = (f"{name} {' '.join(f'{x:.3f}' for x in values)}"
              for name, values in (("theory", theory), ("regression", guessed)))  # fmt: skip
    return [
        Row("peers: random walk, accuracy in theory against regression", float(apart),
            note=f"depths 0 to 5: {'; '.join(series)}; no Julia is run", at_most=0.01),
        Row("peers: random walk, HFC/LFC a layer against |lambda_2|",
            abs(measured / predicted - 1),
            note=f"log HFC/LFC falls by {-measured:.4f} a layer", at_most=1e-6),
    ]  # fmt: skip


@measurement("peers/mixings", "products of doubly stochastic mixings tend to uniform, as published")
def mixings() -> list[Row]:
    """43 layers of 4 streams, as in the abstract; drawn mixings, not its trained ones."""
    apart, bound = from_uniform(4, 43, 1000, np.random.default_rng(0))
    worst = apart.max(axis=1)
    first = 1 + int((worst <= 0.01).argmax())
    note = f"worst of 1,000 drawn products; within .01 from layer {first} on"
    return [
        Row("peers: mixings, largest |entry - 1/4| after 43 layers", float(worst[-1]), note=note,
            at_most=0.01),
        # What the product itself is rounded by stands beside the bound.
        Row("peers: mixings, over the product of second singular values",
            float((apart / (bound + 1e-15)).max()), at_most=1.0),
    ]  # fmt: skip
