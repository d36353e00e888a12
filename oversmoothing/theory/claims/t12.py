"""What the claims of t12.md execute."""

from fractions import Fraction
from typing import Literal

import numpy as np
import sympy as sp

from oversmoothing.theory.at_consensus import AtConsensus, TokenMap, TokenNorm, layer_at_consensus
from oversmoothing.theory.claims.lemmas import squared_frobenius
from oversmoothing.theory.claims.t8 import attention, derivative, jacobian, layer_norm
from oversmoothing.theory.layer.layer import softmax
from oversmoothing.theory.proofs.kit import Matrix, by, draw, exact, search
from oversmoothing.theory.support.sizes import Array


# looped
class LoopedBlock:
    """One head with logits N(x_i) . N(x_j), causal or not, W [d, d], FFN x -> B tanh(x) + b, of
    drawn weights, d = 4, with a bias that gives equal tokens a direction to settle in."""

    def __init__(self, placement: Literal["pre", "post"], causal: bool, seed: int) -> None:
        rng, d = np.random.default_rng(seed), 4
        self.placement: Literal["pre", "post"] = placement
        self.causal = causal
        self.W, self.B = 0.4 * rng.standard_normal((2, d, d))
        self.norm = TokenNorm("layer", 1 + 0.3 * rng.standard_normal(d), np.zeros(d), 1e-6)
        self.b = rng.standard_normal(d)

    def __call__(self, X: Array) -> Array:
        """The states X [n, d] one loop on."""
        pre = self.placement == "pre"
        N = self._rows(X) if pre else X
        middle = X + self._attention(N) @ N @ self.W
        if not pre:
            middle = self._rows(middle)
        out: Array = middle + self._ffn(self._rows(middle) if pre else middle)
        return out if pre else self._rows(out)

    def linearised(self, c: Array, n: int) -> AtConsensus:
        """The derivative at 1 c^T by T8c's closed form."""
        A = self._attention(np.tile(self.norm(c) if self.placement == "pre" else c, (n, 1)))
        ffn = TokenMap(lambda x: self._ffn(x[None])[0], lambda x: self.B * (1 - np.tanh(x) ** 2))
        return layer_at_consensus(
            c, A[None], self.W[None], np.zeros(len(c)), placement=self.placement,
            norm=self.norm, norm_ffn=self.norm, ffn=ffn,
        )  # fmt: skip

    def _rows(self, X: Array) -> Array:
        return np.array([self.norm(x) for x in X])

    def _ffn(self, X: Array) -> Array:
        image: Array = np.tanh(X) @ self.B.T + self.b
        return image

    def _attention(self, N: Array) -> Array:
        logits = N @ N.T
        if self.causal:
            logits = np.where(np.tri(len(N), dtype=bool), logits, -np.inf)
        return softmax(logits)


def slopes(what: str, f: LoopedBlock, seed: int, tolerance: float) -> by.Measurement:
    """Of three tokens the slope of log HFC/LFC predicted (T12c, T12d) and measured after the last
    token of 1 c^T was moved by 1e-4 |c| along the leading eigenvector; c: where 400 loops have led.

    Pre-LN: over log loops, by kappa/c - 1, from 400 to twice as many. Post-LN: a loop, by the log
    of the largest modulus, over 20 loops.
    """
    n, loops = 3, 400
    c = np.random.default_rng([seed, 1]).standard_normal(len(f.b))
    for _ in range(loops):
        c = f(c[None])[0]
    at = f.linearised(c, n)
    values, vectors = np.linalg.eig(at.block(at.A[:, -1, -1] if f.causal else np.zeros(1)))
    k = int(np.argmax(np.abs(values)))
    size, top = float(np.linalg.norm(c)), float(np.abs(values[k]))
    X = np.tile(c, (n, 1))
    X[-1] += 1e-4 * size * vectors[:, k].real
    pre = f.placement == "pre"
    predicted = size * (top - 1) / float(np.linalg.norm(at.image - c)) - 1 if pre else np.log(top)
    before, number = _log_ratio(X), loops if pre else 20
    for _ in range(number):
        X = f(X)
    span = np.log(2) if pre else number
    return by.Measurement(what, float(predicted), (_log_ratio(X) - before) / span, tolerance)


