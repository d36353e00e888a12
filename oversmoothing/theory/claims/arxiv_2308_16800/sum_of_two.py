"""A sum of two Kronecker products can collapse: the residual layer is one."""

import sympy as sp

from oversmoothing.theory.proofs.all_depths import L, induction
from oversmoothing.theory.proofs.kit import AA, Matrix, by, equal, exact, given, vanishes, verdict

_H, _X0 = exact.diagonal("1 1/2"), exact.identity(2)


def _scalar(M: Matrix) -> bool:
    return exact.identity(len(M), M[0][0]) == M


INDEPENDENT = given.Hypothesis(
    "I (x) I and H (x) A are linearly independent",
    lambda case: not (_scalar(case.A) and _scalar(case.H)),
    (given.case("1 0; 0 1", "1/2"),),
)


def _state() -> None:
    """X' = X + A X W, A with the rows (3, 1)/4 and (1, 3)/4, is the sum I (x) I + H (x) A. From
    X_0 = I its features are ((2^L + (3/2)^L)/2, (2^L - (3/2)^L)/2) and (((3/2)^L - (5/4)^L)/2,
    ((3/2)^L + (5/4)^L)/2)."""
    two, three, five = sp.Integer(2) ** L, sp.Rational(3, 2) ** L, sp.Rational(5, 4) ** L
    state = sp.Matrix([[two + three, three - five], [two - three, three + five]]) / 2
    induction(AA, _H, _X0, state)
    slow, fast = sp.Rational(3, 4) ** L, sp.Rational(5, 8) ** L
    shares = sp.Matrix([[1 + slow, slow - fast], [1 - slow, slow + fast]]) / 2
    vanishes([*(state - shares * two).applyfunc(sp.powsimp)])


def _verdict() -> None:
    """Divided by 2^L these are 1/2 and 0 plus terms in (3/4)^L and (5/8)^L: the limit has two
    equal rows (1/2, 0), rank one, and the tokens become equal."""
    equal(verdict(A=AA, H=_H).verdict, "SMOOTHING")


CLAIM = by.refuted(
    name="N-2308.16800-sums",
    statement="A sum of Kronecker products prevents over-smoothing and rank collapse (abstract: "
    "'a beneficial property that provably prevents'), every sum of two that are linearly "
    "independent (our reading: which sums are meant was not at hand).",
    latex=r"\operatorname{vec}(X')=\textstyle\sum_k(H_k\otimes A_k)\operatorname{vec}(X),\ "
    r"k\ge2\implies\text{no rank collapse}",
    source="arXiv 2308.16800, abstract, our reading",
    wording="our reading of the abstract ('provably prevents', in another version 'can provably "
    "prevent'); for which sums the paper proves it was not at hand",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, INDEPENDENT),
    title="the residual layer",
    at=((AA, _H, _X0),),
    steps=(_state, _verdict),
    repaired_by="N-2308.16800-any-state",
)
