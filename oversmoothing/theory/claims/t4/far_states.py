"""States at a far depth in balls, and what T4, T5 and T6 read off them."""

import math
from collections.abc import Sequence

import flint
import numpy as np
from hypothesis import assume
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from oversmoothing.theory.depth import rates_measured as measured
from oversmoothing.theory.depth.ratios import ball_ratios
from oversmoothing.theory.proofs.checks import BITS
from oversmoothing.theory.proofs.kit import Matrix, spectra
from oversmoothing.theory.verdict.exact_comparison import ExactDominance


def far_state(A: Matrix, H: Matrix, X0: Matrix, rate: float, digits: float = 12) -> flint.arb_mat:
    """X_L at a depth where rate^L is about 10^-digits (polynomial factors not counted)."""
    assume(rate < 0.98)
    depth = 12 if rate == 0 else max(12, math.ceil(digits * math.log(10) / -math.log(rate)))
    return measured.states(A, H, X0, [depth], BITS)[depth]


def log_growth(A: Matrix, H: Matrix, X0: Matrix, near: int, far: int) -> float:
    """log HFC/LFC at the far depth less that at the near one, in balls; NaN unless both are
    finite."""
    found = ball_ratios(A, H, X0, spectra.stationary(A), [near, far])
    first, last = found[near].log, found[far].log
    return math.nan if first is None or last is None else last - first


def middle(x: flint.arb) -> float:
    return float(x.mid())


def cosines(X: flint.arb_mat) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """All pairwise cosines [n, n], with their signs."""
    n = X.nrows()
    return np.array([[middle(measured.cosine(X, i, k, BITS)) for k in range(n)] for i in range(n)])


def radii(found: ExactDominance) -> tuple[float, float]:
    """(rho_C, rho_Q) as floats."""
    return float(found.radius(True).mid()), float(found.radius(False).mid())


def term_rank(pattern: Sequence[Sequence[bool]]) -> int:
    """Maximum matching of a bipartite graph."""
    matching = maximum_bipartite_matching(csr_matrix(np.array(pattern)), perm_type="column")
    return int(np.count_nonzero(matching >= 0))
