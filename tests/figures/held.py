"""What holds the CSV of a figure: by name a check that raises, and what it leaves out and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from oversmoothing.paper_figures.figure_base import Context

Array = np.ndarray
Check = Callable[[pd.DataFrame, Context], None]


@dataclass(frozen=True)
class Held:
    """check: against the theory or a recorded run, from the CSV as it is read back. free: columns
    that it does not hold, and why. rows: those in which an error of any other column must turn it
    red (all, where it is None)."""

    check: Check
    free: dict[str, str] = field(default_factory=dict)
    rows: Callable[[pd.DataFrame], pd.Series] | None = None


HELD: dict[str, Held] = {}


def holds(
    name: str,
    free: dict[str, str] | None = None,
    rows: Callable[[pd.DataFrame], pd.Series] | None = None,
) -> Callable[[Check], Check]:
    """Declare the decorated function the check of a figure."""

    def declare(check: Check) -> Check:
        assert name not in HELD
        HELD[name] = Held(check, free or {}, rows)
        return check

    return declare


def near(found: object, expected: object, **tolerance: float) -> None:
    """NaN is equal to NaN; rel and abs as numpy's rtol and atol, 1e-9 and 0 where not given."""
    rtol, atol = tolerance.get("rel", 1e-9), tolerance.get("abs", 0.0)
    np.testing.assert_allclose(
        np.asarray(found, dtype=float), np.asarray(expected, dtype=float), rtol=rtol, atol=atol
    )


def same(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Two tables, row by row, in the columns of the second: numbers as far as a CSV keeps them."""
    pd.testing.assert_frame_equal(
        found[list(expected)].reset_index(drop=True),
        expected.reset_index(drop=True),
        check_dtype=False,
        rtol=1e-12,
    )


def run(A: Array, H: Array, X: Array, depth: int) -> tuple[Array, Array]:
    """(ln HFC/LFC, state with both parts on one scale) of X_0 ... X_depth, by NumPy alone.

    A [n, n] with rows that sum to 1, H [d, d], X [n, d]. Deviations from the mean token follow
    D <- P (D + A D H^T), since A leaves equal tokens equal, and keep a scale of their own.
    """
    n = len(A)
    mean = X.mean(axis=0)
    D, scale_d, scale_m = X - mean, 0.0, 0.0
    logs, states = [], []
    for layer in range(depth + 1):
        if layer:
            # Both on the scale of D for what D adds to the mean.
            added = np.exp(scale_d - scale_m) * (A @ D @ H.T).mean(axis=0)
            mean = mean + mean @ H.T + added
            D = D + A @ D @ H.T
            D = D - D.mean(axis=0)
        size_d, size_m = np.linalg.norm(D), np.linalg.norm(mean)
        with np.errstate(divide="ignore"):
            logs.append(np.log(size_d) + scale_d - np.log(size_m * n**0.5) - scale_m)
        top = max(scale_d + np.log(size_d or 1), scale_m + np.log(size_m or 1))
        states.append(np.exp(scale_d - top) * D + np.exp(scale_m - top) * mean)
        D, scale_d = D / size_d, scale_d + np.log(size_d)
        mean, scale_m = mean / size_m, scale_m + np.log(size_m)
    return np.array(logs), np.array(states)


def metrics_of(X: Array) -> dict[str, Array]:
    """The paper's metrics of states [m, n, d], by their definitions."""
    mean = X.mean(axis=1, keepdims=True)
    high = np.linalg.norm(X - mean, axis=(1, 2))
    low = np.linalg.norm(np.broadcast_to(mean, X.shape), axis=(1, 2))
    unit = X / np.linalg.norm(X, axis=2, keepdims=True)
    pairs = ~np.eye(X.shape[1], dtype=bool)
    cosine = (unit @ unit.transpose(0, 2, 1))[:, pairs]
    sigma = np.linalg.svd(X, compute_uv=False)
    p = sigma / sigma.sum(axis=1, keepdims=True)
    entropy = -(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=1)
    return {
        "log_hfc_lfc": np.log(high / low),
        "hfc_lfc": high / low,
        "cos_mean": cosine.mean(axis=1),
        "cos_min": cosine.min(axis=1),
        "cos_abs_mean": np.abs(cosine).mean(axis=1),
        "cos_abs_min": np.abs(cosine).min(axis=1),
        "effective_rank": np.exp(entropy),
        "sigma2_sigma1": sigma[:, 1] / sigma[:, 0],
    }


def radii(A: Array, H: Array) -> tuple[float, float]:
    """(rho_C, rho_Q): max |1 + h|, and max |1 + h a| over the other eigenvalues a of A."""
    a, h = np.linalg.eigvals(A), np.linalg.eigvals(H)
    a = np.delete(a, np.argmin(np.abs(a - 1)))
    return float(np.abs(1 + h).max()), float(np.abs(1 + np.outer(h, a)).max())
