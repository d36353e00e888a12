"""Every head in [-1, 0), the layer smooths: heads add up."""

import sympy as sp

from oversmoothing.theory.proofs.all_depths import L, around, induction, ratio_is
from oversmoothing.theory.proofs.kit import AA, by, equal, exact, given

_H, _X0 = exact.matrix("-3/4"), exact.column("1 2")


def _two_heads() -> None:
    """Two heads with the same A of eigenvalue 1/2 and h = -3/4 each: X' = X - (3/2) A X."""
    head = exact.product(AA, _X0, _H)
    equal(exact.plus(exact.plus(_X0, head), head), exact.layer(AA, exact.matrix("-3/2"), _X0))


def _smooth() -> None:
    """Mean (3/2)(-1/2)^L, half difference (1/4)^L/2: (HFC/LFC)^2 = (1/4)^L/9 -> 0."""
    half = sp.Rational(1, 2)
    state = around(3 * half * (-half) ** L, half * sp.Rational(1, 4) ** L)
    induction(AA, exact.matrix("-3/2"), _X0, state)
    ratio_is(state, sp.Rational(1, 4) ** L / 9)


CLAIM = by.refuted(
    name="P-2401.04301v1-heads-each",
    statement="If every head has all eigenvalues of its H_h in [-1, 0), a layer of several heads "
    "does not oversmooth (our reading: the control statement applied head by head; how heads are "
    "combined is not known to us).",
    latex=r"\lambda_j^{H_h}\in[-1,0)\ \forall h,j\implies \mathrm{HFC}/\mathrm{LFC}\not\to0",
    source="arXiv 2401.04301 v1, control of the spectrum, our reading for several heads",
    wording="our reading, without the paper's hypothesis of one head (poster): its theorems are "
    "not touched",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.HALF_OPEN),
    title="two heads of -3/4 make -3/2",
    at=((AA, _H, _X0),),
    steps=(_two_heads, _smooth),
    repaired_by="P-2401.04301v1-heads",
    further="With one feature all h <= 0 and sum |h| <= 1 suffice (T7b-certificate).",
)
