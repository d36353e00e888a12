"""T1f: without consensus HFC/LFC has a floor: the limit of a non-smoothing layer is never 0."""

from fractions import Fraction

from hypothesis import assume, strategies as st

from oversmoothing.theory.ask import verdict
from oversmoothing.theory.depth.ratios import squared_norms
from oversmoothing.theory.numbers.exact_matrix import matrix, plus_identity, weighted_mean
from oversmoothing.theory.numbers.rational import Matrix, from_flint, to_flint
from oversmoothing.theory.proofs.instances import A3, AA, SKEW_DEFECTIVE
from oversmoothing.theory.proofs.kit import Claim, Status, by, draw, given, spectra


def _annihilated() -> None:
    """[2; instance] If (A - a)^k v = 0 with a != 1, then 0 = pi^T (A - a)^k v = (1 - a)^k pi^T v,
    so pi^T v = 0. States E_a X with E_a a spectral projector of A, a != 1, have pi^T X = 0 in the
    same way."""
    # pi^T v = 0 for the mode of A3 at 1/5, and for the generalised ones of a Jordan block.
    assert weighted_mean(spectra.stationary(A3), matrix("-1; -1; 7")) == [0]
    pi = spectra.stationary(SKEW_DEFECTIVE)
    shifted = to_flint(plus_identity(SKEW_DEFECTIVE, -5))
    # (A - 1/5)^2 = (1 - 1/5)^2 1 pi^T: generalised modes are exactly what pi annihilates.
    assert shifted.rank() == 2 and from_flint(shifted * shifted) == [[16 * p for p in pi]] * 3


def _sharp() -> None:
    """[3; instance] Attained: v = 1 - P pi/delta^2 has pi^T v = 1 - pi^T P pi/delta^2 = 0, mean 1,
    LFC = sqrt n and HFC = 1/delta. (It is a mode of A = 1 pi^T, and of 1 pi^T + a (I - 1 pi^T).)"""
    pi = spectra.stationary(A3)
    delta = spectra.squared_deviation(pi)
    v = [[1 - (p - Fraction(1, 3)) / delta] for p in pi]
    assert weighted_mean(pi, v) == [0]
    hfc, lfc = squared_norms(v)
    assert 3 * delta * hfc == lfc == 3 and hfc * delta == 1


def _limits() -> None:
    """[5; instance] One real simple dominant pair: X_L/mu^L -> v u^T (u != 0 for generic X_0), and
    HFC/LFC is continuous (with values in [0, infinity]) at v u^T, where it is ||P v||/(sqrt n |mean
    v|): u cancels. Executed on GT11: 8 sqrt 2/5."""
    found = verdict(A=A3, H=matrix("-1/2"), X0=matrix("1; 2; 4"), depth=[64])
    assert (found.verdict, found.tends_to) == ("NON_SMOOTHING", "constant")
    hfc, lfc = squared_norms(matrix("-1; -1; 7"))
    assert hfc / lfc == Fraction(128, 25)  # (8 sqrt 2/5)^2
    squared = found.hfc_lfc[64].squared
    assert squared is not None and abs(squared / (hfc / lfc) - 1) < Fraction(1, 1000)
    assert verdict(A=AA, H=matrix("-1/2"), X0=matrix("1; 2")).tends_to == "infinity"


def _observable() -> None:
    """[6, 7; instance] Doubly stochastic: pi = 1/n, k = 0, HFC/LFC = t -> infinity. n = 2: v is a
    multiple of (pi_2, -pi_1), of mean 0 iff pi_1 = pi_2. n >= 3: if A v = a v and 1^T v = 0, the n
    rows 1^T A^k, k < n, all annihilate v, so their determinant is 0: a polynomial in A. It is not
    identically 0 on A 1 = 1: take pi > 0 that is not uniform, a basis v_i of pi's orthogonal space
    with no 1^T v_i = 0, w_i dual to it and A = 1 pi^T + sum_i a_i v_i w_i^T with distinct small
    a_i; then the rows are independent (Vandermonde times the non-zero 1^T v_i). Its zeros are a
    null set."""
    # [1^T; 1^T A; 1^T A^2] is invertible for A3, so no eigenvector of A3 has mean 0 ...
    one = to_flint([[Fraction(1)] * 3])
    a = to_flint(A3)
    krylov = [list(row) for k in range(3) for row in (one * a**k).tolist()]
    assert type(a)(krylov).det() != 0
    # ... and singular for a doubly stochastic matrix.
    b = to_flint(matrix("1/2 1/4 1/4; 1/4 1/2 1/4; 1/4 1/4 1/2"))
    krylov = [list(row) for k in range(3) for row in (one * b**k).tolist()]
    assert type(a)(krylov).det() == 0


