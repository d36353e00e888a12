"""T2b, T4, T5a: modes of a cell compared, and the limits of those that lead, part by part."""

from __future__ import annotations

import math
from types import SimpleNamespace as Some

import flint
import pytest

from oversmoothing.theory.layer.cell import RoundingCell
from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.spectra.blocks import Block
from oversmoothing.theory.verdict import by_cells as modes, cell_limits as leading
from oversmoothing.theory.verdict.by_cells import Mode, Side, modes_of
from oversmoothing.theory.verdict.cell_limits import limits_in_balls, merged
from oversmoothing.theory.verdict.disc_limits import UNKNOWN, Limits
from oversmoothing.theory.verdict.formulas import Outcome


def acb(x, radius=0.0):
    x = complex(x)
    return flint.acb(flint.arb(x.real, radius), flint.arb(x.imag, radius))


def block(value, size=1, columns=None, conjugate=(), real=True, T=None):
    columns = tuple(range(size)) if columns is None else columns
    T = [[acb(value)]] if T is None else [[acb(x) for x in row] for row in T]
    return Block(columns, T, acb(value), real, conjugate)


def side(a, consensus=False, **kinds):
    return Side(block(1 - complex(a), **kinds), acb(1 - complex(a)), acb(a), consensus)


def mode(h, a, consensus=False, sure=True, full=True, value=None):
    value = value or block(h)
    return Mode(side(a, consensus), value, 1 + acb(h) * acb(a), sure, full)


# --- modes ---


def test_T2b_the_difference_of_two_moduli_over_one_h_is_that_of_their_squares():
    for h, a, b in ((-0.5 + 0.25j, 0.5 + 0.75j, -0.25j), (2, 0.5, -0.75), (1j, 0.5, 0.25 + 1j)):
        value = block(h)
        found = modes._difference(mode(h, a, value=value), mode(h, b, value=value))
        squares = [z.real**2 + z.imag**2 for z in (1 + h * a, 1 + h * b)]
        assert found.overlaps(flint.arb(squares[0] - squares[1]))


def test_T4_modes_are_equal_by_structure_alone():
    shared, half = block(-0.5), block(-0.5)
    first = mode(-0.5, 1, True, value=shared)
    assert first.equals(mode(-0.5, 1, True, value=shared))
    assert not first.equals(mode(-0.5, 1, True, full=False, value=shared))
    assert not mode(-0.5, 1, True, full=False, value=shared).equals(first)
    # Two blocks of one value, and other eigenvalues of A, are not seen to be equal.
    assert not first.equals(mode(-0.5, 1, True, value=half))
    assert not first.equals(mode(-0.5, 1, False, value=shared))
    # 1 + 0 is 1, whatever makes the 0; one of them is not enough.
    assert mode(0, 0.5).equals(mode(3, 0)) and mode(3, 0).equals(mode(0, 1, True))
    assert not mode(3, 0).equals(mode(0.5, 0.5)) and not mode(0.5, 0.5).equals(mode(3, 0))
    turning = block(1j, columns=(0,), conjugate=(1,), real=False)
    back = block(-1j, columns=(1,), conjugate=(0,), real=False)
    other = block(-2j, columns=(2,), conjugate=(3,), real=False)
    assert mode(1j, 1, True, value=turning).equals(mode(-1j, 1, True, value=back))
    assert not mode(1j, 1, True, value=turning).equals(mode(-2j, 1, True, value=other))


def test_T2b_a_multiplier_is_taken_the_way_that_keeps_its_digits():
    """1 + h a where a is known to its last digits, 1 + h - h s where 1 - a is."""
    h, coarse, fine = flint.acb(-0.5), 1e-16, 1e-36
    tiny = flint.arb(1e-20, fine)
    with at_precision(192):
        for known, expected in (
            (Side(block(0), acb(1, coarse), flint.acb(tiny), False), 1 - 0.5 * flint.arb(1e-20)),
            (Side(block(0), flint.acb(tiny), acb(1, coarse), False), 0.5 + 0.5 * flint.arb(1e-20)),
        ):
            found = modes._multiplier(known, h)
            assert found.overlaps(flint.acb(expected)) and found.real.rad() < 1e-30


def cell(A, H):
    return RoundingCell(Layer.of(A, H))


