"""T4, T5a, T6, T14: what one X_0 contains and leads to, on cases worked by hand."""

import math
from fractions import Fraction

import flint
import numpy as np
import pytest

from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.spectra.algebraic import Factor
from oversmoothing.theory.verdict import resolvent as resolvents
from oversmoothing.theory.verdict.resolvent import Multipliers, growth_of, has_every_mode, resolvent
from oversmoothing.theory.verdict.start import start_content
from oversmoothing.theory.verdict.verdict import distance_to_tie, verdict

AA = [["3/4", "1/4"], ["1/4", "3/4"]]
FLOAT_AA = [[0.75, 0.25], [0.25, 0.75]]
A3 = [["4/5", "1/10", "1/10"], ["3/10", "3/5", "1/10"], ["1/2", "1/5", "3/10"]]
C3 = [["1/10", "4/5", "1/10"], ["1/10", "1/10", "4/5"], ["4/5", "1/10", "1/10"]]


def matrix(rows):
    return [[Fraction(x) for x in row] for row in rows]


def column(*values):
    return [[Fraction(x)] for x in values]


def identity(n):
    return [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]


def content(A, H, X0):
    found = start_content(matrix(A), matrix(H), matrix(X0))
    assert found is not None
    return found


def state(A, H, X0, depth):
    """X_L by the definition alone, in fractions."""
    X = matrix(X0)
    n, d = len(A), len(H)
    for _ in range(depth):
        AX = [[sum(A[i][k] * X[k][j] for k in range(n)) for j in range(d)] for i in range(n)]
        X = [
            [X[i][j] + sum(AX[i][k] * H[j][k] for k in range(d)) for j in range(d)]
            for i in range(n)
        ]
    return X


# --- the resolvent ---


@pytest.mark.parametrize(
    ("A", "H", "X0"),
    [
        (AA, [["-1/2"]], [[1], [2]]),
        (A3, [["1/2", 1], [0, "1/2"]], [[1, 2], [3, 5], [-2, 1]]),
        (C3, [["1/5", "-3/2"], ["3/2", "1/5"]], [[1, 2], [3, 5], ["-2/3", 1]]),
        ([[1, 0], ["1/2", "1/2"]], [[-1]], [[1], [3]]),
    ],
)
def test_T4e_the_resolvent_of_X_0_is_the_generating_function_of_its_states(A, H, X0):
    """The terms of N(z)/p(z) in powers of 1/z are the states, times the powers of the scale."""
    found = resolvent(matrix(A), matrix(H), matrix(X0))
    assert found is not None
    part = found.part(identity(len(A)))
    p = [int(c) for c in part.denominator.coeffs()]
    degree = len(p) - 1
    common = math.lcm(*(Fraction(x).denominator for row in X0 for x in row))
    exact = [matrix(A), matrix(H)]
    for k, numerator in enumerate(part.numerators):
        terms = []
        for depth in range(2 * degree + 2):
            index = degree - 1 - depth
            value = int(numerator[index]) if index >= 0 else 0
            value -= sum(p[degree - i] * terms[depth - i] for i in range(1, min(depth, degree) + 1))
            terms.append(value)
            i, j = divmod(k, len(H))
            expected = state(*exact, X0, depth)[i][j] * found.scale**depth * common
            assert value == expected


def test_T4e_the_factors_of_a_part_are_the_modes_it_contains():
    found = resolvent(matrix(AA), matrix([["-1/2"]]), column(1, 2))
    assert found is not None and found.scale == 8
    difference, total = found.part([[Fraction(1), Fraction(-1)]]), found.part([[Fraction(1)] * 2])
    # mu = 3/4 for a = 1/2 and 1/2 for a = 1, times 8.
    assert [int(f.rational_root.p) for f, _ in difference.factors] == [6]
    assert [int(f.rational_root.p) for f, _ in total.factors] == [4]
    flat = resolvent(matrix(AA), matrix([["-1/2"]]), column(2, 2))
    assert flat is not None and flat.part([[Fraction(1), Fraction(-1)]]).is_zero


