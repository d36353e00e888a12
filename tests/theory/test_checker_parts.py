"""T4, T5d, T6b, T10: parts of the checker alone, against numbers worked by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import pytest

from oversmoothing.theory.checker import depth, generic, krylov
from oversmoothing.theory.checker.check import _check_verdict, _compared, _confirmed
from oversmoothing.theory.checker.containment import Bounds
from oversmoothing.theory.checker.depth import _consensus_modes, _Course, _View, check_depth
from oversmoothing.theory.checker.discs import Discs, _merged, left_eigenvector
from oversmoothing.theory.checker.krylov import minimal_polynomial
from oversmoothing.theory.checker.moduli import Modes, equality_bits
from oversmoothing.theory.checker.reading import Given
from oversmoothing.theory.checker.schema import Claim
from oversmoothing.theory.depth.ratios import exact_state, squared_norms

A2 = [["3/4", "1/4"], ["1/4", "3/4"]]
A3 = [["4/5", "1/10", "1/10"], ["3/10", "3/5", "1/10"], ["1/2", "1/5", "3/10"]]
# Its quotient block is defective, with the eigenvalue 1/2 twice.
CHAIN = [[1, 0, 0], ["1/2", "1/2", 0], [0, "1/2", "1/2"]]


def matrix(rows):
    return [[Fraction(x) for x in row] for row in rows]


def rational(rows):
    return flint.fmpq_mat(
        [[flint.fmpq(x.numerator, x.denominator) for x in row] for row in matrix(rows)]
    )


def complex_matrix(rows):
    return flint.acb_mat([[flint.acb(x) for x in row] for row in rows])


# --- powers and norms ---


def test_T5d_norms_are_bounds_from_above():
    with flint.ctx.workprec(200):
        for n in (2, 3, 5):
            with flint.ctx.workprec(53):
                found = depth.norm([flint.acb(1)] * n)
            assert not found * found < n and found * found < n + 1e-6
    half = depth.two_norm(complex_matrix([[0.5, 0], [0, 0.25]]))
    assert not half < 0.5 and half < 0.5001


def test_T5d_a_stretch_of_layers_is_covered_by_the_norms_of_the_powers():
    """S = [[1/2, 4], [0, 1/2]]: ||S||, ||S^2||, ||S^4|| are 4.06, 4.02 and 2, ||S^8|| below 1."""
    view = _View(complex_matrix([[0.5, 4], [0, 0.5]]), complex_matrix([[1], [0]]), flint.arb(1))
    assert view.contracts
    first = 2 + math.sqrt(4 + 0.25)
    second = 2 + math.sqrt(4 + 0.0625)
    fourth = 1 + math.sqrt(1 + 0.0625**2)
    bounds = [1, first, first * second, first * second * fourth]
    assert [float(x) for x in view._excess] == pytest.approx(bounds, rel=1e-3)
    # S^L y = (2^-L, 0).
    for layer in (0, 3):
        size = 0.5**layer
        for room, layers in ((0.9, 0), (2, 1), (5, 2), (20, 4), (40, math.inf)):
            assert view.covered(layer, flint.arb(room * size)) == layers
    # What is as large as the bound is covered: ||S^0 y|| = 1.
    assert view.covered(0, view._excess[1]) == 2
    twice = _View(complex_matrix([[0.5]]), complex_matrix([[8]]), flint.arb(2))
    assert twice.covered(0, flint.arb(16)) == math.inf and twice.covered(0, flint.arb(15)) == 0
    for size in (1, 1.5):
        assert not _View(complex_matrix([[size]]), complex_matrix([[1]]), flint.arb(1)).contracts


def test_T5d_a_norm_between_1_and_2_is_counted_as_it_is():
    """S = [[1/2, 1], [0, 1/2]]: ||S|| = (1 + sqrt 2) / 2, ||S^2|| = (2 + sqrt 5) / 4."""
    view = _View(complex_matrix([[0.5, 1], [0, 0.5]]), complex_matrix([[1], [0]]), flint.arb(1))
    first, second = (1 + math.sqrt(2)) / 2, (2 + math.sqrt(5)) / 4
    bounds = [1, first, first * second]
    assert [float(x) for x in view._excess] == pytest.approx(bounds, rel=1e-3)


def test_T5d_what_has_no_finite_norm_does_not_contract():
    for size in (float("nan"), float("inf")):
        S = complex_matrix([[size, 0], [0, 0.5]])
        assert not _View(S, complex_matrix([[1], [0]]), flint.arb(1)).contracts


def course(A, H, X, growth):
    A, H, X = matrix(A), matrix(H), matrix(X)
    (weights,) = depth.stationary(A)
    return _Course(A, H, X, weights, flint.arb(growth))


H2 = [["1/2", "1/3"], ["-1/4", "1/5"]]


@pytest.mark.parametrize("A", [A3, CHAIN], ids=["A3", "chain"])
def test_T5d_the_courses_squares_are_those_of_the_state(A):
    X = [[1, 2], [3, 5], [-2, 1]]
    found = course(A, H2, X, 1)
    states = exact_state(matrix(A), matrix(H2), matrix(X), [0, 1, 2, 5])
    for layer, state in states.items():
        for ball, exact in zip(found.squares(layer), squared_norms(state), strict=True):
            assert abs(ball - float(exact)) < 1e-9 * (1 + float(exact))


def test_T1e_the_constant_of_a_course_is_the_spread_of_the_stationary_weights():
    weights = [Fraction(26, 40), Fraction(9, 40), Fraction(5, 40)]
    expected = math.sqrt(3 * sum((float(p) - 1 / 3) ** 2 for p in weights))
    assert float(course(A3, H2, [[1, 2], [3, 5], [-2, 1]], 1).k.mid()) == pytest.approx(expected)


# Eigenvalues 1/2 and 1/10 with nearly one eigenvector.
STEEP = [[1, 0, 0], ["1/2", "1/2", 0], ["1/100", "89/100", "1/10"]]


@pytest.mark.parametrize("A", [A3, STEEP], ids=["A3", "steep"])
@pytest.mark.parametrize("H", [H2, [["1/2", 0], [0, "1/5"]]], ids=["H2", "diagonal"])
@pytest.mark.parametrize("X", [[[1, 2], [3, 5], [-2, 1]], [[1, 0], [3, 0], [-2, 0]]])
def test_T5d_in_any_coordinates_the_state_is_at_most_its_bound(A, H, X):
    states = exact_state(matrix(A), matrix(H), matrix(X), [0, 1, 5, 40])
    with flint.ctx.workprec(320):
        found = course(A, H, X, 1)
        adapted = found.adapted(320)
        assert adapted is not found.quotient
        for layer, state in states.items():
            hfc = math.sqrt(squared_norms(state)[0])
            own, other = (
                float((view._factor * depth.norm(view.at(layer).entries())).mid())
                for view in (found.quotient, adapted)
            )
            assert own == pytest.approx(hfc, rel=1e-12) and hfc * (1 - 1e-12) <= other < 20 * hfc


@pytest.mark.parametrize(
    "H", [[["1/2"]], [["1/2", 10, 0], [0, "1/4", 10], [0, 0, "1/8"]]], ids=["d1", "d3"]
)
def test_T5d_coordinates_of_another_size_or_far_from_normal_bound_the_state_too(H):
    X = [[1, 2, 3], [3, 5, -1], [-2, 1, 4]]
    X = [row[: len(H)] for row in X]
    with flint.ctx.workprec(320):
        found = course(A3, H, X, 1)
        adapted = found.adapted(320)
        # Inverses of length 1 a column: neither factor is below 1.
        assert adapted is not found.quotient and adapted._factor >= 1
        for layer, state in exact_state(matrix(A3), matrix(H), matrix(X), [0, 1, 5, 40]).items():
            bound = adapted._factor * depth.norm(adapted.at(layer).entries())
            assert math.sqrt(squared_norms(state)[0]) * (1 - 1e-12) <= float(bound.mid())


class Scripted:
    """A course whose view covers, and whose squares are, what is written down for each layer."""

    n, k, contracts = 2, flint.arb(1), True

    def __init__(self, covers, squares):
        self._covers, self._squares, self.asked = covers, squares, []
        self.quotient = self

    def adapted(self, bits):
        return self

    def covered(self, layer, target):
        return self._covers[layer]

    def squares(self, layer):
        self.asked.append(layer)
        return tuple(flint.arb(x) if isinstance(x, int) else x for x in self._squares[layer])


def test_T1e_a_layer_is_covered_where_hfc_is_small_beside_the_mode_that_is_followed():
    """||HFC|| / (sqrt n ||c||) <= eps / (1 + k eps): 1/2 / (3/2) sqrt 2 times the weight 5."""
    found, targets = Scripted({10: math.inf}, {}), []
    found.covered = lambda layer, target: targets.append(float(target)) or math.inf
    assert depth._followed(found, flint.arb(5), 10, Fraction(1, 2), 64).accepted
    assert targets == [pytest.approx(5 * math.sqrt(2) / 3)] * 2


def test_T5d_of_two_views_the_one_that_covers_more_counts():
    for one, other in (({10: 0}, {10: math.inf}), ({10: math.inf}, {10: 0})):
        first, second = Scripted(one, {}), Scripted(other, {})
        first.adapted = lambda bits, second=second: second
        assert depth._followed(first, flint.arb(1), 10, Fraction(1, 2), 64).accepted


def followed(covers, squares, eps=Fraction(1, 2)):
    found = Scripted(covers, squares)
    return depth._followed(found, flint.arb(1), 10, eps, 64), found.asked


def test_T5d_layers_that_are_covered_are_passed_and_each_other_one_is_looked_at():
    found, asked = followed({10: 4, 14: 0, 15: 0, 16: math.inf}, {14: (1, 4), 15: (0, 1)})
    assert found.accepted and asked == [14, 15]
    found, asked = followed({10: 0, 11: 0}, {10: (1, 5), 11: (1, 3)})
    assert not found.accepted and not found.beyond and asked == [10, 11]
    assert "does not hold at layer 11, past 10" in found.words
    # HFC^2 in [0.2, 0.6] against LFC^2 / 4 = 1/2: neither.
    found, _ = followed({10: 0}, {10: (flint.arb(0.4, 0.2), 2)})
    assert not found.accepted and found.beyond


def test_T5d_the_steps_that_are_taken_have_an_end(monkeypatch):
    monkeypatch.setattr(depth, "STEPS", 3)
    found, asked = followed(dict.fromkeys(range(10, 13), 0), dict.fromkeys(range(10, 13), (0, 1)))
    assert not found.accepted and found.beyond and asked == [10, 11, 12]


@pytest.mark.parametrize("side", [1, 2])
def test_T5d_where_one_of_two_bases_is_not_found_the_coordinates_stay(monkeypatch, side):
    """A2 has a quotient block of side 1, H one of side 2."""
    found = course(A2, H2, [[1, 2], [3, 5]], 1)
    of_all = depth.discs
    monkeypatch.setattr(
        depth, "discs", lambda M, bits: None if M.nrows() == side else of_all(M, bits)
    )
    assert found.adapted(160) is found.quotient


def test_T5d_a_depth_of_2_to_the_60_is_confirmed():
    """Of the bits 512 and 8 for each of the depth's: powers multiply roundings by as much."""
    A, H, X = matrix(A2), matrix(H2), matrix([[1, 2], [3, 5]])
    assert check_depth(A, H, X, 2**60, Fraction(1, 10)).accepted


