"""T4c, T5a: what is proved of the leading terms of one X_0, bound by bound, worked by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import islice
from types import SimpleNamespace

import flint
import pytest

from oversmoothing.theory.numbers.rounding import doublings
from oversmoothing.theory.spectra.algebraic import Eigenvalue, Factor
from oversmoothing.theory.verdict import leading
from oversmoothing.theory.verdict.leading import (
    embeddings,
    leading_rank,
    proportionality_bits,
    ratio_limit,
    working_bits,
)
from oversmoothing.theory.verdict.resolvent import Growth, Multipliers, Part, growth_of, resolvent
from tests.theory.test_tokens_as_sequences import ByModulus, part

FLAT = [["1/2", "1/2"], ["1/2", "1/2"]]
# Spectrum 1, 1/2, 1/5.
A3 = [["4/5", "1/10", "1/10"], ["3/10", "3/5", "1/10"], ["1/2", "1/5", "3/10"]]


def matrix(rows):
    return [[Fraction(x) for x in row] for row in rows]


class Leading:
    """The parts of one X_0 and their growth."""

    def __init__(self, A, H, X0):
        A, H, X0 = matrix(A), matrix(H), matrix(X0)
        found = resolvent(A, H, X0)
        assert found is not None
        n = len(A)
        self.shape = (n, len(H))
        self.multipliers = Multipliers(A, H, found.scale)
        self.whole = found.part([[Fraction(int(i == j)) for j in range(n)] for i in range(n)])
        self.hfc = found.part([[Fraction(n * (i == j) - 1) for j in range(n)] for i in range(n)])
        self.mean = found.part([[Fraction(1)] * n])

    @property
    def growth(self):
        return growth_of(self.whole, self.multipliers)

    @property
    def growths(self):
        return growth_of(self.hfc, self.multipliers), growth_of(self.mean, self.multipliers)

    @property
    def roots(self):
        return list(dict.fromkeys(root for growth in self.growths for root in growth.roots))

    def ratio(self):
        return ratio_limit(self.hfc, self.mean, self.growths, self.shape[0], self.multipliers)

    def rank(self):
        return leading_rank(self.whole, self.growth, self.shape, self.multipliers)

    def proportional(self):
        groups = leading._frequencies(self.roots, working_bits(self.hfc, self.mean))
        return leading._proportional((self.hfc, self.mean), self.growths, self.roots, groups)


def eigenvalues(*coefficients):
    factor = Factor(flint.fmpz_poly(list(coefficients)), 1, (1,))
    return [Eigenvalue(factor, k) for k in range(factor.degree)]


# --- the ratio ---


def test_T5a_one_real_simple_a_keeps_the_ratio_whatever_the_gap_bound_would_take(monkeypatch):
    """h turns the features, a = 1/5 leads alone: no bit is spent on a proof."""
    monkeypatch.setattr(leading, "GAP_BITS", 0)
    found = Leading(A3, [["-1/2", -1], ["1/16", "-1/2"]], [[1, 2], [3, 5], [-2, 1]])
    assert len(found.roots) == 2
    tends_to, limit = found.ratio()
    assert tends_to == "constant" and limit == pytest.approx(8 * math.sqrt(2) / 5, rel=1e-14)


def two_modes():
    """A3 (-4, 11, 1) = 1/2 (...) and A3 (-1, -1, 7) = 1/5 (...): mu = 2 in the first feature, where
    a = 1/2 is, and mu = -2 in the second, where a = 1/5 is."""
    return Leading(A3, [[2, 0], [0, -15]], [[-4, -1], [11, -1], [1, 7]])


def test_T5a_features_at_right_angles_keep_the_ratio_by_the_gap_bound(monkeypatch):
    found = two_modes()
    assert len(found.roots) == 2 and found.proportional()
    assert found.ratio() == ("constant", pytest.approx(math.sqrt(478 / 89), rel=1e-14))
    # Two eigenvalues of A lead: without the bound nothing is proved.
    monkeypatch.setattr(leading, "GAP_BITS", 0)
    assert found.ratio() == (None, None)


def test_T5a_what_turns_against_each_other_is_not_proportional():
    """One feature, mu = 2 for a = 1/2 and, by h = -15 in the other, mu = -2: they add up."""
    found = Leading(A3, [[2, 0], [17, -15]], [[-4, -4 - 1], [11, 11 - 1], [1, 1 + 7]])
    assert len(found.roots) == 2
    assert found.ratio() == ("oscillates", None) and not found.proportional()


def test_T5a_a_number_of_the_field_of_the_roots_has_so_many_conjugates():
    cubic = eigenvalues(-1, -1, 0, 1)
    real = [root for root in cubic if root.is_real]
    turning = [root for root in cubic if not root.is_real]
    assert len(real) == 1
    # One of 3 roots; a pair, in order, of 3; all of them, in order.
    assert (embeddings(real), embeddings(turning), embeddings(cubic)) == (3, 6, 6)
    assert embeddings(turning[:1]) == 6
    assert embeddings([*real, *eigenvalues(-2, 0, 1)]) == 3 * 2
    assert embeddings(eigenvalues(-1, 1)) == 1


def test_T5a_the_gap_bound_of_the_square_roots_of_2_is_the_product_of_their_heights():
    roots = eigenvalues(-2, 0, 1)
    factors = ((roots[0].factor, 1),)
    z, one = flint.fmpz_poly([0, 1]), flint.fmpz_poly([3])
    parts = Part((z, z), factors), Part((one,), factors)
    growths = (Growth(tuple(roots), 0),) * 2
    # 1 + sum |c| 2^(k/2) is 1 + sqrt 2 for z, 4 for 3 and 1 + 2 sqrt 2 for q = 2z.
    root = math.sqrt(2)
    q = (1 + 2 * root) ** 4
    bound = 2 * 2**4 * (2 * (1 + root) ** 2 * q) * (4**2 * q)
    assert proportionality_bits(parts, growths, roots) == math.ceil(math.log2(bound)) + 64
    # Rational numbers that are integers need no more than 1.
    whole = eigenvalues(-2, 1)
    part = Part((one,), ((whole[0].factor, 1),))
    assert proportionality_bits((part, part), (Growth(tuple(whole), 0),) * 2, whole) == 64


def test_T5a_a_part_that_is_0_takes_the_bits_of_nothing_else():
    assert working_bits(Part((flint.fmpz_poly([0]),), ())) >= 128


# --- the rank ---


def test_T4c_a_leading_sum_is_taken_at_its_depth_up_to_scale():
    """(2^L, (-2)^L): (1, 1) at even depths, (1, -1) at odd ones."""
    (two,), (less,) = eigenvalues(-2, 1), eigenvalues(2, 1)
    table = {two: [flint.acb(1), flint.acb(0)], less: [flint.acb(0), flint.acb(1)]}
    for depth in range(6):
        found = leading._sum_at(table, depth, 64)
        assert [complex(x.mid()) for x in found] == [1, (-1) ** depth]


def test_T4c_pivots_count_as_far_as_they_are_certainly_not_zero():
    def rank(*rows):
        return leading._ball_rank([[flint.acb(x) for x in row] for row in rows])

    assert rank([1, 2], [2, 4]) == 1 and rank([1, 2], [2, 5]) == 2 and rank([0, 0], [0, 0]) == 0
    assert rank([1, 2, 3]) == 1 and rank([1], [2], [3]) == 1 and rank() == 0
    wide = flint.arb(3, 4)
    # The largest number may be 0: what is certain comes first.
    assert rank([wide, 0], [0, 1]) == 1 and rank([wide, 1], [1, 0]) == 2


def test_T4c_a_few_depths_in_balls_show_the_largest_rank(monkeypatch):
    """mu = +-1 beside each other: rank 1 at even depths, 2 at odd ones, and 2 is all there is."""
    found = Leading(FLAT, [[0, 0], [0, -2]], [[2, 2], [0, 0]])
    monkeypatch.setattr(leading, "_rational_rank", lambda *_: None)
    monkeypatch.setattr(leading, "_rank_in_field", lambda *_: None)
    assert found.rank() == 2


@pytest.mark.parametrize(
    ("A", "H", "X0", "rank"),
    [
        (FLAT, [[0, 0], [0, -2]], [[2, 2], [0, 0]], 2),
        (FLAT, [[0, 0], [0, -2]], [[2, 2], [2, 2]], 1),
        # mu = +- sqrt 2: the states turn between two rows that are dependent, or not.
        ([[1, 0], [0, 1]], [[-1, 2], [1, -1]], [[1, 2], [2, 4]], 1),
        ([[1, 0], [0, 1]], [[-1, 2], [1, -1]], [[1, 2], [2, 3]], 2),
        # mu = 1 +- i: tokens that are multiples of one stay so.
        ([[1, 0], [0, 1]], [[0, -1], [1, 0]], [[1, 2], [3, 6]], 1),
        ([[1, 0], [0, 1]], [[0, -1], [1, 0]], [[1, 2], [3, 5]], 2),
    ],
)
def test_T4c_where_all_conjugates_lead_the_rank_is_that_of_rational_numbers(A, H, X0, rank):
    found = Leading(A, H, X0)
    assert len(found.growth.roots) == sum(f.degree for f, _ in found.whole.factors)
    assert leading._rational_rank(found.whole, found.growth, found.shape) == rank
    assert found.rank() == rank


def test_T4c_the_rank_at_one_root_is_found_in_its_field():
    """x = sqrt 2: (0, 1, x) and (0, x, 1) are independent, (0, 1, x) and (0, x, 2) are not."""
    for last, rank in (([1], 2), ([2], 1)):
        found = part([[0], [1], [0, 1], [0], [0, 1], last], ([-2, 0, 1], 1))
        field = found.factors[0][0].polynomial
        assert leading._rank_in_field(found, field, (2, 3)) == rank
    three = part([[1], [0], [0], [0], [0, 1], [0], [0], [0], [3]], ([-2, 0, 1], 1))
    assert leading._rank_in_field(three, three.factors[0][0].polynomial, (3, 3)) == 3


def test_T4c_a_fraction_of_polynomials_is_a_series_in_one_over_z():
    """1/(z^2 - z - 1) is the generating function of Fibonacci's numbers, z/(z^2 - z - 1) too."""
    fibonacci = flint.fmpq_poly([-1, -1, 1])
    for numerator, terms in (([1], [0, 1, 1, 2, 3, 5, 8]), ([0, 1], [1, 1, 2, 3, 5, 8, 13])):
        found = leading.terms(flint.fmpq_poly(numerator), fibonacci)
        assert list(islice(found, 7)) == terms


