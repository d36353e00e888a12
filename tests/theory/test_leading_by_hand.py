"""T2, T4c, T5a: leading terms of one X_0, and when algebraic numbers are equal, by hand.

Two algebraic numbers are equal once balls are smaller than the gap between different ones: how many
bits that takes, how many are spent at most, and what is said beyond them."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace as Some

import flint
import pytest

from oversmoothing.theory.numbers.rounding import at_precision, doublings
from oversmoothing.theory.spectra.algebraic import Eigenvalue, Factor
from oversmoothing.theory.verdict import by_fractions, leading
from oversmoothing.theory.verdict.by_fractions import ExactDominance, compare, exact_dominance
from oversmoothing.theory.verdict.leading import (
    ball_rank,
    bits_of,
    embeddings,
    leading_rank,
    proportional,
    proportionality_bits,
    rank_bound,
    rank_in_field,
    ratio_limit,
    rational_rank,
    shared,
    working_bits,
)
from oversmoothing.theory.verdict.resolvent import Growth, Multipliers, Part, growth_of, resolvent
from tests.support.tables import identity, matrix
from tests.theory.test_tokens_as_sequences import ByModulus, part, roots

EYE, THIRDS = "1 0; 0 1", [["1/3"] * 3] * 3


class Leading:
    """The parts of one X_0 and their growth."""

    def __init__(self, A, H, X0):
        A, H, X0 = matrix(A), matrix(H), matrix(X0)
        found, n = resolvent(A, H, X0), len(A)
        self.shape = (n, len(H))
        self.multipliers = Multipliers(A, H, found.scale)
        self.whole = found.part(identity(n))
        self.hfc = found.part([[n * x - 1 for x in row] for row in identity(n)])
        self.mean = found.part([[Fraction(1)] * n])
        self.growth = growth_of(self.whole, self.multipliers)

    @property
    def growths(self):
        return tuple(growth_of(x, self.multipliers) for x in (self.hfc, self.mean))

    def ratio(self):
        return ratio_limit(self.hfc, self.mean, self.growths, self.shape[0], self.multipliers)

    def rank(self):
        return leading_rank(self.whole, self.growth, self.shape, self.multipliers)


def whole(*values):
    """Eigenvalues that are integers, each of a factor of its own, multiplicity e of each."""
    return [Eigenvalue(Factor(flint.fmpz_poly([-x, 1]), e, (e,)), 0) for x, e in values]


def of(numerator, *eigenvalues):
    """One numerator over the factors of these roots, each as often as it occurs."""
    return Part(
        (flint.fmpz_poly(numerator),), tuple((x.factor, x.factor.multiplicity) for x in eigenvalues)
    )


# --- the ratio ---

TURNED = ("A3", "-1/2 -1; 1/16 -1/2", "1 2; 3 5; -2 1")
# A3 (-4, 11, 1) = 1/2 (...) and A3 (-1, -1, 7) = 1/5 (...): mu = 2 in the first feature, where
# a = 1/2 is, and mu = -2 in the second, where a = 1/5 is.
ACROSS = ("A3", "2 0; 0 -15", "-4 -1; 11 -1; 1 7")


@pytest.mark.parametrize(
    ("case", "limit", "by_bits"),
    [
        # h turns the features, a = 1/5 leads alone: no bit is spent on a proof.
        (TURNED, ("constant", 8 * math.sqrt(2) / 5), False),
        # Features at right angles keep the ratio by the gap bound, and by nothing else.
        (ACROSS, ("constant", math.sqrt(478 / 89)), True),
        # One feature, mu = 2 for a = 1/2 and, by h = -15 in the other, mu = -2: they add up.
        (("A3", "2 0; 17 -15", "-4 -5; 11 10; 1 8"), ("oscillates", None), False),
    ],
)
def test_T5a_the_ratio_of_two_roots_that_lead(monkeypatch, case, limit, by_bits):
    found = Leading(*case)
    assert len({root for growth in found.growths for root in growth.roots}) == 2
    tends_to, value = found.ratio()
    assert tends_to == limit[0] and value == (limit[1] and pytest.approx(limit[1], rel=1e-14))
    monkeypatch.setattr(leading, "GAP_BITS", 0)
    assert found.ratio() == ((None, None) if by_bits else (tends_to, value))


def test_T5a_a_pair_turns_in_both_parts_of_its_products():
    """x = 1 + 2 i with x and conj(x) for numerators: x^2 and its conjugate differ by a sign."""
    mean, hfc = part([[0, 1]], ([5, -2, 1], 1)), part([[2, -1]], ([5, -2, 1], 1))
    growths = growth_of(hfc, ByModulus()), growth_of(mean, ByModulus())
    assert ratio_limit(hfc, mean, growths, 2, ByModulus()) == ("oscillates", None)


@pytest.mark.parametrize(
    ("hfc", "mean", "limit"),
    [
        # sqrt(n) times the ratio of the numerators, of n P X and of the sum of n = 2 tokens.
        (4, 1, 4 / math.sqrt(2)),
        (1, 1, 1 / math.sqrt(2)),
        # A constant that binary64 does not reach is one without digits.
        (10**400, 1, None),
        (1, 10**400, None),
    ],
)
def test_T5a_the_constant_of_one_root(hfc, mean, limit):
    (root,) = whole((2, 1))
    found = ratio_limit(of([hfc], root), of([mean], root), (Growth((root,), 0),) * 2, 2, None)
    assert found == ("constant", limit and pytest.approx(limit, rel=1e-15))


def test_T5a_one_real_simple_eigenvalue_of_all_pairs_is_shared():
    def eigenvalue(real=True, multiplicity=1):
        return Some(is_real=real, factor=Some(multiplicity=multiplicity))

    # Equal as they are built of equal parts: told apart by another multiplicity of no meaning here.
    a, other = eigenvalue(), eigenvalue(multiplicity=0)
    for found, expected in (
        ([a], True),
        ([a, a], True),
        ([a, other], False),
        ([a, None], False),
        ([None, a], False),
        ([None, None], False),
        ([eigenvalue(real=False)], False),
        ([eigenvalue(multiplicity=2)], False),
    ):
        known = [Some(attention=x) for x in found]
        assert shared([object()], Some(pairs=lambda root, known=known: known)) is expected


# --- proportion by the gap ---


def test_T5a_a_number_of_the_field_of_the_roots_has_so_many_conjugates():
    cubic = roots(-1, -1, 0, 1)
    real, turning = ([x for x in cubic if x.is_real == kind] for kind in (True, False))
    for chosen, count in (
        # One of 3 roots; a pair, in order, of 3; all of them, in order.
        (real, 3),
        (turning, 6),
        (cubic, 6),
        (turning[:1], 6),
        ([*real, *roots(-2, 0, 1)], 6),
        (roots(-1, 1), 1),
    ):
        assert embeddings(chosen) == count


@pytest.mark.parametrize("c", [3, *range(8)])
def test_T5a_the_gap_bound_is_the_product_of_heights_in_the_least_number_of_bits(c):
    """1 + sum |c| 2^(k/2) is 1 + sqrt 2 for z, 1 + c for c and 1 + 2 sqrt 2 for q = 2z."""
    pair, root = roots(-2, 0, 1), math.sqrt(2)
    growths = (Growth(tuple(pair), 0),) * 2
    z, one, q = of([0, 1], pair[0]), of([c], pair[0]), (1 + 2 * root) ** 4
    for first, heights in ((z, (1 + root) ** 2), (one, (1 + c) ** 2)):
        bound = 2 * 2**4 * heights * q * (1 + c) ** 2 * q
        found = proportionality_bits((first, one), growths, pair)
        assert found == math.ceil(math.log2(bound)) + 64
    # Rational numbers that are integers need no more than 1.
    (two,) = roots(-2, 1)
    assert proportionality_bits((of([c], two),) * 2, (Growth((two,), 0),) * 2, [two]) == 64


@pytest.mark.parametrize(
    ("numerators", "together", "expected"),
    [
        # x = 1 +- 2 i: N = z and 3 z are proportional; z and 2 - z are not, though the real parts
        # of x^2 agree, and x^2 and conj(x)^2 are two frequencies: their sum would agree.
        (([0, 1], [0, 3]), False, True),
        (([0, 1], [2, -1]), False, False),
        (([0, 1], [2, -1]), True, False),
    ],
)
def test_T5a_proportional_parts_are_proved_so_and_no_others(numerators, together, expected):
    parts = tuple(part([n], ([5, -2, 1], 1)) for n in numerators)
    x, y = (Eigenvalue(parts[0].factors[0][0], k) for k in range(2))
    apart = [[(x, y), (y, x)]] if together else [[(x, y)], [(y, x)]]
    growths = (Growth((x, y), 0),) * 2
    assert proportional(parts, growths, [x, y], [[(x, x), (y, y)], *apart]) == expected


THREE_SIX, THREE_FIVE = whole((3, 2), (6, 2)), whole((3, 2), (5, 2))


@pytest.mark.parametrize(
    ("xy", "numerators", "shared_growth", "alone", "size", "proved"),
    [
        # q = p''/2 is 9 at both: 9 / q is 1 and 1, z / q is 1/3 at 3, where alone it leads. 1, 1
        # beside 1/9, 0 differ by 1/9, an integer times 9^6: 59049 in all.
        *[(THREE_SIX, ([9], [0, 1]), False, True, *x) for x in ((2**16, True), (2**15, False))],
        # 1, 1 beside 1, 0 times 4^2 4^2 4^2 is 2^12: as large as the gap is not below it.
        *[(THREE_FIVE, ([4], [4]), False, True, *x) for x in ((2**13, True), (2**12, False))],
        # 9 and 25 in one frequency are 16 apart.
        *[(THREE_FIVE, ([4], [4]), True, False, *x) for x in ((32, True), (16, False))],
    ],
)
def test_T5a_differences_are_scaled_to_integers_before_they_are_held_against_the_gap(
    monkeypatch, xy, numerators, shared_growth, alone, size, proved
):
    x, y = xy
    growths = Growth((x, y), 1), Growth((x, y) if shared_growth else (x,), 1)
    groups = [[(x, x)], [(y, y)]] if alone else [[(x, x), (y, y)]]
    monkeypatch.setattr(leading, "proportionality_bits", lambda *_: 1 - size.bit_length())
    parts = tuple(of(n, x, y) for n in numerators)
    assert proportional(parts, growths, [x, y], groups) is proved


@pytest.mark.parametrize(("needed", "tried"), [(2**17, True), (2**17 + 1, False)])
def test_T5a_beyond_2_to_17_bits_proportion_is_not_tried(monkeypatch, needed, tried):
    x, y = whole((3, 1), (-3, 1))
    monkeypatch.setattr(leading, "proportionality_bits", lambda *_: needed)
    groups = [[(x, x), (y, y)], [(x, y), (y, x)]]
    parts, growths = (of([1], x, y),) * 2, (Growth((x, y), 0),) * 2
    assert proportional(parts, growths, [x, y], groups) is tried


def test_T5a_evaluation_costs_heights_degrees_and_powers_of_the_largest_root():
    """(z - 6)(z - 1)^2: heights 13 and 2, the degrees 3 and 2, and 3 bits for 6 + 2 at z^3."""
    first, second = part([[1, 1, 2]], ([-6, 1], 1), ([-1, 1], 2)), part([[2**40]], ([-1, 1], 1))
    assert working_bits(first) == 128 + (4 + 8 * 3) + 3 * 3
    # Of two parts the largest cost, degree and root; a part of no root has none.
    assert working_bits(second, first) == 128 + 41 + 3 * 3
    assert working_bits(part([[0]])) == 128 + 1
    for ball, bits in (((6, 4), 4), ((6, 5), 4), ((8, 0), 3), ((1, 0), 0)):
        assert bits_of(flint.arb(*ball)) == bits


# --- the rank ---


@pytest.mark.parametrize(
    ("rows", "rank"),
    [
        ([[1, 2], [2, 4]], 1),
        ([[1, 2], [2, 5]], 2),
        ([[0, 0], [0, 0]], 0),
        ([[1, 2, 3]], 1),
        ([[1], [2], [3]], 1),
        ([], 0),
        # The largest number may be 0: what is certain comes first.
        ([[(3, 4), 0], [0, 1]], 1),
        ([[(3, 4), 1], [1, 0]], 2),
    ],
)
def test_T4c_pivots_count_as_far_as_they_are_certainly_not_zero(rows, rank):
    balls = [[flint.acb(flint.arb(*x) if isinstance(x, tuple) else x) for x in r] for r in rows]
    assert ball_rank(balls) == rank


@pytest.mark.parametrize(
    ("A", "H", "X0", "rank"),
    [
        # mu = +-1 beside each other: rank 1 at even depths, 2 at odd ones.
        ("FLAT", "0 0; 0 -2", "2 2; 0 0", 2),
        ("FLAT", "0 0; 0 -2", "2 2; 2 2", 1),
        # The same a layer later: 2 at even depths, 1 at odd ones.
        ("FLAT", "0 0; 0 -2", "2 0; 0 -2", 2),
        # mu = +- sqrt 2: the states turn between two rows that are dependent, or not.
        (EYE, "-1 2; 1 -1", "1 2; 2 4", 1),
        (EYE, "-1 2; 1 -1", "1 2; 2 3", 2),
        # mu = 1 +- i: tokens that are multiples of one stay so.
        (EYE, "0 -1; 1 0", "1 2; 3 6", 1),
        (EYE, "0 -1; 1 0", "1 2; 3 5", 2),
        # mu = 1 in a block of 2, and for a = 0 with h = -1/2: L comes from the block.
        (THIRDS, "0 1 0; 0 0 0; 0 0 -1/2", "1 2 3; 5 7 -4; 2 0 1", 1),
    ],
)  # fmt: skip
def test_T4c_where_all_conjugates_lead_the_rank_is_that_of_rational_numbers(
    monkeypatch, A, H, X0, rank
):
    found = Leading(A, H, X0)
    assert rational_rank(found.whole, found.growth, found.shape) == rank == found.rank()
    # A few depths in balls show the largest rank too.
    monkeypatch.setattr(leading, "rational_rank", lambda *_: None)
    assert found.rank() in (rank, None) and (rank < 2 or found.rank() == 2)


def test_T4c_a_rank_of_all_depths_may_hang_on_the_terms_of_recurrences():
    """4^L 1 = 2^L 2^L at every depth; of Fibonacci's numbers the determinants are +-1."""
    over = ([-4, 1], 1), ([-2, 1], 1), ([-1, 1], 1)
    powers = part([[2, -3, 1], [4, -5, 1], [4, -5, 1], [8, -6, 1]], *over)
    fibonacci = part([[1], [0, 1], [0, 1], [1, 1]], ([-1, -1, 1], 1))
    for one, rank in ((powers, 1), (fibonacci, 2)):
        leads = [Eigenvalue(f, k) for f, _ in one.factors for k in range(f.degree)]
        assert rational_rank(one, Growth(tuple(leads), 0), (2, 2)) == rank


