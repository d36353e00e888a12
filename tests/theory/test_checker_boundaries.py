"""T4, T6b, T10: the checker at the ends of what it confirms: precisions, sizes, equal radii."""

from __future__ import annotations

from fractions import Fraction

import flint
import pytest

from oversmoothing.theory.checker import generic, spectra, start, ties
from oversmoothing.theory.checker.check import _confirms, _contradiction
from oversmoothing.theory.checker.depth import _consensus_growth
from oversmoothing.theory.checker.discs import Discs, left_eigenvector
from oversmoothing.theory.checker.reading import Given, read_input
from oversmoothing.theory.checker.spectra import maximum, precisions
from oversmoothing.theory.checker.start import verdict_of
from oversmoothing.theory.checker.ties import TIE_BITS, check_tie, tie_bits


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


def tie(monkeypatch, rho_c, rho_q):
    """What check_tie says where the radii are those balls; and the bits it asks for."""
    case = given(uniform(2), matrix([[-2]]))
    bits = int(tie_bits(case.A, case.H))
    with flint.ctx.workprec(bits + 300):
        unit = flint.arb(2) ** -bits
        enclosed = rho_c(unit), rho_q(unit)
    monkeypatch.setattr(ties, "radii", lambda given, bits, size: enclosed)
    return check_tie(case, {}).accepted


def test_T6b_a_tie_asks_for_squared_radii_closer_than_the_bound(monkeypatch):
    def ball(middle, radius):
        return lambda unit: flint.arb(1 + middle * unit, radius * unit)

    assert tie(monkeypatch, ball(0, 0), ball(0, 0))
    assert tie(monkeypatch, ball(0, 0.125), ball(0, 0.125))
    # (c - q)(c + q) may be 6 / 5.5 of the bound, where (c - q) q stays at 5 / 5.5.
    share = 1 / 5.5
    assert not tie(monkeypatch, ball(share, share), ball(0, share))
    assert tie(monkeypatch, ball(0.5 * share, 0.5 * share), ball(0, 0.5 * share))


def test_T6b_radii_known_too_coarsely_are_no_tie(monkeypatch):
    wide = flint.arb(1, 0.25)
    assert not tie(monkeypatch, lambda unit: wide, lambda unit: wide)
    assert not tie(monkeypatch, lambda unit: 1 + 4 * unit, lambda unit: flint.arb(1))


def test_T6b_jordan_blocks_of_an_operator_of_side_beyond_100_are_not_confirmed():
    claim = {"jordan_consensus": 1, "jordan_quotient": 1}
    large = given(first_only(51), diagonal([-2, -2]))
    assert tie_bits(large.A, large.H) < TIE_BITS
    assert check_tie(large, {}).accepted
    refused = check_tie(large, claim)
    assert not refused.accepted and "102 x 102" in refused.words
    assert check_tie(given(first_only(5), diagonal([-2, -2])), claim).accepted


# --- one X_0 ---


def test_T4e_a_tie_of_one_start_is_told_where_its_bits_are_spent():
    A, H, X = uniform(4), diagonal([-2, "-1/3"]), matrix([[1, 0], [2, 0], [4, 0], [8, 0]])
    assert 2560 < tie_bits(A, H) < TIE_BITS
    assert verdict_of(A, H, X) == "TIE"
    assert verdict_of(A, diagonal(["-3/2", "1/2"]), X) == "NON_SMOOTHING"


def test_T4e_a_tie_of_one_start_beyond_those_bits_is_not_told():
    n, H = 8, diagonal([-2] + [0] * 7)
    assert tie_bits(uniform(n), H) > TIE_BITS
    X = [[Fraction(i + 1 if j == 0 else 0) for j in range(8)] for i in range(n)]
    assert verdict_of(uniform(n), H, X) is None
    assert verdict_of(uniform(n), diagonal([1] + [0] * 7), X) == "SMOOTHING"


