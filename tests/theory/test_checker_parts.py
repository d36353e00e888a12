"""T3a, T4e, T6b, T10: polynomials, ties and spectra of the checker, against numbers by hand."""

import math
from fractions import Fraction

import flint
import pytest

from oversmoothing.theory.checker import krylov, spectra
from oversmoothing.theory.checker.krylov import minimal_polynomial
from oversmoothing.theory.checker.reading import Given
from oversmoothing.theory.checker.spectra import (
    POLYNOMIAL_SIZE,
    TIE_SIZE,
    Discs,
    attention_balls,
    has_polynomial,
    left_eigenvector,
    steps,
    value_discs,
)
from oversmoothing.theory.checker.ties import Modes, equal, equality_bits
from tests.support.cases import cases
from tests.support.tables import identity, matrix, rational

# --- minimal polynomials ---


def minimal(T, H, start):
    return minimal_polynomial(rational(T), rational(H), rational(start))


def cycle(k, scale=1):
    return [[scale * ((i + 1) % k == j) for j in range(k)] for i in range(k)]


def unit(k):
    return [[int(i == 0)] for i in range(k)]


def test_T4e_what_holds_modulo_a_bad_prime_alone_is_no_relation(monkeypatch):
    """1 + a is 2 and 5, the same modulo 3."""
    assert all(flint.fmpz(p).is_prime() for p in krylov.PRIMES)
    monkeypatch.setattr(krylov, "PRIMES", (3, 2**61 - 1))
    for start in ("1; 1; 0", "1; 1; 1"):
        assert list(minimal("1 0 0; 0 4 0; 0 0 1", "1", start)) == [10, -7, 1]


def test_T4e_minimal_polynomials_take_up_to_2_to_the_33_of_degree_and_bits():
    """The degree 100 and 2^80 * 100 + 1, of 87 bits: 8.7e9 against 8.59e9."""
    assert minimal(cycle(100, 2**80), "1", unit(100)) is None
    assert minimal(cycle(100, 2**77), "1", unit(100)).degree() == 100


@cases("case, work", (("1 7; 0 3", "5", "1; 1"), 112), (("1/2", "-1/2", "1"), 3))
def test_T4e_the_work_of_a_minimal_polynomial_is_its_degree_and_the_bits_of_a_layer(
    monkeypatch, case, work
):
    for spent in (work, work - 1):
        monkeypatch.setattr(krylov, "WORK", spent)
        assert (minimal(*case) is not None) == (spent == work)


# --- the bits of a tie ---

# x^3 - 3 x + 1, of three real roots.
CUBIC = "0 0 -1; 1 0 3; 0 1 0"


def sides(A, H, bits=64):
    return Modes(matrix(A), matrix(H)).pairs(bits)


def test_T6b_the_bits_of_a_tie_are_those_of_its_norm():
    """q bits for leading coefficients, size for the largest conjugates, in so many ways."""
    for H, q, ways, size in (
        # h = -4/3 and a = 1/2: q = 3^2 2^2; h = +-sqrt 2 in 2 ways.
        ("-4/3", math.log2(36), 1, 0),
        ("0 2; 1 0", 2, 2, 2 * math.log2(1 + math.sqrt(2)) + 1),
        # 3 x^2 + 2 x + 5, a pair of conjugates: its leading coefficient once.
        ("0 -5/3; 1 -2/3", math.log2(3) + 2, 2, 2 * math.log2(1 + math.sqrt(5 / 3)) + 1),
        # Two of three real roots: 3 * 2 ways to choose others.
        (CUBIC, 2, 6, 2 * math.log2(1 + 2 * math.cos(math.pi / 9)) + 1),
    ):
        consensus, quotient = sides("AA", H)
        first = consensus[0]
        others = [pair for pair in quotient if len(quotient) < 3 or pair.h.index != first.h.index]
        second = max(others, key=lambda pair: float(pair.modulus.mid()))
        expected = q + (ways - 1) * (q + size) + 2
        assert equality_bits(first, second) == pytest.approx(expected, abs=1e-3)
        assert equality_bits(first, first) == 0


# --- discs ---


def test_a_tie_by_conjugates_costs_no_bits_and_one_of_many_conjugates_is_beyond():
    """x^6 - 3 x + 3 has roots that tie by nothing but their values."""
    companion = [[int(i == j + 1) for j in range(6)] for i in range(6)]
    companion[0][5], companion[1][5] = -3, 3
    consensus, _ = sides("AA", companion, 200)
    one = next(pair for pair in consensus if not pair.h.real)
    mirrored = next(pair for pair in consensus if pair.h.index == one.h.conjugate)
    assert equality_bits(one, mirrored) == 0 and equal(one, mirrored, 200)
    others = [pair for pair in consensus if pair.key != one.key]
    assert all(equality_bits(one, x) > 100 and equal(one, x, 200) is False for x in others)


EYE = flint.acb_mat(2, 2, [1, 0, 0, 1])


@cases(
    "rows, lam, bound",
    # y_0 = (1/2) / (lambda - 1), and at most (1/2) / (3 - 1/4).
    (([1, 0.25], [0.5, 4]), (5 + math.sqrt(9.5)) / 2, 0.5 / 2.75),
    (([0, 0], [0.5, 4]), 4, 0.125),
)
def test_T10_a_left_eigenvector_allows_for_the_disc_of_its_eigenvalue(rows, lam, bound):
    y = 0.5 / (lam - rows[0][0])
    similar = [[flint.acb(x) for x in row] for row in rows]
    boxes = [similar[0][0], similar[1][1]]
    found = left_eigenvector(Discs(boxes, [True] * 2, EYE, similar), 1)
    first, second = found.entries()
    # y^T R = lambda y^T for y = (y_0, 1).
    assert y * rows[0][1] + rows[1][1] == pytest.approx(lam)
    assert first.real.contains(y) and abs(first.real.rad() - bound) < 1e-6 and second == 1


# --- where spectra are taken from ---


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


SMALL = [(bits, POLYNOMIAL_SIZE) for bits in (160, 640, 2560, 10240, 40960)]
ONE, FEW, MOST, OVER = map(identity, (1, POLYNOMIAL_SIZE, TIE_SIZE, TIE_SIZE + 1))
TWO, LOGITS = identity(2), [[Fraction(0)] * 2] * 2


@cases(
    "given_, tried",
    # Small fractions by polynomials at every precision; larger ones where one side has one.
    ({"A": FEW, "H": ONE}, SMALL),
    ({"A": identity(POLYNOMIAL_SIZE + 1), "H": ONE}, FIRST + LATER),
    ({"A": MOST, "H": OVER}, FIRST + LATER),
    ({"A": OVER, "H": MOST}, FIRST + LATER),
    # Where neither side has one discs are left: logits have none, however few, nor have factors.
    ({"A": OVER, "H": OVER}, FIRST),
    ({"logits": LOGITS, "H": OVER}, FIRST),
    ({"A": OVER, "factors": (TWO, TWO)}, FIRST),
    ({"logits": LOGITS, "factors": (TWO, TWO)}, FIRST),
    ({"logits": LOGITS, "H": TWO}, FIRST + LATER),
)
def test_T10_polynomials_are_tried_up_to_their_sizes(given_, tried):
    assert list(steps(given(**given_))) == tried


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