@pytest.mark.parametrize("eps", [Fraction(1, 10), Fraction(1, 1000)])
def test_T5d_a_depth_past_a_transient_is_confirmed_and_one_within_it_refused(eps):
    A, H, X = matrix(CHAIN), matrix([["1/2"]]), matrix([[1], [1], [2]])
    states = exact_state(A, H, X, range(120))
    above = [L for L, Y in states.items() if squared_norms(Y)[0] > eps**2 * squared_norms(Y)[1]]
    true = max(above) + 1
    for later in (0, 1, 7):
        assert check_depth(A, H, X, true + later, eps).accepted
    early = check_depth(A, H, X, true - 1, eps)
    assert not early.accepted and not early.beyond


def test_T5d_what_the_checker_cannot_say_of_a_depth_is_beyond_it(monkeypatch):
    eps = Fraction(1, 10)
    apart, h = matrix([[1, 0], [0, 1]]), matrix([["1/2"]])
    assert check_depth(apart, h, matrix([[1], [2]]), 5, eps).beyond
    assert check_depth(matrix(A2), h, matrix([[1], [-1]]), 50, eps).beyond
    monkeypatch.setattr(depth, "STEPS", 0)
    found = check_depth(matrix(A3), h, matrix([[1], [2], [4]]), 100, eps)
    assert found.beyond and not found.accepted


