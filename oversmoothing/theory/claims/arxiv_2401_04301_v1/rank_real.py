"""Rank collapse with real simple spectra: the exceptional ties are indeed a null set."""

from typing import Any

from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.lemmas import POSITIVE_SPECTRUM, SPECTRUM
from oversmoothing.theory.proofs.kit import Claim, by, draw, exact, given, spectra, verdict


def _law(attention: Any, h_values: Any, above: Any) -> None:
    A, a = attention
    size = range(len(h_values))
    H = [[h_values[i] if i == j else above[i] * (j > i) for j in size] for i in size]
    moduli = {(i, j): abs(1 + h_values[j] * (a, 1)[i]) for i in (0, 1) for j in size}
    dominant = [pair for pair, modulus in moduli.items() if modulus == max(moduli.values())]
    assume(not any(i != k and j != m for i, j in dominant for k, m in dominant))
    assert verdict(A=A, H=H).limit_rank == 1


CLAIM = Claim(
    name="P-2401.04301v1-rank-real",
    clauses=(
        "With real simple spectra of A and H the rank of X_L / rho^L collapses to 1 for X_0 "
        "outside a null set, unless two dominant pairs that differ in both indices tie exactly;",
        "for every A the eigenvalues of H that tie form a null set (v1: 'extremely rare').",
    ),
    latex=r"\sigma_2(X_L)/\sigma_1(X_L) \to 0 \ \text{unless}\ |1+h_ja_i| = |1+h_la_k| = \rho,\ "
    r"i\ne k,\ j\ne l",
    source="arXiv 2401.04301 v1, remark on rank (public reviews)",
    on_record=by.WRITTEN,
    hypotheses=(
        given.POSITIVE,
        given.TWO_TOKENS,
        given.REAL_A,
        given.REAL_H,
        given.Hypothesis(
            "the eigenvalues of A, and those of H, are simple",
            lambda case: spectra.simple(case.A) and spectra.simple(case.H),
            (given.case("2/3 1/6 1/6; 1/6 2/3 1/6; 1/6 1/6 2/3"), given.case(H="1 0; 0 1")),
        ),
    ),
    evidence=(
        by.written(
            "one leading row or column of pairs",
            POSITIVE_SPECTRUM.covering(1),
            SPECTRUM.covering(1),
            "[1] X_L = sum of mu_ij^L s_ij v_i u_j^T. If no two dominant pairs differ in both "
            "indices, all share an i or all share a j, so the dominant part is v_i y_L^T or x_L "
            "u_j^T, of rank 1 for every L.",
            "[1] Its size is at least a positive multiple of rho^L for s_ij != 0, as the u_j (or "
            "v_i) are independent; the rest is O(rho'^L), rho' < rho. By Weyl's inequality sigma_2"
            " is at most the norm of the rest: sigma_2/sigma_1 -> 0.",
            "[2] A tie with i != k, j != l means h_j a_i = h_l a_k or h_j a_i + h_l a_k = -2. The "
            "a are distinct, so a_i and a_k are not both 0 and each is a proper hyperplane in (h_1"
            " ... h_d): finitely many hyperplanes are a null set.",
        ),
        by.searched(
            "two tokens, no such tie, rank 1",
            _law,
            draw.two_token_attention(),
            st.lists(draw.fractions(-4, 3), min_size=2, max_size=3, unique=True),
            draw.lists(draw.fractions(-1, 1), 3),
            at=lambda attention, h_values, _: (attention[0], exact.diagonal(h_values)),
        ),
    ),
    further="Complex spectra: P-2401.04301v1-rank; repeated eigenvalues: T4c, the matching rank.",
)