def test_T6b_a_jordan_block_is_a_multiple_factor_as_far_as_X_0_reaches_into_it():
    H = [[1, 1, 0], [0, 1, 1], [0, 0, 1]]
    for row, size in (([1, 2, 4], 3), ([1, 2, 0], 2), ([1, 0, 0], 1)):
        found = resolvent(matrix(AA), matrix(H), matrix([row, row]))
        assert found is not None
        assert [exponent for _, exponent in found.factors] == [size]
        assert [(f.multiplicity, f.jordan) for f, _ in found.factors] == [(size, (size,))]
        whole = found.part(identity(2))
        growth = growth_of(whole, Multipliers(matrix(AA), matrix(H), found.scale))
        assert growth.power == size - 1


def test_T4e_the_primes_of_the_resolvent_are_primes():
    assert all(flint.fmpz(p).is_prime() for p in resolvents._PRIMES)


@pytest.mark.parametrize("start", [(3, 6), (1, 4)])
def test_T4e_an_unlucky_prime_does_not_change_the_resolvent(monkeypatch, start):
    """Modulo 3 the states of (3, 6) are all 0, and (1, 4) is at consensus; the next prime tells."""
    case = matrix(AA), matrix([["-1/2"]]), column(*start)
    right = resolvent(*case)
    monkeypatch.setattr(resolvents, "_PRIMES", (3, 2**61 - 1))
    again = resolvent(*case)
    assert right is not None and again is not None
    assert right.table == again.table and right.degree == again.degree == 2
    assert [f.polynomial for f, _ in right.factors] == [f.polynomial for f, _ in again.factors]


def test_T4e_the_work_of_a_resolvent_grows_with_its_order_and_the_bits_of_a_layer(monkeypatch):
    """8 Z - (3, 1; 1, 3) Z: by a factor of 14 at most, 4 bits, and there are two modes."""
    case = matrix(AA), matrix([["-1/2"]]), column(1, 2)
    monkeypatch.setattr(resolvents, "LARGEST_WORK", 2**4 * 4)
    assert resolvent(*case) is not None
    monkeypatch.setattr(resolvents, "LARGEST_WORK", 2**4 * 4 - 1)
    assert resolvent(*case) is None
    monkeypatch.undo()
    monkeypatch.setattr(resolvents, "LARGEST_ORDER", 1)
    assert resolvent(*case) is None and start_content(*case) is None


def test_T4e_an_X_0_with_every_mode_is_told_from_one_without():
    A, H = matrix(A3), matrix([["1/2", 0], [0, "-1/3"]])
    assert has_every_mode(A, H, matrix([[1, 2], [3, 5], [-2, 1]]))
    assert not has_every_mode(A, H, matrix([[1, 2], [3, 2], [-2, 2]]))
    # A repeated eigenvalue cannot be spanned from one vector.
    assert not has_every_mode(
        A, matrix([["1/2", 0], [0, "1/2"]]), matrix([[1, 2], [3, 5], [-2, 1]])
    )


# --- what X_0 contains ---


def test_T4e_the_radii_of_a_start_are_those_of_the_modes_it_contains():
    found = content(AA, [["1/2"]], [[1], [2]])
    assert (found.consensus, found.quotient, found.comparison) == (1.5, 1.25, 1)
    assert content(AA, [["-1/2"]], [[1], [2]]).comparison == -1
    assert content(AA, [["-4/3"]], [[1], [2]]).comparison == 0
    flat = content(AA, [["-1/2"]], [[2], [2]])
    assert (flat.consensus, flat.quotient, flat.comparison) == (0.5, None, 1) and flat.at_consensus
    free = content(AA, [["1/2"]], [[1], [-1]])
    assert (free.consensus, free.quotient, free.comparison) == (None, 1.25, -1)
    # a = 1/2 and a = 1/5 under h = 1/2: 5/4 and 11/10.
    assert content(A3, [["1/2"]], [[1], [2], [4]]).quotient == 1.25
    kept = content(AA, [[-2]], [[1], [2]])
    assert (kept.consensus, kept.quotient, kept.comparison) == (1.0, 0.0, 1)


