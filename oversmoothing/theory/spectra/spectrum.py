"""The two spectra that decide everything (T1a): of attention A, and of H = (W_V W_proj)^T.

Structure is used before numerics: the Perron eigenvalue 1 is split off through the quotient B
(T1c), a triangular matrix shows its spectrum on the diagonal (T1h), and a head of rank r has its
d - r zero eigenvalues exactly, the rest in the r x r core W_proj W_V.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.layer.case import Case
from oversmoothing.theory.layer.perron import closed_classes
from oversmoothing.theory.layer.quotient import quotient
from oversmoothing.theory.support.arrays import Array, Complex

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues with an error estimate each.

    values: complex [k]. errors: float [k], an estimate of how far rounding may have moved each
    eigenvalue (first-order, from its condition number; for a near-defective cluster of size m the
    m-th root law). exact: bool [k], True where structure gives the eigenvalue exactly.
    """

    values: Complex
    errors: Array
    exact: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_real(self) -> bool:
        """Whether every eigenvalue is real as far as its error estimate can tell."""
        return bool((np.abs(self.values.imag) <= self.errors).all())


def _concatenate(first: Spectrum, second: Spectrum) -> Spectrum:
    return Spectrum(
        np.concatenate([first.values, second.values]),
        np.concatenate([first.errors, second.errors]),
        np.concatenate([first.exact, second.exact]),
    )


def exact_spectrum(values: Complex | Array) -> Spectrum:
    """A spectrum known without error."""
    values = np.asarray(values, dtype=np.complex128)
    return Spectrum(values, np.zeros(len(values)), np.ones(len(values), dtype=bool))


def _scaled(found: Spectrum, exponent: int) -> Spectrum:
    """Times a power of two, which may be beyond the range of floats where no eigenvalue is."""
    values = found.values.astype(complex)
    with np.errstate(over="ignore"):
        values.real, values.imag = (np.ldexp(x, exponent) for x in (values.real, values.imag))
        errors = np.ldexp(found.errors, exponent)
    return Spectrum(values, errors, found.exact)


def _is_triangular(M: Array) -> bool:
    return not np.tril(M, -1).any() or not np.triu(M, 1).any()


def eigenvalues(M: Array, rounding: float = 0.0) -> Spectrum:
    """Spectrum of a real square M [k, k] by LAPACK, each value with an error estimate.

    The backward error of the QR algorithm is of order k eps ||M||_F. It moves a simple eigenvalue
    by that over s = |w^H v| (unit left and right eigenvectors), and an eigenvalue in a cluster of m
    by no more than about its m-th root, whichever is smaller. `rounding` (Frobenius) is how far M
    itself may be from the matrix that is meant; where it is 0, a triangular M is taken at its word.
    """
    k = len(M)
    if k == 0:
        return exact_spectrum(np.zeros(0))
    if rounding == 0 and _is_triangular(M):
        return exact_spectrum(np.diag(M))
    size = float(np.abs(M).max())
    if size and not 1e-140 < size < 1e140:
        # The squares in its norm would leave the range: a power of two changes no digit.
        exponent = int(np.frexp(size)[1])
        found = eigenvalues(np.ldexp(M, -exponent), float(np.ldexp(rounding, -exponent)))
        return _scaled(found, exponent)
    backward = k * EPS * float(np.linalg.norm(M)) + rounding
    if np.array_equal(M, M.T):
        symmetric = np.linalg.eigvalsh(M)
        return Spectrum(
            symmetric.astype(np.complex128), np.full(k, backward), np.zeros(k, dtype=bool)
        )
    # Loaded here: a verdict on small or symmetric matrices starts without scipy.
    from scipy.linalg import eig

    values, left, right = eig(M, left=True, right=True)
    sensitivity = np.abs(np.sum(left.conj() * right, axis=0))
    scale = float(np.linalg.norm(M)) + rounding
    errors = np.empty(k)
    for i, value in enumerate(values):
        first_order = backward / sensitivity[i] if sensitivity[i] > 0 else np.inf
        errors[i] = min(first_order, _cluster_error(values, value, backward, scale))
    return Spectrum(values.astype(np.complex128), errors, np.zeros(k, dtype=bool))


def _cluster_error(values: Complex, value: complex, backward: float, scale: float) -> float:
    """Radius scale (backward/scale)^(1/m) for the smallest m such that it encloses just m of them.

    Fewer are no cluster of m: a triple that rounding has split lies outside the radius of a pair.
    """
    distance = np.abs(values - value)
    for m in range(2, len(values) + 1):
        radius = scale * float((backward / scale) ** (1.0 / m))
        if np.count_nonzero(distance <= 2 * radius) == m:
            return 2 * radius
    return 2 * scale


def attention_spectrum(A: Array) -> Spectrum:
    """spec(A) minus one copy of the eigenvalue 1, for a row-stochastic A [n, n]: n - 1 values.

    Where the eigenvalue 1 repeats (A reducible with several closed classes) the further copies are
    entered as exact ones. Triangular A (a causal mask, T1h): the diagonal.
    """
    n = len(A)
    if _is_triangular(A):
        # A row that attends to itself alone gives a 1, a diagonal that rounds to 1 does not.
        alone = np.count_nonzero(A, axis=1) == np.count_nonzero(np.diag(A)[:, None], axis=1)
        order = np.lexsort((alone, np.diag(A)))[: n - 1]
        diagonal = np.diag(A)[order]
        # Dividing a row by its sum rounds its diagonal entry; 0 stays what it is.
        exact = (diagonal == 0) | alone[order]
        errors = np.where(exact, 0.0, 2 * n * EPS * diagonal)
        return Spectrum(diagonal.astype(np.complex128), errors, exact)
    repeated = len(closed_classes(A)) - 1
    # Normalising the rows and forming Q^T A Q round by about eps ||A||, however small B is.
    spectrum = eigenvalues(quotient(A), rounding=4 * n * EPS * float(np.linalg.norm(A)))
    if repeated == 0:
        return spectrum
    keep = np.sort(np.argsort(np.abs(spectrum.values - 1))[repeated:])
    rest = Spectrum(spectrum.values[keep], spectrum.errors[keep], spectrum.exact[keep])
    return _concatenate(exact_spectrum(np.ones(repeated)), rest)


def value_projection_spectrum(H: Array) -> Spectrum:
    """spec(H) for a dense H [d, d] (or W: a transpose has the same eigenvalues): d values."""
    return eigenvalues(H)


def spectra_of(case: Case) -> tuple[Spectrum, Spectrum]:
    """(spec(A) without one copy of 1, spec(H)) of a case, of a head through its factors."""
    value = (
        value_projection_spectrum(case.H) if case.factors is None else head_spectrum(*case.factors)
    )
    return attention_spectrum(case.A), value


def head_spectrum(W_V: Array, W_proj: Array) -> Spectrum:
    """spec of H = (W_V W_proj)^T for one head, W_V [d, r], W_proj [r, d], r <= d: d values.

    The spectrum of the r x r core W_proj W_V, and d - r exact zeros: their modes have multiplier
    1 + 0 a = 1 for every a, which only structure can know.
    """
    d, r = W_V.shape
    if r >= d:
        return eigenvalues(W_V @ W_proj)
    return _concatenate(exact_spectrum(np.zeros(d - r)), eigenvalues(W_proj @ W_V))
