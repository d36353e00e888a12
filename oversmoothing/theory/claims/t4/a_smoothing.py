"""T4a: where consensus dominates, all three notions of smoothing hold."""

from hypothesis import assume

from oversmoothing.theory.claims.t4.far_states import cosines, far_state, radii
from oversmoothing.theory.depth import rates_measured as measured
from oversmoothing.theory.proofs.checks import BITS
from oversmoothing.theory.proofs.instances import AA, J2
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, certain, draw, exact, given
from oversmoothing.theory.verdict.exact_comparison import exact_dominance


def _law(A: Matrix, H: Matrix, X0: Matrix) -> None:
    assume(len(A) > 1)
    found = exact_dominance(A, H)
    assume(found.comparison == 1)
    rho_c, rho_q = radii(found)
    assume(rho_q / rho_c < 0.98 and given.contains_both_radii(A, H, X0))
    X = far_state(A, H, X0, rho_q / rho_c, 20)
    assert cosines(X).min() > 1 - 1e-6, "a pair of tokens does not point the same way"
    assert float(measured.hfc_lfc(X, BITS).mid()) < 1e-6, "HFC/LFC does not vanish"
    assert float(measured.effective_rank_excess(X, BITS).mid()) < 1e-3, "erank does not tend to 1"


_CASES = (
    (AA, exact.matrix("1/2"), exact.matrix("1; 2")),
    (AA, exact.matrix("-3/2"), exact.matrix("1; 2")),
    (J2, exact.matrix("-1/2 -2; 2 -1/2"), exact.matrix("1 2; 3 5")),
    (AA, exact.matrix("1/2 1; 0 1/2"), exact.matrix("1 2; -3 5")),
    (exact.matrix("1/8 7/8; 7/8 1/8"), exact.diagonal("1 1"), exact.matrix("1 2; -3 5")),
)


def _certify(effort: by.Effort) -> by.Settled:
    """Simple, negative, complex, defective and repeated dominant h, at 500 layers in balls."""
    for A, H, X0 in _CASES:
        X = measured.states(A, H, X0, [500], BITS)[500]
        certain(measured.hfc_lfc(X, BITS) < 1e-20)
        certain(measured.worst_angle_gap(X, BITS) < 1e-20)
        certain(measured.cosine(X, 0, 1, BITS) > 0)
        yield True


CLAIM = Claim(
    name="T4a",
    clauses=(
        "SMOOTHING: outside the proper subspace z^T X_0^T pi = 0 (z a left eigenvector of H for "
        "a dominant h), HFC/LFC -> 0, every pairwise cosine -> 1 and erank -> 1.",
        "The dominant h may be complex, repeated or defective.",
    ),
    latex=r"\rho_C>\rho_Q \;\Rightarrow\; \frac{\|HFC\|}{\|LFC\|}\to0,\quad "
    r"\cos(x_i,x_k)\to1,\quad \mathrm{erank}\to1",
    source="ours; the three notions are those of arXiv 2401.04301",
    on_record=by.MACHINE,
    hypotheses=(given.ROW_STOCHASTIC, given.TWO_TOKENS, given.SMOOTHING, given.GENERIC),
    evidence=(
        # For every archimedean algebraically closed field with a norm, of eta(p) = -p log p and of
        # the exponential only their limits at 0 and 1.
        by.Formal("T4a_smoothing.T4a_ratio", (1, 2)),
        by.Formal("T4a_smoothing.T4a_cosines", (1, 2)),
        by.Formal("T4a_smoothing.T4a_effective_rank", (1, 2)),
        by.Formal("T4a_smoothing.T4a_proper", (1,)),
        by.Formal("Singular.singular_values_exist", ()),
        by.Formal("Norms.cosine_bound", ()),
        by.Formal("Powers.power_bound", ()),
        by.written(
            "decoupling, a left eigenvector, and Weyl",
            "[1] T1c, T1d: PX' = PX + (PA)(PX)W and c' = c(I+W), c = pi^T X, so HFC_L and c_L "
            "evolve apart; x_k - c = (e_k - pi)^T HFC, hence ||x_k - c|| <= 2 ||HFC||.",
            "[1, 2] Let |1+h| = rho_C and z^T H = h z^T. Then z^T c_L^T = (1+h)^L z^T c_0^T, so "
            "||c_L|| >= rho_C^L |z^T c_0^T| / ||z||, whether h is real, simple, defective or not.",
            "[1] The set of X_0 with z^T X_0^T pi = 0 is a proper linear subspace (pi and z are "
            "not 0), a null set; outside it the constant in step 2 is positive. No other "
            "genericity is used.",
            "[1] ||HFC_L|| <= C (1+L)^m rho_Q^L ||HFC_0||, the powers of a matrix with spectral "
            "radius rho_Q. So t_L = ||HFC||/(sqrt n ||c||) = O(L^m r^L) -> 0, because r = "
            "rho_Q/rho_C < 1; and HFC/LFC -> 0 by T1e.",
            "[1] Cosines: with u_k = x_k - c, ||u_k|| <= 2 ||HFC|| = o(||c||), each token is "
            "within an angle asin(t) of c (the query below; a plane through c and x_k suffices), "
            "so two tokens are within 2 asin(t) and cos >= 1 - 2t^2 -> 1.",
            "[1] Rank: X = 1c + U with ||U||_F = O(||HFC||). Weyl: sigma_1 >= sqrt(n)||c|| - "
            "||U||, sigma_i <= ||U|| for i >= 2. So sigma_i/sigma_1 -> 0, and erank = exp(entropy "
            "of sigma/sum sigma) -> exp(0) = 1 by continuity of the entropy at (1, 0, ..., 0).",
        ),
        # A token at c = (1, 0) plus an error (p, q) no longer than t: cos^2 of its angle to c.
        by.for_all(
            "a token within t ||c|| of c has cos >= sqrt(1 - t^2) with c",
            given="0 <= t; t < 1; p**2 + q**2 <= t**2",
            then="1 + p > 0 and (1+p)**2 >= (1-t**2)*((1+p)**2 + q**2)",
            at="p=1/10, q=1/10, t=1/2",
            covers=(1,),
        )
        .unless("t may reach 2", without="t < 1", given="t <= 2", at="p=-3/2, q=0, t=3/2")
        .unless(
            "cos^2 >= 1 - t^2/2",
            then="(1+p)**2 >= (1-t**2/2)*((1+p)**2 + q**2)",
            at="p=-9/25, q=12/25, t=3/5",
        ),
        by.Certified("simple, negative, complex, defective, repeated h", _certify),
        by.searched(
            "far states of generic smoothing cases",
            _law,
            draw.exact_cases(3, 2),
            at=lambda *case: case,
        ),
    ),
    further="the speed is T5; the exceptional subspace is followed in T4e",
)