def test_T4c_the_rank_at_one_root_is_found_in_its_field():
    """x = sqrt 2: (0, 1, x) and (0, x, 1) are independent, (0, 1, x) and (0, x, 2) are not."""
    for numerators, shape, rank in (
        ([[0], [1], [0, 1], [0], [0, 1], [1]], (2, 3), 2),
        ([[0], [1], [0, 1], [0], [0, 1], [2]], (2, 3), 1),
        ([[1], [0], [0], [0], [0, 1], [0], [0], [0], [3]], (3, 3), 3),
    ):
        found = part(numerators, ([-2, 0, 1], 1))
        assert rank_in_field(found, found.factors[0][0].polynomial, shape) == rank


# a = 1/2 in a block of 2 or twice, h = 2 twice or in a block; blocks of 2 and 1.
CHAIN, TWICE = "1 0 0; 1/2 1/2 0; 1/4 1/4 1/2", "1 0 0; 1/2 1/2 0; 1/2 0 1/2"
BLOCKS = "1 0 0 0; 1/2 1/2 0 0; 1/4 1/4 1/2 0; 1/2 0 0 1/2"
SPREAD = "1 0 0 0 0; 1/2 1/2 0 0 0; 1/2 0 1/2 0 0; 3/4 0 0 1/4 0; 1 0 0 0 0"


