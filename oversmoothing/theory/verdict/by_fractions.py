"""The verdict on rational input, decided exactly: ties, defective blocks and all (T2-T4, T6b).

Two moduli |1 + h a| of roots of integer polynomials that no precision separates are equal once it
passes the gap bound: a non-zero algebraic number delta with q delta an algebraic integer, whose D
conjugates are at most M, has |delta| >= 1 / (q (q M)^(D-1)), because the norm of q delta is a
non-zero integer.

Of several heads (A_h, H_h) the operator is no product of two: its modes are the eigenvalues x of
sum_h H_h, and y of sum_h B'_h (x) H_h on differences between tokens (T7), multipliers 1 + x and
1 + y. Without the residual there is one head more, A = I with H = -I.

How far a layer is from another verdict: delta such that changes ||dA|| <= delta ||A||,
||dH|| <= delta ||H|| (Frobenius, the rows of dA sum to 0) can make rho_C = rho_Q, to first order:
the margin over the gradient of rho_C - rho_Q, which left and right eigenvectors of the two dominant
pairs give. Of exact input in balls, else in floats.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from math import ceil, log2, prod
from typing import Any, Generic, TypeVar

import flint
import numpy as np

from oversmoothing.theory.layer.attention import complement_basis, quotient, rational_quotient
from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers.exact import Heads, Matrix, Number, kronecker, plus, to_flint
from oversmoothing.theory.numbers.rounding import at_precision, doublings, largest, norm
from oversmoothing.theory.spectra.algebraic import (
    Eigenvalue,
    Factor,
    eigenvalues,
    factors,
    rational_modulus,
    squared_modulus,
)
from oversmoothing.theory.spectra.layer_discs import largest_modulus
from oversmoothing.theory.support.sizes import Array, Complex

# Precision, in bits, up to which an equality is proved. It covers n, d <= 4 with entries whose
# numerators and denominators have up to 64 bits, whatever their Galois groups.
EXACT_BITS = 2**20


@dataclass(frozen=True)
class Mode:
    """A pair (i, j): multiplier mu = 1 + h a. attention is None for consensus (a = 1, i = n)."""

    attention: Eigenvalue | None
    value: Eigenvalue

    @property
    def roots(self) -> list[Eigenvalue]:
        """h, and a."""
        return [self.value] if self.attention is None else [self.value, self.attention]

    @property
    def conjugate(self) -> "Mode":
        return Mode(self.attention and self.attention.conjugate, self.value.conjugate)

    @cached_property
    def rational(self) -> flint.fmpq | None:
        """1 + h a where h and a are rational, or h is 0."""
        if self.value.is_zero:
            return flint.fmpq(1)
        factors = [root.factor for root in self.roots]
        if any(factor.degree > 1 for factor in factors):
            return None
        return 1 + prod((f.rational_root for f in factors), start=flint.fmpq(1))

    def ball(self, bits: int) -> flint.acb:
        """Around 1 + h a."""
        with at_precision(bits):
            rational = self.rational
            if rational is not None:
                # Rounded once, at the end: 1 + h a = 0 has to be exactly that.
                return flint.acb(rational)
            h = self.value.ball(bits)
            return 1 + (h if self.attention is None else h * self.attention.ball(bits))

    @cached_property
    def structural(self) -> frozenset[object]:
        """Equal keys mean equal moduli by structure: mu = 1 for h = 0, a = 1, joint conjugates."""
        a, h = self.attention, self.value
        if h.is_zero:
            return frozenset(["one"])
        if a is None or a.is_one:
            return h.structural
        return frozenset([(a.key, h.key), (a.conjugate.key, h.conjugate.key)])


def jordan_size(mode: Mode) -> int:
    """The largest Jordan block of I + H (x) A at this mode's eigenvalue pair (T6a)."""
    p = mode.value.factor.jordan[0]
    if mode.attention is None:
        return p
    q = mode.attention.factor.jordan[0]
    if mode.value.is_zero:
        return min(p, q) if mode.attention.is_zero else p
    return q if mode.attention.is_zero else p + q - 1