@pytest.mark.parametrize(("a", "h"), [("1/2", -2), ("2/5", "-5/2")])
def test_T11_6_a_mode_whose_multiplier_is_0_is_gone(a, h):
    a = Fraction(a)
    A = [[(1 + a) / 2, (1 - a) / 2], [(1 - a) / 2, (1 + a) / 2]]
    gone = content(A, [[h]], [[1], [-1]])
    assert gone.vanishes and gone.quotient == 0.0 and gone.comparison is None
    found = verdict(A=A, H=[[h]], X0=[[1], [-1]], depth=[0, 1])
    assert found.verdict_x0 == "UNDEFINED" and "becomes exactly 0" in found.reason
    assert found.tends_to is None and found.hfc_lfc[1].value is None


@pytest.mark.parametrize("size", [10, 100, 300])
def test_T4e_a_mode_is_contained_however_small_its_share(size):
    """X_0 = (1, 1 + 10^-size) leaves consensus; (1, 10^-size - 1) has a mean."""
    small = Fraction(1, 10**size)
    near = verdict(A=AA, H=[["-1/2"]], X0=[[1], [1 + small]])
    assert (near.verdict_x0, near.tends_to, near.status) == ("NON_SMOOTHING", "infinity", "exact")
    odd = verdict(A=AA, H=[["1/2"]], X0=[[1], [small - 1]])
    assert (odd.verdict_x0, odd.tends_to) == ("SMOOTHING", "zero")


def test_T4e_a_share_of_1e_11_decides_in_floats_too():
    near = verdict(A=FLOAT_AA, H=[[-0.5]], X0=[[1.0], [1.00000000001]])
    assert (near.verdict_x0, near.tends_to) == ("NON_SMOOTHING", "infinity")
    odd = verdict(A=FLOAT_AA, H=[[0.5]], X0=[[1.0], [-1 + 1e-11]])
    assert (odd.verdict_x0, odd.tends_to) == ("SMOOTHING", "zero")


def test_T4e_in_floats_a_share_within_rounding_is_undecided():
    """pi is not known to more digits than the entries of A are: pi^T X_0 may be 0, and may not."""
    A = [[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.5, 0.2, 0.3]]
    found = verdict(A=A, H=[[0.5]], X0=[[9.0], [-26.0], [0.0]])
    assert (found.verdict, found.verdict_x0) == ("SMOOTHING", "UNDECIDED")
    assert found.tends_to is None and found.limit is None


@pytest.mark.parametrize("h", ["1e-13", "1e-300", "-1e-300"])
def test_T2_multipliers_as_close_as_can_be_are_told_apart(h):
    found = verdict(A=AA, H=[[h]], X0=[[1], [2]])
    expected = "NON_SMOOTHING" if h.startswith("-") else "SMOOTHING"
    assert (found.verdict, found.verdict_x0) == (expected, expected)
    assert found.tends_to == ("infinity" if expected == "NON_SMOOTHING" else "zero")


def test_T11_a_consensus_that_shrinks_is_not_the_zero_state():
    found = verdict(A=AA, H=[["-1." + "0" * 99 + "1"]], X0=[[1], [1]])
    assert found.verdict_x0 == "TRIVIAL" and "exactly 0" not in found.reason


def test_T1d_an_entry_below_every_binary64_still_joins_its_classes():
    small = "1e-400"
    A = [[1 - Fraction(small), small], [2 * Fraction(small), 1 - 2 * Fraction(small)]]
    found = verdict(A=A, H=[["1/2"]], X0=[[1], [2]])
    assert (found.verdict, found.verdict_x0, found.tends_to) == ("SMOOTHING", "SMOOTHING", "zero")


# --- several closed classes (T14) ---


