"""The metrics in balls by another order of operations, for the checker, of Z = X^T [d, n].

||HFC||^2 is the sum of squares less ||LFC||^2; cosines are read off Z^T Z; singular values are
roots of the eigenvalues of the smaller Gram matrix S: with V near eigenvectors, refined by Newton's
step (Ogita and Aishima 2018) and taken as exact, T = V^T S V is computed in balls, and lambda_i(S)
lies within the factors 1 +- ||V^T V - I|| (Ostrowski) of T_ii +- the norm of what stands off its
diagonal (Weyl).
"""

import flint
import numpy as np

from oversmoothing.experiments.enclosures.ball_arrays import Ball, Balls
from oversmoothing.theory.support.sizes import Array


def other_metrics(Z: Balls) -> dict[str, Ball]:
    """The metrics of `ball_metrics.NAMES`; not finite where they cannot be told."""
    n = Z.ncols()
    gram = (Z.transpose() * Z).tolist()
    squares = [gram[i][i] for i in range(n)]
    ones = flint.arb_mat(n, 1, [1] * n)
    lfc = sum((x * x for x in (Z * ones).entries()), flint.arb(0)) / n
    whole = sum(reversed(squares), flint.arb(0))
    log_ratio = ((whole - lfc).log() - lfc.log()) / 2
    roots = [x.sqrt() for x in squares]
    cosines = [gram[k][i] / (roots[i] * roots[k]) for k in range(n) for i in range(k + 1, n)]
    sizes = [abs(x) for x in cosines]
    units = Z * flint.arb_mat(n, 1, [1 / x for x in roots])
    # |sum u|^2 = n + the sum over ordered pairs
    of_sum = sum((x * x for x in units.entries()), flint.arb(0))
    sigma = _singular_values(Z)
    entropy = _entropy(sigma)
    return {
        "hfc_lfc": log_ratio.exp(),
        "log_hfc_lfc": log_ratio,
        "cos_mean": (of_sum - n) / (n * (n - 1)),
        "cos_min": _smallest(cosines),
        "cos_abs_mean": 2 * sum(sizes, flint.arb(0)) / (n * (n - 1)),
        "cos_abs_min": _smallest(sizes),
        "effective_rank": entropy.exp(),
        "sigma2_sigma1": sigma[1] / sigma[0] if len(sigma) > 1 else flint.arb(0),
    }


def _smallest(values: list[Ball]) -> Ball:
    """A ball around the smallest of several numbers known by balls."""
    if not all(x.is_finite() for x in values):
        return flint.arb("nan")
    return min(x.lower() for x in values).union(min(x.upper() for x in values))


def _singular_values(Z: Balls) -> list[Ball]:
    S = Z * Z.transpose() if Z.nrows() <= Z.ncols() else Z.transpose() * Z
    k = S.nrows()
    middle = np.array([[float(x.mid()) for x in row] for row in S.tolist()])
    if not np.isfinite(middle).all():
        return [flint.arb("nan")] * k
    V = flint.arb_mat([[flint.arb(x) for x in row] for row in np.linalg.eigh(middle)[1].tolist()])
    V = _refined(S, V)
    T = (V.transpose() * S * V).tolist()
    off = _row_sums(T, [[False] * i + [True] + [False] * (k - i - 1) for i in range(k)])
    M = (V.transpose() * V).tolist()
    skew = _row_sums([[x - (i == j) for j, x in enumerate(row)] for i, row in enumerate(M)], None)
    values = [flint.arb(0, 1) * off + T[i][i] for i in range(k)]
    lows = sorted((x.lower() for x in values), reverse=True)
    highs = sorted((x.upper() for x in values), reverse=True)
    widest = 1 + flint.arb(0, 1) * skew
    if not widest > 0:
        return [flint.arb("nan")] * k
    found = []
    for low, high in zip(lows, highs, strict=True):
        top = flint.arb((high / widest).upper())
        bottom = flint.arb((low / widest).lower())
        root = top.sqrt() if top > 0 else flint.arb(0)
        found.append(root.union(bottom.sqrt() if bottom > 0 else flint.arb(0)))
    return found


def _row_sums(rows: list[list[Ball]], left_out: list[list[bool]] | None) -> Ball:
    """The largest sum of moduli of a row, an upper bound."""
    largest = flint.arb(0)
    for i, row in enumerate(rows):
        taken = [abs(x) for j, x in enumerate(row) if left_out is None or not left_out[i][j]]
        found = sum(taken, flint.arb(0)).upper()
        largest = largest if largest >= found else found
    return largest


def _refined(S: Balls, V: Balls) -> Balls:
    """V (I + E) with E from the residuals V^T S V and I - V^T V, to twice the digits of V."""
    T = _floats(V.transpose() * S * V)
    R = -_floats(V.transpose() * V - _identity(V.nrows()))
    values = np.diag(T) / (1 - np.diag(R))
    with np.errstate(all="ignore"):
        gap = values[None, :] - values[:, None]
        step = T + values[None, :] * R
        # Within a cluster only the lengths and angles of V are mended.
        E = np.where(np.abs(step) < np.abs(gap) / 4, step / gap, R / 2)
    np.fill_diagonal(E, np.diag(R) / 2)
    E_ = flint.arb_mat([[flint.arb(x) for x in row] for row in np.nan_to_num(E).tolist()])
    return (V + V * E_).mid()


def _floats(M: Balls) -> Array:
    return np.array([[float(x.mid()) for x in row] for row in M.tolist()])


def _identity(k: int) -> Balls:
    return flint.arb_mat([[flint.arb(int(i == j)) for j in range(k)] for i in range(k)])


def _entropy(sigma: list[Ball]) -> Ball:
    """log t - (sum sigma log sigma) / t with t = sum sigma, in units of sigma_1."""
    units = [x / sigma[0].upper() for x in reversed(sigma)]
    whole = sum(units, flint.arb(0))
    return whole.log() - sum((_x_log_x(x) for x in units), flint.arb(0)) / whole


def _x_log_x(x: Ball) -> Ball:
    """Falls from 0 at 0 to -1/e at 1/e, then rises."""
    if x > 0:
        return x * x.log()
    high = flint.arb(x.upper())
    if not high < flint.arb(-1).exp():
        return flint.arb("nan")
    return flint.arb(0).union(high * high.log()) if high > 0 else flint.arb(0)
