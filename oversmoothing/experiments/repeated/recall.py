"""Loops with recall, X <- f(X) + B X_0: is there a fixed point, is it one, do tokens differ there?

A fixed point is said to be found where the last loop moved the stream by less than MOVED of its
length; it is one as far as three starts tell (the stream itself, its mean for every token, the
stream of another input or a shuffled one); it attracts where the derivative of the loop there has
spectral radius < 1, estimated by its powers on a drawn direction. Observations: T12 proves such
things for one linear layer alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from oversmoothing.experiments.inspection.extract import batches, check_inputs, count, prepared
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.repeated.blocks import (
    BlockMap,
    at_consensus,
    jvp,
    plain_attention,
    recorded,
)
from oversmoothing.experiments.repeated.loop import BATCH, LOOPS, Group, check_groups, own_blocks
from oversmoothing.experiments.repeated.loop_result import label
from oversmoothing.experiments.repeated.outcomes import looped
from oversmoothing.experiments.threads import one_thread
from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured
from oversmoothing.simulations.progress import Bar
from oversmoothing.theory.support.errors import InputError, whole_number

# Of the stream's length: what a loop at a fixed point still moves, and how near two ends are one.
MOVED = 1e-4
SAME = 1e-2
POWERS = 30


@one_thread()
def recalled(
    model: Model,
    inputs: Iterable[Any],
    recall: float,
    *,
    groups: Sequence[Group] | None = None,
    loops: int = LOOPS,
    seed: int = 0,
) -> Result:
    """The table `runs`, one row a group and input: moved (by the last loop, relative), growth (log
    of ||X|| over the last half, in log 2: 1 is linear), apart (the largest relative distance of the
    three ends), start and end (HFC/LFC), radius (of the derivative at the end, NaN where there is
    no fixed point), outcome. Raises `InputError` for recall that is 0 or not finite, and as `loop`.
    """
    if not math.isfinite(recall) or recall == 0:
        raise InputError(f"recall is {recall}: give a finite number other than 0")
    whole_number("loops", loops, 20)
    check_inputs(inputs)
    chosen = own_blocks(model) if groups is None else list(groups)
    check_groups(model, chosen)
    generator = torch.Generator().manual_seed(seed)
    rows: list[dict[str, Any]] = []
    seen = 0
    size = 1 if model.modality == "text" else BATCH
    shown = Bar(len(chosen) * ceil((count(inputs) or 1) / size), "block")
    for one in batches(inputs, size):
        run = recorded(model, prepared(model, one))
        with torch.no_grad(), plain_attention(model.module):
            for group in chosen:
                blocks = [run.blocks[number - 1] for number in group]
                X = run.states[group[0] - 1]
                for k, row in enumerate(_rows(blocks, X, recall, loops, generator)):
                    rows.append({"blocks": label(group), "input": seen + k} | row)
                shown.update()
        seen += len(run.states[0])
    shown.close()
    if not rows:
        raise InputError("there are no inputs: give at least one image or text")
    table = pd.DataFrame(rows)
    return Result(
        "recall",
        f"{model.name}: blocks looped {loops} times with recall {recall:g}",
        {"runs": Table(table, dict.fromkeys(("start", "end"), "HFC/LFC"))},
        [Sentence(_words(table, recall), measured(seen))],
        {"model": model.name, "recall": recall, "loops": loops, "seed": seed},
    )


def _words(table: pd.DataFrame, recall: float) -> str:
    """What became of the runs, and how tokens differ where there is a fixed point."""
    counts = table["outcome"].value_counts()
    listed = ", ".join(f"{name} {count}" for name, count in counts.items())
    fixed = table[table["outcome"].str.startswith("one fixed point")]
    more = ""
    if len(fixed):
        ratio = float(np.exp(np.log(fixed["end"] / fixed["start"]).mean()))
        more = (
            f" At the fixed points HFC/LFC is {ratio:.2g} times that of X_0 (geometric mean), and "
            f"the derivative's radius at most {fixed['radius'].max():.3f}."
        )
    return f"X <- f(X) + {recall:g} X_0 in {len(table)} runs: {listed}.{more}"


def _rows(
    blocks: list[BlockMap], X: Tensor, recall: float, loops: int, generator: torch.Generator
) -> list[dict[str, Any]]:
    shuffled = X[:, torch.randperm(X.shape[1], generator=generator)]
    other = X.roll(1, 0) if len(X) > 1 else shuffled
    runs = [looped(blocks, X, loops, recall, start) for start in (X, at_consensus(X), other)]
    ends = [run.tail[-1] for run in runs]
    size = _lengths(ends[0])
    moved = torch.stack([_lengths(r.tail[-1] - r.tail[-2]) / _lengths(r.tail[-1]) for r in runs])
    apart = torch.stack([_lengths(each - ends[0]) / size for each in ends[1:]]).amax(0)
    lengths = runs[0].lengths
    growth = (lengths[-1] - lengths[loops // 2]) / math.log(loops / (loops // 2))
    radius = _radius(blocks, ends[0], generator)
    rows = []
    for k in range(len(X)):
        still, far = float(moved[:, k].max()), float(apart[k])
        fixed = still <= MOVED
        rows.append(
            {
                "start": float(np.exp(runs[0].logs[0, k])),
                "end": float(np.exp(runs[0].logs[-1, k])),
                "moved": still,
                "growth": float(growth[k]),
                "apart": far,
                "radius": float(radius[k]) if fixed else math.nan,
                "outcome": _outcome(fixed, far, float(growth[k])),
            }
        )
    return rows


def _outcome(fixed: bool, apart: float, growth: float) -> str:
    if fixed:
        return "one fixed point from three starts" if apart <= SAME else "several fixed points"
    return "none: the stream grows" if growth > 0.5 else "none reached"


def _radius(blocks: list[BlockMap], X: Tensor, generator: torch.Generator) -> Tensor:
    """The growth of a drawn direction under the derivative at X, over the last half of POWERS."""
    D = torch.randn(X.shape, generator=generator, dtype=X.dtype)
    logs = []
    for _ in range(POWERS):
        at = X
        for f in blocks:
            D, at = jvp(f, at, D), f(at)
        size = _lengths(D)
        logs.append(size.log())
        D = D / size[:, None, None]
    return torch.stack(logs[POWERS // 2 :]).mean(0).exp()


def _lengths(X: Tensor) -> Tensor:
    size: Tensor = torch.linalg.vector_norm(X.double(), dim=(1, 2)).to(X.dtype)
    return size
