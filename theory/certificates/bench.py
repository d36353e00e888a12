"""What a certified spectrum costs, as ratios measured in one process, variants interleaved.

n = 197 is the attention of a ViT on 224 x 224 images, d = 768 its width, r = 64 a head.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import flint
import numpy as np
from numpy.typing import NDArray

from theory.certificates.dominance import (
    attention_discs,
    certified_dominance,
    head_discs,
    value_discs,
)
from theory.exact import at_precision
from theory.quotient import quotient

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One line of the table: seconds of ours and of the yardstick (medians), and their ratio.

    target: the ratio that is aimed at, None where the line is for comparison only.
    """

    name: str
    seconds: float
    yardstick: float
    target: float | None

    @property
    def ratio(self) -> float:
        return self.seconds / self.yardstick

    @property
    def holds(self) -> bool | None:
        return None if self.target is None else self.ratio <= self.target


def _medians(runs: list[Callable[[], object]], repeats: int) -> list[float]:
    """Median seconds of each, in turn A B A B ..., after one warm-up of each."""
    times: list[list[float]] = [[] for _ in runs]
    for repeat in range(repeats + 1):
        for k, run in enumerate(runs):
            start = time.perf_counter()
            run()
            if repeat:
                times[k].append(time.perf_counter() - start)
    return [median(each) for each in times]


def _attention(n: int, rng: np.random.Generator) -> Array:
    logits = rng.standard_normal((n, n))
    weights = np.exp(logits)
    A: Array = weights / weights.sum(axis=1, keepdims=True)
    return A


def ball_spectrum(M: Array, bits: int = 128) -> object:
    """The comparison: Gershgorin in balls after a similarity with approximate eigenvectors."""
    with at_precision(bits):
        _, V = np.linalg.eig(M)
        left = flint.acb_mat([[complex(x) for x in row] for row in V])
        middle = flint.acb_mat([[float(x) for x in row] for row in M])
        return left.solve(middle * left)


def rows(repeats: int = 5) -> list[Row]:
    """The table. About a minute on two cores."""
    rng = np.random.default_rng(0)
    A20, H16 = _attention(20, rng), 0.3 * rng.standard_normal((16, 16))
    A = _attention(197, rng)
    B, H = quotient(A), rng.standard_normal((768, 768)) * 768**-0.5
    W_V, W_proj = rng.standard_normal((768, 64)) / 28, rng.standard_normal((64, 768)) / 8
    found = []

    def add(
        name: str,
        run: Callable[[], object],
        against: Callable[[], object],
        target: float | None,
        times: int = repeats,
    ) -> None:
        ours, theirs = _medians([run, against], times)
        found.append(Row(name, ours, theirs, target))

    def small() -> object:
        return np.linalg.eigvals(quotient(A20)), np.linalg.eigvals(H16)

    add("verdict n = 20, d = 16 / eigvals", lambda: certified_dominance(A20, H16), small, None)
    add("spec(A), n = 197 / eigvals", lambda: attention_discs(A), lambda: np.linalg.eigvals(B), 4.0)
    add("spec(H), d = 768 / eigvals", lambda: value_discs(H), lambda: np.linalg.eigvals(H), 4.0, 3)
    add(
        "head r = 64 by its core / spec(A) certified",
        lambda: head_discs(W_V, W_proj),
        lambda: attention_discs(A),
        1.0,
    )
    add(
        "balls, n = 197, 128 bits / float64 discs",
        lambda: ball_spectrum(B),
        lambda: attention_discs(A),
        None,
        1,
    )
    return found


def main() -> None:
    """Print the table; one BLAS thread, so that the two sides compare."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        found = rows()
    for row in found:
        target = "" if row.target is None else f"  (target {row.target:g}: {row.holds})"
        print(
            f"{row.name:46s} {1e3 * row.seconds:9.2f} ms {1e3 * row.yardstick:9.2f} ms  "
            f"ratio {row.ratio:.2f}{target}"
        )


if __name__ == "__main__":
    main()
