"""T2, T5a, T14: one X_0 as a sequence, and when algebraic numbers are equal.

Two of them are equal once balls are smaller than the gap between different ones: how many bits that
takes, how many are spent at most, and what is said beyond them."""

import math
from functools import cache

import flint
import pytest

from oversmoothing.theory.spectra.algebraic import Eigenvalue, Factor
from oversmoothing.theory.verdict import by_fractions
from oversmoothing.theory.verdict.by_fractions import compare, squared_modulus
from oversmoothing.theory.verdict.leading import (
    embeddings,
    every,
    proportional,
    proportionality_bits,
    real_power,
)
from oversmoothing.theory.verdict.resolvent import Growth, Multipliers, Part, bits_of, working_bits
from tests.support.cases import cases


class ByModulus:
    """Moduli told apart by 256 bits, far more than these need."""

    @staticmethod
    def compare(first, second):
        gap = squared_modulus(first, 256) - squared_modulus(second, 256)
        return 0 if gap.contains(0) else 1 if gap > 0 else -1


@cache
def factor(coefficients, exponent):
    """One and the same for all parts: a factor is equal to itself alone."""
    return Factor(flint.fmpz_poly(list(coefficients)), exponent, (exponent,))


def part(numerators, *factors, order=ByModulus):
    """Of (coefficients, exponent)."""
    found = tuple((factor(tuple(c), e), e) for c, e in factors)
    return Part(tuple(map(flint.fmpz_poly, numerators)), found, order)


def sequence(of, count):
    """The first terms of sum over L of x_L z^-(L+1), by long division."""
    shift = flint.fmpz_poly([0] * count + [1])
    quotients = [divmod(p * shift, of.denominator)[0] for p in of.numerators]
    return [[int(q[count - 1 - k]) for q in quotients] for k in range(count)]


def roots(*coefficients):
    found = Factor(flint.fmpz_poly(list(coefficients)), 1, (1,))
    return [Eigenvalue(found, k) for k in range(found.degree)]


def whole(*values):
    """Eigenvalues that are integers, each of a factor of its own, multiplicity e of each."""
    return [Eigenvalue(Factor(flint.fmpz_poly([-x, 1]), e, (e,)), 0) for x, e in values]


def of(numerator, *eigenvalues, growth=None):
    """One numerator over the factors of these roots, each as often as it occurs."""
    factors = tuple((x.factor, x.factor.multiplicity) for x in eigenvalues)
    found = Part((flint.fmpz_poly(numerator),), factors)
    if growth is not None:
        vars(found)["growth"] = growth
    return found


# --- every N-th depth alone, and phases ---

