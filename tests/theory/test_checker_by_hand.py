"""T4, T5d, T6b, T10: what the checker recomputes, and what it must refuse, worked by hand."""

from __future__ import annotations

import json
import math
import time
from fractions import Fraction

import flint
import numpy as np
import pytest

import oversmoothing.theory.checker.depth as depths
from oversmoothing.theory.certificate import certify, digest
from oversmoothing.theory.checker.check import check_certificate
from oversmoothing.theory.checker.depth import check_depth
from oversmoothing.theory.checker.generic import coefficient
from oversmoothing.theory.checker.moduli import Modes, equal, equality_bits
from oversmoothing.theory.checker.operators import stationary, systems
from oversmoothing.theory.checker.reading import Given, NotACertificate, read_input
from oversmoothing.theory.checker.spectra import maximum
from oversmoothing.theory.checker.ties import check_tie
from oversmoothing.theory.depth.ratios import exact_state, squared_norms
from oversmoothing.theory.layer.layer import Layer, read_layer
from oversmoothing.theory.numbers.exact import from_flint, to_flint
from tests.forgeries.forging import refused

A2 = [["3/4", "1/4"], ["1/4", "3/4"]]
A3 = [["4/5", "1/10", "1/10"], ["3/10", "3/5", "1/10"], ["1/2", "1/5", "3/10"]]
PI3 = [Fraction(26, 40), Fraction(9, 40), Fraction(5, 40)]


def matrix(rows):
    return [[Fraction(x) for x in row] for row in rows]


def given(A, H, X0=None):
    return read_input(certify(*read_layer(A, H, X0))["input"])


def forged(body, **claim) -> str:
    """A certificate with other claims and a digest that fits."""
    copy = json.loads(json.dumps(body))
    copy["claim"] |= claim
    copy["digest"] = digest(copy)
    return json.dumps(copy)


# --- the two systems ---


@pytest.mark.parametrize("h", [["1/2"], ["-4/3"]])
def test_T1c_T1d_the_systems_of_the_checker_are_one_layer(h):
    H, X = matrix([h]), matrix([[1], [2], [4]])
    layers = [[from_flint(M) for M in system] for system in systems(matrix(A3), X)]
    (one, c), (_, y) = layers
    assert one == [[1]]
    assert c == [[sum(p * x[0] for p, x in zip(PI3, X, strict=True))]]
    assert y == [[X[1][0] - X[0][0]], [X[2][0] - X[0][0]]]
    after = exact_state(matrix(A3), H, X, [1])[1]
    moved = [
        [
            [z[0] + H[0][0] * sum(b * v[0] for b, v in zip(row, Z, strict=True))]
            for row, z in zip(T, Z, strict=True)
        ]
        for T, Z in layers
    ]
    assert moved[0] == [[sum(p * x[0] for p, x in zip(PI3, after, strict=True))]]
    assert moved[1] == [[after[1][0] - after[0][0]], [after[2][0] - after[0][0]]]


def weights(A):
    return [[Fraction(int(x.p), int(x.q)) for x in row] for row in stationary(matrix(A))]


def test_T1d_the_stationary_distribution_of_each_closed_class_is_solved_for():
    assert weights(A3) == [PI3]
    assert weights([[1, 0], [0, 1]]) == [[1, 0], [0, 1]]
    assert weights([["1/3", "2/3"], [0, 1]]) == [[0, 1]]
    # Tokens 2 and 4 form one class, token 3 another; token 1 leaves into both.
    mixed = [[0, "1/2", "1/2", 0], [0, "3/4", 0, "1/4"], [0, 0, 1, 0], [0, "1/2", 0, "1/2"]]
    assert weights(mixed) == [[0, Fraction(2, 3), 0, Fraction(1, 3)], [0, 0, 1, 0]]
    (_, c), _ = systems(matrix(mixed), matrix([[9], [3], [5], [6]]))
    assert from_flint(c) == [[4], [5]]


# --- depth ---


def first_depth(A, h, X, eps):
    states = exact_state(matrix(A), matrix([[h]]), matrix(X), range(200))
    above = [
        depth
        for depth, X_L in states.items()
        if squared_norms(X_L)[0] > eps**2 * squared_norms(X_L)[1]
    ]
    return max(above) + 1