def bound(A, H, roots, power):
    leading_roots = tuple(eigenvalues(-mu, 1)[0] for mu in roots)
    multipliers = Multipliers(matrix(A), matrix(H), 1)
    return leading._rank_bound(Growth(leading_roots, power), multipliers)


def test_T4c_a_block_that_grows_leaves_the_image_of_the_power_of_its_nilpotent_part():
    """a = 1/2 in a block of 2, h = 2 twice: mu = 2 grows like L, in one row of A only."""
    A, H = [[1, 0, 0], ["1/2", "1/2", 0], ["1/4", "1/4", "1/2"]], [[2, 0], [0, 2]]
    assert bound(A, H, [2], 0) == 2
    assert bound(A, H, [2], 1) == 1
    # The other way about: h = 2 in a block, a = 1/2 twice.
    A, H = [[1, 0, 0], ["1/2", "1/2", 0], ["1/2", 0, "1/2"]], [[2, 1], [0, 2]]
    assert bound(A, H, [2], 0) == 2
    assert bound(A, H, [2], 1) == 1


def test_T4c_a_simple_pair_beside_a_block_that_grows_adds_nothing():
    """mu = 1 for h = 0, in a block of 2, and for a = 0 with h = -1/2: L comes from the block."""
    third = ["1/3"] * 3
    H = [[0, 1, 0], [0, 0, 0], [0, 0, "-1/2"]]
    assert bound([third] * 3, H, [1], 1) == 1
    generic = Leading([third] * 3, H, [[1, 2, 3], [5, 7, -4], [2, 0, 1]])
    assert generic.growth.power == 1 and generic.rank() == 1


