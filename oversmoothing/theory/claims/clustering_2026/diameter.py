"""The spectral gap of a doubly stochastic A does not bound the diameter of the tokens."""

from fractions import Fraction

from oversmoothing.theory.claims.clustering_2026.averaging import DOUBLY, averaged, gap
from oversmoothing.theory.claims.t7 import oscillation
from oversmoothing.theory.proofs.kit import by, equal, exact, given

# 9/10 of the lazy walk on a cycle of six, 1/10 of 11^T/6: symmetric and positive.
_CYCLE = exact.matrix(
    "2 1 0 0 0 1; 1 2 1 0 0 0; 0 1 2 1 0 0; 0 0 1 2 1 0; 0 0 0 1 2 1; 1 0 0 0 1 2"
)
_A = exact.plus(exact.scaled("9/40", _CYCLE), exact.uniform(6), Fraction(1, 10))
_X0 = exact.column("1 1 1 0 0 0")


def _gap() -> None:
    """The lazy walk has the eigenvalues 1, 3/4, 3/4, 1/4, 1/4, 0; those of A but 1 are 9/10 of
    them. The gap is 1 - 27/40 = 13/40: the bound on the new diameter is 27/40."""
    equal(gap(_A), Fraction(13, 40))


def _moved() -> None:
    """eps = 1: X_1 = A X_0 has the entries 19/20 in the middle of the ones and 1/20 in the middle
    of the zeros. The diameter is 9/10 > 27/40."""
    moved = averaged(_A, _X0, Fraction(1))
    equal(oscillation([row[0] for row in moved]), Fraction(9, 10))
    assert Fraction(9, 10) > 1 - gap(_A)


CLAIM = by.refuted(
    name="N-clustering2026-diameter",
    statement="X' = (1 - eps) X + eps A X with doubly stochastic A of spectral gap lambda_2 = 1 - "
    "max |a_i|, i < n: the diameter of the tokens is at most (1 - eps lambda_2)^L of the first "
    "(the bound stands in the abstract; the layer's form and what the gap is of are our reading).",
    latex=r"d(X_L)\le(1-\varepsilon\lambda_2)^L\,d(X_0)",
    source="Verified Transformer Dynamics: Token Clustering Convergence in Lean 4 (2026), "
    "abstract, our reading",
    wording="our reading of the abstract; the paper's layer, the matrix that its gap is of and the "
    "premises of its theorem were not at hand",
    hypotheses=(DOUBLY, given.POSITIVE, given.TWO_TOKENS, given.REAL_A, given.NOT_FLAT),
    title="a cycle of six tokens, one layer",
    at=((_A, exact.matrix("1"), _X0),),
    steps=(_gap, _moved),
    repaired_by="N-clustering2026-norms",
    further="A proof that a machine checks is of what its premises say: how the gap enters them "
    "was not at hand.",
)
