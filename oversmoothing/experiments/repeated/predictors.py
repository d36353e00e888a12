"""Where HFC/LFC of a loop will end, predicted before looping its tokens: several ways, and cost.

local law      nearly equal tokens: T12's exponent at the consensus that the block's own path of
               equal tokens reaches, from the start's HFC/LFC
spectral gap   the paper's: T log(rho_Q/rho_C) of the image's own mean attention and the whole H
few tokens k   k of the tokens, evenly spaced, looped among themselves by the model's own block:
               their change of log HFC/LFC (no use where positions enter within the block)
first loops    the slope of the first loops over log loops, carried on: not before looping, but
               what a forecast costs that looks at a few of them

Which predictor, and how well: chosen on half of the blocks and inputs, scored once on the rest.

Sign agreement: the share of pairs (block, input) for which the predicted HFC/LFC at the end lies on
the same side of the line of collapse as the measured one. Intervals: 95 %, a bootstrap over blocks
and over inputs, which are crossed; NaN below FEWEST inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oversmoothing.experiments.intervals import (
    FEWEST,
    RESAMPLES,
    in_words,
    percentiles,
    rank_correlation,
    resampled_share,
)
from oversmoothing.experiments.ladder.recording import log_ratio
from oversmoothing.experiments.repeated.blocks import BlockMap
from oversmoothing.experiments.repeated.consensus import loop_laws
from oversmoothing.experiments.repeated.outcomes import COLLAPSED, looped
from oversmoothing.theory.at_consensus import LoopLaw
from oversmoothing.theory.support.errors import InputError
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
    blocks: Sequence[BlockMap], X: Tensor, loops: int
) -> tuple[Array, list[LoopLaw]]:
    """log HFC/LFC [b] at the end by the local law of each input, and the laws."""
    starts = log_ratio(X).numpy()
    laws = loop_laws(blocks, X.mean(1), X.shape[1], loops)
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


LINE = float(np.log(COLLAPSED))


@dataclass(frozen=True)
class LoopScore:
    """agree: sign agreement; rank: Spearman's correlation over all pairs (NaN for a constant);
    error: median |log HFC/LFC predicted - measured|; base: the agreement of the more common outcome
    said of every pair; pairs, blocks, inputs: how many. Blocks and inputs are both drawn again, so
    that an interval takes FEWEST of either."""

    agree: float
    agree_low: float
    agree_high: float
    rank: float
    rank_low: float
    rank_high: float
    error: float
    base: float
    pairs: int
    blocks: int
    inputs: int

    def ends(self, low: float, high: float, form: Callable[[float], str]) -> str:
        """An interval in words, with the number of groups of blocks or inputs, the smaller."""
        number, of = min((self.blocks, "group"), (self.inputs, "input"))
        return in_words(low, high, number, form, of)


def score_loops(measured: Array, predicted: Array, seed: int = 0) -> LoopScore:
    """Of log HFC/LFC [blocks, inputs], measured and predicted."""
    if measured.shape != predicted.shape or measured.size == 0:
        raise InputError(
            f"predictions {predicted.shape} for measurements {measured.shape}: both must be "
            "[blocks, inputs]"
        )
    random = np.random.default_rng(seed)
    blocks, inputs = measured.shape
    fewer = min(blocks, inputs)
    drawn = [
        np.ix_(random.integers(blocks, size=blocks), random.integers(inputs, size=inputs))
        for _ in range(RESAMPLES if fewer >= FEWEST else 0)
    ]
    agrees = np.array([_agree(measured[k], predicted[k]) for k in drawn])
    ranks = np.array([rank_correlation(measured[k], predicted[k]) for k in drawn])
    agree = _agree(measured, predicted)
    below = float((measured <= LINE).mean())
    return LoopScore(
        agree, *resampled_share(agree, agrees, fewer),
        rank_correlation(measured, predicted), *percentiles(ranks, fewer),
        float(np.median(np.abs(measured - predicted))), max(below, 1 - below),
        measured.size, blocks, inputs,
    )  # fmt: skip


def halves(number: int, random: np.random.Generator) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Two halves of range(number) by chance, each in order; the first is the smaller."""
    order = random.permutation(number)
    return np.sort(order[: number // 2]), np.sort(order[number // 2 :])


@dataclass(frozen=True)
class Chosen:
    """The predictor with the best agreement on the choosing half (ties: the better rank, then the
    order given), its scores there, and its one score on the other blocks and inputs."""

    name: str
    on_choice: dict[str, LoopScore]
    score: LoopScore
    blocks: tuple[list[int], list[int]]
    inputs: tuple[list[int], list[int]]


def choose(measured: Array, predicted: dict[str, Array], seed: int = 0) -> Chosen:
    """Choose among predictions [blocks, inputs] on half of both, score on the other half of both.

    Raises `InputError` for fewer than 2 blocks or 2 inputs.
    """
    blocks, inputs = measured.shape
    if blocks < 2 or inputs < 2:
        raise InputError(
            f"{blocks} blocks and {inputs} inputs: choosing a predictor on one half and scoring it "
            "on the other takes at least 2 of each"
        )
    random = np.random.default_rng(seed)
    first, second = halves(blocks, random), halves(inputs, random)
    here, there = np.ix_(first[0], second[0]), np.ix_(first[1], second[1])
    known = {name: score_loops(measured[here], p[here], seed) for name, p in predicted.items()}
    best = max(known, key=lambda name: (known[name].agree, np.nan_to_num(known[name].rank, nan=-1)))
    final = score_loops(measured[there], predicted[best][there], seed)
    return Chosen(
        best, known, final,
        (first[0].tolist(), first[1].tolist()), (second[0].tolist(), second[1].tolist()),
    )  # fmt: skip


def _agree(measured: Array, predicted: Array) -> float:
    return float(((measured <= LINE) == (predicted <= LINE)).mean())
