"""The mean of the heads' attention does not decide."""

import sympy as sp

from oversmoothing.theory.proofs.all_depths import L, around, symbolic
from oversmoothing.theory.proofs.kit import AA, AQ, by, exact, given, vanishes, verdict

_H1, _H2, _X0 = exact.matrix("1"), exact.matrix("-1/2"), exact.column("1 2")


def _by_the_mean() -> None:
    """The mean of both A is 11^T/2 and the sum of both h is 1/2: SMOOTHING by these."""
    mean = exact.scaled("1/2", exact.plus(AA, AQ))
    assert verdict(A=mean, H=exact.plus(_H1, _H2)).verdict == "SMOOTHING"


def _as_they_are() -> None:
    """X' = X + A_1 X - A_2 X/2 multiplies the mean by 3/2 and the difference by 1 + 1/2 + 1/4 =
    7/4: HFC/LFC grows by 7/6 in each layer."""
    moved = exact.plus(exact.plus(_X0, exact.product(AA, _X0, _H1)), exact.product(AQ, _X0, _H2))
    half = sp.Rational(1, 2)
    state = around(3 * half * (3 * half) ** L, half * sp.Rational(7, 4) ** L)
    vanishes(state.subs(L, 0) - symbolic(_X0))
    vanishes(state.subs(L, 1) - symbolic(moved))
    step = sp.eye(2) + symbolic(AA) - symbolic(AQ) / 2
    vanishes(state.subs(L, L + 1) - step * state)


CLAIM = by.refuted(
    name="P-2401.04301v1-heads-mean",
    statement="A layer of several heads is decided by the mean of their A and the sum of their H "
    "(our reading of one way to apply the theory of one head; which way Table 1 takes is not "
    "known to us).",
    latex=r"\mathrm{verdict}\big((A_h,H_h)_h\big)=\mathrm{verdict}\Big(\tfrac1k\sum_hA_h,"
    r"\sum_hH_h\Big)",
    source="arXiv 2401.04301 v1, Table 1, our reading for several heads",
    wording="our reading, without the paper's hypothesis of one head (poster): its theorems are "
    "not touched; which way its Table 1 takes was not at hand",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A),
    title="two heads that pull apart",
    at=((AA, _H1, _X0), (AQ, _H2, _X0)),
    steps=(_by_the_mean, _as_they_are),
    repaired_by="P-2401.04301v1-heads",
)
