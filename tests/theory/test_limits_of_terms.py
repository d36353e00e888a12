"""T4, T5a: what the leading terms of X_L say about HFC/LFC and the rank, without any eigenvalue."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from oversmoothing.theory.spectra.spectrum import EPS
from oversmoothing.theory.verdict.limits import Limits, Term, agreed, limits


def term(hfc, mean, *, phase=0.0) -> Term:
    return Term(phase, np.array(hfc, dtype=complex), np.array(mean, dtype=complex))


UP = [[1], [-1]]
NO_HFC, NO_MEAN = [[0], [0]], [0]


def test_no_term_means_that_nothing_is_defined():
    assert limits([], (2, 1)) == Limits(None, None, None)
    assert limits([term(NO_HFC, NO_MEAN)], (2, 1)) == Limits(None, None, None)


def test_T1f_T4a_one_part_alone():
    assert limits([term(UP, NO_MEAN)], (2, 1)) == Limits("infinity", math.inf, 1)
    assert limits([term(NO_HFC, [1])], (2, 1)) == Limits("zero", 0.0, 1)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_T1f_the_limit_is_HFC_over_sqrt_n_times_the_mean_whatever_the_scale(scale):
    hfc = scale * np.array([[2, 0], [-1, 3], [-1, -3]])
    found = limits([term(hfc, [3 * scale, 4 * scale])], (3, 2))
    assert found.tends_to == "constant" and found.limit_rank == 2
    assert found.limit == pytest.approx(math.sqrt(24 / 3) / 5, rel=1e-14)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_T3f_a_conjugate_pair_oscillates_unless_both_parts_turn_alike(scale):
    z = scale * (1 + 2j)
    pair = [
        term([[z], [-z]], [scale], phase=0.7),
        term([[z.conjugate()], [-z.conjugate()]], [scale], phase=-0.7),
    ]
    assert limits(pair, (2, 1)) == Limits("oscillates", None, 1)
    alike = [
        term([[z], [-z]], [3 * z], phase=0.7),
        term([[z.conjugate()], [-z.conjugate()]], [3 * z.conjugate()], phase=-0.7),
    ]
    found = limits(alike, (2, 1))
    assert (found.tends_to, found.limit_rank) == ("constant", 1)
    assert found.limit == pytest.approx(1 / 3, rel=1e-12)


def test_T3f_opposite_multipliers_interfere_with_period_2():
    """|G_1 + (-1)^L G_2| has the two values 3 and 1: the frequencies 0 and pi are different."""
    terms = [term([[2], [-2]], [1]), term(UP, NO_MEAN, phase=math.pi)]
    assert limits(terms, (2, 1)).tends_to == "oscillates"


def test_T3f_orthogonal_parts_do_not_interfere():
    terms = [term([[1, 0], [-1, 0]], [1, 0]), term([[0, 1], [0, -1]], [0, 0], phase=math.pi)]
    found = limits(terms, (2, 2))
    assert found.tends_to == "constant"
    assert found.limit == pytest.approx(math.sqrt(4 / 2))


def test_T3f_what_rounding_leaves_of_an_interference_is_none():
    terms = [
        term([[1, 1e-12], [-1, -1e-12]], [1, 0]),
        term([[0, 1], [0, -1]], [0, 0], phase=math.pi),
    ]
    assert limits(terms, (2, 2)).tends_to == "constant"
    terms[0] = term([[1, 1e-6], [-1, -1e-6]], [1, 0])
    assert limits(terms, (2, 2)).tends_to == "oscillates"


def test_T3f_equal_phases_that_differ_by_a_turn_are_one_frequency():
    terms = [term([[1], [-1]], [1], phase=math.pi), term([[1], [-1]], [1], phase=-math.pi)]
    found = limits(terms, (2, 1))
    assert found.tends_to == "constant" and found.limit == pytest.approx(1)


def test_T3f_two_phases_that_are_no_conjugates_do_not_interfere_where_all_is_orthogonal():
    terms = [
        term([[1, 0], [-1, 0]], [1, 0], phase=0.3), term([[0, 1], [0, -1]], [0, 1], phase=1.1)
    ]  # fmt: skip
    found = limits(terms, (2, 2))
    assert found.tends_to == "constant" and found.limit == pytest.approx(1)


def test_T3f_each_frequency_has_its_own_coefficient():
    """Phases 0, 0.8, 1.6: HFC varies with the difference 0.8, LFC with the difference 1.6."""
    angle = math.acos(0.4)
    at = [np.array([math.cos(x), math.sin(x), 0.0]) for x in (0.0, angle)]
    up = np.array([0.0, 0.0, 1.0])
    # <x_0, x_1> = 0.4 and x_2 is orthogonal to both; <m_0, m_2> = 0.4 and m_1 is orthogonal.
    hfc, means = (at[0], at[1], up), (at[0], up, at[1])
    terms = [
        term([x, -x], m, phase=0.8 * k) for k, (x, m) in enumerate(zip(hfc, means, strict=True))
    ]
    assert limits(terms, (2, 3)).tends_to == "oscillates"


def test_T3f_an_interference_is_seen_beside_what_does_not_turn():
    """1e-9 of a squared norm of 100: by 1e-8 at most it is rounding."""
    n, d = 2, 100
    large, small = np.ones(d), np.zeros(d)
    small[0] = 1e-9
    for share, tends_to in ((1.0, "constant"), (1e3, "oscillates")):
        terms = [
            term([large, -large], large),
            term([share * small, -share * small], np.zeros(d), phase=math.pi),
        ]
        assert limits(terms, (n, d)).tends_to == tends_to


def test_T5a_terms_of_any_size_beside_each_other_have_a_limit():
    """A part of 1e-200 beside one of 1: its square would be no number."""
    terms = [term([[1], [-1]], [1]), term([[1e-200], [-1e-200]], [1e-200], phase=math.pi)]
    assert limits(terms, (2, 1)).limit == pytest.approx(1)


def test_T4c_turns_over_the_depths_leave_so_much_of_a_rank_open():
    """24 depths, 4 roundings each, 64 times, over sqrt 2 tokens: 1e-12 of the largest entry."""
    for size, rank in ((0.8e-12, None), (1.2e-12, 2)):
        terms = [term([[1, 0], [-1, 0]], [0, 0], phase=1.0), term([[0, 0], [0, 0]], [0, size])]
        assert limits(terms, (2, 2)).limit_rank == rank


def test_T4c_the_rank_is_the_largest_that_is_taken_again_and_again():
    """Eigenvalues 1 and -1: rank 1 at even depth, 2 at odd depth."""
    first, second = np.array([[1, 1], [-1, -1]]), np.array([[1, 1], [1, 1]])
    terms = [
        term(first, [0, 0]),
        term([[0, 1], [0, -1]], [1, 0], phase=math.pi),
        term(np.zeros((2, 2)), second[0]),
    ]
    even = first + second + np.array([[1, 1], [1, -1]])
    assert np.linalg.matrix_rank(even) == 2
    assert limits(terms, (2, 2)).limit_rank == 2
    period = [term([[1, 0], [-1, 0]], [0, 1]), term([[1, 0], [-1, 0]], [0, -1], phase=math.pi)]
    for sign, rank in ((1, 1), (-1, 1)):
        X = np.array([[1, 1], [-1, 1]]) + sign * np.array([[1, -1], [-1, -1]])
        assert np.linalg.matrix_rank(X) == rank
    assert limits(period, (2, 2)).limit_rank == 1
    alternating = [term([[1, 0], [-1, 0]], [0, 1]), term([[0, 0], [0, 0]], [0, 1], phase=math.pi)]
    # The means add up at even depth and cancel at odd depth, and then the other way about.
    assert limits(alternating, (2, 2)).limit_rank == 2
    alternating[1] = term([[0, 0], [0, 0]], [0, -1], phase=math.pi)
    assert limits(alternating, (2, 2)).limit_rank == 2


def test_T4c_two_phases_in_both_factors_have_rank_2_and_in_one_factor_rank_1():
    v, w = np.array([1, 1j, -1 - 1j]), np.array([1, 1j])
    both = [
        term(np.outer(v, w), [0, 0], phase=0.9),
        term(np.outer(v, w).conj(), [0, 0], phase=-0.9),
    ]
    assert limits(both, (3, 2)).limit_rank == 2
    one = [
        term(np.outer(v, [1, 2]), [0, 0], phase=0.9),
        term(np.outer(v, [1, 2]).conj(), [0, 0], phase=-0.9),
    ]
    assert limits(one, (3, 2)).limit_rank == 1


def test_T4c_small_singular_values_make_no_rank():
    for size, rank in ((1e-16, 1), (1e-14, None), (1e-12, 2)):
        assert limits([term([[1, 0], [-1, 0]], [0, size])], (2, 2)).limit_rank == rank
    # With an error of its entries a singular value counts far above it, or not at all.
    for size, rank in ((1e-10, 1), (1e-8, None), (1e-6, 2)):
        found = replace(term([[1, 0], [-1, 0]], [0, size]), error=1e-9)
        assert limits([found], (2, 2)).limit_rank == rank


def test_T4c_rounding_grows_with_the_longer_side():
    """400 features, of which two are there: 64 times 400 roundings of the larger."""
    hfc = np.zeros((2, 400))
    hfc[:, 0] = [1, -1]
    for roundings, rank in ((6400, None), (64 * 900, 2)):
        mean = np.zeros(400)
        mean[1] = roundings * EPS
        assert limits([term(hfc, mean)], (2, 400)).limit_rank == rank


def test_T4c_what_may_be_no_rounding_is_not_left_out_of_a_rank():
    """2 sqrt 2 + 4 roundings of one term of 2 x 2: between them and 64 times as much is open."""
    for roundings, rank in ((4, 1), (7.2, None)):
        mean = [0, roundings * EPS]
        assert limits([term([[1, 0], [-1, 0]], mean)], (2, 2)).limit_rank == rank


def test_T4_limits_are_whole_where_nothing_is_left_open():
    for whole in (("constant", 0.5, 1), ("zero", 0.0, 1), ("oscillates", None, 2)):
        assert Limits(*whole).whole
    for open_ in (("constant", None, 1), (None, None, 1), ("zero", 0.0, None)):
        assert not Limits(*open_).whole


def test_T4_a_limit_is_a_number_only_where_errors_leave_it_one():
    for error, known in ((0.0, True), (1e-9, True), (1e-6, False)):
        found = replace(term([[1, 0], [-1, 0]], [0, 1]), error=error)
        assert limits([found], (2, 2)) == Limits("constant", 1.0 if known else None, 2)
    # A mean far below the largest entry is known to as many digits less.
    small = replace(term([[1, 0], [-1, 0]], [0, 1e-5]), error=1e-11)
    assert limits([small], (2, 2)).limit is None


def test_T4_two_draws_agree_on_what_they_share():
    one = Limits("constant", 2.0, 1)
    assert agreed(one, one) == one
    assert agreed(one, Limits("constant", 2.0 * (1 + 5e-9), 1)) == one
    assert agreed(one, Limits("constant", 2.0 * (1 - 5e-9), 1)) == one
    assert agreed(one, Limits("constant", 2.0 * (1 + 5e-8), 1)) == Limits("constant", None, 1)
    assert agreed(one, Limits("oscillates", None, 2)) == Limits(None, None, None)
    assert agreed(Limits("oscillates", None, 2), one) == Limits(None, None, None)
    never = Limits("infinity", math.inf, 3)
    assert agreed(never, never) == never
    assert agreed(never, Limits("zero", 0.0, 3)) == Limits(None, None, 3)
    small = Limits("constant", 1e-3, 1)
    assert agreed(small, Limits("constant", 1e-3 + 5e-9, 1)).limit is None


def test_T5a_a_gap_within_the_errors_of_the_terms_is_no_oscillation():
    """A mean of 1e-12 beside differences of 5, off by 1e-15: its direction is known to 1e-3."""
    hfc = np.array([[5.5, -2.5], [-5.5, 2.5]]) * (1 + 2j)
    terms = [
        Term(phase, turned, turned[0] * 1e-12 * (1 + 1e-4), 1e-15)
        for phase, turned in ((1.0, hfc), (-1.0, hfc.conj() * (1 + 1e-5)))
    ]
    assert limits(terms, (2, 2)).tends_to is None
    known = [replace(term, error=0.0) for term in terms]
    assert limits(known, (2, 2)).tends_to in ("constant", "oscillates")


def test_T4c_a_sum_that_errors_may_be_all_of_has_no_rank():
    G = np.array([[1.0], [-1.0]]) * 1e-100
    assert limits([Term(0.0, G, np.zeros(1), 1e-15)], (2, 1)).limit_rank is None
    assert limits([Term(0.0, G, np.zeros(1), 1e-115)], (2, 1)).limit_rank == 1
