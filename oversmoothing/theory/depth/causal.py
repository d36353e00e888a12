"""A causal layer at any depth in balls: every digit that is shown is enclosed (T1h).

Where each token attends to itself and to earlier ones (A lower triangular, A_11 = 1), the first
token and the differences to it, q = (x_1, x_2 - x_1, ..., x_n - x_1), obey q' = kappa q + B q W
with B = 1 (+) A[2:, 2:], kappa = 1 with the residual and 0 without. Both sides are split:

    V^-1 B V = a + N,   a diagonal, constant on clusters of (nearly) equal A_ii,   N inside them;
    W S = S (h + M),    h diagonal, M nilpotent inside the blocks of a repeated eigenvalue.

With C = V^-1 q_0 S, mu = kappa + a h and t(X) = N X (h + M) + a X M,
    q_L = V [sum_k C(L, k) mu^(L-k) t^k(C)] S^-1.
The sum is finite for equal A_ii; for nearly equal ones it is cut, and what is left out is bounded
(docs/theory/t10.md, "A causal layer at any depth").
V comes row by row, S from powers of W on a few vectors, its eigenvalues and their multiplicities
from the characteristic and the minimal polynomial in fractions.
"""

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import flint

from oversmoothing.theory.depth.causal_bases import Rows, Weights, clusters, flipped, right_basis
from oversmoothing.theory.depth.recurrence import accuracy
from oversmoothing.theory.numbers.rounding import at_precision, doublings, largest

FIRST_BITS = 256
# Of the norm of each part, so many must be known.
GOOD_BITS = 64
# Precision ends there, for large layers where an operation's cost, bits^1.5, adds up to MOST_WORK.
MAX_BITS = 4096
MOST_WORK = 3e12
# Terms of the sum for nearly equal A_ii fall by at least this factor.
_FALL = 32


@dataclass(frozen=True)
class Parts:
    """y_i = x_i - x_n [n - 1, d], the mean [1, d] and the tokens [1, d] each; None: not known."""

    y: flint.arb_mat | None
    mean: flint.arb_mat | None
    tokens: list[flint.arb_mat | None]

    @property
    def known(self) -> bool:
        return all(part is not None for part in (self.y, self.mean, *self.tokens))


def _work(n: int, d: int) -> float:
    """Operations for the bases of a layer, roughly."""
    return n**3 + 3 * n * n * d + 20 * d**3


def seconds(n: int, d: int, depths: int) -> float:
    """What states at so many depths take on one core, roughly."""
    return 2e-7 * _work(n, d) + 5e-8 * depths * n * d * (n + d)


