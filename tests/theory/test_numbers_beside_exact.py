"""Numbers that stand beside the word "exact": each is the fraction, or lies between its bounds."""

import pickle
from dataclasses import replace
from fractions import Fraction

import flint
import mpmath
import numpy as np
import pytest

from oversmoothing.theory.certificate import certify
from oversmoothing.theory.checker.check import check_certificate
from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers.exact import Number
from oversmoothing.theory.support.files import to_json
from oversmoothing.theory.verdict.verdict import verdict
from tests.corpora.theory import near_tie
from tests.support.cases import cases
from tests.support.right_radii import right_radii
from tests.support.tables import matrix

A2 = [["3/4", "1/4"], ["1/4", "3/4"]]
TIE = Fraction(-4, 3)


@pytest.mark.parametrize("k", [3, 17, 100, 400, 3000])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_near_tie_is_as_far_away_as_it_is_however_near(k, sign):
    h = TIE + Fraction(sign, 10**k)
    found = verdict(A=A2, H=[[h]])
    # |1 + h| = 1/3 -+ e and |1 + h/2| = 1/3 +- e/2 for h = -4/3 +- e.
    e = Fraction(sign, 10**k)
    assert (found.rho_consensus.exact, found.rho_quotient.exact) == (-1 - h, 1 + h / 2)
    assert found.margin.exact == -3 * e / 2
    assert found.rate.exact == (1 + h / 2) / (-1 - h)
    if k == 3:
        return
    # The margin moves at 3/2 a unit of h, and at |h| a unit of a: times ||H|| and ||A||.
    with mpmath.workdps(60):
        steep = 1.5 * abs(_real(h)) + abs(_real(h)) * mpmath.sqrt(5) / 2
        told = _real(Fraction(3, 2)) / steep
        for end in (found.distance.low, found.distance.high):
            assert abs(_real(end * 10**k) / told - 1) < 1e-11


def _real(x):
    return mpmath.mpf(x.numerator) / x.denominator


@pytest.mark.parametrize("k", [17, 330, 1000])
def test_a_near_tie_below_the_floats_is_certified_and_read_back(k):
    body = certify(Layer.of(A2, [[TIE + Fraction(1, 10**k)]]))
    assert body["claim"]["verdict"] == "NON_SMOOTHING"
    found = check_certificate(to_json(body))
    assert found.accepted, found.words


@pytest.mark.parametrize("case", range(0, 60, 3))
def test_bounds_of_near_ties_hold_what_250_digits_say(case):
    given = near_tie(case)
    found = verdict(A=given["A"], H=given["H"])
    right = right_radii(given["A"], given["H"])
    for field, value in right.items():
        told = getattr(found, field)
        if value is None or not isinstance(told, Number):
            continue
        # `right` is rounded once: to half a unit in the last place.
        near = Fraction(value), abs(Fraction(value)) / 2**52 + Fraction(1, 2**1074)
        assert told.low - near[1] <= near[0] <= told.high + near[1]
        assert told.high - told.low <= abs(told.low) / 2**40 + Fraction(1, 10**300)
        assert float(told) == pytest.approx(value, rel=2**-51, abs=2**-1074)


def test_what_is_beyond_the_floats_keeps_its_digits_in_words_and_json():
    found = verdict(A=A2, H=[[TIE + Fraction(1, 10**400)]])
    assert "rate rho_Q/rho_C = 1 + 4.50e-400 a layer (" in str(found)
    assert "margin -1.5e-400" in str(found)
    assert "change of 4.3e-401 in A and H" in found.reason
    told = found.to_json_object()
    assert (told["margin"], told["rate"]) == (0.0, 1.0)
    assert told["margin_exact"] == "-3/2" + "0" * 400
    assert told["distance_exact"] == "4.2971176265636830e-401"


@cases(
    "A, h, margin, words, of_binary",
    (np.eye(2) / 2 + 0.25, 1.7e-17, None, "rho_C = 1 within rounding a layer", 8.5e-18),
    ([[1.0, 1e-20], [1e-20, 1.0]], 1.0, None, "= 1 within rounding a layer", 2e-20),
    (np.eye(2) / 2 + 0.25, 1e-13, 5e-14, "rate rho_Q/rho_C = 1 - 5e-14 a layer", 5e-14),
)
def test_a_margin_in_floats_is_told_as_far_as_rounding_shows_it(A, h, margin, words, of_binary):
    found, point = (verdict(A=A, H=[[h]], exact_binary=exact) for exact in (False, True))
    assert found.verdict == point.verdict == "SMOOTHING" and words in str(found)
    assert found.margin == (margin and pytest.approx(margin, abs=found.margin_error))
    assert (found.distance is None) == (margin is None) and "margin 0" not in str(found)
    assert point.margin == pytest.approx(of_binary, rel=1e-2) and point.distance > 0
    assert str(point).splitlines()[2].endswith(f"margin {point.margin:.3g}")
    # Who asked for it is not told to.
    assert "exact_binary" not in str(replace(found, point=True))


@cases(
    "low, high, text",
    ("3/4", "3/4", "3/4"),
    ("0.12345678901", "0.12345678904", "0.1234567890"),
    ("-1", "2", "-1 to 2"),
    ("123456", "123457", "1.2346e+5"),
)
def test_a_number_is_written_in_the_digits_that_hold(low, high, text):
    assert Number(Fraction(low), Fraction(high)).text() == text