def gap_bits(first: Mode, second: Mode) -> float:
    """Bits of the bound below which |mu_1|^2 - |mu_2|^2 can only be zero.

    For c the leading coefficient of a factor, c times a product of distinct roots is an algebraic
    integer: |mu|^2 needs c once for a complex pair, and twice for a real root, which is squared.
    """
    roots = [*first.roots, *second.roots]
    exponent: dict[Factor, int] = {}
    for value in roots:
        exponent[value.factor] = max(exponent.get(value.factor, 1), 2 if value.is_real else 1)
    denominator = sum(power * log2(factor.leading) for factor, power in exponent.items())
    # Every eigenvalue of A has modulus at most 1, so 0 <= |1 + h a|^2 <= (1 + max |h|)^2 at
    # complex places; at the others the two factors belong to different roots, with the same bound,
    # and the difference of two such products is at most twice it.
    # As a ball, for it may be beyond the range of a float, and narrower than the 1e-6.
    top = largest(abs(x) for mode in (first, second) for x in mode.value.factor.roots(64))
    logarithm = float((1 + top).log() / flint.arb(2).log())
    size = denominator + 1 + 2 * logarithm + 1e-6
    return denominator + (embeddings(roots) - 1) * size + 2


def embeddings(roots: Iterable[Eigenvalue]) -> int:
    """A bound of the conjugates that a number of the field of the roots has: of a factor of degree
    k, k (k-1) ... ways to choose other roots."""
    used: dict[Factor, set[int]] = {}
    for root in roots:
        used.setdefault(root.factor, set()).update((root.index, root.conjugate.index))
    return prod(
        prod(range(f.degree - len(indices) + 1, f.degree + 1)) for f, indices in used.items()
    )


# A mode of one stream, or an eigenvalue of several.
_Mode = TypeVar("_Mode", Mode, Eigenvalue)


@dataclass(frozen=True)
class Leading(Generic[_Mode]):
    """All modes with the largest modulus on each side, and which side wins.

    comparison: 1 consensus, -1 quotient (without modes for one token), 0 equal, None undecided.
    """

    consensus: list[_Mode]
    quotient: list[_Mode]
    comparison: int | None

    def radius(self, consensus: bool, bits: int = 128) -> flint.arb:
        """Ball around rho_C or rho_Q (0 where there are no modes), good to half as many bits."""
        modes = self.consensus if consensus else self.quotient
        if not modes:
            return flint.arb(0)
        # 1 + h a may cancel: where it is not exactly 0, more bits show how large it is.
        for working in doublings(bits, max(bits, 2**16)):
            with at_precision(working):
                modulus = abs(modes[0].ball(working))
            if modulus.rel_accuracy_bits() >= bits // 2:
                break
        return modulus

    def dominant(self) -> list[_Mode]:
        """The modes of largest modulus over both sides; none where that is undecided."""
        if self.comparison is None:
            return []
        kept = self.consensus if self.comparison >= 0 else []
        return kept + (self.quotient if self.comparison <= 0 else [])


@dataclass(frozen=True)
class ExactDominance(Leading[Mode]):
    """Of one stream. bits_needed: `compare` spends up to `EXACT_BITS`."""

    bits_needed: int

    def radii(self) -> tuple[Number, Number]:
        """rho_C and rho_Q, so close that their difference has 64 bits too; of a tie one number."""
        sides = (self.consensus, self.quotient)
        known = [rational_modulus(modes[0].roots) if modes else Fraction(0) for modes in sides]
        for bits in doublings(128, 2 * EXACT_BITS):
            balls = [self.radius(side, bits) for side in (True, False)]
            with at_precision(bits):
                apart = balls[0] - balls[1]
            if None not in known or not self.comparison or apart.rel_accuracy_bits() >= 64:
                break
        consensus, quotient = (
            Number.of(ball if x is None else x) for x, ball in zip(known, balls, strict=True)
        )
        return consensus, consensus if self.comparison == 0 else quotient


def compare(first: Mode, second: Mode, limit: int = EXACT_BITS) -> tuple[int | None, int]:
    """Sign of |mu_first| - |mu_second| (None if it would need more than `limit` bits), and bits."""
    if first.structural == second.structural:
        return 0, 0
    needed = ceil(gap_bits(first, second))
    # Where equality is out of reach, 2^14 bits still separate whatever is not meant to be equal.
    last = needed + 64 if needed <= limit else 2**14
    # Balls lose a few bits to cancellation: up to a doubling more than the bound asks for.
    for bits in doublings(64, 2 * last):
        with at_precision(bits):
            difference = squared_modulus(first, bits) - squared_modulus(second, bits)
            if difference > 0:
                return 1, bits
            if difference < 0:
                return -1, bits
            if abs(difference) < flint.arb(2) ** -needed:
                return 0, needed
    return None, needed


