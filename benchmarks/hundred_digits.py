"""The direction of X_L in balls of 100 digits, from FLINT's eigenvalues: the measure of float64.

Nothing is shared with `theory.depth.closed_form`: A is taken entry by entry as the floats it
consists of (no quotient, no pi), and the modes are those of I + H (x) A itself.
"""

import flint
import numpy as np

from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.support.errors import RequirementError
from oversmoothing.theory.support.sizes import Array

BITS = 420  # 100 digits, and what the conditioning of small random matrices takes


def direction(A: Array, H: Array, X0: Array, depth: int) -> tuple[Array, bool]:
    """(X_L / ||X_L||_F [n, d], whether the largest multiplier is real), for simple spectra.

    Raises `RequirementError` where the balls do not close on 1e-30.
    """
    n, d = X0.shape
    with at_precision(BITS):
        a, V = flint.acb_mat(flint.arb_mat(A.tolist())).eig(right=True)
        h, U = flint.acb_mat(flint.arb_mat(H.tolist())).eig(right=True)
        C = V.solve(flint.acb_mat(flint.arb_mat(X0.tolist())))
        C = U.solve(C.transpose()).transpose()
        logs = [[(1 + a[i] * h[j]).log() for j in range(d)] for i in range(n)]
        top = max((log.real.mid(), i, j) for i, row in enumerate(logs) for j, log in enumerate(row))
        for i in range(n):
            for j in range(d):
                C[i, j] = C[i, j] * ((logs[i][j] - top[0]) * depth).exp()
        X = V * C * U.transpose()
        entries = [[X[i, j].real for j in range(d)] for i in range(n)]
        size = sum((x * x for row in entries for x in row), flint.arb(0)).sqrt()
        unit = [[x / size for x in row] for row in entries]
        widest = max(float(x.rad()) for row in unit for x in row)
        if not widest < 1e-30:
            raise RequirementError(f"the balls are {widest:.1e} wide: raise BITS")
        mu = 1 + a[top[1]] * h[top[2]]
        return np.array([[float(x.mid()) for x in row] for row in unit]), mu.imag.contains(0)


def draw(seed: int) -> tuple[Array, Array, Array]:
    """(A, H, X0) with 2 <= n, d <= 16: softmax of Gaussian logits, Gaussian H and X_0."""
    rng = np.random.default_rng(seed)
    n, d = (int(k) for k in rng.integers(2, 17, 2))
    A = np.exp(rng.choice([0.5, 1.0, 2.0]) * rng.standard_normal((n, n)))
    A = A / A.sum(axis=1, keepdims=True)
    H = rng.choice([0.3, 1.0, 2.0]) * rng.standard_normal((d, d)) / np.sqrt(d)
    return A, H, rng.standard_normal((n, d))
