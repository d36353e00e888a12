"""Spectra at scale: verdicts of 14,400 attention matrices against numpy's eigenvalues of them.

12 layers x 12 heads x 100 images of 197 tokens, each matrix against its own head of rank 64 in
d = 768 (ViT-B/16). The logits of layer l have standard deviation 1/2, 1, 2 or 4 in turn. The
default is a stratified tenth, 10 images of each of the 144 heads; OVERSMOOTHING_BENCH_FULL=1 runs
all. Both sides alternate head by head in one process. `numpy.linalg.eigvals` in float64 runs on
all matrices with one BLAS thread, and on one image of each head with its default threads, which
are slower at this size, many times so on a busy machine.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.benchmark import FULL, Row, measurement
from benchmarks.timing import timed
from oversmoothing.experiments.intervals import interleaved_medians
from oversmoothing.simulations.generators.attention import Softmax
from oversmoothing.simulations.generators.value_projection import LowRank
from oversmoothing.simulations.spectra.head_values import HeadValues, head_values, spectral_verdicts
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.formulas import Outcome, dominance, outcome_of
from oversmoothing.theory.verdict.verdict import heads_verdict

LAYERS, HEADS, IMAGES = 12, 12, 100
TOKENS, WIDTH, RANK = 197, 768, 64
LOGIT_STD = (0.5, 1.0, 2.0, 4.0)

# Attention [m, n, n] float32, heads, and which of them is whose, [m].
Batch = tuple[NDArray[np.float32], list[HeadValues], NDArray[np.intp]]


def cases(images: int, layers: int = LAYERS, heads: int = HEADS) -> Iterator[Batch]:
    """[images, n, n] for each of the layers x heads, from seed 0."""
    rng = np.random.default_rng(0)
    for layer in range(layers):
        temperature = 1 / LOGIT_STD[layer % len(LOGIT_STD)]
        for _ in range(heads):
            head = head_values(*LowRank(rank=RANK).factors(WIDTH, rng=rng))
            kind = Softmax(temperature=float(temperature), dim=RANK)
            A = kind.draw(TOKENS, rng=rng, batch=(images,))
            yield A.astype(np.float32), [head], np.zeros(images, dtype=np.intp)


def plain_verdict(values: NDArray[np.complexfloating], head: HeadValues) -> Outcome:
    """The verdict from all eigenvalues of A [n] and all pairs; the eigenvalue next to 1 is 1."""
    rest = np.delete(values, np.argmin(np.abs(values - 1)))
    margin = dominance(rest, head.discs.centres).margin
    return outcome_of(margin, margin)


def fallback(answers: Any) -> float:
    """The share of pairs that needed LAPACK."""
    return float(np.isin(answers.method, ("lapack", "discs")).mean())


def said(answers: Any) -> str:
    """How many came out as what, and by which step."""
    names, counts = np.unique(answers.verdict, return_counts=True)
    outcomes = ", ".join(f"{c} {v}" for v, c in zip(names, counts, strict=True))
    steps = ", ".join(
        f"{100 * float((answers.method == step).mean()):.1f} % {step}"
        for step in ("powers", "lapack", "discs")
    )
    return f"{answers.verdict.size} pairs: {outcomes}; decided by {steps}"


@dataclass(frozen=True)
class Comparison:
    """Seconds of numpy.linalg.eigvals (default threads, one thread) and of our verdicts on the same
    matrices; what we found, and the verdicts from all pairs of numpy's eigenvalues."""

    naive: float
    single: float
    ours: float
    answers: Any
    plain: NDArray[np.str_]

    def rows(self, name: str, naive: str, note: str, at_least: float | None = None) -> list[Row]:
        """Both ratios of times; naive: on what the default threads were timed."""
        return [
            Row(f"{name}eigvals ({threads}) over verdicts", theirs / self.ours,
                {"numpy.linalg.eigvals": theirs, "verdicts": self.ours}, words, at_least=at_least)
            for threads, theirs, words in (
                ("default threads", self.naive, f"eigvals: {naive}"),
                ("one thread", self.single, f"{note}{said(self.answers)}"),
            )
        ]  # fmt: skip


