"""The bases of a causal layer in balls: B V = V (a + N), W S = S (h + M) (T1h).

What is equal or repeated is decided in fractions; all else is enclosed.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import flint

from oversmoothing.theory.numbers.rounding import at_precision

Rows = list[list[Any]]
# Rows of a basis whose sums over earlier rows are one product.
_TOGETHER = 16


@dataclass(frozen=True)
class Features:
    """W S = S (h + M) at a precision: one column for each real eigenvalue, one for a pair.

    S [d, r] and left [r, d], so that X = Re(C left) for C = X S. M [r, r], None where W is
    diagonalisable; M^index = 0 in the block of a column. All are real where there are no pairs.
    """

    values: list[Any]
    S: Any
    left: Any
    M: Any
    indices: list[int]

    @property
    def index(self) -> int:
        """The length of the longest Jordan block."""
        return max(self.indices)


class Weights:
    """The exact spectrum of W [d, d] in fractions, and its bases."""

    def __init__(self, W: flint.fmpq_mat) -> None:
        self._W, self._characteristic = W, W.charpoly()
        self._wide = max((m for _, m in self._characteristic.factor_squarefree()[1]), default=1)
        self._minimal = W.minpoly() if self._wide > 1 else self._characteristic
        draw, d = random.Random(0), W.nrows()
        self._start = [[draw.getrandbits(30) + 1 for _ in range(self._wide)] for _ in range(d)]
        self._end = [[draw.getrandbits(30) + 1 for _ in range(d)] for _ in range(self._wide)]

    def roots(self) -> list[tuple[flint.acb, int, int]]:
        """(h, multiplicity, index) of the distinct eigenvalues with Im h >= 0."""
        roots = []
        for factor, m in self._characteristic.factor_squarefree()[1]:
            for part, index in self._minimal.factor_squarefree()[1]:
                common = factor.gcd(part)
                if common.degree() > 0:
                    simple: Any = common.complex_roots()
                    roots += [(h, m, index) for h, _ in simple]
        return [(h, m, index) for h, m, index in roots if h.imag == 0 or h.imag > 0]

    def at(self, bits: int) -> Features:
        """Raises `ZeroDivisionError` where the bits are too few."""
        # What powers of W on few vectors lose.
        with at_precision(bits + 4 * self._minimal.degree() + 64):
            roots = self.roots()
            D, d, wide = self._minimal.degree(), self._W.nrows(), self._wide
            W, right, left = (flint.arb_mat(M) for M in (self._W, self._start, self._end))
            powers: Rows = []
            others: Rows = []
            for _ in range(D):
                powers.append(right.entries())
                others.append(left.entries())
                right, left = W * right, left * W
            q = flint.acb_mat([self._quotient(h, index) for h, _, index in roots])
            columns: Rows = []
            rows: Rows = []
            blocks = []
            V, R = (q * flint.arb_mat(base) for base in (powers, others))
            for k, (h, m, index) in enumerate(roots):
                v: Any = flint.acb_mat([[V[k, i * wide + j] for j in range(m)] for i in range(d)])
                u: Any = flint.acb_mat([[R[k, i * d + j] for j in range(d)] for i in range(m)])
                if h.imag == 0:
                    # No ball around 0 in an imaginary part.
                    v, u = v.real, u.real
                u = (u * v).inv() * u
                columns += v.transpose().tolist()
                rows += u.tolist()
                blocks.append((h, m, index, u * (W * v) if index > 1 else None))
        with at_precision(bits):
            return _packed(columns, rows, blocks)

    def _quotient(self, h: flint.acb, index: int) -> list[flint.acb]:
        """The coefficients of psi(t) / (t - h)^index, psi the minimal polynomial."""
        c = [flint.acb(flint.arb(x)) for x in self._minimal.coeffs()]
        for _ in range(index):
            coefficients = [c[-1]]
            for x in reversed(c[1:-1]):
                coefficients.append(x + h * coefficients[-1])
            c = coefficients[::-1]
        return c + [flint.acb(0)] * (self._minimal.degree() - len(c))


def _packed(columns: Rows, rows: Rows, blocks: Any) -> Features:
    values = [x for h, m, _, _ in blocks for x in [h] * m]
    indices = [index for _, m, index, _ in blocks for _ in range(m)]
    M: Any = None
    if max(indices) > 1:
        M, first = flint.acb_mat(len(values), len(values)), 0
        for h, m, _, full in blocks:
            for i, j in product(range(m if full is not None else 0), repeat=2):
                M[first + i, first + j] = full[i, j] - (h if i == j else 0)
            first += m
    # A pair stands for both: X = 2 Re(C left).
    twice = [[x * (1 + (h.imag != 0)) for x in row] for h, row in zip(values, rows, strict=True)]
    S: Any = flint.acb_mat(columns).transpose()
    left: Any = flint.acb_mat(twice)
    if all(h.imag == 0 for h in values):
        values, S, left = [h.real for h in values], S.real, left.real
        M = None if M is None else M.real
    return Features(values, S, left, M, indices)


def clusters(values: Sequence[flint.fmpq], limit: flint.fmpq) -> list[list[int]]:
    """Groups of indices whose values lie within `limit`; equal values are always together."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    groups, pending = [], [order]
    while pending:
        group = pending.pop()
        if values[group[-1]] - values[group[0]] <= limit:
            groups.append(sorted(group))
            continue
        gaps = [values[j] - values[i] for i, j in pairwise(group)]
        cut = gaps.index(max(gaps)) + 1
        pending += [group[:cut], group[cut:]]
    return groups


def right_basis(B: Rows, label: list[int]) -> tuple[Rows, Rows]:
    """(V, T) with B V = V T for a lower triangular B [n, n] of balls.

    V has a unit diagonal and V_ij = 0, i != j, where label_i = label_j; T_ij = 0 elsewhere. Row by
    row, so that each column keeps the accuracy of its own mode.
    """
    n, zero, one = len(B), flint.arb(0), flint.arb(1)
    V: Rows = []
    T = [[zero] * n for _ in range(n)]
    after: list[list[tuple[int, flint.arb]]] = [[] for _ in range(n)]
    for i, own in enumerate(B):
        row = [zero] * i + [one]
        T[i][i] = own[i]
        first = i - i % _TOGETHER
        if i == first:
            before = flint.arb_mat([v[:i] for v in V])
            products = (flint.arb_mat([b[:i] for b in B[i : i + _TOGETHER]]) * before).tolist()
        fed = products[i - first] + [zero] * (i - first)
        for k in range(first, i):
            if own[k] != 0:
                fed[: k + 1] = [x + own[k] * v for x, v in zip(fed, V[k][: k + 1], strict=False)]
        for j in reversed(range(i)):
            if label[j] == label[i]:
                T[i][j] = fed[j]
                if fed[j] != 0:
                    after[j].append((i, fed[j]))
                continue
            # sum_k B_ik V_kj = sum_k V_ik T_kj
            total = -fed[j]
            for k, x in after[j]:
                total += row[k] * x
            if total != 0:
                row[j] = total / (own[i] - B[j][j])
        V.append(row + [zero] * (n - i - 1))
    return V, T


def flipped(M: Rows) -> Rows:
    """Transposed, with the order of rows and columns turned: lower triangular as before."""
    return [list(row[::-1]) for row in zip(*M, strict=True)][::-1]
