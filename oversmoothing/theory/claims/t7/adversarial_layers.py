"""What the certificate T7b is searched with: adversarial layers, and the bounds they must keep."""

from fractions import Fraction
from typing import Any

from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.t7.oscillation import (
    ADVERSARIES,
    adversary,
    contraction_to,
    dobrushin,
    mean,
    oscillation,
    rotations,
    squared_diameter,
)
from oversmoothing.theory.proofs.kit import Matrix, draw, exact


def hfc_floor(X: Matrix, bound: Fraction, n: int, factor: Fraction = Fraction(1)) -> None:
    """HFC/LFC >= 1/(K sqrt(2n)), as squares; factor: kappa(V)^2."""
    hfc, lfc = exact.squared_norms(X)
    assert hfc * 2 * n * bound * bound * factor >= lfc


def one_step(A: Matrix, entries: list[int], kind: int, tau: Fraction, h: Fraction) -> None:
    """Both one-step inequalities, on drawn and on adversarial A."""
    x = [Fraction(e) for e in entries[: len(A)]]
    A = contraction_to(A if kind == ADVERSARIES else adversary(x, kind), tau)
    t, n = dobrushin(A), len(x)
    y = [a + h * b for a, b in zip(x, exact.applied(A, x), strict=True)]
    assert oscillation(exact.applied(A, x)) <= t * oscillation(x)
    assert oscillation(y) >= (1 - abs(h) * t) * oscillation(x)
    k = 1 - Fraction(1, n)
    assert abs(mean(y)) <= abs(1 + h) * abs(mean(x)) + abs(h) * k * oscillation(x)


Layer = tuple[Fraction, int, Matrix]


def _layers(*parts: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """One to five layers of these parts."""
    return draw.lists(st.tuples(*parts), 1, 5)


@st.composite
def one_feature(draw_from: st.DrawFn) -> tuple[list[Fraction], Fraction, Fraction, list[Layer]]:
    """x_0 (often of mean 0), tau, s and layers (h in [-s, 0], which adversary, a drawn A)."""
    n = draw_from(st.integers(2, 4))
    entries = draw_from(draw.lists(st.integers(-9, 9), n))
    shift = draw_from(st.sampled_from([0, 1])) * Fraction(sum(entries), n)
    tau = draw_from(st.just(Fraction(0)) | draw.below_one(8))
    reach = 2 / (1 + tau) - 1
    s = 1 + reach * draw_from(st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(9, 10)]))
    sizes = st.just(Fraction(1)) | draw.fractions(0, 1, 6)
    layer = st.tuples(
        sizes.map(lambda f: -s * f), st.integers(0, ADVERSARIES), draw.attention(n, n)
    )
    layers = draw_from(draw.lists(layer, 1, 6))
    return [entry - shift for entry in entries], tau, s, layers


def feature_law(x: list[Fraction], tau: Fraction, s: Fraction, layers: list[Layer]) -> None:
    assume(oscillation(x) > 0)
    n = len(x)
    k = 1 - Fraction(1, n)
    bound = max(abs(mean(x)) / oscillation(x), k * s / (2 - s * (1 + tau)))
    for h, kind, drawn_A in layers:
        A = contraction_to(drawn_A if kind == ADVERSARIES else adversary(x, kind), tau)
        x = [a + h * b for a, b in zip(x, exact.applied(A, x), strict=True)]
        assert abs(mean(x)) <= bound * oscillation(x)
        hfc_floor([[e] for e in x], bound, n)


@st.composite
def common_basis(draw_from: st.DrawFn) -> tuple[Matrix, Matrix, Fraction, list[Any]]:
    """X_0, an orthogonal V, tau and layers of two heads, W = V diag(h) V^T with sum |h| <= 1."""
    n = draw_from(st.integers(2, 3))
    X0 = draw_from(draw.states(n, 2))
    V = draw_from(rotations())
    tau = draw_from(draw.below_one(6))
    pair = st.tuples(draw.fractions(0, 1, 4), draw.fractions(0, 1, 4))
    layers = draw_from(_layers(pair, pair, draw.attention(n, n), st.integers(0, ADVERSARIES - 1)))
    return X0, V, tau, layers


def basis_law(X: Matrix, V: Matrix, tau: Fraction, layers: list[Any]) -> None:
    n = len(X)
    features = exact.transposed(exact.product(X, V))
    assume(all(oscillation(y) > 0 or mean(y) == 0 for y in features))
    assume(any(oscillation(y) > 0 for y in features))
    k = 1 - Fraction(1, n)
    start = max(abs(mean(y)) / oscillation(y) for y in features if oscillation(y) > 0)
    bound = max(start, k / (1 - tau))
    for sizes, shares, A, kind in layers:
        # Head 1 has a share of |h_j| <= 1, head 2 the rest, feature by feature.
        first = exact.diagonal((-p * q for p, q in zip(sizes, shares, strict=True)))
        second = exact.diagonal((-p * (1 - q) for p, q in zip(sizes, shares, strict=True)))
        heads = [contraction_to(A, tau), contraction_to(adversary(features[0], kind), tau)]
        step = X
        for attention, values in zip(heads, (first, second), strict=True):
            step = exact.plus(step, exact.product(attention, X, V, values, exact.transposed(V)))
        X = step
        features = exact.transposed(exact.product(X, V))
        for y in features:
            assert abs(mean(y)) <= bound * oscillation(y)
        hfc_floor(X, bound, n)


@st.composite
def matrix_layers(draw_from: st.DrawFn) -> tuple[Matrix, Fraction, Fraction, Fraction, list[Any]]:
    """X_0, tau, p, q and layers W = -V diag(s) V^T, s in [p, q], p > tau q, q(1+tau) < 2."""
    n = draw_from(st.integers(2, 3))
    tau = draw_from(draw.below_one(6))
    q = 2 / (1 + tau) * draw_from(st.sampled_from([Fraction(k, 8) for k in range(1, 8)]))
    p = q * (tau + (1 - tau) * draw_from(st.sampled_from([Fraction(k, 4) for k in range(1, 5)])))
    spread = st.tuples(draw.fractions(0, 1, 4), draw.fractions(0, 1, 4))
    values = spread.map(lambda f: [p + (q - p) * x for x in f])
    layers = draw_from(
        _layers(rotations(), values, draw.attention(n, n), st.integers(0, ADVERSARIES))
    )
    return draw_from(draw.states(n, 2)), tau, p, q, layers


def matrix_law(X: Matrix, tau: Fraction, p: Fraction, q: Fraction, layers: list[Any]) -> None:
    n = len(X)
    assume(squared_diameter(X) > 0)
    r = max(1 - p, q - 1)
    k = 1 - Fraction(1, n)

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
        hfc, lfc = exact.squared_norms(X)
        assert hfc * 2 * n * bound >= lfc
