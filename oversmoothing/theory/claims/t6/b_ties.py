"""T6b: Jordan blocks decide a tie in modulus, polynomially."""

import math
from fractions import Fraction

from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.t4.far_states import log_growth, radii
from oversmoothing.theory.proofs.instances import AA, DEFECTIVE, J2, SKEW_DEFECTIVE
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, verdict
from oversmoothing.theory.verdict.exact_comparison import exact_dominance, jordan_size


def _linear_in_l() -> None:
    """[2; instance] H = [[0, 1], [0, 0]], A = J2: HFC/LFC ~ C/L with all h in [-1, 0]."""
    # H = [[0, 1], [0, 0]], A = J2: HFC constant, c_L = c_0 + L (second, 0): ratio^2 = 13/(...).
    X = exact.matrix("1 2; 3 5")
    for L in range(1, 30):
        X = exact.layer(J2, exact.matrix("0 1; 0 0"), X)
        hfc, lfc = exact.squared_norms(X)
        mean = Fraction(2) + L * Fraction(7, 2), Fraction(7, 2)
        assert hfc == Fraction(13, 2) and lfc == 2 * (mean[0] ** 2 + mean[1] ** 2)


def _sizes(A: Matrix, H: Matrix) -> tuple[int | None, int, int]:
    """The comparison of rho_C with rho_Q, and the largest blocks s_C, s_Q there."""
    found = exact_dominance(A, H)
    consensus, quotient = (max(map(jordan_size, m)) for m in (found.consensus, found.quotient))
    return found.comparison, consensus, quotient


def _sizes_of_the_examples() -> None:
    """[1; instance] vec Y_L = (I + H (x) B)^L vec Y_0: the same argument over pairs (a, h), with D
    of I + H (x) A on the block E_a X_0 E_h^T and block sizes from T6a: ||HFC_L|| = Theta(L^(s_Q-1)
    rho_Q^L)."""
    for A in (DEFECTIVE, SKEW_DEFECTIVE):
        assert given.is_positive(A) and _sizes(A, exact.matrix("-5/3")) == (0, 1, 2)
    assert given.is_stochastic(exact.transposed(DEFECTIVE)) and not given.is_stochastic(
        exact.transposed(SKEW_DEFECTIVE)
    )


def _minus_one_zero() -> None:
    """[4; instance] All h in [-1, 0): rho_C < rho_Q strictly (T3d), so no block size matters."""
    # h = -1/2 in a block of size 3, A diagonalisable: the moduli decide, the blocks do not.
    H = exact.matrix("-1/2 1 0; 0 -1/2 1; 0 0 -1/2")
    assert exact_dominance(AA, H).comparison == -1
    found = verdict(A=AA, H=H)
    assert (found.verdict, found.tends_to) == ("NON_SMOOTHING", "infinity")


@st.composite
def _ties(draw_: st.DrawFn) -> tuple[Matrix, Matrix, Matrix]:
    """A diagonal tie h = -2/(1+a), or h = 0, with Jordan blocks of H drawn; two tokens."""
    A, a = draw_(draw.two_token_attention())
    tied = draw_(st.sampled_from([Fraction(0), -2 / (1 + a)]))
    blocks = [(tied, draw_(st.integers(1, 3)))]
    if draw_(st.booleans()):
        blocks.append((Fraction(-1, 2), 1))
    H = draw_(draw.with_jordan_blocks(blocks))
    return A, H, draw.general_state(draw_(draw.SEEDS), 2, len(H))


def _law(A: Matrix, H: Matrix, X0: Matrix) -> None:
    """d log t / d log L between 10^8 and 10^10 layers is s_Q - s_C (t from HFC and c, in balls).

    That deep, because a small leading coefficient of X_0 delays the power of L by its inverse.
    """
    comparison, consensus, quotient = _sizes(A, H)
    assume(comparison == 0 and radii(exact_dominance(A, H))[0] > 1e-3)
    predicted = quotient - consensus
    order = log_growth(A, H, X0, 10**8, 10**10) / math.log(100)
    assume(not math.isnan(order))
    if predicted < 0 or A[0][1] == A[1][0]:
        assert abs(order - predicted) < 0.05, f"order {order:.4f}, predicted {predicted}"
    else:
        assert order > -0.05, f"HFC/LFC decays like L^{order:.4f}"


