"""The two spectra of a layer, their discs, and max |1 + h_j a_i| over them (T1a, T10).

Structure is used before numerics: the Perron eigenvalue 1 is split off through the quotient B
(T1c), a triangular matrix shows its spectrum on the diagonal (T1h), and a head of rank r has its
d - r zero eigenvalues exactly, the rest in the r x r core W_proj W_V.

A acts on differences between tokens through B = Q^T A Q (T1c), formed as in `layer.attention`
(`both_sides`): with m the means of the columns and C = A - 1 m^T. Each term there passes fewer than
eleven roundings: one for C, three for each 1 / rho and two for the sums. A change of A, and what
rounding does to m, go through the same four terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.layer.attention import both_sides, communicating, parts, quotient
from oversmoothing.theory.numbers import flint
from oversmoothing.theory.numbers.rounding import (
    TINY,
    UNIT,
    gamma,
    inflated,
    largest,
    of_others,
    upper_product,
    upper_sum,
)
from oversmoothing.theory.spectra.discs import (
    Discs,
    DiscStack,
    Failure,
    components,
    enclose,
    enclose_all,
    with_zeros,
)
from oversmoothing.theory.support.sizes import Array, Complex

EPS = float(np.finfo(np.float64).eps)
# Digits of a number that no rounding blurs, and the fewest that are said of a radius.
ALL_DIGITS, FEWEST_DIGITS = 17, 3


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues as float64 has them: how far they are off is for discs to say.

    values: complex [k]. exact: bool [k], True where structure gives the eigenvalue exactly.
    """

    values: Complex
    exact: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.values)


def _is_triangular(M: Array) -> bool:
    return not np.tril(M, -1).any() or not np.triu(M, 1).any()


def eigenvalues(M: Array, rounded: bool = False) -> Complex:
    """Spectrum of a real square M [k, k] by LAPACK.

    A triangular M that is not `rounded` from another matrix is taken at its word.
    """
    k = len(M)
    if k == 0 or (not rounded and _is_triangular(M)):
        return np.diag(M).astype(np.complex128)
    size = float(np.abs(M).max())
    exponent = 0 if not size or 1e-140 < size < 1e140 else int(np.frexp(size)[1])
    # Squares would leave the range: a power of two changes no digit.
    small = np.ldexp(M, -exponent)
    roots = np.linalg.eigvalsh if np.array_equal(M, M.T) else np.linalg.eigvals
    values: Complex = roots(small).astype(np.complex128)
    with np.errstate(over="ignore"):
        values.real, values.imag = (np.ldexp(x, exponent) for x in (values.real, values.imag))
    return values


def attention_spectrum(A: Array) -> Complex:
    """spec(A) minus one copy of the eigenvalue 1, for a row-stochastic A [n, n]: n - 1 values.

    Triangular A (a causal mask, T1h): the diagonal. Other zeros part A into sets of tokens that
    attend to one another, each by itself: of closed ones further eigenvalues 1 are exact.
    """
    if _is_triangular(A):
        return np.sort(np.diag(A))[:-1].astype(np.complex128)
    ones, values = -1, list[Complex]()
    for S, closed in parts(A > 0):
        ones, inside = ones + closed, A[np.ix_(S, S)]
        values.append(eigenvalues(quotient(inside) if closed else inside, rounded=closed))
    return np.concatenate([np.ones(ones), *values])


def multipliers(a: Complex | Array, h: Complex | Array) -> Complex:
    """mu_ij = 1 + h_j a_i, [..., m, k], for a [..., m] and h [..., k]."""
    return np.asarray(1 + np.asarray(a)[..., :, None] * np.asarray(h)[..., None, :])


def log_multiplier(x: Complex) -> Complex:
    """log(1 + x), accurate for small x and for |1 + x| near 1 (-inf at x = -1)."""
    size = np.abs(1 + x)
    near = np.abs(size - 1) < 0.75
    # Elsewhere the sum under log1p cancels or overflows, and the modulus is accurate enough.
    small = np.where(near, x, 0.0)
    logs = np.log1p(2 * small.real + np.abs(small) ** 2) / 2
    if not near.all():
        with np.errstate(divide="ignore"):
            logs = np.where(near, logs, np.log(size))
    return np.asarray(logs + 1j * np.arctan2(x.imag, 1 + x.real), dtype=np.complex128)


