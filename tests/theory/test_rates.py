"""T4c, T5 and T6a: rates, effective rank, certified depth and Jordan structure."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from oversmoothing.theory.depth import rates_measured as measured
from oversmoothing.theory.depth.bounds import (
    certified_depth,
    certified_depth_in_balls,
    hfc_floor,
    power_depth,
    ratio_floor,
    transient_growth,
)
from oversmoothing.theory.depth.rates import (
    angle_rate,
    block_sizes,
    effective_rank_excess,
    effective_rank_excess_expanded,
    jordan_type,
    kronecker_jordan_sizes,
    rank_rate,
    rank_rate_over_pairs,
    rate_rows,
)
from oversmoothing.theory.depth.ratios import ball_ratios, exact_state, squared_norms
from oversmoothing.theory.numbers.exact import exact_stationary, to_float
from oversmoothing.theory.proofs import strategies as own
from oversmoothing.theory.spectra.algebraic import factors
from oversmoothing.theory.support.errors import InputError
from tests.support.tables import matrix

AA = matrix("AA")

spectra = st.tuples(
    st.lists(own.fractions(-1, 1, 4), max_size=4),
    st.lists(own.fractions(-3, 2, 4), min_size=1, max_size=4),
)


@given(spectra)
def test_T5b_the_closed_form_is_the_maximum_over_all_pairs_of_pairs(spectrum):
    a, h = ([float(x) for x in values] for values in spectrum)
    assert rank_rate(a, h) == pytest.approx(rank_rate_over_pairs(a, h), abs=1e-12)


@given(spectra)
def test_T5b_the_rank_rate_is_at_most_one_and_zero_for_one_token_or_feature(spectrum):
    a, h = ([float(x) for x in values] for values in spectrum)
    assert 0 <= rank_rate(a, h) <= 1 + 1e-12
    assert rank_rate([], h) == rank_rate(a, h[:1]) == 0
    assert angle_rate(a, h) == rank_rate(a, h) ** 2


@given(st.lists(st.floats(1e-12, 1), min_size=1, max_size=6))
def test_T5c_the_effective_rank_from_its_definition_and_between_its_bounds(ratios):
    sigma = np.array([1.0, *ratios])
    p = sigma / sigma.sum()
    excess = effective_rank_excess(ratios)
    assert excess == pytest.approx(np.expm1(-(p * np.log(p)).sum()), rel=1e-6, abs=1e-13)
    first = effective_rank_excess_expanded(ratios, 1)
    E = -(np.array(ratios) * np.log(ratios)).sum()
    assert first <= excess * (1 + 1e-12)
    assert excess <= (first + E**2 / 2 * np.exp(E)) * (1 + 1e-12)


def test_T5c_second_order_coefficient_is_one_half():
    eps = 1e-5
    left = effective_rank_excess([eps]) - effective_rank_excess_expanded([eps], 1)
    assert left / (eps * math.log(eps)) ** 2 == pytest.approx(0.5, rel=1e-3)
    assert effective_rank_excess([0.0]) == 0
    with pytest.raises(InputError):
        effective_rank_excess([1.5])
    with pytest.raises(InputError):
        effective_rank_excess_expanded([0.1], 3)


@pytest.mark.parametrize("seed", range(6))
def test_T5d_every_certified_depth_is_one(seed):
    A, H, X0 = measured.random_case(seed, 4, 2, Fraction(3, 2))
    floats = to_float(A), to_float(H), to_float(X0)
    pi = exact_stationary(A, [list(range(4))])
    for eps in (Fraction(1, 2), Fraction(1, 10**6)):
        for found in (
            certified_depth_in_balls(A, H, X0, eps),
            certified_depth(*floats, float(eps)),
            power_depth(*floats, float(eps)),
        ):
            assert found is not None
            later = ball_ratios(A, H, X0, pi, range(found.depth, found.depth + 20))
            assert all(ratio.value <= eps for ratio in later.values())


@given(own.exact_cases(max_n=4, max_d=3))
@settings(max_examples=60)
def test_T5d_floors_hold_at_every_depth(case):
    A, H, X0 = case
    assume(len(A) > 1 and any(row != X0[0] for row in X0))
    H = [
        [x + Fraction(int(i == j) * (j + 1), 97) for j, x in enumerate(row)]
        for i, row in enumerate(H)
    ]
    depths = [0, 1, 3, 10, 30]
    floats = to_float(A), to_float(H), to_float(X0)
    assume(max(np.linalg.cond(np.linalg.eig(M)[1]) for M in floats[:2]) < 1e5)
    floors = np.exp(hfc_floor(*floats, depths)), ratio_floor(*floats, depths)
    for (_, X), low, ratio in zip(exact_state(A, H, X0, depths).items(), *floors, strict=True):
        hfc, lfc = (float(x) for x in squared_norms(X))
        assert math.sqrt(hfc) >= low * (1 - 1e-6) - 1e-9
        assert lfc == 0 or math.sqrt(hfc / lfc) >= ratio * (1 - 1e-6) - 1e-9


def test_T5d_transients_are_absent_for_normal_and_bounded_by_the_condition_numbers():
    assert transient_growth(to_float(AA), [[0.5]], 30) == pytest.approx(1)
    steep = np.array([[1.0, 20.0], [0.0, 0.8]])
    found = certified_depth(to_float(AA), steep, [[1.0, 2.0], [3.0, 5.0]], 1e-3)
    assert found is not None
    assert 5 < transient_growth(to_float(AA), steep, 200) <= found.kappa_H * found.kappa_B


@given(st.integers(1, 9), st.booleans(), st.integers(1, 9), st.booleans())
def test_T6a_block_sizes_fill_the_space(p, h_is_zero, q, a_is_zero):
    sizes = kronecker_jordan_sizes(p, h_is_zero, q, a_is_zero)
    assert sum(sizes) == p * q
    assert sizes == sorted(sizes, reverse=True)
    assert sizes == sorted(kronecker_jordan_sizes(q, a_is_zero, p, h_is_zero), reverse=True)


@given(st.data())
@settings(max_examples=40)
def test_T6a_the_jordan_type_of_the_whole_operator(data):
    values = st.sampled_from([Fraction(0), Fraction(1), Fraction(-1, 2)])
    blocks = st.lists(st.tuples(values, st.integers(1, 3)), min_size=1, max_size=2)
    A = data.draw(blocks.flatmap(own.with_jordan_blocks))
    H = data.draw(blocks.flatmap(own.with_jordan_blocks))
    n, d = len(A), len(H)
    dense = [
        [H[i // n][j // n] * A[i % n][j % n] + int(i == j) for j in range(n * d)]
        for i in range(n * d)
    ]
    found: Counter[int] = Counter()
    for factor in factors(dense):
        for size in factor.jordan:
            found[size] += factor.degree
    assert dict(found) == block_sizes(jordan_type(A, H))


def test_rates_measured_are_those_predicted():
    rows = rate_rows()
    assert len(rows) >= 30
    for row in rows:
        if row.kind == "bound":
            assert row.measured <= row.predicted * (1 + 1e-9), row
        else:
            assert row.relative_error < 5e-3, row


def test_rates_singular_values_that_rounding_lost_are_no_numbers():
    """0.25^2000 is below 512 bits: the ball must reach 0, not show a rounding error."""
    A, H = AA, [[Fraction(1), Fraction(0)], [Fraction(0), Fraction(-1, 2)]]
    X = measured.states(A, H, [[Fraction(1), Fraction(2)], [Fraction(3), Fraction(5)]], [2000])[
        2000
    ]
    assert not measured.singular_values(X, 512)[1] > 0
    assert measured.singular_values(X, 8192)[1] > 0
