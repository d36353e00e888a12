"""What the claims of t7.md execute; one room: the chapter."""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from operator import itemgetter
from statistics import mean
from typing import Any

import flint
import numpy as np
import sympy as sp
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.lemmas import (
    Heads,
    binary_softmax,
    dobrushin,
    layer_operator,
    networks,
    of_first_head,
    oscillation,
    rotations,
    squared_diameter,
)
from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.layer.layer import softmax
from oversmoothing.theory.proofs.kit import Matrix, by, draw, exact, given, search, spectra, verdict
from oversmoothing.theory.spectra.algebraic import factors


# T7b-certificate
@st.composite
def matrix_layers(draw_from: st.DrawFn) -> tuple[Matrix, Fraction, Fraction, Fraction, list[Any]]:
    """X_0, tau, p, q and layers W = -V diag(s) V^T, s in [p, q], p > tau q, q(1+tau) < 2."""
    n = draw_from(st.integers(2, 3))
    tau = draw_from(draw.below_one(6))
    q = 2 / (1 + tau) * draw_from(st.sampled_from([Fraction(k, 8) for k in range(1, 8)]))
    p = q * (tau + (1 - tau) * draw_from(st.sampled_from([Fraction(k, 4) for k in range(1, 5)])))
    spread = st.tuples(draw.fractions(0, 1, 4), draw.fractions(0, 1, 4))
    values = spread.map(lambda f: [p + (q - p) * x for x in f])
    layer = st.tuples(rotations(), values, draw.attention(n, n), st.integers(0, ADVERSARIES))
    layers = draw_from(draw.lists(layer, 1, 5))
    return draw_from(draw.states(n, 2)), tau, p, q, layers


@search(matrix_layers())
def matrix_law(X: Matrix, tau: Fraction, p: Fraction, q: Fraction, layers: list[Any]) -> None:
    assume(squared_diameter(X) > 0)
    r = max(1 - p, q - 1)
    k = 1 - Fraction(1, len(X))

    def squared_mean(Z: Matrix) -> Fraction:
        return sum((mean(column) ** 2 for column in exact.transposed(Z)), Fraction(0))

    # max(u_0, .)^2 in fractions.
    bound = max(squared_mean(X) / squared_diameter(X), (k * q / (1 - tau * q - r)) ** 2)
    for V, values, drawn_A, kind in layers:
        assert p > tau * q and q * (1 + tau) < 2
        A = drawn_A if kind == ADVERSARIES else adversary(exact.transposed(X)[0], kind)
        W = exact.product(V, exact.diagonal(-s for s in values), exact.transposed(V))
        before = squared_diameter(X)
        X = exact.plus(X, exact.product(contraction_to(A, tau), X, W))
        assert squared_diameter(X) >= (1 - tau * q) ** 2 * before
        assert squared_mean(X) <= bound * squared_diameter(X)
        # HFC/LFC >= 1/(K sqrt(2n)), as squares.
        hfc, lfc = exact.squared_norms(X)
        assert hfc * 2 * len(X) * bound >= lfc


# oscillation
Vector = list[Fraction]


def contraction_to(A: Matrix, tau: Fraction) -> Matrix:
    """A mixed with 11^T/n until tau(A) <= tau; adversarial A need it."""
    contraction = dobrushin(A)
    if contraction <= tau:
        return A
    share = tau / contraction
    return [[share * entry + (1 - share) / len(A) for entry in row] for row in A]


def adversary(x: Vector, kind: int) -> Matrix:
    """Row-stochastic A computed from x: to the largest entry, to the smallest, to one's own
    opposite, or to oneself. The worst cases of the one-step bounds."""
    n = len(x)
    top, bottom = x.index(max(x)), x.index(min(x))
    middle = mean(x)
    target = {
        0: [top] * n,
        1: [bottom] * n,
        2: [bottom if entry >= middle else top for entry in x],
        3: list(range(n)),
        4: [top if entry >= middle else bottom for entry in x],
    }[kind]
    return [[Fraction(int(j == target[i])) for j in range(n)] for i in range(n)]


ADVERSARIES = 5


# T7a
@search(networks(2, 4), at=of_first_head)
def law_a(layers: list[Heads], X: Matrix) -> None:
    """The differences of X_L are T_L times those of X_0, T_L the product of I + sum W^T (x) B'."""
    y = [[x] for column in exact.transposed(exact.differences(X)) for x in column]
    for heads in layers:
        y = exact.product(layer_operator(heads, rational_quotient), y)
        X = reduce(exact.plus, (exact.product(A, X, W) for A, W in heads), X)
    assert y == [[x] for column in exact.transposed(exact.differences(X)) for x in column]


