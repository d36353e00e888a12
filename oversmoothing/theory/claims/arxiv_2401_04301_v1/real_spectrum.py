"""The ordering lambda_1^A <= ... <= lambda_n^A presupposes what softmax does not give."""

from fractions import Fraction

from oversmoothing.theory.layer.quotient import rational_quotient
from oversmoothing.theory.proofs.kit import by, equal, exact, given, spectra, vanishes

# Smallest denominators over all n = 3 with rows in thirds to sixths (exhaustive search).
_COMPLEX = exact.matrix("1/4 1/4 1/2; 1/2 1/4 1/4; 1/4 1/2 1/4")
_DEFECTIVE = exact.matrix("1/2 1/4 1/4; 1/2 1/4 1/4; 1/4 1/2 1/4")
_ANY = exact.matrix("-1")  # the statement is about A alone


def _complex() -> None:
    """Differences to the last token evolve by B' = [[0, -1/4], [1/4, -1/4]]: trace -1/4,
    determinant 1/16, discriminant -3/16 < 0, so no order exists."""
    B = rational_quotient(_COMPLEX)
    equal(B, exact.matrix("0 -1/4; 1/4 -1/4"))
    equal((B[0][0] + B[1][1]) ** 2 - 4 * exact.determinant(B), Fraction(-3, 16))
    assert not spectra.is_real(_COMPLEX), "the spectrum is real"


def _defective() -> None:
    """The second A is positive and stochastic as well; its B' = [[1/4, -1/4], [1/4, -1/4]] is not 0
    but B'^2 = 0, so A is not diagonalisable."""
    B = rational_quotient(_DEFECTIVE)
    equal(B, exact.matrix("1/4 -1/4; 1/4 -1/4"))
    vanishes(exact.product(B, B))
    assert not spectra.diagonalisable(_DEFECTIVE), "A is diagonalisable"


CLAIM = by.refuted(
    name="P-2401.04301v1-real-spectrum",
    statement="The eigenvalues of softmax attention can be sorted, lambda_1^A <= ... <= "
    "lambda_n^A, and A has a basis of eigenvectors, for every A (v1, poster: sorted spectrum; a "
    "public summary: positive and diagonalisable. Our reading: assumed of every softmax A). True "
    "for n = 2.",
    latex=r"\lambda_1^A \le \dots \le \lambda_n^A = 1,\quad "
    r"A = V\,\mathrm{diag}(\lambda^A)\,V^{-1}",
    source="arXiv 2401.04301 v1 (poster), setting of Thms 1-3; our reading of its scope",
    wording="our reading of the poster and a summary; whether the paper claims the sorted spectrum "
    "or assumes it, and then is not touched, was not at hand",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS),
    title="three tokens that look ahead in a circle; and a defective A",
    at=((_COMPLEX, _ANY), (_DEFECTIVE, _ANY)),
    steps=(_complex, _defective),
    formal=by.Formal("MoreRefutations.v1_real_spectrum", (1,)),
    repaired_by="T1g",
    further="Generic W_Q W_K^T give complex spectra from n = 3 on; T3a and T3b then decide.",
)
