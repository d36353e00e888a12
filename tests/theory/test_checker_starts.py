"""T4, T5d, T11, T14: what the checker confirms of one X_0: its depth, its verdict, its coefficient.

Numbers worked by hand, or the layers themselves in fractions."""

import math
import time
from fractions import Fraction

import flint
import numpy as np
import pytest

from oversmoothing.theory.certificate import DEPTH_SIDE
from oversmoothing.theory.checker import check as start, krylov as depths
from oversmoothing.theory.checker.check import check_x0, coefficient, verdict_of
from oversmoothing.theory.checker.krylov import check_depth, consensus_modes, norm, two_norm
from oversmoothing.theory.checker.reading import Bounds, Claim
from oversmoothing.theory.depth.ratios import exact_state, squared_norms
from tests.support.cases import cases
from tests.support.tables import matrix
from tests.theory.test_checker_verdicts import given

# The quotient block is defective, with 1/2 twice; nearly defective, with 1/2 and 1/10; complex.
CHAIN = "1 0 0; 1/2 1/2 0; 0 1/2 1/2"
STEEP = "1 0 0; 1/2 1/2 0; 1/100 89/100 1/10"


def uniform(n):
    return [[Fraction(1, n)] * n for _ in range(n)]


def column(n):
    return [[i + 1] for i in range(n)]


# --- depth ---


def last_above(A, H, X, eps, layers=200):
    """The last layer above eps, by the layers in fractions."""
    states = exact_state(matrix(A), matrix(H), matrix(X), range(layers))
    squares = {L: squared_norms(Y) for L, Y in states.items()}
    return max(L for L, (hfc, lfc) in squares.items() if hfc > eps**2 * lfc)


def depth_of(A, H, X, depth, eps):
    return check_depth(matrix(A), matrix(H), matrix(X), depth, Fraction(eps))


@pytest.mark.parametrize("eps", [Fraction(1, 1000), Fraction(1, 5)])
@cases(
    "A, H, X",
    ("AA", "1/2", "1; 2"),
    ("A3", "1/2", "1; 2; 4"),
    ("A3", "1/2", "1; 0; -1"),
    (CHAIN, "1/2", "1; 1; 2"),
    (STEEP, "1/2 0; 0 1/5", "1 0; 3 0; -2 0"),
    (STEEP, "1/2 1/3; -1/4 1/5", "1 2; 3 5; -2 1"),
    # Non-normal H: HFC/LFC rises before it falls, and falls and rises by turns.
    ("A3", "1/2 10 0; 0 1/4 10; 0 0 1/8", "1 2 3; 3 5 -1; -2 1 4"),
    ("AA", "3/10 20; 0 1/5", "1 2; 1 -2"),
    ("C3", "1/4", "1; 5; -3"),
    ("C3", "1/2 -1/8; 1/8 1/2", "1 1; 5 2; -3 0"),
    # a = 1/5 alone in the feature of h = 1/2, a = 1/2 in that of h = 0.
    ("A3", "1/2 0; 0 0", "0 -1/25; 0 11/100; 8 1/100"),
    ("A3", "0 0; 0 1/2", "-1/25 0; 11/100 0; 1/100 8"),
    # z = (3, 4): where z^T c_0 is not 0 the mode of 1/2 leads.
    ("AA", "1/2 1; 0 -1/4", "1 2; 3 6"),
)
def test_T5d_a_depth_is_confirmed_from_the_first_true_one_on_and_refused_before(A, H, X, eps):
    last = last_above(A, H, X, eps)
    assert 0 < last < 150
    for depth in (last + 1, last + 2, last + 8):
        assert depth_of(A, H, X, depth, eps).accepted
    for depth in (last, max(last - 3, 0), 0):
        early = depth_of(A, H, X, depth, eps)
        assert not early.accepted and not early.beyond and "does not hold at layer" in early.words
    assert f"does not hold at layer {last}, past {last}" in depth_of(A, H, X, last, eps).words


def test_T5d_a_ratio_that_is_below_eps_and_rises_is_followed_to_where_it_is_above():
    """Consensus -2, and I - 3 N for the rest: HFC/LFC is .046, .082, .081, .054, and falls."""
    rising, eps = ("1 0 0; 1 0 0; 0 1 0", "-3", "1; 11/10; 1"), Fraction(3, 50)
    assert last_above(*rising, eps) == 2
    found = depth_of(*rising, 0, eps)
    assert not (found.accepted or found.beyond) and "does not hold at layer 1," in found.words
    assert depth_of(*rising, 3, eps).accepted