@pytest.mark.parametrize("n", [2, 3, 9])
@pytest.mark.parametrize("one", [1, 1.0])
def test_T14_a_token_that_attends_to_itself_alone_keeps_its_share(n, one):
    """A = I, X_0 = e_n: X_L = (1 + h)^L e_n, and HFC/LFC = sqrt(n - 1) at every depth."""
    A = [[one * int(i == j) for j in range(n)] for i in range(n)]
    X0 = [[one * int(i == n - 1)] for i in range(n)]
    found = verdict(A=A, H=[[one * 1 / 2 if isinstance(one, float) else "1/2"]], X0=X0)
    assert (found.verdict_x0, found.tends_to, found.limit_rank) == ("TIE", "constant", 1)
    assert found.limit == pytest.approx(math.sqrt(n - 1), rel=1e-14)


def test_T14_a_class_of_its_own_ties_with_itself():
    A = [[0.75, 0.25, 0.0], [0.25, 0.75, 0.0], [0.0, 0.0, 1.0]]
    found = verdict(A=A, H=[[-0.5]], X0=[[0.0], [0.0], [1.0]])
    assert (found.verdict_x0, found.tends_to) == ("TIE", "constant")
    assert found.limit == pytest.approx(math.sqrt(2), rel=1e-14)


def test_T14_classes_with_equal_means_smooth_and_others_do_not():
    A = [["1/2", "1/2", 0, 0], ["1/2", "1/2", 0, 0], [0, 0, "1/2", "1/2"], [0, 0, "1/2", "1/2"]]
    even = verdict(A=A, H=[["1/2"]], X0=[[1], [3], [0], [4]])
    assert (even.verdict_x0, even.tends_to) == ("SMOOTHING", "zero")
    odd = verdict(A=A, H=[["1/2"]], X0=[[1], [3], [0], [6]])
    # Class means 2 and 3: deviations of 1/2 from a mean of 5/2.
    assert (odd.verdict_x0, odd.tends_to) == ("TIE", "constant")
    assert odd.limit == pytest.approx(1 / 5, rel=1e-15)


def test_T14_a_transient_token_ends_between_the_classes_that_absorb_it():
    """Token 3 goes to token 1 with 1/4 and to token 2 with 3/4: it ends at (1/4, 3/4) of them."""
    A = [[1, 0, 0], [0, 1, 0], ["1/8", "3/8", "1/2"]]
    found = verdict(A=A, H=[["1/2"]], X0=[[0], [4], [100]])
    assert (found.verdict_x0, found.tends_to) == ("TIE", "constant")
    ends = np.array([0.0, 4.0, 3.0])
    expected = np.linalg.norm(ends - ends.mean()) / (math.sqrt(3) * ends.mean())
    assert found.limit == pytest.approx(expected, rel=1e-15)


# --- limits ---


def test_T5a_the_limit_of_one_real_dominant_mode_does_not_depend_on_X_0():
    for X0 in ([[1], [2], [4]], [[1], [0], [0]]):
        found = content(A3, [["-1/2"]], X0).limits
        assert (found.tends_to, found.limit_rank) == ("constant", 1)
        assert found.limit == pytest.approx(8 * math.sqrt(2) / 5, rel=1e-15)


def test_T5a_a_complex_h_turns_features_and_keeps_the_ratio():
    H = [["-1/2", -1], ["1/16", "-1/2"]]
    found = content(A3, H, [[1, 2], [3, 5], [-2, 1]]).limits
    assert (found.tends_to, found.limit_rank) == ("constant", 1)
    assert found.limit == pytest.approx(8 * math.sqrt(2) / 5, rel=1e-15)


def test_T5a_a_repeated_a_with_a_complex_h_oscillates_at_rank_2():
    double = [["3/4", "1/8", "1/8"], ["1/4", "5/8", "1/8"], ["1/4", "1/8", "5/8"]]
    found = content(double, [["-1/2", -1], ["1/4", "-1/2"]], [[1, 2], [3, 5], [-2, 1]]).limits
    assert (found.tends_to, found.limit, found.limit_rank) == ("oscillates", None, 2)


