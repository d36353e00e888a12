"""T4, T5d, T6b, T10: where the checker stops, what it says then, and parts of it taken alone."""

from __future__ import annotations

import json
import warnings
from fractions import Fraction

import flint
import pytest

from oversmoothing.theory.certificate import certify, digest
from oversmoothing.theory.checker import (
    check,
    discs as disc_module,
    generic,
    krylov,
    reading,
    start,
    ties,
)
from oversmoothing.theory.checker.check import _compared, check_certificate
from oversmoothing.theory.checker.containment import Bounds, show
from oversmoothing.theory.checker.depth import _consensus_modes, check_depth, two_norm
from oversmoothing.theory.checker.discs import _merged, discs
from oversmoothing.theory.checker.generic import check_genericity
from oversmoothing.theory.checker.krylov import minimal_polynomial
from oversmoothing.theory.checker.moduli import Modes
from oversmoothing.theory.checker.operators import closed_classes, systems
from oversmoothing.theory.checker.reading import DEPTH, Given, NotACertificate, parse, read_input
from oversmoothing.theory.checker.schema import Claim, read_claim
from oversmoothing.theory.checker.ties import check_tie
from oversmoothing.theory.layer.layer import Layer

A2 = [["3/4", "1/4"], ["1/4", "3/4"]]


def matrix(rows):
    return [[Fraction(x) for x in row] for row in rows]


def given(A, H, X0=None):
    return Given(matrix(A), None, matrix(H), None, None if X0 is None else matrix(X0))


def rational(rows):
    return flint.fmpq_mat([[flint.fmpq(x.numerator, x.denominator) for x in row] for row in rows])


# --- words ---


def test_a_ball_is_shown_by_15_digits_of_its_middle():
    assert show(flint.arb(1) / 3) == "0.333333333333333"
    assert show(flint.arb(1)) == "1.00000000000000"


def test_T2_the_words_of_a_verdict_name_each_radius():
    found = check_certificate(json.dumps(certify(Layer.of(A2, [["1/2"]]))))
    assert found.words == "SMOOTHING: rho_C = 1.50000000000000, rho_Q = 1.25000000000000"
    wide = Bounds(Fraction(0), Fraction(9))
    claim = Claim("TIE", wide, wide, Bounds(Fraction(-2), Fraction(2)))
    wrong, _ = _compared(claim, flint.arb(1), flint.arb(2), flint.arb(-1))
    assert wrong == "no tie: rho_C = 1.00000000000000, rho_Q = 2.00000000000000"


def test_T2_radii_that_are_not_enclosed_are_beyond_the_checker(monkeypatch):
    body = certify(Layer.of(A2, [["1/2"]]))
    monkeypatch.setattr(check, "enclosures", lambda given: iter(()))
    found = check_certificate(json.dumps(body))
    assert not found.accepted and found.beyond and "could not be enclosed" in found.words


# --- the file ---


def test_T10_brackets_nest_to_a_depth_and_no_further():
    for text in ("[" * DEPTH + "]" * DEPTH, "[" + "[]," * 20 + "[]]", '["' + "[" * 20 + '"]'):
        with pytest.raises(NotACertificate, match="kind"):
            parse(text)
    for text in ("[" * (DEPTH + 1) + "]" * (DEPTH + 1), '{"a":' * (DEPTH + 1) + "1" + "}" * 9):
        with pytest.raises(NotACertificate, match="nested more than"):
            parse(text)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1.5"])
def test_T10_bare_numbers_that_are_no_integers_are_refused(number):
    with pytest.raises(NotACertificate, match="writes such numbers as texts"):
        parse(f'{{"kind": {number}}}')


@pytest.mark.parametrize(("d", "dense"), [(40, True), (41, False)])
def test_T10_the_H_of_a_head_is_written_out_up_to_40_features(d, dense):
    body = {"numbers": "fractions", "A": A2, "W_V": [["1"]] * d, "W_proj": [["1"] * d]}
    found = read_input(body)
    assert found.d == d and found.rational == dense


