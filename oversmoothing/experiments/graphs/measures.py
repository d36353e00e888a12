"""Two measures of smoothness on graphs, beside HFC/LFC: Dirichlet energy and MAD."""

import numpy as np

from oversmoothing.experiments.graphs.drawn import Matrix


def dirichlet_energy(X: Matrix, edges: Matrix) -> float:
    """sum over edges of |x_i - x_k|^2 over sum_i deg_i |x_i|^2, degrees with a loop: in [0, 2).

    0 where neighbours are equal. It is the Rayleigh quotient of the walk's Laplacian (T1g's
    similarity): X [n, d], edges [n, n]; NaN for X = 0.
    """
    degree = edges.sum(-1) + 1
    square = np.square(X).sum(-1)
    total = float(degree @ square)
    if total == 0:
        return float("nan")
    # sum over ordered pairs / 2 of |x_i|^2 + |x_k|^2 - 2 x_i x_k, centred first: no cancellation.
    Y = X - X.mean(0)
    own = np.square(Y).sum(-1)
    pairs = float(edges.sum(-1) @ own - (edges * (Y @ Y.T)).sum())
    return max(pairs, 0.0) / total


def mad(X: Matrix, edges: Matrix | None = None) -> float:
    """Mean average distance (Chen et al. 2020): the mean over nodes of the mean of 1 - cos over
    their neighbours, or over all other nodes where no edges are given.

    Nodes without neighbours and zero rows are left out; NaN where nothing is left. X [n, d].
    """
    length = np.sqrt(np.square(X).sum(-1))
    kept = length > 0
    unit = X[kept] / length[kept, None]
    # |u - v|^2 / 2 is 1 - cos without cancellation.
    far = np.square(unit[:, None] - unit[None, :]).sum(-1) / 2
    n = len(unit)
    near = (np.ones((n, n)) if edges is None else edges[np.ix_(kept, kept)]) * (1 - np.eye(n))
    number = near.sum(-1)
    if not (number > 0).any():
        return float("nan")
    rows = (far * near).sum(-1)[number > 0] / number[number > 0]
    return float(rows.mean())
