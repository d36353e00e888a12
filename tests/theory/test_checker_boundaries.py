"""T4, T6b, T10: the checker at the ends of what it confirms: precisions, sizes, equal radii."""

from __future__ import annotations

from fractions import Fraction

import flint
import pytest

from oversmoothing.theory.checker import generic, spectra, start, ties
from oversmoothing.theory.checker.check import _compared
from oversmoothing.theory.checker.containment import Bounds, contained
from oversmoothing.theory.checker.depth import _consensus_modes
from oversmoothing.theory.checker.discs import Discs, left_eigenvector
from oversmoothing.theory.checker.moduli import Pair, Polynomial, Root, equal, equality_bits
from oversmoothing.theory.checker.reading import Given, NotACertificate, read_input
from oversmoothing.theory.checker.schema import Claim
from oversmoothing.theory.checker.spectra import maximum, steps
from oversmoothing.theory.checker.start import verdict_of
from oversmoothing.theory.checker.ties import check_tie


def matrix(rows):
    return [[Fraction(x) for x in row] for row in rows]


def diagonal(values):
    return [[Fraction(x) * (i == j) for j in range(len(values))] for i, x in enumerate(values)]


def uniform(n):
    return [[Fraction(1, n)] * n for _ in range(n)]


def first_only(n):
    """Every token attends to the first: a = 0 but for one 1."""
    return [[Fraction(int(j == 0)) for j in range(n)] for _ in range(n)]


def given(A, H, X0=None):
    return Given(A, None, H, None, X0)


# --- ties ---


def pair(modulus, number=0):
    """A mode of consensus, h = -2 - number, whose modulus is known in that ball."""
    poly = Polynomial(flint.fmpz_poly([2 + number, 1]), 1)
    return Pair(Root(poly, number, 0, 0, flint.acb(-2 - number)), None, flint.acb(modulus), modulus)


def test_T6b_equality_asks_for_squares_closer_than_the_bound():
    bits = int(equality_bits(pair(flint.arb(1)), pair(flint.arb(1), 1)) + 1)
    with flint.ctx.workprec(400):
        unit = flint.arb(2) ** -bits

        def said(first, second):
            balls = (
                flint.arb(1 + middle * unit, radius * unit) for middle, radius in (first, second)
            )
            one, other = balls
            return equal(pair(one), pair(other, 1), 400)

        assert said((0, 0), (0, 0)) is True
        assert said((0, 0.12), (0, 0.12)) is True
        # The squares differ by twice as much as the moduli.
        assert said((0.3, 0.3), (0, 0.3)) is None
        assert said((1, 0.1), (0, 0.1)) is False
        assert said((0, 0), (4, 0)) is False


def test_T6b_radii_known_too_coarsely_are_no_tie():
    wide = flint.arb(1, 0.25)
    assert equal(pair(wide), pair(wide, 1), 400) is None
    # The same root needs no bits.
    assert equal(pair(wide), pair(wide), 400) is True


def test_T6b_a_tie_beyond_the_bits_that_are_spent_is_beyond_the_checker(monkeypatch):
    case = given(uniform(2), matrix([[0, 2], [1, 0]]))
    tie = given(uniform(2), matrix([[-2, 0], [0, "-1/3"]]))
    assert check_tie(tie, None).accepted
    far = check_tie(case, None)
    assert not far.accepted and not far.beyond
    monkeypatch.setattr(ties, "TIE_BITS", 0)
    monkeypatch.setattr(ties, "equal", lambda first, second, bits: None)
    refused = check_tie(tie, None)
    assert refused.beyond and "more than are spent" in refused.words


@pytest.mark.parametrize(("n", "told"), [(48, True), (49, False)])
def test_T6b_ties_are_confirmed_up_to_a_side_of_48(n, told):
    found = check_tie(given(first_only(n), diagonal([-2, -2])), (1, 1))
    assert found.accepted == told and found.beyond != told


# --- one X_0 ---


