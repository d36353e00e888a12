"""T12a: recall in the linear model: its fixed point, when loops reach it, what differs there."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import A3, AA, Claim, Matrix, by, draw, exact


def _recalled(A: Matrix, H: Matrix, fixed: Matrix, beta: Fraction) -> Matrix:
    """The X_0 whose fixed point is given: -A X* W/beta."""
    return exact.scaled(-1 / beta, exact.product(A, fixed, exact.transposed(H)))


def _loop(A: Matrix, H: Matrix, X: Matrix, X0: Matrix, beta: Fraction) -> Matrix:
    return exact.plus(exact.layer(A, H, X), X0, beta)


def _beyond_one() -> None:
    """[2; general] A = [[3, -2], [-2, 3]] has the eigenvalues 1 and 5. At h = -1/2 a difference (x,
    -x) is multiplied by 1 + 5 h = -3/2 in each loop: that start leaves X*, though -2 < h < 0 and 1,
    5 > 0."""
    A, H, beta = exact.matrix("3 -2; -2 3"), [[Fraction(-1, 2)]], Fraction(1)
    ones, away = exact.column("1 1"), exact.column("1 -1")
    assert (exact.product(A, ones), exact.product(A, away)) == (ones, exact.scaled("5", away))
    fixed = exact.column("1 0")
    X0 = _recalled(A, H, fixed, beta)
    assert _loop(A, H, fixed, X0, beta) == fixed
    moved = exact.plus(_loop(A, H, exact.plus(fixed, away), X0, beta), fixed, -1)
    assert moved == exact.scaled("-3/2", away)


def _stands_still() -> None:
    """[3; instance] One token, h = -3, beta = 3: |1 + h| = 2, and X_0 -> X_0 - 3 X_0 + 3 X_0 = X_0;
    the start 2 X_0 goes to -X_0, 5 X_0, -7 X_0."""
    A, H, X0, beta = exact.identity(1), [[Fraction(-3)]], [[Fraction(1)]], Fraction(3)
    assert _loop(A, H, X0, X0, beta) == X0
    seen = [[[Fraction(2)]]]
    for _ in range(3):
        seen.append(_loop(A, H, seen[-1], X0, beta))
    assert [X[0][0] for X in seen] == [2, -1, 5, -7]


def _two_features() -> None:
    """[5; general] A with a = 1/2, H = -diag(1/10, 1), beta = 1: |1 + h_j a_i| < 1 throughout, X_0
    = [[1, 1], [1, -1]] with HFC/LFC = 1, X* = [[10, 2], [10, -2]] with 1/5."""
    H, X0 = exact.diagonal("-1/10 -1"), exact.matrix("1 1; 1 -1")
    fixed = exact.matrix("10 2; 10 -2")
    assert _loop(AA, H, fixed, X0, Fraction(1)) == fixed
    assert exact.squared_ratio(X0) == 1
    assert exact.squared_ratio(fixed) == Fraction(1, 25)


def _not_symmetric() -> None:
    """[5; general] A3 (eigenvalues 1, 1/2, 1/5; not symmetric), h = -1, beta = 1: X_0 = A3 X* with
    X* = (1, -2, 0) has (HFC/LFC)^2 = 175/2, X* has 14."""
    fixed = exact.column("1 -2 0")
    X0 = _recalled(A3, [[Fraction(-1)]], fixed, Fraction(1))
    assert _loop(A3, [[Fraction(-1)]], fixed, X0, Fraction(1)) == fixed
    assert exact.squared_ratio(X0) == Fraction(175, 2)
    assert exact.squared_ratio(fixed) == 14


@st.composite
def _drawn(pick: st.DrawFn) -> tuple[list[Fraction], Fraction, Fraction, Matrix, Matrix]:
    """Weights x, y, z of a symmetric circulant A (x, y, z, y), h, beta, X*, a start."""
    weights = pick(draw.lists(draw.fractions(0, 3).filter(bool), 3))
    number = draw.fractions(-3, 3).filter(bool)
    return weights, pick(number), pick(number), pick(draw.states(4, 2)), pick(draw.states(4, 2))


def _law(
    weights: list[Fraction], h: Fraction, beta: Fraction, fixed: Matrix, start: Matrix
) -> None:
    """Four tokens; A has 1, x - z twice and x - 2y + z for eigenvalues."""
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
        assert _squares(away) <= rate * _squares(before)


def _squares(X: Matrix) -> Fraction:
    return sum((x * x for row in X for x in row), Fraction(0))


CLAIM = Claim(
    name="T12a",
    clauses=(
        "X' = X + A X W + beta X_0, beta != 0, A and H invertible: there is one fixed point, X* = "
        "-beta A^-1 X_0 W^-1. In eigenbases the mode (i, j) of X_0 is multiplied by -beta/(a_i "
        "h_j). All tokens are equal in X* iff they are in X_0.",
        "Every start converges, whatever X_0 is, iff |1 + h_j a_i| < 1 for all i and j (1 is among "
        "the a_i). A and H are invertible then, and the limit is X*. For A >= 0, real a_i and "
        "one real h: iff -2 < h < 0 and every a_i > 0. Without A >= 0 an a_i above 1 can break "
        "that.",
        "The loop that starts at the X_0 it recalls may converge without that: a mode with h_j a_i "
        "= -beta stands still. A mode of X_0 with h_j a_i = 0 grows at least linearly.",
        "A symmetric and invertible, H = h I: HFC/LFC of X* is at least that of X_0 over max over "
        "i < n of |a_i|, so at least that of X_0: what recall converges to is not smoother.",
        "Without H = h I, or without symmetry, it may be smoother.",
    ),
    latex=r"X^*=-\beta A^{-1}X_0W^{-1},\qquad \frac{\mathrm{HFC}}{\mathrm{LFC}}(X^*)\ \ge\ "
    r"\frac{1}{\max_{i<n}|a_i|}\,\frac{\mathrm{HFC}}{\mathrm{LFC}}(X_0)\quad(A=A^\top,\ H=hI)",
    source="ours",
    on_record=by.WRITTEN,
    setting="A 1 = 1; A >= 0 in clause 4 and where clause 2 says so",
    evidence=(
        by.written(
            "an affine map with the linear part of T1a",
            "[1] A X W = -beta X_0 has one solution iff A and W are invertible; on a product of "
            "eigenvectors A^-1 and W^-1 are 1/a_i and 1/h_j. A^-1 1 = 1, so A keeps the states 1 "
            "c^T, and so does its inverse, W acting on c.",
            "[2] By T1a vec X_t moves by M = I + H (x) A with the eigenvalues 1 + h_j a_i, plus "
            "beta vec X_0. All inside the circle: none is 1, so A and H are invertible, and X_t - "
            "X* = M^t (X_start - X*) tends to 0. If one is not: for X_0 = 0 a start in its "
            "eigenspace does not converge unless it is 1; if it is 1, an X_0 that its left "
            "eigenvector sees adds beta times the same number in every loop.",
            "[2] A >= 0 and A 1 = 1: |a_i| <= 1, so real a_i are at most 1, one of them is 1, and "
            "the query below decides for each of the others.",
            _beyond_one,
            "[3] On a product of eigenvectors x' = (1 + h_j a_i) x + beta x_0, which keeps x = x_0 "
            "for h_j a_i = -beta and adds beta x_0 for h_j a_i = 0 (along the left eigenvector, if "
            "defective).",
            _stands_still,
            "[4] A symmetric and A 1 = 1: A^-1 commutes with P, the mean of X* is -beta/h times "
            "that of X_0, and ||A^-1 P X_0|| >= ||P X_0||/max over i < n of |a_i|. A is row-"
            "stochastic: |a_i| <= 1.",
            _two_features,
            _not_symmetric,
        ),
        by.for_all(
            "real a <= 1 beside a = 1: -2 < h < 0 and a > 0",
            given="a <= 1",
            then="((1+h)**2 < 1 and (1+h*a)**2 < 1) == (-2 < h and h < 0 and a > 0)",
            at="a=1/2, h=-1",
            covers=(2,),
        )
        .unless("a > 0 left out", then="((1+h)**2 < 1 and (1+h*a)**2 < 1) == (-2 < h and h < 0)")
        .unless("any real a, as without A >= 0", without="a <= 1", at="a=5, h=-1/2"),
        by.searched("four tokens in fractions", _law, _drawn()),
    ),
    further="HFC/LFC of X* for H with several eigenvalues",
)
