"""Honest certificates of every stage and of every kind of claim, from which forgeries are made."""

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from oversmoothing.theory.certificate import Certificate, make_certificate
from oversmoothing.theory.layer.layer import read_layer

A2 = [["3/4", "1/4"], ["1/4", "3/4"]]
A3 = [["4/5", "1/10", "1/10"], ["3/10", "3/5", "1/10"], ["1/2", "1/5", "3/10"]]
RNG = np.random.default_rng(0)
LOGITS = RNG.standard_normal((5, 5))
H3 = 0.1 * RNG.standard_normal((3, 3))
START = RNG.standard_normal((5, 3))
HEAD = RNG.standard_normal((6, 2)) / 2, RNG.standard_normal((2, 6)) / 2
TIED = np.full((32, 32), -4 / 32)


def chained(d: int, h: Any, size: int = 4, first: int = 2) -> list[list[Fraction]]:
    """H of d features: a Jordan block of h beside small eigenvalues, 1/(first + i)."""
    H = [[Fraction(int(j == i + 1 < size)) for j in range(d)] for i in range(d)]
    for i in range(d):
        H[i][i] = Fraction(h) if i < size else Fraction(1, first + i)
    return H


def near_tie() -> dict[str, Any]:
    """A softmax on which float64 discs overlap at h, and balls do not."""
    s, t = 0.3, -1.1
    a = 1 / (1 + np.exp(-s)) + 1 / (1 + np.exp(-t)) - 1
    return {"logits": [[s, 0.0], [0.0, t]], "H": [[-2 / (1 + a)]], "X0": [[1.0], [2.0]]}


CASES: dict[str, dict[str, Any]] = {
    "exact, smoothing": {"A": A2, "H": [["1/2"]], "X0": [[1], [2]]},
    "exact, non-smoothing": {
        "A": A3, "H": [["-1/2", 1], [0, "-1/3"]], "X0": [[1, 2], [3, 5], [0, 7]],
    },
    "exact, tie of Jordan blocks": {
        "A": [["1/2", "1/2"]] * 2, "H": [[0, 1], [0, 0]], "X0": [[1, 2], [3, 5]],
    },
    "exact, tie of values": {"A": A2, "H": [["-4/3"]], "X0": [[1], [2]]},
    "exact, special start": {"A": A2, "H": [["1/2"]], "X0": [[1], [-1]]},
    "exact, several classes": {"A": [[1, 0], [0, 1]], "H": [["1/2"]], "X0": [[0], [1]]},
    "exact, a slow rate": {"A": A2, "H": [["1/10000"]], "X0": [[1], [2]]},
    "exact, a Jordan block of 21": {
        "A": [[Fraction(1, 21)] * 21] * 21, "H": chained(21, 2),
    },
    "exact, at consensus": {"A": A2, "H": [["1/2"]], "X0": [[3], [3]]},
    "exact, vanishing": {"A": A2, "H": [["-2"]], "X0": [[1], [-1]]},
    "exact, one token": {"A": [[1]], "H": [["1/2"]], "X0": [[3]]},
    "exact, beyond binary64": {"A": A2, "H": [["1e308", "1e308"], ["1e308", "1e308"]]},
    "binary64, in fractions": {
        "A": [[0.75, 0.25], [0.25, 0.75]], "H": [[-4 / 3]], "X0": [[1.0], [2.0]],
    },
    "float64 discs, dense": {
        "A": [[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]],
        "H": [[0.5, 0.1], [0.0, -0.25]],
        "X0": [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]],
    },
    "float64 discs, softmax": {"logits": LOGITS, "H": -0.5 * np.eye(3) + H3, "X0": START},
    "float64 discs, head": {
        "logits": LOGITS, "factors": HEAD, "X0": RNG.standard_normal((5, 6)),
    },
    "float64 discs, tie by structure": {
        "A": 0.5 * np.eye(4) + 0.125, "factors": (np.eye(50)[:, :2], -0.5 * np.eye(50)[:2]),
    },
    "balls": near_tie(),
    "undecided": {"A": [[0.25, 0.75], [0.75, 0.25]], "H": TIED},
    "undecided, with radii": {"logits": [[0.0, -1000.0], [-1000.0, 0.0]], "H": [[1.0]]},
}  # fmt: skip


@cache
def honest(name: str) -> Certificate:
    """The certificate of one of the cases."""
    return make_certificate(*read_layer(**CASES[name]))
