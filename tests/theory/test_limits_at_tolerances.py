"""T4, T5a: what is said in floats just at a tolerance, and how far errors and precisions reach."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import flint
import numpy as np
import pytest

from oversmoothing.theory.layer.case import make_case
from oversmoothing.theory.spectra.radii import Interval
from oversmoothing.theory.spectra.spectrum import EPS
from oversmoothing.theory.verdict import cosine_limits, expansion, growth, start_limits
from oversmoothing.theory.verdict.expansion import expansion_limits
from oversmoothing.theory.verdict.growth import Multipliers, OutOfReachError
from oversmoothing.theory.verdict.limits import UNKNOWN, Limits, Term, agreed, limits
from oversmoothing.theory.verdict.outcome import Outcome
from oversmoothing.theory.verdict.present_modes import PresentRadii, present_radii, shows_from
from tests.theory.test_expansion_by_hand import made


def term(hfc, mean, *, phase=0.0) -> Term:
    return Term(phase, np.array(hfc, dtype=complex), np.array(mean, dtype=complex))


# --- the ratio ---


def test_T3f_an_interference_as_large_as_the_tolerance_is_rounding():
    """HFC 1 and -1, twice 5e-10 turning by pi: 2 e-9 beside a squared norm of 2."""
    for size, tends_to in ((5e-10, "constant"), (5.001e-10, "oscillates")):
        terms = [term([[1], [-1]], [1]), term([[size], [-size]], [0], phase=math.pi)]
        assert limits(terms, (2, 1)).tends_to == tends_to


def test_T4_a_limit_is_a_number_up_to_an_error_of_1e_7():
    for error, limit in ((5e-8, 1.0), (5.001e-8, None)):
        found = replace(term([[1], [-1]], [1]), error=error)
        assert limits([found], (2, 1)) == Limits("constant", limit, 1)


def test_T5a_terms_that_turn_have_a_limit_up_to_an_error_of_1e_7():
    """Two features at right angles, each with an error in HFC and in the mean."""
    for error, known in ((2.5e-8, ("constant", pytest.approx(1.0))), (2.501e-8, (None, None))):
        terms = [
            replace(term([[1, 0], [-1, 0]], [1, 0], phase=0.3), error=error),
            replace(term([[0, 1], [0, -1]], [0, 1], phase=1.1), error=error),
        ]
        found = limits(terms, (2, 2))
        assert (found.tends_to, found.limit) == known


def test_T5a_a_constant_that_binary64_does_not_reach_has_no_digits():
    for hfc, mean in ((1e-300, 1e200), (1e300, 1e-200)):
        found = limits([term([[hfc], [-hfc]], [mean])], (2, 1))
        assert (found.tends_to, found.limit) == ("constant", None)


def test_T4_two_draws_agree_up_to_1e_8_of_the_smaller():
    one = Limits("constant", 1e8, 1)
    assert agreed(one, replace(one, limit=1e8 + 1)) == one
    assert agreed(one, replace(one, limit=1e8 + 1.01)).limit is None


# --- the rank ---


def rank(*terms, shape=(2, 2)):
    return limits(terms, shape).limit_rank


def test_T4c_roundings_of_24_depths_are_exceeded_64_times():
    """64 (4 24 + 2 sqrt 2) roundings over sqrt 2 tokens: 4472."""
    for roundings, found in ((4450, None), (4500, 2)):
        turning = term([[1, 0], [-1, 0]], [0, 0], phase=1.0)
        assert rank(turning, term([[0, 0], [0, 0]], [0, roundings * EPS])) == found


def test_T4c_of_one_phase_one_depth_is_rounded():
    """64 (4 + 2 sqrt 2) roundings over sqrt 2 tokens: 309."""
    for roundings, found in ((307, None), (311, 2)):
        assert rank(term([[1, 0], [-1, 0]], [0, roundings * EPS])) == found


def test_T4c_each_term_adds_its_own_roundings():
    """Two of size 1 that turn: 64 (4 24 2 + 4 sqrt 2) roundings over sqrt 2 tokens, 8945."""
    for roundings, found in ((8000, None), (9200, 2)):
        first = term([[1, 0], [-1, 0]], [0, 0])
        assert rank(first, term([[1, 0], [-1, 0]], [0, roundings * EPS], phase=1.0)) == found


def test_T4c_a_turn_by_a_third_comes_round_after_three_layers():
    """t I - C for the shift C of three tokens is singular just where t^3 = 1."""
    C = np.roll(np.eye(3), 1, axis=0)
    terms = [
        term(G - G.mean(axis=0), G.mean(axis=0), phase=phase)
        for G, phase in ((-C, 0.0), (np.eye(3), 2 * math.pi / 3))
    ]
    assert rank(*terms, shape=(3, 3)) == 2


# --- one X_0 in floats ---

CASE = make_case([[0.7, 0.3], [0.4, 0.6]], [[0.5]], [[1.0], [2.0]])


def test_radii_as_far_apart_as_1e9_of_the_larger_are_not_apart():
    """1e9 and 1e9 - 1: beyond 1e9 of the smaller they are."""
    for low, apart in ((1e9 - 1, False), (1e9 - 1.1, True)):
        for radii in ((1e9, low), (low, 1e9)):
            found = SimpleNamespace(
                outcome=Outcome.SMOOTHING, rho_consensus=radii[0], rho_quotient=radii[1]
            )
            assert start_limits._apart(found) == apart


def by_eigenvectors(monkeypatch, consensus, quotient, error, vanishing=0.0):
    """What is said of radii that came out like this, with an error of the coefficients."""
    found = PresentRadii(Interval(consensus, consensus), Interval(quotient, quotient), False)
    monkeypatch.setattr(
        start_limits, "expand", lambda *_: SimpleNamespace(error=error, vanishing=vanishing)
    )
    monkeypatch.setattr(start_limits, "expansion_limits", lambda _: UNKNOWN)
    monkeypatch.setattr(start_limits, "shows_from", lambda _: None)
    monkeypatch.setattr(start_limits, "present_radii", lambda _: found)
    return start_limits._by_eigenvectors(CASE).outcome


def test_T4e_radii_of_one_X_0_are_doubted_by_64_errors_of_the_larger(monkeypatch):
    for share, sure in ((0.995, True), (1.005, False)):
        error = share / 64 / 2
        decided = Outcome.SMOOTHING if sure else Outcome.UNDECIDED
        assert by_eigenvectors(monkeypatch, 2.0, 1.0, error) is decided
        decided = Outcome.NON_SMOOTHING if sure else Outcome.UNDECIDED
        assert by_eigenvectors(monkeypatch, 1.0, 2.0, error) is decided


def test_T11_of_two_radii_that_came_out_as_0_neither_is_known_to_be(monkeypatch):
    assert by_eigenvectors(monkeypatch, 0.0, 0.0, 1e-16, vanishing=-1.0) is Outcome.UNDECIDED


def test_T11_what_may_have_died_out_beats_nothing(monkeypatch):
    for vanishing, decided in ((1.999, True), (2.0, False)):
        for radii, outcome in (
            ((2.0, 1.0), Outcome.SMOOTHING),
            ((1.0, 2.0), Outcome.NON_SMOOTHING),
        ):
            found = by_eigenvectors(monkeypatch, *radii, 1e-16, vanishing)
            assert found is (outcome if decided else Outcome.UNDECIDED)


def test_T4_draws_are_whole_numbers_of_up_to_six_digits(monkeypatch):
    asked = []

    def integers(low, high, size):
        asked.append((low, high, size))
        return np.array([[3], [-4]])

    exact = make_case([["1/2", "1/2"], ["1/4", "3/4"]], [["-1/2"]])
    found = start_limits._drawn_limits(exact, SimpleNamespace(integers=integers))
    assert asked == [(-(10**6), 10**6, (2, 1))] and found.tends_to == "constant"


# --- roots that are told apart ---


class Root:
    """A root whose square is known to no bit, and the precisions that it was asked for."""

    def __init__(self):
        self.asked = []
        self.conjugate = self

    def ball(self, bits):
        self.asked.append(bits)
        return flint.acb(flint.arb(1, 1))


@pytest.mark.parametrize(("last", "sign"), [(2**16, 1), (2**16, -1), (2**16 + 1, None)])
def test_T4e_roots_are_compared_in_balls_up_to_1024_bits_and_as_pairs_up_to_2_to_16(
    monkeypatch, last, sign
):
    matched = []

    def pairs(root, bits):
        matched.append(bits)
        return ["of first" if root is first else "of second"]

    def compare(x, y):
        assert (x, y) == ("of first", "of second")
        return (sign if matched[-1] >= last else None), 0

    multipliers = Multipliers([], [], 1)
    multipliers.pairs = pairs
    monkeypatch.setattr(growth, "compare", compare)
    first, second = Root(), Root()
    if sign is None:
        with pytest.raises(OutOfReachError):
            multipliers.compare(first, second)
    else:
        assert multipliers.compare(first, second) == sign
    assert first.asked == second.asked == [64, 128, 256, 512, 1024]
    assert matched == [bits for k in range(10, 17) for bits in [2**k] * 2]


# --- an expansion over eigenvectors ---

# 64 errors are 2^-44.
KNOWN = 2.0**-50


def expanded(*given, **known):
    return made(*given, error=KNOWN, **known)


def tends_to(*given, **known):
    return expansion_limits(expanded(*given, **known)).tends_to


def test_T4_directions_turned_by_just_1e_6_are_trusted():
    """a = 1/2 and 1/2 + 2^-20: the error over the gap."""
    case = [0.5, 0.5 + 2.0**-20, -0.25, 1.0], [-0.5], [[1.0], [0.0], [0.0], [1.0]]
    for error, known in ((1e-6 * 2.0**-20, True), (1.001e-6 * 2.0**-20, False)):
        assert (expansion_limits(made(*case, error=error)) != UNKNOWN) == known


def test_T4_moduli_lead_together_up_to_1e_12_and_leave_it_open_up_to_1e_7():
    def leading(*moduli, error=1.0):
        found = expansion._leading(np.array([moduli]), error)
        return None if found is None else found.tolist()[0]

    assert leading(1.0, 1 / (1 + 1e-12)) == [True, True]
    assert leading(1.0, 1 / (1 + 1e-12) - 1e-15) is None
    assert leading(1.0, 1 - 63e-15, error=1e-15) == [True, True]
    assert leading(1.0, 1 - 65e-15, error=1e-15) is None
    assert leading(1.0, 1 - 1e-7) is None and leading(1.0, 1 - 1.001e-7) == [True, False]


def test_T4_a_multiplier_as_large_as_its_error_may_be_0():
    """64 errors of 1 + 2, where h = 1 is in no mode of X_0 but makes the largest multiplier."""
    for size, known in ((3 * 2.0**-44, False), (3.001 * 2.0**-44, True)):
        case = [0.5, 1.0], [-1 + size, 1.0], [[0.0, 0.0], [1.0, 0.0]]
        assert tends_to(*case) == ("zero" if known else None)


def test_T4_a_mean_as_large_as_the_error_of_what_leads_may_be_0():
    for share, known in ((2.0**-44, False), (2.0**-43, True)):
        V = [[1.0, 1.0], [-1.0 + 2 * share, 1.0]]
        assert tends_to([0.5, 1.0], [-0.5], [[1.0], [0.0]], V) == ("constant" if known else None)


def test_T4_products_on_a_diagonal_are_one_or_are_not():
    """h a = 2^-50 twice, or one of them by a last bit less; one beyond 1e-12 is none of them."""
    for low, known in ((1.0, True), (1 - 2.0**-53, False)):
        case = [low * 2.0**-50, 2.0**-50, 1.0], [1.0], [[1.0], [1.0], [0.0]]
        assert tends_to(*case, triangular=True) == ("constant" if known else None)
    beside = [0.5e-12, 1e-12, 1.0], [1.0], [[1.0], [1.0], [0.0]]
    assert tends_to(*beside, triangular=True) is None


def test_T14_class_means_as_far_apart_as_their_error_are_not_apart():
    for gap, low in ((2.0**-44, 1.25), (1.001 * 2.0**-44, 1.5)):
        found = present_radii(expanded([0.5, 1, 1], [0.5], [[1.0], [1.0], [1 - gap]], classes=2))
        assert found.quotient == Interval(low, 1.5)


@pytest.mark.parametrize(
    ("exponents", "scaled"),
    [((499, 480), False), ((500, 480), True), ((-501, -501), False), ((-502, -510), True),
     ((0, -600), False)],
)  # fmt: skip
def test_T4_an_X_0_beyond_2_to_500_is_brought_to_1(exponents, scaled):
    X0 = np.array([[2.0**x] for x in exponents])
    found = expansion.expand(np.array([[0.75, 0.25], [0.25, 0.75]]), np.eye(1) / 2, X0)
    largest = np.abs(found.coefficients).max()
    assert (0.25 < largest < 1) if scaled else (largest == pytest.approx(X0.max(), rel=0.5))


def test_T4_an_X_0_whose_numbers_are_lost_beside_its_largest_is_not_expanded():
    A, H = np.array([[0.75, 0.25], [0.25, 0.75]]), np.eye(1) / 2
    assert expansion.expand(A, H, np.array([[2.0**600], [2.0**-600]])) is None
    assert expansion.expand(A, H, np.array([[2.0**600], [2.0**500]])) is not None


def test_eigenvalues_of_H_stand_on_a_diagonal_whichever_side_of_it_is_empty():
    A, X0 = np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([[1.0, 2.0], [3.0, 5.0]])
    for H, stand in (([[0.5, 1], [0, 0.25]], True), ([[0.5, 0], [1, 0.25]], True),
                     ([[0.5, 1], [1, 0.25]], False)):  # fmt: skip
        assert expansion.expand(A, np.array(H, dtype=float), X0).diagonal == stand


def test_T4e_a_coefficient_as_large_as_64_errors_may_be_0():
    """A = I and H = 1/2: a condition of 1, two tokens, 64 times 2 roundings."""
    for roundings, doubtful in ((128, True), (129, False)):
        found = expansion.expand(np.eye(2), np.eye(1) / 2, np.array([[1.0], [roundings * EPS]]))
        assert found.error == 2 * EPS and bool(found.doubtful[1, 0]) == doubtful


def test_T4_eigenbases_of_a_condition_of_1e8_are_not_trusted(monkeypatch):
    A = np.array([[0.75, 0.25], [0.25, 0.75]])
    for condition, trusted in ((1e8, False), (0.999e8, True)):
        monkeypatch.setattr(np.linalg, "cond", lambda M, c=condition: c if len(M) == 2 else 1.0)
        assert (expansion.expand(A, np.eye(1), np.ones((2, 1))) is not None) == trusted


def test_T4e_a_modulus_closer_than_1e_7_leads_with_the_largest():
    """mu = 1 for h = 0 and 1 - 1e-7 for h = -2e-7, a = 1/2, which is 100 times as much."""
    for gap, at_once in ((2e-7, True), (2.001e-7, False)):
        found = shows_from(expanded([0.5, 1.0], [0.0, -gap], [[0.0, 100.0], [1.0, 0.0]]))
        assert (found == 0.0) == at_once


def test_T4e_multipliers_closer_than_1e_7_of_the_largest_are_one():
    """2 and 2 + 1e-7 i in two features of (1, 1): their norm is that of the four entries."""
    found = shows_from(expanded([0.5, 1.0], [1.0, 1 + 1e-7j], [[100.0, 0.0], [1.0, 1.0]]))
    whole = math.sqrt(101**2 + 1 + 1 + 1)
    assert found == pytest.approx(math.log(whole / 2) / math.log(2 / 1.5), rel=1e-6)


# --- cosines ---


def test_T14g_a_cosine_is_known_to_60_bits(monkeypatch):
    """A radius of 2^-60 is too wide, one of 2^-61 is not."""
    asked = []
    radii = {64: -60, 128: -61, 256: -200}

    def cosine(directions):
        asked.append(directions[0])
        return flint.arb(0.5, flint.arb(2) ** radii[directions[0]])

    monkeypatch.setattr(cosine_limits, "_cosine", cosine)
    tokens = object.__new__(cosine_limits.TokensOfStart)
    tokens._at_residue = lambda *_: lambda bits: bits
    both = SimpleNamespace(bits=64), SimpleNamespace(bits=64)
    assert tokens._residue((0, 1), both, 1, 0) == 0.5 and asked == [64, 128]


def test_T4_moduli_of_several_eigenvalues_at_1_or_of_softmax_at_0_may_differ():
    """h = -1: |1 - a| of two a that rounding does not tell apart, which lead together or not."""
    first = [[1.0], [2.0], [4.0]]

    def known(*attention, h=(-1.0,), ones=first, **how):
        return expansion_limits(made(attention, h, ones, **how)).limit is not None

    assert known(1e-15, -1e-15, 1.0)
    assert not known(1e-15, -1e-15, 1.0, hidden=True)
    assert known(1e-15, -1e-15, 1.0, hidden=True, zeros=2)
    assert known(1e-15, 0.5, 1.0, hidden=True)
    near = [1 - 1e-15, 1 - 2e-15, 1.0]
    found = expansion_limits(made(near, [-0.5], first))
    assert found.limit is None
    # Two of them; of one feature of two; where h = 0 they do not matter.
    two = [1 - 1e-15, 0.3, 1.0]
    assert not known(*two, h=[0.5]) and not known(*two, h=[0.5, -0.5], ones=np.ones((3, 2)))
    assert known(*two, h=[0.0, -0.5], ones=np.ones((3, 2)))


def test_T4_class_means_that_cancel_do_so_by_luck_unless_the_columns_of_X_0_sum_to_0():
    """Two classes, means 2 and -1 of 1 and 2 tokens: the mean is 0 as computed."""
    V = [[0, 1, 0], [1, 0, 1], [-1, 0, 1]]
    case = [0.0, 1.0, 1.0], [0.5], [[0.0], [2.0], [-1.0]]
    assert tends_to(*case, V=V, classes=2, centred=np.array([True])) == "infinity"
    assert tends_to(*case, V=V, classes=2) is None
    beside = [0.0, 1.0, 1.0], [0.5, 0.5], [[0.0, 0.0], [2.0, 0.0], [-1.0, 0.0]]
    assert tends_to(*beside, V=V, classes=2) is None
    lower = [0.0, 1.0, 1.0], [0.5, 0.25], [[0.0, 0.0], [2.0, 1.0], [-1.0, 1.0]]
    for columns, known in (([True, False], "infinity"), ([False, True], None)):
        assert tends_to(*lower, V=V, classes=2, centred=np.array(columns)) == known


def test_T4_eigenvalues_on_a_diagonal_that_differ_do_not_lead_together_by_rounding():
    """|1 + h a| of h and h (1 + 2^-50), or of a and a (1 + 2^-50)."""
    up, ones = 1 + 2.0**-50, [[1.0, 2.0], [3.0, 5.0], [1.0, 0.0]]
    for a, h, known in (
        ([0.5, 0.25, 1.0], [-1.0, -up], {"diagonal": True}),
        ([0.5, 0.5 * up, 1.0], [-1.0, -1.0], {"triangular": True}),
    ):
        assert expansion_limits(made(a, h, ones)).whole
        assert expansion_limits(made(a, h, ones, **known)) == UNKNOWN


def test_T1f_a_feature_far_below_rounding_leaves_the_rank_open():
    G = np.array([[1.0, 3e-300], [2.0, 4e-300]])
    for X, rank in ((G, None), (G * [[1, 1], [1, 0]], None), (G * [[1, 0]], 1)):
        mean = X.mean(axis=0)
        assert limits([term(X - mean, mean)], X.shape).limit_rank == rank
