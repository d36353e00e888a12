"""How fast Pre-LN can grow, without scaling and with it, and how near the identity layers come."""

from fractions import Fraction
from itertools import product as choices

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import J2, Claim, Matrix, by, draw, equal, exact


def _law(x: tuple[int, int], branches: list[tuple[int, int]]) -> None:
    """Branches of either sign with equal chances: the mean of |x_L|^2 over all signs, exactly,
    the scales being part of the branches."""
    signs = list(choices((1, -1), repeat=len(branches)))
    total = 0
    for sign in signs:
        moved = [
            a + sum(s * b[k] for s, b in zip(sign, branches, strict=True)) for k, a in enumerate(x)
        ]
        total += sum(y * y for y in moved)
    sizes = [sum(c * c for c in b) for b in branches]
    equal(Fraction(total, len(signs)), sum(c * c for c in x) + sum(sizes))


def _derivative() -> list[sp.Expr]:
    """[3; fixed size] Three features: d/dx of sqrt(d) x/|x| is sqrt(d)/|x| (I - u u^T), u =
    x/|x|."""
    x = sp.Matrix(sp.symbols("x1:4", positive=True))
    r = sp.sqrt(x.dot(x))
    u = x / r
    return [*((sp.sqrt(3) * u).jacobian(x) - sp.sqrt(3) / r * (sp.eye(3) - u * u.T))]


def _normalised(X: Matrix) -> Matrix:
    """LayerNorm of two features: (1, -1) where the first is the larger, as here."""
    assert all(x > y for x, y in X)
    return exact.from_integers([[1, -1]] * len(X))


def _attained() -> None:
    """[4; instance] X_0 with the tokens (1, -1) and (2, -2), A = 11^T/2, five layers."""
    X = exact.matrix("1 -1; 2 -2")
    for layer in range(1, 6):
        X = exact.plus(X, exact.product(J2, _normalised(X)))
        equal(X, exact.from_integers([[1 + layer, -1 - layer], [2 + layer, -2 - layer]]))


CLAIM = Claim(
    name="N-2502.05795-at-most",
    clauses=(
        "Pre-LN, x_l = x_(l-1) + s_l b_l with |b_l| <= c in every layer (attention without a bias: "
        "c = sqrt(d) max |gamma| ||W||_2 + |beta^T W|): |x_L| <= |x_0| + c (s_1 + ... + s_L). "
        "Without scaling, s = 1, the variance grows at most like L^2; with LayerNorm-scaling, s_l "
        "= 1/sqrt(l), |x_L| <= |x_0| + 2 c sqrt(L): at most like L.",
        "Branches of mean 0 given the layers before, E |b_l|^2 = v: E |x_L|^2 is |x_0|^2 + v L, "
        "with scaling |x_0|^2 + v (1 + 1/2 + ... + 1/L).",
        "One token, RMSNorm with gain gamma: the derivative of its layer differs from I by at most "
        "s_l sqrt(d) max |gamma| ||W||_2/|x|. Layers approach the identity as |x| grows, at any "
        "rate of growth.",
        "L^2 is attained: two features, LayerNorm without an epsilon, gamma = 1, W = I in every "
        "layer, any row-stochastic A. Tokens (t, -t), t > 0, are (t + L)(1, -1) after L layers, of "
        "variance (t + L)^2. (The paper's Lemma 3.2, for normal and independent weights, bounds "
        "the variance by Theta(L) below and Theta(exp L) above; (t + L)^2 lies between.)",
    ),
    latex=r"|x_L|\le|x_0|+c\sum_{l\le L}s_l\le|x_0|+\begin{cases}cL&s_l=1\\"
    r"2c\sqrt L&s_l=l^{-1/2}\end{cases}",
    source="ours, on the growth that Lemma 3.2 of arXiv 2502.05795 bounds (version 5)",
    on_record=by.WRITTEN,
    setting="|W| and the norms' gains bounded over the layers; feed-forward blocks that are "
    "bounded on the sphere count in c",
    evidence=(
        by.written(
            "sums",
            "[1] A token that LayerNorm or RMSNorm gives has the length sqrt(d) max |gamma| at most"
            " beside its bias, and a mean of tokens is no longer than the longest. Add up; the sum "
            "of 1/sqrt(l) is at most 2 sqrt(L), by the query with u = sqrt(l - 1), v = sqrt(l).",
            "[2] E x_(l-1)^T b_l = 0: the squares add up.",
            "[3] By the derivative below, times s_l diag(gamma) W: I - u u^T has norm 1.",
            _derivative,
            "[4] (t, -t) has mean 0 and variance t^2, so LayerNorm takes it to (1, -1), and A "
            "with A 1 = 1 and W = I leave that as it is: every layer adds (1, -1) to every token, "
            "and t + 1 > 0.",
            _attained,
        ),
        by.for_all(
            "1/sqrt(l) <= 2 sqrt(l) - 2 sqrt(l - 1)",
            given="u >= 0; v > 0; v*v == u*u + 1; p*v == 1",
            then="p <= 2*v - 2*u",
            at="u=0, v=1, p=1",
            covers=(1,),
        ).unless("twice as much", then="2*p <= 2*v - 2*u", at="u=3/4, v=5/4, p=4/5"),
        by.searched(
            "all signs of up to five branches",
            _law,
            st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
            draw.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), 1, 5),
        ),
    ),
    further="What grows exponentially is a product of layers whose branch grows with x, as without "
    "a norm.",
)