# Hypotheses of T7b-certificate
@given.condition("no eigenfeature of X_0 is constant and non-zero", given.case(H="-1/2", X0="2; 2"))
def moving_features(instance: given.Instance) -> bool:
    """P X_0 E^T = 0 only where X_0 E^T = 0, for the spectral projectors E of H."""
    if instance.X0 is None:
        return True
    projectors = (spectra.spectral_projector(instance.H, f) for f in factors(instance.H))
    parts = (exact.product(instance.X0, exact.transposed(E)) for E in projectors)
    return not any(hfc == 0 < lfc for hfc, lfc in map(exact.squared_norms, parts))


CONTRACTING = given.Hypothesis(
    "tau(A) < 1", lambda case: dobrushin(case.A) < 1, (given.case("1 0; 0 1"),)
)

# T7b-rotation
R = exact.matrix("4/5 -3/5; 3/5 4/5")
X0 = exact.matrix("1 2; 3 5")
_HALF, _COSINE = Fraction(1, 2), Fraction(4, 5)


def weights(values: tuple[Fraction, Fraction], depth: int) -> Iterator[Matrix]:
    """W_l = R^l diag(values) R^-l for l < depth."""
    W = exact.diagonal(values)
    for _ in range(depth):
        yield W
        W = exact.product(R, W, exact.transposed(R))


def states(values: tuple[Fraction, Fraction], depth: int, start: Matrix = X0) -> list[Matrix]:
    """X_0, ..., X_depth under A and the rotating weights."""
    course = [start]
    for W in weights(values, depth):
        course.append(exact.layer(exact.AA, W, course[-1]))
    return course


def frame(values: tuple[Fraction, Fraction], a: Fraction) -> Matrix:
    """(I + a W_0) R: what one layer does in the rotating frame to mode a (a = 1: consensus)."""
    return exact.product(exact.diagonal(1 + a * value for value in values), R)


def each_layer() -> None:
    # Alone and repeated, no layer smooths: TIE for {-1, 0}, NON_SMOOTHING for {-1, -1/20}.
    for low, expected in ((Fraction(0), "TIE"), (Fraction(-1, 20), "NON_SMOOTHING")):
        for W in weights((Fraction(-1), low), 6):
            assert exact.transposed(W) == W and verdict(A=exact.AA, W=W).verdict == expected


def frame_identity() -> None:
    for low in (Fraction(0), Fraction(-1, 20)):
        values = (Fraction(-1), low)
        turn, frames = exact.identity(2), []
        for X in states(values, 5):
            frames.append(exact.product(exact.matrix("1 -1; 1 1"), X, turn))
            turn = exact.product(turn, R)
        for (mode, total), following in pairwise(frames):
            moved = ((mode, _HALF), (total, Fraction(1)))
            assert following == [exact.product([y], frame(values, a))[0] for y, a in moved]


def consensus_exactly() -> None:
    for low in (Fraction(0), Fraction(-1, 20)):
        for depth, X in list(enumerate(states((Fraction(-1), low), 30)))[1:]:
            # LFC^2 = n ||m||^2 with m_0 = (2, 7/2).
            expected = 2 * Fraction(49, 4) * (1 + low) ** (2 * depth) * _COSINE ** (2 * depth - 2)
            assert exact.squared_norms(X)[1] == expected


def mode_quadratic() -> None:
    # N = (I + aW_0)R has N^2 = T N - D, T^2 < 4D: sqrt(D) is the modulus of both eigenvalues.
    for low, T, D in (
        (Fraction(0), Fraction(6, 5), Fraction(1, 2)),
        (Fraction(-1, 20), Fraction(59, 50), Fraction(39, 80)),
    ):
        N = frame((Fraction(-1), low), _HALF)
        assert (N[0][0] + N[1][1], exact.determinant(N)) == (T, D) and T**2 < 4 * D
        # HFC^2 <= K D^L with the conserved form Q: N Q N^T = D Q, positive definite.
        Q = conserved(N)
        assert Q[0][0] > 0 and exact.determinant(Q) > 0
        assert exact.product(N, Q, exact.transposed(N)) == exact.scaled(D, Q)
        # The rate: D < ((1-p) 4/5)^2.
        assert ((1 + low) * _COSINE) ** 2 > D


def conserved(N: Matrix) -> Matrix:
    """Q symmetric with N Q N^T = det(N) Q, Q_11 = 1: y Q y^T is det(y, y N) up to a factor, and
    det(y N, y N^2) = det(N) det(y, y N)."""
    (a, b), (c, d) = N
    return [[Fraction(1), (d - a) / (2 * b)], [(d - a) / (2 * b), -c / b]]