@st.composite
def _cases(pick: st.DrawFn) -> tuple[Matrix, Matrix]:
    """Positive A and a state X with pi^T X = 0."""
    A = pick(draw.attention(2, 5))
    X = pick(draw.states(len(A), 2))
    c = weighted_mean(spectra.stationary(A), X)
    return A, [[x - y for x, y in zip(row, c, strict=True)] for row in X]


def _law(A: Matrix, X: Matrix) -> None:
    n, pi = len(A), spectra.stationary(A)
    hfc, lfc = squared_norms(X)
    assume(any(map(any, X)))
    assert lfc <= n * spectra.squared_deviation(pi) * hfc
    assert (n - 1) * hfc > lfc
    assert (lfc == 0) == (not any(map(sum, zip(*X, strict=True))))


def _measure(effort: by.Effort) -> by.Measurements:
    """GT11 at two depths: the error of the limit shrinks like the second mode, (3/4)/(9/10)."""
    limit = 8 * 2**0.5 / 5
    for depth in (200, 400):
        found = verdict(A=A3, H=matrix("-1/2"), X0=matrix("1; 2; 4"), depth=[depth])
        value = found.hfc_lfc[depth].value
        assert value is not None
        # X_0 has coefficients of order 10 in the modes at 1/2 and at 1.
        tolerance = 100 * (5 / 6) ** depth + 16 * 2.0**-52 * limit
        yield by.Measurement(f"HFC/LFC of GT11 at L = {depth}", limit, value, tolerance)


@given.condition("X_0 has no consensus part: pi^T X_0 = 0", given.case(), given.case(X0="1; 2"))
def _no_consensus(instance: given.Instance) -> bool:
    return instance.X0 is not None and not any(
        weighted_mean(spectra.stationary(instance.A), instance.X0)
    )


CLAIM = Claim(
    name="T1f",
    clauses=(
        "Let A > 0, n >= 2, and X != 0 with pi^T X = 0. Then HFC/LFC >= 1/(sqrt n delta) > "
        "1/sqrt(n-1), delta = ||pi - 1/n||.",
        "Such is every mode without consensus, real, complex or of a Jordan block; and HFC/LFC "
        "is infinite iff 1^T X = 0.",
        "The floor is attained for every A that is not doubly stochastic.",
        "Hence for generic X_0 a NON_SMOOTHING layer has liminf HFC/LFC >= 1/(sqrt n delta).",
        "With one real simple dominant mode v u^T the limit is ||P v||/(sqrt n |mean v|), finite"
        " iff 1^T v != 0.",
        "If A is doubly stochastic every mode has 1^T v = 0 and HFC/LFC -> infinity.",
        "For n >= 3, outside a null set of A, no eigenvector has mean 0 (n = 2: exactly the "
        "doubly stochastic A have one).",
    ),
    latex=r"\pi^\top X = 0 \implies \frac{\|\mathrm{HFC}\|}{\|\mathrm{LFC}\|}\ge"
    r"\frac{1}{\sqrt n\,\|\pi-\frac1n\mathbf 1\|} > \frac{1}{\sqrt{n-1}}",
    source="ours",
    on_record=Status.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.NOT_FLAT, _no_consensus),
    evidence=(
        by.Formal("T1f_floor.floor", (1,)),
        by.Formal("T1f_floor.delta_bound", (1,)),
        by.Formal("Verdicts.liminf_floor", (4,)),
        by.written(
            "Cauchy-Schwarz against pi",
            _annihilated,
            "[1, 2] Let pi^T X = 0, X != 0. By T1d 0 = c = m - (1/n - pi)^T HFC, so ||m|| <= delta"
            " ||HFC|| and ||LFC|| = sqrt n ||m|| <= sqrt n delta ||HFC||. HFC != 0, for otherwise "
            "m = c = 0 and X = 0. So HFC/LFC >= 1/(sqrt n delta), and LFC = 0 iff 1^T X = 0.",
            "[1] delta^2 = |pi|^2 - 2/n + 1/n = |pi|^2 - 1/n, and |pi|^2 < (sum pi_i)^2 = 1 as pi "
            "> 0 and n >= 2. So n delta^2 < n - 1.",
            _sharp,
            "[4] NON_SMOOTHING, generic X_0: with T = I + H (x) B, y = vec Y, and w a left "
            "eigenvector of T for an eigenvalue of modulus rho_Q, ||HFC_L|| = ||y_L|| >= rho_Q^L "
            "|w^T y_0|/||w||, and w^T y_0 != 0 outside a null set; ||c_L|| <= const L^d rho_C^L. "
            "So t -> infinity and T1e gives liminf HFC/LFC >= 1/k.",
            _limits,
            _observable,
        ),
        by.searched("the floor in fractions, pi^T X = 0", _law, _cases(), at=given.of_state),
        by.Simulated("the limit of GT11 in balls", _measure),
    ),
    further="Ties are T4d: there t stays bounded and the floor does not apply.",
)