def test_T4c_the_cut_may_take_any_of_the_eigenvalues_of_A():
    """a = 1/2 twice with h = -4 once, a = 1/4 and a = 0 with h = -8 three times: 1 + 1 + 1."""
    values = ["1/2", "1/2", "1/4", 0]
    A = [[1, 0, 0, 0, 0]] + [
        [1 - Fraction(a), *(Fraction(a) * (i == j) for j in range(4))] for i, a in enumerate(values)
    ]
    H = [[Fraction(h) * (i == j) for j in range(4)] for i, h in enumerate((-4, -8, -8, -8))]
    assert bound(A, H, [-1, 1], 0) == 3


# --- working precision, and the frequencies of a pair ---


def test_T5a_evaluation_costs_heights_degrees_and_powers_of_the_largest_root():
    """(z - 6)(z - 1)^2: heights 13 and 2, the degrees 3 and 2, and 3 bits for 6 + 2 at z^3."""
    first = part([[1, 1, 2]], ([-6, 1], 1), ([-1, 1], 2))
    assert leading.working_bits(first) == 128 + (4 + 8 * 3) + 3 * 3
    # Of two parts the largest cost, degree and root; a part of no root has none.
    second = part([[2**40]], ([-1, 1], 1))
    assert leading.working_bits(second, first) == 128 + 41 + 3 * 3
    assert leading.working_bits(part([[0]])) == 128 + 1


