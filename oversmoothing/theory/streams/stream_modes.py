"""What several streams do, exactly or in balls: rho_C, rho_Q (T13a), and when they are one (T13b).

rho_C = max_j rho(R + h_j p q^T), rho_Q = max over i < n and j of rho(R + a_i h_j p q^T). With g, u,
v of `streams` the eigenvalues are the roots of g and those of prod (u - t v) = sum_k psi_k u^k
v^(D-k), psi the polynomial with the roots t: that of H for consensus, of H (x) B' for the rest.

Moduli of algebraic numbers are compared exactly, equality included, without a gap bound:
|x|^2 of a root x of f is a root of the polynomial of the products x_i x_j, i < j (of the squares,
where x is real). Of its irreducible factors one has |x|^2 as a root; two moduli are equal iff they
are the same root of the same factor.

From balls around spec(A) and spec(H) each pair gives t = h a in a ball and the active eigenvalues
as roots of u - t v. Smith's discs enclose them: with distinct x_i, every root of P lies within
D |P(x_i)| / |lead prod_{j != i} (x_i - x_j)| of some x_i, and each connected component of discs
holds as many roots as discs.

Where R >= 0, R 1 = 1 and p is a multiple of 1, max_{k,l} ||x_k - x_l|| contracts in any norm by
Dobrushin's tau(R) = max_{k,l} sum_j |R_kj - R_lj| / 2 a layer, whatever the branch; over layers by
tau(R_L ... R_1), at most the product of theirs, and attained by some start.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import combinations
from math import prod
from typing import Any

import flint
import numpy as np

from oversmoothing.theory.depth.recurrence import Powers
from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.numbers import exact as exact
from oversmoothing.theory.numbers.exact import Matrix, identity, to_flint
from oversmoothing.theory.numbers.rounding import around, at_precision, doublings, largest
from oversmoothing.theory.spectra.algebraic import (
    Eigenvalue,
    Factor,
    apart,
    eigenvalues,
    squared_modulus,
)
from oversmoothing.theory.spectra.blocks import clusters
from oversmoothing.theory.spectra.chains import companion
from oversmoothing.theory.streams.streams import Mixing, factors_of, make_mixing, roots_of
from oversmoothing.theory.support.errors import CloseRootsError, InputError
from oversmoothing.theory.support.sizes import DEPTH, Complex
from oversmoothing.theory.verdict.by_fractions import Leading, largest_modes
from oversmoothing.theory.verdict.formulas import Outcome

# Bits that moduli are parted with before they are asked whether they are equal, and at most.
_FIRST, _FINE, _MOST = 64, 1024, 2**15
# Products of roots of a polynomial with more of them are not factored: that takes minutes.
_MOST_PRODUCTS = 136


def compare_moduli(x: Eigenvalue, y: Eigenvalue) -> int | None:
    """The sign of |x| - |y|; None where the degrees are too large to decide an equality."""
    if x.structural == y.structural:
        return 0
    if sign := apart(x, y, _FIRST, _FINE):
        return sign
    first, second = map(_as_root, (x, y))
    if first is None or second is None:
        return None
    return 0 if first == second else apart(x, y, 2 * _FINE, _MOST) or None


def largest_modulus(values: list[Eigenvalue]) -> tuple[list[Eigenvalue], bool]:
    """All of largest modulus, and whether every comparison was decided."""
    best, decided, _ = largest_modes(values, lambda x, y: (compare_moduli(x, y), 0))
    return best, decided


def _as_root(x: Eigenvalue) -> tuple[str, int] | None:
    """The key of |x|^2 among algebraic numbers; None where there are too many."""
    polynomials = _squares(tuple(map(int, x.factor.polynomial.coeffs())), x.is_real)
    if polynomials is None:
        return None
    for bits in doublings(_FIRST, _MOST):
        with at_precision(bits):
            ball = squared_modulus(x, bits)
            near = [
                root.key
                for root in eigenvalues(polynomials)
                if root.ball(bits).overlaps(flint.acb(ball))
            ]
        if len(near) == 1:
            return near[0]
    return None


@lru_cache(maxsize=256)
def _squares(coefficients: tuple[int, ...], real: bool) -> list[Factor] | None:
    """Irreducible polynomials, one of which has |x|^2 as a root, x a (real) root of the given."""
    degree = len(coefficients) - 1
    number = degree if real else degree * (degree - 1) // 2
    if number > _MOST_PRODUCTS:
        return None
    # x_i x_j, i < j, are the eigenvalues of the second compound of the companion matrix.
    C = companion(flint.fmpq_poly(list(coefficients)) / coefficients[-1])
    pairs = list(combinations(range(degree), 2))
    minors = [[C[i, k] * C[j, m] - C[i, m] * C[j, k] for k, m in pairs] for i, j in pairs]
    return factors_of((C * C if real else flint.fmpq_mat(minors)).charpoly())


# Up to this degree of the polynomial of the quotient, s d (n - 1), cases are decided exactly.
EXACT_DEGREE = 48


def active_values(mixing: Mixing, psi: flint.fmpq_poly) -> list[Eigenvalue]:
    """The active eigenvalues for all roots t of psi."""
    u, v = mixing.active
    if u.degree() < 1:
        return []
    # Factor by factor of psi: their polynomials in mu have smaller degrees.
    values: list[Eigenvalue] = []
    for factor in factors_of(psi):
        total, power = flint.fmpq_poly([0]), flint.fmpq_poly([1])
        for c in map(int, reversed(factor.polynomial.coeffs())):
            total, power = total * u + c * power, power * v
        values += roots_of(total)
    return values


def exact_modes(A: Matrix, H: Matrix, mixing: Mixing) -> Leading[Eigenvalue]:
    """rho_C against rho_Q for rational A (rows summing to 1), H and mixing; idle ones count."""
    B = rational_quotient(A)

    def values(attention: Matrix) -> list[Eigenvalue]:
        if mixing.copies:
            return mixing.reached(H, attention)
        psi = exact.characteristic(exact.kronecker(H, attention))
        return [*mixing.idle_values, *active_values(mixing, psi)]

    consensus, sure = largest_modulus(values([[Fraction(1)]]))
    if not B:
        return Leading(consensus, [], 1)
    quotient, also = largest_modulus(values(B))
    comparison = compare_moduli(consensus[0], quotient[0])
    return Leading(consensus, quotient, comparison if sure and also else None)


# Bits that radii are enclosed with.
_BALL_BITS = 160


@dataclass(frozen=True)
class EnclosedRadii:
    """Balls around three radii: what both families share for certain, and what each adds.

    shared: idle eigenvalues, and the family t = 0 where H has the eigenvalue 0 for certain (zero).
    consensus, quotient: the active eigenvalues of each. repeated: the eigenvalue 1 of A repeats, so
    that the quotient has all that consensus has, beside what `quotient` holds.
    """

    shared: flint.arb
    consensus: flint.arb
    quotient: flint.arb
    repeated: bool = False
    zero: bool = False

    @property
    def rho_consensus(self) -> flint.arb:
        return largest([self.shared, self.consensus])

    @property
    def rho_quotient(self) -> flint.arb:
        return largest([self.shared, self.quotient, *[self.consensus] * self.repeated])

    def outcome(self) -> Outcome:
        """The verdict: a tie where neither side exceeds what they share, UNDECIDED where the balls
        overlap."""
        c, q = self.consensus, self.quotient
        if q > c and q > self.shared:
            return Outcome.NON_SMOOTHING
        if self.repeated:
            tie = q.upper() <= self.rho_consensus.lower()
        elif c > q and c > self.shared:
            return Outcome.SMOOTHING
        else:
            tie = max(c.upper(), q.upper()) <= self.shared.lower()
        return Outcome.TIE if tie else Outcome.UNDECIDED


def enclosed_radii(
    mixing: Mixing,
    attention: Sequence[flint.acb],
    value: Sequence[flint.acb],
    zero: bool = False,
    repeated: bool = False,
) -> EnclosedRadii:
    """The radii for balls around spec(A) without its eigenvalue 1, and around spec(H).

    Each ball must hold an eigenvalue, and every eigenvalue lie in one. zero: H has the eigenvalue 0
    exactly, beside those in `value`. Raises `CloseRootsError`.
    """
    with at_precision(_BALL_BITS):
        shared = largest(abs(x.ball(_BALL_BITS)) for x in mixing.idle_values)
        if zero:
            shared = largest([shared, _active_radius(mixing, flint.acb(0))])
        consensus = largest(_active_radius(mixing, h) for h in value)
        quotient = largest(_active_radius(mixing, h * a) for h in value for a in attention)
    return EnclosedRadii(shared, consensus, quotient, repeated, zero)


def _active_radius(mixing: Mixing, t: flint.acb) -> flint.arb:
    """A ball around the largest modulus of a root of u - t v."""
    u, v = mixing.active
    if mixing.copies and _reach(mixing, t).contains(0):
        raise CloseRootsError("copies of one X_0 may not reach every mode of the streams")
    if u.degree() < 1:
        return flint.arb(0)
    if u.degree() == 1:
        return abs(t * flint.acb(v[0]) - flint.acb(u[0]))
    return largest_root(flint.acb_poly(u) - flint.acb_poly(v) * t)


def _reach(mixing: Mixing, t: flint.acb) -> flint.acb:
    """det (e_1, M e_1, M^2 e_1, ...) for M = R + t p q^T: 0 where copies do not reach it all."""
    R, p, q = (flint.acb_mat(to_flint(M)) for M in (mixing.R, [[x] for x in mixing.p], [mixing.q]))
    M = R + p * q * t
    states = [flint.acb_mat([[int(k == 0)] for k in range(mixing.streams)])]
    for _ in range(mixing.streams - 1):
        states.append(M * states[-1])
    return flint.acb_mat([x.entries() for x in states]).det()


def largest_root(polynomial: flint.acb_poly) -> flint.arb:
    """A ball around the largest modulus of a root of a monic polynomial with balls as coefficients.

    Raises `CloseRootsError` where roots agree to more digits than are parted here.
    """
    degree = int(polynomial.degree())
    middle = flint.acb_poly([c.mid() for c in polynomial.coeffs()])
    roots = np.roots([complex(c) for c in reversed(middle.coeffs())]).astype(np.complex128)
    # Distinct for certain: Smith's discs hold for whichever points.
    spread = 1e-9 * max(1.0, float(np.abs(roots).max(initial=0.0)))
    points = start = [flint.acb(complex(z)) for z in _apart(roots, spread)]
    for _ in range(8):
        points = [(x - _weierstrass(middle, points, i)).mid() for i, x in enumerate(points)]
        if not all(x.is_finite() for x in points):
            points = start
            break
    radii = [abs(_weierstrass(polynomial, points, i)).upper() * degree for i in range(degree)]
    boxes = [around(x, r) for x, r in zip(points, radii, strict=True)]
    if not all(box.is_finite() for box in boxes):
        raise CloseRootsError(
            "eigenvalues of R + t p q^T agree to more digits than are parted here: not decided"
        )
    groups = clusters(degree, lambda i, j: bool(boxes[i].overlaps(boxes[j])))
    return largest(reduce(flint.arb.union, (abs(boxes[k]) for k in group)) for group in groups)


def _weierstrass(P: flint.acb_poly, points: list[flint.acb], i: int) -> flint.acb:
    """P(x_i) / prod_{j != i} (x_i - x_j)."""
    gaps = (points[i] - y for j, y in enumerate(points) if j != i)
    return P(points[i]) / prod(gaps, start=flint.acb(1))


def _apart(values: Complex, spread: float) -> list[complex]:
    """The values, those that nearly agree moved onto a small circle."""
    turn = np.exp(2j * np.pi * np.arange(len(values)) / max(1, len(values)))
    near = np.abs(values[:, None] - values[None, :]) < spread
    return [z + (spread * w if group.sum() > 1 else 0) for z, w, group in zip(
        values.tolist(), turn.tolist(), near, strict=True)]  # fmt: skip


_BITS = 192


def contraction(R: flint.arb_mat) -> flint.arb:
    """A ball around tau(R) for R [s, s] with equal row sums, 0 for one stream."""
    tau = flint.arb(0)
    for row, other in combinations(R.tolist(), 2):
        tau = tau.max(sum(abs(x - y) for x, y in zip(row, other, strict=True)) / 2)
    return tau


@dataclass(frozen=True)
class Contraction:
    """After so many layers: an upper bound of the product of tau(R_l), and of tau(R_L ... R_1).

    Whatever the branches were, max_{k,l} ||x_k - x_l|| is at most `of_product` times what it was
    (p_l a multiple of 1 in each of these layers).
    """

    depth: int
    product_of_each: float
    of_product: float


def contractions(mixings: Iterable[Any]) -> Iterator[Contraction]:
    """The certificate after each of the layers R_1, R_2, ..., each row-stochastic (`make_mixing`).

    Raises `InputError` for an R_l that is not.
    """
    each = flint.arb(1)
    together: flint.arb_mat | None = None
    for depth, R in enumerate(mixings, start=1):
        mixing = make_mixing(R, claimed="row-stochastic")
        with at_precision(_BITS):
            layer = flint.arb_mat(to_flint(mixing.R))
            together = layer if together is None else layer * together
            each = each * contraction(layer)
            yield Contraction(depth, _up(each), _up(contraction(together)))


def agreement_depth(mixing: Mixing, eps: float) -> int | None:
    """The least L with tau(R^L) <= eps: from L on, streams differ by at most eps of the start.

    For p a multiple of 1 and R row-stochastic, whatever A, H, branch and start; at L - 1 some start
    differs by more (of those whose digits 192 bits tell). None where tau(R^L) does not get there
    within 10^15 layers. Raises `InputError` for other R and p, and unless 0 < eps < 1.
    """
    if not 0 < eps < 1:
        raise InputError(f"eps = {eps} must lie between 0 and 1: a share of the initial difference")
    if "row-stochastic" not in mixing.kinds or mixing.keeps_equal_streams is None:
        raise InputError(
            "streams come to agree whatever the branch only for a row-stochastic R and p a "
            "multiple of 1"
        )
    with at_precision(_BITS):
        R, start = (flint.arb_mat(to_flint(M)) for M in (mixing.R, identity(mixing.streams)))
        powers = Powers(R, start)

        def agree(layers: int) -> bool:
            return bool(contraction(powers.at(layers)) <= flint.arb(eps))

        # tau(R^L) never grows.
        end = next((2**k for k in range(DEPTH.bit_length()) if agree(2**k)), None)
        return None if end is None else bisect_left(range(end), True, key=agree)


def _up(x: flint.arb) -> float:
    """A float at least as large, at most 1 as tau is."""
    return min(1.0, float(np.nextafter(float(x.upper()), np.inf)))


def differences_alone(mixing: Mixing, H: Matrix) -> list[Eigenvalue] | None:
    """The eigenvalues of differences between streams, where no branch has part in them: H = 0 adds
    nothing to any stream (a nilpotent H does)."""
    branch = any(x for row in H for x in row)
    c = mixing.keeps_equal_streams if branch else mixing.common_row_sum
    if c is None:
        return None
    one = flint.fmpq_poly([flint.fmpq(-c.numerator, c.denominator), 1])
    return roots_of(mixing.characteristic // one)


# Of larger families Jordan blocks are not looked for: that takes seconds.
_MOST_STATES = 64


def may_outgrow(mixing: Mixing, H: Matrix, A: Matrix, dominant: list[Eigenvalue]) -> bool:
    """Whether a largest mode may have a Jordan block, so that what has its modulus may be less."""
    keys = {x.factor.text for x in dominant}
    for layer in mixing.families(H, A):
        if len(layer) > _MOST_STATES:
            return True
        least = factors_of(to_flint(layer).minpoly())
        if any(factor.multiplicity > 1 and factor.text in keys for factor in least):
            return True
    return False


def lone_family(mixing: Mixing) -> tuple[Fraction, Fraction] | None:
    """(mu, t) with (R + t p q^T) 1 = mu 1, where there is just one such t; else None."""
    ones = sum(mixing.q)
    sums = [sum(row) for row in mixing.R]
    k = next((k for k, x in enumerate(mixing.p) if x != mixing.p[0]), None)
    if k is None or ones == 0:
        return None
    t = -(sums[k] - sums[0]) / (ones * (mixing.p[k] - mixing.p[0]))
    moved = {total + t * ones * x for total, x in zip(sums, mixing.p, strict=True)}
    return (moved.pop(), t) if len(moved) == 1 else None
