"""Attention alone need not collapse: a fixed point of full rank."""

import sympy as sp

from oversmoothing.theory.claims.t8 import attention
from oversmoothing.theory.proofs.all_depths import symbolic
from oversmoothing.theory.proofs.kit import AA, by, equal, exact, given, vanishes

_X, _W = exact.identity(2), exact.matrix("3/2 -1/2; -1/2 3/2")


def _attention() -> None:
    """W_Q W_K^T/sqrt k = (ln 3) I. For X = I_2, two tokens (1, 0) and (0, 1), the logits are (ln
    3) I and their softmax is A, exactly."""
    found = attention(sp.eye(2), sp.log(3) * sp.eye(2), sp.zeros(2))
    vanishes(found - symbolic(AA))


def _fixed() -> None:
    """A X W = X: every layer of attention alone returns I_2. Rank 2 and HFC/LFC = 1 in all
    depths."""
    equal(exact.product(AA, _X, _W), _X)
    equal(exact.determinant(_X), 1)
    equal(exact.squared_norms(_X), (1, 1))


CLAIM = by.refuted(
    name="N-2103.03404-any-weights",
    statement="Without skip connections and feed-forward blocks the output of self-attention "
    "converges to equal tokens with depth, whatever the weights and the input (our reading of "
    "the abstract, which names no condition; the theorem's is recalled to be one on weights and "
    "input, and outside of it its bound says nothing).",
    latex=r"X_l=A(X_{l-1})X_{l-1}W\implies \min_x\|X_L-\mathbf 1x^\top\|\to0",
    source="arXiv 2103.03404, abstract, our reading without a condition",
    wording="our reading, without the condition of the paper's Theorem 2.2 on weights and input "
    "under which its bound tends to 0 (recalled): no fixed point satisfies it, and the theorem is "
    "not touched",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.NOT_FLAT),
    title="two tokens that attention and values return",
    at=((AA, exact.transposed(_W), _X),),
    steps=(_attention, _fixed),
    repaired_by="N-2103.03404-doubly-exponential",
    further="Here ||M|| = ln 3, ||W|| = 2, D_0^2 = 2: c D_0^2 = ln 3 > 1. Whether near states stay "
    "near is not said.",
)
