"""GRAFF's rule does not decide attention without negative eigenvalues."""

from fractions import Fraction

from oversmoothing.theory.proofs.kit import AA, by, exact, given, spectra, verdict

_H = exact.matrix("-1 0; 0 -1/10")


def _by_the_rule() -> None:
    """rho = 1 - 1/2, l_- = -1, l_+ = -1/10: |l_-|(rho - 1) = -1/2 is not above l_+ = -1/10. Low
    frequencies, by the rule."""
    assert spectra.values(AA) == [Fraction(1, 2), 1]
    assert Fraction(1, 2) - 1 < Fraction(-1, 10)


def _in_truth() -> None:
    """|1 + h|: 0 and 9/10. |1 + h/2|: 1/2 and 19/20 > 9/10. NON_SMOOTHING, as all of [-1, 0)."""
    assert spectra.by_moduli([Fraction(-1), Fraction(-1, 10)], [Fraction(1, 2)]) == "NON_SMOOTHING"
    assert verdict(A=AA, H=_H).verdict == "NON_SMOOTHING"


CLAIM = by.refuted(
    name="N-2206.10991-attention",
    statement="GRAFF's rule with rho = 1 - a_1 decides attention too, whatever the sign of a_1: "
    "high frequencies dominate only if |l_-|(rho - 1) > l_+ (our reading; the paper has 1 < rho "
    "< 2, the rule is recalled).",
    latex=r"\rho_C<\rho_Q\implies|\lambda_-|(\rho-1)>\lambda_+,\qquad \rho=1-a_1",
    source="arXiv 2206.10991 (GRAFF), the rule from memory, our reading for attention",
    wording="our reading, without the paper's hypothesis 1 < rho < 2 (recalled), which the "
    "counterexample violates (rho = 1/2): the paper's rule is not touched",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A, given.REAL_H),
    title="H = diag(-1, -1/10) and a_1 = 1/2",
    at=((AA, _H),),
    steps=(_by_the_rule, _in_truth),
    repaired_by="T2d",
    further="For 1 < rho < 2 the rule is right: N-2206.10991-rule.",
)
