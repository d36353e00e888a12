"""With residual: escalation neither at the rate |lambda_2| nor inevitable."""

import sympy as sp

from oversmoothing.theory.proofs.all_depths import L, induction, ratio_is
from oversmoothing.theory.proofs.kit import AA, by, equal, exact, given, spectra

_X0 = exact.column("0 2")


def _state(h: sp.Rational) -> sp.Matrix:
    mean, half = (1 + h) ** L, (1 + h / 2) ** L
    return sp.Matrix([mean - half, mean + half])


def _slower() -> None:
    """h = 1: mean 2^L, difference (3/2)^L: ratio (3/4)^L, not (1/2)^L."""
    state = _state(sp.Integer(1))
    induction(AA, exact.matrix("1"), _X0, state)
    ratio_is(state, sp.Rational(9, 16) ** L)


def _reversed() -> None:
    """h = -1/2: mean 2^-L, difference (3/4)^L: ratio (3/2)^L, similarity vanishes."""
    state = _state(sp.Rational(-1, 2))
    induction(AA, exact.matrix("-1/2"), _X0, state)
    ratio_is(state, sp.Rational(9, 4) ** L)


CLAIM = by.refuted(
    name="N-2312.06182-residual-gap",
    statement="With residual too, similarity escalates at a geometric rate that |lambda_2(A)| "
    "fixes, whatever the weights (our reading of a lower bound that 'depends on |lambda_2|'; its "
    "form and its assumptions on the weights were not at hand).",
    latex=r"X' = X + AXW:\quad (\mathrm{HFC}/\mathrm{LFC})^{1/L} \to \varphi(|\lambda_2(A)|) < 1",
    source="arXiv 2312.06182 v2, self-attention with residual (a summary), our reading",
    wording="our reading, without the expectation that the paper's bound is on (a summary): one "
    "choice of weights does not touch it",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A),
    title="one A, two signs of the weight",
    at=((AA, exact.matrix("1"), _X0),),
    steps=(
        by.Step(
            "lambda_2 = 1/2.", lambda: equal([str(a) for a in spectra.values(AA)], ["1/2", "1"])
        ),
        _slower,
        _reversed,
    ),
    repaired_by="N-2312.06182-residual",
    formal=by.Formal("Refutations.N_residual_gap", (1,)),
)