@cases(
    "number, form, text",
    # Just above the middle of 3.02 and 3.03, where the nearest float is below it.
    ("3.02500000000000000007e-20", ".3g", "3.03e-20"),
    ("3.02500000000000000007e-20", ".2e", "3.03e-20"),
    # Past the middle by less than sixty digits show; the middle itself goes to the even digit.
    ("-0.03125" + 300 * "0" + "1", ".3g", "-0.0313"),
    ("-1/32", ".3g", "-0.0312"),
    ("-5/2", "+.3g", "-2.5"),
    ("0", ".3g", "0"),
    ("1/3", ".6g", "0.333333"),
)
def test_printed_digits_are_the_number_rounded_once(number, form, text):
    assert format(Number.of(Fraction(number)), form) == text


def test_a_number_is_a_float_that_survives_copies():
    with flint.ctx.workprec(200):
        root = Number.of(flint.arb(2).sqrt())
    assert root == 2**0.5
    assert root.low**2 < 2 < root.high**2
    assert root.high - root.low < Fraction(1, 2**190)
    again = pickle.loads(pickle.dumps(root))
    assert (again, again.low, again.high) == (root, root.low, root.high)


@pytest.mark.parametrize("digits", [12, 306, 330, 5000])
def test_a_start_shows_what_decides_after_more_layers_than_floats_count(digits):
    """pi = (2/3, 1/3), a = 1/4: x_0 = c 1 + s v with v = (1, -2), c = 4/3, s = -1/3; v outweighs 1
    once (|s| sqrt 5 / (c sqrt 2)) ((1 + h/4) / |1 + h|)^L >= 1."""
    h = Fraction(-8, 5) + Fraction(1, 10**digits)
    found = verdict(A=[["3/4", "1/4"], ["1/2", "1/2"]], H=[[h]], X0=[[1], [2]])
    with flint.ctx.workprec(8 * digits):
        q = (1 + h / 4) / -(1 + h)
        slope = flint.arb(flint.fmpq(q.numerator, q.denominator)).log()
        right = Number.of((flint.arb(32) / 5).log() / 2 / slope)
    assert f"{found.shows_from:.6g}" == f"{right:.6g}"
    if digits > 306:
        assert found.shows_from.low < right.low < right.high < found.shows_from.high
        told = found.to_json_object()["shows_from_exact"]
        assert told == f"4.4551e+{digits - 1}" and f"layer 4.46e+{digits - 1} on" in found.reason
    # A ratio that rises in every layer does so from the first on, by however little.
    tie = verdict(A=A2, H=[[TIE + Fraction(1, 10**digits)]], X0=[[1], [2]])
    assert (tie.tends_to, tie.shows_from) == ("infinity", 0)


@cases(
    "A, h, verdict_",
    ([[0.75, 0.25], [0.25, 0.75]], -4 / 3, "NON_SMOOTHING"),
    ([[0.625, 0.375], [0.375, 0.625]], -1.6, "SMOOTHING"),
    # Balls, for fractions are asked up to n = 24.
    ((0.5 * np.eye(30) + 0.5 / 30).tolist(), -4 / 3, "NON_SMOOTHING"),
)
def test_binary_numbers_near_a_tie_have_a_rate_and_a_margin_of_their_own(A, h, verdict_):
    """a = A_11 - A_12 over the row sum: rho_C = |1 + h| and rho_Q = |1 + h a|."""
    found = verdict(A=A, H=[[h]], exact_binary=True)
    row = list(map(Fraction, A[0]))
    true = abs(1 + Fraction(h)) - abs(1 + Fraction(h) * (row[0] - row[1]) / sum(row))
    assert (found.verdict, found.status, found.about) == (verdict_, "certified", "point")
    assert found.margin == pytest.approx(float(true), rel=1e-12) and found.margin != 0
    assert found.margin.low <= true <= found.margin.high
    assert [pair.consensus for pair in found.dominant] == [verdict_ == "SMOOTHING"]
    assert "rate rho_Q/rho_C = 1 a layer" not in str(found)
    assert found.distance == pytest.approx(abs(float(true)), rel=0.95)


def test_binary_numbers_at_a_tie_are_at_no_distance_from_it():
    found = verdict(A=[[0.5] * 2] * 2, H=[[-2.0, 0.1], [0.0, -0.3]], exact_binary=True)
    assert (found.verdict, found.margin, found.distance) == ("TIE", 0, 0)
    assert "A relative change" not in found.reason


@cases(
    "A, H, consensus, quotient",
    # The eigenvalues of A turn, and those of H.
    ("1/2 1/3 1/6; 1/6 1/2 1/3; 1/3 1/6 1/2", "-1/3", "2/3", None),
    ("AA", "0 -3/4; 3/4 -1", "3/4", None),
    ("AA", "0 -4/3; 4/3 0", "5/3", None),
    ("AA", "0 -8/3; 8/3 0", None, "5/3"),
    ("FLAT", "0 -1; 1 1", None, "1"),
)
def test_a_radius_that_is_a_fraction_is_given_as_one(A, H, consensus, quotient):
    answer = verdict(A=matrix(A), H=matrix(H))
    for radius, known in ((answer.rho_consensus, consensus), (answer.rho_quotient, quotient)):
        assert radius.exact == (known and Fraction(known))
