"""Outlier removal can cause what it is meant to prevent."""

import sympy as sp

from oversmoothing.theory.claims.arxiv_2410_07799.outlier_removed import removed
from oversmoothing.theory.proofs.all_depths import L, around, induction, ratio_is
from oversmoothing.theory.proofs.kit import AA, by, exact, given

_H, _X0 = exact.matrix("-1"), exact.column("1 3")


def _with() -> None:
    """With A: mean 0 from the first layer on, and -+2^-L around it. HFC/LFC is infinite."""
    X = _X0
    for depth in range(1, 5):
        X = exact.layer(AA, _H, X)
        assert exact.scaled(2**depth, X) == exact.column("-1 1")


def _without() -> None:
    """With A - 11^T/2: mean 2 for ever, and -+2^-L around it. HFC/LFC = 2^-(L+1) -> 0."""
    half = sp.Rational(1, 2) ** L
    state = around(sp.Integer(2), half)
    induction(removed(AA), _H, _X0, state)
    ratio_is(state, half**2 / 4)


CLAIM = by.refuted(
    name="N-2410.07799-removal-always",
    statement="Subtracting 11^T/n from the attention keeps tokens from becoming equal, whatever "
    "the weights (our reading of outlier removal as a remedy, for layers with residual and "
    "trained weights; the paper argues at initialisation).",
    latex=r"X'=X+(A-\tfrac1n\mathbf 1\mathbf 1^\top)XW\implies\mathrm{HFC}/\mathrm{LFC}\not\to0",
    source="arXiv 2410.07799, outlier removal (abstract), our reading with a residual",
    wording="our reading, without the paper's setting, attention alone with random weights at "
    "initialisation (abstract): its theorems are not touched",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A, given.NON_SMOOTHING),
    title="h = -1: NON_SMOOTHING with A, smoothing without J",
    at=((AA, _H, _X0),),
    steps=(_with, _without),
    repaired_by="N-2410.07799-removal",
)
