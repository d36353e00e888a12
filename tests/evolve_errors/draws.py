"""Drawn cases: generic ones, and those that cost digits (defective, reducible, lacking modes)."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

Matrix = list[list[Fraction]]


@dataclass(frozen=True)
class Drawn:
    """A, W = P Q (P None: dense W) and X_0 in binary64, what they mean exactly, and a depth."""

    A: np.ndarray
    W: np.ndarray
    factors: tuple[np.ndarray, np.ndarray] | None
    X0: np.ndarray
    depth: int
    kind: str

    @property
    def exact(self) -> tuple[Matrix, Matrix, Matrix]:
        """A with its rows divided by their sums, W and X_0."""
        A = [[x / sum(row) for x in row] for row in _fractions(self.A)]
        if self.factors is None:
            return A, _fractions(self.W), _fractions(self.X0)
        P, Q = (_fractions(M) for M in self.factors)
        W = [[sum(a * b for a, b in zip(row, col, strict=True)) for col in zip(*Q, strict=True)]
             for row in P]  # fmt: skip
        return A, W, _fractions(self.X0)


def _fractions(M: np.ndarray) -> Matrix:
    return [[Fraction(x) for x in row] for row in M.tolist()]


def _stochastic(weights: np.ndarray) -> np.ndarray:
    """Integers to a dyadic stochastic matrix: what 256 lacks goes to the last positive entry."""
    sums = weights.sum(axis=1, keepdims=True)
    found = np.floor(256 * weights / sums)
    for row, weight in zip(found, weights, strict=True):
        row[np.flatnonzero(weight)[-1]] += 256 - row.sum()
    return found / 256


def attention(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    weights = rng.integers(1, 9, (n, n)).astype(float)
    if kind == "softmax":
        logits = rng.standard_normal((n, n)) * rng.choice([0.3, 1.0, 5.0])
        A = np.exp(logits - logits.max(axis=1, keepdims=True))
        return A / A.sum(axis=1, keepdims=True)
    if kind == "saturated":
        logits = rng.standard_normal((n, n)) * 40
        if rng.random() < 0.5:
            logits = np.where(np.tri(n, dtype=bool), logits, -np.inf)
        A = np.exp(logits - logits.max(axis=1, keepdims=True))
        return A / A.sum(axis=1, keepdims=True)
    if kind == "causal":
        return _stochastic(np.tril(weights))
    if kind == "causal defective":
        A = np.tril(_stochastic(np.tril(weights)), -1)
        diagonal = rng.choice([0.0, 0.25, 0.5])
        for i in range(1, n):
            A[i, :i] = _stochastic(weights[i : i + 1, :i])[0] * (1 - diagonal)
            A[i, i] = diagonal
        A[0] = np.eye(n)[0]
        return A
    if kind == "blocks":
        A = np.zeros((n, n))
        cut = int(rng.integers(1, n)) if n > 1 else 1
        A[:cut, :cut] = _stochastic(weights[:cut, :cut])
        if cut < n:
            A[cut:, cut:] = _stochastic(weights[cut:, cut:])
        if n > 2 and rng.random() < 0.5:
            A[-1] = _stochastic(weights[-1:])[0]
        return A
    if kind == "defective":
        # a I + (1 - a) 11^T/n and a rank one part u w^T with w^T u = 0: a Jordan block at a.
        a = float(rng.choice([0.0, 0.25, 0.5]))
        A = a * np.eye(n) + (1 - a) * _stochastic(np.ones((1, n)))[0]
        if n > 2:
            u, w = np.zeros(n), np.zeros(n)
            u[:2], w[:3] = (1, -1), (1, 1, -2)
            A = A + np.outer(u, w) / 64
            if rng.random() < 0.5:  # nearly defective
                A[0, 0] += 2.0 ** -int(rng.integers(10, 46))
                A[0, -1] += 1 - A[0].sum()
        return A
    if kind == "symmetric":
        P = np.eye(n)
        return 0.5 * P + 0.25 * (np.roll(P, 1, 0) + np.roll(P, -1, 0))
    if kind == "periodic":
        return np.roll(np.eye(n), 1, axis=0)
    if kind == "identity":
        return np.eye(n)
    if kind == "slow":
        delta = 2.0 ** -int(rng.integers(3, 20))
        return (1 - delta) * np.eye(n) + delta * _stochastic(weights)
    return _stochastic(weights)


ATTENTION = (
    "positive", "softmax", "saturated", "causal", "causal defective", "blocks", "defective",
    "symmetric", "periodic", "identity", "slow",
)  # fmt: skip
WEIGHTS = (
    "gaussian", "scalar", "jordan", "near jordan", "nilpotent", "negative", "minus one", "dyadic",
    "head", "nilpotent core",
)  # fmt: skip
STARTS = ("gaussian", "integers", "near consensus", "zero mean", "antisymmetric", "one mode")


def weights_of(
    kind: str, d: int, rng: np.random.Generator
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray] | None]:
    h = float(rng.choice([-3.0, -2.0, -1.5, -1.0, -0.5, -0.25, 0.25, 0.5, 1.0]))
    if kind == "scalar":
        return h * np.eye(d), None
    if kind in ("jordan", "near jordan"):
        W = h * np.eye(d) + np.eye(d, k=1) * float(rng.choice([0.5, 1.0, 8.0]))
        if kind == "near jordan":
            W[-1, 0] += 2.0 ** -int(rng.integers(10, 50))
        if rng.random() < 0.5 and d > 1:
            S = np.eye(d)
            S[0, 1] = 3.0
            T = np.eye(d)
            T[0, 1] = -3.0
            W = S @ W @ T
        return W, None
    if kind == "nilpotent":
        return np.triu(rng.integers(-4, 5, (d, d)) / 4.0, 1), None
    if kind == "negative":
        return -np.abs(rng.standard_normal((d, d))) / d, None
    if kind == "minus one":
        return np.triu(rng.integers(-2, 3, (d, d)) / 2.0, 1) - np.eye(d), None
    if kind == "dyadic":
        return rng.integers(-8, 9, (d, d)) / 8.0, None
    if kind == "head":
        P, Q = rng.standard_normal((d, 1)), rng.standard_normal((1, d))
        return P @ Q, (P, Q)
    if kind == "nilpotent core":
        P = np.zeros((d, 2))
        Q = np.zeros((2, d))
        # Q P = [[1, -1], [1, -1]] as far as d allows it.
        P[0], Q[:, 0] = (1.0, -1.0), (1.0, 1.0)
        if d > 1:
            P[1], Q[:, 1] = (2.0, -2.0), (0.0, 0.0)
        return P @ Q, (P, Q)
    return rng.standard_normal((d, d)) / d, None


def start(kind: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    X = rng.integers(-5, 6, (n, d)).astype(float)
    if kind == "integers":
        return X
    if kind == "near consensus":
        return rng.integers(1, 5, (1, d)) + X * 2.0 ** -int(rng.integers(5, 45))
    if kind == "zero mean":
        X[-1] -= X.sum(axis=0)
        return X
    if kind == "antisymmetric":
        return X - X[::-1]
    if kind == "one mode":
        return np.outer(rng.integers(-3, 4, n), rng.integers(-3, 4, d)).astype(float)
    return rng.standard_normal((n, d))


def draw(seed: int, index: int, most: int = 3000) -> Drawn:
    """The case of that number; the same for the same seed."""
    rng = np.random.default_rng((seed, index))
    n, d = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    a, w, x = (str(rng.choice(kinds)) for kinds in (ATTENTION, WEIGHTS, STARTS))
    W, factors = weights_of(w, d, rng)
    depth = int(np.exp(rng.uniform(0, np.log(most))))
    return Drawn(attention(a, n, rng), W, factors, start(x, n, d, rng), depth, f"{a}, {w}, {x}")