@pytest.mark.parametrize(
    ("A", "H", "mu", "by_power"),
    [
        # A block that grows leaves the image of the power of its nilpotent part.
        (CHAIN, "2 0; 0 2", [2], [2, 1]),
        (TWICE, "2 1; 0 2", [2], [2, 1]),
        (BLOCKS, "diag 2 2 2", [2], [3, 1, 0]),
        # A simple pair beside a block that grows adds nothing.
        (THIRDS, "0 1 0; 0 0 0; 0 0 -1/2", [1], [3, 1]),
        # a = 1/2 twice with h = -4 once, a = 1/4 and a = 0 with h = -8 three times: 1 + 1 + 1.
        (SPREAD, "diag -4 -8 -8 -8", [-1, 1], [3]),
    ],
)
def test_T4c_the_rank_is_bounded_by_how_often_each_eigenvalue_can_occur(A, H, mu, by_power):
    leads = tuple(roots(-x, 1)[0] for x in mu)
    multipliers = Multipliers(matrix(A), matrix(H), 1)
    pairs = [pair for root in leads for pair in multipliers.pairs(root)]
    assert [rank_bound(pairs, k) for k in range(len(by_power))] == by_power


@pytest.mark.parametrize(
    ("degree", "shape", "rank", "found"),
    [
        # Products of 2 of 4 roots, with repetition: 10; the largest rank there is ends the search.
        (4, (2, 3), 1, 1), (4, (2, 3), 2, 2), (4, (3, 2), 2, 2),
        # 90 roots have 4095 products of two, 91 have 4186: 4097 depths are looked at, no more.
        (90, (2, 2), 1, 1), (91, (2, 2), 1, None),
    ],
)  # fmt: skip
def test_T4c_minors_that_vanish_at_as_many_depths_as_they_have_roots_vanish(
    degree, shape, rank, found
):
    entries = [int(i == j < rank) for i in range(shape[0]) for j in range(shape[1])]
    one = part([[x] for x in entries], *(([-k, 1], 1) for k in range(1, degree + 1)))
    growth = Growth(tuple(whole(*((k, 1) for k in range(1, degree + 1)))), 0)
    assert rational_rank(one, growth, shape) == found


