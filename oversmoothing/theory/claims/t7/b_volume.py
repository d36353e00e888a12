"""T7b: no smoothing on average over the features, and for generic X_0 below tau q."""

from fractions import Fraction

from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.t7.oscillation import contraction_to, dobrushin, rotations
from oversmoothing.theory.layer.quotient import rational_quotient
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given


def _kronecker_layer(A: Matrix, W: Matrix) -> Matrix:
    """I + B' (x) W^T on the rows y_i = x_i - x_n."""
    return exact.plus_identity(exact.kronecker(rational_quotient(A), exact.transposed(W)))


@st.composite
def _layers(draw_from: st.DrawFn) -> list[tuple[Matrix, Matrix]]:
    """Layers (A_l, W_l), W_l with real spectrum in [-1, 0] in a basis of its own."""
    n, d = draw_from(st.integers(2, 3)), draw_from(st.integers(1, 2))
    layers = []
    for _ in range(draw_from(st.integers(1, 4))):
        values = draw_from(draw.lists(draw.fractions(-1, 0), d))
        blocks = [(value, 1) for value in values]
        A = draw_from(draw.attention(n, n, zeros=True))
        layers.append((A, draw_from(draw.with_jordan_blocks(blocks))))
    return layers


def _volume_law(layers: list[tuple[Matrix, Matrix]]) -> None:
    """|det T_L|^(1/(n-1)) >= |det C_L|, as powers."""
    quotient = consensus = Fraction(1)
    n = len(layers[0][0])
    for A, W in layers:
        quotient *= abs(exact.determinant(_kronecker_layer(A, W)))
        consensus *= abs(exact.determinant(exact.plus_identity(W)))
    assert quotient >= consensus ** (n - 1)


@st.composite
def _symmetric(draw_from: st.DrawFn) -> tuple[Matrix, Fraction, Fraction, list[Fraction], Matrix]:
    """A, q, p, eigenvalues s_j in [p, q] and a rotation."""
    A = draw_from(draw.attention(2, 3))
    q = draw_from(draw.fractions(0, 1, 8).filter(bool))
    p = q * draw_from(draw.below_one(8))
    mix = draw_from(st.tuples(draw.fractions(0, 1, 6), draw.fractions(0, 1, 6)))
    tau = draw_from(draw.below_one(6))
    values = [p + (q - p) * f for f in mix]
    return contraction_to(A, tau), q, p, values, draw_from(rotations())


def _rate_law(A: Matrix, q: Fraction, p: Fraction, values: list[Fraction], V: Matrix) -> None:
    """Per layer |det|^(1/(n-1)) (1-p)^d >= (1 - tau p)(1 - tau q)^(d-1) ||I+W||^d, d = 2."""
    tau, smallest = dobrushin(A), min(values)
    assume(smallest < 1)
    W = exact.product(V, exact.diagonal(-s for s in values), exact.transposed(V))
    volume = abs(exact.determinant(_kronecker_layer(A, W)))
    bound = (1 - tau * p) * (1 - tau * q) * (1 - smallest) ** 2 / (1 - p) ** 2
    assert volume >= bound ** (len(A) - 1)


def _interval() -> None:
    """[3; instance] At p = tau q the condition reads 1 - tau q < 1 - tau^2 q (third query), strict,
    so some p < tau q satisfies it; it is monotone in p by the second query. For tau = 1/2, q = 1, d
    = 2 it is p > .3597, and rotations smooth for p < 1/3."""
    # tau = 1/2, q = 1: rotations smooth for p < 1/3, two features exclude p >= 9/25.
    tau = Fraction(1, 2)
    assert tau / (2 - tau) == Fraction(1, 3)

    def excluded(p: Fraction, d: int) -> bool:
        return (1 - p) ** d < (1 - tau * p) * (1 - tau) ** (d - 1)

    assert excluded(Fraction(9, 25), 2) and not excluded(Fraction(1, 3), 2)
    for d in range(1, 9):
        assert excluded(tau, d), "always below tau"
    # The threshold grows with d, to tau.
    assert not excluded(Fraction(2, 5), 3) and excluded(Fraction(21, 50), 3)


def _gaussian() -> None:
    """[2; instance] With a common pi, c_L = c_0 prod (I+W_l), ||c_L|| <= ||c_0|| prod ||I+W_l||. So
    ||HFC_L||/||c_L|| >= L^-2 g^L/||c_0|| -> infinity, and T1e gives HFC/LFC >= 1/(sqrt n delta +
    o(1))."""
    # The rotating weights at p = 2/5 > 9/25: the mode outgrows consensus.
    a, p, k = Fraction(1, 2), Fraction(2, 5), Fraction(4, 5)
    W0 = exact.matrix("-1 0; 0 -2/5")
    assert exact.determinant(exact.plus_identity(W0, a))
    assert (1 - a) * (1 - a * p) > (k * (1 - p)) ** 2


