"""T2e: what "all eigenvalues of H in [-1, 0]" guarantees, and what it does not."""

from fractions import Fraction

from hypothesis import assume, strategies as st

from oversmoothing.theory.depth.ratios import exact_state
from oversmoothing.theory.layer.golden import golden_case
from oversmoothing.theory.proofs.instances import A3
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, spectra, verdict

# Diagonalisable, spectrum {0, -1/2}, not normal: E_0 = I + 2H is no orthogonal projector.
SKEW_H = exact.matrix("0 1; 0 -1/2")
SKEW_PROJECTOR = exact.matrix("1 2; 0 0")


def _dominant_mode() -> None:
    """[1; instance] All h in [-1, 0), spec(A) real or complex: rho_Q > rho_C by the query on every
    mode. Take a dominant (a, h) of the quotient, mu = 1 + ha, with left eigenvectors w^T A = a w^T
    and z^T H = h z^T. As a != 1 and A1 = 1, w^T 1 = 0; so w^T X_L z = mu^L w^T X_0 z and ||HFC_L||
    >= |mu|^L |w^T X_0 z|/(||w|| ||z||), for any Jordan structure. Outside the proper subspace w^T
    X_0 z = 0 this beats c_L = c_0 (I+W)^L, which is O((rho_C + eps)^L): t = ||HFC||/(sqrt n ||c||)
    -> infinity geometrically. (T3d.)"""
    # GT11, w = left eigenvector of A3 at 1/5, orthogonal to 1: w^T X_L = (9/10)^L w^T X_0.
    case = golden_case("GT11")
    w = [Fraction(x) for x in (2, 1, -3)]
    assert [sum(w[i] * case.A[i][j] for i in range(3)) for j in range(3)] == [x / 5 for x in w]
    assert sum(w) == 0
    start = sum(x * row[0] for x, row in zip(w, case.X0, strict=True))
    for depth in (1, 7, 40):
        X = exact.layer(case.A, case.H, case.X0, depth)
        measured = sum(x * row[0] for x, row in zip(w, X, strict=True))
        assert measured == Fraction(9, 10) ** depth * start
        assert exact.squared_norms(X)[0] * sum(x * x for x in w) >= measured**2


def _fixed_part() -> None:
    """[2; instance] Some h = 0, semisimple, the others in [-1, 0). E_0 the spectral projector of H
    at 0, Pi_0 = E_0^T: W Pi_0 = (E_0 H)^T = 0, so X' Pi_0 = X Pi_0 whatever A is, even if it
    changes: X_L Pi_0 = X_0 Pi_0."""
    Pi = exact.transposed(SKEW_PROJECTOR)
    zero = next(value.factor for value in spectra.spectrum(SKEW_H) if value.is_zero)
    assert spectra.spectral_projector(SKEW_H, zero) == SKEW_PROJECTOR
    assert exact.product(SKEW_PROJECTOR, SKEW_PROJECTOR) == SKEW_PROJECTOR
    assert exact.product(SKEW_H, SKEW_PROJECTOR) == exact.matrix("0 0; 0 0")
    X0 = exact.matrix("1 2; 3 5; -1 4")
    for depth in (1, 5, 30):
        assert exact.product(exact.layer(A3, SKEW_H, X0, depth), Pi) == exact.product(X0, Pi)


def _projector_limit() -> None:
    """[3; instance] If moreover |a_i - 1| < 1 for all i (for real spectra: a_1 > 0), then |1+ha| =
    |1 - |h| + |h|(1-a)| <= 1 - |h| + |h||1-a| < 1 for h in [-1, 0) and every a of A with a != 1,
    and |1+h| < 1: X_0 (I - Pi_0) dies out, and X_L -> X_0 Pi_0. The dominant modes are exactly (h =
    0, a_i), tied at 1, and HFC/LFC -> ||P X_0 Pi_0||/||11^T X_0 Pi_0/n||, for every X_0 for which
    this is not 0/0. Pi_0 is not the orthogonal projector."""
    # a_1 = 1/5 > 0; and the circulant of weights 7/10, 1/5, 1/10 has complex a_i, whose |a_i - 1|^2
    # is that of 3/10 - w/5 - w^2/10 for a primitive cube root w.
    assert Fraction(9, 20) ** 2 + 3 * Fraction(1, 20) ** 2 < 1
    X0 = exact.matrix("1 2; 3 5; -1 4")
    limit = exact.squared_ratio(exact.product(X0, exact.transposed(SKEW_PROJECTOR)))
    orthogonal = exact.squared_ratio(exact.product(X0, exact.matrix("1 0; 0 0")))
    for A in (A3, exact.matrix("7/10 1/5 1/10; 1/10 7/10 1/5; 1/5 1/10 7/10")):
        reached = exact.squared_ratio(exact.layer(A, SKEW_H, X0, 300))
        assert abs(reached - limit) < Fraction(1, 10**9) < abs(orthogonal - limit)
    assert verdict(A=A3, H=SKEW_H).verdict == "TIE"


