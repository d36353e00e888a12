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

`states` are X_L at hundreds of digits by repeated squaring, the yardstick of the rates (T4, T5):
singular values, angles and effective rank come from it without subtracting what is nearly equal.
float64 sees none of this beyond 1e-16.
"""

import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from operator import mul
from typing import Any

import flint
import numpy as np

from oversmoothing.theory.numbers import exact
from oversmoothing.theory.numbers.exact import Heads, Matrix, identity, plus_identity, to_flint
from oversmoothing.theory.numbers.rounding import at_precision, doublings, to_ball
from oversmoothing.theory.support.errors import InputError

# The first primes after pi 2^59 and e 2^59, far from every power of two: rows of binary64 attention
# sum to fractions next to 1, and dividing by such a sum may leave 2^61 - 1 in a denominator.
PRIMES = (1_811_004_864_519_280_733, 1_566_982_787_806_226_803)
FIRST_BITS = 192
MAX_BITS = 2**16
_GOOD_BITS = 64
# Of norms, and of those whose ratio is next to 1: its logarithm may be any number of binary64.
_NORM_BITS, _MORE_BITS = 160, 1280
# Of what is shown as a number of binary64.
_FLOAT_BITS = 60


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
    """M^L v for several L from one table of squarings, at the precision of the context.

    times: the product, where it is not that of matrices.
    """

    def __init__(self, M: Any, start: Any, times: Callable[[Any, Any], Any] = mul) -> None:
        self._squares, self._start, self._times = [M], start, times

    def at(self, depth: int) -> Any:
        return self.applied(self._start, depth)

    def applied(self, power: Any, depth: int) -> Any:
        """M^depth times another start."""
        for k in range(depth.bit_length()):
            if k == len(self._squares):
                self._squares.append(self._times(self._squares[-1], self._squares[-1]))
            if depth >> k & 1:
                power = self._times(self._squares[k], power)
        return power


def squared_norms_at(
    A: Matrix, H: Matrix, X0: Matrix, depths: list[int], others: Heads = ()
) -> dict[int, tuple[flint.arb | None, flint.arb | None]]:
    """(||HFC||_F^2, ||LFC||_F^2) of X_L; 0 where it is 0, None where MAX_BITS are too few."""
    if not depths:
        return {}
    n, average, one = len(A), exact.uniform(len(A)), identity(1)
    if others:
        one = identity(len(H))
        A, H, X0 = exact.on_vectors(A, H, X0, others)
    a, w, x = to_flint(A), to_flint(H).transpose(), to_flint(X0)
    mean = to_flint(exact.kronecker(average[:1], one))
    away = to_flint(exact.kronecker(plus_identity(average, -1), one))
    hfc, lfc = Recurrence(away, away * a, w, away * x), Recurrence(mean, a, w, x)
    squares = {}
    for depth in depths:
        for bits in doublings(_NORM_BITS, _MORE_BITS):
            y, m = hfc.at(depth, bits), lfc.at(depth, bits)
            with at_precision(2 * bits):
                up, down = (None if part is None else square(part) for part in (y, m))
                squares[depth] = up, None if down is None else n * down
                if not up or not down or is_known(up / (n * down)):
                    break
    return squares


def is_known(squared: flint.arb) -> bool:
    """Whether a float shows all that it can of a square's root, and of its logarithm, which takes
    more digits near 1."""
    log = squared.log()
    known = log.rel_accuracy_bits() >= _FLOAT_BITS or abs(log).upper() < flint.arb(2) ** -1074
    return known and squared.rel_accuracy_bits() >= _FLOAT_BITS


def square(part: flint.arb_mat) -> flint.arb:
    """||part||_F^2, at the precision of the context."""
    return sum((x * x for x in part.entries()), flint.arb(0))


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


def _sequence(of: Recurrence, count: int, to_ring: Callable[[Any], Any]) -> tuple[Any, Any]:
    """The first s_j = left A^j X W^j, in balls or modulo a prime, and a mix of each."""
    left, A, W, X = map(to_ring, of.matrices)
    u, v = map(to_ring, of.mix)
    terms = []
    for _ in range(count):
        terms.append(left * X)
        X = A * X * W
    return terms, [(u * s * v.transpose())[0, 0] for s in terms]


def _polynomial(s: list[Any], r: int, matrix: Any, poly: Any, *prime: int) -> Any:
    """t^r - sum_j c_j t^j for s_(i + r) = sum_j c_j s_(i + j)."""
    hankel = matrix([s[i : i + r] for i in range(r)], *prime)
    c = hankel.solve(matrix([[x] for x in s[r : 2 * r]], *prime)).entries()
    return poly([*(-x for x in c), 1], *prime)


def _combined(p: Any, terms: list[Any]) -> Any:
    """sum_j p_j s_j."""
    return sum((s * c for c, s in zip(p.coeffs(), terms, strict=False)), terms[0] * 0)


class _Modular:
    """Modulo a prime: the order (of all modes, with their Jordan blocks), and exact zeros."""

    def __init__(self, of: Recurrence, prime: int) -> None:
        self._root = flint.nmod_poly([of.kappa, 1], prime)
        bound = of.matrices[1].nrows() * of.matrices[2].nrows()
        self._parts, projected = _sequence(of, 2 * bound, lambda M: modulo(M, prime))
        hankel = flint.nmod_mat([projected[i : i + bound] for i in range(bound)], prime)
        self.order = r = int(hankel.rank())
        # chi, monic, and how often (kappa + t) divides it: those modes are gone after so many
        # layers.
        chi = flint.nmod_poly([1], prime)
        if r:
            chi = _polynomial(projected, r, flint.nmod_mat, flint.nmod_poly, prime)
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
        return not any(map(int, _combined(p, self._parts).entries()))


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
            self._parts, projected = _sequence(of, 2 * order, flint.arb_mat)
            self._root = flint.arb_poly([of.kappa, 1])
            # chi without its nilpotent factor; None where the bits are too few to find it.
            chi: flint.arb_poly | None = None
            with suppress(ZeroDivisionError):
                chi = _polynomial(projected, order, flint.arb_mat, flint.arb_poly)
                for _ in range(self._nilpotency):
                    chi = divmod(chi, self._root)[0]
            self._chi = chi
            # (kappa + t)^L mod chi.
            self._powers = Powers(self._root, flint.arb_poly([1]), lambda x, y: (x * y) % chi)

    def at(self, depth: int) -> flint.arb_mat | None:
        if self._chi is None:
            return None
        with at_precision(self.bits):
            m = self._nilpotency
            p = self._root ** min(depth, m)
            if depth > m:
                p *= self._powers.at(depth - m)
            total: flint.arb_mat = _combined(p, self._parts)
            return total


# 1200 digits: sigma_2^2 of a state that shrinks by 0.5 a layer is 1e-600 after a thousand layers.
BITS = 4096
_MOST_BITS = 2**18
_SEEN_BITS = 48


def layer_rows(A: Matrix, H: Matrix, residual: bool = True) -> Matrix:
    """I + A (x) H [n d, n d], the layer on the rows of X one after the other (A (x) H alone without
    the residual connection)."""
    rows = exact.kronecker(A, H)
    return plus_identity(rows) if residual else rows


def states(
    A: Matrix, H: Matrix, X0: Matrix, depths: Iterable[int], bits: int = BITS, residual: bool = True
) -> dict[int, flint.arb_mat]:
    """X_L [n, d] in balls at each depth, for A [n, n], H [d, d], X0 [n, d] in fractions."""
    with at_precision(bits):
        layer = flint.arb_mat(to_flint(layer_rows(A, H, residual)))
        power = Powers(layer, flint.arb_mat([[to_ball(x)] for row in X0 for x in row]))
        return {L: flint.arb_mat(len(X0), len(X0[0]), power.at(L).entries()) for L in depths}


def singular_values(X: flint.arb_mat, bits: int = BITS) -> list[flint.arb]:
    """Singular values of X [n, d], largest first, through the smaller Gram matrix.

    Balls where the eigenvalues of the Gram matrix isolate; midpoints of the same precision by
    mpmath where they do not (repeated singular values).
    """
    with at_precision(bits):
        gram = X * X.transpose() if X.nrows() <= X.ncols() else X.transpose() * X
        values: list[flint.arb] = []
        with suppress(ValueError):
            values = [v.real for v in flint.acb_mat(gram).eig()]
        if not values or not all(v > 0 and v.rel_accuracy_bits() > 64 for v in values):
            values = _by_mpmath(gram, bits)
        return sorted((_root(v) for v in values), key=lambda s: s.mid(), reverse=True)


def _by_mpmath(gram: flint.arb_mat, bits: int) -> list[flint.arb]:
    import mpmath as mp

    digits = bits // 3
    with mp.workprec(bits):
        texts = [[x.mid().str(digits, radius=False) for x in row] for row in gram.tolist()]
        dense = mp.matrix([[mp.mpf(text) for text in row] for row in texts])
        moduli = [flint.arb(mp.nstr(abs(v), digits)) for v in mp.eigsy(dense, eigvals_only=True)]
    # What is lost in rounding is anything from 0 to that size, never a number.
    lost = max(moduli, key=lambda v: v.mid()) * flint.arb(2) ** (-bits * 9 // 10)
    return [v if v > lost else flint.arb(0).union(lost) for v in moduli]


def sigma_ratio(X: flint.arb_mat, index: int = 2, bits: int = BITS) -> flint.arb:
    """sigma_index / sigma_1."""
    sigma = singular_values(X, bits)
    with at_precision(bits):
        return sigma[index - 1] / sigma[0]


def hfc_norm(X: flint.arb_mat, bits: int = BITS) -> flint.arb:
    """||HFC||_F."""
    return _norms(X, bits)[0]


def hfc_lfc(X: flint.arb_mat, bits: int = BITS) -> flint.arb:
    """||HFC||_F / ||LFC||_F straight from X: its cancellation costs digits, of which there are
    enough."""
    hfc, lfc = _norms(X, bits)
    with at_precision(bits):
        return hfc / lfc


def _norms(X: flint.arb_mat, bits: int) -> tuple[flint.arb, flint.arb]:
    n = X.nrows()
    with at_precision(bits):
        mean = flint.arb_mat(n, n, [flint.arb(1) / n] * n**2) * X
        return _root(square(X - mean)), _root(square(mean))


def cosine(X: flint.arb_mat, first: int, second: int, bits: int = BITS) -> flint.arb:
    """cos of the angle between two tokens."""
    with at_precision(bits):
        gram = X * X.transpose()
        return gram[first, second] / (gram[first, first] * gram[second, second]).sqrt()


def angle_gap(X: flint.arb_mat, first: int, second: int, bits: int = BITS) -> flint.arb:
    """1 - |cos| of two tokens: its cancellation costs digits, of which there are enough."""
    with at_precision(bits):
        return 1 - abs(cosine(X, first, second, bits))


def worst_angle_gap(X: flint.arb_mat, bits: int = BITS) -> flint.arb:
    """The largest 1 - |cos| over pairs of tokens."""
    gaps = [angle_gap(X, i, j, bits) for i, j in combinations(range(X.nrows()), 2)]
    return max(gaps, key=lambda g: g.mid())


def effective_rank_excess(X: flint.arb_mat, bits: int = BITS) -> flint.arb:
    """erank - 1 from its definition: the exponential of the entropy of sigma / sum(sigma)."""
    sigma = [s for s in singular_values(X, bits) if s > 0]
    with at_precision(bits):
        total = sum(sigma, flint.arb(0))
        entropy = -sum((s / total * (s / total).log() for s in sigma), flint.arb(0))
        return entropy.exp() - 1


def log(value: flint.arb) -> float:
    """Natural logarithm of a positive ball as a float: sizes that no float holds are fine."""
    with at_precision(128):
        return float((+value).log().mid())


# What is measured on a state X, with so many `bits`.
Measure = Callable[..., flint.arb]


def slope(
    measure: Measure,
    A: Matrix,
    H: Matrix,
    X0: Matrix,
    depths: tuple[int, int],
    bits: int = BITS,
    residual: bool = True,
) -> float:
    """The factor per layer of a measured quantity between two depths.

    Where these bits leave it indistinguishable from 0, twice as many are taken.
    Raises `InputError` where _MOST_BITS are too few: it is 0.
    """
    for enough in doublings(bits, _MOST_BITS):
        sizes = [
            measure(X, bits=enough) for X in states(A, H, X0, depths, enough, residual).values()
        ]
        if all(x > 0 and x.rel_accuracy_bits() >= _SEEN_BITS for x in sizes):
            near, far = map(log, sizes)
            return float(np.exp((far - near) / (depths[1] - depths[0])))
    raise InputError(f"what is measured at the depths {depths} cannot be told from 0")


def random_case(seed: int, n: int, d: int, shift: Fraction) -> tuple[Matrix, Matrix, Matrix]:
    """(A, H, X0) in fractions from a seed: A > 0, H = shift I + noise, X0 Gaussian, rounded."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 40, size=(n, n))
    noise = rng.integers(-5, 6, size=(d, d))
    start = np.rint(1000 * rng.standard_normal((n, d))).astype(int)
    A, H, X0 = (
        [[Fraction(x, unit) for x in row] for row in M.tolist()]
        for M, unit in ((weights, 1), (noise, 10), (start, 1000))
    )
    return exact.normalised_rows(A), exact.plus(identity(d, shift), H), X0


def _root(x: flint.arb) -> flint.arb:
    """Square root of what is known to be >= 0, though its ball may reach below."""
    return x.sqrt() if x.lower() >= 0 else flint.arb(0).union(x.upper().sqrt())