def test_T5d_a_depth_refused_over_one_mode_is_refused():
    H = matrix([["1/2", 0], [0, "1/4"]])
    early = check_depth(matrix(A2), H, matrix([[1, 2], [3, 5]]), 1, Fraction(1, 1000))
    assert not early.accepted and not early.beyond


def test_T5d_modes_of_consensus_are_simple_there_and_grow_the_largest_first():
    def growths(diagonal, c):
        H = [[x if i == j else 0 for j in range(len(diagonal))] for i, x in enumerate(diagonal)]
        found = _consensus_modes(matrix(H), flint.fmpq_mat(len(c), 1, c))
        return [float(modulus.mid()) for modulus, _ in found]

    assert growths(["1/2", "1/2", 2, "-1/4"], [1, 1, 1, 1]) == pytest.approx([3, 0.75])
    assert growths([2, "1/4", "1/4", "-1/2", "1/4"], [1] * 5) == pytest.approx([3, 0.5])
    # What dies is no mode that stays; h = -2 is one.
    assert growths([-1, "1/2"], [1, 1]) == pytest.approx([1.5])
    assert growths([-2, -1, 1], [1, 1, 1]) == pytest.approx([2, 1])
    # By growth, not by content; none where c_0 has nothing.
    assert growths([1, "1/2"], [1, 100]) == pytest.approx([2, 1.5])
    assert growths([1, "1/2"], [0, 1]) == pytest.approx([1.5])