def test_T4e_a_tie_of_one_start_is_told_by_the_modes_that_it_contains():
    A, X = uniform(4), matrix([[1, 0], [2, 0], [4, 0], [8, 0]])
    assert verdict_of(A, diagonal([-2, "-1/3"]), X) == "TIE"
    assert verdict_of(A, diagonal(["-3/2", "1/2"]), X) == "NON_SMOOTHING"
    n, H = 8, diagonal([-2] + [0] * 7)
    X = [[Fraction(i + 1 if j == 0 else 0) for j in range(8)] for i in range(n)]
    assert verdict_of(uniform(n), H, X) == "TIE"
    assert verdict_of(uniform(n), diagonal([1] + [0] * 7), X) == "SMOOTHING"


@pytest.mark.parametrize("power", [10, 100, 3000])
def test_T4e_a_content_however_small_is_there(power):
    A2 = matrix([["3/4", "1/4"], ["1/4", "3/4"]])
    X = [[Fraction(1)], [1 + Fraction(1, 10**power)]]
    assert verdict_of(A2, matrix([["-1/2"]]), X) == "NON_SMOOTHING"
    assert verdict_of(A2, matrix([["-1/2"]]), matrix([[1], [1]])) == "TRIVIAL"
    assert verdict_of(A2, [[Fraction(1, 10**power)]], matrix([[1], [2]])) == "SMOOTHING"
    vanishing = [[Fraction(-1) + Fraction(1, 10**power)]]
    assert verdict_of(A2, vanishing, matrix([[1], [1]])) == "TRIVIAL"
    assert verdict_of(A2, matrix([[-1]]), matrix([[1], [1]])) == "UNDEFINED"


def test_T14_several_closed_classes_have_a_consensus_each():
    apart = diagonal([1, 1])
    for X in ([[0], [1]], [[1], [-1]], [[2], [3]]):
        assert verdict_of(apart, matrix([["1/2"]]), matrix(X)) == "TIE"
    assert verdict_of(apart, matrix([["1/2"]]), matrix([[1], [1]])) == "TRIVIAL"
    assert verdict_of(apart, matrix([[-1]]), matrix([[1], [2]])) == "UNDEFINED"
    # Within the first class the difference decays, between the classes it stays.
    A = matrix([["3/4", "1/4", 0], ["1/4", "3/4", 0], [0, 0, 1]])
    assert verdict_of(A, matrix([["1/2"]]), matrix([[1], [2], [3]])) == "TIE"
    assert verdict_of(A, matrix([["1/2"]]), matrix([[0], [2], [1]])) == "SMOOTHING"
    assert verdict_of(A, matrix([["-1/2"]]), matrix([[1], [-1], [0]])) == "NON_SMOOTHING"


@pytest.mark.parametrize("h", ["1/2", "-2", "0"])
def test_T4e_one_token_alone_is_trivial(h):
    assert verdict_of(matrix([[1]]), matrix([[h]]), matrix([[3]])) == "TRIVIAL"
    assert verdict_of(matrix([[1]]), matrix([[-1]]), matrix([[3]])) == "UNDEFINED"


@pytest.mark.parametrize(("n", "told"), [(9, True), (48, True), (49, False)])
def test_T4e_krylov_vectors_settle_one_start_up_to_48_tokens(n, told):
    X = [[Fraction(i + 1)] for i in range(n)]
    claim = Claim("SMOOTHING", verdict_x0="SMOOTHING")
    found = start.check_x0(given(uniform(n), matrix([["1/2"]]), X), claim)
    assert found.accepted == told and found.beyond != told


# --- spectra ---


def test_polynomials_give_way_to_discs_beyond_twenty_and_come_back_where_discs_fail():
    small = [(bits, 20) for bits in (160, 640, 2560, 10240, 40960)]
    discs = [(160, 20), (288, 20)]
    more = [(160, 48), (640, 48), (2560, 48)]
    one = matrix([[1]])
    assert list(steps(given(uniform(20), one))) == small
    assert list(steps(given(uniform(2), diagonal([1] * 20)))) == small
    assert list(steps(given(uniform(21), one))) == discs + more
    assert list(steps(given(uniform(2), diagonal([1] * 21)))) == discs + more
    assert list(steps(given(uniform(49), diagonal([1] * 49)))) == discs
    assert list(steps(Given(None, [[Fraction(0)]], [], None, None))) == discs


