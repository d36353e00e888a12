"""T4c, T5, T6a: rates, floors, depth bounds and measured quantities on cases worked by hand."""

import math
from fractions import Fraction

import flint
import numpy as np
import pytest

from oversmoothing.theory.claims.t5 import slope_law
from oversmoothing.theory.claims.t6 import block_sizes
from oversmoothing.theory.depth import recurrence as measured
from oversmoothing.theory.depth.bounds import (
    certified_depth_in_balls,
    depth_from_constants,
    effective_rank_excess,
    hfc_floor,
    power_depth,
    rank_rate,
    ratio_floor,
)
from oversmoothing.theory.depth.eigenbasis import Multipliers
from oversmoothing.theory.depth.ratios import exact_state, squared_norms
from oversmoothing.theory.layer.attention import quotient
from oversmoothing.theory.numbers.exact import to_float
from oversmoothing.theory.support.errors import InputError
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tables import floats, matrix

A2, A2_EXACT = floats("AA"), matrix("AA")
X2 = [[1.0], [2.0]]
SKEW = [[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.5, 0.2, 0.3]]


def in_balls(A, H, X0, eps):
    return certified_depth_in_balls(matrix(A), matrix(H), matrix(X0), Fraction(eps))


# --- rates of spectra ---


def test_rates_are_of_finite_eigenvalues():
    refuses("h is empty", rank_rate, [0.5], [])
    refuses("a must be a list of finite eigenvalues", rank_rate, [math.inf], [1.0])


@cases(
    "a, h, rate",
    # mu = [[2, 1/2], [3, 0]]: (3, 1/2) shares none, 2 x 0 shares none; over 3^2.
    ([0.5], [2.0, -1.0], 0.5 / 3),
    # mu = [[1, 3/4], [1, 1/2]]: the largest is 1, and 1 x 3/4 beats 1/2.
    ([0.5], [0.0, -0.5], 0.75),
    # mu = [[1, 1], [1, 1]]: two pairs that share no index tie.
    ([0.5], [0.0, 0.0], 1.0),
    ([1.0], [-1.0, -1.0], 0.0), ([], [1.0, 2.0], 0.0), ([0.5], [1.0], 0.0),
)  # fmt: skip
def test_T4c_the_rank_rate_takes_two_pairs_that_share_no_index(a, h, rate):
    assert rank_rate(a, h) == pytest.approx(rate, abs=0)


@pytest.mark.parametrize("bad", [[-0.1], [1.1], [0.5, 1.1], [0.5, -0.1], [math.nan]])
def test_T5c_ratios_lie_between_0_and_1(bad):
    refuses("between 0 and 1", effective_rank_excess, bad)


def test_T9_logarithms_of_multipliers_have_what_a_and_h_lack():
    half, more, known = np.array([0.5 + 0j]), np.array([1e-9 + 0j]), np.zeros(1)
    log = Multipliers(True, half, more, known, half, more, known).log
    # (1/2 + 1e-9)^2 is 1e-9 above 1/4, to 1e-18.
    assert log[0, 0] - math.log(1.25) == pytest.approx(1e-9 / 1.25, rel=1e-6)


# --- Jordan blocks ---


@cases(
    "p, h_is_zero, q, a_is_zero, sizes",
    (2, False, 2, False, [3, 1]), (3, False, 2, False, [4, 2]), (2, False, 3, True, [3, 3]),
    (2, True, 3, False, [2, 2, 2]), (2, True, 2, True, [2, 1, 1]),
    (2, True, 4, True, [2, 2, 2, 1, 1]), (1, True, 1, True, [1]),
    (3, False, 3, False, [5, 3, 1]), (3, True, 2, True, [2, 2, 1, 1]), (3, False, 2, True, [2,
        2, 2]),
)  # fmt: skip
def test_T6a_the_table_of_block_sizes(p, h_is_zero, q, a_is_zero, sizes):
    assert block_sizes(p, h_is_zero, q, a_is_zero) == sizes


# --- certified depth ---