def test_T3f_a_complex_a_turns_tokens_and_both_complex_keep_rank_2():
    X0 = [[1, 2], [3, 5], [-2, 1]]
    turning = content(C3, [["-9/10", 0], [0, "-3/10"]], X0).limits
    assert (turning.tends_to, turning.limit_rank) == ("infinity", 1)
    both = content(C3, [["1/5", "-3/2"], ["3/2", "1/5"]], X0).limits
    assert (both.tends_to, both.limit_rank) == ("infinity", 2)


def test_T4c_the_rank_is_that_of_this_start_however_small_its_second_direction():
    A = [[Fraction(1, 3) * (i == j) + Fraction(2, 9) for j in range(3)] for i in range(3)]
    H = [["-1/2", 0], [0, "-1/2"]]
    two = content(A, H, [[1, "1e-8"], [-1, 0], [0, "-1e-8"]]).limits
    one = content(A, H, [[1, "1e-8"], [-1, "-1e-8"], [0, 0]]).limits
    assert (two.limit_rank, one.limit_rank) == (2, 1)


def test_T4c_conjugates_that_all_lead_have_the_largest_rank_of_any_depth():
    """mu = +-1 beside each other: rank 1 at even depths, 2 at odd ones."""
    A, H = [["1/2", "1/2"], ["1/2", "1/2"]], [[0, 0], [0, -2]]
    found = content(A, H, [[2, 2], [0, 0]]).limits
    assert found.limit_rank == 2
    states = [state(matrix(A), matrix(H), [[2, 2], [0, 0]], depth) for depth in (10, 11)]
    assert [np.linalg.matrix_rank(np.array(X, dtype=float)) for X in states] in ([1, 2], [2, 1])


def test_T4c_an_algebraic_root_that_leads_alone_is_ranked_in_its_field():
    """H = [[0, 1], [1, 1]] has the golden ratio, one root of two that lead."""
    A = [[Fraction(1, 2) * (i == j) + Fraction(1, 6) for j in range(3)] for i in range(3)]
    golden = [[0, 1], [1, 1]]
    assert content(A, golden, [[1, 2], [3, 5], [4, 4]]).limits.limit_rank == 1
    double = [[0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1]]
    # Zero pi-mean: a = 1/2 twice and h = 1.618 twice lead.
    start = [[1, 2, 0, 1], [-1, 0, 3, 1], [0, -2, -3, -2]]
    assert content(A, double, start).limits.limit_rank == 2
    equal = [[1, 2, 1, 2], [-1, 0, -1, 0], [0, -2, 0, -2]]
    assert content(A, double, equal).limits.limit_rank == 1


def test_T6b_a_tie_in_modulus_is_decided_by_the_jordan_blocks():
    found = content([["1/2", "1/2"], ["1/2", "1/2"]], [[0, 1], [0, 0]], [[1, 2], [3, 5]])
    assert found.comparison == 0 and found.limits.tends_to == "zero"


def test_T4d_a_tie_has_the_ratio_of_its_parts():
    found = content([["1/4", "3/4"], ["3/4", "1/4"]], [[-4, 0], [0, -1]], [[2, 1], [1, 3]])
    assert found.comparison == 0 and found.limits.limit_rank == 1
    assert found.limits.limit == pytest.approx(1 / 3, rel=1e-15)


def test_T11_a_start_of_zero_mean_under_doubly_stochastic_attention_has_no_mean_ever():
    found = content(AA, [["1/2"]], [[1], [-1]])
    assert (found.limits.tends_to, found.limits.limit) == ("infinity", math.inf)


def test_T11_where_every_state_dies_nothing_is_said_of_limits():
    found = verdict(A=[[1, 0], [0, 1]], H=[[-1, 0], [0, -1]])
    assert (found.tends_to, found.limit, found.limit_rank) == (None, None, None)


# --- binary64 that means what it says ---


def test_short_binary_numbers_are_decided_exactly_where_rounding_would_decide():
    found = verdict(A=[[0.5, 0.5], [0.5, 0.5]], H=[[-2.0]])
    assert (found.verdict, found.status) == ("TIE", "exact")
    third = verdict(A=FLOAT_AA, H=[[-4 / 3]])
    assert (third.verdict, third.status) == ("UNDECIDED", "numerical")
    assert Layer.of(FLOAT_AA, [[-4 / 3]]).as_fractions() is None
    assert Layer.of([[0.7, 0.3], [0.3, 0.7]], [[1.0]]).as_fractions() is None


