"""T4f: tokens approach each other exactly if rho_Q < 1, which HFC/LFC -> 0 neither implies nor
follows from."""

from fractions import Fraction

from hypothesis import assume

from oversmoothing.theory.claims.t4.far_states import radii
from oversmoothing.theory.depth import rates_measured as measured
from oversmoothing.theory.proofs.checks import BITS
from oversmoothing.theory.proofs.kit import AA, AM, Claim, Matrix, by, draw, exact, given
from oversmoothing.theory.verdict.exact_comparison import exact_dominance


def _four() -> None:
    """[2; instance] From (1, 2), Aa: at h = 1/2 HFC/LFC -> 0 by 5/6 a layer while differences grow
    by 5/4; at h = -1/2 differences vanish by 3/4 while HFC/LFC grows by 3/2; at h = -3/2 both
    vanish, by 1/2 and 1/4. [[1/8, 7/8], [7/8, 1/8]], h = -4: neither does, they grow by 4/3 and
    4."""
    cases = (AA, "1/2 5/4 5/6"), (AA, "-1/2 3/4 3/2"), (AA, "-3/2 1/4 1/2"), (AM, "-4 4 4/3")
    for A, numbers in cases:
        X, (h, difference, ratio) = exact.column("1 2"), map(Fraction, numbers.split())
        for _ in range(8):
            Z = exact.layer(A, [[h]], X)
            assert Z[0][0] - Z[1][0] == difference * (X[0][0] - X[1][0])
            assert exact.squared_ratio(Z) == ratio**2 * exact.squared_ratio(X)
            X = Z


def _law(A: Matrix, H: Matrix, X0: Matrix) -> None:
    assume(len(A) > 1 and given.contains_both_radii(A, H, X0))
    rho = radii(exact_dominance(A, H))[1]
    assume(rho > 0 and abs(rho - 1) > 0.02)
    depths = [300, 600] if rho > 0.3 else [30, 60]
    found = measured.states(A, H, X0, depths, 2 * BITS)
    gaps = [measured.log(measured.hfc_norm(X, 2 * BITS)) for X in found.values()]
    assert (gaps[1] < gaps[0]) == (rho < 1), f"rho_Q = {rho}, log ||HFC|| = {gaps}"


CLAIM = Claim(
    name="T4f",
    clauses=(
        "Input convergence (x_i - x_k -> 0 for all pairs) holds for every X_0 if rho_Q < 1 and "
        "for no generic X_0 (off a proper subspace) otherwise.",
        "HFC/LFC -> 0 neither implies it nor follows from it: all four combinations occur.",
    ),
    latex=r"\forall i,k:\;x_i-x_k\to0 \iff \rho_Q<1",
    source="ours, on the input convergence of arXiv 2401.04301; an earlier 'stricter than "
    "HFC/LFC -> 0' was wrong: Aa, h = -1/2, X_0 = (1, 2)",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC, given.TWO_TOKENS, given.GENERIC),
    evidence=(
        by.written(
            "the quotient alone decides",
            "[1] All differences vanish iff HFC does: the sum over pairs of ||x_i - x_k||^2 is n "
            "||HFC||^2.",
            "[1] HFC_L = Q Y_L, vec Y_L = T^L vec Y_0, T = I + H (x) B with spectral radius rho_Q "
            "(T1c). rho_Q < 1: T^L -> 0, so every X_0 converges.",
            "[1] rho_Q >= 1: let |mu_ij| = rho_Q, w^T A = a_i w^T (w^T 1 = 0 as a_i != 1 or, for a"
            " repeated 1, chosen so) and z^T H = h_j z^T. |w^T X_L z| = rho_Q^L |w^T X_0 z| does "
            "not tend to 0 unless w^T X_0 z = 0, a proper subspace.",
            _four,
        ),
        by.for_all(
            "one real h, 0 <= a: smoothing with tokens approaching needs h < -2/(1+a) and h > -2/a",
            given="0 <= a; a < 1",
            then="Iff((1+h*a)**2 < (1+h)**2 and (1+h*a)**2 < 1, "
            "h*a < 0 and h*a > -2 and h*(1+a) < -2)",
            at="h=-3/2, a=1/2",
        )
        .unless(
            "input convergence alone suffices", given="(1+h*a)**2 < 1", then="(1+h*a)**2 < (1+h)**2"
        )
        .unless("smoothing alone suffices", given="(1+h*a)**2 < (1+h)**2", then="(1+h*a)**2 < 1"),
        by.searched(
            "growth of differences against rho_Q",
            _law,
            draw.exact_cases(3, 2),
            at=lambda *case: case,
        ),
    ),
)