@cases(
    "K, k, rate, eps, depth",
    # K (1 + k eps) / eps = 2 (1 + 4/4) 4 = 16: four halvings.
    (2.0, 4.0, 0.5, 0.25, 4), (2.0, 4.1, 0.5, 0.25, 5), (0.25, 0.0, 0.5, 0.25, 0),
    (0.26, 0.0, 0.5, 0.25, 1), (100.0, 0.0, 0.0, 0.25, 1), (0.1, 0.0, 0.0, 0.25, 0),
    (1.0, 0.0, 0.5, 2.0**-10, 10), (0.0, 0.0, 0.5, 0.1, 0),
    *[(*x, None) for x in ((1.0, 0.0, 0.5, 0.0), (1.0, 0.0, 0.5, -1.0), (-1.0, 0.0, 0.5, 0.1),
                           (1.0, -1.0, 0.5, 0.1), (1.0, 0.0, 1.0, 0.1), (1.0, 0.0, -0.1, 0.1),
                           (math.nan, 0.0, 0.5, 0.1))],
)  # fmt: skip
def test_T5d_the_depth_of_the_formula_is_rounded_up_and_never_negative(K, k, rate, eps, depth):
    if depth is not None:
        assert depth_from_constants(K=K, k=k, rate=rate, eps=eps) == depth
        return
    refuses("need eps > 0", depth_from_constants, K=K, k=k, rate=rate, eps=eps)


def test_T5d_for_normal_matrices_the_constant_is_that_of_X_0():
    """Both matrices symmetric: kappa = 1, K = ||HFC_0|| / (sqrt n |c_0|), sharp for one feature."""
    balls = in_balls("AA", "1/2", "1; 2", Fraction(1, 1000))
    assert (balls.kappa_H, balls.kappa_B) == pytest.approx((1.0, 1.0)) and balls.k == 0.0
    assert pytest.approx(math.sqrt(0.5) / (math.sqrt(2) * 1.5)) == balls.K
    assert balls.rate == pytest.approx(5 / 6)
    assert balls.depth == math.ceil(math.log(1000 / 3) / math.log(1.2))
    powers = power_depth(A2, [[0.5]], X2, 1e-3)
    assert powers.depth == balls.depth and powers.kappa_H == math.inf == powers.kappa_B
    assert (powers.rate, powers.K) == pytest.approx((balls.rate, balls.K))


@cases(
    "H",
    [["3/10", 20], [0, "3/10"]],
    [["1/2", 5, 0], [0, "1/2", 5], [0, 0, "1/2"]],
    ids=["two", "three"],
)
def test_T5d_powers_of_a_defective_H_bound_every_layer_of_its_transient(H):
    """||T^L|| <= s^L max over i < p of ||T^i|| / s^i, s = ||T^p||^(1/p), for the best p <= 64; the
    last unit vector is the left eigenvector of H."""
    A = [[Fraction(x, 4) for x in row] for row in ([2, 1, 1], [1, 2, 1], [1, 1, 2])]
    exact = [[Fraction(x) for x in row] for row in H]
    # Hardly any mean in the last feature, which drives the others.
    X0 = [[Fraction(1)] * (len(H) - 1) + [x] for x in map(Fraction, ("2", "1/5", "-19/10"))]
    eps, start = 1e-2, np.array(to_float(X0))
    found = power_depth(to_float(A), to_float(exact), start, eps)
    # By powers alone.
    assert in_balls(A, exact, X0, eps) is None
    short = power_depth(to_float(A), to_float(exact), start, eps, longest=1)
    assert short is None or short.depth > found.depth
    # The quotient of A is I / 4.
    T = np.eye(len(H)) + np.array(to_float(exact)) / 4
    norms = [np.linalg.norm(np.linalg.matrix_power(T, p), 2) for p in range(65)]
    growth = 1 + float(exact[0][0])
    scale = np.linalg.norm(start - start.mean(0)) / (math.sqrt(3) * start[:, -1].mean())
    bounds = {}
    for p in range(1, 65):
        s = norms[p] ** (1 / p)
        K = scale * max(norms[i] / s**i for i in range(p))
        if s < growth:
            bounds[p] = depth_from_constants(K, 0.0, s / growth, eps), K
    depth, K = min(bounds.values())
    assert len(bounds) > 10 and found.depth == depth and pytest.approx(K, rel=1e-6) == found.K
    assert scale < K / 1.5 and depth < max(bounds.values())[0]
    states = exact_state(A, exact, X0, range(depth + 3))
    for layer, (hfc, lfc) in ((L, squared_norms(state)) for L, state in states.items()):
        # A is doubly stochastic: pi = 1/n, so that LFC = sqrt n ||c||.
        assert math.sqrt(hfc / lfc) <= found.K * found.rate**layer * (1 + 1e-9)
        assert layer < depth or hfc <= Fraction(eps) ** 2 * lfc


