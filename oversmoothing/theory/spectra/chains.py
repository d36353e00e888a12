"""Jordan chains of a rational matrix, exactly, and of I + H (x) A from those of H and A (T6a).

The k roots of an irreducible factor f are conjugate, and a vector over Q(x), x a root, is kept as
k vectors of fractions: z(x) = sum_m x^m z_m, a table [n, k]. For rational x that is one vector. A
chain of x is z_1 ... z_m with (M - x) z_1 = 0 and (M - x) z_(t+1) = z_t. From any c with
f(M)^m c = 0 and f(M)^(m-1) c != 0 it is z_t = (M - x)^(m-t) q(M)^m c, q(y) = f(y)/(y - x).

On chains u of H at h (length p) and v of A at a (length q), H (x) A - h a is one nilpotent map. For
h, a != 0 it is h a (e^(X+Y) - 1) with X = log(H/h), Y = log(A/a), so its chains are those of X + Y:
p + q - 1 - 2k long, from the lowest vectors sum_i c_i X^i Y^(k-i) of two representations of sl_2.
For a = 0 they go through H^j u_i (x) v_(q-j), for h = a = 0 along the diagonals.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, gcd, lcm
from typing import Any

import flint
import numpy as np

from oversmoothing.theory.numbers.exact import Matrix, from_flint, identity, polynomial_at, to_flint
from oversmoothing.theory.spectra.algebraic import Eigenvalue, Factor, factors
from oversmoothing.theory.support.sizes import Complex

# Coefficients over a number field Q(x): polynomials in x, below the degree of its factor.
Coefficients = tuple[flint.fmpq_poly, ...]
_ONE, _ZERO = flint.fmpq_poly([1]), flint.fmpq_poly([0])


@dataclass(frozen=True)
class ExactVector:
    """A vector over Q(root), exactly: sum_m root^m table[:, m].

    `fractions` has its entries where the root is rational, `numpy()` the nearest complex128.
    """

    root: Eigenvalue
    table: Matrix

    @property
    def is_rational(self) -> bool:
        return self.root.factor.degree == 1

    @property
    def fractions(self) -> list[Fraction]:
        """The entries of a vector at a rational root. Raises `ValueError` at any other."""
        if not self.is_rational:
            raise ValueError("the eigenvalue is irrational: `table` has the coefficients")
        return [row[0] for row in self.table]

    def numpy(self) -> Complex:
        """The entries as complex128 [n]."""
        x, total = self.root.ball(128), [flint.acb(0)] * len(self.table)
        for m in range(self.root.factor.degree):
            power = x**m
            for i, row in enumerate(self.table):
                total[i] += power * flint.fmpq(row[m].numerator, row[m].denominator)
        return np.array([complex(entry.mid()) for entry in total])

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        if self.is_rational:
            return f"({', '.join(map(str, self.fractions))})"
        return f"({', '.join(f'{z:.6g}' for z in self.numpy())})"


@dataclass(frozen=True, eq=False)
class Chain:
    """One Jordan block of each root of a factor: tables [n, k] of z_1 ... z_m."""

    factor: Factor
    tables: tuple[flint.fmpq_mat, ...]

    def __len__(self) -> int:
        return len(self.tables)


def jordan_chains(matrix: Matrix) -> list[Chain]:
    """One chain for each Jordan block of each Galois class of eigenvalues, longest first."""
    M = to_flint(matrix)
    return [chain for factor in factors(matrix) for chain in _chains_of(M, factor)]


def _chains_of(M: flint.fmpq_mat, factor: Factor) -> Iterator[Chain]:
    """Generators c, largest blocks first: their f(M)^(m-1) c are independent over Q(x)."""
    f = _monic(factor)
    N = polynomial_at(f, M)
    powers = [to_flint(identity(M.nrows()))]
    while len(powers) <= factor.jordan[0]:
        powers.append(powers[-1] * N)
    reached: list[list[Any]] = []
    for size in sorted(set(factor.jordan), reverse=True):
        wanted = len(reached) + factor.jordan.count(size) * factor.degree
        kernel, nullity = powers[size].numer_denom()[0].nullspace()
        for column in kernel.transpose().tolist()[: int(nullity)]:
            if len(reached) == wanted:
                break
            c = flint.fmpz_mat([[x] for x in column])
            z = powers[size - 1] * c
            if flint.fmpq_mat([*reached, z.entries()]).rank() == len(reached):
                continue
            for _ in range(factor.degree):
                reached.append(z.entries())
                z = M * z
            yield Chain(factor, _chain(M, f, c, size))


def _chain(M: flint.fmpq_mat, f: flint.fmpq_poly, c: flint.fmpz_mat, size: int) -> Any:
    degree, C = f.degree(), companion(f)
    z = flint.fmpq_mat([[row[0]] + [0] * (degree - 1) for row in c.tolist()])
    for _ in range(size):
        # q(M) z = sum_j f_j D_j with D_j = sum_(m<j) M^(j-1-m) z C^m.
        total, D, moved = z * f[1], z, z
        for j in range(2, degree + 1):
            moved = moved * C
            D = M * D + moved
            total = total + D * f[j]
        z = total
    tables = [z]
    for _ in range(size - 1):
        tables.append(M * tables[-1] - tables[-1] * C)
    # In integers without a common factor, the first one positive.
    first = [x for row in tables[-1].tolist() for x in row if x != 0]
    scale = flint.fmpq(lcm(*(int(x.q) for x in first)), gcd(*(int(x.p) for x in first)))
    scale = scale if first[0] > 0 else -scale
    return tuple(table * scale for table in reversed(tables))


def _monic(factor: Factor) -> flint.fmpq_poly:
    return flint.fmpq_poly(factor.polynomial) / factor.polynomial[factor.degree]


def companion(f: flint.fmpq_poly) -> flint.fmpq_mat:
    """C [k, k] of a monic f: a table times C is the vector times the root."""
    k = f.degree()
    rows = [[int(j == i + 1) for j in range(k)] for i in range(k - 1)]
    return flint.fmpq_mat([*rows, [-f[j] for j in range(k)]])


@dataclass(frozen=True)
class _Side:
    """A chain as coordinates: vectors sum_t c_t z_t with c_t in Q(x)."""

    chain: Chain
    root: Eigenvalue

    @property
    def modulus(self) -> flint.fmpq_poly:
        return _monic(self.chain.factor)

    def top(self, t: int | None = None) -> Coefficients:
        last = len(self.chain) - 1 if t is None else t
        return tuple(_ONE if s == last else _ZERO for s in range(len(self.chain)))

    def scaled(self, c: Coefficients, by: Any) -> Coefficients:
        return tuple(x * by % self.modulus for x in c)

    def moved(self, c: Coefficients) -> Coefficients:
        """By M - x: z_(t+1) goes to z_t."""
        return (*c[1:], _ZERO)

    def applied(self, c: Coefficients) -> Coefficients:
        """By M."""
        return added(self.scaled(c, flint.fmpq_poly([0, 1])), self.moved(c))

    def logarithm(self, c: Coefficients) -> Coefficients:
        """By log(M/x), x != 0."""
        _, inverse, _ = (flint.fmpq_poly([0, 1]) % self.modulus).xgcd(self.modulus)
        total, term = tuple(_ZERO for _ in c), c
        for k in range(1, len(c)):
            term = self.scaled(self.moved(term), inverse)
            total = added(total, self.scaled(term, flint.fmpq((-1) ** (k + 1), k)))
        return total

    def vector(self, c: Coefficients) -> ExactVector:
        """In the entries of the matrix."""
        C = companion(self.modulus)
        total = self.chain.tables[0] * 0
        for x, table in zip(c, self.chain.tables, strict=True):
            moved = table
            for k in range(x.degree() + 1):
                total, moved = total + moved * x[k], moved * C
        return ExactVector(self.root, from_flint(total))


def added(*parts: Coefficients) -> Coefficients:
    return tuple(sum(each, _ZERO) for each in zip(*parts, strict=True))


Pairs = list[tuple[Coefficients, Coefficients]]
# A vector of I + H (x) A: the sum of the u (x) v, that is the matrix sum_k v_k u_k^T [n, d].
PairVector = tuple[tuple[ExactVector, ExactVector], ...]


def product_chains(
    h: Eigenvalue, of_h: Sequence[Chain], a: Eigenvalue, of_a: Sequence[Chain]
) -> list[tuple[PairVector, ...]]:
    """All Jordan chains of I + H (x) A at the pair (h, a), longest first.

    of_h, of_a: the chains of H at h and of A at a. As many vectors as the pair has multiplicity.
    """
    chains = []
    for first in of_h:
        for second in of_a:
            u, v = _Side(first, h), _Side(second, a)
            for lowest, length in _lowest(u, v):
                short = (_shorter(u, v, pairs) for pairs in _chain_from(u, v, lowest, length))
                vectors = (tuple((u.vector(x), v.vector(y)) for x, y in pairs) for pairs in short)
                chains.append(tuple(vectors))
    return sorted(chains, key=len, reverse=True)


def _lowest(u: _Side, v: _Side) -> Iterator[tuple[Pairs, int]]:
    """The vector at the end of each chain, and how long that is."""
    p, q = len(u.chain), len(v.chain)
    if u.root.is_zero and v.root.is_zero:
        for r, s in [(p, s) for s in range(1, q + 1)] + [(r, q) for r in range(1, p)]:
            yield [(u.top(r - 1), v.top(s - 1))], min(r, s)
    elif v.root.is_zero:
        yield from (([(u.top(r), v.top())], q) for r in range(p))
    elif u.root.is_zero:
        yield from (([(u.top(), v.top(s))], p) for s in range(q))
    else:
        for k in range(min(p, q)):
            left, right, c = [u.top()], [v.top()], [flint.fmpq(1)]
            for i in range(k):
                left.append(u.logarithm(left[-1]))
                right.append(v.logarithm(right[-1]))
                c.append(c[-1] * flint.fmpq((i - k) * (q - k + i), (i + 1) * (p - i - 1)))
            lowest = [(u.scaled(left[i], c[i]), right[k - i]) for i in range(k + 1)]
            yield lowest, p + q - 1 - 2 * k


def _chain_from(u: _Side, v: _Side, lowest: Pairs, length: int) -> Iterator[Pairs]:
    """(H (x) A - h a)^j = sum_m C(j, m) (-h a)^(j-m) H^m (x) A^m of it, from the last j on."""
    moved, x = [lowest], flint.fmpq_poly([0, 1])
    for _ in range(1, length):
        moved.append([(u.applied(first), v.applied(second)) for first, second in moved[-1]])
    for j in reversed(range(length)):
        yield [
            (u.scaled(first, comb(j, m) * (-x) ** (j - m)), v.scaled(second, x ** (j - m)))
            for m in ((j,) if u.root.is_zero or v.root.is_zero else range(j + 1))
            for first, second in moved[m]
        ]


def _shorter(u: _Side, v: _Side, pairs: Pairs) -> Pairs:
    """The same sum in at most as many pairs as the chain of a rational root is long."""
    if len(pairs) == 1 or (u.root.factor.degree > 1 and v.root.factor.degree > 1):
        return pairs
    side, other = (u, v) if u.root.factor.degree == 1 else (v, u)
    ordered = pairs if side is u else [(second, first) for first, second in pairs]
    short = []
    for t in range(len(side.chain)):
        rest = added(*(other.scaled(second, first[t]) for first, second in ordered))
        if any(x.degree() >= 0 for x in rest):
            short.append((side.top(t), rest))
    return short if side is u else [(second, first) for first, second in short]
