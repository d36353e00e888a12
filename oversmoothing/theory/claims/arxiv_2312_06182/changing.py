"""'All attention matrices share span(1) and have large gaps': the gap of each is not the rate."""

from oversmoothing.theory.proofs.kit import by, equal, exact, given, spectra

_GAP = given.Hypothesis(
    "the second eigenvalue of the A of each layer is 0",
    lambda case: spectra.values(case.A)[:-1] == [0] * (len(case.A) - 1),
    (given.case(),),
)

# Smallest denominators over rows in thirds to fifths (exhaustive); two tokens cannot do it.
FIRST = exact.matrix("1/4 1/2 1/4; 1/4 1/2 1/4; 1/2 1/4 1/4")
SECOND = exact.matrix("1/4 1/4 1/2; 1/4 1/2 1/4; 1/4 1/2 1/4")
_H, _V = exact.matrix("1"), exact.column("-2 1 1")


def _collapse_alone() -> None:
    """Each alone makes all tokens equal in two layers: A^2 has equal rows."""
    for A in (FIRST, SECOND):
        assert given.consensus(exact.product(A, A)), "the tokens differ"


def _survives() -> None:
    """In turn they do not: A_2 A_1 v = v/16 for v = (-2, 1, 1). On X_0 = 1 + v the tokens differ by
    16^-k v after 2k layers: a rate of 1/4 per layer, not 0."""
    equal(exact.product(SECOND, FIRST, _V), exact.scaled("1/16", _V))


CLAIM = by.refuted(
    name="N-2312.06182-changing",
    statement="With attention matrices that differ by layer, similarity escalates at the rate of "
    "their |lambda_2| (our reading: the abstract argues from the shared eigenspace span(1) and the "
    "spectral gaps of all attention matrices).",
    latex=r"(\mathrm{HFC}/\mathrm{LFC})^{1/L} \to |\lambda_2|\ "
    r"\text{for}\ X_L = A_L\cdots A_1X_0,\ |\lambda_2(A_l)| = |\lambda_2|",
    source="arXiv 2312.06182 v2, abstract, our reading for layers that differ",
    wording="our reading of the abstract, for layers that differ; the paper's hypotheses were not "
    "at hand",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A, _GAP),
    title="two matrices in turn, each with lambda_2 = 0",
    at=((FIRST, _H), (SECOND, _H)),
    steps=(_collapse_alone, _survives),
    formal=by.Formal("MoreRefutations.N_changing", (1,)),
    repaired_by="N-2312.06182-changing-bound",
    further="What bounds a product is Dobrushin's tau(A_l), osc(A x) <= tau osc(x), or a norm of "
    "the quotient, not the eigenvalues.",
)
