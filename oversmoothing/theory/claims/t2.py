"""What the claims of t2.md execute."""

from fractions import Fraction
from itertools import count

from hypothesis import strategies as st

from oversmoothing.theory.claims.golden import golden_case
from oversmoothing.theory.depth.ratios import exact_state
from oversmoothing.theory.proofs.kit import Matrix, draw, exact, given, search, spectra, verdict
from oversmoothing.theory.verdict.formulas import real_verdict, threshold


# T2b
@search(draw.two_token_attention(), draw.fractions(-6, 3), at="A h")
def matrix_law(A: Matrix, a: Fraction, h: Fraction) -> None:
    assert verdict(A=A, H=[[h]]).verdict == real_verdict(h, h, a)
    assert verdict(A=A, H=[[threshold(a)]]).verdict == "TIE"


# T2d
@search(draw.walsh_attention(), draw.value_projections(3), at="A H")
def matrix_law_d(A: Matrix, a_values: list[Fraction], H: Matrix, h_values: list[Fraction]) -> None:
    closed = real_verdict(min(h_values), max(h_values), min(a_values))
    assert verdict(A=A, H=H).verdict == closed


# T2d-ii
def flat() -> None:
    for n in (2, 3, 5):
        for a in (Fraction(0), Fraction(1, 2), Fraction(999, 1000)):
            A = exact.flat(a, n)
            assert given.is_positive(A)
            # (A - aI) is (1-a)/n times the matrix of ones, of rank 1 and trace 1 - a.
            assert {A[i][j] - a * int(i == j) for i in range(n) for j in range(n)} == {(1 - a) / n}


def wide_example() -> None:
    # {-6/5, -1/2} leaves [-1, 0), but its maximiser -1/2 does not.
    H = exact.matrix("-6/5 0; 0 -1/2")
    for n in (2, 3):
        for k in range(20):
            assert verdict(A=exact.flat(Fraction(k, 20), n), H=H).verdict == "NON_SMOOTHING"
    A = [[Fraction(1, 50), Fraction(49, 50)], [Fraction(49, 50), Fraction(1, 50)]]
    assert verdict(A=A, H=H).verdict == "NON_SMOOTHING"


# h anywhere, or -1/z with Re z about 1, the rim; a anywhere or real, close to 1 and -1 too.
_H_POINTS = draw.gaussian_points(2) | st.tuples(
    draw.fractions(Fraction(1, 2), 1) | draw.fractions(1, 2), draw.fractions(-2, 2, 4)
).map(lambda z: (-z[0] / (z[0] ** 2 + z[1] ** 2), z[1] / (z[0] ** 2 + z[1] ** 2)))
_A_POINTS = draw.gaussian_disc() | st.tuples(draw.inside(-1, 1), st.just(Fraction(0)))


@search(draw.lists(_H_POINTS, 1, 3), draw.lists(_A_POINTS, 1, 5))
def law_d_ii(values: list[spectra.Gaussian], points: list[tuple[Fraction, Fraction]]) -> None:
    h_values = [(x, sign * y) for x, y in values for sign in (1, -1)]
    radius = max(spectra.squared_modulus(h, 1) for h in h_values)
    maximisers = [h for h in h_values if spectra.squared_modulus(h, 1) == radius]
    if not any(spectra.in_universal_disc(*h) for h in maximisers):
        # Some a in [0, 1) at which the spectrum is not non-smoothing; a moves towards 1.
        nearer = (1 - Fraction(1, 2**k) for k in count())
        assert any(spectra.by_moduli(h_values, [a]) != "NON_SMOOTHING" for a in nearer)
        return
    for u, v in points:
        assert spectra.by_moduli(h_values, [(u, v), (u, -v)]) == "NON_SMOOTHING"


# T2e
# Diagonalisable, spectrum {0, -1/2}, not normal: E_0 = I + 2H is no orthogonal projector.
SKEW_H = exact.matrix("0 1; 0 -1/2")
SKEW_PROJECTOR = exact.matrix("1 2; 0 0")