# --- discs ---


def test_T10_a_disc_reaches_as_far_as_its_row_and_its_column():
    similar = [[flint.acb(x) for x in row] for row in ([0, 0.5], [0.125, 4])]
    boxes = _merged(complex_matrix([[1, 0], [0, 1]]), similar).boxes
    for box, centre in zip(boxes, (0, 4), strict=True):
        assert abs(box.real.rad() - 0.5) < 1e-6 and box.real.contains(centre)


def test_T10_a_left_eigenvector_allows_for_the_disc_of_its_eigenvalue():
    """[[1, 1/4], [1/2, 4]]: y_0 = (1/2) / (lambda - 1) = 0.164, and at most (1/2) / (3 - 1/4)."""
    similar = [[flint.acb(x) for x in row] for row in ([1, 0.25], [0.5, 4])]
    found = Discs(
        [flint.acb(1), flint.acb(4)], [True] * 2, complex_matrix([[1, 0], [0, 1]]), similar
    )
    y = left_eigenvector(found, 1).entries()
    largest = (5 + math.sqrt(9.5)) / 2
    assert y[0].real.contains(0.5 / (largest - 1))
    assert abs(y[0].real.rad() - 0.5 / 2.75) < 1e-6


# --- the dominant pair ---


def discs(values, single=None):
    return Discs([flint.acb(x) for x in values], single or [True] * len(values), None, [])


def test_T4d_the_dominant_pair_stands_alone_but_for_its_conjugate():
    dominant = generic._dominant
    assert dominant(None, discs([0.5, 1])) == (0, 1)
    assert dominant(None, discs([0.5, 1], [True, False])) is None
    assert dominant(discs([0.5, -0.5]), discs([0.5, -1])) == (1, 1)
    assert dominant(discs([0.5, -0.5], [True, False]), discs([0.5, -1])) is None
    assert dominant(discs([0.5, -0.5]), discs([0.5, -1], [True, False])) is None
    assert dominant(None, discs([0.5 + 1j, 0.5 - 1j, 0.25])) in ((0, 0), (0, 1))
    # 2 and -2: equal moduli, and no conjugates.
    assert dominant(None, discs([1, -3])) is None
    assert dominant(None, discs([1, flint.acb(0.875, flint.arb(0, 1))])) is None
    # Boxes that may both be the conjugate.
    near = [flint.acb(1, 1), flint.acb(1, -1), flint.acb(1, flint.arb(-1, 0.5))]
    assert dominant(None, discs(near)) is None
    assert dominant(discs(near), discs([0.5])) is None


def test_T4d_the_conjugate_of_the_dominant_pair_is_one_box_of_one_eigenvalue():
    """A box that reaches over the real line, beside one that its mirror image meets as well."""
    dominant = generic._dominant
    assert dominant(None, discs([0.5 + 1j, 0.5 - 1j], [True, False])) is None
    own = flint.acb(flint.arb(1.02, 0.01), flint.arb(0.05, 0.1))
    beside = flint.acb(flint.arb(0.58, 0.44), flint.arb(-0.15, 0.05))
    assert dominant(discs([0.2, own]), discs([0.5])) == (1, 0)
    assert dominant(discs([0.2, beside, own]), discs([0.5])) is None


# --- minimal polynomials ---


