"""Normalised tokens in a half space and orthogonal values: collapse, with its rate."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.claims.t7 import rotations, squared_diameter
from oversmoothing.theory.proofs.kit import AA, Claim, Matrix, by, draw, equal, exact, given


def _shadow(X: Matrix, v: list[Fraction]) -> tuple[Matrix, list[Fraction]]:
    """The rows x/<x, v>, and the <x, v>."""
    heights = [exact.dot(row, v) for row in X]
    return [[x / s for x in row] for row, s in zip(X, heights, strict=True)], heights


def _law(A: Matrix, X: Matrix, W: Matrix) -> None:
    """One layer from unit tokens of positive first entry, before the division by the norms."""
    v = [Fraction(1), Fraction(0)]
    before, heights = _shadow(X, v)
    delta, eps = min(heights), min(map(min, A))
    Z, turned = exact.product(A, X, W), exact.product([v], W)[0]
    after, moved = _shadow(Z, turned)
    for height, row in zip(moved, Z, strict=True):
        assert height >= delta and height**2 >= delta**2 * exact.dot(row, row)
    n = len(A)
    rate = (1 - n * eps) / (1 - (n - 2) * eps)
    assert squared_diameter(after) <= rate**2 * squared_diameter(before)
    assert squared_diameter(before) * delta**2 <= 4 * (1 - delta**2)


@st.composite
def _hemisphere(pick: st.DrawFn) -> tuple[Matrix, Matrix, Matrix]:
    A = pick(draw.attention(1, 4, zeros=True))
    slopes = pick(draw.lists(draw.inside(-1, 1, 6), len(A)))
    if pick(st.booleans()):
        # The worst case of two tokens: each looks at itself, and they lie on either side of v.
        eps = pick(draw.inside(0, 1)) / len(A)
        A = [[eps] * len(A) for _ in A]
        for i, row in enumerate(A):
            row[i % 2] = 1 - (len(A) - 1) * eps
        slopes = [slopes[0] * (-1) ** i for i in range(len(A))]
    X = [[(1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)] for t in slopes]
    return A, X, pick(rotations())


def _opposite() -> None:
    """[4; instance] A = [[3/4, 1/4], [1/4, 3/4]], W = I, tokens u and -u: A X = X/2, so the
    normalised layer returns X for ever."""
    X = exact.matrix("3/5 4/5; -3/5 -4/5")
    equal(exact.product(AA, X), exact.scaled("1/2", X))


CLAIM = Claim(
    name="N-2405.18781-hemisphere",
    clauses=(
        "X_l: the rows of A_l X_(l-1) W_l, each divided by its norm, W_l orthogonal, A_l "
        "row-stochastic and changing at will. If the unit tokens of X_0 have <x_i, v> >= delta > 0 "
        "for a unit v, those of X_l have it for v_l = W_l^T ... W_1^T v; no row becomes 0.",
        "With all entries of A_l at least eps: max ||x_i - x_k|| at depth L is at most ((1 - n "
        "eps)/(1 - (n-2) eps))^L 2 sqrt(1 - delta^2)/delta: exponential collapse, whatever delta "
        "is, at one rate. (Collapse for some values: abstract; orthogonal ones and a hemisphere: "
        "recalled, our reading.)",
        "With entries at least eps along a graph as in N-2405.18781-masks: (1 - (eps "
        "delta)^r)^floor(L/r) in the place of the power.",
        "A common hemisphere cannot be left out: from some X_0 with opposite tokens nothing "
        "collapses.",
    ),
    latex=r"\max_{i,k}\|x_i-x_k\|\le\Big(\frac{1-n\epsilon}{1-(n-2)\epsilon}\Big)^L\,"
    r"\frac{2\sqrt{1-\delta^2}}{\delta}",
    source="arXiv 2405.18781, LayerNorm with orthogonal values (abstract and memory), our reading; "
    "the rate is ours",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC.said("A of each layer is row-stochastic: A >= 0, A 1 = 1"),),
    setting="normalisation divides by the norm and does not centre",
    evidence=(
        by.written(
            "a projective change of scale",
            "[1] A row of A X is a mean of unit vectors: norm at most 1, product with v at least "
            "delta. The division by the norm can only raise the product, and W turns both.",
            "[2] y_i = x_i/<x_i, v> forgets norms: y' = B y W with B_ij = A_ij s_j/sum_k A_ik s_k, "
            "s_j = <x_j, v>, row-stochastic. For rows p, q of A the odds p_j q_k/(q_j p_k) are at "
            "most r^2, r = (1 - (n-1) eps)/eps, and the s_j cancel in them: B contracts diameters "
            "by (r-1)/(r+1) (the query and step of N-2103.03404-doubly-exponential).",
            "[2] <y, v> = 1, so |y| >= 1 and x = y/|y| is its projection to the unit ball, which "
            "shortens distances; and |y - v| = sqrt(1 - s^2)/s <= sqrt(1 - delta^2)/delta at the "
            "start.",
            "[3] s_j in [delta, 1], so B_ij >= delta A_ij >= delta eps along the edges: "
            "N-2405.18781-masks for B.",
            _opposite,
        ),
        by.searched(
            "one layer of unit tokens in fractions",
            _law,
            _hemisphere(),
            at=lambda A, X, W: (A, W, X),
        ),
    ),
    further="Other values keep any rank: N-2405.18781-equilibria.",
)
