"""X_L at any depth in balls, from the shortest recurrences that its parts obey (T1a, T4e, T6).

A part of the state (HFC, the mean, one token) is q_L = left (kappa + A (x) W)^L X_0, kappa = 1 with
the residual and 0 without. The matrices s_j = left A^j X_0 W^j obey a recurrence of least order,
with polynomial chi: its roots are the products a h of exactly the modes that the part contains, as
often as their Jordan blocks there are long. So
    q_L = sum_j p_j s_j,   p(t) = (kappa + t)^L mod chi(t),
holds for defective A and H as for any other, and a mode that the part lacks cannot come in: a token
that loses the dominant mode keeps its digits at every depth.

The order of the recurrence, and what is exactly 0, are decided modulo two primes of 61 bits; all
numbers are balls, of as many bits as it takes.
"""

import random
from functools import cached_property
from typing import Any

import flint

from oversmoothing.theory.numbers.exact import (
    Heads,
    Matrix,
    identity,
    kronecker,
    on_vectors,
    plus_identity,
    to_flint,
    uniform,
)
from oversmoothing.theory.numbers.rounding import at_precision

# The first primes after pi 2^59 and e 2^59, far from every power of two: rows of binary64 attention
# sum to fractions next to 1, and dividing by such a sum may leave 2^61 - 1 in a denominator.
PRIMES = (1_811_004_864_519_280_733, 1_566_982_787_806_226_803)
FIRST_BITS = 192
MAX_BITS = 2**16
_GOOD_BITS = 64
# Of norms whose ratio may be next to 1, so that its logarithm has digits.
_NORM_BITS = 160


class Recurrence:
    """q_L = left (kappa + A (x) W)^L X_0 [k, d] for left [k, n], A [n, n], W [d, d], X_0 [n, d]."""

    def __init__(
        self,
        left: flint.fmpq_mat,
        A: flint.fmpq_mat,
        W: flint.fmpq_mat,
        X0: flint.fmpq_mat,
        residual: bool = True,
    ) -> None:
        self.matrices = (left, A, W, X0)
        self.kappa = 1 if residual else 0
        self._in_balls: _InBalls | None = None
        draw = random.Random(0)
        self.mix = tuple(
            flint.fmpq_mat([[draw.getrandbits(40) + 1 for _ in range(size)]])
            for size in (left.nrows(), W.ncols())
        )

    @cached_property
    def modular(self) -> "_Modular":
        """Modulo the first prime, after the second has confirmed the order and the nilpotency."""
        first, second = (_Modular(self, p) for p in PRIMES)
        return max(first, second, key=lambda m: (m.order, -m.nilpotency))

    @property
    def order(self) -> int:
        """How many modes the part contains, with the lengths of their Jordan blocks."""
        return self.modular.order

    def at(self, depth: int, good_bits: int = _GOOD_BITS) -> flint.arb_mat | None:
        """q_L in balls whose radii are 2^-good_bits of its norm; exact zeros if it is 0.

        None where MAX_BITS are too few.
        """
        if self.modular.is_zero(depth):
            return flint.arb_mat(self.matrices[0].nrows(), self.matrices[2].ncols())
        balls = self._in_balls = self._in_balls or _InBalls(self, FIRST_BITS)
        while True:
            state = balls.at(depth)
            if state is not None and accuracy(state, balls.bits) >= good_bits:
                return state
            if balls.bits >= MAX_BITS:
                return None
            balls = self._in_balls = _InBalls(self, 2 * balls.bits)


class Powers:
    """M^L v for several L from one table of squarings, at the precision of the context."""

    def __init__(self, M: flint.arb_mat, start: list[flint.arb]) -> None:
        self._squares = [M]
        self._start = flint.arb_mat([[x] for x in start])

    def at(self, depth: int) -> list[flint.arb]:
        vector = self._start
        for k in range(depth.bit_length()):
            if k == len(self._squares):
                self._squares.append(self._squares[-1] * self._squares[-1])
            if depth >> k & 1:
                vector = self._squares[k] * vector
        entries: list[flint.arb] = vector.entries()
        return entries


def squared_norms_at(
    A: Matrix, H: Matrix, X0: Matrix, depths: list[int], others: Heads = ()
) -> dict[int, tuple[flint.arb | None, flint.arb | None]]:
    """(||HFC||_F^2, ||LFC||_F^2) of X_L; 0 where it is 0, None where MAX_BITS are too few."""
    if not depths:
        return {}
    n, average, one = len(A), uniform(len(A)), identity(1)
    if others:
        one = identity(len(H))
        A, H, X0 = on_vectors(A, H, X0, others)
    a, w, x = to_flint(A), to_flint(H).transpose(), to_flint(X0)
    mean = to_flint(kronecker(average[:1], one))
    away = to_flint(kronecker(plus_identity(average, -1), one))
    hfc, lfc = Recurrence(away, away * a, w, away * x), Recurrence(mean, a, w, x)
    squares = {}
    for depth in depths:
        states = hfc.at(depth, _NORM_BITS), lfc.at(depth, _NORM_BITS)
        squares[depth] = _square_of(states[0], 1), _square_of(states[1], n)
    return squares


def _square_of(part: flint.arb_mat | None, factor: int) -> flint.arb | None:
    if part is None:
        return None
    with at_precision(2 * _NORM_BITS):
        return factor * sum((x * x for x in part.entries()), flint.arb(0))