def test_T4e_a_minimal_polynomial_is_primitive():
    """1 + h a = 3/4."""
    T, H, z = rational([["1/2"]]), rational([["-1/2"]]), rational([[1]])
    assert minimal_polynomial(T, H, z) == flint.fmpz_poly([-3, 4])


def test_T4e_the_work_of_a_minimal_polynomial_is_its_degree_and_the_bits_of_a_layer(monkeypatch):
    """1 + 14 * 5 = 71: 7 bits, and two modes: 2^4 * 7."""
    T, H, z = rational([[1, 7], [0, 3]]), rational([[5]]), rational([[1], [1]])
    monkeypatch.setattr(krylov, "WORK", 112)
    assert minimal_polynomial(T, H, z).degree() == 2
    monkeypatch.setattr(krylov, "WORK", 111)
    assert minimal_polynomial(T, H, z) is None


def test_T4e_what_holds_modulo_a_bad_prime_alone_is_no_relation(monkeypatch):
    """1 + a is 2 and 5, the same modulo 3."""
    monkeypatch.setattr(krylov, "PRIMES", (3, 2**61 - 1))
    T, H = rational([[1, 0, 0], [0, 4, 0], [0, 0, 1]]), rational([[1]])
    for z in ([[1], [1], [0]], [[1], [1], [1]]):
        found = minimal_polynomial(T, H, rational(z))
        assert found.degree() == 2 and found(2) == 0 and found(5) == 0


# --- moduli ---

# x^3 - 3 x + 1, of three real roots.
CUBIC = [[0, 0, -1], [1, 0, 3], [0, 1, 0]]


def test_T6b_modes_of_h_0_or_a_0_are_1_by_their_form():
    flat = matrix([["1/2", "1/2"]] * 2)
    for A, H in ((A2, [[0]]), (flat, [["1/3"]])):
        consensus, quotient = Modes(matrix(A), matrix(H)).pairs(64)
        assert quotient[0].key == {"one"} and quotient[0].multiplier == 1
        assert (consensus[0].key == {"one"}) == (H == [[0]])


def test_T6b_modes_of_one_h_and_several_a_have_keys_of_their_own():
    """h = 1/2, and a = 1/5 and 1/2 of A3, or a pair of conjugates with one key."""
    _, quotient = Modes(matrix(A3), matrix([["1/2"]])).pairs(64)
    assert len({pair.key for pair in quotient}) == 2
    turning = [["1/10", "4/5", "1/10"], ["1/10", "1/10", "4/5"], ["4/5", "1/10", "1/10"]]
    _, quotient = Modes(matrix(turning), matrix([["1/2"]])).pairs(64)
    assert len(quotient) == 2 and len({pair.key for pair in quotient}) == 1
    # With h complex too, (h, a) goes with (conj h, conj a) alone.
    _, quotient = Modes(matrix(turning), matrix([[0, -1], [1, 0]])).pairs(64)
    assert len(quotient) == 4 and len({pair.key for pair in quotient}) == 2


def test_T6b_rational_modes_that_vanish_do_so_exactly():
    """h = -3 and a = 1/3: 1 + h a = 0, which 64 bits of 1/3 would not show."""
    thirds = matrix([["2/3", "1/3"], ["1/3", "2/3"]])
    _, quotient = Modes(thirds, matrix([[-3]])).pairs(64)
    assert quotient[0].multiplier == 0


def test_T6b_irrational_modes_are_1_plus_h_a():
    """h = (1 +- sqrt 5)/2 and a = 1/2."""
    consensus, quotient = Modes(matrix(A2), matrix([[0, 1], [1, 1]])).pairs(64)
    golden = [(1 + s * math.sqrt(5)) / 2 for s in (-1, 1)]
    for pairs, a in ((consensus, 1), (quotient, 0.5)):
        found = sorted(float(pair.multiplier.real.mid()) for pair in pairs)
        assert found == pytest.approx([1 + h * a for h in golden], rel=1e-14)
    assert [pair.h.index for pair in consensus] == [0, 1] == [p.h.conjugate for p in consensus]


def test_T6b_roots_know_their_places_and_those_of_their_conjugates():
    consensus, _ = Modes(matrix(A2), matrix([[0, 0, -1], [1, 0, 0], [0, 1, -1]])).pairs(64)
    assert [pair.h.index for pair in consensus] == [0, 1, 2]
    for pair in consensus:
        mirrored = consensus[pair.h.conjugate].h.ball
        assert mirrored.overlaps(pair.h.ball.conjugate())


