"""Subtracting 11^T/n does not remove the outlier of attention with a sink."""

from fractions import Fraction

from oversmoothing.theory.claims.binary_softmax import squared_frobenius
from oversmoothing.theory.numbers.rational import to_flint
from oversmoothing.theory.proofs.kit import by, equal, exact, given

_A = exact.matrix("; ".join(["7/10 1/10 1/10 1/10"] * 4))
_REST = exact.plus(_A, exact.uniform(4), -1)


def _one() -> None:
    """A - 11^T/4 has equal rows (9, -3, -3, -3)/20: rank 1. Its only singular value is its
    Frobenius norm, and the square of that is 27/25 > 1."""
    equal(to_flint(_REST).rank(), 1)
    equal(squared_frobenius(_REST), Fraction(27, 25))


CLAIM = by.refuted(
    name="N-2410.07799-sink",
    statement="A - 11^T/n has no singular value of 1 or more, whatever the softmax A: subtracting "
    "11^T/n removes the outlier (our reading for any attention; the paper treats random "
    "matrices at initialisation).",
    latex=r"A>0,\ A\mathbf 1=\mathbf 1\implies\|A-\tfrac1n\mathbf 1\mathbf 1^\top\|_2<1",
    source="arXiv 2410.07799, outlier removal (abstract), our reading for any attention",
    wording="our reading, without the paper's hypothesis of a random A at initialisation "
    "(abstract): its theorems are not touched",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A),
    title="all tokens look at the first",
    at=((_A, exact.matrix("1")),),
    steps=(_one,),
    repaired_by="N-2410.07799-outlier",
    further="Equal rows p: A - 1 p^T is 0. For a random A with mean 11^T/n the two are near.",
)