def _zero_eigenvalue() -> None:
    """[instance] a_1 = 0: the modes (h_j, a_1) have mu = 1 as well; they add an HFC term, and an
    LFC term (1/n - pi)^T HFC if A is not doubly stochastic: the limit above fails."""
    H, X0 = exact.matrix("0 0; 0 -1"), exact.matrix("1 2; 3 5")
    expected = exact.squared_ratio(exact.product(X0, exact.matrix("1 0; 0 0")))
    for A in (exact.uniform(2), exact.matrix("1/4 3/4; 1/4 3/4")):
        X = exact.layer(A, H, X0, 50)
        assert exact.layer(A, H, X0, 1) == X, "settled after one layer"
        assert exact.squared_norms(X)[0] == exact.squared_norms(X0)[0]
        assert exact.squared_ratio(X) != expected
    assert [row[1:] for row in exact.layer(exact.uniform(2), H, X0, 9)] == exact.matrix("-3/2; 3/2")
    skew = exact.layer(exact.matrix("1/4 3/4; 1/4 3/4"), H, X0, 9)
    assert sum(row[1] for row in skew) == Fraction(-3, 2), "an LFC term"


def _floor_law(A: Matrix, values: list[Fraction], S: Matrix, inverse: Matrix, X0: Matrix) -> None:
    """||HFC_L|| >= ||P X_0 Pi_0|| / ||Pi_0||_F for every L, whatever the row-stochastic A."""
    H = exact.product(S, exact.diagonal(values), inverse)
    Pi = exact.transposed(
        exact.product(S, exact.diagonal(int(value == 0) for value in values), inverse)
    )
    fixed = exact.product(X0, Pi)
    size = sum(x * x for row in Pi for x in row)
    for depth, X in exact_state(A, H, X0, [1, 2, 9]).items():
        assert depth > 0 and exact.product(X, Pi) == fixed
        assert exact.squared_norms(X)[0] * size >= exact.squared_norms(fixed)[0]
    # The exact verdict never says SMOOTHING.
    assert verdict(A=A, H=H).verdict != "SMOOTHING"


@st.composite
def _with_kernel(draw_from: st.DrawFn) -> tuple[Matrix, list[Fraction], Matrix, Matrix, Matrix]:
    """A, the spectrum of H (0 and some of [-1, 0]), a basis with its inverse, and X_0."""
    A = draw_from(draw.attention(2, 4))
    values = [Fraction(0), *draw_from(draw.lists(draw.fractions(-1, 0), 1, 2))]
    S, inverse = draw_from(draw.unimodular(len(values)))
    return A, values, S, inverse, draw_from(draw.states(len(A), len(values)))


def _generic_law(A: Matrix, values: list[Fraction], X0: Matrix) -> None:
    """All h in [-1, 0): NON_SMOOTHING; c decays at rho_C and HFC never vanishes."""
    d, H = len(values), exact.diagonal(values)
    X0 = [row[:d] for row in X0[: len(A)]]
    pi = spectra.stationary(A)

    def t_squared(X: Matrix) -> tuple[Fraction, Fraction]:
        c = exact.weighted_mean(pi, X)
        return exact.squared_norms(X)[0], exact.dot(c, c)

    states = exact_state(A, H, X0, [1, 40])
    (first_hfc, first_c), (hfc, c) = t_squared(states[1]), t_squared(states[40])
    assume(first_hfc > 0 and first_c > 0)
    # ||c_L|| <= rho_C ||c_(L-1)|| for a diagonal H, and 1 + ha != 0 keeps HFC alive.
    rho = max(abs(1 + h) for h in values)
    assert c <= rho**78 * first_c
    assert hfc > 0
    assert verdict(A=A, H=H).verdict == "NON_SMOOTHING"


def _gt14() -> None:
    """[4; instance] So is X_0 outside the null set: GT14, H = diag(0, -1), A = [[3/4, 1/4], [1/4,
    3/4]], X_0 = [[1, 1], [1, -1]] has P X_0 Pi_0 = 0 and HFC/LFC = 2^-L."""
    # Column 1 is constant and stays; column 2 = (1, -1) is halved by every layer.
    case = golden_case("GT14")
    for depth in (1, 2, 5, 10, 60):
        X = exact.layer(case.A, case.H, case.X0, depth)
        assert exact.squared_ratio(X) == Fraction(1, 4**depth)