def test_T11_1_a_single_token_that_dies_is_undefined_in_floats_too():
    found = verdict(A=[[1.0]], H=[[-1.0]], X0=[[3.0]], depth=1)
    assert (found.verdict, found.verdict_x0, found.tends_to) == ("TRIVIAL", "UNDEFINED", None)


@pytest.mark.parametrize("row", [[1.0, 0.5], [0.3, 0.1]])
def test_T11_1_a_state_at_consensus_dies_by_H_alone_whatever_A_is(row):
    """I + H = [[0, 1], [0, 0]] is nilpotent: 1 c^T is 0 after two layers, in any attention."""
    H = [[-1.0, 1.0], [0.0, -1.0]]
    for A in ([[0.7, 0.3], [0.2, 0.8]], [[1.0, 0.0], [1e-20, 1.0]], [[1.0, 0.0], [0.0, 1.0]]):
        found = verdict(A=A, H=H, X0=[row, row], depth=[1, 2])
        assert (found.verdict_x0, found.tends_to) == ("UNDEFINED", None)
        kept = verdict(A=A, H=[[-1.0, 1.0], [0.0, -0.5]], X0=[row, row])
        assert (kept.verdict_x0, kept.tends_to, kept.limit_rank) == ("TRIVIAL", "zero", 1)


def test_T14_classes_whose_modes_all_die_are_no_tie():
    A = [[1.0, 0.0], [0.0, 1.0]]
    found = verdict(A=A, H=[[-1.0, 0.0], [0.0, 0.5]], X0=[[1.0, 0.0], [2.0, 0.0]])
    assert (found.verdict_x0, found.tends_to) == ("UNDEFINED", None)


@pytest.mark.parametrize(("h", "expected"), [(0.5, "SMOOTHING"), (-0.5, "NON_SMOOTHING")])
def test_T2d_saturated_attention_is_decided_by_the_sign_of_h(h, expected):
    """A diagonal that rounds to 1 is no second eigenvalue 1."""
    for case in (
        {"logits": [[0.0, -np.inf], [0.0, 50.0]]},
        {"A": [[1.0, 0.0], [1e-20, 1.0]]},
        {"A": [[1.0, 0.0], [1e-300, 1.0]]},
    ):
        assert verdict(**case, H=[[h]]).verdict == expected


def _ring(*shares: str) -> list[list[Fraction]]:
    """Tokens in a ring that pass on these shares of themselves."""
    A = [[Fraction(0)] * len(shares) for _ in shares]
    for i, share in enumerate(shares):
        A[i][i], A[i][(i + 1) % len(shares)] = 1 - Fraction(share), Fraction(share)
    return A


def test_T4_eigenvalues_that_agree_to_hundreds_of_digits_are_parted():
    """h = -3/2 and 3/2: |1 + h a| falls short of |1 + h| by 3/2 (1 - a), however little that is."""
    for h in ("-3/2", "3/2"):
        found = verdict(A=_ring("1e-139", "1e-10", "1e-140"), H=[[h]], X0=[[1], [2], [3]])
        assert (found.verdict, found.verdict_x0) == ("SMOOTHING", "SMOOTHING")


def test_T4_roots_that_agree_to_hundreds_of_bits_lie_one_in_each_ball():
    """(x - 1)^3 - t and its kin around 2: roots of known places, conjugate pairs among them."""
    tiny = 10**150
    for shift in (0, 2):
        y = flint.fmpz_poly([-shift, 1])
        # tiny^3 y^3 = 2, so that y = 2^(1/3) w / tiny, w^3 = 1.
        factor = Factor(tiny**3 * y**3 - 2, 1, (1,))
        assert factor.conjugate_index in ([0, 2, 1], [1, 0, 2], [2, 1, 0])
        for bits in (64, 4096):
            roots = factor.roots(bits)
            assert not any(x.overlaps(z) for k, x in enumerate(roots) for z in roots[:k])
            with at_precision(8192):
                places = [((x - shift) * tiny) ** 3 for x in roots]
            assert all(place.overlaps(2) for place in places)
        # Three roots 1e-150 apart cost some 1,500 of the 4,096 bits.
        assert all(place.real.rel_accuracy_bits() > 2048 for place in places)


