"""Where HFC/LFC of a loop will end, predicted before looping its tokens: several ways, and cost.

local law      nearly equal tokens: T12's exponent at the consensus that the block's own path of
               equal tokens reaches, from the start's HFC/LFC
spectral gap   the paper's: T log(rho_Q/rho_C) of the image's own mean attention and the whole H
few tokens k   k of the tokens, evenly spaced, looped among themselves by the model's own block:
               their change of log HFC/LFC (no use where positions enter within the block)
first loops    the slope of the first loops over log loops, carried on: not before looping, but
               what a forecast costs that looks at a few of them
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.ladder.recording import log_ratio
from oversmoothing.experiments.loops.looping import looped
from oversmoothing.experiments.stability.asymptotic import loop_laws
from oversmoothing.experiments.stability.block_maps import BlockMap
from oversmoothing.theory.at_consensus import LoopLaw
from oversmoothing.theory.support.sizes import Array

LOCAL, GAP, EARLY = "local law (T12)", "spectral gap (paper)", "first loops, carried on"
FEW = (4, 8, 16)
LOOKED_AT = 8


def few_tokens(number: int) -> str:
    """The name of the predictor that loops so many tokens."""
    return f"few tokens, {number}"


def from_law(law: LoopLaw, start: float, loops: int) -> float:
    """log HFC/LFC after `loops` rounds from `start`, by the law near consensus."""
    if not law.polynomial:
        return start + loops * law.rate
    # |c_t| ~ c (t + t_0), with t_0 as in LoopLaw.loops_to.
    before = max(1.0, 1 / law.along - law.loops)
    return start + law.exponent * float(np.log1p(loops / before))


def local_predictions(
    blocks: Sequence[BlockMap], X: Tensor, causal: bool, loops: int
) -> tuple[Array, list[LoopLaw]]:
    """log HFC/LFC [b] at the end by the local law of each input, and the laws."""
    starts = log_ratio(X).numpy()
    laws = loop_laws(blocks, X.mean(1), X.shape[1], causal, loops)
    return np.array([from_law(*each, loops) for each in zip(laws, starts, strict=True)]), laws


def token_predictions(blocks: Sequence[BlockMap], X: Tensor, number: int, loops: int) -> Array:
    """log HFC/LFC [b] at the end by `number` tokens looped alone."""
    n = X.shape[1]
    chosen = torch.linspace(0, n - 1, number).round().long()
    few = looped(blocks, X[:, chosen].contiguous(), loops).logs
    predicted: Array = log_ratio(X).numpy() + few[-1] - few[0]
    return predicted


def early_predictions(logs: Array, loops: int, seen: int = LOOKED_AT) -> Array:
    """log HFC/LFC [b] at the end, from logs [seen + 1 or more, b] of the first loops."""
    slope = (logs[seen] - logs[seen // 2]) / np.log(seen / (seen // 2))
    predicted: Array = logs[seen] + slope * np.log(loops / seen)
    return predicted
