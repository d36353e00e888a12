"""T4d: a tie between consensus and the rest: neither smoothing nor divergence."""

from fractions import Fraction

import sympy as sp
from hypothesis import assume

from oversmoothing.theory.depth.ratios import ball_ratios, exact_state
from oversmoothing.theory.proofs.instances import AA, AQ, ROTATING
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, spectra


def _collapse() -> None:
    """[5; instance] All dominant pairs on one simple real h: S_L = g_L u^T, g_L = sum of c_i e^(i L
    theta_i) v_i over independent v_i, so ||g_L|| is bounded below, sigma_2/sigma_1 -> 0, and |cos|
    -> 1 between tokens along depths at which their entries of g_L stay off 0 (all depths for real a
    and generic X_0). All of them may tend to +1: a tie does not exclude angle collapse."""
    # AQ, H = diag(-4, -1): the first feature is (-3)^L 3/2 +- 3^L/2, the second dies out.
    H, X = exact.diagonal("-4 -1"), exact.matrix("2 1; 1 3")
    states = exact_state(AQ, H, X, [40, 41])
    for depth, state in states.items():
        hfc, lfc = exact.squared_norms(state)
        assert abs(hfc / lfc - Fraction(1, 9)) < Fraction(1, 10**6)
        x, y = state
        inner, squares = exact.dot(x, y), exact.dot(x, x) * exact.dot(y, y)
        assert inner > 0 and 1 - inner**2 / squares < Fraction(1, 10**6), f"depth {depth}"


def _depends_on_start() -> None:
    """[2, 3; instance] If all dominant multipliers have one phase, S_L = e^(i L theta) S_0 and the
    ratio tends to ||PS_0||/(sqrt n ||1^T S_0/n||), positive and finite and dependent on X_0. All h
    and a real: multipliers off consensus are positive (query), so this is so unless some 1 + h =
    -rho; with that, S_L has period 2 in L."""
    # Aa, h = -4/3: HFC/LFC stays |x_1 - x_2|/|x_1 + x_2| for ever, whatever that is.
    for x, y in ((1, 2), (5, 2), (-1, 4)):
        for depth in range(1, 7):
            hfc, lfc = exact.squared_norms(
                exact.layer(AA, exact.matrix("-4/3"), exact.column(f"{x} {y}"), depth)
            )
            assert hfc / lfc == Fraction(x - y, x + y) ** 2


def _unbounded() -> None:
    """[4; instance] With complex a the oscillation can be unbounded: the ratio then has limsup
    infinity."""
    # ROTATING, h = -2: |1 - 2a|^2 = 16/25 + 9/25 = 1 = |1 + h|^2, multipliers (4 -+ 3i)/5. The mean
    # is (-1)^L c + m_L with m_{L+2} = (8/5) m_{L+1} - m_L of amplitude M > |c| and a phase that is
    # no rational multiple of pi: LFC comes as near to 0 as one likes, HFC does not.
    H, X0 = exact.matrix("-2"), exact.column("3 -2 -1/2")
    pi = spectra.stationary(ROTATING)
    (c,) = exact.weighted_mean(pi, X0)
    states = exact_state(ROTATING, H, X0, list(range(12)))
    parts = [sum(x[0] for x in state) / 3 - (-1) ** depth * c for depth, state in states.items()]
    for first, second, third in zip(parts, parts[1:], parts[2:], strict=False):
        assert third == Fraction(8, 5) * second - first
    cosine = Fraction(4, 5)
    amplitude = (parts[0] ** 2 + parts[1] ** 2 - 2 * cosine * parts[0] * parts[1]) / (1 - cosine**2)
    assert amplitude > c**2 > 0
    # (4 + 3i)/5 is no algebraic integer, hence no root of unity.
    x = sp.Symbol("x")
    w = sp.Rational(4, 5) + sp.Rational(3, 5) * sp.I
    assert sp.expand((x - w) * (x - sp.conjugate(w)) - (x**2 - sp.Rational(8, 5) * x + 1)) == 0
    # And in numbers: the ratio exceeds 1000 within 2000 layers, and falls below 6 again.
    ratios = [r.value for r in ball_ratios(ROTATING, H, X0, pi, range(1, 2000)).values()]
    present = [r for r in ratios if r is not None]
    assert max(present) > 1000 and min(present[1000:]) < 6