# --- two moduli ---


class Known:
    """A mode whose squared modulus is 1 + off, known to `radius`, and the bits it was asked for."""

    def __init__(self, off=0.0, radius=0.0):
        self.off, self.radius, self.asked, self.structural = off, radius, [], object()

    def squared_modulus(self, bits):
        self.asked.append(bits)
        return flint.arb(1 + self.off, self.radius)


def doubled(last):
    """64, 128, ... up to `last`."""
    return [64 << k for k in range(30) if 64 << k <= last]


@pytest.mark.parametrize(
    ("needed", "mode", "answer", "last"),
    [
        # 2 (448 + 64) = 1024: one bit less asks for 512 at most.
        (448, Known(radius=1), None, 1024), (447, Known(radius=1), None, 512),
        (449, Known(radius=1), None, 1024), (1, Known(radius=1), None, 128),
        # Beyond the most bits equality is not tried.
        (2**20, Known(radius=1), None, 2**21), (2**20 + 1, Known(radius=1), None, 2**15),
        # The bound is 2^-10: what may be as large as that may be a difference.
        (9.5, Known(radius=2.0**-10), None, 128), (9.5, Known(radius=2.0**-10.5), 0, 64),
        (9.5, Known(2.0**-10), 1, 64), (9.5, Known(-(2.0**-10)), -1, 64),
    ],
)  # fmt: skip
def test_T2_bits_are_spent_up_to_a_doubling_more_than_the_bound_asks_for(
    monkeypatch, needed, mode, answer, last
):
    monkeypatch.setattr(by_fractions, "gap_bits", lambda *_: needed)
    monkeypatch.setattr(by_fractions, "squared_modulus", Known.squared_modulus)
    found, bits = compare(mode, Known())
    assert found == answer and mode.asked == doubled(last)
    assert bits == (64 if answer else math.ceil(needed))


