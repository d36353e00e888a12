"""Thm 2 of arXiv 2401.04301: the dominating term of X_L, with the hypotheses it needs."""

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from oversmoothing.theory.claims.lemmas import SPECTRUM
from oversmoothing.theory.proofs.kit import Claim, by, draw, equal, exact, given, spectra


def _law(attention: Any, value: Any, numbers: Any) -> None:
    (A, a), (H, h_values) = attention, value
    X0 = exact.from_integers(numbers[i : i + len(H)] for i in (0, 4))
    total = exact.zeros(2, len(H))
    for x in (Fraction(1), a):
        for h in {*h_values}:
            total = exact.plus(total, spectra.block(A, x, X0, H, h), (1 + h * x) ** 5)
    equal(total, exact.layer(A, H, X0, 5))


CLAIM = Claim(
    name="P-2401.04301v1-thm2",
    clauses=(
        "Thm 2 (v1; from public reviews): where mu = 1 + lambda_j^H lambda_i^A alone has the "
        "largest modulus, X_L / mu^L tends to s v_i^A (v_j^H)^T (s the coefficient of X_0), with"
        " 1 (v_j^H)^T for i = n;",
        "with ties, X_L minus the sum of the tied terms is of smaller order. It holds for A and "
        "H diagonalisable, which its Q^{-1} presupposes; -> is read after division by mu^L (our "
        "reading), and s may be 0 for special X_0.",
    ),
    latex=r"X_L = \textstyle\sum_{(i,j)\,\mathrm{dominant}} \mu_{ij}^L s_{ij} v_i^A (v_j^H)^\top + "
    r"o(\rho^L)",
    source="arXiv 2401.04301 v1, Thm 2 (public reviews)",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.EIGENBASIS_A, given.EIGENBASIS_H),
    evidence=(
        by.written(
            "power iteration in the eigenbasis",
            SPECTRUM.covering(1, 2),
            "[1, 2] With eigenbases v_i of A and u_j of H the matrices v_i u_j^T are n d "
            "independent eigenvectors: A v_i u_j^T W = h_j a_i v_i u_j^T.",
            "[1, 2] X_0 = sum of s_ij v_i u_j^T, hence X_L = sum of mu_ij^L s_ij v_i u_j^T.",
            "[1, 2] The terms with |mu_ij| < rho sum to O(rho'^L), rho' < rho; divided by mu^L "
            "they vanish. A single dominant term leaves s v_i u_j^T, v_n = 1.",
        ),
        by.searched(
            "the sum over spectral projectors is X_5, in fractions",
            _law,
            draw.two_token_attention(),
            draw.value_projections(3),
            draw.lists(st.integers(-9, 9), 8),
            at=lambda attention, value, _: (attention[0], value[0]),
        ),
    ),
    further="Defective A or H: P-2401.04301v1-thm2-any-weights and T6b.",
)