def _law(attention: tuple[Matrix, Fraction], X0: Matrix) -> None:
    """h = -2/(1+a) ties; the ratio is exactly what the projectors say, at every depth."""
    A, a = attention
    h = -2 / (1 + a)
    assume(given.contains_both_radii(A, [[h]], X0))
    # X_L = (1+h)^L E_1 X_0 + (1+ha)^L E_a X_0, and 1 + ha = -(1+h) > 0.
    one, two = (
        exact.product(spectra.projector(A, Fraction(1)), X0),
        exact.product(spectra.projector(A, a), X0),
    )
    states = exact_state(A, [[h]], X0, [4, 5, 20, 21])
    for depth, state in states.items():
        S = exact.plus(two, one, (-1) ** depth)
        assert 1 + h * a == -(1 + h) > 0
        hfc, lfc = exact.squared_norms(state)
        expected_hfc, expected_lfc = exact.squared_norms(S)
        assert hfc * expected_lfc == lfc * expected_hfc and hfc > 0, "the ratio is not of period 2"


CLAIM = Claim(
    name="T4d",
    clauses=(
        "TIE with semisimple dominant eigenvalues, generic X_0: HFC/LFC tends neither to 0 nor "
        "to infinity; it is positive on a relatively dense set of depths and finite on another.",
        "With one phase among the dominant multipliers it tends to a positive constant that "
        "depends on X_0;",
        "with real spectra it has at most period 2;",
        "with a complex a it can oscillate with limsup infinity.",
        "If all dominant pairs share one simple real h, X_L is asymptotically rank 1; all "
        "cosines may tend to +1: a TIE does not exclude angle collapse.",
    ),
    latex=r"\rho_C=\rho_Q:\quad \limsup \tfrac{\|HFC\|}{\|LFC\|}>0,\quad "
    r"\liminf \tfrac{\|HFC\|}{\|LFC\|}<\infty",
    source="ours; the possible unboundedness corrects an earlier 'finite or oscillates'",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.TIE, given.SEMISIMPLE, given.GENERIC),
    evidence=(
        by.written(
            "the leading trigonometric polynomial",
            "[1, 2, 3] Semisimple dominant eigenvalues: X_L/rho^L = S_L + o(1), S_L = sum of "
            "(mu/rho)^L E_a X_0 E_h^T over the dominant (a, h), a trigonometric polynomial in L, "
            "bounded. It has terms with a = 1 and with a != 1.",
            "[1, 2] PS_0 and 1^T S_0/n are linear in X_0 and neither map is 0: X_0 = v u^T (a != "
            "1, Pv != 0) and X_0 = 1 u^T witness it. So both are non-zero outside two proper "
            "subspaces.",
            "[1] A trigonometric polynomial in L that is not 0 at L = 0 is bounded below on a "
            "relatively dense set of depths (almost periods). There HFC/LFC >= const > 0, LFC "
            "being bounded by const rho^L; and likewise LFC/HFC >= const > 0. So the ratio tends "
            "neither to 0 nor to infinity.",
            _depends_on_start,
            _collapse,
            _unbounded,
        ),
        by.for_all(
            "a real multiplier 1 + ha <= 0 cannot tie with consensus",
            given=(by.EIGENVALUE, "1 + h*a <= 0; (1+h)**2 <= rho**2"),
            then="(1+h*a)**2 < rho**2",
            at="h=-3, a=1/2, rho=3",
            covers=(3,),
        )
        .unless("mu up to 1/3", without="1 + h*a <= 0", given="1 + h*a <= 1/3")
        .unless("a = 1 allowed", without="a < 1", given="a <= 1"),
        by.searched(
            "one feature at the tie, exactly",
            _law,
            draw.two_token_attention().flatmap(
                lambda drawn: draw.states(2, 1).map(lambda X0: (drawn, X0))
            ),
            at=lambda attention, X0: (attention[0], [[-2 / (1 + attention[1])]], X0),
        ),
    ),
    further="defective ties are T6b",
)