def accuracy(q: flint.arb_mat, bits: int) -> float:
    """How many bits of the norm of q are known; -inf where q may be 0."""
    with at_precision(bits):
        size, radius = flint.arb(0), flint.arb(0)
        for x in q.entries():
            size = size.max(abs(x.mid()))
            radius = radius.max(flint.arb(x.rad()))
        if not (size > 2 * radius):
            return float("-inf")
        if radius == 0:
            return float("inf")
    with at_precision(64):
        return float(((size / radius).log() / flint.arb(2).log()).lower())


def _sequence(left: Any, A: Any, W: Any, X: Any, count: int) -> list[Any]:
    """The first s_j = left A^j X W^j, in balls or modulo a prime."""
    terms = []
    for _ in range(count):
        terms.append(left * X)
        X = A * X * W
    return terms


class _Modular:
    """The order of the recurrence, and exact zeros, modulo a prime."""

    def __init__(self, of: Recurrence, prime: int) -> None:
        left, A, W, X = (modulo(M, prime) for M in of.matrices)
        u, v = (modulo(M, prime) for M in of.mix)
        self._root = flint.nmod_poly([of.kappa, 1], prime)
        bound = A.nrows() * W.nrows()
        self._parts = _sequence(left, A, W, X, 2 * bound)
        projected = [(u * q * v.transpose())[0, 0] for q in self._parts]
        hankel = flint.nmod_mat(
            bound, bound, [int(projected[i + j]) for i in range(bound) for j in range(bound)], prime
        )
        self.order = r = hankel.rank()
        coefficients: list[int] = []
        if r:
            system = flint.nmod_mat(
                r, r, [int(projected[i + j]) for i in range(r) for j in range(r)], prime
            )
            right = flint.nmod_mat(r, 1, [int(projected[r + i]) for i in range(r)], prime)
            coefficients = [int(x) for x in system.solve(right).entries()]
        # chi, monic, and how often (kappa + t) divides it: those modes are gone after so many
        # layers.
        chi = flint.nmod_poly([(-c) % prime for c in coefficients] + [1], prime)
        self.nilpotency = 0
        while chi.degree() > 0:
            quotient, rest = divmod(chi, self._root)
            if rest:
                break
            chi = quotient
            self.nilpotency += 1
        self._lively = chi

    def is_zero(self, depth: int) -> bool:
        """Whether q_L = 0 modulo the prime."""
        if self.order == 0:
            return True
        m, root = self.nilpotency, self._root
        if depth >= m:
            if self._lively.degree() == 0:
                return True
            p = pow(root, depth - m, self._lively) * pow(root, m)
        else:
            p = pow(root, depth)
        q = self._parts[0] * 0
        for c, s in zip(p.coeffs(), self._parts, strict=False):
            q += s * int(c)
        return not any(int(x) for x in q.entries())


def modulo(M: flint.fmpq_mat, prime: int) -> flint.nmod_mat:
    """M with its fractions as residues; their denominators are prime to the prime."""
    entries = [int(x.p) * pow(int(x.q), -1, prime) % prime for x in M.entries()]
    return flint.nmod_mat(M.nrows(), M.ncols(), entries, prime)


class _InBalls:
    """The recurrence and its powers at a number of bits."""

    def __init__(self, of: Recurrence, bits: int) -> None:
        order = of.modular.order
        self.bits, self._nilpotency = bits, of.modular.nilpotency
        with at_precision(bits):
            left, A, W, X = (flint.arb_mat(M) for M in of.matrices)
            u, v = flint.arb_mat(of.mix[0]), flint.arb_mat(of.mix[1]).transpose()
            self._parts = _sequence(left, A, W, X, 2 * order)
            projected = [(u * q * v)[0, 0] for q in self._parts]
            self._root = flint.arb_poly([of.kappa, 1])
            self._chi = self._polynomial(projected, order)
            self._squares = [self._root]

    def _polynomial(self, s: list[flint.arb], r: int) -> flint.arb_poly | None:
        """chi without its nilpotent factor, monic; None where the bits are too few to find it."""
        system = flint.arb_mat([[s[i + j] for j in range(r)] for i in range(r)])
        right = flint.arb_mat([[s[r + i]] for i in range(r)])
        try:
            coefficients = system.solve(right).entries()
        except ZeroDivisionError:
            return None
        chi = flint.arb_poly([-c for c in coefficients] + [1])
        for _ in range(self._nilpotency):
            chi = divmod(chi, self._root)[0]
        return chi

    def at(self, depth: int) -> flint.arb_mat | None:
        if self._chi is None:
            return None
        with at_precision(self.bits):
            m = self._nilpotency
            p = self._root ** min(depth, m)
            if depth > m:
                p *= self._power(depth - m)
            total: flint.arb_mat = self._parts[0] * 0
            for c, s in zip(p.coeffs(), self._parts, strict=False):
                total += s * c
            return total

    def _power(self, depth: int) -> flint.arb_poly:
        """(kappa + t)^depth mod chi."""
        assert self._chi is not None
        p = flint.arb_poly([1])
        for k in range(depth.bit_length()):
            if k == len(self._squares):
                last = self._squares[-1]
                self._squares.append((last * last) % self._chi)
            if depth >> k & 1:
                p = (p * self._squares[k]) % self._chi
        return p