@pytest.mark.parametrize(
    ("known", "asked", "bits"),
    [
        (lambda bits: bits, [128], ()),
        (lambda bits: bits // 8, [128, 256, 512, 1024], ()),
        (lambda bits: bits // 8, [32, 64, 128, 256], (32,)),
        # A radius of 2^-65 about 1 leaves 64 bits: just as many as 128 and 129 ask for.
        (lambda bits: 65, [128], ()), (lambda bits: 65, [129], (129,)),
        (lambda bits: 65, [130 << k for k in range(9)], (130,)),
        # What is never known is asked for up to 2^16 bits, what is asked for at more once.
        (lambda bits: 1, [128 << k for k in range(10)], ()),
        (lambda bits: 1, [2**16 + 1], (2**16 + 1,)),
    ],
)  # fmt: skip
def test_T1_a_radius_is_good_to_half_as_many_bits_as_are_asked_for(known, asked, bits):
    seen = []

    def ball(bits):
        seen.append(bits)
        return flint.acb(flint.arb(1, flint.arb(2) ** -known(bits)))

    ExactDominance([Some(ball=ball)], [], 1, 0).radius(True, *bits)
    assert seen == asked


def test_T1_a_radius_of_a_complex_pair_has_its_digits_whatever_the_context_works_with():
    """1 + h for h = i: sqrt 2, not to the 53 bits of the context."""
    found = exact_dominance(matrix("FLAT"), matrix("0 -1; 1 0")).radius(True)
    with at_precision(256):
        gap = abs(found - flint.arb(2).sqrt())
    assert found.rel_accuracy_bits() >= 120 and gap < 1e-36


def test_T4e_every_further_try_has_more_bits():
    assert list(doublings(64, 256)) == [64, 128, 256] == list(doublings(64, 511))
    assert list(doublings(9, 8)) == []