@pytest.mark.parametrize(("d", "polynomial"), [(20, True), (21, False)])
def test_a_value_projection_is_enclosed_by_discs_beyond_the_size(monkeypatch, d, polynomial):
    asked = []
    discs_of = spectra.value_discs
    monkeypatch.setattr(
        spectra, "value_discs", lambda given, bits: asked.append(bits) or discs_of(given, bits)
    )
    _, h = spectra.eigenvalues(given(uniform(2), diagonal(range(d))), 160, 20)
    assert bool(asked) != polynomial
    found = sorted(float(x.real.mid()) for x in h)
    assert found == pytest.approx(list(range(d)), abs=1e-30)


def test_the_largest_of_several_balls_reaches_from_the_largest_low_to_the_largest_high():
    one = maximum([flint.arb(3, 0.5)])
    assert one.lower() <= 2.5 and one.upper() >= 3.5
    found = maximum([flint.arb(3, 1), flint.arb(2, 3), flint.arb(1)])
    assert abs(found.lower() - 2) < 1e-6 and abs(found.upper() - 5) < 1e-6
    with pytest.raises(IndexError):
        maximum([])


# --- a stated interval contains the whole ball ---


def test_a_ball_is_contained_whole_or_not_at_all():
    def said(low, high, ball, **known):
        return contained(ball, Bounds(low, high), **known)

    ball = flint.arb(1, 0.25)
    assert said(Fraction(1, 2), Fraction(2), ball) is True
    for low, high in ((1, 2), (0, 1), (Fraction(9, 10), Fraction(11, 10))):
        assert said(Fraction(low), Fraction(high), ball) is None
    for low, high in ((2, 3), (-1, Fraction(1, 2))):
        assert said(Fraction(low), Fraction(high), ball) is False
    one = flint.arb(1)
    assert said(Fraction(1), Fraction(1), one) is True
    assert said(None, None, ball) is True and said(None, Fraction(1), ball) is None
    assert said(Fraction(2), None, ball) is False and said(Fraction(0), None, ball) is True
    # What is known of the number is no part of the ball's doubt.
    near_zero = flint.arb(0, 0.25)
    assert said(Fraction(0), Fraction(1), near_zero) is None
    assert said(Fraction(0), Fraction(1), near_zero, at_least=Fraction(0)) is True
    assert said(Fraction(0), Fraction(1), flint.arb(1, 0.5), at_most=Fraction(1)) is True
    assert said(Fraction(0), Fraction(9), flint.arb("nan")) is None


# --- equal radii are no strict order ---


def said(verdict, c, q, low, high):
    wide = Bounds(Fraction(0), Fraction(9))
    claim = Claim(verdict, wide, wide, Bounds(Fraction(low), Fraction(high)))
    c, q = flint.arb(c), flint.arb(q)
    return _compared(claim, c, q, c - q)


def test_T2_a_contradiction_is_one_of_order_alone():
    assert said("SMOOTHING", 2, 1, "1/2", 2) == ("", "")
    assert said("NON_SMOOTHING", 1, 2, -2, "-1/2") == ("", "")
    assert said("TIE", 1, 1, -1, 1) == ("", "")
    assert "no tie" in said("TIE", 1, 2, -2, 1)[0] and "no tie" in said("TIE", 2, 1, -2, 1)[0]
    assert "does not support" in said("SMOOTHING", 2, 1, -1, 2)[0]
    assert "does not support" in said("SMOOTHING", 2, 1, 0, 2)[0]
    assert "does not support" in said("NON_SMOOTHING", 1, 2, -2, 0)[0]
    assert "does not support" in said("TIE", 1, 1, "1/9", 1)[0]
    assert "does not support" in said("TIE", 1, 1, -1, "-1/9")[0]
    assert "outside" in said("SMOOTHING", 2, 1, 2, 3)[0]


