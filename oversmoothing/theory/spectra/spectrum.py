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
    """Eigenvalues as float64 has them: how far they are off is for discs to say.

    values: complex [k]. exact: bool [k], True where structure gives the eigenvalue exactly.
    """

    values: Complex
    exact: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.values)


def _concatenate(first: Spectrum, second: Spectrum) -> Spectrum:
    return Spectrum(
        np.concatenate([first.values, second.values]), np.concatenate([first.exact, second.exact])
    )


def exact_spectrum(values: Complex | Array) -> Spectrum:
    """A spectrum known without error."""
    values = np.asarray(values, dtype=np.complex128)
    return Spectrum(values, np.ones(len(values), dtype=bool))


def _is_triangular(M: Array) -> bool:
    return not np.tril(M, -1).any() or not np.triu(M, 1).any()


def eigenvalues(M: Array, rounded: bool = False) -> Spectrum:
    """Spectrum of a real square M [k, k] by LAPACK.

    A triangular M that is not `rounded` from another matrix is taken at its word.
    """
    k = len(M)
    if k == 0:
        return exact_spectrum(np.zeros(0))
    if not rounded and _is_triangular(M):
        return exact_spectrum(np.diag(M))
    size = float(np.abs(M).max())
    exponent = 0 if not size or 1e-140 < size < 1e140 else int(np.frexp(size)[1])
    # Squares would leave the range: a power of two changes no digit.
    small = np.ldexp(M, -exponent)
    found = np.linalg.eigvalsh(small) if np.array_equal(M, M.T) else np.linalg.eigvals(small)
    values: Complex = found.astype(np.complex128)
    with np.errstate(over="ignore"):
        values.real, values.imag = (np.ldexp(x, exponent) for x in (values.real, values.imag))
    return Spectrum(values, np.zeros(k, dtype=bool))


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
        return Spectrum(diagonal.astype(np.complex128), (diagonal == 0) | alone[order])
    repeated = len(closed_classes(A)) - 1
    spectrum = eigenvalues(quotient(A), rounded=True)
    if repeated == 0:
        return spectrum
    keep = np.sort(np.argsort(np.abs(spectrum.values - 1))[repeated:])
    rest = Spectrum(spectrum.values[keep], spectrum.exact[keep])
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
