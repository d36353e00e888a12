"""The smoothing metrics from their definitions in hundreds of digits: the oracle of the tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath as mp

# 1 - cos at a spread of 1e-211 is 1e-422: 270 digits are left.
DIGITS = 700


def metrics_at_high_precision(
    rows: Sequence[Sequence[Any]], digits: int = DIGITS
) -> dict[str, Any]:
    """Every metric of X given as rows of mpf or float, by its definition (no rearrangement)."""
    with mp.workdps(digits):
        X = [[mp.mpf(x) for x in row] for row in rows]
        n, d = len(X), len(X[0])
        mean = [mp.fsum(row[j] for row in X) / n for j in range(d)]
        hfc = mp.sqrt(mp.fsum((row[j] - mean[j]) ** 2 for row in X for j in range(d)))
        lfc = mp.sqrt(n * mp.fsum(m * m for m in mean))
        found = {"hfc_lfc": hfc / lfc}
        units = []
        for row in X:
            norm = mp.sqrt(mp.fsum(x * x for x in row))
            if norm != 0:
                units.append([x / norm for x in row])
        cosines = [mp.fdot(units[i], units[k]) for i in range(len(units)) for k in range(i)]
        if cosines:
            found["cos_mean"] = mp.fsum(cosines) / len(cosines)
            found["cos_min"] = min(cosines)
            found["cos_abs_mean"] = mp.fsum(abs(c) for c in cosines) / len(cosines)
            found["cos_abs_min"] = min(abs(c) for c in cosines)
            for name in ("cos_mean", "cos_min", "cos_abs_min"):
                found[f"one_minus_{name}"] = 1 - found[name]
        sigma = _singular_values(X)
        total = mp.fsum(sigma)
        p = [s / total for s in sigma if s > 0]
        found["effective_rank"] = mp.exp(-mp.fsum(q * mp.log(q) for q in p))
        found["effective_rank_excess"] = found["effective_rank"] - 1
        found["sigma2_sigma1"] = sigma[1] / sigma[0] if len(sigma) > 1 else mp.mpf(0)
        return found


def _singular_values(X: list[list[Any]]) -> list[Any]:
    """Roots of the eigenvalues of the smaller Gram matrix, largest first."""
    M = mp.matrix(X)
    gram = M * M.T if M.rows <= M.cols else M.T * M
    if gram.rows == 1:
        return [mp.sqrt(gram[0, 0])]
    values = mp.eigsy(gram, eigvals_only=True)
    return sorted((mp.sqrt(v) if v > 0 else mp.mpf(0) for v in values), reverse=True)