def test_T6_small_eigenvalues_of_a_causal_A_keep_their_digits_and_so_do_those_near_1():
    with at_precision(192):
        found = next(modes_of(cell([[1.0, 0.0], [1.0, 1e-20]], [[0.5]]), None)).sides
        assert [x.consensus for x in found] == [True, False]
        assert found[1].a.real.rel_accuracy_bits() > 45
        found = next(modes_of(cell([[1.0, 0.0], [1e-20, 1.0]], [[0.5]]), None)).sides
        assert found[1].s.real.rel_accuracy_bits() > 45
        assert found[0].s == 0


# --- limits ---


def test_T5a_what_two_ways_know_is_joined():
    constant, ranked = Limits("constant", 0.5, None), Limits("zero", 0.0, 2)
    assert merged(constant, ranked) == Limits("constant", 0.5, 2)
    assert merged(Limits(None, None, 3), ranked) == Limits("zero", 0.0, 3)
    assert merged(UNKNOWN, UNKNOWN) == UNKNOWN
    open_ = Limits("constant", None, 1)
    assert merged(open_, constant) == Limits("constant", 0.5, 1)
    assert merged(Limits("constant", 0.25, 1), constant).limit == 0.25
    assert merged(open_, ranked) == Limits("constant", None, 1)


def test_T4c_the_limit_of_one_direction_is_its_spread_over_its_mean():
    def of(*v):
        return leading._constant(list(v))

    assert of(acb(0), acb(1)) == Limits("constant", 1.0, 1)
    assert of(acb(3), acb(1)) == Limits("constant", 0.5, 1)
    assert of(acb(1j), acb(3j)) == Limits("constant", 0.5, 1)
    assert of(acb(0), acb(0), acb(3)).limit == pytest.approx(math.sqrt(2))
    # A mean or a spread that may be 0.
    assert of(acb(1), acb(-1)) == of(acb(1), acb(1)) == Limits(None, None, 1)
    assert of(acb(1), acb(1.5, 1)) == Limits(None, None, 1)
    # Known to be constant, and not to enough digits.
    assert of(acb(3, 1e-3), acb(1)) == Limits("constant", None, 1)
    assert of(acb(3, 1e-9), acb(1)) == Limits("constant", 0.5, 1)


def test_T4c_the_eigenvector_of_a_block_is_in_its_ball():
    """(T - 2) y = 0 up to the first row: y = (-1, 1), and (-1/2, 1/2, 1)."""
    two = leading._chain(block(2, 2, T=[[2, 0], [1, 3]]))
    assert [complex(x.mid()) for x in two] == [-1, 1]
    three = leading._chain(block(2, 3, T=[[2, 0, 0], [1, 3, 0], [5, 1, 4]]))
    assert [complex(x.mid()) for x in three] == pytest.approx([-0.5, 0.5, 1])
    # Two eigenvectors: none is the one.
    assert leading._chain(block(2, 2, T=[[2, 0], [0, 2]])) is None


def tops(h, *attentions, real=True, **kinds):
    value = block(h, real=real, **kinds)
    return [mode(h, a, value=value) for a in attentions], value


@pytest.mark.parametrize(
    ("h", "a", "expected"),
    [
        # d|1 + h a|^2 / dh = 2 (Re a + h |a|^2).
        (-2, 0.5, False),
        (2, 0.5, True),
        (-1, 0.5, True),
        (-0.5, 0.5, True),
        (-0.4, 0.5 + 1j, False),
        (0.25, 1j, True),
    ],
)
def test_T5a_one_real_h_leads_where_the_modulus_has_a_slope_in_h(h, a, expected):
    top, value = tops(h, a)
    if a == 0.5 + 1j:
        # -0.4 is no binary number: 0.5 - 0.4 * 1.25 = 0 within its ball.
        value = Block((0,), [[acb(h, 1e-9)]], acb(h, 1e-9), True)
        top = [mode(h, a, value=value)]
    assert leading._one_feature(top, [x.attention for x in top], value) == expected


def test_T5a_one_feature_leads_with_one_side_or_a_pair_of_conjugates():
    top, value = tops(0.5, 0.5, 0.25)
    sides = [x.attention for x in top]
    assert not leading._one_feature(top, sides, value)
    up, down = (
        Side(block(1, columns=(k,), conjugate=(1 - k,)), acb(1), acb(a), False)
        for k, a in enumerate((1j, -1j))
    )
    assert leading._one_feature(top, [up, down], value)
    # One of two slopes may vanish, or the h may be complex: no.
    both = [mode(-2, 0.5), mode(-2, 0.25)]
    assert not leading._one_feature(both, [up, down], block(-2))
    top, turning = tops(0.5, 0.5, real=False)
    assert not leading._one_feature(top, [top[0].attention], turning)