def test_T10_the_H_of_a_head_is_written_out_where_it_is_no_larger_than_its_core(monkeypatch):
    monkeypatch.setattr(reading, "DENSE_SIZE", 2)
    head = {"numbers": "fractions", "A": A2, "W_V": [["1"] * 3] * 3, "W_proj": [["1"] * 3] * 3}
    assert read_input(head).rational
    assert not read_input(head | {"W_V": [["1"]] * 3, "W_proj": [["1"] * 3]}).rational


def test_T10_an_unknown_part_of_a_coefficient_is_named():
    claim = {"verdict": "SMOOTHING", "genericity": {"mode": "consensus", "coefficient": 1, "e": 2}}
    with pytest.raises(NotACertificate, match="genericity holds 'e'"):
        read_claim(claim)


# --- operators ---


def test_T1d_one_token_has_differences_of_no_row_and_every_column():
    (one, c), (B, Y) = systems(matrix([[1]]), matrix([[3, 5]]))
    assert [(M.nrows(), M.ncols()) for M in (one, c, B, Y)] == [(1, 1), (1, 2), (0, 0), (0, 2)]


def test_T1d_tokens_that_reach_each_other_in_several_steps_are_one_class():
    assert closed_classes(matrix([[0, 1, 0], [0, 0, 1], [1, 0, 0]])) == [[0, 1, 2]]
    chain = matrix([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, "1/2", "1/2"]])
    assert closed_classes(chain) == [[2, 3]]


# --- the minimal polynomial of a start ---


def test_T4e_the_primes_of_the_krylov_vectors_are_primes():
    assert all(flint.fmpz(p).is_prime() for p in krylov.PRIMES)


def test_T4e_a_start_of_zeros_has_the_minimal_polynomial_1():
    one = rational(matrix([["1/2"]]))
    assert minimal_polynomial(one, one, flint.fmpq_mat(1, 1)) == flint.fmpz_poly([1])


def test_T4e_a_minimal_polynomial_is_bounded_by_its_degree_and_the_bits_of_a_layer(monkeypatch):
    """4 z + 1 z (-1): 3 bits, one mode; with a = 1/2 and 1/5 there are two."""
    T, H, z = (rational(matrix(M)) for M in ([["1/2"]], [["-1/2"]], [[1]]))
    assert minimal_polynomial(T, H, z)(flint.fmpq(3, 4)) == 0
    monkeypatch.setattr(krylov, "WORK", 3)
    assert minimal_polynomial(T, H, z) is not None
    monkeypatch.setattr(krylov, "WORK", 2)
    assert minimal_polynomial(T, H, z) is None
    monkeypatch.undo()
    both = rational(matrix([["1/2", 0], [0, "1/5"]]))
    start_of_two = rational(matrix([[1], [1]]))
    assert minimal_polynomial(both, H, start_of_two).degree() == 2
    monkeypatch.setattr(krylov, "DEGREE", 1)
    assert minimal_polynomial(T, H, z).degree() == 1
    assert minimal_polynomial(both, H, start_of_two) is None


def cycle(k, scale=1):
    return rational([[Fraction(scale * ((i + 1) % k == j)) for j in range(k)] for i in range(k)])


def unit(k):
    return rational([[Fraction(int(i == 0))] for i in range(k)])


def test_T4e_minimal_polynomials_are_computed_up_to_the_degree_160():
    """The k-th power of a cycle is 1: its layer 1 + a has (x - 1)^k = 1."""
    one = rational([[Fraction(1)]])
    found = minimal_polynomial(cycle(160), one, unit(160))
    assert found == flint.fmpz_poly([-1, 1]) ** 160 - 1
    assert minimal_polynomial(cycle(161), one, unit(161)) is None


