"""Blocks looped, and what became of it: collapse, a power, rest at clusters, a cycle, or motion.

Attention is recomputed at every loop by the model's own code: the paper's regime, tied weights,
with norms and FFN. With recall X <- f(X) + B X_0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from oversmoothing.experiments.inspection.states import ALONE, clusters
from oversmoothing.experiments.ladder.recording import log_energies
from oversmoothing.experiments.repeated.blocks import BlockMap
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

# Loops at the end whose streams are kept, for cycles.
TAIL = 7


@dataclass(frozen=True)
class Looped:
    """logs [loops + 1, b]: log HFC/LFC; lengths [loops + 1, b]: log ||X||; middle [b, n, d]: the
    stream at half of the loops; tail: the last TAIL of them, the last one last."""

    logs: Array
    lengths: Array
    middle: Tensor
    tail: tuple[Tensor, ...]

    @property
    def loops(self) -> int:
        return len(self.logs) - 1

    def slope(self) -> Array:
        """[b], of log HFC/LFC over log loops, from half of the loops to all."""
        octave = math.log(self.loops / (self.loops // 2))
        slopes: Array = (self.logs[-1] - self.logs[self.loops // 2]) / octave
        return slopes


@torch.no_grad()
def looped(
    blocks: Sequence[BlockMap],
    X: Tensor,
    loops: int,
    recall: float = 0.0,
    start: Tensor | None = None,
) -> Looped:
    """`loops` rounds of the blocks from the stream X [b, n, d] in front of the first of them.

    recall: B of X <- f(X) + B X_0 with X_0 = X; start: where the loop starts instead of X.
    Raises `InputError` where a loop gives numbers that are not finite.
    """
    state = X if start is None else start
    energies = [log_energies(state)]
    tail: list[Tensor] = []
    middle = state
    for number in range(1, loops + 1):
        for f in blocks:
            state = f(state)
        if recall:
            state = state + recall * X
        energies.append(log_energies(state))
        if number == loops // 2:
            middle = state
        if number > loops - TAIL:
            tail.append(state)
    both = torch.stack(energies)
    if not bool(torch.isfinite(both[-1]).all()):
        bad = int((~torch.isfinite(both).all(-1).all(-1)).nonzero()[0])
        raise InputError(
            f"loop {bad} of layer {blocks[0].number} gives numbers that are not finite, or equal "
            "tokens: take fewer loops, or float64"
        )
    logs = (both[..., 0] - both[..., 1]).cpu().numpy()
    lengths = torch.logsumexp(2 * both, dim=-1).cpu().numpy() / 2
    return Looped(logs, lengths, middle, tuple(tail))


# HFC/LFC below which tokens are said to have collapsed, and the other conventions of the words.
COLLAPSED = 0.2
FALLING = -0.1
# Of the direction of the stream over the last octave: rest, and too much for a power of anything;
# and what a cycle comes back to.
RESTS, WANDERS = 0.1, 0.5
RETURNS = 0.2


def outcomes(run: Looped) -> list[dict[str, Any]]:
    """One record an input: end (HFC/LFC), slope (over the last octave of loops), turned (distance
    of the directions X/||X|| at half of the loops and at the end), period (of a cycle, else 1),
    clusters (of two tokens or more with cosine .95), largest (share of the largest of them), kind.
    """
    records = []
    for k, slope in enumerate(run.slope()):
        end = math.exp(run.logs[-1, k])
        X = run.tail[-1][k]
        labels = clusters(X)
        turned = _apart(X, run.middle[k])
        period = _period([each[k] for each in run.tail])
        record = {
            "end": end,
            "slope": float(slope),
            "turned": turned,
            "period": period,
            "clusters": int(labels.max() + 1) if (labels != ALONE).any() else 0,
            "largest": float((labels == 0).mean()) if (labels != ALONE).any() else 1 / len(labels),
        }
        records.append(record | {"kind": _kind(record)})
    return records


def _kind(record: dict[str, Any]) -> str:
    if record["end"] <= COLLAPSED:
        return "collapsed"
    if record["period"] > 1:
        return "a cycle"
    if record["slope"] <= FALLING and record["turned"] <= WANDERS:
        return "falling as a power"
    return "at rest elsewhere" if record["turned"] <= RESTS else "still moving"


def _period(tail: list[Tensor]) -> int:
    """The least number of loops after which the direction is back, of what it moves in one; 1
    where it does not turn to and fro."""
    last = tail[-1]
    away = [_apart(last, each) for each in reversed(tail[:-1])]
    floor = 32 * torch.finfo(last.dtype).eps
    if not away or away[0] <= floor:
        return 1
    back = [p for p, far in enumerate(away, 1) if p > 1 and far <= RETURNS * away[0]]
    return back[0] if back else 1


def _apart(X: Tensor, Y: Tensor) -> float:
    """||X/||X|| - Y/||Y|| ||."""
    X, Y = (each.double() / torch.linalg.vector_norm(each.double()) for each in (X, Y))
    return float(torch.linalg.vector_norm(X - Y))
