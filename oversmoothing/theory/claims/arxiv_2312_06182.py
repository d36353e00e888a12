"""What the claims of arxiv_2312_06182.md execute."""

from fractions import Fraction
from itertools import product as pairs

import sympy as sp
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.lemmas import logits, with_state
from oversmoothing.theory.depth.recurrence import layer_rows
from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.proofs.checks import L, around, induction
from oversmoothing.theory.proofs.kit import Matrix, draw, equal, exact, given, search, spectra

# escalating
AFTER, BEFORE = "after", "before"


def removal(n: int, tau: Fraction) -> Matrix:
    """I - tau J [n, n]."""
    return exact.plus(exact.identity(n), exact.uniform(n), -tau)


def removed(X: Matrix, tau: Fraction) -> Matrix:
    """(I - tau J) X: the mean of the tokens multiplied by 1 - tau."""
    return exact.product(removal(len(X), tau), X)


def step_escalating(A: Matrix, H: Matrix, X: Matrix, tau: Fraction, place: str) -> Matrix:
    """One layer with the removal after the update or before it."""
    if place == AFTER:
        return removed(exact.layer(A, H, X), tau)
    return exact.layer(A, H, removed(X, tau))


def operator(A: Matrix, H: Matrix, tau: Fraction, place: str) -> Matrix:
    """The composed layer [n d, n d] on the rows of X one after the other."""
    plain, remove = layer_rows(A, H), exact.kronecker(removal(len(A), tau), exact.identity(len(H)))
    return exact.product(remove, plain) if place == AFTER else exact.product(plain, remove)


# N-2312.06182-bound
SYMMETRIC = given.Hypothesis(
    "A is symmetric and row-stochastic",
    lambda case: given.is_stochastic(case.A) and exact.transposed(case.A) == case.A,
    (given.case("1/2 1/2; 1/4 3/4"), given.case("1 1; 1 0")),
)


@search(with_state(draw.walsh_attention(), 1), draw.fractions(0, 3), at="A")
def law_bound(A: Matrix, values: list[Fraction], X: Matrix, w: Fraction) -> None:
    """W = w or -w with equal chances: E W = 0, E W^2 = s = w^2. Exactly, one feature."""
    hfc, lfc = exact.squared_norms(X)
    assume(lfc != 0)
    s, gap = w * w, 1 - max(a * a for a in values)
    moved = [exact.squared_norms(exact.layer(A, [[h]], X)) for h in (w, -w)]
    after_hfc, after_lfc = (sum(pair, Fraction(0)) / 2 for pair in zip(*moved, strict=True))
    assert after_lfc == (1 + s) * lfc
    before = lfc / (lfc + hfc)
    rate = after_lfc / (after_lfc + after_hfc) / before
    assert rate * (1 + s - s * gap * (1 - before)) >= 1 + s


# N-2312.06182-bound-any-attention
def on_average(A_1: Matrix, H_1: Matrix, X0_1: Matrix, H_2: Matrix) -> None:
    hfc, lfc = exact.squared_norms(X0_1)
    equal(lfc / (hfc + lfc), Fraction(1, 17))
    pairs = [exact.squared_norms(exact.layer(A_1, H, X0_1)) for H in (H_1, H_2)]
    equal([low for _, low in pairs], [2, 2])
    total = sum(high + low for high, low in pairs)
    equal(sum(low for _, low in pairs) / total, Fraction(1, 18))


# N-2312.06182-changing
GAP = given.Hypothesis(
    "the second eigenvalue of the A of each layer is 0",
    lambda case: spectra.values(case.A)[:-1] == [0] * (len(case.A) - 1),
    (given.case(),),
)
# Smallest denominators over rows in thirds to fifths (exhaustive); two tokens cannot do it.
_V = exact.column("-2 1 1")


# N-2312.06182-escalation
def similarity() -> sp.Expr:
    hfc, lfc = sp.symbols("hfc lfc", positive=True)
    r = hfc / lfc
    return sp.simplify(1 - lfc**2 / (hfc**2 + lfc**2) - r**2 / (1 + r**2))


# N-2312.06182-remedy
def growth() -> list[sp.Expr]:
    L = sp.Symbol("L", integer=True, nonnegative=True)
    block = sp.Matrix([[2, 1], [0, 2]])
    power = sp.Matrix([[2**L, L * 2 ** (L - 1)], [0, 2**L]])
    return [*(power.subs(L, 0) - sp.eye(2)), *(power.subs(L, L + 1) - power * block)]


def thresholds() -> None:
    rate, taus = Fraction(5, 6), map(Fraction, ["0", "1/12", "1/6", "1/2", "11/6", "2", "3"])
    for t, place in pairs(taus, (AFTER, BEFORE)):
        X = exact.column("1 2")
        for _ in range(4):
            Z = step_escalating(exact.AA, exact.matrix("1/2"), X, t, place)
            (hfc, lfc), (moved, low) = exact.squared_norms(X), exact.squared_norms(Z)
            equal(moved * lfc * (1 - t) ** 2, hfc * low * rate**2)
            X = Z
    X = step_escalating(exact.AA, exact.matrix("1/2"), exact.column("1 2"), Fraction(1), AFTER)
    equal(exact.squared_norms(X)[1], 0)


