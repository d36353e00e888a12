"""What the claims on escalation share: t = ||HFC||/(sqrt n |c|) layer by layer, and its slope."""

from collections.abc import Callable
from fractions import Fraction

from oversmoothing.theory.depth import rates_measured as measured
from oversmoothing.theory.depth.ratios import squared_norms
from oversmoothing.theory.numbers.exact_matrix import matrix, weighted_mean
from oversmoothing.theory.proofs.kit import Matrix, equal, spectra

# Three tokens, two features, in general position.
START = matrix("1 2; 2 -1; 4 1")


def t_falls(
    A: Matrix,
    X: Matrix,
    move: Callable[[Matrix], Matrix],
    by: Fraction,
    over: Fraction,
    layers: int,
) -> None:
    """One feature: every layer multiplies t by |by|/|over|, exactly (c = pi^T X)."""
    pi = spectra.stationary(A)
    for _ in range(layers):
        moved = move(X)
        (before,), (after,) = weighted_mean(pi, X), weighted_mean(pi, moved)
        hfc, moved_hfc = squared_norms(X)[0], squared_norms(moved)[0]
        equal(moved_hfc * before**2 * over**2, by**2 * hfc * after**2)
        X = moved


def slope(rows: Matrix, X0: Matrix, depths: tuple[int, int]) -> float:
    """Of log HFC/LFC per layer, for a linear layer on the rows of X one after the other."""
    return measured.log_slope(measured.hfc_lfc, measured.powers(rows, X0, depths))
