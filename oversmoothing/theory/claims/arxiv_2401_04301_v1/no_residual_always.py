"""'Always' low-pass without the residual: not for every state."""

import sympy as sp

from oversmoothing.theory.proofs.all_depths import L, ratio_is, symbolic
from oversmoothing.theory.proofs.kit import by, equal, exact, given, vanishes

_A, _H, _X0 = exact.matrix("1/2 1/2; 1/4 3/4"), exact.matrix("1"), exact.column("2 -1")


def _forever() -> None:
    """A (2, -1) = (2, -1) / 4, so X_L = 4^-L (2, -1): mean 4^-L / 2, deviations +- 3/2 4^-L, ratio
    3 for every L."""
    state = sp.Rational(1, 4) ** L * sp.Matrix([2, -1])
    equal(state.subs(L, 0), symbolic(_X0))
    vanishes(state.subs(L, L + 1) - symbolic(_A) * state * symbolic(_H).T)
    ratio_is(state, 9)


CLAIM = by.refuted(
    name="P-2401.04301v1-no-residual-always",
    statement="Without the residual the model is low-pass for every X_0 with HFC and LFC not 0 "
    "(our reading of 'always').",
    latex=r"\mathrm{HFC}(A^L X_0 W^L)/\mathrm{LFC}(A^L X_0 W^L) \to 0 \quad \forall X_0",
    source="arXiv 2401.04301 v1, remark on the residual, our reading",
    wording="our reading of 'always' in public reviews; for which X_0 the paper says it was not at "
    "hand",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.BOTH_PARTS),
    title="an eigenvector of A that has a mean",
    at=((_A, _H, _X0),),
    steps=(_forever,),
    repaired_by="T9a",
    further="A nilpotent H (H = 0, say) makes X_L exactly 0, and the ratio undefined.",
    formal=by.Formal("Refutations.v1_no_residual", (1,)),
)
