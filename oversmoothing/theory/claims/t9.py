"""What the claims of t9.md execute."""

import math
from fractions import Fraction
from itertools import combinations

import flint
import numpy as np
import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.claims.lemmas import angle as angle, symbolic_matrix
from oversmoothing.theory.depth import recurrence as measured
from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.layer.layer import softmax
from oversmoothing.theory.numbers.exact import to_flint
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.proofs.kit import Matrix, by, draw, exact, given, search, spectra

# systems
TWO_FEATURES = given.Hypothesis(
    "there are at least two features", lambda case: len(case.H) >= 2, (given.case(),)
)
# Further modes die like 1e-23 or faster by the first depth; what is left is rounding to float.
ROUNDING = 1e-14
# (1/4)|c_1/c_2|/L is the relative correction of a Jordan block: 0.19/L for the pi-mean of START and
# 0.06/L for its mode at 1/2. On the slope from L to 2L that makes less than 1/L^2.
JORDAN = 1 / 150**2
DEPTH = 150
START = exact.matrix("1 4; 3 -5; -1 1")
_HALF = Fraction(1, 2)
# name -> (A, H, |lambda_2|, |h_2/h_1|, size of the Jordan block of H at h_1)
SYSTEMS: dict[str, tuple[Matrix, Matrix, Fraction, Fraction, int]] = {
    "h = 2, -1/2": (exact.A3, exact.matrix("2 0; 1 -1/2"), _HALF, Fraction(1, 4), 1),
    "h = 1, -1": (exact.A3, exact.matrix("1 0; 1 -1"), _HALF, Fraction(1), 1),
    "h = +-2i": (exact.A3, exact.matrix("0 -2; 2 0"), _HALF, Fraction(1), 1),
    "h = 1/4, defective": (exact.A3, exact.matrix("1/4 1; 0 1/4"), _HALF, Fraction(1), 2),
    "complex A, h = 1, 1/3": (
        exact.C3,
        exact.matrix("1 0; -1 1/3"),
        Fraction(7, 10),
        Fraction(1, 3),
        1,
    ),
}


def slope(measure: measured.Measure, A: Matrix, H: Matrix) -> float:
    """Of the logarithm per layer from DEPTH to 2 DEPTH, for a state in general position."""
    return math.log(measured.slope(measure, A, H, START, (DEPTH, 2 * DEPTH), residual=False))


# T9a
def _bare_layers(A: Matrix, H: Matrix, X: Matrix, depth: int) -> Matrix:
    """A^L X W^L in fractions."""
    return exact.product(exact.power(A, depth), X, exact.power(exact.transposed(H), depth))


def special_state() -> None:
    for depth in (1, 2, 7):
        X = _bare_layers(exact.AA, exact.diagonal("1 1/4"), exact.matrix("1 1; -1 1"), depth)
        assert exact.squared_ratio(X) == 4**depth


def measure_a(effort: by.Effort) -> by.Measurements:
    for name, (A, H, second, _, block) in SYSTEMS.items():
        # The Jordan block adds the same power of L to HFC and to LFC.
        tolerance = JORDAN if block > 1 else ROUNDING
        yield by.Measurement(name, math.log(second), slope(measured.hfc_lfc, A, H), tolerance)


@search(draw.exact_cases(), st.integers(0, 6), at="A H X")
def law_a(A: Matrix, H: Matrix, X: Matrix, depth: int) -> None:
    """Y_L = B'^L Y_0 W^L and c_L = c_0 W^L: for two tokens t falls by |lambda_2| where W is h."""
    moved, pi = _bare_layers(A, H, X, depth), spectra.stationary(A)
    apart, means = exact.differences(X), [exact.weighted_mean(pi, X)]
    assert exact.differences(moved) == _bare_layers(rational_quotient(A), H, apart, depth)
    assert [exact.weighted_mean(pi, moved)] == _bare_layers(exact.identity(1), H, means, depth)