def dominant_mode() -> None:
    # GT11, w = left eigenvector of A3 at 1/5, orthogonal to 1: w^T X_L = (9/10)^L w^T X_0.
    case = golden_case("GT11")
    w = [Fraction(x) for x in (2, 1, -3)]
    assert exact.product([w], case.A) == exact.scaled("1/5", [w]) and sum(w) == 0
    (start,) = exact.weighted_mean(w, case.X0)
    for depth in (1, 7, 40):
        X = exact.layer(case.A, case.H, case.X0, depth)
        (measured,) = exact.weighted_mean(w, X)
        assert measured == Fraction(9, 10) ** depth * start
        assert exact.squared_norms(X)[0] * exact.dot(w, w) >= measured**2


def projector_limit() -> None:
    # a_1 = 1/5 > 0; and the circulant of weights 7/10, 1/5, 1/10 has complex a_i, whose |a_i - 1|^2
    # is that of 3/10 - w/5 - w^2/10 for a primitive cube root w.
    assert Fraction(9, 20) ** 2 + 3 * Fraction(1, 20) ** 2 < 1
    X0 = exact.matrix("1 2; 3 5; -1 4")
    limit = exact.squared_ratio(exact.product(X0, exact.transposed(SKEW_PROJECTOR)))
    orthogonal = exact.squared_ratio(exact.product(X0, exact.matrix("1 0; 0 0")))
    for A in (exact.A3, exact.matrix("7/10 1/5 1/10; 1/10 7/10 1/5; 1/5 1/10 7/10")):
        reached = exact.squared_ratio(exact.layer(A, SKEW_H, X0, 300))
        assert abs(reached - limit) < Fraction(1, 10**9) < abs(orthogonal - limit)
    assert verdict(A=exact.A3, H=SKEW_H).verdict == "TIE"


def zero_eigenvalue() -> None:
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


@st.composite
def _with_kernel(draw_from: st.DrawFn) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """A, H with the eigenvalue 0 and some of [-1, 0], X_0, and the transposed projector at 0."""
    A = draw_from(draw.attention(2, 4))
    values = [Fraction(0), *draw_from(draw.lists(draw.fractions(-1, 0), 1, 2))]
    S, inverse = draw_from(draw.unimodular(len(values)))
    H = exact.product(S, exact.diagonal(values), inverse)
    Pi = exact.product(S, exact.diagonal(int(value == 0) for value in values), inverse)
    return A, H, draw_from(draw.states(len(A), len(values))), exact.transposed(Pi)


def gt14() -> None:
    # Column 1 is constant and stays; column 2 = (1, -1) is halved by every layer.
    case = golden_case("GT14")
    for depth in (1, 2, 5, 10, 60):
        X = exact.layer(case.A, case.H, case.X0, depth)
        assert exact.squared_ratio(X) == Fraction(1, 4**depth)


@given.condition("the eigenvalue 0 of H is semisimple", given.case(H="0 1; 0 0"))
def semisimple_at_zero(instance: given.Instance) -> bool:
    return all(
        max(value.factor.jordan) == 1 for value in spectra.spectrum(instance.H) if value.is_zero
    )


@given.condition(
    "P X_0 Pi_0 != 0 (P X_0 != 0 where 0 is no eigenvalue)",
    given.case(H="-1/2", X0="2; 2"),
    given.case(H="0 0; 0 -1", X0="1 1; 1 -1"),
)
def not_all_consensus(instance: given.Instance) -> bool:
    if instance.X0 is None:
        return True
    fixed = instance.X0
    if any(value.is_zero for value in spectra.spectrum(instance.H)):
        kept = spectra.projector(instance.H, Fraction(0))
        fixed = exact.product(fixed, exact.transposed(kept))
    return exact.squared_norms(fixed)[0] > 0


@search(_with_kernel(), at="A H X0")
def floor_law(A: Matrix, H: Matrix, X0: Matrix, Pi: Matrix) -> None:
    """||HFC_L|| >= ||P X_0 Pi_0|| / ||Pi_0||_F for every L, whatever the row-stochastic A."""
    fixed = exact.product(X0, Pi)
    size = sum(x * x for row in Pi for x in row)
    for depth, X in exact_state(A, H, X0, [1, 2, 9]).items():
        assert depth > 0 and exact.product(X, Pi) == fixed
        assert exact.squared_norms(X)[0] * size >= exact.squared_norms(fixed)[0]
    # The exact verdict never says SMOOTHING.
    assert verdict(A=A, H=H).verdict != "SMOOTHING"
