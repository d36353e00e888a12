"""A block, or several in turn, applied again and again to the streams of a batch.

Attention is recomputed at every loop by the model's own code: the paper's regime, tied weights,
with norms and FFN. With recall X <- f(X) + B X_0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from oversmoothing.experiments.ladder.recording import log_energies
from oversmoothing.experiments.stability.block_maps import BlockMap
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
        found: Array = (self.logs[-1] - self.logs[self.loops // 2]) / _octave(self.loops)
        return found


def _octave(loops: int) -> float:
    return float(torch.log(torch.tensor(loops / (loops // 2), dtype=torch.float64)))


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
    found = torch.stack(energies)
    if not bool(torch.isfinite(found[-1]).all()):
        bad = int((~torch.isfinite(found).all(-1).all(-1)).nonzero()[0])
        raise InputError(
            f"loop {bad} of layer {blocks[0].number} gives numbers that are not finite, or equal "
            "tokens: take fewer loops, or float64"
        )
    logs = (found[..., 0] - found[..., 1]).cpu().numpy()
    lengths = torch.logsumexp(2 * found, dim=-1).cpu().numpy() / 2
    return Looped(logs, lengths, middle, tuple(tail))