def test_T4_eigenvalues_that_agree_to_thousands_of_digits_are_not_compared():
    A = _ring("1e-3999", "1e-3000", "1e-4000", "1e-3100", "2e-3000")
    found = verdict(A=A, H=[["-3/2"]], X0=[[1], [2], [3], [4], [6]], depth=[1])
    assert (found.verdict, found.verdict_x0) == ("UNDECIDED", "UNDECIDED")
    assert "agree to more digits" in found.reason and found.hfc_lfc[1].squared is not None
    assert found.has_x0 and not verdict(A=A, H=[["-3/2"]]).has_x0


def test_T14_in_floats_classes_that_seem_to_agree_are_left_open():
    H = [[-2.5, 1.0, -2.0], [-6.0, 0.5, 6.0], [-6.0, -1.25, 0.1]]
    X0 = [[6.0, -8.0, 0.0], [6.0, -8.0, 2e-300], [6.0, -8.0, 8e-300]]
    A = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    assert verdict(A=A, H=H, X0=X0).verdict_x0 == "UNDECIDED"
    short = verdict(A=A, H=[[-2.5, 1.0, -2.0], [-6.0, 0.5, 6.0], [-6.0, -1.25, 0.0]], X0=X0)
    assert short.verdict_x0 == "TIE"
    tiny = verdict(A=[[1.0, 0.0], [0.0, 1.0]], H=[[0.7]], X0=[[1e-300], [0.0]])
    assert (tiny.verdict_x0, tiny.tends_to) == ("TIE", "constant") and tiny.limit == 1.0


def test_T5a_a_limit_in_floats_is_found_at_any_size_of_the_mean():
    """Two classes, the second mean 1e-200 of the first's negative: HFC/LFC is huge and finite."""
    A = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.3, 0.2, 0.5]]
    for size in (1.0, 1e-180, 1e150):
        found = verdict(A=A, H=[[0.7]], X0=[[size], [3 * size], [size]])
        ends = np.array([1.0, 3.0, 0.6 + 1.2])
        expected = np.linalg.norm(ends - ends.mean()) / (math.sqrt(3) * ends.mean())
        assert found.verdict_x0 == "TIE" and found.limit == pytest.approx(expected, rel=1e-12)


# --- how far a resolvent is computed ---


def cycle(k):
    return [[Fraction(int((i + 1) % k == j)) for j in range(k)] for i in range(k)]


def test_T4e_the_work_of_a_resolvent_is_its_order_and_the_bits_of_a_layer():
    """1 + 7 * 5 * 2 = 71: 7 bits."""
    step, _ = resolvents.in_integers(matrix([[1, 7], [0, 3]]), matrix([[5]]), column(1, 1))
    assert step.bits == 7
    turned, _ = resolvents.in_integers(matrix([[5]]), matrix([[1, 7], [0, 3]]), [[1, 1]])
    assert turned.bits == 7


def test_T4e_resolvents_are_computed_up_to_the_order_128():
    start = column(1, *[0] * 127)
    assert resolvent(cycle(128), [[Fraction(1)]], start).degree == 128
    assert resolvent(cycle(129), [[Fraction(1)]], [*start, [Fraction(0)]]) is None


def test_T4e_what_no_prime_tells_apart_is_no_resolvent():
    """1 + a for a = 0 and for the product of all the primes: equal modulo each of them."""
    far = (2**62 - 57) * (2**62 - 87) * (2**62 - 117) * (2**61 - 1)
    A = [[Fraction(0), Fraction(0)], [Fraction(0), Fraction(far)]]
    with pytest.raises(ArithmeticError, match="no prime"):
        resolvent(A, [[Fraction(1)]], column(1, 1))


# --- the finite horizon and the nearest other verdict ---