def _log_ratio(X: Array) -> float:
    mean = X.mean(0)
    hfc, lfc = np.linalg.norm(X - mean), np.sqrt(len(X)) * np.linalg.norm(mean)
    return float(np.log(hfc) - np.log(lfc))


# T12a
def _recalled(A: Matrix, H: Matrix, fixed: Matrix, beta: Fraction) -> Matrix:
    """The X_0 whose fixed point is given: -A X* W/beta."""
    return exact.scaled(-1 / beta, exact.product(A, fixed, exact.transposed(H)))


def _loop(A: Matrix, H: Matrix, X: Matrix, X0: Matrix, beta: Fraction) -> Matrix:
    return exact.plus(exact.layer(A, H, X), X0, beta)


def beyond_one() -> None:
    A, H, beta = exact.matrix("3 -2; -2 3"), [[Fraction(-1, 2)]], Fraction(1)
    ones, away = exact.column("1 1"), exact.column("1 -1")
    assert (exact.product(A, ones), exact.product(A, away)) == (ones, exact.scaled("5", away))
    fixed = exact.column("1 0")
    X0 = _recalled(A, H, fixed, beta)
    assert _loop(A, H, fixed, X0, beta) == fixed
    moved = exact.plus(_loop(A, H, exact.plus(fixed, away), X0, beta), fixed, -1)
    assert moved == exact.scaled("-3/2", away)


def stands_still() -> None:
    A, H, X0, beta = exact.identity(1), [[Fraction(-3)]], [[Fraction(1)]], Fraction(3)
    assert _loop(A, H, X0, X0, beta) == X0
    seen = [[[Fraction(2)]]]
    for _ in range(3):
        seen.append(_loop(A, H, seen[-1], X0, beta))
    assert [X[0][0] for X in seen] == [2, -1, 5, -7]


def not_symmetric() -> None:
    fixed = exact.column("1 -2 0")
    X0 = _recalled(exact.A3, [[Fraction(-1)]], fixed, Fraction(1))
    assert _loop(exact.A3, [[Fraction(-1)]], fixed, X0, Fraction(1)) == fixed
    assert exact.squared_ratio(X0) == Fraction(175, 2)
    assert exact.squared_ratio(fixed) == 14


_NUMBER = draw.fractions(-3, 3).filter(bool)


@search(
    draw.lists(draw.fractions(0, 3).filter(bool), 3),
    _NUMBER,
    _NUMBER,
    draw.states(4, 2),
    draw.states(4, 2),
)
def law_a(
    weights: list[Fraction], h: Fraction, beta: Fraction, fixed: Matrix, start: Matrix
) -> None:
    """Four tokens; A is the symmetric circulant (x, y, z, y): 1, x - z twice and x - 2y + z."""
    x, y, z = (w / (weights[0] + 2 * weights[1] + weights[2]) for w in weights)
    row = [x, y, z, y]
    A, H = [row[-k:] + row[:-k] for k in range(4)], exact.identity(2, h)
    rest = [x - z, x - 2 * y + z]
    X0 = _recalled(A, H, fixed, beta)
    assert _loop(A, H, fixed, X0, beta) == fixed
    (hfc, lfc), (hfc_0, lfc_0) = exact.squared_norms(fixed), exact.squared_norms(X0)
    assert hfc_0 * lfc <= max(a * a for a in rest) * hfc * lfc_0
    rate = max((1 + h * a) ** 2 for a in [Fraction(1), *rest])
    assert (rate < 1) == (-2 < h < 0 and min(rest) > 0)
    away = exact.plus(start, fixed, -1)
    for _ in range(2):
        start = _loop(A, H, start, X0, beta)
        before, away = away, exact.plus(start, fixed, -1)
        assert squared_frobenius(away) <= rate * squared_frobenius(before)


# T12b
# W sends N(c) to (1, 1, 1), so that c' = c + (1, 1, 1), with s = 1 at both.
_X, _W = sp.Matrix([[1, 2, 3], [1, 2, 3]]), sp.Matrix([[1, 0, 2], [-1, 1, 0], [2, 1, 3]])
_ATTENDED = _X + sp.ones(2, 3)
_V = sp.Matrix([[1, 0, 2], [0, -1, 1], [1, 1, 0]])
# Differences between two tokens, and a direction along consensus.
_ACROSS = sp.Matrix([[1, 0, 2], [-1, 0, -2]])


