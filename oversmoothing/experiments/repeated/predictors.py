"""Where HFC/LFC of a loop will end, predicted before looping its tokens: several ways, and cost.

local law      nearly equal tokens: T12's exponent at the consensus that the block's own path of
               equal tokens reaches, from the start's HFC/LFC
spectral gap   the paper's: T log(rho_Q/rho_C) of the image's own mean attention and the whole H
few tokens k   k of the tokens, evenly spaced, looped among themselves by the model's own block:
               their change of log HFC/LFC (no use where positions enter within the block)
first loops    the slope of the first loops over log loops, carried on: not before looping, but
               what a forecast costs that looks at a few of them

Which predictor, and how well: chosen on half of the blocks and inputs, scored once on the rest.

`looped` runs the blocks and `outcomes` says what became of it: collapse, a power, rest at clusters,
a cycle, or motion. Attention is recomputed at every loop by the model's own code: the paper's
regime, tied weights, with norms and FFN. With recall X <- f(X) + B X_0.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oversmoothing.experiments import intervals
from oversmoothing.experiments.inspection.states import ALONE, clusters
from oversmoothing.experiments.ladder.recording import log_energies, log_ratio
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.repeated.blocks import BlockMap, check_consensus
from oversmoothing.experiments.repeated.growth import loop_laws
from oversmoothing.theory.at_consensus import LoopLaw
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


@torch.no_grad()
def looped(
    blocks: Sequence[BlockMap], X: Tensor, loops: int, recall: float = 0.0,
    start: Tensor | None = None,
) -> Looped:  # fmt: skip
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
    loops = len(run.logs) - 1
    slopes = (run.logs[-1] - run.logs[loops // 2]) / math.log(loops / (loops // 2))
    for k, slope in enumerate(slopes):
        X = run.tail[-1][k]
        labels = clusters(X)
        record = {
            "end": math.exp(run.logs[-1, k]),
            "slope": float(slope),
            "turned": _apart(X, run.middle[k]),
            "period": _period([each[k] for each in run.tail]),
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
    """The least number of loops after which the direction is back; 1 where it does not turn."""
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


LOCAL, GAP, EARLY = "local law (T12)", "spectral gap (paper)", "first loops, carried on"
FEW = (4, 8, 16)
LOOKED_AT = 8
# What columns of the tables of `loop` and, of recall, of its `runs` are.
MEANS = {
    "by_group": {
        "exponent": "of HFC/LFC over loops by the local law near equal tokens, if settled",
        "law's end": "by that law from the same start",
        "slope": "of ln HFC/LFC over ln loops in the last doubling of the loops",
        "clusters": "of tokens with cosine 0.95 at the end",
        "loops to .2": "to HFC/LFC of 0.2 as run: inf where half of the inputs never do",
        "by the law": "the loops to 0.2 by that law, beyond those that were run too",
    },
    "scores": {
        "agree": "share of runs in which it is right on collapse; _low, _high: its 95 % interval",
        "rank": "rank correlation with HFC/LFC at the end",
        "error": "median of |ln HFC/LFC predicted - measured|",
        "base": "what always guessing the more common outcome has of agree",
    },
    "recall": {
        "moved": "by the last loop, of the stream's length",
        "growth": "of ln of that length over ln loops in the last half: 1 is linear",
        "apart": "largest distance of the ends of three starts, of the stream's length",
        "radius": "of the derivative at the end, estimated: below 1 the fixed point attracts",
    },
}


def of_group(
    model: Model, blocks: Sequence[BlockMap], X: Tensor, gap: Tensor, loops: int
) -> tuple[list[dict[str, Any]], dict[str, Any], Array]:
    """(a row an input, log HFC/LFC that is predicted at the end by name [b], curves)."""
    at = X
    for f in blocks:
        check_consensus(f, at)
        at = f(at)
    n, starts = X.shape[1], log_ratio(X).numpy()
    laws = loop_laws(blocks, X.mean(1), n, loops)
    own = [from_law(*each, loops) for each in zip(laws, starts, strict=True)]
    predicted: dict[str, Any] = {LOCAL: np.array(own)}
    # Of images, whose blocks know no positions; those of texts may.
    if model.modality == "vision" and not any(f.given_as_long_as(n) for f in blocks):
        few = {k: token_predictions(blocks, X, k, loops) for k in FEW if k < n}
        predicted |= {f"few tokens, {k}": each for k, each in few.items()}
    run = looped(blocks, X, loops)
    predicted[GAP] = run.logs[0] + loops * gap.numpy()
    early, seen = run.logs[LOOKED_AT // 2], run.logs[LOOKED_AT]
    predicted[EARLY] = seen + (seen - early) / np.log(2) * np.log(loops / LOOKED_AT)
    said = ("exponent", "rate", "attracts", "power", "turning", "settled")
    rows = [
        {"start": start, **outcome, **{name: getattr(law, name) for name in said},
         "by the law": law.loops_to(start, COLLAPSED)}
        for start, outcome, law in zip(np.exp(run.logs[0]).tolist(), outcomes(run), laws,
                                       strict=True)
    ]  # fmt: skip
    return rows, predicted, run.logs


def from_law(law: LoopLaw, start: float, loops: int) -> float:
    """log HFC/LFC after `loops` rounds from `start`, by the law near consensus."""
    if not law.polynomial:
        return start + loops * law.rate
    # |c_t| ~ c (t + t_0), with t_0 as in LoopLaw.loops_to.
    before = max(1.0, 1 / law.along - law.loops)
    return start + law.exponent * float(np.log1p(loops / before))


def token_predictions(blocks: Sequence[BlockMap], X: Tensor, number: int, loops: int) -> Array:
    """log HFC/LFC [b] at the end by `number` tokens looped alone."""
    n = X.shape[1]
    chosen = torch.linspace(0, n - 1, number).round().long()
    few = looped(blocks, X[:, chosen].contiguous(), loops).logs
    return np.asarray(log_ratio(X).numpy() + few[-1] - few[0])


LINE = float(np.log(COLLAPSED))


@dataclass(frozen=True)
class LoopScore:
    """agree: the share of pairs (block, input) predicted on the side of the line of collapse where
    the measured HFC/LFC lies; rank: Spearman's correlation over all pairs (NaN for a constant);
    error: median |log HFC/LFC predicted - measured|; base: the agreement of the more common outcome
    said of every pair; pairs, blocks, inputs: how many. Intervals: 95 %, of a bootstrap that draws
    blocks and inputs again, crossed; NaN below FEWEST of either."""

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
        return intervals.in_words(low, high, number, form, of)


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
        for _ in range(intervals.RESAMPLES if fewer >= intervals.FEWEST else 0)
    ]
    agrees = np.array([_agree(measured[k], predicted[k]) for k in drawn])
    ranks = np.array([intervals.rank_correlation(measured[k], predicted[k]) for k in drawn])
    agree = _agree(measured, predicted)
    below = float((measured <= LINE).mean())
    return LoopScore(
        agree, *intervals.resampled_share(agree, agrees, fewer),
        intervals.rank_correlation(measured, predicted), *intervals.percentiles(ranks, fewer),
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
    Raises `InputError` for fewer than 2 blocks or 2 inputs."""
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