def test_T5d_the_deviation_of_pi_enters_through_k():
    A, X0 = SKEW, [[1.0], [2.0], [4.0]]
    pi = np.array([26, 9, 5]) / 40
    k = math.sqrt(3) * np.linalg.norm(pi - 1 / 3)
    assert power_depth(A, [[0.5]], X0, 0.5).k == pytest.approx(k)
    exact = [[Fraction(round(10 * x), 10) for x in row] for row in A]
    balls = in_balls(exact, "1/2", "1; 2; 4", "1/2")
    hfc = np.linalg.norm(np.array([-4, -1, 5]) / 3)
    assert pytest.approx(balls.kappa_B * hfc / (math.sqrt(3) * 16 / 10)) == balls.K
    assert balls.k == pytest.approx(k)
    kappa = np.linalg.cond(np.linalg.eig(quotient(np.array(A)))[1])
    assert balls.kappa_B == pytest.approx(kappa, rel=1e-2)


def test_T5d_the_HFC_of_several_features_is_that_of_each_column():
    """H = diag(1/2, -1/4), A symmetric: K = ||HFC_0||/(sqrt n |c_1|), with HFC = (-+1, -+2)."""
    H, X0 = np.diag([0.5, -0.25]), [[1.0, 2.0], [3.0, 6.0]]
    K = math.sqrt(10) / (math.sqrt(2) * 2)
    # The slowest mode of the quotient has 1 + (1/2)(1/2), consensus grows by 3/2.
    depth = math.ceil(math.log(K / 1e-3) / math.log(1.5 / 1.25))
    found = power_depth(A2, H, X0, 1e-3)
    assert pytest.approx(K) == found.K and found.depth == depth
    balls = in_balls("AA", "1/2 0; 0 -1/4", "1 2; 3 6", Fraction(1, 1000))
    assert pytest.approx(K, rel=1e-3) == balls.K and balls.depth == depth


def test_T5d_a_tie_has_no_depth_however_wide_its_balls_are():
    """|1 + h| = |1 + h/2| = sqrt(5)/3 for h = (-2 +- 2i)/3; a skew basis widens the balls of h."""
    skew = Fraction(10) ** 20
    third = Fraction(2, 3)
    H = [[-third + skew * third, -third * (1 + skew**2)], [third, -third - skew * third]]
    for value in ([[-third, -third], [third, -third]], H):
        assert in_balls("AA", value, "1 2; 3 5", "1/9") is None


@cases(
    "A, H, X0, depth",
    # A quotient that dies at once needs one layer; consensus and one token need none.
    ("AA", "-2", "1; 2", 1), ("AA", "1/2", "1; 1", 0), ("1", "1/2", "3", 0),
    ("1", "-1/2", "3", 0),
    # No depth without smoothing, nor without content of the dominant left eigenvector.
    ("AA", "-1/2", "1; 2", None), ("AA", "0", "1; 2", None), ("AA", "1/2", "1; -1", None),
)  # fmt: skip
def test_T5d_depths_at_their_ends_by_each_way(A, H, X0, depth):
    if depth != 0:
        found = power_depth(floats(A), floats(H), floats(X0), 1e-3)
        assert (found and found.depth) == depth
    if H != "0":
        found = in_balls(A, H, X0, Fraction(1, 1000))
        assert (found and found.depth) == depth


# --- floors ---


