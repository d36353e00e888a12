"""What the claims of arxiv_2206_03126.md execute."""

from fractions import Fraction
from itertools import product

import sympy as sp
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.lemmas import squared_diameter, with_state
from oversmoothing.theory.proofs.kit import Matrix, draw, equal, exact, search


# N-2206.03126-gradients
def derivative() -> sp.Expr:
    x, logit, c = (sp.symbols(f"{name}:3", real=True) for name in "xlc")
    t = sp.Symbol("t")
    weights = [sp.exp(p + t * q) for p, q in zip(logit, c, strict=True)]
    mean = sum(w * z for w, z in zip(weights, x, strict=True)) / sum(weights)
    a = [w.subs(t, 0) / sum(weights).subs(t, 0) for w in weights]
    y = mean.subs(t, 0)
    return mean.diff(t).subs(t, 0) - sum(p * (z - y) * q for p, z, q in zip(a, x, c, strict=True))


@search(
    with_state(draw.attention(1, 4, zeros=True), st.integers(1, 2)),
    draw.lists(draw.fractions(-3, 3, 4), 2),
)
def law_gradients(A: Matrix, X: Matrix, v: list[Fraction]) -> None:
    """v^T Cov v, the variance of <x, v>, <= |v|^2 D^2/4 for each row of A; and equal tokens do not
    feel A."""
    v = v[: len(X[0])]
    along = exact.applied(X, v)
    for row in A:
        mean = exact.dot(row, along)
        moved = sum(a * (x - mean) ** 2 for a, x in zip(row, along, strict=True))
        assert 4 * moved <= exact.dot(v, v) * squared_diameter(X)
    same = [X[0]] * len(X)
    equal(exact.product(A, same), same)


# N-2206.03126-scale
@st.composite
def _pairs(pick: st.DrawFn) -> tuple[draw.Known, draw.Known, Matrix]:
    size = pick(st.sampled_from([2, 4]))
    weights = draw.lists(st.integers(1, 9), size)
    first, second = (draw.walsh(draw.shares(pick(weights))) for _ in range(2))
    return first, second, pick(draw.states(size, 1))


@search(_pairs(), draw.fractions(-2, 2, 4), draw.fractions(0, 2, 4), at="A")
def law_scale(
    A: Matrix, values: list[Fraction], B: Matrix, others: list[Fraction],
    X: Matrix, w: Fraction, scale: Fraction,
) -> None:  # fmt: skip
    """W = w or -w with equal chances, all 2^L of them; A is chosen by the state."""
    sigma, depth = max(a * a for a in [*values, *others]), 3
    before = exact.squared_norms(X)
    assume(min(before) > 0)
    total = [Fraction(0), Fraction(0)]
    for signs in product((1, -1), repeat=depth):
        Z: Matrix = X
        for sign in signs:
            Z = exact.layer(A if Z[0][0] > 0 else B, [[sign * scale * w]], Z)
        total = [t + part / 2**depth for t, part in zip(total, exact.squared_norms(Z), strict=True)]
    grown = scale**2 * w**2
    equal(total[1], (1 + grown) ** depth * before[1])
    assert before[0] <= total[0] <= (1 + grown * sigma) ** depth * before[0]
