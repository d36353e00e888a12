"""Without the residual attention is low-pass, whatever the weights."""

from typing import Any

from hypothesis import strategies as st

from oversmoothing.theory.claims.lemmas import BLOCKS, COUPLING, GROWTH, POSITIVE_SPECTRUM
from oversmoothing.theory.proofs.kit import Claim, by, draw, equal, exact, given, spectra


def _law(attention: Any, value: Any, numbers: Any) -> None:
    """Two tokens: HFC_L = a^L HFC_0 W^L, and pi^T X_L = pi^T X_0 W^L."""
    (A, a), (H, _) = attention, value
    W, pi = exact.power(exact.transposed(H), 6), spectra.stationary(A)
    X = exact.from_integers(numbers[i : i + len(H)] for i in (0, 4))
    moved = exact.product(exact.power(A, 6), X, W)
    equal(exact.centred(moved), exact.scaled(a**6, exact.product(exact.centred(X), W)))
    equal([exact.weighted_mean(pi, moved)], exact.product([exact.weighted_mean(pi, X)], W))


CLAIM = Claim(
    name="P-2401.04301v1-no-residual",
    clauses=(
        "Without the residual, X' = A X W, the family lambda_j^H lambda_n^A always dominates and"
        " the model is always low-pass (v1; in part from public reviews). It holds for every A >"
        " 0 and H not nilpotent, real or complex, defective or not, for X_0 outside a proper "
        "subspace.",
    ),
    latex=r"X_L = A^L X_0 W^L,\ A > 0,\ H\ \text{not nilpotent} \implies "
    r"\mathrm{HFC}/\mathrm{LFC} \to 0",
    source="arXiv 2401.04301 v1, remark on the residual (public reviews); our reading of its scope",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.NOT_NILPOTENT),
    evidence=(
        by.written(
            "the residual taken out of both blocks",
            POSITIVE_SPECTRUM.covering(1),
            BLOCKS.covering(1),
            "[1] Without the residual the same identities read Y' = B Y W and c' = c W: the blocks"
            " are H (x) B and H, of radii rho(H) |lambda_2| and rho(H) > 0, where |lambda_2| = max"
            " over i < n of |a_i| < 1.",
            GROWTH.covering(1),
            COUPLING.covering(1),
            "[1] ||HFC_L|| = O(L^q (rho(H) |lambda_2|)^L) and, for c_0 outside a proper subspace, "
            "||c_L|| >= const rho(H)^L: t -> 0, so HFC/LFC -> 0.",
        ),
        by.searched(
            "two tokens: HFC_L = a^L HFC_0 W^L in fractions",
            _law,
            draw.two_token_attention(),
            draw.value_projections(3),
            draw.lists(st.integers(-9, 9), 8),
            at=lambda attention, value, _: (attention[0], value[0]),
        ),
    ),
    further="The rate is |lambda_2| whatever H (T9a, N-2312.06182-escalation).",
)
