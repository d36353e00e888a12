"""T2, T5a: two algebraic numbers are equal once balls are smaller than the gap between different
ones. How many bits that takes, how many are spent at most, and what is said beyond them."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import flint

from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.spectra.algebraic import Eigenvalue, Factor
from oversmoothing.theory.verdict import by_fractions, leading
from oversmoothing.theory.verdict.by_fractions import (
    EXACT_BITS,
    ExactDominance,
    compare,
    exact_dominance,
)
from oversmoothing.theory.verdict.resolvent import Growth, Part
from tests.theory.test_leading_by_hand import bound
from tests.theory.test_tokens_as_sequences import part

# --- two moduli ---


class Recorded:
    """A mode whose squared modulus is `value`, known to `radius`(bits), and who asked for it."""

    def __init__(self, value, radius=lambda bits: 0):
        self.value, self.radius, self.asked = value, radius, []
        self.structural = object()

    def squared_modulus(self, bits):
        self.asked.append(bits)
        return flint.arb(self.value, self.radius(bits))


ONE = SimpleNamespace(structural="one", squared_modulus=lambda bits: flint.arb(1))


def doubled(last):
    """64, 128, ... up to `last`."""
    return [64 << k for k in range(30) if 64 << k <= last]


def test_T2_bits_are_spent_up_to_a_doubling_more_than_the_bound_asks_for(monkeypatch):
    # 2 (448 + 64) = 1024: one bit less asks for 512 at most.
    for needed, last in ((448, 1024), (447, 512), (449, 1024), (1, 128)):
        monkeypatch.setattr(by_fractions, "gap_bits", lambda *_, needed=needed: needed)
        open_ = Recorded(1, radius=lambda bits: 1)
        assert compare(open_, ONE) == (None, needed) and open_.asked == doubled(last)


def test_T2_beyond_the_most_bits_equality_is_not_tried(monkeypatch):
    assert EXACT_BITS == 2**20
    for needed, last in ((EXACT_BITS, 2**21), (EXACT_BITS + 1, 2**15), (EXACT_BITS * 2, 2**15)):
        monkeypatch.setattr(by_fractions, "gap_bits", lambda *_, needed=needed: needed)
        open_ = Recorded(1, radius=lambda bits: 1)
        assert compare(open_, ONE) == (None, needed) and open_.asked == doubled(last)


def test_T2_a_difference_below_the_gap_is_none_and_at_the_gap_one(monkeypatch):
    """The bound is 2^-10: what may be as large as that may be a difference."""
    monkeypatch.setattr(by_fractions, "gap_bits", lambda *_: 9.5)
    for size, answer in ((2.0**-10, (None, 10)), (2.0**-10.5, (0, 10)), (2.0**-11, (0, 10))):
        assert compare(Recorded(1, radius=lambda bits, size=size: size), ONE) == answer
    assert compare(Recorded(1 + 2.0**-10), ONE) == (1, 64)
    assert compare(Recorded(1 - 2.0**-10), ONE) == (-1, 64)


class Cancelling:
    """A multiplier that is known to so many bits, whatever is asked for."""

    def __init__(self, known):
        self.known, self.asked = known, []

    def multiplier(self, bits):
        self.asked.append(bits)
        return flint.acb(flint.arb(1, flint.arb(2) ** -self.known(bits)))


def radius(known, *bits):
    mode = Cancelling(known)
    ExactDominance([mode], [], 1, 0).radius(True, *bits)
    return mode.asked


def test_T1_a_radius_is_good_to_half_as_many_bits_as_are_asked_for():
    assert radius(lambda bits: bits) == [128]
    assert radius(lambda bits: bits // 8) == [128, 256, 512, 1024]
    assert radius(lambda bits: bits // 8, 32) == [32, 64, 128, 256]
    # A radius of 2^-65 about 1 leaves 64 bits: just as many as 128 and 129 ask for.
    assert flint.arb(1, flint.arb(2) ** -65).rel_accuracy_bits() == 64
    assert radius(lambda bits: 65) == [128] and radius(lambda bits: 65, 129) == [129]
    assert radius(lambda bits: 65, 130) == [130 << k for k in range(9)]
    # What is never known is asked for up to 2^16 bits, what is asked for at more once.
    assert radius(lambda bits: 1) == [128 << k for k in range(10)]
    assert radius(lambda bits: 1, 2**16 + 1) == [2**16 + 1]


def test_T1_a_radius_of_a_complex_pair_has_its_digits_whatever_the_context_works_with():
    """1 + h for h = i: sqrt 2, not to the 53 bits of the context."""
    H = [[Fraction(0), Fraction(-1)], [Fraction(1), Fraction(0)]]
    found = exact_dominance([[Fraction(1, 2)] * 2] * 2, H).radius(True)
    with at_precision(256):
        gap = abs(found - flint.arb(2).sqrt())
    assert found.rel_accuracy_bits() >= 120 and gap < 1e-36


# --- the coefficients of two sums ---


def whole(*values):
    """Eigenvalues that are integers, each of a factor of its own, multiplicity e of each."""
    return [Eigenvalue(Factor(flint.fmpz_poly([-x, 1]), e, (e,)), 0) for x, e in values]


def gap(monkeypatch, size):
    monkeypatch.setattr(leading, "proportionality_bits", lambda *_: -size.bit_length() + 1)


def test_T5a_differences_are_scaled_to_integers_before_they_are_held_against_the_gap(monkeypatch):
    """Roots 3 and 6 of p = (z - 3)^2 (z - 6)^2, where q = p''/2 is 9 at both.

    9 / q is 1 and 1, z / q is 1/3 at 3, where alone it leads: 1, 1 beside 1/9, 0 differ by 1/9,
    an integer times q^2 at 3 and 6 for the one and at 3 for the other: 9^6 / 9 = 59049.
    """
    x, y = roots = whole((3, 2), (6, 2))
    factors = tuple((root.factor, 2) for root in roots)
    growths = (Growth((x, y), 1), Growth((x,), 1))
    parts = (Part((flint.fmpz_poly([9]),), factors), Part((flint.fmpz_poly([0, 1]),), factors))
    assert [int(parts[0].cofactor(2)(v)) for v in (3, 6)] == [9, 9]
    for size, proved in ((2**16, True), (2**15, False)):
        gap(monkeypatch, size)
        assert leading._proportional(parts, growths, roots, [[(x, x)], [(y, y)]]) is proved


def test_T5a_what_is_as_large_as_the_gap_is_not_below_it(monkeypatch):
    """1, 1 beside 1, 0 times 4^2 4^2 4^2 is 2^12; 9 and 25 in one frequency are 16 apart."""
    x, y = roots = whole((3, 2), (5, 2))
    factors = tuple((root.factor, 2) for root in roots)
    four = Part((flint.fmpz_poly([4]),), factors)
    growths = (Growth((x, y), 1), Growth((x,), 1))
    for size, proved in ((2**13, True), (2**12, False)):
        gap(monkeypatch, size)
        assert leading._proportional((four, four), growths, roots, [[(x, x)], [(y, y)]]) is proved
    both = (Growth((x, y), 1),) * 2
    for size, proved in ((32, True), (16, False)):
        gap(monkeypatch, size)
        assert leading._proportional((four, four), both, roots, [[(x, x), (y, y)]]) is proved


def test_T5a_beyond_2_to_17_bits_proportion_is_not_tried(monkeypatch):
    x, y = roots = whole((3, 1), (-3, 1))
    one = Part((flint.fmpz_poly([1]),), tuple((root.factor, 1) for root in roots))
    growths = (Growth((x, y), 0),) * 2
    for needed, tried in ((2**17, True), (2**17 + 1, False)):
        monkeypatch.setattr(leading, "proportionality_bits", lambda *_, needed=needed: needed)
        groups = [[(x, x), (y, y)], [(x, y), (y, x)]]
        assert leading._proportional((one, one), growths, roots, groups) is tried


def test_T5a_bits_of_a_ball_are_those_of_its_upper_end():
    assert leading.bits_of(flint.arb(6, 4)) == 4 and leading.bits_of(flint.arb(6, 5)) == 4
    assert leading.bits_of(flint.arb(8)) == 3 and leading.bits_of(flint.arb(1)) == 0


def test_T5a_the_gap_bound_is_the_least_whole_number_of_bits():
    """Numerators of height 1 + c, 1 for 0, and q = 2 z of 1 + 2 sqrt 2, two conjugates apart."""
    factor = Factor(flint.fmpz_poly([-2, 0, 1]), 1, (1,))
    roots = [Eigenvalue(factor, k) for k in range(2)]
    shares = []
    for c in range(8):
        one = Part((flint.fmpz_poly([c]),), ((factor, 1),))
        found = leading.proportionality_bits((one, one), (Growth(tuple(roots), 0),) * 2, roots)
        bits = math.log2(2 * 2**4 * (1 + 2 * math.sqrt(2)) ** 8 * (1 + c) ** 4)
        assert found == math.ceil(bits) + 64
        shares.append(math.ceil(bits) - bits)
    # Half as much again would take some of them across a bit.
    assert min(shares) < 0.4


def test_T5a_a_constant_that_binary64_does_not_reach_is_one_without_digits():
    """sqrt(n) times the ratio of the numerators, of n P X and of the sum of n = 2 tokens."""

    (root,) = whole((2, 1))

    def limit(*numerators):
        parts = tuple(Part((flint.fmpz_poly([x]),), ((root.factor, 1),)) for x in numerators)
        return leading.ratio_limit(*parts, (Growth((root,), 0),) * 2, 2, None)

    for hfc, mean, known in ((4, 1, 4 / math.sqrt(2)), (1, 1, 1 / math.sqrt(2))):
        tends_to, found = limit(hfc, mean)
        assert tends_to == "constant" and abs(found - known) < 1e-15 * known
    for hfc, mean in ((10**400, 1), (1, 10**400)):
        assert limit(hfc, mean) == ("constant", None)


# --- a rank ---


def looked_at(monkeypatch, *mu):
    """The depths at which the sum of the leading terms at these roots is looked at."""
    roots, depths = whole(*((x, 1) for x in mu)), []
    one = Part(
        tuple(map(flint.fmpz_poly, ([1], [0], [0], [0]))), tuple((r.factor, 1) for r in roots)
    )

    def sum_at(table, depth, bits):
        depths.append(depth)
        return [flint.acb(x) for x in (1, 0, 0, 0)]

    monkeypatch.setattr(leading, "_sum_at", sum_at)
    monkeypatch.setattr(leading, "_rank_bound", lambda *_: 1)
    assert leading.leading_rank(one, Growth(tuple(roots), 0), (2, 2), None) == 1
    return depths


def test_T4c_what_turns_is_looked_at_over_12_depths_and_what_does_not_once(monkeypatch):
    assert looked_at(monkeypatch, 3) == [0]
    assert looked_at(monkeypatch, 3, -3) == list(range(12))


def test_T4c_blocks_no_larger_than_the_power_leave_nothing():
    """a = 1/2 in blocks of 2 and 1, h = 2 three times: the power 1 is in the one, 2 in none."""
    A = [[1, 0, 0, 0], ["1/2", "1/2", 0, 0], ["1/4", "1/4", "1/2", 0], ["1/2", 0, 0, "1/2"]]
    H = [[2, 0, 0], [0, 2, 0], [0, 0, 2]]
    assert [bound(A, H, [2], power) for power in range(3)] == [3, 1, 0]


def taken(monkeypatch, degree, shape, rank):
    """What `_rational_rank` says of a sum of `degree` rational roots whose matrices have `rank`,
    and at how many depths it asked for them."""
    roots = whole(*((k, 1) for k in range(1, degree + 1)))
    entries = [int(i == j < rank) for i in range(shape[0]) for j in range(shape[1])]
    one = part([[x] for x in entries], *(([-k, 1], 1) for k in range(1, degree + 1)))

    asked = []

    def terms(numerator, denominator):
        index = len(asked)
        asked.append(0)

        while True:
            asked[index] += 1
            yield flint.fmpq(entries[index])

    monkeypatch.setattr(leading, "terms", terms)
    found = leading._rational_rank(one, Growth(tuple(roots), 0), shape)
    assert len(set(asked)) == 1
    return found, asked[0]


def test_T4c_minors_that_vanish_at_as_many_depths_as_they_have_roots_vanish(monkeypatch):
    """Products of 2 of 4 roots, with repetition: 10. All are looked at, and not one more."""
    assert taken(monkeypatch, 4, (2, 3), 1) == (1, 10)
    # The largest rank there is ends the search.
    assert taken(monkeypatch, 4, (2, 3), 2) == (2, 1) and taken(monkeypatch, 4, (3, 2), 2) == (2, 1)


def test_T4c_so_many_products_are_too_many(monkeypatch):
    """90 roots have 4095 products of two, 91 have 4186: 4097 depths are looked at, no more."""
    assert taken(monkeypatch, 90, (2, 2), 1) == (1, 4095)
    assert taken(monkeypatch, 91, (2, 2), 1) == (None, 4097)
