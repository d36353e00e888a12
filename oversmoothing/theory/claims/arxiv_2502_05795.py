"""What the claims of arxiv_2502_05795.md execute."""

from fractions import Fraction

import sympy as sp

from oversmoothing.theory.proofs.kit import Matrix, draw, equal, exact, search, spectra


# N-2502.05795-at-most
def derivative() -> list[sp.Expr]:
    x = sp.Matrix(sp.symbols("x1:4", positive=True))
    r = sp.sqrt(x.dot(x))
    u = x / r
    return [*((sp.sqrt(3) * u).jacobian(x) - sp.sqrt(3) / r * (sp.eye(3) - u * u.T))]


def attained() -> None:
    X = exact.matrix("1 -1; 2 -2")
    for layer in range(1, 6):
        # LayerNorm of two features: (1, -1) where the first is the larger, as here.
        assert all(x > y for x, y in X)
        X = exact.plus(X, exact.product(exact.J2, exact.matrix("1 -1; 1 -1")))
        equal(X, exact.from_integers([[1 + layer, -1 - layer], [2 + layer, -2 - layer]]))


# N-2502.05795-slows
@search(
    draw.two_token_attention().filter(lambda known: known[1] >= 0),
    draw.inside(0, 3),
    draw.lists(draw.inside(0, 1), 1, 4),
    at="A h",
)
def law_slows(A: Matrix, a: Fraction, h: Fraction, scales: list[Fraction]) -> None:
    X, pi = exact.column("1 4"), spectra.stationary(A)
    for s in scales:
        factor = (1 + s * h * a) / (1 + s * h)
        assert 1 - h * (1 - a) * s <= factor <= 1 - h * (1 - a) * s / (1 + h)
        before, X = X, exact.layer(A, [[s * h]], X)
        (mean,), (moved,) = exact.weighted_mean(pi, before), exact.weighted_mean(pi, X)
        high, low = exact.squared_norms(before)[0], exact.squared_norms(X)[0]
        equal(low * mean**2, factor**2 * high * moved**2)