def deep_bound() -> None:
    # HFC^2/LFC^2 <= K (D/((1-p)^2 (4/5)^2))^L with K from the conserved form, L = 1..60.
    for low in (Fraction(0), Fraction(-1, 20)):
        N = frame((Fraction(-1), low), _HALF)
        Q, start = conserved(N), exact.product(exact.matrix("1 -1"), X0)
        ((energy,),) = exact.product(start, Q, exact.transposed(start))
        # y Q y^T >= |y|^2 det Q/trace Q, and HFC^2 = |x_1 - x_2|^2/2.
        smallest = exact.determinant(Q) / (Q[0][0] + Q[1][1])
        for depth, X in enumerate(states((Fraction(-1), low), 60)):
            bound = energy * exact.determinant(N) ** depth / smallest / 2
            assert exact.squared_norms(X)[0] <= bound


def general_residual() -> None:
    # Trace and determinant of (I + aW_0)R for W_0 = -diag(1, p), and of consensus.
    a, p, t = sp.symbols("a p t", real=True)
    turn = sp.Matrix([[sp.cos(t), -sp.sin(t)], [sp.sin(t), sp.cos(t)]])
    mode = sp.diag(1 - a, 1 - a * p) * turn
    assert sp.simplify(mode.trace() - sp.cos(t) * (2 - a - a * p)) == 0
    assert sp.simplify(mode.det() - (1 - a) * (1 - a * p)) == 0
    consensus = sp.diag(0, 1 - p) * turn
    assert sp.simplify(consensus.trace() - sp.cos(t) * (1 - p)) == 0 and consensus.det() == 0


SYMMETRIC_W = given.Hypothesis(
    "every layer has a symmetric W",
    lambda i: exact.transposed(i.H) == i.H,
    (given.case(H="0 1; 0 0"),),
)


# T7b-volume
# Layers (A_l, W_l), W_l with real spectrum in [-1, 0] in a basis of its own.
_CLIPPED = st.tuples(st.integers(2, 3), st.integers(1, 2)).flatmap(
    lambda size: draw.lists(
        st.tuples(
            draw.attention(size[0], size[0], zeros=True),
            draw.with_spectrum(draw.fractions(-1, 0), size[1], size[1]).map(itemgetter(0)),
        ),
        1,
        4,
    )
)


def interval() -> None:
    # tau = 1/2, q = 1: rotations smooth for p < 1/3, two features exclude p >= 9/25.
    tau = Fraction(1, 2)
    assert tau / (2 - tau) == Fraction(1, 3)

    def excluded(p: Fraction, d: int) -> bool:
        return (1 - p) ** d < (1 - tau * p) * (1 - tau) ** (d - 1)

    assert excluded(Fraction(9, 25), 2) and not excluded(Fraction(1, 3), 2)
    for d in range(1, 9):
        assert excluded(tau, d), "always below tau"
    # The threshold grows with d, to tau.
    assert not excluded(Fraction(2, 5), 3) and excluded(Fraction(21, 50), 3)


def gaussian() -> None:
    # The rotating weights at p = 2/5 > 9/25: the mode outgrows consensus.
    a, p, k = Fraction(1, 2), Fraction(2, 5), Fraction(4, 5)
    W0 = exact.matrix("-1 0; 0 -2/5")
    assert exact.determinant(exact.plus_identity(W0, a))
    assert (1 - a) * (1 - a * p) > (k * (1 - p)) ** 2


@search(_CLIPPED, at=lambda layers: layers[0])
def volume_law(layers: list[tuple[Matrix, Matrix]]) -> None:
    """|det T_L|^(1/(n-1)) >= |det C_L|, as powers."""
    quotient = consensus = Fraction(1)
    n = len(layers[0][0])
    for A, W in layers:
        # I + B' (x) W^T on the rows y_i = x_i - x_n.
        on_differences = exact.kronecker(rational_quotient(A), exact.transposed(W))
        quotient *= abs(exact.determinant(exact.plus_identity(on_differences)))
        consensus *= abs(exact.determinant(exact.plus_identity(W)))
    assert quotient >= consensus ** (n - 1)


# T7c
@st.composite
def _layers_c(pick: st.DrawFn) -> tuple[list[Fraction], list[tuple[Fraction, int, Matrix]]]:
    """x_0 and layers (h > 0, which adversary, a drawn A)."""
    n = pick(st.integers(2, 4))
    x = [Fraction(k) for k in pick(draw.lists(st.integers(-6, 9), n))]
    sizes = draw.fractions(0, 3, 6).filter(bool)
    layer = st.tuples(sizes, st.integers(0, ADVERSARIES), draw.attention(n, n))
    return x, pick(draw.lists(layer, 1, 6))