def largest_modes(
    modes: list[_Mode], compare: Callable[[_Mode, _Mode], tuple[int | None, int]]
) -> tuple[list[_Mode], bool, int]:
    """The modes of largest modulus; whether every comparison was decided; the most bits used."""
    best: list[_Mode] = []
    decided, used = True, 0
    # By structure: whether modes of that modulus are among the best.
    seen: dict[frozenset[object], bool] = {}
    for mode in modes:
        if mode.structural not in seen:
            sign, bits = compare(mode, (best or [mode])[0])
            used = max(used, bits)
            if sign is None:
                decided, sign = False, 0
            if sign > 0:
                best, seen = [], dict.fromkeys(seen, False)
            seen[mode.structural] = sign >= 0
        if seen[mode.structural]:
            best.append(mode)
    return best, decided, used


# Beside an eigenvalue y of all heads, no product h a. It repeats, so that nobody takes the modes of
# two y for those of one eigenvector of A.
_ONE = Eigenvalue(Factor(flint.fmpz_poly([-1, 1]), 2, (1, 1)), 0)


def all_modes(A: Matrix, H: Matrix, others: Heads = ()) -> tuple[Mode, ...]:
    """Every pair of distinct eigenvalues of H and of A, its eigenvalue 1 as consensus; of the last
    few layers they are kept, with the roots that were found: a verdict asks thrice."""
    return _modes(*(tuple(tuple(map(tuple, M)) for M in head) for head in ((A, H), *others)))


@lru_cache(maxsize=4)
def _modes(*heads: Any) -> tuple[Mode, ...]:
    if len(heads) > 1:
        consensus: Matrix = reduce(plus, (h for _, h in heads))
        rest = reduce(plus, (kronecker(rational_quotient(a), h) for a, h in heads))
        sides = ((None, consensus), (_ONE, rest))
        return tuple(Mode(a, x) for a, M in sides for x in eigenvalues(factors(M)))
    ((A, H),) = heads
    a_values = eigenvalues(factors(rational_quotient(A)))
    return tuple(Mode(a, h) for h in eigenvalues(factors(H)) for a in (None, *a_values))


def roots_of(A: Matrix, H: Matrix) -> tuple[list[Eigenvalue], list[Eigenvalue]]:
    """The distinct eigenvalues of A without one 1, and of H, of a layer of one head."""
    modes = all_modes(A, H)
    attention = dict.fromkeys(mode.attention for mode in modes if mode.attention is not None)
    return list(attention), list(dict.fromkeys(mode.value for mode in modes))


def exact_dominance(A: Matrix, H: Matrix, others: Heads = ()) -> ExactDominance:
    """Decide rho_C against rho_Q for rational A (rows summing to 1) and H (T1, T2, T3)."""
    modes = all_modes(A, H, others)
    (consensus, sure_c, bits_c), (quotient, sure_q, bits_q) = (
        largest_modes([mode for mode in modes if (mode.attention is None) is fixed], compare)
        for fixed in (True, False)
    )
    comparison, bits = compare(consensus[0], quotient[0]) if quotient else (1, 0)
    if comparison == 0 and not (sure_c and sure_q):
        comparison = None
    return ExactDominance(consensus, quotient, comparison, max(bits, bits_c, bits_q))


def generic_rank(dominance: ExactDominance) -> int | None:
    """Asymptotic rank for generic X_0: the maximum matching of the dominant pairs (T4c). None where
    the dominance is undecided or a dominant pair sits in a Jordan block, which T4c leaves out."""
    dominant = dominance.dominant()
    if not dominant or any(jordan_size(mode) > 1 for mode in dominant):
        return None
    return rank_bound(dominant)


