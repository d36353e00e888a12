"""What a certified spectrum costs, as ratios measured in one process, variants interleaved.

n = 197 is the attention of a ViT on 224 x 224 images, d = 768 its width, r = 64 a head. One
thread, so that the two sides compare.
"""

from collections.abc import Callable
from fractions import Fraction

import flint
import numpy as np

from benchmarks.benchmark import Measurement, Row, measurement
from oversmoothing.experiments.intervals import interleaved_medians
from oversmoothing.theory.layer.attention import quotient, softmax_balls, softmax_within
from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.spectra.blocks import BITS, enclose_in_balls
from oversmoothing.theory.spectra.layer_discs import (
    attention_discs,
    attention_discs_all,
    head_discs,
    value_discs,
)
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.stages import float_stage

Pair = tuple[Callable[[], object], Callable[[], object]]


def _attention(rng: np.random.Generator, *shape: int) -> Array:
    weights = np.exp(rng.standard_normal(shape))
    A: Array = weights / weights.sum(axis=-1, keepdims=True)
    return A


def ratio(
    name: str, summary: str, row: str, note: str, at_most: float | None = None, repeats: int = 5
) -> Callable[[Callable[[], Pair]], Measurement]:
    """Declare the decorated function, () -> (ours, theirs), a measurement of one row."""

    def declare(pair: Callable[[], Pair]) -> Measurement:
        return measurement(name, summary)(lambda: [_row(row, pair(), note, at_most, repeats)])

    return declare


def _row(name: str, pair: Pair, note: str, at_most: float | None, repeats: int) -> Row:
    ours, theirs = interleaved_medians(pair, repeats)
    seconds = {"ours": ours, "yardstick": theirs}
    return Row(name, ours / theirs, seconds, note, at_most=at_most)


@ratio("certificates/small n=20", "a certified verdict on a small case",
       "certified verdict n=20, d=16 / eigvals", "meant to stay under 0.1 s")  # fmt: skip
def small() -> Pair:
    rng = np.random.default_rng(0)
    A, H = _attention(rng, 20, 20), 0.3 * rng.standard_normal((16, 16))
    return (
        lambda: float_stage(Layer.of(A, H)),
        lambda: (np.linalg.eigvals(quotient(A)), np.linalg.eigvals(H)),
    )


@ratio("certificates/attention n=197", "spec(A) with proof", "spec(A) certified n=197 / eigvals",
       "softmax of Gaussian logits", at_most=4.0)  # fmt: skip
def spectrum_of_attention() -> Pair:
    A = _attention(np.random.default_rng(1), 197, 197)
    B = quotient(A)
    return lambda: attention_discs(A), lambda: np.linalg.eigvals(B)


@ratio("certificates/value d=768", "spec(H) with proof", "spec(H) certified d=768 / eigvals",
       "dense Gaussian H", at_most=4.0, repeats=3)  # fmt: skip
def spectrum_of_value() -> Pair:
    H = np.random.default_rng(2).standard_normal((768, 768)) * 768**-0.5
    return lambda: value_discs(H), lambda: np.linalg.eigvals(H)


@ratio("certificates/head r=64", "a head through its core",
       "head r=64 by its core / spec(A) certified", "n=197, d=768", at_most=1.0)  # fmt: skip
def head() -> Pair:
    rng = np.random.default_rng(3)
    A = _attention(rng, 197, 197)
    W_V, W_proj = rng.standard_normal((768, 64)) / 28, rng.standard_normal((64, 768)) / 8
    return lambda: head_discs(W_V, W_proj), lambda: attention_discs(A)


@ratio("certificates/balls n=197", "balls where floats do not suffice",
       "balls, first step of n=197 / float64 discs",
       "128 bits; each refinement costs about as much again", repeats=1)  # fmt: skip
def balls() -> Pair:
    A = _attention(np.random.default_rng(4), 197, 197)
    with at_precision(BITS):
        B = flint.acb_mat(flint.arb_mat((A[:-1, :-1] - A[-1:, :-1]).tolist()))
    return lambda: next(enclose_in_balls(B)), lambda: attention_discs(A)


@ratio("certificates/softmax n=197", "attention from logits",
       "softmax enclosed in float64 / in balls", "n=197", repeats=3)  # fmt: skip
def softmax() -> Pair:
    logits = np.random.default_rng(5).standard_normal((197, 197))
    exact = [[Fraction(x) for x in row] for row in logits.tolist()]
    return lambda: softmax_within(logits), lambda: softmax_balls(exact, 128)


@measurement("certificates/batch of 32", "many attentions at once")
def batch() -> list[Row]:
    rng = np.random.default_rng(6)

    def pair(n: int) -> Pair:
        A = _attention(rng, 32, n, n)
        return lambda: attention_discs_all(A), lambda: [attention_discs(each) for each in A]

    return [
        _row(f"32 attentions at once n={n} / one at a time", pair(n), "the same discs", None, 3)
        for n in (8, 20, 65, 197)
    ]
