"""T3a, T10: where the checker takes its spectra from, at the edges of each way, by hand."""

from __future__ import annotations

from fractions import Fraction

import flint
import pytest

from oversmoothing.theory.checker import spectra
from oversmoothing.theory.checker.reading import Given
from oversmoothing.theory.checker.spectra import (
    POLYNOMIAL_SIZE,
    TIE_SIZE,
    attention_balls,
    has_polynomial,
    steps,
    value_discs,
)
from tests.support.cases import cases
from tests.support.tables import identity


def given(A=None, logits=None, H=(), factors=None):
    return Given(A, logits, [list(row) for row in H], factors, None)


# --- what a characteristic polynomial may cost ---

# side^4 bits <= 2^33 allows 1,618 bits at 48.
BITS = 2**33 // 48**4


@cases(
    "entries, allowed",
    ([Fraction(1, 2 ** (BITS - 2))], True),
    ([Fraction(1, 2 ** (BITS - 1))], False),
    ([Fraction(2 ** (BITS - 1) - 1)], True),
    ([Fraction(2 ** (BITS - 1))], False),
    # Numerator and common denominator count together: 800 + 818 bits.
    ([Fraction(2**818 - 1, 2**799)], True),
    ([Fraction(2**819 - 1, 2**799)], False),
    # Of two denominators the least common multiple counts, not the second, not the product.
    ([Fraction(1, 2**1000), Fraction(1, 3**500)], False),
    ([Fraction(1, 2**1000), Fraction(1, 2**1200)], True),
)
def test_T10_the_bits_of_a_characteristic_polynomial_are_bounded(entries, allowed):
    M = [[Fraction(0)] * TIE_SIZE for _ in range(TIE_SIZE)]
    M[0][: len(entries)] = entries
    assert has_polynomial(M, TIE_SIZE) is allowed
    assert not has_polynomial(M, TIE_SIZE - 1)


# --- which sizes and precisions are tried ---

FIRST = [(160, POLYNOMIAL_SIZE), (288, POLYNOMIAL_SIZE)]
LATER = [(160, TIE_SIZE), (640, TIE_SIZE), (2560, TIE_SIZE)]


def test_T10_small_fractions_are_tried_by_polynomials_at_every_precision():
    found = list(steps(given(A=identity(POLYNOMIAL_SIZE), H=identity(1))))
    assert found == [(bits, POLYNOMIAL_SIZE) for bits in (160, 640, 2560, 10240, 40960)]
    assert list(steps(given(A=identity(POLYNOMIAL_SIZE + 1), H=identity(1)))) == FIRST + LATER


@pytest.mark.parametrize(("n", "d"), [(TIE_SIZE, TIE_SIZE + 1), (TIE_SIZE + 1, TIE_SIZE)])
def test_T10_larger_polynomials_are_tried_where_one_side_has_one(n, d):
    assert list(steps(given(A=identity(n), H=identity(d)))) == FIRST + LATER


def test_T10_where_neither_side_has_a_polynomial_discs_are_left():
    over = identity(TIE_SIZE + 1)
    assert list(steps(given(A=over, H=over))) == FIRST
    few = identity(2)
    logits = [[Fraction(0)] * 2] * 2
    # Logits have no polynomial, however few; H as factors has none either.
    assert list(steps(given(logits=logits, H=over))) == FIRST
    assert list(steps(given(A=over, factors=(few, few)))) == FIRST
    assert list(steps(given(logits=logits, factors=(few, few)))) == FIRST
    assert list(steps(given(logits=logits, H=few))) == FIRST + LATER


# --- attention in balls ---


def test_T10_attention_is_enclosed_beyond_the_precision_asked_for():
    """A third, and the softmax of (0, 1)."""
    thirds = [[Fraction(1, 3)] * 3] * 3
    logits = [[Fraction(0), None], [Fraction(0), Fraction(1)]]
    for own in (given(A=thirds), given(logits=logits)):
        for row in attention_balls(own, 160).tolist():
            for x in row:
                assert x.rad() < flint.arb(2) ** -190
    with flint.ctx.workprec(400):
        share = 1 / (1 + flint.arb(1).exp())
        found = attention_balls(given(logits=logits), 160)
        assert found[1, 0].overlaps(share) and found[1, 1].overlaps(1 - share)
        assert found[0, 0] == 1 and found[0, 1] == 0


def test_T10_softmax_of_giant_logits_is_taken_from_the_largest():
    """exp(10^9) has 1.4e9 binary places before its point; differences do not."""
    logits = [[Fraction(10**9), Fraction(10**9 + 1)], [Fraction(-(10**9)), None]]
    with flint.ctx.workprec(400):
        share = 1 / (1 + flint.arb(1).exp())
        found = attention_balls(given(logits=logits), 160)
        assert found[0, 0].overlaps(share) and found[0, 0].rad() < flint.arb(2) ** -160
        assert found[1, 0] == 1 and found[1, 1] == 0


# --- discs ---


def test_T10_the_disc_of_a_single_entry_is_as_narrow_as_was_asked_for():
    own = given(
        logits=[[Fraction(0), Fraction(1)], [Fraction(1, 3), Fraction(0)]], H=[[Fraction(1, 3)]]
    )
    for (box,) in (value_discs(own, 160)[0].boxes, spectra.attention_discs(own, 160).boxes):
        assert box.real.rad() < flint.arb(2) ** -155