def _following(x: np.ndarray, depth: int) -> np.ndarray:
    """Two tokens under A = softmax(x x^T), h = 1/2, in the scale of the state."""
    log_scale = 0.0
    for _ in range(depth):
        x = x + softmax(np.exp(2 * log_scale) * np.outer(x, x)) @ x / 2
        size = np.abs(x).max()
        x, log_scale = x / size, log_scale + math.log(size)
    return x


def measure_c(effort: by.Effort) -> by.Measurements:
    """(2, -1) keeps both signs and freezes; (.3, -.2) gets one sign."""
    frozen, joined = _following(np.array([2.0, -1.0]), 40), _following(np.array([0.3, -0.2]), 40)
    ratio = abs(frozen[0] - frozen[1]) / abs(frozen.sum())
    return [
        by.Measurement("HFC/LFC from (2, -1) after 40 layers", 2.816756, ratio, 1e-5),
        by.Measurement("sign of the product from (.3, -.2)", 1.0, float(np.sign(joined.prod())), 0),
    ]


@search(_layers_c(), at=lambda x, layers: (layers[0][2], [[layers[0][0]]]))
def law_c(x: list[Fraction], layers: list[tuple[Fraction, int, Matrix]]) -> None:
    assume(oscillation(x) > 0)
    for h, kind, drawn_A in layers:
        A = contraction_to(drawn_A if kind == ADVERSARIES else adversary(x, kind), Fraction(3, 4))
        before, tau = x, dobrushin(A)
        x = [a + h * b for a, b in zip(x, exact.applied(A, x), strict=True)]
        assert oscillation(x) <= (1 + h * tau) * oscillation(before)
        if min(before) > 0:
            assert min(x) >= (1 + h) * min(before)
        if min(x) <= 0 <= max(x):
            hfc, lfc = exact.squared_norms([[entry] for entry in x])
            assert 2 * len(x) * hfc >= lfc and oscillation(x) >= abs(mean(x))


ONE_POSITIVE_H = given.Hypothesis(
    "one feature, h > 0",
    lambda case: len(case.H) == 1 and case.H[0][0] > 0,
    (given.case(H="-1"), given.case(H="1 0; 0 1")),
)

# T7d
# Integer logits with one largest entry in each row.
_LOGITS = st.integers(2, 4).flatmap(
    lambda n: draw.lists(
        draw.lists(st.integers(-4, 4), n).filter(lambda row: row.count(max(row)) == 1), n
    )
)


def tight() -> list[sp.Expr]:
    t, q, p, x, y = sp.symbols("t q p x y")
    A = sp.Matrix([[1 + t, 1 - t], [1 - t, 1 + t]]) / 2
    X = sp.Matrix([[x, y], [-x, y]])
    grown = sp.Matrix([[(1 - t * q) * x, (1 - p) * y], [-(1 - t * q) * x, (1 - p) * y]])
    return [*(X + A * X * sp.diag(-q, -p) - grown)]


@search(_LOGITS, st.integers(0, 6))
def law_d(S: list[list[int]], c: int) -> None:
    """Base 2 in the place of e, so that all is exact: 2^(-c g) in the place of e^(-c g)."""
    n = len(S)
    A = binary_softmax(exact.scaled(c, exact.from_integers(S)))
    gap = min(max(row) - sorted(row)[-2] for row in S)
    slack = (n - 1) * Fraction(1, 2 ** (c * gap))
    tops = {row.index(max(row)) for row in S}
    tau = dobrushin(A)
    assert tau >= 1 - 2 * slack if len(tops) > 1 else tau <= slack


# T7e
@search(networks(1, 3, causal=True), at=of_first_head)
def law_e(layers: list[Heads], _: Matrix) -> None:
    """det(x - product of the layers) is the product over the tokens of det(x - G_i)."""
    n, d = len(layers[0][0][0]), len(layers[0][0][1])
    whole, blocks = exact.identity(n * d), [exact.identity(d)] * n
    for heads in layers:
        whole = exact.product(layer_operator(heads), whole)
        for i, block in enumerate(blocks):
            own = layer_operator(heads, lambda A, i=i: [[A[i][i]]])  # type: ignore[misc]
            blocks[i] = exact.product(own, block)
    expected = flint.fmpq_poly([1])
    for block in blocks:
        expected = expected * exact.characteristic(block)
    assert exact.characteristic(whole) == expected
