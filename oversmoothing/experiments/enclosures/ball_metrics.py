"""The metrics of `stream_metrics` in balls: HFC/LFC, cosines over pairs, effective rank.

Conventions of `simulations.state_metrics`. Singular values: with U, V of a float64 SVD of the
middles, taken as exact matrices that need not be orthogonal, B = U^T X V is computed in balls;
sigma_i(B) lies within the norm of what stands off its diagonal of the i-th of its diagonal (Weyl),
and sigma_i(X) within the factors 1 +- ||U^T U - I||, 1 +- ||V^T V - I|| of that (Ostrowski).
"""

import flint
import numpy as np

from oversmoothing.experiments.enclosures.ball_arrays import (
    Ball,
    Balls,
    exact,
    middles,
    of_rows,
    total,
)

# In the order of `simulations.state_metrics.NAMES`.
NAMES = (
    "hfc_lfc", "log_hfc_lfc", "cos_mean", "cos_min", "cos_abs_mean", "cos_abs_min",
    "effective_rank", "sigma2_sigma1",
)  # fmt: skip


def ball_metrics(X: Balls) -> dict[str, Ball]:
    """The metrics `NAMES` of a stream [n, d] in balls, n >= 2.

    What cannot be told at this precision (a token or the mean that may be 0) is not finite.
    """
    rows = X.tolist()
    n = len(rows)
    mean = [total(column) / n for column in zip(*rows, strict=True)]
    hfc = total((x - m) * (x - m) for row in rows for x, m in zip(row, mean, strict=True))
    ratio = (hfc / (n * total(m * m for m in mean))).sqrt()
    found = {"hfc_lfc": ratio, "log_hfc_lfc": ratio.log()}
    return found | _cosines(rows) | rank_metrics(singular_values(X))


def _cosines(rows: list[list[Ball]]) -> dict[str, Ball]:
    sizes = [total(x * x for x in row).rsqrt() for row in rows]
    units = of_rows([[x * s for x in row] for row, s in zip(rows, sizes, strict=True)])
    gram = (units * units.transpose()).tolist()
    n = len(rows)
    pairs = [gram[i][k] for i in range(n) for k in range(i)]
    signed, smallest = pairs[0], abs(pairs[0])
    for x in pairs[1:]:
        signed = signed.min(x)
        smallest = smallest.min(abs(x))
    return {
        "cos_mean": total(pairs) / len(pairs),
        "cos_min": signed,
        "cos_abs_mean": total(abs(x) for x in pairs) / len(pairs),
        "cos_abs_min": smallest,
    }


def singular_values(X: Balls) -> list[Ball]:
    """Balls around sigma_1 >= sigma_2 >= ... of X [n, d], min(n, d) of them, none below 0."""
    middle = middles(X)
    if not np.isfinite(middle).all():
        return [flint.arb("nan")] * min(middle.shape)
    U, _, Vt = np.linalg.svd(middle)
    U_, V_ = exact(U), exact(Vt.T)
    B = (U_.transpose() * X * V_).tolist()
    k = min(middle.shape)
    diagonal = [abs(B[i][i]) for i in range(k)]
    rest = _norm_off_diagonal(B)
    left, right = _skew(U_), _skew(V_)
    bent = left + right + left * right
    # sigma_i(X) = sigma_i(B) / t with t^2 between (1 - skew U)(1 - skew V) and (1 + ...)(1 + ...)
    scale = 1 / (1 + flint.arb(0, 1) * bent).sqrt()
    return [clipped((x + flint.arb(0, 1) * rest) * scale) for x in _sorted_hulls(diagonal)]


def _sorted_hulls(values: list[Ball]) -> list[Ball]:
    """Balls around the i-th largest, for numbers known by balls."""
    # Ends are points, so that comparisons are exact.
    lows = sorted((x.lower() for x in values), reverse=True)
    highs = sorted((x.upper() for x in values), reverse=True)
    return [low.union(high) for low, high in zip(lows, highs, strict=True)]


def _norm_off_diagonal(B: list[list[Ball]]) -> Ball:
    """A number at least the spectral norm of B without its diagonal: sqrt(||.||_1 ||.||_inf)."""
    moduli = [[abs(x).upper() if i != j else flint.arb(0) for j, x in enumerate(row)]
              for i, row in enumerate(B)]  # fmt: skip
    return (_largest_sum(moduli) * _largest_sum(list(zip(*moduli, strict=True)))).sqrt().upper()


def _largest_sum(rows: list[list[Ball]]) -> Ball:
    found = flint.arb(0)
    for row in rows:
        found = found.max(total(row))
    return found


def _skew(U: Balls) -> Ball:
    """A number at least ||U^T U - I||."""
    gram = (U.transpose() * U).tolist()
    moduli = [[abs(x - (i == j)) for j, x in enumerate(row)] for i, row in enumerate(gram)]
    return _largest_sum(moduli).upper()


def clipped(x: Ball) -> Ball:
    """A ball around a number in x that is not negative."""
    return x if x > 0 else x.max(flint.arb(0))


def rank_metrics(sigma: list[Ball]) -> dict[str, Ball]:
    """Effective rank, exp of the entropy of sigma_i / sum sigma, and sigma_2 / sigma_1."""
    whole = total(sigma)
    entropy = total(_entropy_term(x / whole) for x in sigma)
    second = sigma[1] / sigma[0] if len(sigma) > 1 else flint.arb(0)
    return {"effective_rank": entropy.exp(), "sigma2_sigma1": second}


def _entropy_term(p: Ball) -> Ball:
    """-p log p; on [0, high] with high < 1/e it runs from 0 to its value at high."""
    if p > 0:
        return -p * p.log()
    high = flint.arb(p.upper())
    if not high < flint.arb(-1).exp():
        return flint.arb("nan")
    return flint.arb(0).union(-high * high.log()) if high > 0 else flint.arb(0)
