"""Adding alpha u w^T does not make every u the principal eigenvector."""

import sympy as sp

from oversmoothing.theory.proofs.all_depths import symbolic
from oversmoothing.theory.proofs.kit import J2, by, equal, exact, given, vanishes, verdict

# F = [[0, 0], [1, 0]], u = w = (1, 0), alpha = 9.
_H = exact.matrix("9 0; 1 0")


def _another() -> None:
    """F = [[0, 0], [1, 0]], u = w = (1, 0): F' = [[alpha, 0], [1, 0]] has the eigenvector (alpha,
    1) for alpha, for every alpha != 0; F' u = (alpha, 1) is no multiple of u."""
    alpha = sp.Symbol("alpha", nonzero=True)
    steered = sp.Matrix([[0, 0], [1, 0]]) + alpha * sp.Matrix([[1, 0], [0, 0]])
    equal(steered.subs(alpha, 9), symbolic(_H))
    principal = sp.Matrix([alpha, 1])
    vanishes(steered * principal - alpha * principal)
    assert (steered * sp.Matrix([1, 0]))[1] == 1


def _tokens() -> None:
    """alpha = 9, A = 11^T/2: SMOOTHING, and by N-2605.25619-direction the tokens tend to (9, 1)."""
    assert verdict(A=J2, H=_H).verdict == "SMOOTHING"


CLAIM = by.refuted(
    name="N-2605.25619-steering-any",
    statement="F + alpha u w^T with w^T u = 1 makes any u the principal eigenvector once alpha is "
    "large (our reading of steering 'towards an arbitrary desired direction'; the paper's formula "
    "was not at hand).",
    latex=r"\forall u\ \exists\alpha:\ u\ \text{is the principal eigenvector of }F+\alpha uw^\top",
    source="arXiv 2605.25619, steering (abstract), our reading",
    wording="our reading of the abstract; the paper's formula and its hypotheses were not at hand",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.SMOOTHING),
    title="u that is no eigenvector of F",
    at=((J2, _H),),
    steps=(_another, _tokens),
    repaired_by="N-2605.25619-steering",
    further="The angle to u falls like 1/alpha; F + (b u - F u) w^T hits u exactly.",
)
