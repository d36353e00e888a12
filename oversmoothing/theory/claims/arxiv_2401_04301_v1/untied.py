"""Symmetric H_l = V_l diag V_l^T clipped to [-1, 0], untied: a slowly turning direction smooths."""

from fractions import Fraction

from oversmoothing.theory.claims.t7 import R, conserved, frame, states, weights
from oversmoothing.theory.depth.ratios import squared_ratio
from oversmoothing.theory.proofs.instances import AA
from oversmoothing.theory.proofs.kit import Matrix, by, equal, exact, given

_SYMMETRIC = given.Hypothesis(
    "the H of each layer is symmetric with eigenvalues in [-1, 0]",
    lambda case: exact.transposed(case.H) == case.H and given.CLOSED.holds(case),
    (*given.CLOSED.violated, given.case(H="0 1; 0 0")),
)
# The smallest rational turn that does it at a = 1/2, where cos^2 > 1 - a is needed: 3-4-5. Two
# directions in turn never do, whatever a and their angle: consensus has radius cos^2 over the two
# layers, and the characteristic polynomial of the difference there is a positive multiple of
# (1 - cos^2) (1 - a - (1 + a) cos^2), so that cos^2 never exceeds both of its roots.
_VALUES = (Fraction(-1), Fraction(0))
_X0 = exact.matrix("0 2; 0 0")
_DEPTH = 12


def _frame(a: str) -> Matrix:
    """diag(1 - a, 1) R: one layer on a mode a, in coordinates that turn along."""
    return frame(_VALUES, Fraction(a))


def _turning() -> None:
    """In coordinates turning along, one layer multiplies rows by K(a) = diag(1 - a, 1) R, a = 1 for
    the mean and a = 1/2 for the difference; both start at (0, 1)."""
    # X_L R^L has mean (0, 1) K(1)^L and half-difference (0, 1) K(1/2)^L.
    start = exact.matrix("0 1")
    for depth, X in enumerate(states(_VALUES, _DEPTH, _X0)):
        mean, high = (exact.product(start, exact.power(_frame(a), depth)) for a in ("1", "1/2"))
        equal(
            exact.product(exact.matrix("1/2 1/2; 1/2 -1/2"), X, exact.power(R, depth)),
            [*mean, *high],
        )


def _consensus() -> None:
    """K(1) = [[0, 0], [3/5, 4/5]]: the mean is (3/5, 4/5) after one layer, of length 1, and then
    shrinks by exactly 4/5 a layer."""
    equal(_frame("1"), exact.matrix("0 0; 3/5 4/5"))
    once = exact.product(exact.matrix("0 1"), _frame("1"))
    equal(exact.product(once, _frame("1")), exact.scaled("4/5", once))
    equal(exact.dot(once[0], once[0]), 1)


def _quotient() -> None:
    """K(1/2) has trace 6/5, determinant 1/2, complex eigenvalues of modulus sqrt(1/2); a positive
    definite form is halved by it, so the difference is at most const 2^(-L/2)."""
    K = _frame("1/2")
    trace, half = K[0][0] + K[1][1], exact.determinant(K)
    equal((trace, half), (Fraction(6, 5), Fraction(1, 2)))
    assert trace**2 < 4 * half, "real eigenvalues"
    # q(y) = y S y^T with K S K^T = S/2, S positive definite: ||y_L||^2 <= const 2^-L.
    S = conserved(K)
    equal(exact.product(K, S, exact.transposed(K)), exact.scaled(half, S))
    assert S[0][0] > 0 and exact.determinant(S) > 0, "S is not positive definite"


def _measured() -> None:
    """sqrt(1/2) < 4/5: HFC/LFC <= const (0.884)^L. It is 1 after one layer and below 0.32 after
    12."""
    found = [squared_ratio(X) for X in states(_VALUES, _DEPTH, _X0)]
    equal(found[1], Fraction(1))
    assert found[12] < Fraction(1, 10), f"(HFC/LFC)^2 = {float(found[12])} after 12 layers"


CLAIM = by.refuted(
    name="P-2401.04301v1-untied",
    statement="Symmetric H_l = V_l diag(lambda_l) V_l^T with lambda_l in [-1, 0] in each layer, "
    "weights differing by layer, prevents oversmoothing (our reading: v1 and the poster state it "
    "for fixed weights and use it in networks whose layers have their own).",
    latex=r"H_l = H_l^\top,\ \mathrm{spec}(H_l)\subset[-1,0]\ \forall l \implies "
    r"\mathrm{HFC}/\mathrm{LFC}\not\to 0",
    source="arXiv 2401.04301 v1, reparameterisation (poster), our reading for untied layers",
    wording="our reading, without the paper's hypothesis of the same weights in every layer "
    "(poster): its theorems are not touched",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A, _SYMMETRIC),
    title="a direction that turns by the 3-4-5 angle",
    at=tuple((AA, H, _X0) for H in weights(_VALUES, 3)),
    steps=(_turning, _consensus, _quotient, _measured),
    repaired_by="T7b-rotation",
    further="For symmetric H_l with eigenvalues in [-q, -p], p > tau(A) q suffices "
    "(T7b-certificate).",
)