@pytest.mark.parametrize("H", [[["1/2", 0, 0], [0, -1, 0], [0, 0, "1/3"]], CUBIC])
@pytest.mark.parametrize("A", [A3, [["1/10", "4/5", "1/10"], ["1/5", 0, "4/5"], ["3/5", "2/5", 0]]])
def test_T6b_modes_at_another_precision_are_those_chosen_and_no_others(A, H):
    """Of A3 and a diagonal H each polynomial has one root, of the others several."""
    modes = Modes(matrix(A), matrix(H))
    sides = modes.pairs(64)
    for side in (0, 1):
        for pair in sides[side]:
            chosen = ([pair], []) if side == 0 else ([], [pair])
            found = modes.refined(chosen, 128)
            assert len(found[side]) == 1 and not found[1 - side]
            assert found[side][0].multiplier.overlaps(pair.multiplier)


def test_T6b_the_bits_of_a_tie_count_conjugates_and_leading_coefficients():
    # 3 x^2 + 2 x + 5, a pair of conjugates: its leading coefficient once, that of 1/2 squared.
    H = matrix([[0, "-5/3"], [1, "-2/3"]])
    sides = Modes(matrix(A2), H).pairs(64)
    q, size = math.log2(3) + 2, 2 * math.log2(1 + math.sqrt(5 / 3)) + 1
    found = equality_bits(sides[0][0], sides[1][0])
    assert found == pytest.approx(q + (2 - 1) * (q + size) + 2, abs=1e-3)
    # x^3 - 3 x + 1, two of its three real roots: 3 * 2 ways to choose others.
    sides = Modes(matrix(A2), matrix(CUBIC)).pairs(64)
    first = sides[0][0]
    second = next(pair for pair in sides[1] if pair.h.index != first.h.index)
    largest = max(abs(2 * math.cos(2 * math.pi * k / 9)) for k in (1, 2, 4))
    size = 2 * math.log2(1 + largest) + 1
    assert equality_bits(first, second) == pytest.approx(2 + 5 * (2 + size) + 2, abs=1e-3)


# --- what is compared ---

WIDE = Bounds(Fraction(0), Fraction(9))


def test_T11_1_one_token_has_neither_a_second_radius_nor_a_margin():
    alone = Given(matrix([[1]]), None, matrix([["1/2"]]), None, None)
    assert _check_verdict(alone, Claim("TRIVIAL", WIDE)).accepted
    for more in ({"rho_quotient": WIDE}, {"margin": WIDE}):
        found = _check_verdict(alone, Claim("TRIVIAL", WIDE, **more))
        assert found.accepted is False and found.words == "n = 1: there is no quotient"


def test_T2_a_radius_that_is_not_stated_excuses_no_other():
    wrong, _ = _compared(
        Claim("UNDECIDED", None, Bounds(Fraction(5), Fraction(6))), flint.arb(2), flint.arb(1), None
    )
    assert "rho_quotient is" in wrong


def test_T2_a_radius_is_never_negative_and_a_margin_may_be():
    near_zero = flint.arb(0, 0.25)
    assert _compared(Claim("UNDECIDED", WIDE, WIDE), near_zero, near_zero, None) == ("", "")
    claim = Claim("UNDECIDED", WIDE, WIDE, Bounds(Fraction(0), Fraction(1)))
    _, missing = _compared(claim, flint.arb(1), flint.arb(1), near_zero)
    assert "margin could not be seen" in missing


@pytest.mark.parametrize("verdict", ["SMOOTHING", "NON_SMOOTHING"])
def test_T2_equal_radii_confirm_no_order(verdict):
    sign = 1 if verdict == "SMOOTHING" else -1
    stated = Bounds(*(Fraction(sign * x) for x in ((1, 2) if sign > 0 else (2, 1))))
    claim = Claim(verdict, WIDE, WIDE, stated)
    wrong, missing = _compared(claim, flint.arb(1), flint.arb(1), flint.arb(1.5 * sign, 0.125))
    assert not wrong and "too close to tell" in missing


def test_T2_words_without_radii_end_there():
    assert _confirmed("UNDECIDED", None, None).words == "UNDECIDED claims nothing of the verdict"
    assert _confirmed("TRIVIAL", flint.arb(1), None).words == (
        "n = 1: there is no quotient: rho_C = 1.00000000000000"
    )