_PROOF = by.written(
    "every case of the closed interval",
    _dominant_mode,
    "[1] By ||m - c|| <= delta ||HFC||, ||LFC|| = sqrt n ||m||: HFC/LFC >= 1/(sqrt n delta + 1/t) "
    "(T1e). So liminf HFC/LFC >= 1/(sqrt n delta) > 0: no oversmoothing.",
    _fixed_part,
    "[2] Hence ||HFC_L|| >= ||P X_0 Pi_0||/||Pi_0||_2 for every L. And c_L = c_0 Pi_0 + c_0 (I - "
    "Pi_0)(I+W)^L is bounded, since the other |1+h| < 1. So t is bounded below, and HFC/LFC has a "
    "positive floor for every L, for every X_0 with P X_0 Pi_0 != 0, every positive A, real "
    "spectrum or not: no oversmoothing. (rho_Q >= 1 = rho_C: h = 0 has the multiplier 1 on both "
    "sides.)",
    _projector_limit,
    _zero_eigenvalue,
    "[4] Semisimplicity of h = 0 is needed: GT12, H = [[0, 1], [0, 0]], A = 11^T/2, has all "
    "lambda_H = 0 and HFC/LFC ~ C/L -> 0 for every X_0 whose second column has mean != 0 (T6b).",
    _gt14,
    "[5] h = 0 alone, semisimple: H = 0 and X_L = X_0, which never smooths.",
)


@given.condition("the eigenvalue 0 of H is semisimple", given.case(H="0 1; 0 0"))
def _semisimple_at_zero(instance: given.Instance) -> bool:
    return all(
        max(value.factor.jordan) == 1 for value in spectra.spectrum(instance.H) if value.is_zero
    )


@given.condition(
    "P X_0 Pi_0 != 0 (P X_0 != 0 where 0 is no eigenvalue)",
    given.case(H="-1/2", X0="2; 2"),
    given.case(H="0 0; 0 -1", X0="1 1; 1 -1"),
)
def _not_all_consensus(instance: given.Instance) -> bool:
    if instance.X0 is None:
        return True
    zero = [value.factor for value in spectra.spectrum(instance.H) if value.is_zero]
    if not zero:
        return exact.squared_norms(instance.X0)[0] > 0
    fixed = exact.product(
        instance.X0, exact.transposed(spectra.spectral_projector(instance.H, zero[0]))
    )
    return exact.squared_norms(fixed)[0] > 0


CLAIM = Claim(
    name="T2e",
    clauses=(
        "A and W the same in every layer, n >= 2, every eigenvalue of H real and in [-1, 0], 0 "
        "semisimple if it occurs. All h in [-1, 0): liminf HFC/LFC >= 1/(sqrt n delta) for "
        "generic X_0, whatever the spectrum of A.",
        "Some h = 0: never strict smoothing, and a positive floor for every L and every X_0 with"
        " P X_0 Pi_0 != 0;",
        "if |a_i - 1| < 1 for all i (real: a_1 > 0) then HFC/LFC -> ||P X_0 Pi_0||/||11^T X_0 "
        "Pi_0/n||, with Pi_0 the transposed spectral projector of H at 0.",
        "Neither condition can be dropped: a defective 0 smooths like 1/L for generic X_0 "
        "(GT12), a special X_0 smooths like 2^-L (GT14).",
        "h = 0 alone never smooths.",
    ),
    latex=r"\lambda_H\in[-1,0],\ 0\ \text{semisimple},\ PX_0\Pi_0\ne0 \implies "
    r"\inf_L \frac{\|HFC_L\|}{\|LFC_L\|}>0",
    source="ours, repairing the control statement of arXiv 2401.04301 v3",
    on_record=by.WRITTEN,
    hypotheses=(
        given.POSITIVE,
        given.TWO_TOKENS,
        given.CLOSED,
        _semisimple_at_zero,
        _not_all_consensus,
    ),
    evidence=(
        _PROOF,
        by.searched(
            "the floor in fractions, whatever A",
            _floor_law,
            _with_kernel(),
            at=lambda A, values, S, inverse, X0: (
                A,
                exact.product(S, exact.diagonal(values), inverse),
                X0,
            ),
        ),
        by.searched(
            "all h in [-1, 0) in fractions",
            _generic_law,
            draw.attention(2, 3),
            draw.lists(draw.fractions(-1, 0, 6).filter(bool), 1, 2),
            draw.states(3, 2),
            at=lambda A, values, X0: (
                A,
                exact.diagonal(values),
                [row[: len(values)] for row in X0[: len(A)]],
            ),
        ),
    ),
    further="With a real eigenbasis of H and tau(A) < 1 the certificate T7b-certificate gives a "
    "floor without genericity, and for attention that changes.",
)
