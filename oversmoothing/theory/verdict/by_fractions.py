"""The verdict on rational input, decided exactly: ties, defective blocks and all (T2-T4, T6b).

Eigenvalues are roots of integer polynomials, enclosed in balls of any precision. Two moduli
|1 + h a| that no precision separates are equal once the precision passes the gap bound: a non-zero
algebraic number delta with q delta an algebraic integer, whose D conjugates are at most M, has
|delta| >= 1 / (q (q M)^(D-1)), because the norm of q delta is a non-zero integer.

Of several heads (A_h, H_h) the operator is no product of two: its modes are the eigenvalues x of
sum_h H_h, and y of sum_h B'_h (x) H_h on differences between tokens (T7), multipliers 1 + x and
1 + y. Without the residual there is one head more, A = I with H = -I.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from math import ceil, log2, prod
from typing import Any

import flint

from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.numbers.exact import Heads, Matrix, Number, kronecker, plus
from oversmoothing.theory.numbers.rounding import at_precision, doublings, largest
from oversmoothing.theory.spectra.algebraic import Eigenvalue, Factor, eigenvalues, factors

# Precision, in bits, up to which an equality is proved. It covers n, d <= 4 with entries whose
# numerators and denominators have up to 64 bits, whatever their Galois groups.
EXACT_BITS = 2**20


@dataclass(frozen=True)
class Mode:
    """A pair (i, j): multiplier mu = 1 + h a. attention is None for consensus (a = 1, i = n)."""

    attention: Eigenvalue | None
    value: Eigenvalue

    @property
    def rational(self) -> flint.fmpq | None:
        """1 + h a where h and a are rational, or h is 0."""
        if self.value.is_zero:
            return flint.fmpq(1)
        factors = [root.factor for root in (self.value, self.attention) if root is not None]
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

    @property
    def structural(self) -> frozenset[object]:
        """Equal keys mean equal moduli by structure: mu = 1 for h = 0, a = 1, joint conjugates."""
        a, h = self.attention, self.value
        if h.is_zero:
            return frozenset(["one"])
        if a is None or a.is_one:
            return frozenset([h.key, h.conjugate.key])
        return frozenset([(a.key, h.key), (a.conjugate.key, h.conjugate.key)])


def squared_modulus(x: Eigenvalue | Mode, bits: int) -> flint.arb:
    """A ball around |x|^2, exactly 0 for the root 0."""
    with at_precision(bits):
        ball = x.ball(bits)
        return ball.real * ball.real + ball.imag * ball.imag


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

    With c the leading coefficient of a factor, c times a product of distinct roots of it is an
    algebraic integer: |mu|^2 = (1 + h a)(1 + conj h conj a) needs c once for a complex pair and
    twice for a real root, which then occurs squared.
    """
    sides = (first.value, first.attention, second.value, second.attention)
    roots = [value for value in sides if value is not None]
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
    """At most so many conjugates has a number of the field that the roots generate: of a factor of
    degree k, k (k-1) ... ways to choose other roots."""
    used: dict[Factor, set[int]] = {}
    for root in roots:
        used.setdefault(root.factor, set()).update((root.index, root.conjugate.index))
    return prod(
        prod(range(f.degree - len(indices) + 1, f.degree + 1)) for f, indices in used.items()
    )


@dataclass(frozen=True)
class ExactDominance:
    """All modes with the largest modulus on each side, and which side wins.

    comparison: 1 consensus, -1 quotient, 0 equal, None undecided within `EXACT_BITS`.
    """

    consensus: list[Mode]
    quotient: list[Mode]
    comparison: int | None
    bits_needed: int

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

    def radii(self) -> tuple[Number, Number]:
        """rho_C and rho_Q, so close that their difference has 64 bits too."""
        sides = (self.consensus, self.quotient)
        rational = [modes[0].rational if modes else flint.fmpq(0) for modes in sides]
        known = [Number.of(Fraction(abs(int(x.p)), int(x.q))) for x in rational if x is not None]
        if len(known) == 2:
            return known[0], known[1]
        for bits in doublings(128, 2 * EXACT_BITS):
            consensus, quotient = (self.radius(side, bits) for side in (True, False))
            with at_precision(bits):
                apart = consensus - quotient
            if not self.comparison or apart.rel_accuracy_bits() >= 64:
                break
        return Number.of(consensus), Number.of(quotient)

    def dominant(self) -> list[Mode]:
        """The modes of largest modulus over both sides."""
        if self.comparison is None:
            return []
        kept = self.consensus if self.comparison >= 0 else []
        return kept + (self.quotient if self.comparison <= 0 else [])


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


