"""Layers that differ: exponents in the place of radii, and when they can be read off spectra."""

from fractions import Fraction

from hypothesis import assume

from oversmoothing.theory.claims.arxiv_2312_06182.escalating import t_falls
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given


def _law(attention: tuple[Matrix, Fraction], values: list[Fraction]) -> None:
    """One feature, one A, an h for each layer: each layer multiplies t by |1 + h a|/|1 + h|."""
    A, a = attention
    assume(-1 not in values)
    X = exact.column("1 3")
    for h in values:
        t_falls(A, X, lambda Z, h=h: exact.layer(A, [[h]], Z), 1 + h * a, 1 + h, 1)  # type: ignore[misc]
        X = exact.layer(A, [[h]], X)


CLAIM = Claim(
    name="P-2401.04301v1-layers",
    clauses=(
        "The paper's theory has one A and one H; for layers that differ (stationary, ergodic, as "
        "in T7a) the top exponents gamma_C and gamma_Q take the place of the radii (our form). "
        "For equal layers they are log rho_C and log rho_Q, where those are not 0.",
        "One A, and H_l = V diag(h_(l,1), ..., h_(l,d)) V^-1 with one V and log|1 + h_(l,j) a_i| "
        "integrable for all i, j: gamma_C = max_j E log|1 + h_j|, gamma_Q = max over j and i < n "
        "of E log|1 + h_j a_i|.",
        "So with one V and A > 0: all h in (-1, 0) gives gamma_Q > gamma_C, and all h > 0 gives "
        "gamma_Q < gamma_C, whatever the order of the layers.",
        "Without a common V the spectra of the layers do not fix the exponents.",
    ),
    latex=r"\gamma_C=\max_jE\log|1+h_j|,\qquad \gamma_Q=\max_{j,\,i<n}E\log|1+h_ja_i|",
    source="ours, for networks whose layers have weights of their own (arXiv 2401.04301)",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS),
    evidence=(
        by.written(
            "exponents of triangular products",
            "[1] ||M^L||^(1/L) -> rho(M) (Gelfand), for C = I + H and T = I + H (x) B of T7a.",
            "[2] In the basis V the features decouple, and a unitary basis makes B triangular with "
            "the a_i, i < n, on its diagonal: products of triangular matrices with entries 1 + "
            "h_(l,j) a_i there. The exponents of such a product are those of its diagonal (as in "
            "T7a), by Birkhoff's theorem E log|1 + h_j a_i|; the largest is the top exponent.",
            "[3] For every layer |1 + h a_i| > |1 + h| if h in [-1, 0), and < if h > 0, |a_i| < 1 "
            "(P-2401.04301v3-control-negative, P-2401.04301v3-control-positive): the same strict "
            "order holds of the means of the logarithms, for each j.",
            "[4] T7b-rotation: the same eigenvalues in every layer and one A, and the exponents "
            "change with the angle of rotation.",
        ),
        by.searched(
            "two tokens, an h for each layer: exact factors of t",
            _law,
            draw.two_token_attention(),
            draw.lists(draw.fractions(-3, 3), 1, 5),
            at=lambda attention, values: (attention[0], [[values[0]]]),
        ),
    ),
    further="Attention computed from X has exponents of its trajectory only.",
)
