"""Five layers without a residual connection, and how well their slopes in log are known (T9)."""

from collections.abc import Callable
from fractions import Fraction

import flint

from oversmoothing.theory.depth import rates_measured as measured
from oversmoothing.theory.proofs.kit import A3, C3, Matrix, exact, given

TWO_FEATURES = given.Hypothesis(
    "there are at least two features", lambda case: len(case.H) >= 2, (given.case(),)
)
# Further modes die like 1e-23 or faster by the first depth; what is left is rounding to float.
ROUNDING = 1e-14
# (1/4)|c_1/c_2|/L is the relative correction of a Jordan block: 0.19/L for the pi-mean of START and
# 0.06/L for its mode at 1/2. On the slope from L to 2L that makes less than 1/L^2.
JORDAN = 1 / 150**2
DEPTH = 150
WINDOW = f"from L = {DEPTH} to {2 * DEPTH} in 700 digits"

START = exact.matrix("1 4; 3 -5; -1 1")
_HALF = Fraction(1, 2)
# name -> (A, H, |lambda_2|, |h_2/h_1|, size of the Jordan block of H at h_1)
SYSTEMS: dict[str, tuple[Matrix, Matrix, Fraction, Fraction, int]] = {
    "h = 2, -1/2": (A3, exact.matrix("2 0; 1 -1/2"), _HALF, Fraction(1, 4), 1),
    "h = 1, -1": (A3, exact.matrix("1 0; 1 -1"), _HALF, Fraction(1), 1),
    "h = +-2i": (A3, exact.matrix("0 -2; 2 0"), _HALF, Fraction(1), 1),
    "h = 1/4, defective": (A3, exact.matrix("1/4 1; 0 1/4"), _HALF, Fraction(1), 2),
    "complex A, h = 1, 1/3": (C3, exact.matrix("1 0; -1 1/3"), Fraction(7, 10), Fraction(1, 3), 1),
}


def slope(measure: Callable[[flint.arb_mat], flint.arb], A: Matrix, H: Matrix) -> float:
    """Of the logarithm per layer from DEPTH to 2 DEPTH, for a state in general position."""
    depths = (DEPTH, 2 * DEPTH)
    return measured.log_slope(measure, measured.states(A, H, START, depths, residual=False))