def _block(X: sp.Matrix) -> sp.Matrix:
    """Pre-LN, logits from the content, the FFN y -> (y o y) V."""
    N = layer_norm(X)
    return _without_attention(X + attention(N, sp.eye(3), sp.zeros(2, 2)) * N * _W)


def _without_attention(X: sp.Matrix) -> sp.Matrix:
    return X + layer_norm(X).applyfunc(lambda y: y**2) * _V


def across() -> sp.Matrix:
    return derivative(_block, _X, _ACROSS) - derivative(_without_attention, _ATTENDED, _ACROSS)


def along() -> None:
    D = sp.ones(2, 1) * sp.Matrix([[1, 0, 0]])
    assert derivative(_block, _X, D) != derivative(_without_attention, _ATTENDED, D)


# T12c
def scales() -> sp.Matrix:
    x, r = sp.Matrix([1, 2, 4]), sp.Symbol("r", positive=True)
    one = sp.ones(3, 1)
    return r * jacobian(r * x, one, r**2 / 3) - jacobian(x, one, sp.Rational(1, 3))


def kernel() -> sp.Matrix:
    u = sp.Matrix(sp.symbols("x y z", real=True))
    return jacobian(u, sp.ones(3, 1), sp.Integer(0)) * u


def measured(effort: by.Effort) -> by.Measurements:
    for seed in (0, 3):
        yield slopes(f"weights {seed}", LoopedBlock("pre", False, seed), seed, 0.015)


@search(
    draw.fractions(0, 3).filter(bool),
    draw.fractions(0, 3).filter(bool),
    draw.lists(draw.fractions(-2, 2), 3),
    draw.lists(draw.fractions(-2, 2), 3),
)
def law_c(r: Fraction, c: Fraction, kappas: list[Fraction], first: list[Fraction]) -> None:
    """RMSNorm with eps = 0, d = 4, along (r, 0, 0, 0), and B with the rows (c, first)/2 and
    diag(kappas)/2: the derivative of x + B N(x), by the quotient rule, exactly."""
    B = [[c, *first]] + [[Fraction(0)] * i + [k] + [Fraction(0)] * (3 - i)
                         for i, k in enumerate(kappas, 1)]  # fmt: skip
    v, delta, grown = r, [Fraction(1)] * 4, [Fraction(1)] * 3
    for _ in range(4):
        s = v / 2
        moved = [delta[0] / s - v * (v * delta[0]) / (4 * s**3), *(x / s for x in delta[1:])]
        delta = [
            x + sum((b * y for b, y in zip(row, moved, strict=True)), Fraction(0)) / 2
            for x, row in zip(delta, B, strict=True)
        ]
        grown = [g * (1 + k / v) for g, k in zip(grown, kappas, strict=True)]
        v += c * v / s / 2
    assert (v, delta[1:]) == (r + 4 * c, grown)


# T12c-attraction
def opposite() -> None:
    def loop(X: Matrix) -> Matrix:
        moved = []
        for row in X:
            assert not any(row[1:])
            s = abs(row[0]) / 2
            moved.append([row[0] + row[0] / s, *row[1:]])
        return moved

    X = exact.matrix("1 0 0 0; -2 0 0 0")
    for t in range(5):
        assert X[0][0] == 1 + 2 * t
        assert X[1][0] == -2 - 2 * t
        assert exact.squared_ratio(X) == Fraction(3 + 4 * t) ** 2
        X = loop(X)


# T12d
def measured_d(effort: by.Effort) -> by.Measurements:
    """Three tokens under a causal mask, moved in the last one."""
    for seed in (0, 3):
        words = f"Pre-LN, weights {seed}: a power"
        yield slopes(words, LoopedBlock("pre", True, seed), seed, 0.015)
    for causal in (False, True):
        words = f"Post-LN, {'causal' if causal else 'content alone'}: a rate"
        yield slopes(words, LoopedBlock("post", causal, 0), 0, 2e-3)
