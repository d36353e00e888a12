"""The parts of the oracle: factors, enclosures of roots, equal moduli, angles."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import isclose, sqrt
from random import Random

import pytest

from .angles import Angle, limit_angles
from .factoring import factors
from .matrices import characteristic, product, rank
from .moduli import compare, vanishes
from .polynomials import composed_product, of_power_sums, power_sums, shifted, times
from .roots import roots


def by_value(q: tuple[int, ...], place: int = -1):
    """A root of q by its place among all, by real and imaginary part."""
    found = sorted(roots(q), key=lambda r: (r.ball(64).re, r.ball(64).im))
    return found[place]


@pytest.mark.parametrize("seed", range(40))
def test_a_product_has_its_factors(seed: int) -> None:
    rng = Random(seed)
    known = [(-3, 1), (0, 1), (2, 0, 1), (-2, 0, 1), (1, 1, 1), (-2, 0, 0, 1), (1, 0, 0, 0, 1),
             (1, 0, -10, 0, 1), (-10**30 - 1, 1), (-1, -1, 0, 0, 0, 1)]  # fmt: skip
    taken = rng.choices(known, k=rng.randint(1, 4))
    p: list = [1]
    for q in taken:
        p = times(p, list(q))
    assert dict(factors(tuple(p))) == {q: taken.count(q) for q in taken}


@pytest.mark.parametrize("seed", range(20))
def test_discs_hold_the_roots_that_were_drawn(seed: int) -> None:
    rng = Random(seed)
    p: list = [1]
    for _ in range(rng.randint(3, 5)):
        x, y = rng.randint(-50, 50), rng.randint(1, 5)
        p = times(p, [x * x + y * y + rng.choice((0, 1)), -2 * x, 1])
    p = shifted(p, rng.choice((0, 10**20)))
    for q, _ in factors(tuple(p)):
        found = roots(q)
        for bits in (64, 700):
            balls = [r.ball(bits) for r in found]
            total = product_of_linear(balls, bits)
            for c, b in zip(q, total, strict=True):
                assert abs(b.re - (c << bits)) <= b.error and abs(b.im) <= b.error
                assert b.error < 1 << max(bits // 2, 8 + abs(c).bit_length())


def product_of_linear(balls, bits):
    from .balls import ball

    total = [ball(1, bits)]
    for z in balls:
        zero = ball(0, bits)
        total = [x - z * y for x, y in zip([zero, *total], [*total, zero], strict=True)]
    return total


def test_characteristic_polynomial_power_sums_and_products() -> None:
    M = [[2, 1, 0], [0, 3, 4], [1, 0, -1]]
    p = characteristic(M)
    assert p == [2, 1, -4, 1]
    assert of_power_sums(power_sums(p, 3)) == p
    assert composed_product([-2, 1], [-3, 1]) == [-6, 1]
    assert composed_product([-2, 0, 1], [-3, 0, 1]) == [36, 0, -12, 0, 1]
    assert shifted([-6, 1], 5) == [-11, 1]
    assert rank([[1, 2], [2, 4], [0, 0]]) == 1
    assert product([[1, 2]], [[3], [4]]) == [[11]]


def test_moduli_are_told_apart_or_proved_equal() -> None:
    root_two, i_root_two, one_plus_i = (-2, 0, 1), (2, 0, 1), (2, -2, 1)
    assert compare(by_value(root_two), by_value(i_root_two)) == 0
    assert compare(by_value(root_two), by_value(one_plus_i)) == 0
    assert compare(by_value(root_two, 0), by_value(root_two)) == 0
    assert compare(by_value((-3, 0, 1)), by_value(one_plus_i)) == 1
    # 10^80 + 1 is no square; nor is any root of x^2 + 10^80 + 1 as large as 10^40 + 10^-41.
    assert compare(by_value((-(10**40), 1)), by_value((10**80 + 1, 0, 1))) == -1
    # x^4 - 2 has four roots of one modulus, x^4 - 2 x^2 + 2 too, and these are the same.
    quartics = [*roots((-2, 0, 0, 0, 1)), *roots((2, 0, -2, 0, 1))]
    assert all(compare(x, y) == 0 for x, y in pairwise(quartics))
    sums = by_value((1, 0, -10, 0, 1)), by_value(root_two)  # sqrt 2 + sqrt 3
    assert vanishes(lambda v: v[0] * v[0] - 2 * (v[0] * v[1]) - 1, sums)
    assert not vanishes(lambda v: v[0] * v[0] - 2 * (v[0] * v[1]) - 2, sums)


def test_a_token_without_the_dominant_mode_turns_by_its_own() -> None:
    A = [[1, 0, 0], ["1/2", "1/2", 0], ["1/4", "1/2", "1/4"]]
    A, H, X0 = ([[Fraction(x) for x in row] for row in M] for M in (A, [["-1/2"]], [[1], [3], [2]]))
    found = limit_angles(A, H, X0)
    assert {pair: rounded(angle) for pair, angle in found.items()} == {
        (0, 1): 1, (0, 2): -1, (1, 2): -1
    }  # fmt: skip


def rounded(angle: Angle) -> float:
    """Its cosine, known to more digits than a float has."""
    assert angle.how == "limit" and len(set(angle.bounds)) == 1 and angle.bounds[0] is not None
    low, high = angle.bounds[0]
    assert low <= high <= low + Fraction(1, 2**80)
    return float(low + high) / 2


def test_angles_by_hand() -> None:
    A = [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]]
    X0 = [[Fraction(1), Fraction(2)], [Fraction(3), Fraction(5)]]
    half, zero, one = Fraction(1, 2), Fraction(0), Fraction(1)
    assert rounded(limit_angles(A, [[-half, zero], [zero, -half]], X0)[0, 1]) == -1
    assert rounded(limit_angles(A, [[half, zero], [zero, -half]], X0)[0, 1]) == 1
    # |1 - 3| = 2: consensus alternates as a whole, and the tokens agree.
    assert rounded(limit_angles(A, [[-half, zero], [zero, -3 * one]], X0)[0, 1]) == 1
    still = limit_angles(A, [[zero, zero], [zero, zero]], X0)[0, 1]
    assert isclose(rounded(still), 13 / sqrt(170), rel_tol=1e-15)
    apart = [[one, zero], [zero, one]]
    assert rounded(limit_angles(apart, [[-3 * one, zero], [zero, one]], apart)[0, 1]) == 0