@cases(
    "A, H, X, words",
    ("AA", "-1/2", "1; 2", "smaller than consensus"),
    ("AA", "0", "1; 2", "smaller than consensus"),
    ("AA", "1/2", "1; -1", "that X_0 contains"),
    ("1 0; 0 1", "1/2", "1; 2", "not unique"),
    # c_0 = (4, -3): consensus only shrinks, and the quotient outgrows it.
    ("AA", "1/2 1; 0 -1/4", "5 -2; 3 -4", "smaller than consensus"),
)
def test_T5d_a_depth_needs_consensus_that_wins_and_is_there(A, H, X, words):
    found = depth_of(A, H, X, 50, "1/10")
    assert not found.accepted and found.beyond and words in found.words


@cases(
    "A, h, X, depth, early",
    ("AA", "1/1000", "1; 2", 11627, 11),
    ("AA", "1e-10", "1; 2", 116182859815, 116182859),
    # Past a transient: many layers at once, and not one of them too many.
    (CHAIN, "1/100000", "1; 1; 2", 1231012, 1),
)
def test_T5d_a_slow_rate_takes_no_longer(A, h, X, depth, early):
    began = time.perf_counter()
    assert depth_of(A, h, X, depth, "1/1000").accepted
    found = depth_of(A, h, X, depth - early, "1/1000")
    assert not found.accepted and not found.beyond and time.perf_counter() - began < 5


def test_T5d_no_depth_where_the_bound_is_not_seen_in_the_steps_allowed(monkeypatch):
    """The chain takes a step a layer from where the bound holds to where its powers show it."""
    last = last_above(CHAIN, "1/2", "1; 1; 2", Fraction(1, 10))
    monkeypatch.setattr(depths, "STEPS", 0)
    found = depth_of(CHAIN, "1/2", "1; 1; 2", last + 1, "1/10")
    assert not found.accepted and found.beyond and "within the layers checked" in found.words


def test_T5d_norms_are_bounds_from_above():
    with flint.ctx.workprec(53):
        found = {n: norm([flint.acb(1)] * n) for n in (2, 3, 5)}
    with flint.ctx.workprec(200):
        assert all(n <= x * x < n + 1e-6 for n, x in found.items())
    for rows, size in (
        ([[-2]], 2), ([[0, 3], [0, 0]], 3), ([[3, 4], [0, 0]], 5), ([[0, 0]] * 2, 0),
        ([[0.5, 0], [0, 0.25]], 0.5), ([[0.5, 1], [0, 0.5]], (1 + math.sqrt(2)) / 2),
    ):  # fmt: skip
        found = two_norm(flint.acb_mat([[flint.acb(x) for x in row] for row in rows]))
        assert size - 1e-15 <= found.upper() and found < size + 1e-3
    wrong = flint.acb_mat([[flint.acb("nan"), 0], [0, 0.5]])
    assert not two_norm(wrong).is_finite()


# --- what is checked of a start, and up to which sizes ---


@cases(
    "H, c, modes",
    # Simple modes that c_0 sees and that stay, by growth and not by content.
    ("diag 1/2 1/2 2 -1/4", [1, 1, 1, 1], [(3, 1), (0.75, 1)]),
    ("diag 2 1/4 1/4 -1/2 1/4", [1] * 5, [(3, 1), (0.5, 1)]),
    ("diag -1 1/2", [1, 1], [(1.5, 1)]),
    ("diag -2 -1 1", [1, 1, 1], [(2, 1), (1, 1)]),
    ("diag 1 1/2", [1, 100], [(2, 1), (1.5, 100)]),
    ("diag 1 1/2", [0, 1], [(1.5, 1)]),
    # z = (1, 1) for h = 1 and (0, 1) for h = 1/2, over their lengths.
    ("1 1/2; 0 1/2", [3, 0], [(2, 3 / math.sqrt(2))]),
    ("1 1/2; 0 1/2", [3, 1], [(2, 4 / math.sqrt(2)), (1.5, 1)]),
    # A quarter turn: z = (1, +- i) sees (1, 0) by 1.
    ("0 -1; 1 0", [1, 0], [(math.sqrt(2), math.sqrt(0.5))] * 2),
)
def test_T5d_modes_of_consensus_have_their_growth_and_their_content(H, c, modes):
    found = consensus_modes(matrix(H), flint.fmpq_mat(len(c), 1, c))
    assert [float(x.mid()) for mode in found for x in mode] == pytest.approx(
        [x for mode in modes for x in mode], rel=1e-9
    )


