"""T1, T11: ratios, exact eigenvalues and quotients on cases worked by hand."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from oversmoothing.theory.depth.ratios import (
    ball_ratios,
    exact_state,
    ratio_of_squares,
    ratios_at,
    squared_norms,
)
from oversmoothing.theory.layer.attention import (
    complement_basis,
    quotient,
    rational_quotient,
    stationary_distribution,
)
from oversmoothing.theory.layer.layer import read_layer
from oversmoothing.theory.numbers.exact import exact_stationary
from oversmoothing.theory.spectra.algebraic import eigenvalues, factors
from tests.support.tables import floats, matrix

A3, PI3 = matrix("A3"), [Fraction(26, 40), Fraction(9, 40), Fraction(5, 40)]


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


def test_T1d_one_entry_of_pi_at_1_over_n_is_not_all_of_them():
    pi = [Fraction(1, 3), Fraction(1, 2), Fraction(1, 6)]
    A = [[(p + (i == j)) / 2 for j, p in enumerate(pi)] for i in range(3)]
    # h = -1: consensus dies, HFC halves at a = 1/2, and the mean is what pi - 1/n makes of it.
    found = ball_ratios(A, matrix("-1"), matrix("1; 2; 4"), pi, [1, 5])
    for depth, X in exact_state(A, matrix("-1"), matrix("1; 2; 4"), [1, 5]).items():
        expected = ratio_of_squares(*squared_norms(X)).value
        assert found[depth].value == pytest.approx(expected, rel=1e-14) and expected < math.inf


@pytest.mark.parametrize("h", ["1/2", "-1/2", "-4/3"])
def test_T11_7_a_mean_that_is_0_is_0_at_every_depth(h):
    """A is not doubly stochastic, yet 1^T A v = 0 for the X_0 = v here: LFC = 0 for ever."""
    A = matrix("1/2 1/4 1/4; 1/4 1/2 1/4; 1/3 1/3 1/3")
    case, start = read_layer(A, [[h]], matrix("1; -1; 0"))
    found = ratios_at(case, start, [0, 1, 64, 65, 1000, 10**6])
    assert all(ratio.value == ratio.log == math.inf for ratio in found.values())


def test_roots_keep_their_order_at_every_precision_and_know_their_conjugates():
    # Beside 1 -7/20 +- (7 sqrt 3/20) i.
    (factor,) = (f for f in factors(matrix("C3")) if f.degree == 2)
    coarse, fine = factor.roots(64), factor.roots(512)
    assert all(a.overlaps(b) for a, b in zip(coarse, fine, strict=True))
    assert factor.conjugate_index == [1, 0] and factor.leading == 100
    first, second = eigenvalues([factor])
    assert first.conjugate == second and not first.is_real and not first.is_zero
    value = complex(first.ball(64).mid())
    assert abs(complex(value.real, abs(value.imag)) - complex(-0.35, 0.35 * math.sqrt(3))) < 1e-12
    (real,) = factors(matrix("0 2; 1 0"))
    assert real.conjugate_index == [0, 1] and all(x.is_real for x in eigenvalues([real]))


def test_T1f_doubly_stochastic_up_to_rounding_means_1_over_n_exactly():
    A = np.full((3, 3), 1 / 3)
    assert stationary_distribution(A).tolist() == [1 / 3] * 3
    A[0] += (2e-16, -2e-16, 0)
    assert stationary_distribution(A).tolist() == [1 / 3] * 3
    A[0] += (1e-9, -1e-9, 0)
    assert stationary_distribution(A).tolist() != [1 / 3] * 3


def test_T1c_the_quotient_in_both_coordinates_and_over_a_stack():
    assert rational_quotient(A3) == matrix("3/10 -1/10; -1/5 2/5")
    A = np.array(floats("A3"))
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