def rank_bound(pairs: Sequence[Mode], power: int = 0) -> int:
    """An upper bound of the rank of the terms of these pairs that grow like L^power.

    A sum of blocks E_a X E_h^T has at most the rank of a maximum flow from the a to the h over the
    pairs, with the multiplicities for capacities (T4c); of a block that grows like L^k beside a
    semisimple partner only the image of the k-th power of its nilpotent part is left.
    """
    rows: dict[Eigenvalue | None, int] = {}
    columns: dict[Eigenvalue, int] = {}
    edges = {(pair.attention, pair.value) for pair in pairs}
    for a, h in edges:
        blocks_a, blocks_h = (1,) if a is None else a.factor.jordan, h.factor.jordan
        k_a = power if blocks_h[0] == 1 else 0
        k_h = power if blocks_a[0] == 1 else 0
        rows[a] = max(rows.get(a, 0), sum(max(size - k_a, 0) for size in blocks_a))
        columns[h] = max(columns.get(h, 0), sum(max(size - k_h, 0) for size in blocks_h))
    if len(rows) == len(columns) == len(edges):
        return sum(min(rows[a], columns[h]) for a, h in edges)
    # Each as often as it can occur, a maximum flow is a maximum matching. Most need no scipy.
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    left, right = (
        [x for x, count in side.items() for _ in range(count)] for side in (rows, columns)
    )
    table = csr_matrix([[(a, h) in edges for h in right] for a in left])
    return int((maximum_bipartite_matching(table) >= 0).sum())


# ------------------------------------------------------------ the nearest other verdict

# Beyond this a norm of H may be no float.
_LARGEST = 1e150
# Bits that a distance of exact input has to have, and those spent on it.
_KNOWN, _MOST = 40, 2**14


def exact_distance(case: Layer, dominance: ExactDominance) -> Number | None:
    """The distance of a decidable layer that is no tie, with its bounds; None where there is no
    gradient: a dominant eigenvalue repeats, or several pairs lead a side."""
    for first, *others in (dominance.consensus, dominance.quotient):
        if any(mode != first.conjugate for mode in others):
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
    matrices = (by_a, by_h, *(flint.acb_mat(to_flint(M)) for M in (A, H)))
    sizes = (norm(flint.acb(z.real) for z in M.entries()) for M in matrices)
    slope_a, slope_h, size_a, size_h = sizes
    return slope_h * size_h + slope_a * size_a


def _exact_gradient(M: Matrix, root: Eigenvalue, bits: int) -> flint.acb_mat | None:
    """w v^T / w^T v for the left and right eigenvectors of a simple eigenvalue x, in balls: for
    some b, c the matrix [[x I - M, b], [c^T, 0]] is regular, and sends (v, 0) to (0, 1)."""
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


def distance_to_tie(A: Array, H: Array, gap: float | None = None) -> float | None:
    """The distance of A [n, n] and H [d, d] in floats; gap: |rho_C - rho_Q| where it is known.

    None for one token, where a dominant eigenvalue is defective or repeated to all digits, and
    where the square of H is no float.
    """
    if len(A) == 1 or np.abs(H).max() > _LARGEST:
        return None
    Q = complement_basis(len(A))
    (a, of_attention), (h, of_value) = _eigen(quotient(A)), _eigen(H)
    rho_c, _, j = largest_modulus(np.array([1.0]), h)
    rho_q, i, k = largest_modulus(a, h)
    phases = [np.conj(z) / abs(z) if z else 0.0 for z in (1 + h[j], 1 + h[k] * a[i])]
    first, second, with_a = of_value(j), of_value(k), of_attention(i)
    if with_a is None or first is None or second is None:
        return None
    by_h = np.real(phases[0] * first - phases[1] * a[i] * second)
    # A change of A acts through Q^T dA Q: its gradient lies in the rows that sum to 0 already.
    by_a = np.real(phases[1] * h[k] * (Q @ with_a @ Q.T))
    slope = np.linalg.norm(by_h) * np.linalg.norm(H) + np.linalg.norm(by_a) * np.linalg.norm(A)
    gap = abs(rho_c - rho_q) if gap is None else gap
    return float(gap / slope) if slope > 0 else None


def _eigen(M: Array) -> tuple[Complex, Callable[[int], Complex | None]]:
    """Eigenvalues, and by index d(eigenvalue) = sum of gradient * dM; None where there is none."""
    values, right = np.linalg.eig(M)
    try:
        # Left eigenvectors in rows, scaled to w v = 1.
        left = np.linalg.inv(right)
    except np.linalg.LinAlgError:
        left = np.full_like(right, np.inf)

    def gradient(index: int) -> Complex | None:
        w = left[index]
        # Right eigenvectors have the length 1, so this is the condition number of the eigenvalue:
        # from there on it is defective to all digits.
        if not np.abs(w).max() < 1e12 or not np.linalg.norm(w) < 1e12:
            return None
        return np.asarray(w[:, None] * right[:, index])

    return values.astype(np.complex128), gradient
