"""Steering: which rank-one change of F makes a chosen direction dominate."""

from fractions import Fraction

import flint
from hypothesis import assume, strategies as st

from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact


def _linear(value: Fraction) -> flint.fmpq_poly:
    """x - value."""
    return flint.fmpq_poly([flint.fmpq(-value.numerator, value.denominator), 1])


@st.composite
def _steered(pick: st.DrawFn) -> tuple[Matrix, Fraction, Matrix, Matrix, Fraction]:
    """F with F u = f u, w with w^T u = 1, and alpha."""
    kinds = pick(draw.lists(draw.fractions(-4, 3), 1, 4))
    S, inverse = pick(draw.unimodular(len(kinds)))
    F = exact.product(S, exact.diagonal(kinds), inverse)
    u, w = [[row[0]] for row in S], pick(draw.lists(draw.fractions(-3, 3), len(kinds)))
    at = sum(x * y for (x,), y in zip(u, w, strict=True))
    assume(at != 0)
    return F, kinds[0], u, [[y / at for y in w]], pick(draw.fractions(-5, 5))


def _law(F: Matrix, f: Fraction, u: Matrix, w: Matrix, alpha: Fraction) -> None:
    """(1) at the eigenvector u, and (2) at a vector that is none: u plus a unit vector."""
    found = exact.characteristic(exact.plus(F, exact.product(u, w), alpha))
    equal(found * _linear(f), exact.characteristic(F) * _linear(f + alpha))
    v = [[x + (k == 0)] for k, (x,) in enumerate(u)]
    at = exact.product(w, v)[0][0]
    assume(at != 0)
    row = exact.scaled(1 / at, w)
    wanted = exact.plus(exact.scaled(alpha, v), exact.product(F, v), -1)
    steered = exact.plus(F, exact.product(wanted, row))
    equal(exact.product(steered, v), exact.scaled(alpha, v))
    left = exact.plus(exact.identity(len(F)), exact.product(v, row), -1)
    rest = exact.characteristic(exact.product(left, F))
    equal(exact.characteristic(steered) * flint.fmpq_poly([0, 1]), rest * _linear(alpha))


CLAIM = Claim(
    name="N-2605.25619-steering",
    clauses=(
        "Steering (abstract; this form is our reading): F' = F + alpha u w^T, w^T u = 1. If F u "
        "= f u, then F' u = (f + alpha) u and the other eigenvalues are those of F without one "
        "copy of f, whatever w is. So u is the direction of N-2605.25619-direction iff |1 + f + "
        "alpha| > |1 + lambda_j| for all of these (without a residual: |f + alpha| > |lambda_j|), "
        "consensus dominating.",
        "For any u != 0: F'' = F + (b u - F u) w^T has F'' u = b u, and beside b the eigenvalues "
        "of (I - u w^T) F without one 0, whatever b is: u dominates once |1 + b| is above all |1 "
        "+ nu_j|.",
        "If u is no eigenvector of F it is none of F + alpha u w^T; the eigenvector of the "
        "largest eigenvalue tends to u like 1/|alpha|.",
    ),
    latex=r"\operatorname{spec}(F+\alpha uw^\top)=\operatorname{spec}(F)\setminus\{f\}\cup"
    r"\{f+\alpha\},\qquad Fu=fu,\ w^\top u=1",
    source="ours, for the steering of arXiv 2605.25619 (abstract)",
    on_record=by.WRITTEN,
    setting="F and u, w real; the layer of N-2605.25619-direction",
    evidence=(
        by.written(
            "modulo u",
            "[1] F' u = F u + alpha u. Modulo u, F' and F are the same map: the spectrum of F' is "
            "f + alpha with that of F modulo u, which is spec(F) without one f. Then "
            "N-2605.25619-direction.",
            "[2] F'' = F (I - u w^T) + b u w^T, so F'' u = b u, and modulo u it is F (I - u w^T), "
            "which takes u to 0; so the others are its eigenvalues without that 0, and F (I - u "
            "w^T) and (I - u w^T) F have the same characteristic polynomial.",
            "[3] (F + alpha u w^T) u - alpha u = F u is no multiple of u. F/alpha + u w^T tends to "
            "u w^T, whose eigenvalue 1 is simple with the eigenvector u: simple eigenvectors "
            "depend analytically on 1/alpha.",
        ),
        by.searched("both spectra, exactly", _law, _steered()),
    ),
    further="How large alpha may be before consensus stops dominating is T2d's question for F'.",
)