# T9b
def compound(M: sp.Matrix) -> sp.Matrix:
    """C_2(M): all 2 x 2 minors, rows and columns by pairs in lexicographic order."""
    rows, columns = (list(combinations(range(size), 2)) for size in M.shape)
    return sp.Matrix([[M.extract(r, c).det() for c in columns] for r in rows])


def cauchy_binet() -> object:
    A, X = symbolic_matrix(3, 3, "a"), symbolic_matrix(3, 2, "x")
    W = symbolic_matrix(2, 2, "w")
    return (compound(A * X * W) - compound(A) * compound(X) * compound(W)).applyfunc(sp.expand)


def wedge() -> list[sp.Expr]:
    X = symbolic_matrix(3, 2, "x")
    left, right = symbolic_matrix(2, 3, "p"), symbolic_matrix(2, 2, "z")
    value = (compound(left) * compound(X) * compound(right))[0]
    return [sp.expand(value - (left * X * right).det())]


# Two features: a Jordan block, or none.
_ONE = draw.fractions(-2, 2).flatmap(
    lambda h: st.tuples(draw.with_jordan_blocks([(h, 2)]), st.just([h, h]))
)
_TWO_FEATURES = _ONE | draw.with_spectrum(draw.fractions(-2, 2), 2, 2)


def _of_rank_one(measure: measured.Measure, power: int, turning: float) -> by.Measurements:
    """turning: the tolerance where a complex pair leads."""
    for name, (A, H, second, ratio, block) in SYSTEMS.items():
        # A Jordan block of size 2 at h_1 makes sigma_1 grow by L (relative to |h_1|^L) while the
        # minors do not: L^-2, that is -2 log 2/L on this slope, up to O(1/L^2).
        predicted = power * (math.log(second * ratio) - 2 * (block - 1) * math.log(2) / DEPTH)
        tolerance = turning if A is exact.C3 else power * JORDAN if block > 1 else ROUNDING
        yield by.Measurement(name, predicted, slope(measure, A, H), tolerance)


def measure_b(effort: by.Effort) -> by.Measurements:
    return _of_rank_one(measured.sigma_ratio, 1, ROUNDING)


@search(draw.two_token_attention(), _TWO_FEATURES, draw.states(2, 2), st.integers(0, 6), at="A H X")
def law_b(A: Matrix, a: Fraction, H: Matrix, h: list[Fraction], X: Matrix, depth: int) -> None:
    moved = exact.determinant(_bare_layers(A, H, X, depth))
    assert moved == (a * h[0] * h[1]) ** depth * exact.determinant(X)


# T9c
def measure_c(effort: by.Effort) -> by.Measurements:
    # Twice the slope of T9b, with the same polynomial and bounded factors. The pair that attains
    # the maximum turns: it is between 1/3 of the sum and the sum.
    return _of_rank_one(measured.worst_angle_gap, 2, math.log(3) / DEPTH)


# T9d
def two_tokens_closed() -> list[sp.Expr]:
    c, e, m, w = sp.symbols("c e m w", real=True)
    X = [c + e, c - e]
    rows = []
    for x in X:
        weights = [sp.exp(x * m * y) for y in X]
        rows.append(sum(a * y for a, y in zip(weights, X, strict=True)) / sum(weights) * w)
    tanh = [sp.tanh(x * e * m).rewrite(sp.exp) for x in X]
    goal = w * e / 2 * (tanh[0] - tanh[1])
    residual = sp.simplify(sp.together(((rows[0] - rows[1]) / 2 - goal).expand()))
    # Leading order in the form with Sigma_a: variance of +-e under weights of mean tanh(c e m) is
    # e^2 (1 - tanh^2), which is its derivative in the argument.
    t = sp.Symbol("t")
    slope = sp.diff(sp.tanh(t), t) - (1 - sp.tanh(t) ** 2)
    return [residual, sp.simplify(slope)]