DEPTH = Claim("SMOOTHING", eps=Fraction(1, 2), depth=3)


@pytest.mark.parametrize(("n", "d", "followed"), [(25, 4, True), (15, 7, False)])
def test_T5d_a_depth_is_claimed_and_confirmed_up_to_96_coordinates(n, d, followed):
    assert start.DEPTH_SIDE == DEPTH_SIDE == 96
    X0 = [[i + j for j in range(d)] for i in range(n)]
    H = [[Fraction(int(i == j), i + 1) for j in range(d)] for i in range(d)]
    found = check_x0(given(uniform(n), H, X0), DEPTH)
    assert (found.accepted, found.beyond) == (followed, not followed)


@pytest.mark.parametrize(("n", "told"), [(9, True), (48, True), (49, False)])
def test_T4e_krylov_vectors_settle_one_start_up_to_48_tokens(n, told):
    found = check_x0(
        given(uniform(n), "1/2", column(n)), Claim("SMOOTHING", verdict_x0="SMOOTHING")
    )
    assert found.accepted == told and found.beyond != told


# --- the verdict ---


@cases(
    "A, H, X, verdict",
    ("AA", "-1/2", "1; 1", "TRIVIAL"),
    ("AA", "-1", "1; 1", "UNDEFINED"),
    ("AA", "1/2", "0; 0", "UNDEFINED"),
    ("AA", "1/2", "1; -1", "NON_SMOOTHING"),
    *[("AA", "-1/2", f"1; {1 + Fraction(1, 10**k)}", "NON_SMOOTHING") for k in (10, 100, 3000)],
    *[("AA", f"1e-{k}", "1; 2", "SMOOTHING") for k in (10, 100, 3000)],
    *[("AA", f"{Fraction(1, 10**k) - 1}", "1; 1", "TRIVIAL") for k in (10, 100, 3000)],
    # A tie of the modes that it contains.
    (uniform(4), "diag -2 -1/3", "1 0; 2 0; 4 0; 8 0", "TIE"),
    (uniform(4), "diag -3/2 1/2", "1 0; 2 0; 4 0; 8 0", "NON_SMOOTHING"),
    (uniform(8), "diag -2" + " 0" * 7, [[i + 1] + [0] * 7 for i in range(8)], "TIE"),
    (uniform(8), "diag 1" + " 0" * 7, [[i + 1] + [0] * 7 for i in range(8)], "SMOOTHING"),
    ("FLAT", "-2/5 -4/5; 4/5 -2/5", "1 2; 3 5", "TIE"),
    ("AA", f"diag 1 {Fraction(-4, 3) + Fraction(1, 10**400)}", "0 1; 0 2", "NON_SMOOTHING"),
    ("AA", f"diag 1 {Fraction(-4, 3) - Fraction(1, 10**400)}", "0 1; 0 2", "SMOOTHING"),
    # Several classes have a consensus each.
    ("1 0; 0 1", "1/2", "0; 1", "TIE"),
    ("1 0; 0 1", "1/2", "1; -1", "TIE"),
    ("1 0; 0 1", "1/2", "1; 1", "TRIVIAL"),
    ("1 0; 0 1", "-1", "1; 2", "UNDEFINED"),
    ("3/4 1/4 0; 1/4 3/4 0; 0 0 1", "1/2", "1; 2; 3", "TIE"),
    ("3/4 1/4 0; 1/4 3/4 0; 0 0 1", "1/2", "0; 2; 1", "SMOOTHING"),
    ("3/4 1/4 0; 1/4 3/4 0; 0 0 1", "-1/2", "1; -1; 0", "NON_SMOOTHING"),
    *[("1", h, "3", "TRIVIAL") for h in ("1/2", "-2", "0")],
    ("1", "-1", "3", "UNDEFINED"),
)
def test_T4e_the_verdict_for_one_start_is_that_of_the_modes_it_contains(A, H, X, verdict):
    assert verdict_of(matrix(A), matrix(H), matrix(X)) == verdict


