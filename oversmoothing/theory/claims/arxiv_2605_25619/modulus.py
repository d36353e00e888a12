"""With a residual the largest |lambda| does not name the direction."""

import sympy as sp

from oversmoothing.theory.proofs.all_depths import L, induction
from oversmoothing.theory.proofs.kit import J2, by, exact, given

_H, _X0 = exact.diagonal("1 -3/2"), exact.matrix("1 2; 3 5")
_SIDE = sp.Matrix([-1, 1])


def _state() -> None:
    """The mean of the tokens is (2 * 2^L, (7/2)(-1/2)^L), and they differ from it by -+(1, 3/2)
    in every layer."""
    mean = sp.Matrix([[2 * 2**L, sp.Rational(7, 2) * sp.Rational(-1, 2) ** L]])
    state = sp.ones(2, 1) * mean + _SIDE * sp.Matrix([[1, sp.Rational(3, 2)]])
    induction(J2, _H, _X0, state)


def _direction() -> None:
    """So |x_2| <= 5 and x_1 >= 2^(L+1) - 1 in both tokens: their direction tends to (1, 0), the
    eigenvector of 1, while the largest |lambda| is 3/2, of (0, 1). |1 + lambda| is 2 and 1/2."""
    assert sp.limit(5 / (2 * 2**L - 1), L, sp.oo) == 0
    assert abs(_H[1][1]) > abs(_H[0][0]) and abs(1 + _H[1][1]) < abs(1 + _H[0][0])


CLAIM = by.refuted(
    name="N-2605.25619-modulus",
    statement="With shared weights and a residual tokens tend to the eigenvector of F with the "
    "largest |lambda| (our reading of 'principal eigenvector'; the paper's own analysis treats "
    "layers whose details were not at hand).",
    latex=r"x_i/\|x_i\|\to\pm v_1,\qquad |\lambda_1|=\max_j|\lambda_j|",
    source="arXiv 2605.25619, shared weights (abstract), our reading with a residual",
    wording="our reading of the abstract, with a residual; the layers of the paper's analysis were "
    "not at hand",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_H, given.SMOOTHING),
    title="F = diag(1, -3/2)",
    at=((J2, _H, _X0),),
    steps=(_state, _direction),
    repaired_by="N-2605.25619-direction",
)
