"""How far the nearest other verdict is: a structured backward error of (A, H), to first order.

Of all real changes of A that keep its row sums and of H, those that move rho_C - rho_Q to 0 have at
least a certain size relative to A and H. To first order it is the margin over the gradient of
rho_C - rho_Q, which the left and right eigenvectors of the two dominant pairs give.
"""

import numpy as np

from oversmoothing.theory.layer.quotient import complement_basis, quotient
from oversmoothing.theory.spectra.radii import largest_modulus
from oversmoothing.theory.support.arrays import Array, Complex

# Relative margins below this are near-ties: their distance is worth saying.
NEAR = 1e-3
# Beyond this a norm of H may be no float.
_LARGEST = 1e150


def distance_to_tie(A: Array, H: Array) -> float | None:
    """delta such that changes ||dA|| <= delta ||A||, ||dH|| <= delta ||H|| (Frobenius, the rows of
    dA sum to 0) can make rho_C = rho_Q, to first order.

    None for one token, where a dominant eigenvalue is defective or repeated to all digits, so that
    it has no gradient, and where H is so large that its square is no float.
    """
    if len(A) == 1 or np.abs(H).max() > _LARGEST:
        return None
    Q = complement_basis(len(A))
    a, right, left = _eigen(quotient(A))
    h, value_right, value_left = _eigen(H)
    rho_c, _, j = largest_modulus(np.array([1.0]), h)
    rho_q, i, k = largest_modulus(a, h)
    phases = [np.conj(z) / abs(z) if z else 0.0 for z in (1 + h[j], 1 + h[k] * a[i])]
    first, second = (_gradient(value_left, value_right, index) for index in (j, k))
    with_a = _gradient(left, right, i)
    if with_a is None or first is None or second is None:
        return None
    by_h = np.real(phases[0] * first - phases[1] * a[i] * second)
    # A change of A acts through Q^T dA Q: its gradient lies in the rows that sum to 0 already.
    by_a = np.real(phases[1] * h[k] * (Q @ with_a @ Q.T))
    slope = np.linalg.norm(by_h) * np.linalg.norm(H) + np.linalg.norm(by_a) * np.linalg.norm(A)
    return float(abs(rho_c - rho_q) / slope) if slope > 0 else None


def _eigen(M: Array) -> tuple[Complex, Complex, Complex]:
    """Eigenvalues, right eigenvectors in columns, left ones in rows, scaled to w v = 1."""
    values, right = np.linalg.eig(M)
    try:
        left = np.linalg.inv(right)
    except np.linalg.LinAlgError:
        left = np.full_like(right, np.inf)
    return values.astype(np.complex128), right, left


def _gradient(left: Complex, right: Complex, index: int) -> Complex | None:
    """d(eigenvalue) = sum of gradient * dM, entry by entry; None where there is none."""
    w, v = left[index], right[:, index]
    # Right eigenvectors have the length 1, so this is the condition number of the eigenvalue:
    # from there on it is defective to all digits.
    if not np.abs(w).max() < 1e12 or not np.linalg.norm(w) < 1e12:
        return None
    gradient: Complex = w[:, None] * v
    return gradient
