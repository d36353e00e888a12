"""What a certified spectrum costs, as ratios measured in one process, variants interleaved.

n = 197 is the attention of a ViT on 224 x 224 images, d = 768 its width, r = 64 a head. One
thread, so that the two sides compare.
"""

from collections.abc import Callable

import flint
import numpy as np

from oversmoothing.experiments.bench.benchmark import Row, interleaved_medians, measurement
from oversmoothing.theory.certificates.ball_spectra import BITS, enclose_in_balls
from oversmoothing.theory.certificates.certified_radii import (
    attention_discs,
    attention_discs_all,
    certified_dominance,
    head_discs,
    value_discs,
)
from oversmoothing.theory.certificates.softmax import softmax_enclosure, softmax_in_floats
from oversmoothing.theory.layer.quotient import quotient
from oversmoothing.theory.numbers.balls import at_precision
from oversmoothing.theory.support.arrays import Array


def _attention(rng: np.random.Generator, *shape: int) -> Array:
    weights = np.exp(rng.standard_normal(shape))
    A: Array = weights / weights.sum(axis=-1, keepdims=True)
    return A


def _row(
    name: str,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    target: float | None,
    note: str,
    repeats: int = 5,
) -> list[Row]:
    first, second = interleaved_medians([ours, theirs], repeats)
    seconds = {"ours": first, "yardstick": second}
    return [Row(name, first / second, seconds, note, at_most=target)]


@measurement("certificates/small n=20", "a certified verdict on a small case")
def small() -> list[Row]:
    rng = np.random.default_rng(0)
    A, H = _attention(rng, 20, 20), 0.3 * rng.standard_normal((16, 16))
    return _row(
        "certified verdict n=20, d=16 / eigvals",
        lambda: certified_dominance(A, H),
        lambda: (np.linalg.eigvals(quotient(A)), np.linalg.eigvals(H)),
        None,
        "meant to stay under 0.1 s",
    )


@measurement("certificates/attention n=197", "spec(A) with proof")
def spectrum_of_attention() -> list[Row]:
    A = _attention(np.random.default_rng(1), 197, 197)
    B = quotient(A)
    return _row(
        "spec(A) certified n=197 / eigvals",
        lambda: attention_discs(A),
        lambda: np.linalg.eigvals(B),
        4.0,
        "softmax of Gaussian logits",
    )


@measurement("certificates/value d=768", "spec(H) with proof")
def spectrum_of_value() -> list[Row]:
    H = np.random.default_rng(2).standard_normal((768, 768)) * 768**-0.5
    return _row(
        "spec(H) certified d=768 / eigvals",
        lambda: value_discs(H),
        lambda: np.linalg.eigvals(H),
        4.0,
        "dense Gaussian H",
        3,
    )


@measurement("certificates/head r=64", "a head through its core")
def head() -> list[Row]:
    rng = np.random.default_rng(3)
    A = _attention(rng, 197, 197)
    W_V, W_proj = rng.standard_normal((768, 64)) / 28, rng.standard_normal((64, 768)) / 8
    return _row(
        "head r=64 by its core / spec(A) certified",
        lambda: head_discs(W_V, W_proj),
        lambda: attention_discs(A),
        1.0,
        "n=197, d=768",
    )


@measurement("certificates/balls n=197", "balls where floats do not suffice")
def balls() -> list[Row]:
    A = _attention(np.random.default_rng(4), 197, 197)
    with at_precision(BITS):
        B = flint.acb_mat(flint.arb_mat((A[:-1, :-1] - A[-1:, :-1]).tolist()))
    return _row(
        "balls, first step of n=197 / float64 discs",
        lambda: next(enclose_in_balls(B)),
        lambda: attention_discs(A),
        None,
        "128 bits; each refinement costs about as much again",
        1,
    )


@measurement("certificates/softmax n=197", "attention from logits")
def softmax() -> list[Row]:
    logits = np.random.default_rng(5).standard_normal((197, 197))
    return _row(
        "softmax enclosed in float64 / in balls",
        lambda: softmax_in_floats(logits),
        lambda: softmax_enclosure(logits.tolist()),
        None,
        "n=197",
        3,
    )


@measurement("certificates/batch of 32", "many attentions at once")
def batch() -> list[Row]:
    rng = np.random.default_rng(6)
    rows = []
    for n in (8, 20, 65, 197):
        A = _attention(rng, 32, n, n)
        rows += _row(
            f"32 attentions at once n={n} / one at a time",
            lambda A=A: attention_discs_all(A),  # type: ignore[misc]
            lambda A=A: [attention_discs(each) for each in A],  # type: ignore[misc]
            None,
            "the same discs",
            3,
        )
    return rows