@search(draw.exact_cases(4, 2), draw.fractions(-2, 4), at="A H X0")
def law_remedy(A: Matrix, H: Matrix, X0: Matrix, tau: Fraction) -> None:
    expected = exact.characteristic(exact.scaled(1 - tau, exact.plus_identity(H)))
    quotient = exact.kronecker(H, rational_quotient(A))
    expected *= exact.characteristic(exact.plus_identity(quotient))
    for place in (AFTER, BEFORE):
        equal(exact.characteristic(operator(A, H, tau, place)), expected)
        X = X0
        for depth in range(1, 4):
            X = step_escalating(A, H, X, tau, place)
            equal(exact.centred(X), exact.centred(exact.layer(A, H, X0, depth)))


# N-2312.06182-remedy-content
def _differences(X: Matrix, M: Matrix) -> Matrix:
    """l_ij - l_in: what a softmax sees of logits x_i^T M x_j."""
    return [[x - row[-1] for x in row] for row in logits(X, M)]


def cubic() -> list[sp.Expr]:
    e, w = sp.symbols("e w")
    y = e * sp.Matrix([1, 2, -3])
    weights = (y * y.T).applyfunc(sp.exp)
    moved = [w * (weights[i, :] * y)[0] / sum(weights[i, :]) for i in range(3)]
    return [sp.diff(x, e, k).subs(e, 0) for x in moved for k in (0, 1, 2)]


@search(
    with_state(st.integers(2, 4), st.integers(1, 2)),
    draw.lists(draw.fractions(-2, 2, 4), 4),
    draw.lists(draw.fractions(-3, 3, 4), 2),
)
def law_remedy_content(X: Matrix, entries: list[Fraction], mean: list[Fraction]) -> None:
    """Logits with the mean and without differ by (M^T mean)^T (y_j - y_n) alone."""
    d = len(X[0])
    M = [entries[k * d : (k + 1) * d] for k in range(d)]
    Y = exact.centred(X)
    moved = [[y + m for y, m in zip(row, mean, strict=False)] for row in Y]
    row = exact.product([mean[:d]], M)
    column = [exact.dot(row[0], y) for y in Y]
    wanted = [
        [x + c - column[-1] for x, c in zip(part, column, strict=True)]
        for part in _differences(Y, M)
    ]
    equal(_differences(moved, M), wanted)


# N-2312.06182-remedy-limit
def below_the_floor() -> None:
    A, h, tau = exact.matrix("1/2 1/2; 1/4 3/4"), Fraction(1), Fraction(2, 5)
    equal(abs(1 - tau) * (1 + h) < 1 + h / 4, True)
    for place, X in ((BEFORE, exact.column("4 6")), (AFTER, exact.column("2 4"))):
        equal(step_escalating(A, [[h]], X, tau, place), exact.scaled(Fraction(5, 4), X))
        hfc, lfc = exact.squared_norms(X)
        equal(hfc / lfc, Fraction(1, 25) if place == BEFORE else Fraction(1, 9))


@search(
    draw.two_token_attention(),
    draw.fractions(-3, 3),
    draw.fractions(-1, 3),
    st.sampled_from([AFTER, BEFORE]),
    at="A h",
)
def law_remedy_limit(A: Matrix, a: Fraction, h: Fraction, tau: Fraction, place: str) -> None:
    """Two tokens: the mode is an eigenvector of the composed layer, with the predicted ratio."""
    p, q = A[0][1], A[1][0]
    assume(h != 0 and p != q and (place == BEFORE or tau != 1))
    mu, weight = 1 + h * a, (1 - tau if place == AFTER else Fraction(1))
    assume(mu != (1 - tau) * (1 + h))
    kappa = weight * h * (q - p) / (mu - (1 - tau) * (1 + h))
    X = [[kappa + 1], [kappa - 1]]
    equal(step_escalating(A, [[h]], X, tau, place), exact.scaled(mu, X))
    hfc, lfc = exact.squared_norms(X)
    factor = (1 - tau * (1 + h) / (h * (1 - a))) / weight
    equal(hfc * (p - q) ** 2, lfc * factor**2 * (p + q) ** 2)


H_HAS_ONE_EIGENVALUE = given.Hypothesis(
    "H has one eigenvalue h != 0 (d = 1; for several, the dominant one)",
    lambda case: len(case.H) == 1 and case.H[0][0] != 0,
    (given.case(H="0"), given.case(H="1 0; 0 1")),
)

# N-2312.06182-remedy-partial
_ALONG, _ACROSS = exact.column("1 1"), exact.column("-1 1")


# N-2312.06182-residual-gap
def slower(A: Matrix, H: Matrix, X0: Matrix) -> None:
    state = around(2**L, sp.Rational(3, 2) ** L)
    induction(A, H, X0, state, sp.Rational(9, 16) ** L)


def reversed(A: Matrix, X0: Matrix) -> None:
    state = around(sp.Rational(1, 2) ** L, sp.Rational(3, 4) ** L)
    induction(A, exact.matrix("-1/2"), X0, state, sp.Rational(9, 4) ** L)