@pytest.mark.parametrize("h", ["1/2", "-2", "0"])
def test_T4e_one_token_alone_is_trivial(h):
    assert verdict_of(matrix([[1]]), matrix([[h]]), matrix([[3]])) == "TRIVIAL"
    assert verdict_of(matrix([[1]]), matrix([[-1]]), matrix([[3]])) == "UNDEFINED"


@pytest.mark.parametrize(("n", "told"), [(8, True), (9, False)])
def test_T4e_krylov_vectors_settle_one_start_up_to_eight_tokens(n, told):
    X = [[Fraction(i + 1)] for i in range(n)]
    claim = {"verdict": "SMOOTHING", "verdict_x0": "SMOOTHING"}
    found = start.check_x0(given(uniform(n), matrix([["1/2"]]), X), claim)
    assert found.accepted == told


# --- spectra ---


@pytest.mark.parametrize(("n", "bits"), [(20, (160, 640, 2560)), (21, (160, 288))])
def test_polynomials_give_way_to_discs_beyond_twenty(n, bits):
    assert precisions(given(uniform(n), matrix([[1]]))) == bits
    assert precisions(given(uniform(2), diagonal([1] * n))) == bits


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


# --- equal radii are no strict order ---


def test_T2_equal_radii_confirm_neither_strict_verdict():
    one, two = flint.arb(1), flint.arb(2)
    for verdict in ("SMOOTHING", "NON_SMOOTHING"):
        assert not _confirms(verdict, one, one)
        assert _confirms(verdict, one, two) == (verdict == "NON_SMOOTHING")
        assert _confirms(verdict, two, one) == (verdict == "SMOOTHING")
    assert not _confirms("TIE", one, one)


def test_T2_a_contradiction_is_one_of_order_alone():
    def said(verdict, c, q, low, high):
        wide = Fraction(0), Fraction(9)
        margin = Fraction(low), Fraction(high)
        return _contradiction(verdict, flint.arb(c), flint.arb(q), wide, wide, margin)

    assert said("SMOOTHING", 2, 1, "1/2", 2) is None
    assert said("NON_SMOOTHING", 1, 2, -2, "-1/2") is None
    assert said("TIE", 1, 1, -1, 1) is None
    assert "no tie" in said("TIE", 1, 2, -2, 1) and "no tie" in said("TIE", 2, 1, -2, 1)
    assert "does not support" in said("SMOOTHING", 2, 1, -1, 2)
    assert "outside" in said("SMOOTHING", 2, 1, 2, 3)


@pytest.mark.parametrize(
    ("verdict", "c", "q"), [("SMOOTHING", (1, 2), (3, 0.5)), ("NON_SMOOTHING", (3, 0.5), (1, 2))]
)
def test_T2_a_margin_of_the_right_sign_is_no_excuse_for_the_wrong_order(verdict, c, q):
    """Balls so wide that the stated margin lies within theirs, and certain in their order."""
    rho_c, rho_q = Ordered(*c), Ordered(*q)
    wide = Fraction(-9), Fraction(9)
    margin = (Fraction(1), Fraction(2)) if verdict == "SMOOTHING" else (Fraction(-2), Fraction(-1))
    assert "is false" in _contradiction(verdict, rho_c, rho_q, wide, wide, margin)


class Ordered:
    """A number whose differences are known to nothing: as balls are after much cancellation."""

    def __init__(self, middle, radius):
        self.middle, self.ball = middle, flint.arb(middle, radius)

    def __sub__(self, other):
        return flint.arb(0, 100)

    def __lt__(self, other):
        return self.middle < other.middle if isinstance(other, Ordered) else self.ball < other

    def __gt__(self, other):
        return self.middle > other.middle if isinstance(other, Ordered) else self.ball > other

    def str(self, *arguments, **options):
        return self.ball.str(*arguments, **options)


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
    modulus, content = _consensus_growth(H, c)
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
        with pytest.raises(ValueError, match="not square, or have a row"):
            read(bad)
