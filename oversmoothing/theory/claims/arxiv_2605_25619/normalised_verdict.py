"""Normalising tokens is not a change of lengths alone: it can make consensus attract."""

from fractions import Fraction

from oversmoothing.theory.proofs.kit import by, equal, exact, given, spectra, verdict

_A, _H = exact.matrix("19/20 1/20; 1/20 19/20"), exact.diagonal("-1/2 -3/4")


def _linear() -> None:
    """a = 9/10. rho_C = 1/2, and the mode (9/10, -1/2) has 11/20: NON_SMOOTHING, so for X_0 outside
    a null set HFC/LFC does not tend to 0 (T1f)."""
    equal(spectra.values(_A), [Fraction(9, 10), 1])
    assert verdict(A=_A, H=_H).verdict == "NON_SMOOTHING"


def _normalised() -> None:
    """With every token normalised in each layer, at consensus on u = (1, 0), mu = 1/2, only h =
    -3/4 counts (N-2605.25619-normalised): |1 - 3/4|/mu = 1/2 and |1 - 27/40|/mu = 13/20. Both are
    below 1: every X_0 near 1 u^T ends at consensus, HFC/LFC -> 0."""
    h, mu = _H[1][1], 1 + _H[0][0]
    found = [abs(1 + a * h) / mu for a in (Fraction(1), Fraction(9, 10))]
    equal(found, [Fraction(1, 2), Fraction(13, 20)])
    assert max(found) < 1


CLAIM = by.refuted(
    name="N-2605.25619-normalised-verdict",
    statement="Dividing every token by its norm in each layer changes lengths alone: where X' = X "
    "+ A X W with fixed A is NON_SMOOTHING, the normalised iteration collapses to consensus for "
    "no open set of X_0 either (our reading of L2 normalisation as harmless).",
    latex=r"\rho_C<\rho_Q\implies \mathrm{HFC}/\mathrm{LFC}\not\to0\ \text{with } "
    r"x_i\leftarrow x_i/\|x_i\|",
    source="arXiv 2605.25619, tests with L2 normalisation (a summary), our reading",
    wording="our reading of a summary of the paper's tests; whether the paper states it was not at "
    "hand",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A, given.NON_SMOOTHING),
    title="a mode that normalisation removes",
    at=((_A, _H),),
    steps=(_linear, _normalised),
    repaired_by="N-2605.25619-normalised",
    further="One number for the whole state, X/||X||, does change no metric.",
)