@pytest.mark.parametrize(
    ("A", "X"), [(A2, [[1], [2]]), (A3, [[1], [2], [4]]), (A3, [[1], [0], [-1]])]
)
@pytest.mark.parametrize("eps", [Fraction(1, 1000), Fraction(1, 5)])
def test_T5d_the_depth_is_confirmed_from_the_first_true_one_on_and_refused_before(A, X, eps):
    true = first_depth(A, "1/2", X, eps)
    arguments = matrix(A), matrix([["1/2"]]), matrix(X)
    for depth in (true, true + 1, true + 10):
        assert check_depth(*arguments, depth, eps).accepted
    assert true > 1
    early = check_depth(*arguments, true - 1, eps)
    assert not early.accepted and f"does not hold at layer {true - 1}" in early.words


def test_T5d_a_depth_needs_consensus_that_wins_and_is_there():
    X = matrix([[1], [2]])
    for h in ("-1/2", "0"):
        found = check_depth(matrix(A2), matrix([[h]]), X, 50, Fraction(1, 10))
        assert not found.accepted and "smaller than consensus" in found.words
    zero_mean = matrix([[1], [-1]])
    found = check_depth(matrix(A2), matrix([["1/2"]]), zero_mean, 50, Fraction(1, 10))
    assert not found.accepted and "that X_0 contains" in found.words
    flat = check_depth(matrix(A2), matrix([["1/2"]]), matrix([[2], [2]]), 0, Fraction(1, 10))
    assert flat.accepted and "HFC = 0" in flat.words
    apart = matrix([[1, 0], [0, 1]])
    found = check_depth(apart, matrix([["1/2"]]), X, 5, Fraction(1, 10))
    assert not found.accepted and "not unique" in found.words


def test_T5d_the_left_eigenvector_of_a_non_normal_H_decides_the_depth():
    """H = [[1/2, 1], [0, -1/4]], z = (3, 4): with z^T c_0 = 0 the mode of -1/4 is what is left."""
    H, X = matrix([["1/2", 1], [0, "-1/4"]]), matrix([[1, 2], [3, 6]])
    states = exact_state(matrix(A2), H, X, range(80))
    eps = Fraction(1, 50)
    true = 1 + max(
        L for L, Y in states.items() if squared_norms(Y)[0] > eps**2 * squared_norms(Y)[1]
    )
    assert check_depth(matrix(A2), H, X, true, eps).accepted
    assert not check_depth(matrix(A2), H, X, true - 1, eps).accepted
    # c_0 = (4, -3): consensus only shrinks, and the quotient outgrows it.
    silent = matrix([[5, -2], [3, -4]])
    assert not check_depth(matrix(A2), H, silent, 40, eps).accepted