def antisymmetric() -> None:
    # M = [[0, 1], [-1, 0]], X = 1 c + s u: every row of logits is the same up to a constant.
    M, c, u = sp.Matrix([[0, 1], [-1, 0]]), sp.Matrix([[1, 2]]), sp.Matrix([[3, -1]])
    X = sp.Matrix.vstack(*(c + s * u for s in (1, 2, -3)))
    logits = X * M * X.T
    rows = [[logits[i, j] - logits[i, 0] for j in range(3)] for i in range(3)]
    assert rows[0] == rows[1] == rows[2] and X.row(0) != X.row(1)


def definite() -> list[sp.Expr]:
    M = sp.Matrix(2, 2, lambda i, j: sp.Symbol(f"m{i}{j}"))
    v = sp.Matrix(sp.symbols("v1:3"))
    return [sp.expand((v.T * M * v)[0] - (v.T * (M + M.T) * v)[0] / 2)]


def tripling(effort: by.Effort) -> by.Measurements:
    """log||E|| over eight layers: each triples the one before, up to a constant.

    X = 1 c + E with ||E|| < 0.3, M with a definite symmetric part, W nonsingular.
    """
    bits = 14000
    M, W = (to_flint(exact.matrix(text)) for text in ("1 1/2; -1/4 2", "3/4 1/4; 0 -1/2"))
    sizes = []
    with at_precision(bits):
        X = flint.arb_mat(
            to_flint(exact.matrix("109/100 -73/200; 173/200 -91/200; 209/200 -17/25"))
        )
        for _ in range(8):
            sizes.append(measured.log(measured.hfc_norm(X, bits)))
            logits = (X * M * X.transpose() / flint.arb(2).sqrt()).tolist()
            weights = [[entry.exp() for entry in row] for row in logits]
            X = flint.arb_mat([[w / sum(row) for w in row] for row in weights]) * X * W
    for layer in (4, 5, 6):
        # |log||E'|| - 3 log||E||| <= K: above log(||M|| ||W||/(2 sqrt 2)), below the log of
        # mu sigma_min(W)/(2 n r^{3/2} sqrt 2) = log 0.0188 > -4 (mu = .985, r = 2, n = 3).
        what = f"log||E|| at layer {layer + 1} over layer {layer}"
        ratio = sizes[layer + 1] / sizes[layer]
        yield by.Measurement(what, 3.0, ratio, 4 / abs(sizes[layer]))


@search(st.integers(2, 6), st.integers(1, 4), st.integers(-3, 1), st.integers(-2, 1), draw.SEEDS)
def law_d(n: int, d: int, spread: int, size: int, seed: int) -> None:
    """||HFC'|| <= ||M|| ||W||/(2 sqrt k) ||HFC||^3 for any X, up to the rounding of one layer.

    spread: of the tokens, and size: of their mean, as powers of ten.
    """
    rng = np.random.default_rng(seed)
    M, W = rng.standard_normal((d, d)), rng.standard_normal((d, d))
    X = 10.0**spread * rng.standard_normal((n, d)) + 10.0**size * rng.standard_normal(d)
    moved = softmax(X @ M @ X.T / np.sqrt(d)) @ X @ W
    first, second = (float(np.linalg.norm(Z - Z.mean(axis=0))) for Z in (X, moved))
    m, w = np.linalg.norm(M, 2), np.linalg.norm(W, 2)
    # A logit of size s rounds by s d eps, so a weight by that relatively; then products of n, d.
    largest = float(np.linalg.norm(X))
    logits = m * largest**2 / np.sqrt(d)
    rounding = 8 * (n + d) * (2 + d * logits) * 2.0**-52 * w * largest * np.sqrt(n)
    assert second <= m * w / (2 * np.sqrt(d)) * first**3 + rounding


STATE_GIVEN = given.Hypothesis(
    "X_0 is given: attention is computed from it", lambda case: case.X0 is not None, (given.case(),)
)
