"""Runs of many heads, and their layer by its definition."""

import numpy as np

from oversmoothing import Trajectory, evolve_heads


def evolved(X0, attention, weights, depth, **more) -> Trajectory:
    return evolve_heads(X0=X0, attention=attention, weights=weights, depth=depth, **more)


def states(trajectory: Trajectory, index: int = -1) -> np.ndarray:
    X, exponent = trajectory.X(index)
    return X.cpu().numpy() * 2.0 ** exponent.cpu().numpy()[..., None, None]


def dense_layer(X, A, W, residual=True):
    """The definition, head by head."""
    moved = sum(A[..., h, :, :] @ X @ W[h] for h in range(len(W)))
    return X + moved if residual else moved
