"""T1, T4, T6, T11: states, exact eigenvalues and modes on cases worked by hand."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from oversmoothing.theory.depth.ratios import (
    Ratio,
    ball_ratios,
    exact_state,
    ratio_of_squares,
    ratios_at,
    squared_norms,
)
from oversmoothing.theory.layer.attention import (
    closed_classes,
    complement_basis,
    perron_deviation,
    quotient,
    rational_quotient,
    stationary_distribution,
)
from oversmoothing.theory.layer.layer import read_layer
from oversmoothing.theory.numbers.exact import exact_stationary
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.spectra.algebraic import eigenvalues, factors
from oversmoothing.theory.verdict.by_fractions import Mode, compare, jordan_size


def matrix(*rows):
    return [[Fraction(x) for x in row] for row in rows]


def column(*values):
    return [[Fraction(x)] for x in values]


HALVES = [Fraction(1, 2)] * 2
A2 = matrix(["3/4", "1/4"], ["1/4", "3/4"])
A3 = matrix(["4/5", "1/10", "1/10"], ["3/10", "3/5", "1/10"], ["1/2", "1/5", "3/10"])
PI3 = [Fraction(26, 40), Fraction(9, 40), Fraction(5, 40)]
# Rational, with the eigenvalues 1, -7/20 +- (7 sqrt 3/20) i.
C3 = matrix(["1/10", "4/5", "1/10"], ["1/10", "1/10", "4/5"], ["4/5", "1/10", "1/10"])


def floats(rows):
    return np.array([[float(x) for x in row] for row in rows])


def test_T11_7_the_ratio_of_squares_in_every_degenerate_case():
    zero, one = Fraction(0), Fraction(1)
    assert ratio_of_squares(zero, zero) == Ratio(None, None)
    assert ratio_of_squares(one, zero) == Ratio(math.inf, math.inf)
    assert ratio_of_squares(zero, one) == Ratio(0.0, -math.inf, zero)
    found = ratio_of_squares(Fraction(1, 4), Fraction(9))
    assert (found.value, found.squared) == (pytest.approx(1 / 6), Fraction(1, 36))
    assert found.log == pytest.approx(-math.log(6))


@pytest.mark.parametrize("power", [-2200, -2060, -1400, -300, 300, 1400, 2040, 2060, 2200])
def test_T11_5_a_ratio_keeps_its_logarithm_where_a_float_cannot_hold_it(power):
    found = ratio_of_squares(Fraction(2) ** power, Fraction(1))
    assert found.log == pytest.approx(power / 2 * math.log(2), rel=1e-15)
    if abs(power) < 2030:
        assert found.value == 2.0 ** (power // 2)
    elif power > 2050:
        assert found.value == math.inf
    else:
        assert found.value == pytest.approx(math.exp(found.log), rel=1e-12)


def test_T11_4_a_part_that_dies_is_gone_from_its_layer_on():
    # h = -2 and a = 1/2: HFC dies in one layer. h = -1: consensus does.
    for h, X0, start, end in (
        (-2, (1, 2), 1 / 3, Ratio(0.0, -math.inf)), (-1, (1, 2), 1 / 3, Ratio(math.inf, math.inf)),
        (-2, (1, -1), math.inf, Ratio(None, None)),
    ):  # fmt: skip
        found = ball_ratios(A2, column(h), column(*X0), HALVES, [0, 1, 9])
        assert found[1] == found[9] == end and found[0].value == pytest.approx(start)
    # A nilpotent block of size 2 lives for one layer more.
    H, X0 = matrix([-1, 1], [0, -1]), matrix([1, 2], [3, 5])
    found = ball_ratios(A2, H, X0, HALVES, [1, 2])
    assert 0 < found[1].value < math.inf and found[2].value == math.inf
    # With pi other than 1/n the mean lives on in what HFC leaves of it.
    other = ball_ratios(A3, column(-1), column(1, 2, 4), PI3, [3])[3]
    assert other.value == pytest.approx(math.sqrt(1819399 / 423200), rel=1e-15)


def test_T1d_one_entry_of_pi_at_1_over_n_is_not_all_of_them():
    pi = [Fraction(1, 3), Fraction(1, 2), Fraction(1, 6)]
    A = [[(p + (i == j)) / 2 for j, p in enumerate(pi)] for i in range(3)]
    # h = -1: consensus dies, HFC halves at a = 1/2, and the mean is what pi - 1/n makes of it.
    found = ball_ratios(A, column(-1), column(1, 2, 4), pi, [1, 5])
    for depth, X in exact_state(A, column(-1), column(1, 2, 4), [1, 5]).items():
        expected = ratio_of_squares(*squared_norms(X)).value
        assert found[depth].value == pytest.approx(expected, rel=1e-14) and expected < math.inf


def test_T11_8_a_state_free_of_the_dominant_mode_stays_so_in_balls_at_any_depth():
    """v = (-1, -1, 7) at a = 1/5 has pi^T v = 0: HFC/LFC = 8 sqrt 2/5 at every depth, though the
    mode of a = 1/2 would outgrow it by 1.25 a layer: deep ratios need more bits."""
    found = ball_ratios(A3, column(1), column(-1, -1, 7), PI3, [1, 40, 3000])
    assert list(found) == [1, 40, 3000]
    for ratio in found.values():
        assert ratio.value == pytest.approx(8 * math.sqrt(2) / 5, rel=1e-15)


@pytest.mark.parametrize("h", ["1/2", "-1/2", "-4/3"])
def test_T11_7_a_mean_that_is_0_is_0_at_every_depth(h):
    """A is not doubly stochastic, yet 1^T A v = 0 for the X_0 = v here: LFC = 0 for ever."""
    A = matrix(["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"], ["1/3", "1/3", "1/3"])
    case, start = read_layer(A, [[h]], column(1, -1, 0))
    found = ratios_at(case, start, [0, 1, 64, 65, 1000, 10**6])
    assert all(ratio.value == ratio.log == math.inf for ratio in found.values())


def test_roots_keep_their_order_at_every_precision_and_know_their_conjugates():
    (factor,) = (f for f in factors(C3) if f.degree == 2)
    coarse, fine = factor.roots(64), factor.roots(512)
    assert all(a.overlaps(b) for a, b in zip(coarse, fine, strict=True))
    assert factor.conjugate_index == [1, 0] and factor.leading == 100
    first, second = eigenvalues([factor])
    assert first.conjugate == second and not first.is_real and not first.is_zero
    value = complex(first.ball(64).mid())
    assert abs(complex(value.real, abs(value.imag)) - complex(-0.35, 0.35 * math.sqrt(3))) < 1e-12
    (real,) = factors(matrix([0, 2], [1, 0]))
    assert real.conjugate_index == [0, 1] and all(x.is_real for x in eigenvalues([real]))


def test_zero_and_one_are_recognised_exactly():
    every = factors(matrix([0, 0, 0], [0, 1, 0], [0, 0, 2]))
    said = {str(f.polynomial): (x.is_zero, x.is_one) for f in every for x in eigenvalues([f])}
    assert said == {"x": (True, False), "x + (-1)": (False, True), "x + (-2)": (False, False)}
    assert factors([]) == []


def test_T6a_jordan_sizes_come_largest_first():
    M = matrix([2, 1, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [0, 0, 0, 5])
    found = {int(-f.polynomial[0]): f for f in factors(M)}
    assert found[2].jordan == (2, 1) and found[2].multiplicity == 3 and found[5].jordan == (1,)
    assert found[2].rational_root == 2


def modes(A, H):
    a, h = eigenvalues(factors(rational_quotient(A))), eigenvalues(factors(H))
    return [Mode(None, x) for x in h], [Mode(x, y) for x in a for y in h]


def test_T3f_pairs_tie_by_structure_only_with_their_joint_conjugates():
    consensus, quotient_modes = modes(C3, matrix(["1/5", "-3/2"], ["3/2", "1/5"]))
    assert consensus[0].structural == consensus[1].structural
    keys = [mode.structural for mode in quotient_modes]
    assert len(keys) == 4 and len(set(keys)) == 2
    for first in quotient_modes:
        for second in quotient_modes:
            sign, bits = compare(first, second)
            same = first.structural == second.structural
            assert (sign == 0) == same and (bits == 0) == same
    zero = modes(A2, matrix([0]))
    assert zero[0][0].structural == zero[1][0].structural
    with at_precision(64):
        assert zero[1][0].ball(64) == 1


def test_T6a_the_largest_block_of_a_mode():
    at_0, at_2 = matrix([0, 1], [0, 0]), matrix([2, 1], [0, 2])
    assert jordan_size(modes(A2, at_0)[0][0]) == 2
    flat = matrix(["1/2", "1/2"], ["1/2", "1/2"])
    # A Jordan block of size 2 at a = 1/4 (doubly stochastic), against one of size 2 at h.
    quarter = Fraction(1, 4)
    u, w = [1, -1, 0], [1, 1, -2]
    block = [
        [quarter * (i == j) + quarter + Fraction(u[i] * w[j], 24) for j in range(3)]
        for i in range(3)
    ]
    for A, H, size in (
        (A2, at_0, 2), (A2, at_2, 2), (flat, at_0, 1), (flat, at_2, 1),
        (block, at_2, 3), (block, at_0, 2), (block, matrix([2]), 2),
    ):  # fmt: skip
        assert jordan_size(modes(A, H)[1][0]) == size


def test_T1d_closed_classes_are_read_off_the_zeros():
    blocks = np.array([[0.5, 0.5, 0, 0], [1, 0, 0, 0], [0.25, 0.25, 0.25, 0.25], [0, 0, 0, 1]])
    assert [c.tolist() for c in closed_classes(blocks)] in ([[0, 1], [3]], [[3], [0, 1]])
    assert [c.tolist() for c in closed_classes(np.eye(2))] in ([[0], [1]], [[1], [0]])
    assert [c.tolist() for c in closed_classes(np.full((2, 2), 0.5))] == [[0, 1]]
    pi = stationary_distribution(blocks)
    assert pi == pytest.approx([1 / 3, 1 / 6, 0, 1 / 2])


def test_T1d_the_stationary_distribution_of_a_nearly_reducible_A_is_right_to_every_digit():
    e, f = 2.0**-40, 2.0**-38
    pi = stationary_distribution(np.array([[1 - e, e], [f, 1 - f]]))
    assert pi == pytest.approx([0.8, 0.2], rel=1e-15)
    A = floats(A3)
    assert stationary_distribution(A) == pytest.approx([0.65, 0.225, 0.125], rel=1e-15)
    assert perron_deviation(np.array([0.65, 0.225, 0.125])) == pytest.approx(
        math.sqrt(0.65**2 + 0.225**2 + 0.125**2 - 1 / 3)
    )


def test_T1f_doubly_stochastic_up_to_rounding_means_1_over_n_exactly():
    A = np.full((3, 3), 1 / 3)
    assert stationary_distribution(A).tolist() == [1 / 3] * 3
    A[0] += (2e-16, -2e-16, 0)
    assert stationary_distribution(A).tolist() == [1 / 3] * 3
    A[0] += (1e-9, -1e-9, 0)
    assert stationary_distribution(A).tolist() != [1 / 3] * 3


def test_T1c_the_quotient_in_both_coordinates_and_over_a_stack():
    assert rational_quotient(A3) == matrix(["3/10", "-1/10"], ["-1/5", "2/5"])
    A = floats(A3)
    Q = complement_basis(3)
    assert quotient(A) == pytest.approx(Q.T @ A @ Q, abs=1e-15)
    assert np.sort(np.linalg.eigvals(quotient(A))) == pytest.approx([0.2, 0.5])
    stack = np.stack([A, A.T, np.eye(3)]).reshape(3, 1, 3, 3)
    assert quotient(stack).shape == (3, 1, 2, 2)
    assert quotient(stack)[1, 0] == pytest.approx(quotient(A.T), abs=1e-15)
    rows = np.tile([0.7, 0.2, 0.1], (3, 1))
    rows += 1e-12 * np.array([[1, -1, 0], [0, 1, -1], [0, 0, 0.0]])
    with mp.workdps(60):
        u = mp.matrix([1 / mp.sqrt(3) + (i == 0) for i in range(3)])
        exact_Q = (mp.eye(3) - u * u.T / u[0])[:, 1:]
        exact_B = exact_Q.T * mp.matrix(rows.tolist()) * exact_Q
        exact_B = np.array(exact_B.tolist(), dtype=float)
    assert quotient(rows) == pytest.approx(exact_B, abs=1e-26, rel=1e-12)
    uniform = np.full((3, 3), 1 / 3) + 1e-12 * np.array([[1, -1, 0], [0, 1, -1], [0, 0, 0]])
    exact = 1e-12 * Q.T @ np.array([[1, -1, 0], [0, 1, -1], [0, 0, 0.0]]) @ Q
    assert quotient(uniform) == pytest.approx(exact, abs=1e-16)
    assert exact_stationary(A3, [[0, 1, 2]]) == PI3