def test_T4e_minimal_polynomials_take_up_to_2_to_the_33_of_degree_and_bits():
    """Of the degree 100 and 2^80 * 100 + 1, of 87 bits: 8.7e9 against 8.59e9."""
    one = rational([[Fraction(1)]])
    assert minimal_polynomial(cycle(100, 2**80), one, unit(100)) is None
    assert minimal_polynomial(cycle(100, 2**77), one, unit(100)).degree() == 100


def test_T4e_a_relation_modulo_every_prime_is_none():
    """1 + a for a = 0 and for the product of all the primes: equal modulo each of them."""
    far = (2**61 - 1) * (2**31 - 1) * (2**62 - 57)
    T = rational([[Fraction(0), Fraction(0)], [Fraction(0), Fraction(far)]])
    both = rational([[Fraction(1)], [Fraction(1)]])
    assert minimal_polynomial(T, rational([[Fraction(1)]]), both) is None


def test_T4e_modes_are_kept_that_may_be_any_of_the_roots():
    """h = 1 and h = -3: |1 + h| = 2 twice, h = 1/2 is no root."""
    consensus, _ = Modes(matrix(A2), matrix([[1, 0, 0], [0, -3, 0], [0, 0, "1/2"]])).pairs(64)
    kept = start._among(consensus, [flint.acb(2), flint.acb(-2)])
    assert sorted(float(pair.multiplier.real.mid()) for pair in kept) == [-2, 2]


# --- moduli and ties ---


def test_T14_a_further_eigenvalue_1_of_A_is_consensus_by_its_form():
    consensus, quotient = Modes(matrix([[1, 0], [0, 1]]), matrix([["1/2"]])).pairs(64)
    assert [pair.key for pair in consensus] == [pair.key for pair in quotient]


def test_T6b_a_tie_that_the_first_bits_do_not_show_is_shown_by_those_of_its_norm(monkeypatch):
    """1 + h = (3 +- 4 i)/5 has modulus 1, and so has 1 + 0 h for a = 0."""
    turning = given([["1/2", "1/2"]] * 2, [["-2/5", "-4/5"], ["4/5", "-2/5"]])
    assert check_tie(turning, None).accepted
    monkeypatch.setattr(ties, "_FIRST_BITS", (8,))
    assert check_tie(turning, (1, 1)).accepted


# --- discs ---