def largest_modulus(a: Complex | Array, h: Complex | Array) -> tuple[float, int, int]:
    """(max |1 + h_j a_i|, i, j), the first place of it; (0.0, -1, -1) where there is no pair."""
    moduli = np.abs(multipliers(a, h))
    if moduli.size == 0:
        return 0.0, -1, -1
    i, j = divmod(int(np.argmax(moduli)), moduli.shape[1])
    return float(moduli[i, j]), i, j


def radii(a: Complex | Array, h: Complex | Array) -> tuple[float, float]:
    """(rho_C, rho_Q) for a [n-1], spec(A) without one copy of 1, and h [d]."""
    return largest_modulus(np.ones(1), h)[0], largest_modulus(a, h)[0]


@dataclass(frozen=True)
class Interval:
    """low <= rho <= high. index: the pair (i, j) of the largest modulus at the centres, i = -1 for
    a = 1, and centre that modulus, None where there is no pair."""

    low: float
    high: float
    index: tuple[int, int] | None = None
    centre: float | None = None

    @property
    def shown(self) -> float:
        """The value to say: that at the centres of the discs, which no radius of theirs blurs."""
        return self.low + 0.5 * (self.high - self.low) if self.centre is None else self.centre

    @property
    def digits(self) -> int:
        """How many digits of it hold."""
        wide = self.high - self.low
        if wide == 0:
            return ALL_DIGITS
        known = min(self.shown / wide, 10.0**ALL_DIGITS)
        return math.floor(math.log10(known)) if known >= 1 else 0


def consensus_radius(value: Discs) -> Interval:
    """rho_C = max |1 + h_j|."""
    return pair_moduli(None, value)[0].radius()


def quotient_radius(attention: Discs, value: Discs) -> Interval:
    """rho_Q = max over pairs |1 + h_j a_i|; (0, 0) where there is no quotient (n = 1)."""
    return pair_moduli(attention, value)[1].radius()