def compared(batches: Iterable[Batch], sample: int) -> Comparison:
    """Both sides on each batch in turn; numpy's default threads on `sample` of its matrices."""
    naive = single = ours = 0.0
    answers = []
    plain: list[Outcome] = []
    for A, heads, index in batches:
        double = A.astype(np.float64)
        double /= double.sum(axis=-1, keepdims=True)
        if not answers:  # what loads on first use is loaded
            np.linalg.eigvals(double[:1])
            spectral_verdicts(A[:2], heads, index[:2])
        naive += len(A) / sample * timed(partial(np.linalg.eigvals, double[:sample]))[0]
        with threadpool_limits(limits=1):
            seconds, values = timed(partial(np.linalg.eigvals, double))
        single += seconds
        seconds, answer = timed(partial(spectral_verdicts, A, heads, index))
        ours += seconds
        answers.append(answer)
        plain += [plain_verdict(each, heads[k]) for each, k in zip(values, index, strict=True)]
    joined = np.concatenate(answers).view(np.recarray)
    return Comparison(naive, single, ours, joined, np.array(plain))


@measurement(
    "spectra/verdicts",
    "14,400 (or a tenth) attention spectra and verdicts against numpy.linalg.eigvals",
    pinned=False,
)
def spectra() -> list[Row]:
    """The rows; about half a minute on two idle cores, four minutes for all 14,400."""
    images = IMAGES if os.environ.get(FULL) else IMAGES // 10
    both = compared(cases(images), 1)
    note = (
        f"{TOKENS} tokens, {LAYERS * HEADS} heads of rank {RANK}, logit std "
        f"{', '.join(map(str, LOGIT_STD))}; LAPACK needed for "
        f"{100 * fallback(both.answers):.1f} %; "
    )
    naive = f"{images} times the seconds for one image of each head"
    return [
        *both.rows("spectra/", naive, note, at_least=5.0),
        Row("spectra/share of equal verdicts", float((both.answers.verdict == both.plain).mean()),
            note="every verdict against all pairs of numpy's eigenvalues", at_least=1.0),
    ]  # fmt: skip


HeadsLayer = tuple[Array, tuple[Array, Array]]


def beside_eigvals(
    name: str, of: Callable[[list[float]], float], layers: Sequence[HeadsLayer], at_most: float
) -> list[Row]:
    """Processor time of the verdict on all heads of each layer, A [heads, n, n] and their factors,
    over that of the eigenvalues of a d x d matrix, `of` all layers; and how many are UNDECIDED."""
    seen, left = [], 0
    for A, W in layers:
        H = np.random.default_rng(0).standard_normal((W[0].shape[1],) * 2)
        left += heads_verdict(A=A, W=W).verdict is Outcome.UNDECIDED
        ours, theirs = interleaved_medians(
            [partial(heads_verdict, A=A, W=W), partial(np.linalg.eigvals, H)],
            3,
            clock=time.process_time,
        )
        seen.append(ours / theirs)
    note = f"{len(seen)} layers, worst {max(seen):.0f}, {left} UNDECIDED"
    return [
        Row(f"verdict on all heads / eigvals of d x d, {name}", of(seen), note=note,
            at_most=at_most),
        Row(f"verdicts on all heads that are UNDECIDED, {name}", left, at_most=0.0),
    ]  # fmt: skip


@measurement("heads/drawn", "the verdict on all heads of a drawn layer, and near a tie")
def drawn_heads() -> list[Row]:
    def drawn(n: int, d: int, heads: int, scale: float, seed: int) -> HeadsLayer:
        rng = np.random.default_rng(seed)
        A, r = np.exp(rng.standard_normal((heads, n, n))), d // heads
        V, P = rng.standard_normal((heads, d, r)), rng.standard_normal((heads, r, d))
        return A / A.sum(-1, keepdims=True), (V / d**0.5, scale / r**0.5 * P)

    shapes = [(65, 192, 3, 1.0)] * 4 + [(65, 192, 3, 0.3)] * 2 + [(101, 384, 6, 1.0)]
    # -t I beside the heads moves consensus alone: the tie is at this t.
    A, (V, P) = drawn(17, 32, 3, 0.2, 1)
    eye, tie = np.stack([np.eye(32)] * 3), 0.160618678233
    near = [
        (A, (np.concatenate([V, eye], -1), np.concatenate([P, -(tie + off) * eye / 3], 1)))
        for off in (-1e-2, -1e-4, -3e-6, 3e-6, 1e-4)
    ]
    far = [drawn(*shape, seed) for seed, shape in enumerate(shapes)]
    return [
        *beside_eigvals("drawn", median, far, 5.0),
        *beside_eigvals("near a tie", max, near, 300.0),
    ]