@pytest.mark.parametrize(("h", "stated"), [("1/1000", 11627), ("1e-10", 116182859815)])
def test_T5d_a_slow_rate_takes_no_longer(h, stated):
    began = time.perf_counter()
    arguments = matrix(A2), matrix([[h]]), matrix([[1], [2]])
    assert check_depth(*arguments, stated, Fraction(1, 1000)).accepted
    early = check_depth(*arguments, stated - max(2, stated // 1000), Fraction(1, 1000))
    assert not early.accepted and not early.beyond
    assert time.perf_counter() - began < 5


def test_T5d_no_depth_where_the_bound_is_not_seen_in_the_steps_allowed(monkeypatch):
    arguments = matrix(A3), matrix([["1/2"]]), matrix([[1], [2], [4]])
    monkeypatch.setattr(depths, "STEPS", 0)
    found = check_depth(*arguments, 100, Fraction(1, 10))
    assert found.beyond and "within the layers checked" in found.words


# --- ties ---


def test_T2b_a_tie_is_confirmed_and_what_is_none_is_refused_however_close():
    tie = given(A2, [["-4/3"]])
    assert check_tie(tie, None).accepted
    for h in ("1/2", "-1/2", Fraction(-4, 3) + Fraction(1, 10**9)):
        found = check_tie(given(A2, [[h]]), None)
        assert not found.accepted and "the squared radii differ" in found.words


def test_T2b_a_tie_claimed_for_a_difference_of_1e_200_is_refused():
    body = certify(Layer.of(A2, [[Fraction(-4, 3) + Fraction(1, 10**200)]]))
    assert body["claim"]["verdict"] == "NON_SMOOTHING"
    assert check_certificate(json.dumps(body)).accepted
    wide = [(-1.0).hex(), (1.0).hex()]
    for verdict in ("TIE", "SMOOTHING"):
        assert refused(forged(body, verdict=verdict, margin=wide))
    tie = certify(Layer.of(A2, [["-4/3"]]))
    assert check_certificate(json.dumps(tie)).accepted
    for verdict in ("SMOOTHING", "NON_SMOOTHING"):
        assert refused(forged(tie, verdict=verdict, margin=wide))


@pytest.mark.parametrize(
    ("A", "H", "blocks"),
    [
        (
            [["7/12", "1/12", "1/3"], ["1/12", "7/12", "1/3"], ["1/3", "1/3", "1/3"]],
            [[-2, 0, 0], [0, 0, 1], [0, 0, 0]],
            (2, 2),
        ),
        (A2, [["-4/3", 1], [0, "-4/3"]], (2, 2)),
        ([["1/2", "1/2"]] * 2, [[0, 1], [0, 0]], (2, 1)),
        (A2, [["-4/3"]], (1, 1)),
        # A has a Jordan block of 1/2: with the block of -4/3 that makes 2 + 2 - 1.
        (
            [["2/3", "2/9", "1/9"], ["1/6", "23/36", "7/36"], ["1/6", "5/36", "25/36"]],
            [["-4/3", 1], [0, "-4/3"]],
            (2, 3),
        ),
    ],
)
def test_T6b_the_blocks_at_a_tie_are_recomputed(A, H, blocks):
    case = given(A, H)
    assert largest_blocks(matrix(A), matrix(H)) == blocks
    right = check_tie(case, blocks)
    assert right.accepted and f"largest Jordan blocks {blocks[0]} and {blocks[1]}" in right.words
    for other in ((blocks[0] + 1, blocks[1]), (blocks[0], blocks[1] + 1), (0, 0)):
        wrong = check_tie(case, other)
        assert not wrong.accepted and "largest Jordan blocks" in wrong.words
        claim = {"jordan_consensus": other[0], "jordan_quotient": other[1]}
        assert refused(forged(certify(Layer.of(A, H)), **claim))


def largest_blocks(A, H):
    """From the minimal polynomials of both operators themselves."""
    B = [[x - y for x, y in zip(row[1:], A[0][1:], strict=True)] for row in A[1:]]
    k, d = len(B), len(H)
    consensus = [[x + (i == j) for j, x in enumerate(row)] for i, row in enumerate(H)]
    quotient = [
        [H[p][q] * B[i][j] + (p == q and i == j) for q in range(d) for j in range(k)]
        for p in range(d)
        for i in range(k)
    ]
    found = []
    for M in (consensus, quotient):
        roots = to_flint(M).minpoly().numer().complex_roots()
        top = max(float(abs(root).mid()) for root, _ in roots)
        found.append(max(m for root, m in roots if float(abs(root).mid()) > top - 1e-9))
    return tuple(found)


def test_the_bits_of_a_tie_are_those_of_its_norm():
    consensus, quotient = Modes(matrix(A2), matrix([["-4/3"]])).pairs(64)
    # h = -4/3, a = 1/2, no conjugates: q = 3^2 2^2.
    assert equality_bits(consensus[0], quotient[0]) == pytest.approx(math.log2(36) + 2, abs=1e-6)
    # x^2 = 2 for H: h = -sqrt 2 and sqrt 2 with a = 1/2, in 2 ways; q = 1 * 2^2.
    sides = Modes(matrix(A2), matrix([[0, 2], [1, 0]])).pairs(64)
    first, second = sides[0][0], max(sides[1], key=lambda pair: float(pair.modulus.mid()))
    size = 2 * math.log2(1 + math.sqrt(2)) + 1
    expected = 2 + (2 - 1) * (2 + size) + 2
    assert equality_bits(first, second) == pytest.approx(expected, abs=1e-3)
    assert equality_bits(first, first) == 0


def test_a_tie_by_conjugates_costs_no_bits_and_one_of_many_conjugates_is_beyond():
    """x^6 - 3 x + 3 has roots that tie by nothing but their values."""
    companion = [[int(i == j + 1) for j in range(6)] for i in range(6)]
    companion[0][5], companion[1][5] = -3, 3
    sides = Modes(matrix(A2), matrix(companion)).pairs(200)
    complex_one = next(pair for pair in sides[0] if not pair.h.real)
    mirrored = next(pair for pair in sides[0] if pair.h.index == complex_one.h.conjugate)
    assert equality_bits(complex_one, mirrored) == 0 and equal(complex_one, mirrored, 200)
    others = [pair for pair in sides[0] if pair.key != complex_one.key]
    assert all(equality_bits(complex_one, other) > 100 for other in others)
    assert all(equal(complex_one, other, 200) is False for other in others)


def test_a_tie_of_logits_or_of_large_matrices_is_beyond_the_checker():
    body = certify(Layer.of(logits=[[0.0, 1.0], [1.0, 0.0]], H=[[0.5]]))
    found = check_tie(read_input(body["input"]), None)
    assert found.beyond and "in fractions or binary64 only" in found.words
    six = [[Fraction(-4, 3) * (i == j) for j in range(6)] for i in range(6)]
    assert check_tie(given(A2, six), None).accepted
    near = [[Fraction(int(i == j), 7**40) - 2 * (i == j) for j in range(6)] for i in range(6)]
    assert not check_tie(given(A2, near), None).accepted
    wide = Given(
        matrix([[1]]),
        None,
        [[Fraction(int(i == j)) for j in range(49)] for i in range(49)],
        None,
        None,
    )
    assert check_tie(wide, None).beyond


# --- genericity ---


def test_T4e_the_checker_finds_the_coefficients_of_both_sides():
    X0 = [[1], [2], [4]]
    x = np.array([1.0, 2, 4])
    A = np.array([[float(Fraction(t)) for t in row] for row in A3])
    case = given(A3, [["-1/2"]], X0)
    pi = np.array([float(p) for p in PI3])
    expected = pi @ x / np.linalg.norm(pi) / np.linalg.norm(x)
    assert float(coefficient(case, True, 160).mid()) == pytest.approx(expected, rel=1e-14)
    values, vectors = np.linalg.eig(A.T)
    w = vectors[:, np.argmin(values)]
    expected = abs(w @ x) / np.linalg.norm(w) / np.linalg.norm(x)
    assert float(coefficient(case, False, 160).mid()) == pytest.approx(expected, rel=1e-12)
    # h > 0: the dominant pair of the quotient is that of the largest a.
    w = vectors[:, np.argsort(values)[1]]
    expected = abs(w @ x) / np.linalg.norm(w) / np.linalg.norm(x)
    case = given(A3, [["1/2"]], X0)
    assert float(coefficient(case, False, 160).mid()) == pytest.approx(expected, rel=1e-12)


def test_T4e_the_largest_modulus_is_of_1_plus_h_a():
    """h = -9/4 beats h = 1/8 at consensus: |1 + h| = 5/4 against 9/8."""
    X0 = [[1, 5], [2, 7]]
    case = given(A2, [["-9/4", 0], [0, "1/8"]], X0)
    expected = abs(1.5) / (math.sqrt(0.5) * math.sqrt(1 + 25 + 4 + 49))
    found = float(coefficient(case, True, 160).mid())
    assert found == pytest.approx(expected / 1.0, rel=1e-12)


@pytest.mark.parametrize("side", ["consensus", "quotient"])
def test_T4e_an_interval_beside_the_coefficient_is_refused(side):
    body = certify(*read_layer(A3, [["1/2" if side == "consensus" else "-1/2"]], [[1], [2], [4]]))
    assert check_certificate(json.dumps(body)).accepted
    low, high = (float.fromhex(x) for x in body["claim"]["genericity"]["coefficient"])
    for ends in ((low / 2, low * (1 - 1e-9)), (high * (1 + 1e-9), 1.0), (0.0, 1.0)):
        claim = body["claim"]["genericity"] | {"coefficient": [x.hex() for x in ends]}
        assert refused(forged(body, genericity=claim))
    wide = body["claim"]["genericity"] | {"coefficient": [(low / 2).hex(), (1.0).hex()]}
    assert check_certificate(forged(body, genericity=wide)).accepted
    other = body["claim"]["genericity"] | {
        "mode": "quotient" if side == "consensus" else "consensus"
    }
    assert refused(forged(body, genericity=other))


# --- the verdict ---


@pytest.mark.parametrize("h", ["1/2", "-1/2"])
def test_radii_and_margins_beside_the_true_ones_are_refused(h):
    body = certify(Layer.of(A2, [[h]]))
    for name in ("rho_consensus", "rho_quotient", "margin"):
        low, high = (float.fromhex(x) for x in body["claim"][name])
        for ends in ((low - 1e-3, low - 1e-9), (high + 1e-9, high + 1e-3)):
            text = forged(body, **{name: [x.hex() for x in ends]})
            found = check_certificate(text)
            assert not found.accepted and "outside the stated interval" in found.words
        assert refused(forged(body, **{name: None}))
    wide = forged(body, margin=[(-1.0).hex(), (1.0).hex()])
    found = check_certificate(wide)
    assert not found.accepted and "does not support" in found.words
    accepted = check_certificate(json.dumps(body))
    assert accepted.accepted and accepted.words.startswith(body["claim"]["verdict"])
    for verdict in {"SMOOTHING", "NON_SMOOTHING", "TIE", "TRIVIAL"} - {body["claim"]["verdict"]}:
        assert refused(forged(body, verdict=verdict))
    assert check_certificate(forged(body, verdict="UNDECIDED")).accepted


def test_negative_entries_and_wrong_row_sums_are_no_attention():
    body = certify(Layer.of(A2, [["1/2"]]))
    for rows in ([["5/4", "-1/4"], ["1/4", "3/4"]], [["3/4", "1/2"], ["1/4", "3/4"]]):
        copy = json.loads(json.dumps(body))
        copy["input"]["A"] = rows
        copy["digest"] = digest(copy)
        with pytest.raises(NotACertificate, match="not row-stochastic"):
            check_certificate(json.dumps(copy))
    causal = certify(Layer.of([[1, 0], ["1/2", "1/2"]], [["1/2"]]))
    assert check_certificate(json.dumps(causal)).accepted


def test_T11_1_one_token_has_no_block_of_differences():
    assert systems(matrix([[1]]), matrix([[3]]))[1][0].nrows() == 0
    for h, X0 in (("1/2", [[3]]), ("-1", [[3]]), ("1/2", [[0]])):
        body = certify(*read_layer([[1]], [[h]], X0))
        assert check_certificate(json.dumps(body)).accepted
        assert refused(forged(body, verdict="SMOOTHING"))
    assert refused(forged(body, verdict_x0="SMOOTHING"))


def test_row_sums_in_binary64_may_be_off_by_rounding_alone():
    body = certify(Layer.of([[0.75, 0.25], [0.25, 0.75]], [[0.5]]))
    assert check_certificate(json.dumps(body)).accepted
    body["input"]["A"][0][0] = (0.74).hex()
    body["digest"] = digest(body)
    with pytest.raises(NotACertificate, match="not row-stochastic"):
        check_certificate(json.dumps(body))


def test_the_largest_of_balls_reaches_from_its_lower_to_its_upper_end():
    found = maximum([flint.arb(1, 0.5)])
    assert float(found.lower()) <= 0.5 and float(found.upper()) >= 1.5
    found = maximum([flint.arb(1, 0.5), flint.arb(1.25, 0.125), flint.arb(0)])
    assert 1.12 < float(found.lower()) <= 1.125 and 1.5 <= float(found.upper()) < 1.51