SEQUENCES = {
    "2, -2 and 1": part([[3, 1, 4], [1, -1, 2]], ([-2, 1], 1), ([2, 1], 1), ([-1, 1], 1)),
    "3 twice and -3": part([[1, 2, 3], [0, 5, -1]], ([-3, 1], 2), ([3, 1], 1)),
    "1 +- 2i, and 0 twice": part([[1, 2, 0, 7], [2, 0, 1, -3]], ([5, -2, 1], 1), ([0, 1], 2)),
    "the roots of z^3 - 2, and 1": part([[1, 2, 3, -4]], ([-2, 0, 0, 1], 1), ([-1, 1], 1)),
    "-5 alone": part([[7], [-2], [0]], ([5, 1], 1)),
}


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("period", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("first", [0, 1, 5])
def test_T14h_every_Nth_term_of_a_token_is_the_sequence_of_its_part(name, period, first):
    whole = SEQUENCES[name]
    expected = sequence(whole, first + 12 * period)[first::period]
    found = every(whole, period, first)
    assert found is not None
    assert sequence(found, 12) == expected


# --- proportion by the gap ---


@cases(
    "coefficients, expected",
    # Primitive fifth, seventh, eighth, ninth and twelfth roots of unity.
    ([1, 1, 1, 1, 1], {5}),
    ([1] * 7, {7}),
    ([1, 0, 0, 0, 1], {4}),
    ([1, 0, 0, 1, 0, 0, 1], {9}),
    ([1, 0, -1, 0, 1], {6}),
    # i, 1 + i, a sixth of a turn, 3/2 + sqrt(3)/2 i; a real root alone and with a third.
    ([1, 0, 1], {2}),
    ([2, -2, 1], {4}),
    ([1, -1, 1], {3}),
    ([3, -3, 1], {6}),
    ([-3, 1], {1}),
    ([-2, 0, 0, 1], {1, 3}),
    # 1 +- 2i, and the roots of z^4 - 2 z + 5: no power is real.
    ([5, -2, 1], {None}),
    ([5, -2, 0, 0, 1], {None}),
    # i sqrt 2, and sqrt 2 times a twelfth of a turn.
    ([2, 0, 1], {2}),
    ([4, 0, -2, 0, 1], {6}),
)
def test_T14h_the_first_real_power_of_each_root(coefficients, expected):
    assert {real_power(x) for x in roots(*coefficients)} == expected


def test_T5a_a_number_of_the_field_of_the_roots_has_so_many_conjugates():
    cubic = roots(-1, -1, 0, 1)
    real, turning = ([x for x in cubic if x.is_real == kind] for kind in (True, False))
    # One of 3 roots; a pair, in order, of 3; all of them, in order.
    asked = real, turning, cubic, turning[:1], [*real, *roots(-2, 0, 1)], roots(-1, 1)
    assert [embeddings(chosen) for chosen in asked] == [3, 6, 6, 6, 6, 1]


@pytest.mark.parametrize("c", [3, *range(8)])
def test_T5a_the_gap_bound_is_the_product_of_heights_in_the_least_number_of_bits(c):
    """1 + sum |c| 2^(k/2) is 1 + sqrt 2 for z, 1 + c for c and 1 + 2 sqrt 2 for q = 2z."""
    pair, root = roots(-2, 0, 1), math.sqrt(2)
    z, one = (of(p, pair[0], growth=Growth(tuple(pair), 0)) for p in ([0, 1], [c]))
    q = (1 + 2 * root) ** 4
    for first, heights in ((z, (1 + root) ** 2), (one, (1 + c) ** 2)):
        bound = 2 * 2**4 * heights * q * (1 + c) ** 2 * q
        found = proportionality_bits((first, one), pair)
        assert found == math.ceil(math.log2(bound)) + 64
    # Rational numbers that are integers need no more than 1.
    (two,) = roots(-2, 1)
    assert proportionality_bits((of([c], two, growth=Growth((two,), 0)),) * 2, [two]) == 64


@cases(
    "numerators, together, expected",
    # x = 1 +- 2 i: N = z and 3 z are proportional; z and 2 - z are not, though the real parts
    # of x^2 agree, and x^2 and conj(x)^2 are two frequencies: their sum would agree.
    (([0, 1], [0, 3]), False, True),
    (([0, 1], [2, -1]), False, False),
    (([0, 1], [2, -1]), True, False),
)
def test_T5a_proportional_parts_are_proved_so_and_no_others(numerators, together, expected):
    parts = tuple(part([n], ([5, -2, 1], 1)) for n in numerators)
    x, y = (Eigenvalue(parts[0].factors[0][0], k) for k in range(2))
    apart = [[(x, y), (y, x)]] if together else [[(x, y)], [(y, x)]]
    assert proportional(parts, [x, y], [[(x, x), (y, y)], *apart]) == expected


def test_T5a_evaluation_costs_heights_degrees_and_powers_of_the_largest_root():
    """(z - 6)(z - 1)^2: heights 13 and 2, the degrees 3 and 2, and 3 bits for 6 + 2 at z^3."""
    first, second = part([[1, 1, 2]], ([-6, 1], 1), ([-1, 1], 2)), part([[2**40]], ([-1, 1], 1))
    assert working_bits(first) == 128 + (4 + 8 * 3) + 3 * 3
    # Of two parts the largest cost, degree and root; a part of no root has none.
    assert working_bits(second, first) == 128 + 41 + 3 * 3
    assert working_bits(part([[0]])) == 128 + 1
    for ball, bits in (((6, 4), 4), ((6, 5), 4), ((8, 0), 3), ((1, 0), 0)):
        assert bits_of(flint.arb(*ball)) == bits


# --- two moduli ---


def test_T2_squared_moduli_that_differ_by_less_than_1_are_told_apart():
    """3 of sqrt 3, and 2.618 of (1 + sqrt 5)/2."""
    compare = Multipliers(1).compare
    (_, three), golden = roots(-3, 0, 1), roots(-1, -1, 1)
    larger = max(golden, key=lambda x: float(x.ball(64).real))
    assert compare(three, larger) == 1 and compare(larger, three) == -1


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


@cases(
    "needed, mode, answer, last",
    # 2 (448 + 64) = 1024: one bit less asks for 512 at most.
    (448, Known(radius=1), None, 1024), (447, Known(radius=1), None, 512),
    (449, Known(radius=1), None, 1024), (1, Known(radius=1), None, 128),
    # Beyond the most bits equality is not tried.
    (2**20, Known(radius=1), None, 2**21), (2**20 + 1, Known(radius=1), None, 2**15),
    # The bound is 2^-10: what may be as large as that may be a difference.
    (9.5, Known(radius=2.0**-10), None, 128), (9.5, Known(radius=2.0**-10.5), 0, 64),
    (9.5, Known(2.0**-10), 1, 64), (9.5, Known(-(2.0**-10)), -1, 64),
)  # fmt: skip
def test_T2_bits_are_spent_up_to_a_doubling_more_than_the_bound_asks_for(
    monkeypatch, needed, mode, answer, last
):
    monkeypatch.setattr(by_fractions, "gap_bits", lambda *_: needed)
    monkeypatch.setattr(by_fractions, "squared_modulus", Known.squared_modulus)
    found, bits = compare(mode, Known())
    assert found == answer and mode.asked == doubled(last)
    assert bits == (64 if answer else math.ceil(needed))