@cases(
    "A, H, X0, depths, hfc, ratio",
    # One mode is attained.
    (A2, [[-0.5]], X2, [0, 1, 5], [math.sqrt(0.5) * 0.75**L for L in (0, 1, 5)],
     [1.5**L / 3 for L in (0, 1, 5)]),
    # The mode that gives most at each depth, of those that are there.
    (A2, np.diag([-0.5, 1.0]), [[5.0, 1.0], [7.0, 1.1]], [0, 10],
     [math.sqrt(2), 0.1 / math.sqrt(2) * 1.5**10], None),
    (A2, np.diag([-0.5, 1.0]), [[5.0, 1.0], [7.0, 1.0]], [10], [math.sqrt(2) * 0.75**10], None),
    # Without content there is none.
    (A2, [[0.5]], [[2.0], [2.0]], [0, 3], [0, 0], [0, 0]),
    ([[1.0]], [[0.5]], [[2.0]], [1], [0], [0]),
    # 1 + h a = 0 up to rounding: the one mode is gone after a layer.
    (A2, [[-2.0]], X2, [0, 1], [math.sqrt(0.5), pytest.approx(0, abs=1e-15)], None),
    # T1f: without consensus the ratio has the floor of pi, or none at all.
    (A2, [[0.5]], [[1.0], [-1.0]], [0, 4], None, [math.inf] * 2),
    (A2, [[-1.0]], X2, [0, 1], None, [1 / 3, math.inf]),
    (SKEW, [[-0.5]], [[1.0], [2.0], [4.0]], [400], None, [1.4645040518764252]),
    # The condition of its eigenvectors is infinite.
    (A2, np.eye(3, k=1), [[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]], [0, 4], None, [math.inf] * 2),
)  # fmt: skip
def test_T5d_floors_of_hfc_and_of_the_ratio(A, H, X0, depths, hfc, ratio):
    floors = {"hfc": np.exp(hfc_floor(A, H, X0, depths)), "ratio": ratio_floor(A, H, X0, depths)}
    for name, expected in (("hfc", hfc), ("ratio", ratio)):
        if expected is not None:
            near = [pytest.approx(y, rel=1e-9) if isinstance(y, float) else y for y in expected]
            assert floors[name].tolist() == near


# --- measured in balls ---


def ball(rows) -> flint.arb_mat:
    return flint.arb_mat(len(rows), len(rows[0]), [flint.arb(x) for row in rows for x in row])


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (3, 3), (1, 1)])
def test_measured_metrics_are_those_of_their_definitions(shape):
    X = np.random.default_rng(sum(shape)).integers(-5, 6, shape).astype(float) + 0.5
    B = ball(X.tolist())
    sigma = np.linalg.svd(X, compute_uv=False)
    found = [float(s.mid()) for s in measured.singular_values(B, 512)]
    assert found == pytest.approx(sigma.tolist())
    p = sigma / sigma.sum()
    excess = float(measured.effective_rank_excess(B, 512).mid())
    assert excess == pytest.approx(math.exp(-(p * np.log(p)).sum()) - 1, abs=1e-12)
    mean = X.mean(axis=0)
    hfc, lfc = np.linalg.norm(X - mean), math.sqrt(len(X)) * np.linalg.norm(mean)
    assert float(measured.hfc_norm(B).mid()) == pytest.approx(hfc, abs=1e-12)
    assert float(measured.hfc_lfc(B).mid()) == pytest.approx(hfc / lfc, abs=1e-12)
    if min(shape) > 1:
        assert float(measured.sigma_ratio(B).mid()) == pytest.approx(sigma[1] / sigma[0])
        assert float(measured.sigma_ratio(B, 1).mid()) == pytest.approx(1)
    if shape[0] > 1:
        unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        cosines = unit @ unit.T
        assert float(measured.cosine(B, 0, 1).mid()) == pytest.approx(cosines[0, 1])
        gap = float(measured.angle_gap(B, 0, 1).mid())
        assert gap == pytest.approx(1 - abs(cosines[0, 1]))
        worst = 1 - np.abs(cosines).min()
        assert float(measured.worst_angle_gap(B).mid()) == pytest.approx(worst)