@dataclass(frozen=True)
class PairModuli:
    """|1 + h_j a_i| at the centres and bounds of it over the discs, each [..., m, d].

    rows [..., m], columns [..., d]: the components of the discs. Of a stack each spectrum has its
    own.
    """

    centre: Array
    low: Array
    high: Array
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    consensus: bool = False

    def radius(self) -> Interval:
        """Upper: over all discs. Lower: each component holds an eigenvalue in some of its discs."""
        return self.radii()[0]

    def radii(self) -> list[Interval]:
        """`radius` for each of a stack; 0 where there is no pair."""
        m, d = self.centre.shape[-2:]
        if not m:
            return [Interval(0.0, 0.0)] * (self.columns.size // d)
        low = self.low.reshape(-1, m, d)
        centre = self.centre.reshape(-1, m * d)
        places, tops = centre.argmax(axis=-1).tolist(), centre.max(axis=-1).tolist()
        least, most = (x.max(axis=(-2, -1)).tolist() for x in (low, self.high.reshape(low.shape)))
        rows, columns = self.rows.reshape(-1, m), self.columns.reshape(-1, d)
        # As many components as discs: each is alone in its own.
        joined = (rows.max(axis=-1) + 1 < m) | (columns.max(axis=-1) + 1 < d)
        for k in np.flatnonzero(joined).tolist():
            least[k] = float(minimum_by(minimum_by(low[k], rows[k]).T, columns[k]).max())
        bounds = zip(least, most, places, tops, strict=True)
        return [
            Interval(max(0.0, at_least), at_most, (-1 if self.consensus else p // d, p % d), top)
            for at_least, at_most, p, top in bounds
        ]


def pair_moduli(
    attention: Discs | DiscStack | None, value: Discs | DiscStack
) -> tuple[PairModuli, PairModuli]:
    """The moduli of a = 1 (consensus), and of all pairs; of no pair for None."""
    h, r_h = value.centres[..., None, :], value.radii[..., None, :]
    a, r_a = np.ones_like(h[..., :1]), np.zeros_like(r_h[..., :1])
    one = rows = np.zeros_like(value.component[..., :1])
    if attention is None:
        rows = rows[..., :0]
    else:
        a = np.concatenate([a, attention.centres[..., :, None]], axis=-2)
        r_a = np.concatenate([r_a, attention.radii[..., :, None]], axis=-2)
        rows = attention.component
    # Beyond the largest number stands inf, or NaN, which no comparison holds for.
    with np.errstate(invalid="ignore", over="ignore"):
        moduli = np.abs(1 + a * h)
        size_a, size_h = np.abs(a), np.abs(h)
        slack = size_h * r_a + size_a * r_h + r_a * r_h
        # Two complex multiplications and additions and a modulus: fewer than 16 roundings. An exact
        # h = 0 gives 1 + 0 a = 1 without any.
        rounding = np.where((h == 0) & (r_h == 0), 0.0, 16 * UNIT * (1 + size_a * size_h))
        some = ~(slack + rounding <= 0)
        slack = inflated(slack * (1 + 16 * UNIT) + rounding, 8)
        low = np.where(some, np.nextafter(moduli - slack, -np.inf), moduli)
        high = np.where(some, np.nextafter(moduli + slack, np.inf), moduli)
    columns, i, j = value.component, np.s_[..., :1, :], np.s_[..., 1:, :]
    return (
        PairModuli(moduli[i], low[i], high[i], one, columns, consensus=True),
        PairModuli(moduli[j], low[j], high[j], rows, columns),
    )


def minimum_by(values: Array, group: NDArray[np.intp]) -> Array:
    """Minimum over the rows of each group 0, 1, ..., [groups, ...]."""
    count = int(group.max()) + 1
    if count == len(group):
        return values
    least = np.full((count, *values.shape[1:]), np.inf)
    np.minimum.at(least, group, values)
    return least


def radius_in_balls(a: Sequence[flint.acb], h: Iterable[flint.acb]) -> flint.arb:
    """A ball around max |1 + h_j a_i|, 0 where there is no pair."""
    return largest(abs(1 + y * x) for y in h for x in a)


def attention_discs(A: Array, error: Array | None = None) -> Discs | Failure:
    """spec(A) without one copy of 1, A [n, n] float64 >= 0.

    Without error for exactly A_ij / sum_k A_ik; with it for every row-stochastic A' with
    |A' - A| <= error entrywise.
    """
    return attention_discs_all(A[None], None if error is None else error[None])[0]


def attention_discs_all(A: Array, error: Array | None = None, keep: bool = False) -> DiscStack:
    """`attention_discs` for each of a stack [m, n, n]. keep: with the basis of B, unless A is
    causal."""
    if error is None:
        A, error = normalised(A)
    causal = ~np.triu(A + error, 1).any(axis=(-2, -1))
    if not causal.any():
        return enclose_all(*quotient_within(A, error), keep)
    # T1h: the spectrum of a lower triangular A is its diagonal, and A_11 = 1.
    B, off = (np.eye(A.shape[-1] - 1) * M[:, 1:, 1:] for M in (A, error))
    B[~causal], off[~causal] = quotient_within(A[~causal], error[~causal])
    return enclose_all(B, off, keep)


def attention_by_parts(A: Array, error: Array) -> Discs | None:
    """`attention_discs` through the zeros of A, which every matrix of the cell shares: of each set
    of tokens that attend to one another by itself. None where that is one set.

    A closed set has one eigenvalue 1 exactly; all of these but the first are among the discs.
    """
    sets = parts(A + error > 0)
    if len(sets) == 1:
        return None
    pieces, ones = [], -1
    for S, closed in sets:
        inside, off = A[np.ix_(S, S)], error[np.ix_(S, S)]
        ones += closed
        if closed and len(S) > 1:
            discs = attention_discs(inside, off)
            pieces.append(within_unit(inside) if isinstance(discs, Failure) else discs)
        elif not closed:
            pieces.append(_part(inside, off))
    known = np.ones(ones, dtype=np.complex128)
    return _union([*pieces, Discs(known, np.zeros(ones), np.arange(ones))])


def by_parts(M: Array, error: Array) -> Discs:
    """`enclose` through the zeros of M, each set of indices that lead to one another by itself."""
    sets = communicating((M != 0) | (error > 0))
    return _union([_part(M[np.ix_(S, S)], error[np.ix_(S, S)]) for S in sets])


def _part(M: Array, error: Array) -> Discs:
    discs = enclose(M, error)
    return within_norm(M, error) if isinstance(discs, Failure) else discs


def _union(pieces: Sequence[Discs]) -> Discs:
    centres = np.concatenate([piece.centres for piece in pieces])
    radii = np.concatenate([piece.radii for piece in pieces])
    return Discs(centres, radii, components(centres, radii))


def normalised(A: Array, relative: float = 0.0) -> tuple[Array, Array]:
    """(A / its row sums, error) for every A' >= 0 with |A' - A| <= relative A, over its row sums.

    The sum of n terms and one division round n times on numbers >= 0; what a change of the entries
    does to the shares is that of `of_others`. A 0 stays one.
    """
    zero = A == 0
    A = A / A.sum(axis=-1, keepdims=True)
    wide = np.asarray(gamma(A.shape[-1] + 2))
    if relative:
        spread = 2 * relative / (1 - relative) * of_others(inflated(A, A.shape[-1] + 4))
        wide = inflated(wide * (1 + spread) + spread, 4)
    return A, np.where(zero, 0.0, inflated(wide * A, 6))


def quotient_within(A: Array, error: Array) -> tuple[Array, Array]:
    """(B, bound): |Q^T A' Q - B| <= bound for every row-stochastic A' with |A' - A| <= error.

    A, error [m, n, n], B [m, n-1, n-1].
    """
    n = A.shape[-1]
    # No product with ones: BLAS rounds equal columns apart, and nothing repeats any more.
    means = A.mean(axis=-2, keepdims=True)
    C = A - means
    # A change minus its mean over the column is at most (1 - 2 / n) |change| + mean |change|.
    change = inflated(error.mean(axis=-2, keepdims=True) + gamma(n + 1) * means, n + 2)
    change = change + error * max(0.0, 1 - 2 / n)
    bound = both_sides(gamma(11) * np.abs(C) + change, 1.0)
    return both_sides(C, -1.0), inflated(bound, 16)


def value_discs(H: Array) -> Discs | Failure:
    """spec(H) for H [d, d], taken as the exact binary64 numbers."""
    return enclose(np.ascontiguousarray(H))


def head_discs(W_V: Array, W_proj: Array, relative: float = 0.0) -> Discs | Failure:
    """spec of W_V W_proj, W_V [d, r], W_proj [r, d]: the r x r core in discs, and d - r zeros.

    For all factors whose entries are within `relative` of these; the basis is that of the core.
    """
    d, r = W_V.shape
    core = enclose(*core_within(W_V, W_proj, relative))
    return core if r >= d or isinstance(core, Failure) else with_zeros(core, d - r)


def core_within(W_V: Array, W_proj: Array, relative: float = 0.0) -> tuple[Array, Array]:
    """(core, error): W_proj W_V [r, r], or W_V W_proj [d, d] where r >= d, within the rounding of
    the product and what the factors may be off by."""
    d, r = W_V.shape
    return product_within(*((W_V, W_proj) if r >= d else (W_proj, W_V)), relative)


def product_within(first: Array, second: Array, relative: float = 0.0) -> tuple[Array, Array]:
    """(product, error) within its rounding and what the factors may be off by."""
    k = first.shape[1]
    wide = (gamma(k + 2) + 2 * relative + relative**2) * (1 + 8 * UNIT)
    # Products of zeros are zeros; others lose what is below all numbers.
    some = (first != 0).astype(float) @ (second != 0) > 0
    error = upper_product(np.abs(first), np.abs(second)) * wide + k * TINY
    return first @ second, np.where(some, error, 0.0)


def within_unit(A: Array) -> Discs:
    """spec(A) without one copy of 1 where nothing but |a| <= 1 is known of it."""
    return _within(np.linalg.eigvals(quotient(A)), 1.0)


def within_norm(H: Array, error: Array | float = 0.0) -> Discs:
    """spec(H), H within error: nothing but |h| <= the largest row sum of |H| is known of it."""
    # What overflows is infinite, and bounds nothing.
    with np.errstate(over="ignore"):
        size = float(upper_sum(inflated(np.abs(H) + error, 2)).max())
        return _within(eigenvalues(H, rounded=True), size)


def _within(centres: NDArray[Any], size: float) -> Discs:
    values = centres.astype(np.complex128)
    radii = inflated(np.abs(values) + size, 4)
    return Discs(values, radii, np.zeros(len(values), dtype=np.intp))