CLAIM = Claim(
    name="T7b-volume",
    clauses=(
        "Single head, any row-stochastic A_l. If every W_l has a real spectrum in [-1, 0], then "
        "|det T_L|^(1/((n-1)d)) >= |det C_L|^(1/d) with T_L, C_L the products on the quotient "
        "and on consensus: gamma_Q is at least the mean of the d consensus exponents.",
        "If moreover the A_l and W_l are prescribed, W_l is symmetric with spectrum in [-q, -p],"
        " 0 <= p <= q <= 1, tau(A_l) <= tau, all A_l share one Perron vector pi > 0, and (1-p)^d"
        " < (1 - tau p)(1 - tau q)^(d-1), then for almost every X_0 ||HFC||/||c|| -> infinity "
        "geometrically and liminf HFC/LFC >= 1/(sqrt n delta).",
        "The condition holds for p >= tau q, and for every d already for some p < tau q.",
    ),
    latex=r"(1-p)^d<(1-\tau p)(1-\tau q)^{d-1} \implies "
    r"\liminf_L\frac{\|HFC_L\|}{\|LFC_L\|}\ge\frac1{\sqrt n\,\delta}\quad\text{for a.e. }X_0",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(
        given.ROW_STOCHASTIC,
        given.TWO_TOKENS,
        given.CLOSED.said("every eigenvalue of every W_l is real and in [-1, 0]"),
    ),
    evidence=(
        by.written(
            "volume",
            "[1] On the quotient one layer is T = I + H (x) B with spec(B) the eigenvalues of A "
            "but one copy of 1, so |det T| = prod_j prod_(i<n) |1 + h_j a_i|, and |a_i| <= tau(A) "
            "<= 1: for complex v too, the rows p, q of A have (p - q) v = TV (alpha - beta) v with"
            " alpha v and beta v in the convex hull of the entries of v, whose diameter is osc(v) "
            "= max |v_i - v_k|. So osc(A v) <= tau osc(v), and osc(v) > 0 for v not along 1.",
            "[1] By the first query every factor is at least 1 - tau |h_j| >= |1 + h_j|: |det T| "
            ">= prod_j (1 - tau |h_j|)^(n-1) >= |det(I+W)|^(n-1). Products multiply; the largest "
            "exponent is at least the mean of all, (1/N) log |det|.",
            "[2] Symmetric W, eigenvalues -s_j, p <= s_1 <= ... <= s_d <= q <= 1: ||I+W||_2 = 1 - "
            "s_1, and |det T|^(1/(n-1)) >= (1 - tau s_1)(1 - tau q)^(d-1). By the second query (1 "
            "- tau s)/(1 - s)^d is smallest at s = p: with N = (n-1)d, |det T|^(1/N) >= g "
            "||I+W||_2, g^d = (1 - tau p)(1 - tau q)^(d-1)/(1-p)^d > 1 (if s_1 = 1 then consensus "
            "is 0 from there on).",
            "[2] So sigma_1(T_L) >= |det T_L|^(1/N) >= g^L prod ||I+W_l||. For Y_0 = Q^T X_0 "
            "Gaussian and v the first right singular vector, ||T_L Y_0|| >= sigma_1 |<v, Y_0>|, "
            "and P(|<v, Y_0>| < L^-2) <= L^-2 is summable: by Borel-Cantelli almost surely "
            "||HFC_L|| >= L^-2 g^L prod ||I+W_l|| for all large L. The Gaussian and Lebesgue null "
            "sets agree.",
            _gaussian,
            _interval,
        ),
        by.for_all(
            "h in [-1, 0], |a| <= tau: |1+ha| >= 1 - tau |h| >= |1+h|",
            given="-1 <= h; h <= 0; 0 <= t; t <= 1; u*u + v*v <= t*t",
            then="(1+h*u)**2 + (h*v)**2 >= (1+t*h)**2 and 1 + t*h >= 1 + h",
            at="h=-1, u=0, v=1/2, t=1/2",
            covers=(1,),
        ).unless("h in [-2, 0]", without="-1 <= h", given="-2 <= h", at="h=-2, u=1/2, v=0, t=1"),
        by.for_all(
            "(1 - tau s)/(1 - s) grows with s in [p, 1)",
            given="0 <= p; p <= s; s < 1; 0 <= t; t < 1",
            then="(1-t*s)*(1-p) >= (1-t*p)*(1-s)",
            at="s=1/2, p=1/4, t=1/2",
            covers=(2, 3),
        ).unless("tau > 1", without="t < 1", given="t < 2"),
        by.for_all(
            "at p = tau q the condition (1-p)^d < (1 - tau p)(1 - tau q)^(d-1) holds for every d",
            given="0 < t; t < 1; 0 < q; q <= 1",
            then="1 - t*q < 1 - t*t*q",
            at="t=1/2, q=1",
            covers=(3,),
        ).unless("tau = 1", without="t < 1", given="t <= 1"),
        by.searched("volumes in fractions", _volume_law, _layers(), at=lambda layers: layers[0]),
        by.searched(
            "one symmetric layer in fractions",
            _rate_law,
            _symmetric(),
            at=lambda A, q, p, values, V: (A, exact.diagonal(-s for s in values)),
        ),
    ),
    further="For q = 1 and d = 2 the gap between a/(2-a) and this threshold is open; for larger d "
    "the threshold tends to tau q.",
)