def _measure(effort: by.Effort) -> by.Measurements:
    h, start = exact.matrix("-5/3"), exact.column("1 2 5")
    two, three = exact.matrix("1 2; 3 5"), exact.matrix("1 2; 3 5; -2 7")
    J3, both = exact.matrix("0 1 0; 0 0 1; 0 0 0"), exact.matrix("-5/3 1; 0 -5/3")
    for name, A, H, X0, order in (
        ("H = [[0,1],[0,0]], A = J2", J2, exact.matrix("0 1; 0 0"), two, -1),
        ("H = J_3(0), A = J2", J2, J3, exact.matrix("1 2 1; 3 5 -2"), -2),
        ("H = J_2(-4/3), a = 1/2: sizes 2 and 2", AA, exact.matrix("-4/3 1; 0 -4/3"), two, 0),
        ("A defective, doubly stochastic, h = -5/3", DEFECTIVE, h, start, 1),
        ("A and H defective: sizes 2 and 3", DEFECTIVE, both, three, 1),
        ("A defective, not doubly stochastic: saturates", SKEW_DEFECTIVE, h, start, 0),
    ):
        _, consensus, quotient = _sizes(A, H)
        if A is not SKEW_DEFECTIVE:
            yield by.Measurement(f"{name}: s_Q - s_C", order, quotient - consensus, 0)
        found = log_growth(A, H, X0, 10**5, 10**7) / math.log(100)
        yield by.Measurement(f"{name}: power of L", order, found, 1e-3)


CLAIM = Claim(
    name="T6b",
    clauses=(
        "Generic X_0, rho_C and rho_Q > 0: t = ||HFC||/(sqrt n ||c||) is between two positive "
        "multiples of L^(s_Q - s_C) r^L, s_C and s_Q the largest Jordan blocks at rho_C and "
        "rho_Q.",
        "So (rho_C, s_C) against (rho_Q, s_Q), lexicographically, decides, and a tie in modulus "
        "smooths like L^(s_Q-s_C) if s_C > s_Q.",
        "HFC/LFC has the same order where t -> 0 or A is doubly stochastic; where t -> infinity "
        "otherwise it stays above 1/(sqrt n delta) and need not grow.",
        "With all h in [-1, 0) defectiveness is irrelevant.",
    ),
    latex=r"\frac{\|HFC_L\|}{\sqrt n\,\|c_L\|}=\Theta\big(L^{s_Q-s_C}\,r^L\big)",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC, given.TWO_TOKENS, given.GENERIC),
    evidence=(
        by.written(
            "leading Jordan chains in independent spaces",
            "[1] c_L = (I+H)^L c_0. Let s_C be the largest Jordan block of H over |1+h| = rho_C > "
            "0. Then c_L = L^(s_C-1) rho_C^L (sum over those h of e^(i theta_h (L-s_C+1)) v_h + "
            "o(1)), v_h proportional to (H-h)^(s_C-1) E_h c_0, not all 0 for c_0 outside a proper "
            "subspace. The v_h lie in independent spaces: the sum is bounded below for every L, no"
            " phase can cancel it. So ||c_L|| = Theta(L^(s_C-1) rho_C^L), two-sided. (a = 1 is "
            "simple, so consensus adds no block of A.)",
            _sizes_of_the_examples,
            "[2] Hence t_L = Theta(L^(s_Q-s_C) r^L): to 0, bounded both ways, or to infinity as "
            "(rho_C, s_C) is lexicographically larger, equal or smaller than (rho_Q, s_Q).",
            "[3] T1e: 1/(k + 1/t) <= HFC/LFC <= 1/(1/t - k). t -> 0: HFC/LFC = Theta(t). k = 0 "
            "(doubly stochastic): HFC/LFC = t. t -> infinity otherwise: liminf HFC/LFC >= 1/(sqrt "
            "n delta), no growth in general. t bounded both ways: HFC/LFC is bounded below by a "
            "positive constant.",
            "[1] rho_C = 0 (H = -I + nilpotent): c_L = 0 after s_C layers, rho_Q > 0 as a != 1; t "
            "= infinity from there on.",
            _linear_in_l,
            _minus_one_zero,
        ),
        by.searched("power of L at a tie, two tokens", _law, _ties(), at=lambda *case: case),
        by.Simulated("powers of L between 10^5 and 10^7 layers", _measure),
    ),
    further="H and A both defective at one tie h a != 0: s_Q - s_C = q - 1, q the block of A. In "
    "floating point neither a tie nor a defective matrix can be decided",
)
