"""T7d: tau -> 1: when growing logits lead there, and that the floor has to go with it."""

from fractions import Fraction

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.claims.t7.oscillation import dobrushin
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw

Logits = list[list[int]]


@st.composite
def _logits(pick: st.DrawFn) -> tuple[Logits, int]:
    """Integer logits with one largest entry in each row, and the scale c."""
    n = pick(st.integers(2, 4))
    rows = draw.lists(st.integers(-4, 4), n).filter(lambda row: row.count(max(row)) == 1)
    return pick(draw.lists(rows, n)), pick(st.integers(0, 6))


def _law(S: Logits, c: int) -> None:
    """Base 2 in the place of e, so that all is exact: 2^(-c g) in the place of e^(-c g)."""
    n = len(S)
    weights: Matrix = [[Fraction(2) ** (c * x) for x in row] for row in S]
    A = [[x / sum(row) for x in row] for row in weights]
    gap = min(max(row) - sorted(row)[-2] for row in S)
    slack = (n - 1) * Fraction(1, 2 ** (c * gap))
    tops = {row.index(max(row)) for row in S}
    tau = dobrushin(A)
    assert tau >= 1 - 2 * slack if len(tops) > 1 else tau <= slack


def _tight() -> list[sp.Expr]:
    """[3; general] n = 2, A symmetric with the eigenvalue tau >= 0, which is tau(A), W = -diag(q,
    p), X_0 = [[1, 1], [-1, 1]]: X_L = [[x, y], [-x, y]] with x = (1 - tau q)^L, y = (1 - p)^L.
    Every layer is NON_SMOOTHING (all of [-1, 0)), yet HFC/LFC = ((1 - tau q)/(1 - p))^L -> 0 for p
    < tau q."""
    t, q, p, x, y = sp.symbols("t q p x y")
    A = sp.Matrix([[1 + t, 1 - t], [1 - t, 1 + t]]) / 2
    X = sp.Matrix([[x, y], [-x, y]])
    grown = sp.Matrix([[(1 - t * q) * x, (1 - p) * y], [-(1 - t * q) * x, (1 - p) * y]])
    return [*(X + A * X * sp.diag(-q, -p) - grown)]


CLAIM = Claim(
    name="T7d",
    clauses=(
        "Rows of logits c S with one largest entry each, ahead of the second by at least g > 0: as "
        "c grows, tau(softmax(c S)) -> 1 if two rows have theirs in different columns, 1 - tau <= "
        "2(n-1) e^(-cg); if all rows have theirs in one column tau -> 0, tau <= (n-1) e^(-cg). "
        "So a state X = s X_1 with s -> infinity (content logits grow like s^2) makes tau -> 1 "
        "unless all its tokens look at the same one.",
        "The floors of T7b-certificate for one feature, 1/(K sqrt(2n)) with K >= (1-1/n)/(1-tau), "
        "tend to 0 as tau -> 1, and what its matrix form needs, p > tau q, tends to p >= q.",
        "That is no weakness of the proof: for all 0 < p < q <= 1 and p/q < tau < 1 there are one "
        "fixed A with tau(A) = tau, one W with spectrum {-q, -p} and an X_0 with HFC/LFC -> 0 "
        "geometrically. So no floor for every X_0 holds for all tau < 1 when p < q.",
    ),
    latex=r"1-\tau(\operatorname{softmax}(cS))\le 2(n-1)e^{-cg},\qquad "
    r"\Big(\tfrac{1-\tau q}{1-p}\Big)^L\to0\ \text{ for } p<\tau q",
    source="ours",
    on_record=by.WRITTEN,
    setting="0 < p < q <= 1 in clause 3, p < 1",
    evidence=(
        by.written(
            "one-hot rows",
            "[1] A row gives at most e = (n-1) e^(-cg) to all entries beside its largest. Two rows "
            "with different columns then have half their l1 distance at least 1 - 2e. With one "
            "column, that half distance is the sum of the positive differences in one order or the "
            "other: in the order in which the column itself has none it is at most e.",
            "[2] K >= (1 - 1/n)/(1 - tau) in T7b-certificate, which tends to infinity.",
            _tight,
        ),
        by.for_all(
            "the factor of clause 3 is in [0, 1)",
            given="0 < p; p < 1; q <= 1; t < 1; p < t*q; 0 < t",
            then="0 <= 1 - t*q and 1 - t*q < 1 - p",
            at="p=1/4, q=1, t=1/2",
            covers=(3,),
        ).unless("p > t q", without="p < t*q", given="p > t*q"),
        by.searched("integer logits, base 2, exactly", _law, _logits()),
    ),
    further="One feature, d = 1: whether the true floor goes to 0 as tau -> 1 for every n is not "
    "said here.",
)