def test_singular_values_that_rounding_lost_are_no_numbers():
    """0.25^2000 is below 512 bits: the ball must reach 0, not show a rounding error."""
    X = measured.states(A2_EXACT, matrix("1 0; 0 -1/2"), matrix("1 2; 3 5"), [2000])[2000]
    assert not measured.singular_values(X, 512)[1] > 0
    assert measured.singular_values(X, 8192)[1] > 0


def test_repeated_singular_values_are_found_too():
    found = measured.singular_values(ball([[2, 0, 0], [0, 2, 0], [0, 0, 1]]), 512)
    assert [float(s.mid()) for s in found] == pytest.approx([2, 2, 1])


@pytest.mark.parametrize("scale", [1e-10, 1e10])
def test_T5d_the_depth_does_not_depend_on_the_scale_of_X_0(scale):
    X0 = np.array([[1.0, 2.0], [3.0, 6.0]])
    H = [[0.5, 1.0], [0.0, -0.25]]
    assert power_depth(A2, H, scale * X0, 1e-3).depth == power_depth(A2, H, X0, 1e-3).depth
    steps = [1, 5]
    assert hfc_floor(A2, H, scale * X0, steps) == pytest.approx(
        hfc_floor(A2, H, X0, steps) + math.log(scale)
    )
    assert ratio_floor(A2, H, scale * X0, steps) == pytest.approx(ratio_floor(A2, H, X0, steps))


def test_T5b_a_rate_beyond_the_first_digits_is_measured_with_more():
    """sigma_2^2 at layer 1200 is 10^-1300 of sigma_1^2 here: 4096 bits gave nan."""
    A, H, X0 = measured.random_case(202, 5, 4, Fraction(2))
    a, h = np.linalg.eigvals(to_float(A)), np.linalg.eigvals(to_float(H))
    a = np.delete(a, np.abs(a - 1).argmin())
    found = measured.slope(measured.sigma_ratio, A, H, X0, (400, 1200))
    assert found == pytest.approx(rank_rate(a, h), rel=5e-3)


@pytest.mark.parametrize("a", ["1/2", "7/11", "3/5", "13/20", "101/150"])
def test_T5b_singular_values_keep_their_rate_however_fast_the_second_falls(a):
    """With h = -3/2 twice r_sigma = |2 - 3 a|: 1/2, 1/11, 1/5, 1/20 and 1/50."""
    a, h = Fraction(a), Fraction(-3, 2)
    A = [[(1 + a) / 2, (1 - a) / 2], [(1 - a) / 2, (1 + a) / 2]]
    slope_law.law(
        A,
        [[h, h * 0], [h * 0, h]],
        [h, h],
        [[Fraction(x) for x in row] for row in ((701248451, 273923374), (22272959, -460426573))],
    )


def test_T5_what_is_0_has_no_rate():
    X0 = matrix("1; 1")
    with pytest.raises(InputError, match="from 0"):
        measured.slope(measured.hfc_lfc, A2_EXACT, [[Fraction(1, 2)]], X0, (1, 2), 2**17)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_T5d_the_mode_of_consensus_that_gives_the_least_depth_is_taken(order):
    """h = 1/10, 9/10 and 1 with a = 1/2: rho_Q = 3/2, which 11/10 does not exceed; over 2 it is
    smaller than over 19/10, and K = ||HFC_0||/(sqrt n |c_1|) is the same."""
    values = [Fraction(1, 10), Fraction(9, 10), Fraction(1)]
    H = [[values[k] * (i == j) for j, k in enumerate(order)] for i in range(3)]
    found = in_balls("AA", H, "1 1 1; 3 3 3", "1/100")
    # HFC_0 = -+1 in three features, c = 2.
    assert pytest.approx(math.sqrt(6) / (math.sqrt(2) * 2), rel=1e-2) == found.K
    assert found.depth == math.ceil(math.log(100 * found.K) / math.log(4 / 3))


def test_T5d_a_depth_just_beyond_an_integer_is_the_next_one():
    """HFC/LFC = (3/4)^L/2 for h = 1 and a = 1/2: at L = 10 it is still above an eps just below."""
    eps = Fraction(3, 4) ** 10 / 2 * (1 - Fraction(1, 10**12))
    assert in_balls("AA", "1", "1; 3", eps).depth == 11
