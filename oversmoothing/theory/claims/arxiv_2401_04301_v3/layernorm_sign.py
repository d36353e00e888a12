"""v3's finding on negative LayerNorm weights, for all of them negated: what reverses, and where."""

from fractions import Fraction

from oversmoothing.theory.proofs.kit import AA, Claim, by, given, verdict


def _both_outcomes() -> None:
    """[2; instance] A of eigenvalue 1/2, H_eff = [[h, -h], [0, 0]] = [[2h, 0], [0, 0]] C, spectrum
    {h, 0}: h = 1/2 smooths and -1/2 ties; h = 3 and -3 both smooth."""
    for h, negated in ((Fraction(1, 2), "TIE"), (Fraction(3), "SMOOTHING")):
        H = [[h, -h], [Fraction(0), Fraction(0)]]
        assert verdict(A=AA, H=H).verdict == "SMOOTHING"
        assert verdict(A=AA, H=[[-x for x in row] for row in H]).verdict == negated


CLAIM = Claim(
    name="P-2401.04301v3-layernorm-sign",
    clauses=(
        "Negative LayerNorm weights can reverse the expected effect, mainly in Pre-LN (v3's "
        "abstract and a public summary; our reading: all weights of a norm change sign). Pre-LN "
        "without query and key biases: (gamma, beta) -> (-gamma, -beta) is H -> -H, for every "
        "state.",
        "With A frozen and one scale for all tokens, and one real non-zero eigenvalue h of H_eff "
        "= W^T diag(gamma) C/s, the verdict changes iff 0 < |h| <= max(2, s_A), s_A = 2/(1+a_1) "
        "for real spec(A).",
        "Post-LN, attention alone, without biases: it changes nothing.",
    ),
    latex=r"\gamma\to-\gamma:\quad \text{Pre-LN } H\to-H,\qquad \text{Post-LN } X_L\to\pm X_L",
    source="arXiv 2401.04301 v3, LayerNorm findings (abstract; a public summary), our reading",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS),
    evidence=(
        by.written(
            "two symmetries and one range",
            "[1] The Pre-LN symmetry of T8d.",
            "[2] Whether H_eff and -H_eff have different verdicts is T8e-reversal.",
            _both_outcomes,
            "[3] The Post-LN symmetry of T8d.",
        ),
    ),
    further="So 'mainly in Pre-LN' is a theorem for the global sign. Some weights negated: "
    "P-2401.04301v3-layernorm-mixed.",
)