@pytest.mark.parametrize("verdict", ["SMOOTHING", "NON_SMOOTHING"])
def test_T2_a_margin_of_the_right_sign_is_no_excuse_for_the_wrong_order(verdict):
    """Balls so wide that the stated margin lies within theirs, and certain in their order."""
    wide = Bounds(Fraction(0), Fraction(9))
    smooth = verdict == "SMOOTHING"
    margin = Bounds(Fraction(1), Fraction(2)) if smooth else Bounds(Fraction(-2), Fraction(-1))
    claim = Claim(verdict, wide, wide, margin)
    one, two, doubt = flint.arb(1), flint.arb(2), flint.arb(0, 100)
    wrong, _ = _compared(claim, *((one, two) if smooth else (two, one)), doubt)
    assert "is false" in wrong
    same, missing = _compared(claim, one, one, doubt)
    assert not same and missing


def test_a_radius_that_is_not_seen_within_its_interval_is_not_confirmed():
    wide, narrow = Bounds(Fraction(0), Fraction(9)), Bounds(Fraction(2), Fraction(9))
    claim = Claim("UNDECIDED", narrow, wide)
    wrong, missing = _compared(claim, flint.arb(2, 0.5), flint.arb(1), None)
    assert not wrong and "rho_consensus could not be seen" in missing
    wrong, _ = _compared(claim, flint.arb(1, 0.5), flint.arb(1), None)
    assert "rho_consensus is" in wrong


# --- genericity, depth, eigenvectors ---


def test_T4d_no_coefficient_without_the_attention_that_it_needs(monkeypatch):
    case = given(uniform(2), matrix([["1/2"]]), matrix([[1], [2]]))
    assert generic.coefficient(case, True, 160) > 0
    monkeypatch.setattr(generic, "attention_discs", lambda given, bits: None)
    assert generic.coefficient(case, False, 160) is None
    assert generic.coefficient(case, True, 160) > 0
    monkeypatch.setattr(generic, "value_discs", lambda given, bits: (None, None, False))
    assert generic.coefficient(case, True, 160) is None


@pytest.mark.parametrize("scale", [1, 3])
def test_T5d_the_content_of_a_start_is_over_the_length_of_the_eigenvector(scale):
    """z = (1, 1) up to its length for h = 1, and z = (0, 1) for h = 1/2."""
    H = matrix([["1", "1/2"], ["0", "1/2"]])
    c = flint.fmpq_mat(2, 1, [scale, 0])
    (modulus, content), (smaller, _) = _consensus_modes(H, flint.fmpq_mat(2, 1, [scale, 1]))
    assert abs(modulus - 2) < 1e-10 and abs(smaller - 1.5) < 1e-10
    (modulus, content), *none = _consensus_modes(H, c)
    assert not none
    assert abs(modulus - 2) < 1e-10 and abs(content - scale / flint.arb(2).sqrt()) < 1e-10


def test_T10_a_left_eigenvector_lies_in_its_ball():
    """R = [[0, 0], [e, 4]]: y^T R = 4 y^T for y = (e / 4, 1), of which the bound allows e / 4."""
    e = flint.arb(0.5)
    similar = [[flint.acb(0), flint.acb(0)], [flint.acb(e), flint.acb(4)]]
    boxes = [flint.acb(0), flint.acb(4)]
    identity = flint.acb_mat(2, 2, [1, 0, 0, 1])
    y = left_eigenvector(Discs(boxes, [True, True], identity, similar), 1).entries()
    assert y[0].real.contains(e / 4) and y[0].imag.contains(0)
    assert y[0].real.rad() < 0.2
    assert y[1].real == 1


def test_T10_logits_need_every_row_as_long_as_they_are_many_and_one_that_is_not_masked():
    def read(logits):
        return read_input({"numbers": "fractions", "logits": logits, "H": [["1"]]})

    assert read([["0", "-inf"], ["0", "1"]]).n == 2
    for bad in ([["0", "1"], ["-inf", "-inf"]], [["0", "1"], ["0"]], [["0"], ["0", "1"]]):
        with pytest.raises(NotACertificate, match=r"not square, or have a row|ragged"):
            read(bad)