def test_T4_tokens_of_a_block_of_several_eigenvalues_have_no_one_direction():
    """But where they are the diagonal of a causal A."""
    wide = Some(block=block(2, 2, T=[[2, 0], [1, 3]]))
    basis = [[acb(1), acb(0)], [acb(2), acb(1)]]
    assert leading._direction(Some(A=Some(triangular=False, basis=basis)), wide) is None
    found = leading._direction(Some(A=Some(triangular=True, basis=basis)), wide)
    assert [complex(x.mid()) for x in found] == [-1, -1]


def test_T4e_where_nothing_leads_nothing_is_said():
    nothing = Some(leading=lambda: iter([[]]), all_modes=list, cell=Some(case=Some(n=2, d=1)))
    assert limits_in_balls(nothing, Outcome.UNDECIDED) == UNKNOWN


# --- a pair of conjugates ---


def of_pair(w, u, multiplier, sure=True, generic=False, sides=(True,)):
    """_of_pair for X_L like Re(mu^L w u^T)."""
    asked = []

    def states(chosen, value):
        asked.append(len(chosen))
        return [[acb(x)] for x in w]

    value = block(0.5)
    top = [Mode(side(0.5, x), value, acb(multiplier), sure, True) for x in sides]
    known = Some(
        coefficients=None if generic else [],
        fixed_states=states,
        H=Some(basis=[[acb(x)] for x in u]),
        cell=Some(case=Some(classes=[[0]])),
    )
    return leading._of_pair(known, top), asked


OSCILLATING = Limits("oscillates", None, 2)
BY_RANK = Limits(None, None, 2)


def test_T5a_hfc_and_lfc_of_a_pair_turn_differently_where_their_squares_do():
    """w = (1, i): Pw.Pw / |Pw|^2 = -i, mean^2 / |mean|^2 = i; u.u = -3."""
    assert of_pair((1, 1j), (1, 2j), 1 + 1j)[0] == OSCILLATING
    assert of_pair((1, 1j), (1, 2j), 1 + 2j)[0] == OSCILLATING
    assert of_pair((1, 1j), (1, 2j), 2 + 1j)[0] == OSCILLATING
    # w of the mean 1.
    assert of_pair((1 + 1j, 1 - 1j), (1, 2j), 2 + 3j)[0] == OSCILLATING
    # A real h turns with a complex a, at rank 1; its rank is said elsewhere.
    assert of_pair((1, 1j), (1, 2), 2 + 3j)[0] == Limits("oscillates", None, None)


def test_T5a_a_pair_says_nothing_where_nothing_turns_or_all_turns_alike():
    # A quarter turn, none, and half a one: e^(2 i L phase) is real.
    for multiplier in (2j, 2, -2):
        assert of_pair((1, 1j), (1, 2j), multiplier)[0] == BY_RANK
    # u.u = 0: what comes with e^(2 i L phase) is gone.
    assert of_pair((1, 1j), (1, 1j), 1 + 1j)[0] == BY_RANK
    # No mean, no spread.
    assert of_pair((1j, -1j, 1, -1), (1, 2j), 1 + 1j)[0] == BY_RANK
    assert of_pair((1 + 1j, 1 + 1j), (1, 2j), 1 + 1j)[0] == Limits(None, None, None)
    # Both turn by the same phase: w = (1, 3).
    assert of_pair((1, 3), (1, 2j), 1 + 1j)[0] == Limits(None, None, None)


def test_T5a_a_pair_that_may_be_missing_or_depends_on_the_start_says_nothing():
    assert of_pair((1, 1j), (1, 2j), 1 + 1j, sure=False)[0] == UNKNOWN
    assert of_pair((1, 1j), (1, 2j), 1 + 1j, generic=True)[0] == UNKNOWN
    assert of_pair((1, 1j), (1, 2j), 1 + 1j, generic=True, sides=(False,))[0] == OSCILLATING


def test_T5a_all_of_consensus_leads_together_and_others_alone():
    assert of_pair((1, 1j), (1, 2j), 1 + 1j, sides=(True, True))[1] == [2]
    assert of_pair((1, 1j), (1, 2j), 1 + 1j, sides=(True, False))[1] == [1]
    assert of_pair((1, 1j), (1, 2j), 1 + 1j, sides=(False, False))[1] == [1]
