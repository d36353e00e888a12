"""What holds for every case that rounds to the same floats: blocks in balls, modes, limits."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import flint
import numpy as np
import pytest

from oversmoothing.theory.layer.attention import cyclic_groups
from oversmoothing.theory.layer.cell import RoundingCell
from oversmoothing.theory.layer.layer import Layer, read_layer
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.spectra.blocks import invariant_blocks
from oversmoothing.theory.verdict.cell_limits import LARGEST_SIDE, decided_in_cell
from oversmoothing.theory.verdict.verdict import verdict

_TWO = [[0.75, 0.25], [0.25, 0.75]]
_SHEAR = np.array([[1.0, 2.0, -1.0], [0.0, 1.0, 1.0], [1.0, 2.0, 0.0]])
_MATRICES = {
    "a Jordan block, sheared": _SHEAR
    @ np.array([[0.3, 1.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, -0.7]])
    @ np.linalg.inv(_SHEAR),
    "three alike, sheared": _SHEAR
    @ np.array([[0.3, 1.0, 0.0], [0.0, 0.3, 1.0], [0.0, 0.0, 0.3]])
    @ np.linalg.inv(_SHEAR),
    "complex": np.array([[0.1, -2.0, 0.3], [2.0, 0.1, 0.7], [0.2, 0.1, 1.3]]),
    "symmetric": np.array([[2.0, 0.1, 0.2], [0.1, -1.0, 0.3], [0.2, 0.3, 0.7]]),
    "triangular": np.array([[0.1, 0.7, 0.2], [0.0, 0.3, -0.6], [0.0, 0.0, 0.7]]),
    "triangular, defective": np.array([[0.3, 0.7, 0.2], [0.0, 0.3, -0.6], [0.0, 0.0, 0.7]]),
    "triangular, small": np.array([[0.0, 0.0, 0.0], [-1e-20, 1e-20, 0.0], [-1e-8, -1e-300, 1e-8]]),
    "permuted triangular": np.array([[0.3, 0.0, 0.5], [0.4, 0.9, 0.1], [0.0, 0.0, -0.3]]),
}


def member(M: np.ndarray, rng: Random) -> list[list[Fraction]]:
    """Fractions that round to the entries."""
    found = []
    for row in M.tolist():
        found.append([])
        for x in row:
            moved = Fraction(x) * (1 + Fraction(rng.randint(-9, 9), 10 * 2**54))
            assert float(moved) == x
            found[-1].append(moved)
    return found


def in_balls(M: np.ndarray) -> list[list[flint.acb]]:
    return [[flint.acb(flint.arb(x, abs(x) * 2.0**-53)) for x in row] for row in M.tolist()]


def to_rational(M: list[list[Fraction]]) -> flint.fmpq_mat:
    return flint.fmpq_mat([[flint.fmpq(x.numerator, x.denominator) for x in row] for row in M])


def eigenvalues(M: flint.fmpq_mat) -> list[flint.acb]:
    """In small balls, each as often as it occurs."""
    return [x for x, count in M.charpoly().complex_roots() for _ in range(count)]


@pytest.mark.parametrize("name", _MATRICES)
@pytest.mark.parametrize("seed", range(4))
def test_every_matrix_of_the_cell_has_its_eigenvalues_and_projectors_in_the_balls(name, seed):
    M = _MATRICES[name]
    exact = to_rational(member(M, Random(seed)))
    with at_precision(512):
        values = eigenvalues(exact)
        table = flint.acb_mat(exact)
        k = len(values)
        with at_precision(192):
            ways = list(invariant_blocks(in_balls(M)))
        assert ways
        for blocks in ways:
            for block in blocks.blocks:
                inside = [x for x in values if block.value.overlaps(x)]
                assert len(inside) >= len(block)
                if block.real:
                    assert block.value.imag == 0
                if len(block) > 1 or len(inside) > 1:
                    continue
                # P = product over the other eigenvalues of (M - x) / (value - x).
                others = list(values)
                others.remove(inside[0])
                identity = flint.acb_mat([[int(i == j) for j in range(k)] for i in range(k)])
                P = identity
                for x in others:
                    P = P * (table - identity * x) * (1 / (inside[0] - x))
                c = block.columns[0]
                for i in range(k):
                    for j in range(k):
                        ball = blocks.basis[i][c] * blocks.inverse[c][j]
                        assert ball.overlaps(P[i, j])
                        assert float(ball.real.rad()) < 1e-9 * (1 + float(abs(P[i, j]).mid()))


def test_blocks_of_a_triangular_matrix_keep_relative_digits_at_every_scale():
    blocks = next(invariant_blocks(in_balls(_MATRICES["triangular, small"])))
    assert blocks.triangular and [len(b) for b in blocks.blocks] == [1, 1, 1]
    assert all(b.value == 0 or b.value.real.rel_accuracy_bits() > 45 for b in blocks.blocks)


def test_indices_that_do_not_reach_one_another_keep_their_eigenvalues_apart():
    """diag(h, h): two features, each with its own h, whatever the rounding."""
    apart = next(invariant_blocks(in_balls(np.diag([0.3, 0.3]))))
    assert [b.columns for b in apart.blocks] == [(0,), (1,)]
    chained = next(invariant_blocks(in_balls(np.array([[0.3, 1.0], [0.0, 0.3]]))))
    assert [len(b) for b in chained.blocks] == [2]


@pytest.mark.parametrize(
    ("A", "groups"),
    [
        ([[0, 1], [1, 0]], [[0], [1]]),
        ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], [[0], [1], [2]]),
        ([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]], [[0, 2], [1, 3]]),
        ([[1, 1], [1, 0]], [[0, 1]]),
        ([[1]], [[0]]),
    ],
)
def test_cyclic_groups_of_a_class(A, groups):
    assert cyclic_groups(np.array(A) > 0, list(range(len(A)))) == groups


def test_1_minus_a_keeps_its_digits_where_a_rounds_to_1():
    cell = RoundingCell(Layer.of([[1.0, 0.0], [1e-20, 1.0]], [[0.5]]))
    assert cell.departures[0][0] == 0
    assert cell.departures[1][1].real.rel_accuracy_bits() > 45
    assert abs(float(cell.departures[1][1].real.mid()) - 1e-20) < 1e-30


@pytest.mark.parametrize(
    ("A", "H", "X0", "expected"),
    [
        # A Jordan block of H that leads, and one of A.
        (_TWO, [[0.3, 1.0], [0.0, 0.3]], [[1.0, 2.0], [3.0, 5.0]], ("SMOOTHING", "zero", 1)),
        (
            [[1.0, 0.0, 0.0], [0.7, 0.3, 0.0], [0.2, 0.5, 0.3]],
            [[-0.6]],
            [[1.0], [2.0], [5.0]],
            ("NON_SMOOTHING", "constant", 1),
        ),
        # Attention that keeps nearly everything, by the sign of h.
        ([[1.0, 0.0], [1e-20, 1.0]], [[0.5]], [[1.0], [2.0]], ("SMOOTHING", "zero", 1)),
        ([[1.0, 0.0], [1e-20, 1.0]], [[-0.5]], [[1.0], [2.0]], ("NON_SMOOTHING", "constant", 1)),
        # h = 0 alone: nothing moves.
        ([[1.0, 0.0], [0.3, 0.7]], [[0.0]], [[1.0], [3.0]], ("TIE", "constant", 1)),
        # A token's own mode, absent by zeros alone.
        ([[1.0, 0.0], [0.7, 0.3]], [[-0.6]], [[0.0], [1.0]], ("NON_SMOOTHING", "constant", 1)),
        # Two groups that swap: the mean of that mode is 0, whatever the shares are.
        (
            [[0.0, 0.3, 0.0, 0.7], [0.6, 0.0, 0.4, 0.0], [0.0, 0.9, 0.0, 0.1], [0.2, 0.0, 0.8, 0]],
            [[-0.3]],
            [[1.0], [2.0], [5.0], [3.0]],
            ("NON_SMOOTHING", "infinity", 1),
        ),
    ],
)
def test_what_all_cases_of_a_cell_share_is_decided(A, H, X0, expected):
    found = decided_in_cell(*read_layer(A, H, X0))
    assert (found.outcome, found.limits.tends_to, found.limits.limit_rank) == expected


def test_T4c_a_limit_is_that_of_the_eigenvector():
    A = [[1.0, 0.0], [0.7, 0.3]]
    found = decided_in_cell(*read_layer(A, [[-0.6]], [[1.0], [5.0]]))
    # v = (0, 1): P v = (-1/2, 1/2) against sqrt 2 times a mean of 1/2.
    assert found.limits.limit == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(
    ("A", "H", "X0"),
    [
        # 1 + h and -(1 + h a) to the last digit.
        ([[1.0, 0.0], [13 / 14, 1 / 14]], [[-28 / 15]], [[7.0], [2.0]]),
        # A mean that is 0 or is not.
        (_TWO, [[0.3, 1.0], [0.0, 0.3]], [[1.0, 2.0], [-1.0, -2.0]]),
        # h = -1 of two classes: the state may die, or may not.
        ([[1.0, 0.0], [0.0, 1.0]], [[-1.0]], [[1.0], [2.0]]),
    ],
)
def test_what_they_do_not_share_is_left_open(A, H, X0):
    assert decided_in_cell(*read_layer(A, H, X0)).outcome == "UNDECIDED"


def test_one_token_and_large_cases_are_left_to_other_ways():
    large = np.full((LARGEST_SIDE + 1, LARGEST_SIDE + 1), 1 / (LARGEST_SIDE + 1))
    for case, start in (
        read_layer([[1.0]], [[0.5]], [[1.0]]),
        read_layer(large, [[0.3]], np.arange(1.0, LARGEST_SIDE + 2)[:, None]),
    ):
        assert decided_in_cell(case, start).outcome == "UNDECIDED"


def test_heads_have_a_cell_too():
    case, start = read_layer(_TWO, None, [[1.0], [2.0]], factors=([[0.5]], [[0.5]]))
    assert decided_in_cell(case, start).outcome == "SMOOTHING"


def test_logits_have_a_cell_too():
    case = {"logits": [[0.0, -np.inf], [0.0, 50.0]], "H": [[-0.5, 1.0], [0.0, -0.5]]}
    found = verdict(**case, X0=[[1.0, 2.0], [3.0, 5.0]])
    assert (found.verdict, found.verdict_x0, found.limit_rank) == (*["NON_SMOOTHING"] * 2, 1)