def test_T5a_a_pair_turns_in_both_parts_of_its_products():
    """x = 1 + 2 i with x and conj(x) for numerators: x^2 and its conjugate differ by a sign."""
    mean, hfc = part([[0, 1]], ([5, -2, 1], 1)), part([[2, -1]], ([5, -2, 1], 1))
    growths = growth_of(hfc, ByModulus()), growth_of(mean, ByModulus())
    assert leading.ratio_limit(hfc, mean, growths, 2, ByModulus()) == ("oscillates", None)


def test_T5a_proportional_parts_are_proved_so_and_no_others():
    """x = 1 +- 2 i: N = z and 3 z are, z and 2 - z are not, though the real parts of x^2 agree."""

    def proportional(*numerators, groups=None):
        parts = tuple(part([n], ([5, -2, 1], 1)) for n in numerators)
        growths = tuple(growth_of(one, ByModulus()) for one in parts)
        roots = [Eigenvalue(parts[0].factors[0][0], k) for k in range(2)]
        growths = tuple(Growth(tuple(roots), 0) for _ in growths)
        groups = groups or (lambda x, y: [[(x, x), (y, y)], [(x, y)], [(y, x)]])
        return leading._proportional(parts, growths, roots, groups(*roots))

    assert proportional([0, 1], [0, 3])
    assert not proportional([0, 1], [2, -1])
    # x^2 and conj(x)^2 are two frequencies: taken for one, their sum would agree.
    assert not proportional(
        [0, 1], [2, -1], groups=lambda x, y: [[(x, x), (y, y)], [(x, y), (y, x)]]
    )


def test_T5a_one_real_simple_eigenvalue_of_all_pairs_is_shared():
    def pairs(*known):
        return SimpleNamespace(pairs=lambda root: [SimpleNamespace(**pair) for pair in known])

    def eigenvalue(real=True, multiplicity=1):
        return SimpleNamespace(is_real=real, factor=SimpleNamespace(multiplicity=multiplicity))

    # Equal as they are built of equal parts: told apart by another multiplicity of no meaning here.
    a, other, h = eigenvalue(), eigenvalue(multiplicity=0), eigenvalue(multiplicity=-1)
    root = object()
    assert leading.shared([root], pairs({"attention": a, "value": h}), "attention") is a
    both = {"attention": a, "value": h}, {"attention": a, "value": other}
    assert leading.shared([root], pairs(*both), "attention") is a
    assert leading.shared([root], pairs(*both), "value") is None
    mixed = {"attention": a, "value": h}, {"attention": None, "value": h}
    assert leading.shared([root], pairs(*mixed), "attention") is None
    assert leading.shared([root], pairs(*mixed[::-1]), "attention") is None
    assert leading.shared([root], pairs(*mixed), "value") is h
    for bad in (eigenvalue(real=False), eigenvalue(multiplicity=2), eigenvalue(False, 2)):
        assert leading.shared([root], pairs({"attention": bad, "value": h}), "attention") is None


# --- growth ---


def test_T4e_every_further_try_has_more_bits():
    assert list(doublings(64, 256)) == [64, 128, 256] == list(doublings(64, 511))
    assert list(doublings(9, 8)) == []