class CausalStates:
    """q_L [n, d], the first token and then the differences to it, of one layer.

    A [n, n] lower triangular with rows that sum to 1, W [d, d], X0 [n, d], all in fractions.
    """

    def __init__(
        self, A: flint.fmpq_mat, W: flint.fmpq_mat, X0: flint.fmpq_mat, residual: bool, deepest: int
    ) -> None:
        n = A.nrows()
        self.n, self._A, self._kappa = n, A, int(residual)
        self._features = _reached(W, X0)
        self._width = W.nrows()
        F = self._features
        self._start = [[X0[0, f] for f in F]]
        self._start += [[X0[i, f] - X0[0, f] for f in F] for i in range(1, n)]
        self._weights = Weights(flint.fmpq_mat([[W[i, j] for j in F] for i in F]))
        diagonal = [flint.fmpq(1)] + [A[i, i] for i in range(1, n)]
        # Without the residual the modes of nearly equal A_ii differ by their ratio.
        limit = self._limit(diagonal, deepest) if residual else flint.fmpq(0)
        self._groups = clusters(diagonal, limit)
        self._label, self._off = [0] * n, [flint.fmpq(0)] * n
        self._centre: list[flint.fmpq] = []
        for k, group in enumerate(self._groups):
            low, high = (f(diagonal[i] for i in group) for f in (min, max))
            self._centre.append((low + high) / 2)
            for i in group:
                self._label[i], self._off[i] = k, diagonal[i] - self._centre[k]

    def _limit(self, diagonal: list[flint.fmpq], deepest: int) -> flint.fmpq:
        """How far apart A_ii may lie in one cluster: L |h| times it is small beside |mu|."""
        with at_precision(53):
            h = [complex(h) for h, _, _ in self._weights.roots()]
        largest = max(map(abs, h))
        least = min(max(abs(1 + x * float(flint.arb(a))) for x in h) for a in diagonal)
        if largest == 0 or deepest == 0:
            return flint.fmpq(0)
        return flint.fmpq(*(least / (largest * deepest * _FALL)).as_integer_ratio())

    def at(self, depths: Sequence[int]) -> dict[int, Parts]:
        """The parts of the states; None for a part that the bits in reach do not know."""
        left = list(depths)
        best = {L: Parts(None, None, [None] * self.n) for L in depths}
        work = _work(self.n, len(self._features))
        for bits in doublings(FIRST_BITS, MAX_BITS):
            if not left or (bits > FIRST_BITS and work * bits**1.5 > MOST_WORK):
                break
            with suppress(ZeroDivisionError), at_precision(bits):
                self._form(bits)
                states = self._states(left)
                best |= {L: self._parts(q, bits) for L, q in zip(left, states, strict=True)}
            left = [L for L in left if not best[L].known]
        return best

    def _parts(self, q: flint.arb_mat, bits: int) -> Parts:
        first, *rest = q.tolist()
        away = [[flint.arb(0)] * len(first), *rest]
        y = [[x - z for x, z in zip(row, away[-1], strict=True)] for row in away[:-1]]
        mean = [x + sum(z, flint.arb(0)) / self.n for x, *z in zip(first, *rest, strict=True)]
        tokens = [[x + z for x, z in zip(first, row, strict=True)] for row in away]
        return Parts(_known(y, bits), _known([mean], bits), [_known([x], bits) for x in tokens])

    def _form(self, bits: int) -> None:
        """The bases at the precision of the context."""
        n = self.n
        self._basis = self._weights.at(bits)
        # Of balls in the plane where some h are complex.
        self._matrix: Any = type(self._basis.S)
        self._rho = [
            _largest(self._mu(k, h) for h in self._basis.values).upper()
            for k in range(len(self._groups))
        ]
        B = [[flint.arb(x) for x in row] for row in self._A.tolist()]
        for row in B[1:]:
            row[0] = flint.arb(0)
        V, T = right_basis(B, self._label)
        left = flipped(right_basis(flipped(B), self._label[::-1])[0])
        self._V = flint.arb_mat(V)
        self._q = flint.arb_mat([[flint.arb(x) for x in row] for row in self._start])
        Z = (flint.arb_mat(left) * self._q).tolist()
        for group in self._groups:
            if len(group) == 1:
                continue
            # left V is block diagonal, with a unit lower triangular block G: V^-1 = G^-1 left.
            G = flint.arb_mat([left[i] for i in group]) * flint.arb_mat(
                [[row[j] for j in group] for row in V]
            )
            for i, g in zip(group, G.tolist(), strict=True):
                for j, x in zip(group, g, strict=True):
                    if j < i and x != 0:
                        Z[i] = [z - x * y for z, y in zip(Z[i], Z[j], strict=True)]
        self._C = (flint.arb_mat(Z) * self._basis.S).tolist()
        self._N = T
        for i, off in enumerate(self._off):
            T[i][i] = flint.arb(off)
        # The longest path in N without its diagonal: the product of more factors vanishes.
        self._chain, path = [0] * len(self._groups), [0] * n
        for i, row in enumerate(T):
            path[i] = max((path[j] + 1 for j in range(i) if row[j] != 0), default=0)
            self._chain[self._label[i]] = max(self._chain[self._label[i]], path[i])

    def _mu(self, group: int, h: flint.acb) -> flint.acb:
        return self._kappa + flint.arb(self._centre[group]) * h

    def _states(self, depths: list[int]) -> list[flint.arb_mat]:
        """q_L at the depths, at the precision of the context."""
        place = flint.arb_mat([[int(f == j) for j in range(self._width)] for f in self._features])
        left, states = self._basis.left * place, []
        for depth, F in zip(depths, self._sums(depths), strict=True):
            moved = self._matrix(F) * left
            moved = moved.real if self._matrix is flint.acb_mat else moved
            states.append(self._V * moved if depth else self._q * place)
        return states

    def _sums(self, depths: list[int]) -> list[Rows]:
        """sum_k C(L, k) mu^(L-k) t^k(C) at each depth, with what is cut off in the radii."""
        groups = range(len(self._groups))
        terms = [[self._terms(k, L) for k in groups] for L in depths]
        factors = [
            [self._factors(k, number, L) for k, number in enumerate(numbers)]
            for L, numbers in zip(depths, terms, strict=True)
        ]
        most = [max(column) for column in zip(*terms, strict=True)]
        sums = [[[flint.arb(0)] * len(self._basis.values) for _ in self._C] for _ in depths]
        X = dict(enumerate(self._C))
        for k in range(max(most)):
            for F, each in zip(sums, factors, strict=True):
                for i, row in X.items():
                    own = each[self._label[i]]
                    if k < len(own):
                        F[i] = [f + c * x for f, c, x in zip(F[i], own[k], row, strict=True)]
            X = self._next(X, [i for i in range(self.n) if most[self._label[i]] > k + 1])
        for L, F, numbers in zip(depths, sums, terms, strict=True):
            for k, group in enumerate(self._groups):
                if numbers[k] <= L and any(self._off[i] != 0 for i in group):
                    for i, radius in zip(group, self._tail(k, numbers[k], L), strict=True):
                        ball: Any = flint.arb(0, radius)
                        if self._matrix is flint.acb_mat:
                            ball = flint.acb(ball, ball)
                        F[i] = [f + ball for f in F[i]]
        return sums

    def _terms(self, group: int, depth: int) -> int:
        """How many terms the sum has, or what is left out of it is below 2^-bits beside it."""
        number = self._chain[group] + self._basis.index
        off = max(abs(float(flint.arb(self._off[i]))) for i in self._groups[group])
        if off > 0:
            fall = depth * float(_largest(self._basis.values)) * off / float(self._rho[group])
            size = 0.0
            while size > -flint.ctx.prec and number <= depth:
                number += 1
                size += math.log2(fall / (number - self._chain[group]))
        return min(number, depth + 1)

    def _factors(self, group: int, number: int, depth: int) -> list[list[Any]]:
        """C(L, k) mu^(L-k) for k < number, times h^k where t is N X h."""
        columns: list[list[Any]] = []
        basis, exact = self._basis, all(self._off[i] == 0 for i in self._groups[group])
        for j, (h, index) in enumerate(zip(basis.values, basis.indices, strict=True)):
            if j and h is basis.values[j - 1]:
                columns.append(columns[-1])
                continue
            mu = self._mu(group, h)
            powers = [mu ** (depth - number + 1)]
            for _ in range(number - 1):
                powers.append(powers[-1] * mu)
            up, column = flint.arb(1), []
            for k, power in enumerate(reversed(powers)):
                # t^k is 0 there, and known as a ball around it.
                gone = exact and k >= self._chain[group] + index
                column.append(flint.arb(0) if gone else math.comb(depth, k) * up * power)
                if basis.M is None:
                    up *= h
            columns.append(column)
        return [list(row) for row in zip(*columns, strict=True)]

    def _next(self, X: dict[int, list[Any]], rows: list[int]) -> dict[int, list[Any]]:
        """t(X) in these rows, those that are exactly 0 left out; N X where h is in the factors."""
        values, M, matrix, inside = self._basis.values, self._basis.M, self._matrix, list(X)
        fed = [i for i in rows if any(self._N[i][j] != 0 for j in inside)]
        image: dict[int, list[Any]] = {}
        if fed:
            N = flint.arb_mat([[self._N[i][j] for j in inside] for i in fed])
            product = N * matrix([X[j] for j in inside])
            if M is not None:
                h = [[h * (i == j) for j in range(len(values))] for i, h in enumerate(values)]
                product = product * (M + matrix(h))
            image = dict(zip(fed, product.tolist(), strict=True))
        if M is not None and (own := [i for i in rows if i in X]):
            moved = (matrix([X[i] for i in own]) * M).tolist()
            for i, row in zip(own, moved, strict=True):
                before, a = image.get(i, [0] * len(row)), flint.arb(self._centre[self._label[i]])
                image[i] = [x + a * y for x, y in zip(before, row, strict=True)]
        return image

    def _tail(self, group: int, cut: int, depth: int) -> list[flint.arb]:
        """What the terms from `cut` on come to in each token of a cluster, at most."""
        members, basis = self._groups[group], self._basis
        with at_precision(64):
            U = flint.arb_mat([[abs(self._N[i][j]) * (j != i) for j in members] for i in members])
            off = _largest(flint.arb(self._off[i]) for i in members).upper()
            a = abs(flint.arb(self._centre[group]))
            h, rho = _largest(basis.values).upper(), self._rho[group].upper()
            v = flint.arb_mat([[sum(map(abs, self._C[i]), flint.arb(0))] for i in members])
            total, M = v * 0, basis.M
            power, norm = None, flint.arb(1)
            for order in range(basis.index):
                if order:
                    v = v * (a + off) + U * v
                    power = M if power is None else power * M
                    norm = _largest(sum(map(abs, row), flint.arb(0)) for row in power.tolist())
                w = v * math.comb(depth, order) * norm
                L, K = depth - order, cut - order
                for e in range(self._chain[group] + 1):
                    left = (h * off) ** (K - e) * (rho + h * off) ** (L - K)
                    total += w * (math.comb(L, e) * math.comb(L - e, K - e) * h**e * left)
                    w = U * w
            return [x.upper() for x in total.entries()]


def _largest(values: Iterable[Any]) -> flint.arb:
    """A ball around the largest absolute value."""
    return largest(abs(x) for x in values)


def _reached(W: flint.fmpq_mat, X0: flint.fmpq_mat) -> list[int]:
    """The features that X_0 has or that W brings in, one at least: all others stay 0."""
    features: set[int] = set()
    fresh = {j for row in X0.tolist() for j, x in enumerate(row) if x != 0}
    while fresh:
        features |= fresh
        fresh = {j for i in fresh for j in range(W.nrows()) if W[i, j] != 0} - features
    return sorted(features) or [0]


def _known(rows: Rows, bits: int) -> flint.arb_mat | None:
    part = flint.arb_mat(rows)
    if all(x == 0 for x in part.entries()) or accuracy(part, bits) >= GOOD_BITS:
        return part
    return None