def test_T4e_in_floats_the_finite_horizon_depends_on_no_basis_of_a_repeated_eigenvalue():
    """A = 2/7 I + 5/7 1 p^T: the eigenvectors of 2/7 are any basis of a plane."""
    p = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    A = [
        [Fraction(5, 7) * p[j] + (Fraction(2, 7) if i == j else 0) for j in range(3)]
        for i in range(3)
    ]
    for H, X0 in (
        ([[1, 0], [0, "-1/2"]], [["5/1024", 2], ["-3/1024", 1], ["1/1024", 0]]),
        ([["1/2", 0], [0, 0]], [["5/1024", 2], ["-3/1024", 1], ["1/1024", 0]]),
    ):
        exact = verdict(A=A, H=H, X0=X0)
        H, X0 = ([[float(Fraction(x)) for x in row] for row in M] for M in (H, X0))
        found = verdict(A=np.array(A, dtype=float), H=H, X0=X0)
        assert found.status == "certified" and exact.shows_from > 0
        assert found.shows_from == exact.shows_from


def test_T2b_the_distance_to_a_tie_is_that_of_the_worst_change_of_A_and_H():
    """h = -4/3 + t, a = 1/2: rho_C - rho_Q = -t/2 for small t, and moves by dh/2 and by 4/3 da;
    dA moves a by ||dA|| at most, in the direction (1, -1; -1, 1)/2."""
    t = 1e-5
    found = verdict(A=AA, H=[[Fraction(-4, 3) + Fraction(1, 10**5)]])
    h, size_a = 4 / 3 - t, math.sqrt(2 * (0.75**2 + 0.25**2))
    expected = 1.5 * t / (1.5 * h + h * size_a)
    assert found.verdict == "NON_SMOOTHING"
    assert found.distance == pytest.approx(expected, rel=1e-6)
    assert f"by {expected:.2g} of their norms" in found.reason
    assert found.to_json_object()["distance"] == found.distance


def test_T2_a_tie_has_distance_0_and_a_clear_verdict_none():
    assert verdict(A=AA, H=[["-4/3"]]).distance == 0.0
    assert verdict(A=AA, H=[["1/2"]]).distance is None
    undecided = verdict(A=FLOAT_AA, H=[[-4 / 3]])
    assert undecided.distance is not None and undecided.distance < 1e-15
    assert verdict(A=[[1.0]], H=[[0.5]]).distance is None


@pytest.mark.parametrize("seed", range(6))
def test_T2_no_small_change_within_the_distance_moves_the_margin_further(seed):
    """The gradient bounds what drawn changes of that size do, and a change along it attains it."""
    rng = np.random.default_rng(seed)
    A = rng.random((4, 4))
    A /= A.sum(axis=1, keepdims=True)
    H = rng.standard_normal((3, 3))

    def margin(A, H):
        a, h = np.linalg.eigvals(A), np.linalg.eigvals(H)
        a = np.delete(a, np.argmin(np.abs(a - 1)))
        return np.abs(1 + h).max() - np.abs(1 + np.outer(a, h)).max()

    distance = distance_to_tie(A, H)
    assert distance is not None
    slope, size = abs(margin(A, H)) / distance, 1e-6
    moved = []
    for _ in range(200):
        dA, dH = rng.standard_normal((4, 4)), rng.standard_normal((3, 3))
        dA -= dA.mean(axis=1, keepdims=True)
        dA *= size * np.linalg.norm(A) / np.linalg.norm(dA)
        dH *= size * np.linalg.norm(H) / np.linalg.norm(dH)
        moved.append(abs(margin(A + dA, H + dH) - margin(A, H)) / size)
    assert 0.2 * slope < max(moved) <= slope * (1 + 1e-3)


def test_T2_where_the_norm_of_H_is_no_float_there_is_no_distance():
    found = verdict(A=[[0.5, 0.5], [0.5, 0.5]], H=[[1.7e308, 0.0], [1e308, -1.7e308]])
    assert (found.verdict, found.distance) == ("SMOOTHING", None)
