"""How far a layer is from another verdict: the smallest change of A and H that reaches a tie.

delta such that changes ||dA|| <= delta ||A||, ||dH|| <= delta ||H|| (Frobenius, the rows of dA sum
to 0) can make rho_C = rho_Q, to first order: the margin over the gradient of rho_C - rho_Q, which
left and right eigenvectors of the two dominant pairs give. Of exact input in balls, else in floats.
"""

from fractions import Fraction

import flint
import numpy as np

from oversmoothing.theory.layer.attention import complement_basis, quotient
from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers.exact import Matrix, Number, to_flint
from oversmoothing.theory.numbers.rounding import at_precision, doublings
from oversmoothing.theory.spectra.algebraic import Eigenvalue
from oversmoothing.theory.spectra.layer_discs import largest_modulus
from oversmoothing.theory.support.sizes import Array, Complex
from oversmoothing.theory.verdict.by_fractions import ExactDominance, Mode

# Beyond this a norm of H may be no float.
_LARGEST = 1e150
# Bits that a distance of exact input has to have, and those spent on it.
_KNOWN, _MOST = 40, 2**14


def exact_distance(case: Layer, dominance: ExactDominance) -> Number | None:
    """The distance of a decidable layer that is no tie, with its bounds.

    None where there is no gradient: a dominant eigenvalue repeats, or several pairs lead a side.
    """
    if not all(_is_one_pair(modes) for modes in (dominance.consensus, dominance.quotient)):
        return None
    for bits in doublings(256, _MOST):
        with at_precision(bits):
            slope = _slope(case, dominance.consensus[0], dominance.quotient[0], bits)
        if slope is None:
            return None
        if slope.rel_accuracy_bits() >= _KNOWN:
            consensus, quotient = dominance.radii()
            return consensus.minus(quotient).size().over(Number.of(slope))
    return None


def _is_one_pair(modes: list[Mode]) -> bool:
    """Whether one pair leads, but for its conjugate."""
    h, a = modes[0].value, modes[0].attention
    conjugates = {(h, a), (h.conjugate, a and a.conjugate)}
    return all((mode.value, mode.attention) in conjugates for mode in modes)


def _slope(case: Layer, first: Mode, second: Mode, bits: int) -> flint.arb | None:
    """||gradient by H|| ||H|| + ||gradient by A|| ||A|| of rho_C - rho_Q."""
    A, H, a = case.rational_A, case.rational_H, second.attention
    assert a is not None
    by_a, by_first, by_second = (
        _exact_gradient(M, root, bits) for M, root in ((A, a), (H, first.value), (H, second.value))
    )
    if by_a is None or by_first is None or by_second is None:
        return None
    phases = [mode.ball(bits).conjugate() for mode in (first, second)]
    phases = [z / abs(z) for z in phases]
    # Rows of dA sum to 0: only what differs from the mean of a row counts.
    mean = flint.acb_mat([[flint.acb(1) / len(A)] * len(A)] * len(A))
    by_a = (by_a - by_a * mean) * (phases[1] * second.value.ball(bits))
    by_h = by_first * phases[0] - by_second * (phases[1] * a.ball(bits))
    return _norm(by_h) * _size(H) + _norm(by_a) * _size(A)


def _exact_gradient(M: Matrix, root: Eigenvalue, bits: int) -> flint.acb_mat | None:
    """w v^T / w^T v for the left and right eigenvectors of a simple eigenvalue, in balls.

    For x the eigenvalue and some b, c the matrix [[x I - M, b], [c^T, 0]] is regular, and sends
    (v, 0) to (0, 1) for the eigenvector v with c^T v = 1.
    """
    if root.factor.jordan != (1,):
        return None
    k, S = len(M), flint.acb_mat(to_flint(M)) * -1
    x = root.ball(bits)
    rows = [[S[i, j] + (x if i == j else 0) for j in range(k)] for i in range(k)]
    # No eigenvector is orthogonal to these by any structure.
    b = [flint.acb(flint.arb(i + 2).sqrt()) for i in range(k + 1)]
    table = flint.acb_mat([[*row, y] for row, y in zip(rows, b, strict=False)] + [[*b[1:], 0]])
    unit = flint.acb_mat(k + 1, 1, [0] * k + [1])
    try:
        v, w = (T.solve(unit).entries()[:k] for T in (table, table.transpose()))
    except ZeroDivisionError:
        return None
    scale = sum((p * q for p, q in zip(w, v, strict=True)), flint.acb(0))
    return flint.acb_mat([[p * q / scale for q in v] for p in w])


def _norm(M: flint.acb_mat) -> flint.arb:
    """Of the real part."""
    return sum((z.real * z.real for z in M.entries()), flint.arb(0)).sqrt()


def _size(M: Matrix) -> flint.arb:
    square = sum((x * x for row in M for x in row), Fraction(0))
    return flint.arb(flint.fmpq(square.numerator, square.denominator)).sqrt()


def distance_to_tie(A: Array, H: Array) -> float | None:
    """The distance of A [n, n] and H [d, d] in floats.

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