def merged(*rows):
    similar = [[flint.acb(x) for x in row] for row in rows]
    identity = flint.acb_mat(2, 2, [1, 0, 0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return _merged(identity, similar)


def test_T10_discs_that_meet_share_the_box_around_both():
    apart = merged([0, 0.5], [0.5, 4])
    assert apart.single == [True, True]
    assert all(box.real.rad() < 0.51 for box in apart.boxes)
    meeting = merged([0, 0.5], [0.5, 0.75])
    assert meeting.single == [False, False]
    for box in meeting.boxes:
        assert box.real.contains(-0.5) and box.real.contains(1.25) and box.imag.contains(0.5)


@pytest.mark.parametrize("ends", [(1.5e308, -1.5e308), (1.5e308, 1.5e308)])
def test_T10_discs_whose_gap_is_no_float_are_found_without_a_warning(ends):
    M = flint.acb_mat([[ends[0], 0], [0, ends[1]]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = discs(M, 160)
    assert found.single == [ends[0] != ends[1]] * 2
    assert all(any(box.contains(end) for box in found.boxes) for end in ends)


def test_T10_discs_are_found_up_to_a_side_of_320(monkeypatch):
    assert discs(flint.acb_mat(321, 321), 64) is None
    monkeypatch.setattr(disc_module, "DISC_SIZE", 2)
    assert discs(flint.acb_mat(2, 2), 64) is not None
    assert discs(flint.acb_mat(3, 3), 64) is None


def test_T10_discs_at_the_ends_of_the_floats_are_told_apart_without_a_warning():
    assert merged([1.5e308, 0], [0, -1.5e308]).single == [True, True]
    assert merged([1.5e308, 0], [0, 1.5e308]).single == [False, False]


# --- depth ---


def test_T5d_a_norm_of_an_operator_is_that_of_all_its_entries():
    for rows, size in (
        ([[-2]], 2),
        ([[0, 3], [0, 0]], 3),
        ([[3, 4], [0, 0]], 5),
        ([[0, 0]] * 2, 0),
    ):
        found = two_norm(flint.acb_mat(rows))
        assert size <= found.upper() and found < size + 1e-3


def test_T5d_the_eigenvector_of_a_complex_h_has_its_length():
    """H turns by a right angle: z = (1, +- i), of length sqrt 2, sees c_0 = (1, 0) by 1."""
    modes = _consensus_modes(matrix([[0, -1], [1, 0]]), flint.fmpq_mat(2, 1, [1, 0]))
    assert len(modes) == 2
    for modulus, content in modes:
        assert abs(modulus - flint.arb(2).sqrt()) < 1e-10
        assert abs(content - 1 / flint.arb(2).sqrt()) < 1e-10


def test_T5d_a_quotient_that_is_not_seen_to_shrink_is_beyond_the_checker():
    found = check_depth(matrix(A2), matrix([["-1/2"]]), matrix([[1], [2]]), 50, Fraction(1, 10))
    assert not found.accepted and found.beyond and "smaller than consensus" in found.words


def test_T5d_depths_are_confirmed_up_to_the_side_of_an_operator(monkeypatch):
    monkeypatch.setattr(start, "DEPTH_SIDE", 2)
    claim = Claim("SMOOTHING", verdict_x0="SMOOTHING", eps=Fraction(1, 10), depth=100)
    for n in (3, 4):
        X = [[Fraction(i + 1)] for i in range(n)]
        uniform = [[Fraction(1, n)] * n for _ in range(n)]
        found = start.check_x0(Given(uniform, None, matrix([["1/2"]]), None, X), claim)
        assert (found.accepted, found.beyond) == (n == 3, n == 4)


# --- genericity ---


def test_T4d_a_coefficient_of_1_lies_up_to_1():
    """X_0 = pi z^T, whose coefficient no other can exceed."""
    case = given(A2, [["1/2"]], [[3], [3]])
    assert check_genericity(case, Bounds(Fraction(1, 2), Fraction(1)), True).accepted


def test_T4d_a_coefficient_close_to_0_is_confirmed_with_more_bits():
    small = Fraction(1, 10**100)
    case = given(A2, [["-1/2"]], [[1], [1 + small]])
    found = check_genericity(case, Bounds(small / 10, Fraction(1)), False)
    assert found.accepted and "e-101" in found.words


@pytest.mark.parametrize(("d", "told"), [(20, True), (21, False)])
def test_T4d_a_coefficient_close_to_0_stays_open_beyond_20_features(d, told):
    small = Fraction(1, 10**100)
    H = [[Fraction(-1, 2 + 7 * i) * (i == j) for j in range(d)] for i in range(d)]
    case = given(A2, H, [[1 + small] * d, [1] * d])
    found = check_genericity(case, Bounds(small / 10**3, Fraction(1)), False)
    assert found.accepted == told and found.beyond != told


def test_T4d_a_coefficient_that_is_not_found_is_beyond_the_checker(monkeypatch):
    monkeypatch.setattr(generic, "coefficient", lambda *_: None)
    case = given(A2, [["1/2"]], [[1], [2]])
    found = check_genericity(case, Bounds(Fraction(0), Fraction(1)), True)
    assert not found.accepted and found.beyond and "could not be confirmed" in found.words


def test_a_digest_covers_the_claim():
    body = certify(Layer.of(A2, [["1/2"]]))
    assert digest(body) == body["digest"] != digest(body | {"claim": {}})
