"""T4, T4e, T14: what an expansion over eigenvectors in floats says, and where it says nothing."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from oversmoothing.theory.ask import verdict
from oversmoothing.theory.verdict.expansion import Expansion, expand, expansion_limits
from oversmoothing.theory.verdict.limits import UNKNOWN, Limits
from oversmoothing.theory.verdict.outcome import Outcome
from oversmoothing.theory.verdict.present_modes import present_radii, shows_from

AA = np.array([[0.75, 0.25], [0.25, 0.75]])
ERROR = 1e-15
NEVER = ("infinity", math.inf)


def made(attention, value, coefficients, V=None, U=None, **known) -> Expansion:
    """An expansion with nothing doubtful, by default over tokens and features themselves but for
    a = 1, whose eigenvector is (1, ..., 1)."""
    a, h = np.array(attention, dtype=complex), np.array(value, dtype=complex)
    if V is None:
        V = np.eye(len(a))
        V[:, -1] = 1.0
    U = np.eye(len(h)) if U is None else U
    c = np.array(coefficients, dtype=complex)
    plain = {"doubtful": np.zeros(c.shape, dtype=bool), "error": ERROR, "balanced": False}
    plain |= {"classes": 1, **known}
    plain["doubtful"] = np.array(plain["doubtful"], dtype=bool)
    return Expansion(a, h, np.array(V, dtype=complex), np.array(U, dtype=complex), c, **plain)


def told(*given, **known):
    found = expansion_limits(made(*given, **known))
    return found.tends_to, found.limit


UP = [[1.0, 1.0], [-1.0, 1.0]]

# --- eigenvectors ---


def test_the_eigenvalues_of_a_triangular_matrix_stand_on_its_diagonal():
    causal = np.array([[1.0, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]])
    turn, two = np.array(UP), np.ones((2, 2))
    assert expand(causal[:2, :2], turn, two).triangular
    assert not expand(AA, turn, two).triangular and not expand(AA, turn, two).diagonal
    assert expand(AA, np.diag([1.0, 2.0]), two).diagonal
    assert expand(AA, np.array([[1.0, 0.0], [3.0, 2.0]]), two).diagonal
    assert expand(AA, np.array([[1.0, 3.0], [0.0, 2.0]]), two).diagonal
    made_of_two = np.array([[0.5, 0.5, 0], [0.25, 0.75, 0], [0.25, 0.5, 0.25]])
    assert not expand(made_of_two, turn, np.ones((3, 2))).triangular


def test_T4_an_eigenvalue_of_A_that_is_0_by_rounding_is_not_known_by_that_of_H():
    """a = 0 of the uniform A comes out near 1e-17: both 1 + h a are 1, and lead without a mean."""
    halves = np.full((2, 2), 0.5)
    found = expand(halves, np.diag([-0.8, -4 / 3]), np.array([[1.0, 2.0], [-3.0, 1.0]]))
    assert expansion_limits(found).tends_to == "infinity"


def test_T4_what_is_1_by_h_alone_is_not_known_to_equal_what_is_1_by_rounding():
    """|1 - 2| = 1 up to the rounding of h, and 1 + 1e-40 leads it: no tie, and no limit of one."""
    H = np.diag([-2.0, 1e-40])
    for A in (np.eye(2), AA):
        found = expand(A, H, np.array([[4.0, 1.0], [2.0, -3.0]]))
        assert expansion_limits(found) == UNKNOWN
    plain = expand(np.eye(2), np.diag([-2.0, 0.0]), np.array([[4.0, 1.0], [2.0, -3.0]]))
    assert expansion_limits(plain).limit_rank == 2


def test_T4_eigenvalues_that_underflow_to_one_number_are_no_tie():
    """e^-873 and e^-792 both are 5e-324, the least number, and the first of them leads."""
    A = np.array([[1.0, 0.0, 0.0], [1.0, 5e-324, 0.0], [1.0, 0.0, 5e-324]])
    H, X0 = np.array([[-0.25]]), np.array([[1.0], [2.0], [4.0]])
    assert expansion_limits(expand(A, H, X0)) == UNKNOWN
    assert expansion_limits(expand(A[:2, :2], H, X0[:2])).limit_rank == 1


def test_T4e_a_mode_that_may_have_died_out_beats_nothing():
    """X_0 = e_2 holds only a = 1/3, twice, and 1 + h a = 0 for h = -3: X_2 = 0, or nearly."""
    A = [[1.0, 0.0, 0.0], [2 / 3, 1 / 3, 0.0], [2 / 7, 8 / 21, 1 / 3]]
    found = verdict(A=A, H=[[-3.0]], X0=[[0.0], [8.0], [0.0]])
    assert found.verdict_x0 is Outcome.UNDECIDED


@pytest.mark.parametrize(("least", "known"), [(1e-290, True), (0.99e-290, False)])
def test_entries_that_lose_digits_are_left_to_causal_attention(least, known):
    mixing, causal = np.array([[1.0, least], [0.5, 0.5]]), np.array([[1.0, 0], [least, 1.0]])
    causal[1, 1] = 0.5
    assert (expand(mixing, np.eye(1), np.ones((2, 1))) is not None) == known
    assert expand(causal, np.eye(1), np.ones((2, 1))) is not None


def test_T1d_eigenvectors_next_to_a_1_are_free_of_consensus():
    """a = 1 - 3e-13: LAPACK knows the eigenvector to 1e-4, and pi = (2/3, 1/3)."""
    A = np.array([[1 - 1e-13, 1e-13], [2e-13, 1 - 2e-13]])
    found = expand(A, np.eye(1), np.array([[1.0], [2.0]]))
    assert abs(np.array([2.0, 1.0]) @ found.V[:, 0]) < 1e-15


def test_a_matrix_is_balanced_where_each_mean_is_that_of_all():
    # pi = (1/4, 1/2, 1/8, 1/8): one of them is 1/n.
    quarters = np.array(
        [[0.75, 0.25, 0, 0], [0.125, 0.8125, 0.0625, 0], [0, 0.25, 0.5, 0.25], [0, 0, 0.25, 0.75]]
    )
    for A, balanced in ((AA, True), (quarters, False), (np.eye(2), False)):
        X0 = np.arange(float(len(A)))[:, None]
        assert expand(A, np.eye(1), X0).balanced is balanced
    assert not expand(AA, np.eye(1), np.ones((2, 1)), may_balance=False).balanced


def doubts(H, X0):
    return expand(AA, np.array(H), np.array(X0)).doubtful.tolist()


def test_T4e_a_diagonal_H_leaves_each_column_its_own_doubt():
    diagonal, mixed = [[0.5, 0.0], [0.0, -0.25]], [[0.5, 0.25], [0.0, -0.25]]
    tiny = [[1.0, 1e-16], [2.0, 3e-16]]
    assert doubts(diagonal, tiny) == [[False, False], [False, False]]
    assert [row[1] for row in doubts(mixed, np.array(tiny) @ [[0, 0], [0, 1]])] == [False, False]
    # The eigenvector of -1/4 is (-1/3, 1) of length: what is in it beside 1 is lost.
    assert [row[1] for row in doubts(mixed, tiny)] == [True, True]


def test_T4e_a_column_of_zeros_is_absent_and_a_small_share_is_in_doubt_at_any_size():
    assert doubts([[0.5, 0], [0, -0.25]], [[1.0, 0], [2.0, 0]]) == [[False, False], [False, False]]
    for size in (1e-3, 1.0, 1e3):
        ((difference,), (mean,)) = doubts([[0.5]], [[size], [size * (1 + 2.0**-51)]])
        assert difference and not mean


# --- limits ---


def test_T4_a_mode_that_may_be_there_or_not_leaves_open_what_it_would_change():
    """h = -1/2: a = 1/2 would lead by 3/4 to 1/2; without it the state is consensus."""
    case = [0.5, 1.0], [-0.5], [[1.0], [1.0]], UP
    assert expansion_limits(made(*case, balanced=True)) == Limits(*NEVER, 1)
    open_ = made(*case, balanced=True, doubtful=[[True], [False]])
    assert expansion_limits(open_) == Limits(None, None, 1)
    # Consensus in doubt beside a mode that leads over it: infinity either way.
    assert told(*case, balanced=True, doubtful=[[False], [True]]) == NEVER
    absent = made([0.5, 1.0], [-0.5], [[0.0], [1.0]], UP, balanced=True)
    assert expansion_limits(absent) == Limits("zero", 0.0, 1)


def test_T4_what_is_absent_leads_nothing():
    """1 - 1e-13, which rounding would turn, is not there: a = 1/2 leads, as v = (1, 0, 0) does."""
    found = told([0.5, 1 - 1e-13, 1.0], [-0.5], [[1.0], [0.0], [1.0]])
    assert found == ("constant", pytest.approx(math.sqrt(2)))


@pytest.mark.parametrize(("size", "known"), [(1.4, False), (1.6, True)])
def test_T4_a_multiplier_within_its_error_may_be_0(size, known):
    """|mu| against 64 errors of 1 + 1/2, the largest |mu| of all pairs, there or not."""
    case = [0.5, 1.0], [-1.0 + size * 64 * ERROR], [[0.0], [1.0]], UP
    assert told(*case) == (("zero", 0.0) if known else (None, None))


def test_T4_what_leads_alone_decides_whatever_is_below():
    """Of -1/2 and two pairs that rounding cannot tell apart below it, the first has no mean."""
    a = [-0.5, 0.5, 0.5 + 1e-12, 1.0]
    V = np.array([[1.0, 1, 0, 1], [-1, 0, 1, 1], [1, -1, 0, 1], [-1, 0, -1, 1]])
    assert told(a, [-0.5], np.ones((4, 1)), V, balanced=True) == NEVER


@pytest.mark.parametrize(("gap", "known"), [(0.5e-9, False), (1.5e-9, True)])
def test_T4_rounding_turns_directions_by_its_error_over_the_gap(gap, known):
    """1e-15 over 1e-6 is 1e-9 where no eigenvalue exceeds 1, and 8e-9 beside h = 8."""
    tokens = [0.5, 0.5 + gap, -0.25, 1.0], [-0.5], [[1.0], [0.0], [0.0], [1.0]]
    assert (told(*tokens)[0] == "constant") == known
    features = [0.5, 1.0], [8.0, 8.0 + 8 * gap, 0.0], [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    assert (told(*features)[0] == "zero") == known


def test_T4_features_in_doubt_are_seen_where_all_tokens_lead():
    case = [[-1.0, 1.0], [2j, 2j + 1e-10], [[1.0, 0.0], [1.0, 0.0]]]
    assert told(*case) == (None, None)
    case[1] = [2j, 3j]
    assert told(*case)[0] is not None


def test_T4_multipliers_that_round_to_1_are_one_modulus_unless_the_diagonal_tells_them_apart():
    case = [1e-13, 2e-13, 1.0], [0.5], [[1.0], [1.0], [0.0]]
    assert told(*case, triangular=True) == (None, None)
    assert told(*case)[0] == "constant"
    assert told([1e-13, 1e-13, 1.0], *case[1:], triangular=True)[0] == "constant"
    # |1 + h a| = 1.1 at h a = 0.1 and at another of the size 0.53: nothing rounds to 1.
    turned = 1.1 * np.exp(0.5j) - 1
    pair = [0.5, 1.0], [0.2, 2 * turned], [[1.0, 1.0], [0.0, 0.0]]
    assert told(*pair, triangular=True)[0] is not None


def test_T3f_slow_phases_are_phases():
    """mu = 1.25 +- 0.1 i: the phases are 0.16 apart, and both lead."""
    v = np.array([1.0, 1j, 0.0])
    V = np.stack([v, v.conj(), np.ones(3)], axis=1)
    case = [0.5 + 0.2j, 0.5 - 0.2j, 1.0], [0.5], [[1.0], [1.0], [0.0]], V
    assert told(*case) == ("oscillates", None)


@pytest.mark.parametrize(("share", "known"), [(32.0, False), (200.0, True)])
def test_T4_a_mean_within_the_error_of_what_leads_may_be_0(share, known):
    """v = (1, -1 + s, 0) in one of two features, with the mean s / 3."""
    V = [[1.0, 0, 1], [-1 + 3 * share * ERROR, 0, 1], [0, 1, 1]]
    case = [0.5, 0.25, 1.0], [-0.5, 0.0], [[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]], V
    assert told(*case)[0] == ("constant" if known else None)


def test_T1a_consensus_alone_has_no_other_part_whatever_rounding_leaves():
    """The mean of three times 0.15 is not 0.15 in floats."""
    assert np.full((3, 1), 0.15 + 0j).mean(axis=0) != 0.15
    assert told([0.5, -0.5, 1.0], [0.5], [[0.0], [0.0], [0.15]]) == ("zero", 0.0)
    # a = -1/2 leads by |1 - 5/2 a| = 9/4, the second of the rows.
    assert told([0.5, -0.5, 1.0], [-2.5], [[0.0], [1.0], [0.1]])[0] == "constant"


def test_T1d_of_balanced_attention_no_other_mode_has_a_mean_whatever_rounding_leaves():
    """0.1 + 0.2 - 0.3 is not 0 in floats."""
    V = [[1.0, 0.1, 1], [-1.0, 0.2, 1], [0.0, -0.3, 1]]
    for a, row in (([0.25, 0.5, 1.0], 1), ([0.5, 0.25, 1.0], 0)):
        c = [[float(i == row)] for i in range(3)]
        assert told(a, [-0.5], c, V, balanced=True) == NEVER
    assert told([0.25, 0.5, 1.0], [-0.5], [[0.0], [1.0], [0.0]], V) == (None, None)
    assert told([0.5, 0.25, 1.0], [0.5], [[0.0], [0.0], [1.0]], V, balanced=True) == ("zero", 0.0)


def test_T4_a_limit_is_as_uncertain_as_the_largest_entry_of_what_leads():
    """v = (1, 0, 0) known to 1e-7: HFC/LFC is constant, and no number of it is known."""
    case = [0.5, -0.25, 1.0], [-0.5], [[1.0], [0.0], [1.0]]
    assert told(*case) == ("constant", pytest.approx(math.sqrt(2)))
    assert told(*case, error=1e-7) == ("constant", None)


def test_T1d_a_mean_that_may_be_hidden_is_there_where_any_feature_shows_it():
    case = [0.5, 1.0], [-0.5, 0.0], [[1.0, 0.0], [1.0, 0.0]]
    assert told(*case, hidden=True)[0] == "constant"
    assert told(*case, [[1.0, 1], [-1, 1]], hidden=True) == (None, None)


# --- the depth from which the largest mode outweighs the others ---


def test_T4e_the_largest_mode_alone_leads_at_once():
    assert shows_from(made([0.5, 1.0], [0.5], [[0.0], [1.0]])) == 0.0
    assert shows_from(made([0.5, 1.0], [0.5], [[0.0], [0.0]])) is None
    # What is exactly 0 after a layer, and is all there is.
    assert shows_from(made([0.5, 1.0], [-1.0], [[0.0], [1.0]])) is None


def test_T4e_a_larger_mode_in_doubt_leaves_the_depth_open():
    case = [0.5, -0.5, 1.0], [0.5], [[1.0], [1.0], [1.0]]
    assert shows_from(made(*case, doubtful=[[False], [False], [True]])) is None
    smaller = made(*case, doubtful=[[False], [True], [False]])
    below = math.log(math.sqrt(1 + 1 + 4) / math.sqrt(3)) / math.log(1.5 / 1.25)
    assert shows_from(made(*case[:2], [[1.0], [0.0], [1.0]])) == pytest.approx(below)
    assert shows_from(smaller) == pytest.approx(below)
    # One of the same modulus takes nothing away.
    equal = made([0.5, 0.5, 1.0], [0.5], [[1.0], [1.0], [0.0]], doubtful=[[True], [False], [False]])
    assert shows_from(equal) == 0.0


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_T4e_the_sizes_of_the_phases_that_lead_add_up(size):
    """mu = 3/2 and -3/2 of two features beside 5/4, 100 times as large."""
    found = made([0.5, 1.0], [0.5, -2.5], np.array([[100.0, 0.0], [1.0, 2.0]]) * size)
    start = math.sqrt(101**2 + 1 + 2 * 4)
    expected = math.log(start / (math.sqrt(2) + math.sqrt(8))) / math.log(1.5 / 1.25)
    assert shows_from(found) == pytest.approx(expected, rel=1e-12)


def test_T4e_a_mode_that_outweighs_the_others_at_once_does_so_from_0():
    """X_0 = (1, 1) - (0.9, 1): nearly 0, and consensus of it is as long as sqrt 2."""
    V = [[-0.9, 1.0], [-1.0, 1.0]]
    assert shows_from(made([0.5, 1.0], [0.5], [[1.0], [1.0]], V)) == 0.0
    # sqrt(5)/2 times as long as consensus: within the first layer.
    found = shows_from(made([0.5, 1.0], [0.5], [[1.0], [1.0]], [[1.0, 1.0], [0.0, 1.0]]))
    assert found == pytest.approx(math.log(math.sqrt(5 / 2)) / math.log(1.2))
    assert 0 < shows_from(made([0.5, 1.0], [0.5], [[0.1], [1.0]])) < 1


@pytest.mark.parametrize("coefficients", [[[1e10], [5e-324]], [[5e-324], [5e-324]]])
def test_T4e_a_mode_below_the_normal_numbers_tells_no_depth_and_warns_of_none(coefficients):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert shows_from(made([0.5, 1.0], [0.5], coefficients)) is None


# --- what is there on both sides ---


def sides(found):
    ends = tuple((side.low, side.high) for side in (found.consensus, found.quotient))
    return *ends, found.tie


def test_T14_class_means_differ_beyond_the_error_of_the_largest_coefficient_at_any_size():
    """Means of 1 that are 1e-11 apart beside 1000, of which 64 errors are 64e-12."""
    for size in (1e-3, 1.0, 1e3):
        for gap, low in ((1e-11, 1.25), (1e-10, 1.5)):
            c = size * np.array([[1e3], [1.0], [1.0 + gap]])
            found = sides(present_radii(made([0.5, 1, 1], [0.5], c, classes=2)))
            assert found[1] == (low, 1.5)


def test_T14_a_feature_is_in_consensus_where_any_class_has_it():
    c = [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    doubt = np.zeros((3, 3), dtype=bool)
    case = [0.5, 1, 1], [0.5, -0.25, 3.0], c
    assert sides(present_radii(made(*case, classes=2)))[0] == (1.5, 1.5)
    # A third feature in doubt in one class: it may be there, and no other.
    doubt[2, 2] = True
    assert sides(present_radii(made(*case, classes=2, doubtful=doubt)))[0] == (1.5, 4.0)
    doubt[:] = False
    doubt[2, 1] = True
    assert sides(present_radii(made(*case, classes=2, doubtful=doubt)))[0] == (1.5, 1.5)


def test_T6b_modes_of_h_0_tie_with_consensus_of_h_0():
    """|1 + 0| = 1 on both sides, above the 3/4 and 1/2 of h = -1/2."""
    c = [[1.0, 1.0], [1.0, 1.0]]
    assert sides(present_radii(made([0.5, 1.0], [0.0, -0.5], c))) == ((1.0, 1.0), (1.0, 1.0), True)
    assert sides(present_radii(made([0.5, 1.0], [-0.5, 0.0], c))) == ((1.0, 1.0), (1.0, 1.0), True)
    # h = 1 leads alone, with h = 0 below: no tie.
    assert sides(present_radii(made([0.5, 1.0], [0.0, 1.0], c))) == ((2.0, 2.0), (1.5, 1.5), False)
    # |1 + h| = 1 for h = -2 too, and its 0 for a = 1/2.
    assert present_radii(made([0.5, 1.0], [0.0, -2.0], c)).tie
    # Without h = 0 in the consensus of X_0, or in the rest of it, nothing ties.
    assert not present_radii(made([0.5, 1.0], [0.0, -0.5], [[1.0, 1.0], [0.0, 1.0]])).tie
    assert not present_radii(made([0.5, 1.0], [0.0, -0.5], [[0.0, 1.0], [1.0, 1.0]])).tie


def test_T6b_a_tie_needs_whatever_else_may_be_there_to_be_below():
    """h = 0 on both sides beside h = -1/2, whose a = -1 makes 3/2, there, in doubt or absent."""
    case = [-1.0, 1.0], [0.0, -0.5]
    there = [[1.0, 1.0], [1.0, 1.0]]
    assert not present_radii(made(*case, there)).tie
    doubt = [[False, True], [False, False]]
    assert not present_radii(made(*case, there, doubtful=doubt)).tie
    assert present_radii(made(*case, [[1.0, 0.0], [1.0, 1.0]])).tie
    # Below by less than 1e-12 is not below: 1 - 1e-13 of h = -1e-13, and 1 - 1e-11.
    for gap, tie in ((1e-13, False), (1e-11, True)):
        near = made([0.5, 1.0], [0.0, -2 * gap], there)
        assert present_radii(near).tie == tie
    # In consensus itself h = 1/2 in doubt may lead alone.
    above = made([0.5, 1.0], [0.0, 0.5], [[1.0, 0.0], [1.0, 1.0]], doubtful=doubt[::-1])
    assert not present_radii(above).tie
    three = made(
        [0.5, -1.0, 1.0],
        [0.0, 0.5],
        [[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]],
        doubtful=[[False, False], [False, False], [False, True]],
    )
    assert not present_radii(three).tie
    # h = -1/2 with a = 1/4: 7/8 is below 1, the consensus of h = 0, and 1/2 that of h = -1/2.
    below = made([0.5, 0.25, 1.0], [0.0, -0.5], np.ones((3, 2)))
    assert present_radii(below).tie and present_radii(below).consensus.low == 1.0


def test_T6b_what_may_all_be_0_ties_with_nothing():
    """Two classes of h = -1 + e: consensus and their difference are e on both sides."""
    for size, tie in ((1.4, False), (1.6, True)):
        h = -1 + size * 64 * ERROR
        found = made([0.5, 1.0, 1.0], [h], [[0.0], [1.0], [2.0]], classes=2)
        assert present_radii(found).tie == tie


def test_unknown_limits_are_those_of_no_term():
    assert expansion_limits(made([0.5, 1.0], [0.5], [[0.0], [0.0]])) == UNKNOWN


def test_uniform_attention_has_orthogonal_eigenvectors_and_zeros_by_equal_rows():
    found = expand(np.full((4, 4), 0.25), np.zeros((1, 1)), np.array([[1.0], [2.0], [3.0], [5.0]]))
    assert found is not None and found.zeros == 3 and found.error < 1e-14
    other = expand(AA, np.eye(1), np.array([[1.0], [2.0]]))
    assert other is not None and other.zeros == 0


def test_X_0_is_centred_where_every_column_sums_to_0_without_rounding():
    third = 1 / 3
    for X0, centred in (
        ([[third, 2.0], [-third, -2.0]], [True, True]),
        ([[third, 2.0], [-third, 1.0]], [True, False]),
        ([[third, 2.0], [1.0, 1.0]], [False, False]),
        ([[1.0, 0.5], [-1.0 + 2.0**-53, -0.5]], [False, True]),
    ):
        found = expand(AA, np.diag([0.25, 0.75]), np.array(X0))
        assert found is not None and found.centred is not None and found.centred.tolist() == centred


# --- which mode leads stays open ---

CLOSE = [[-0.7, 0.0], [0.0, -0.7000000000000001]]


def test_T4_modes_without_a_mean_outgrow_it_whichever_of_them_leads():
    for X0 in (None, [[1.0, 2.0], [3.0, -5.0]]):
        found = verdict(A=AA, H=CLOSE, X0=X0)
        assert (found.tends_to, found.limit) == NEVER
        assert found.verdict is Outcome.NON_SMOOTHING


def test_T4_without_balance_or_beside_consensus_it_stays_open_which_mode_leads():
    # 1 + h a of a = .5: 1.5 and 1.5 (1 + 1e-9); of consensus: c, alone in the second feature.
    gap = [1.0, 1.0 + 3e-9]
    ones, rest = np.ones((2, 2)), [[1.0, 1.0], [0.0, 0.0]]
    assert told([0.5, 1.0], gap, rest, UP, balanced=True) == NEVER
    assert told([0.5, 1.0], gap, rest, UP) == (None, None)
    assert told([0.5, 1.0], gap, rest, UP, balanced=True, error=1e-8) == (None, None)
    # However many of them there are: consensus is the last alone.
    basis, both = [[1.0, 1.0, 1.0], [-1.0, 0.0, 1.0], [0.0, -1.0, 1.0]], [[1.0, 1.0]] * 2
    assert told([0.5, 0.5, 1.0], gap, [*both, [0.0, 0.0]], basis, balanced=True) == NEVER
    # Consensus at 2: it is the larger one.
    assert told([0.5, 1.0], gap, ones, UP, balanced=True) == (None, None)


@pytest.mark.parametrize(("beyond", "open_"), [(0.9, True), (1.1, False)])
def test_T4_consensus_counts_as_near_up_to_1e_7_of_the_largest(beyond, open_):
    """Modes at -1/2 of A, of h = -.5 and nearly so: moduli 1.25; consensus of h = .25 (1 - ...)."""
    h = [-0.5, -0.5 - 3e-9, 0.25 - beyond * 1.25e-7]
    found = told([-0.5, 1.0], h, [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], UP, balanced=True)
    assert (found == (None, None)) is open_
