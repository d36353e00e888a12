"""Negating LayerNorm weights need not reverse anything: large h smooths with either sign."""

import sympy as sp

from oversmoothing.theory.proofs.all_depths import L, around, induction, ratio_is
from oversmoothing.theory.proofs.kit import AA, by, exact, given

_X0 = exact.column("1 2")


def _smooths(h: int, squared: sp.Expr) -> None:
    state = around(sp.Rational(3, 2) * (1 + h) ** L, (1 + sp.Rational(h, 2)) ** L / 2)
    induction(AA, exact.matrix(str(h)), _X0, state)
    ratio_is(state, squared)


def _as_it_was() -> None:
    """h = 3: mean 3/2 4^L, half difference (5/2)^L/2: (HFC/LFC)^2 = (25/64)^L/9."""
    _smooths(3, sp.Rational(25, 64) ** L / 9)


def _negated() -> None:
    """h = -3: mean 3/2 (-2)^L, half difference (-1/2)^L/2: (HFC/LFC)^2 = (1/16)^L/9, which falls
    faster still."""
    _smooths(-3, sp.Rational(1, 16) ** L / 9)


CLAIM = by.refuted(
    name="P-2401.04301v3-layernorm-always",
    statement="In Pre-LN negating all LayerNorm weights, H -> -H, exchanges smoothing and no "
    "smoothing (our reading of 'reverse'; v3 says that it can).",
    latex=r"\mathrm{verdict}(-H)\ne\mathrm{verdict}(H)",
    source="arXiv 2401.04301 v3, LayerNorm findings (abstract; a public summary), our reading",
    wording="our reading, without the 'can' of the abstract (the sign 'can influence this "
    "effect'): the paper's statement is not touched",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A),
    title="h = 3 and h = -3 both smooth",
    at=((AA, exact.matrix("3"), _X0), (AA, exact.matrix("-3"), _X0)),
    steps=(_as_it_was, _negated),
    repaired_by="P-2401.04301v3-layernorm-sign",
    further="With one scale for all tokens; the range is 0 < |h| <= 2/(1+a_1) for a bare h.",
)