def largest_modes(modes: list[Mode]) -> tuple[list[Mode], bool, int]:
    """The modes of largest modulus; whether every comparison was decided; the most bits used."""
    best: list[Mode] = []
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


# Beside an eigenvalue y of all heads on differences between tokens, which is no product h a. That
# it repeats keeps anyone from taking the modes of two y for those of one eigenvector of A.
_ONE = Eigenvalue(Factor(flint.fmpz_poly([-1, 1]), 2, (1, 1)), 0)


def all_modes(A: Matrix, H: Matrix, others: Heads = ()) -> tuple[Mode, ...]:
    """Every pair of distinct eigenvalues of H and of A, its eigenvalue 1 as consensus.

    Of the last few layers they are kept, with the roots that were found: a verdict asks thrice.
    """
    return _modes(*(tuple(map(tuple, M)) for head in ((A, H), *others) for M in head))


@lru_cache(maxsize=4)
def _modes(A: Any, H: Any, *others: Any) -> tuple[Mode, ...]:
    if others:
        heads = list(zip((A, *others[::2]), (H, *others[1::2]), strict=True))
        consensus: Matrix = reduce(plus, (h for _, h in heads))
        rest = reduce(plus, (kronecker(rational_quotient(a), h) for a, h in heads))
        sides = ((None, consensus), (_ONE, rest))
        return tuple(Mode(a, x) for a, M in sides for x in eigenvalues(factors(M)))
    a_values = eigenvalues(factors(rational_quotient(A)))
    return tuple(Mode(a, h) for h in eigenvalues(factors(H)) for a in (None, *a_values))


def exact_dominance(A: Matrix, H: Matrix, others: Heads = ()) -> ExactDominance:
    """Decide rho_C against rho_Q for rational A (rows summing to 1) and H (T1, T2, T3)."""
    modes = all_modes(A, H, others)
    consensus, sure_c, bits_c = largest_modes([mode for mode in modes if mode.attention is None])
    quotient, sure_q, bits_q = largest_modes([mode for mode in modes if mode.attention is not None])
    if not quotient:
        return ExactDominance(consensus, quotient, 1, max(bits_c, bits_q))
    comparison, bits = compare(consensus[0], quotient[0])
    if comparison == 0 and not (sure_c and sure_q):
        comparison = None
    return ExactDominance(consensus, quotient, comparison, max(bits, bits_c, bits_q))


def generic_rank(dominance: ExactDominance) -> int | None:
    """Asymptotic rank for generic X_0: the maximum matching of the dominant pairs (T4c).

    Eigenvalues count with multiplicity, consensus as one eigenvalue of A. None where the dominance
    is undecided or a dominant pair sits in a Jordan block, which T4c does not cover.
    """
    dominant = dominance.dominant()
    if not dominant or any(jordan_size(mode) > 1 for mode in dominant):
        return None
    return rank_bound(dominant)


def rank_bound(pairs: Sequence[Mode], power: int = 0) -> int:
    """An upper bound of the rank of the terms of these pairs that grow like L^power.

    Rows are eigenvectors of A, columns of H, each as often as it can occur.

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
    # Each as often as it can occur, a maximum flow is a maximum matching: by augmenting paths.
    options = {
        (a, i): [(h, j) for b, h in edges if b == a for j in range(columns[h])]
        for a, count in rows.items()
        for i in range(count)
    }
    taken: dict[object, tuple[Eigenvalue | None, int]] = {}

    def place(row: tuple[Eigenvalue | None, int], tried: set[object]) -> bool:
        for column in options[row]:
            if column not in tried:
                tried.add(column)
                if column not in taken or place(taken[column], tried):
                    taken[column] = row
                    return True
        return False

    return sum(place(row, set()) for row in options)