def test_T4e_a_side_of_more_than_160_modes_leaves_the_verdict_open():
    """A cycle of so many tokens, and of so many features."""
    cycle = [[Fraction(int((i + 1) % 162 == j)) for j in range(162)] for i in range(162)]
    first, turned = [[int(i == 0)] for i in range(162)], [[int(i == 0) for i in range(162)]] * 2
    assert verdict_of(cycle, matrix("1/3"), matrix(first)) is None
    turned[1] = [2 * x + 1 for x in turned[0]]
    assert verdict_of(matrix("FLAT"), cycle, matrix(turned)) is None


# --- genericity ---


def left(A, k):
    """The k-th left eigenvector of A by LAPACK, in the order of its eigenvalues."""
    values, vectors = np.linalg.eig(np.array(matrix(A), dtype=float).T)
    return vectors[:, np.argsort(values)[k]]


X3 = np.array([1.0, 2, 4])


@cases(
    "A, H, X0, consensus, expected",
    ("A3", "-1/2", "1; 2; 4", True, (26 + 2 * 9 + 4 * 5) / math.sqrt(782 * 21)),
    ("A3", "-1/2", "1; 2; 4", False, abs(left("A3", 0) @ X3) / 21**0.5),
    # h > 0: the dominant pair of the quotient is that of the largest a.
    ("A3", "1/2", "1; 2; 4", False, abs(left("A3", 1) @ X3) / 21**0.5),
    # h = -9/4 beats h = 1/8 at consensus: |1 + h| = 5/4 against 9/8.
    ("AA", "diag -9/4 1/8", "1 5; 2 7", True, 1.5 / math.sqrt(0.5 * (1 + 25 + 4 + 49))),
    # A complex pair leads together, as one.
    ("AA", "1/2 -1; 1 1/2", "1 0; 1 0", True, math.sqrt(0.5)),
    ("AA", "diag 1/2 1/4", "1 0; 1 0", True, 1.0),
    ("AA", "1/2 -1 0; 1 1/2 0; 0 0 1/4", "1 0 0; 1 0 0", True, math.sqrt(0.5)),
    ("AA", "diag 1/2 1/2", "1 2; 3 5", True, None),
    # |1 + 1| = |1 - 3|: equal moduli of no conjugates.
    ("AA", "diag 1 -3", "1 2; 3 5", True, None),
    ("AA", "0 -1 0 0; 1 0 0 0; 0 0 0 -1; 0 0 1 0", "1 2 3 4; 5 6 7 9", True, None),
    # Two a with one h; h and conj h with a and conj a.
    ("2/3 1/6 1/6; 1/6 2/3 1/6; 1/6 1/6 2/3", "-1/2", "1; 2; 4", False, None),
    ("C3", "-1/2", "1; 0; 0", False, math.sqrt(1 / 3)),
    ("C3", "1/5 -3/2; 3/2 1/5", "1 0; 0 0; 0 0", False, math.sqrt(1 / 6)),
)  # fmt: skip
def test_T4d_the_coefficient_is_that_of_the_dominant_pair_alone(A, H, X0, consensus, expected):
    found = coefficient(given(A, H, X0), consensus, 160)
    if expected is None:
        assert found is None
    else:
        assert float(found.mid()) == pytest.approx(expected, rel=1e-12)


SMALL = Fraction(1, 10**100)


@cases(
    "H, X0, low, words",
    # X_0 = pi z^T: no other coefficient can exceed 1.
    ("1/2", "3; 3", 0.5, "coefficient 1.00000000000000"),
    ("-1/2", f"1; {1 + SMALL}", 1e-101, "e-101"),
    (f"diag -1/2 {' '.join(f'-1/{2 + 7 * i}' for i in range(1, 20))}",
     [[1 + SMALL] * 20, [1] * 20], 1e-103, "e-101"),
    # Beyond 20 features more bits take too long.
    (f"diag -1/2 {' '.join(f'-1/{2 + 7 * i}' for i in range(1, 21))}",
     [[1 + SMALL] * 21, [1] * 21], 1e-103, None),
)  # fmt: skip
def test_T4d_coefficients_reach_from_close_to_0_up_to_1(H, X0, low, words):
    found = start.check_genericity(
        given("AA", H, X0), Bounds(Fraction(low), Fraction(1)), H == "1/2"
    )
    assert found.accepted == (words is not None) and found.beyond == (words is None)
    assert words is None or words in found.words
