"""T6, T10: blocks of a matrix hold for every matrix of its cell: M V = V T, eigenvalues within."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import flint
import numpy as np
import pytest

from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.spectra.blocks import invariant_blocks
from tests.support.tables import rational


def balls(rows, error=0.0):
    """A real matrix with that radius in every entry."""
    with flint.ctx.workprec(256):
        return [
            [flint.acb(flint.arb(flint.fmpq(*Fraction(x).as_integer_ratio()), error)) for x in row]
            for row in rows
        ]


def product(X, Y):
    return (flint.acb_mat(X) * flint.acb_mat(Y)).tolist()


def whole(found):
    """diag(T_1, ..., T_m) in the columns of the basis."""
    k = len(found.basis)
    table = [[flint.acb(0)] * k for _ in range(k)]
    for block in found.blocks:
        for p, i in enumerate(block.columns):
            for q, j in enumerate(block.columns):
                table[i][j] = block.T[p][q]
    return table


def holds(found, M, tolerance):
    """0 is in M V - V T and in V V^-1 - I, no entry wider than the tolerance."""
    k = len(M)
    residual = [
        [x - y for x, y in zip(*rows, strict=True)]
        for rows in zip(product(M, found.basis), product(found.basis, whole(found)), strict=True)
    ]
    unit = [
        [x - (i == j) for j, x in enumerate(row)]
        for i, row in enumerate(product(found.basis, found.inverse))
    ]
    assert sorted(i for block in found.blocks for i in block.columns) == list(range(k))
    for table in (residual, unit):
        for row in table:
            for x in row:
                assert x.contains(0) and x.abs_upper() < 8 * tolerance


# --- by substitution ---

# Its last indices see a block of three, of two beside it, and both.
CHAINED = [
    ["1/2", 0, 0, 0, 0, 0, 0],
    ["1/3", "1/2", 0, 0, 0, 0, 0],
    ["1/5", "1/7", "1/2", 0, 0, 0, 0],
    [0, 0, 0, "1/2", 0, 0, 0],
    ["1/9", "1/8", "1/7", "1/6", "1/5", 0, 0],
    ["1/2", "1/3", "2/7", "1/11", "1/4", "-1/3", 0],
    ["3/7", "-1/2", "1/9", "1/3", 0, "2/3", "1/5"],
]


@pytest.mark.parametrize("turned", [False, True])
def test_T6_blocks_of_a_triangular_matrix_are_bases_of_its_invariant_subspaces(turned):
    order = [5, 2, 0, 6, 3, 1, 4] if turned else list(range(7))
    rows = [[CHAINED[i][j] for j in order] for i in order]
    with flint.ctx.workprec(256):
        M = balls(rows)
        (found,) = invariant_blocks(M)
        holds(found, M, 1e-60)
    assert found.triangular
    # 1/2 three times in a chain and once beside it; 1/5 twice, one behind the other.
    named = sorted(sorted(order[i] for i in block.columns) for block in found.blocks)
    assert named == [[0, 1, 2], [3], [4, 6], [5]]
    for block in found.blocks:
        assert block.real and all(block.value.contains(M[i][i]) for i in block.columns)


def test_T6_a_block_is_as_wide_as_the_eigenvalues_that_the_cell_cannot_tell_apart():
    """1/2 and 1/2 + 1e-9 within 1e-8: one block, whose ball holds both and their hull."""
    M = [[flint.acb(0)] * 3 for _ in range(3)]
    for i, middle in enumerate((0.5, 0.5 + 1e-9, 0.5 + 2e-9)):
        M[i][i] = flint.acb(flint.arb(middle, 1e-8))
        for j in range(i):
            M[i][j] = flint.acb(0.25)
    (found,) = invariant_blocks(M)
    (block,) = found.blocks
    assert block.columns == (0, 1, 2)
    for i in range(3):
        assert block.value.contains(M[i][i])
    assert block.value.real.rad() < 1.2e-8


def test_T6_one_of_a_group_that_is_reached_and_as_large_joins_it():
    """The third index reaches the first of a pair of equal eigenvalues alone."""
    rows = [["1/2", 0, 0, 0], ["1/3", "1/2", 0, 0], ["1/3", 0, "1/2", 0], [0, 0, "1/3", "1/7"]]
    with flint.ctx.workprec(256):
        M = balls(rows)
        (found,) = invariant_blocks(M)
        holds(found, M, 1e-60)
    assert sorted(sorted(block.columns) for block in found.blocks) == [[0, 1, 2], [3]]


# --- by Schur forms ---


def drawn(seed, size, error):
    rng = np.random.default_rng(seed)
    middle = rng.dirichlet(np.ones(size), size=size)
    inside = [middle + error * rng.uniform(-1, 1, middle.shape) for _ in range(4)]
    return middle, inside


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("error", [1e-15, 1e-9])
def test_T10_schur_blocks_hold_for_every_matrix_of_the_cell(seed, error):
    middle, inside = drawn(seed, 4 + seed, error)
    found = list(invariant_blocks(balls(middle, error)))
    assert found
    for each in found:
        assert not each.triangular
        for own in [middle, *inside]:
            M = balls(own)
            # By the condition of the basis and the gaps, some 1e4 here, over error and rounding.
            holds(each, M, 1e6 * (error + 1e-14))
            values = [flint.acb(complex(x)) for x in np.linalg.eigvals(own)]
            wide = [block.value + flint.acb(flint.arb(0, 1e-12), flint.arb(0, 1e-12))
                    for block in each.blocks]  # fmt: skip
            for ball, block in zip(wide, each.blocks, strict=True):
                assert sum(ball.contains(x) for x in values) >= len(block)


def test_T10_a_jordan_block_is_kept_whole_and_its_eigenvalues_stay_within():
    """Similar to J_2(1/2) + 1/5: one block of two, however its entries are moved."""
    rng = np.random.default_rng(3)
    S = rng.standard_normal((3, 3))
    M = S @ np.array([[0.5, 1, 0], [0, 0.5, 0], [0, 0, 0.2]]) @ np.linalg.inv(S)
    found = next(iter(invariant_blocks(balls(M, 1e-15))))
    assert sorted(len(block) for block in found.blocks) == [1, 2]
    for _ in range(20):
        moved = M + 1e-15 * rng.uniform(-1, 1, M.shape)
        holds(found, balls(moved), 1e-6)
        for x in np.linalg.eigvals(moved):
            assert any(block.value.contains(flint.acb(complex(x))) for block in found.blocks)


# --- what the cell parts, and what it does not ---


@pytest.mark.parametrize(
    ("rows", "error", "sizes"),
    [
        # 0 and 1e-6 within 1e-6 are one block, within 1e-16 they are two; 5 is apart.
        ([[0, 1e-3, 1e-3], [0, 1e-6, 1e-3], [1e-12, 0, 5]], 1e-6, [1, 2]),
        ([[0, 1e-3, 1e-3], [0, 1e-6, 1e-3], [1e-12, 0, 5]], 1e-16, [1, 1, 1]),
        # Chains of neighbours are one block.
        (
            [[0, 0.5, 0, 1e-9], [0, 1e-9, 0.5, 0], [0, 0, 2e-9, 0.5], [1e-30, 0, 0, 4]],
            1e-12,
            [1, 3],
        ),
        # Close eigenvectors.
        ([[0.5, 1e15], [1e-30, 0.5 + 1e-3]], 1.0, []),
        # Of diag(0, 1) within e the basis changes by 2 e sqrt(4): by less than an eighth it may.
        ([[0, 1e-9], [1e-9, 1]], 0.03, [1, 1]),
        ([[0, 1e-9], [1e-9, 1]], 0.032, []),
    ],
)  # fmt: skip
def test_T10_blocks_are_as_fine_as_the_cell_can_part_them(rows, error, sizes):
    M = np.array(rows, dtype=float)
    found = [each for each in invariant_blocks(balls(M, error)) if not each.triangular]
    finest = max(found, key=lambda each: len(each.blocks), default=None)
    assert sorted(map(len, finest.blocks) if finest and len(finest.blocks) > 1 else []) == sizes
    rng = np.random.default_rng(5)
    for each in found:
        for _ in range(5):
            moved = M + error * rng.choice([-1.0, 1.0], M.shape)
            for x in np.linalg.eigvals(moved):
                ball = flint.acb(complex(x)) + flint.acb(flint.arb(0, 1e-12), flint.arb(0, 1e-12))
                assert any(block.value.overlaps(ball) for block in each.blocks)


@pytest.mark.parametrize("error", [1e-15, 1e-12, 1e-9])
def test_T10_the_disc_of_a_block_holds_eigenvalues_of_all_near_it_and_hardly_more(error):
    """J_3(1/2) beside 2: e in the corner moves eigenvalues by e^(1/3), and by no more than 10."""
    M = np.diag([0.5, 0.5, 0.5, 2.0]) + np.diag([1.0, 1.0, 0.0], 1)
    M[3, 0] = 1e-200
    found = next(iter(invariant_blocks(balls(M, error))))
    (three,) = [block for block in found.blocks if len(block) == 3]
    for turn in np.exp(2j * np.pi * np.arange(3) / 3):
        assert three.value.contains(flint.acb(complex(0.5 + error ** (1 / 3) * turn * (1 - 1e-9))))
    assert float(three.value.real.rad()) <= 10 * error ** (1 / 3)
    (one,) = [block for block in found.blocks if len(block) == 1]
    assert float(one.value.real.rad()) <= 1e3 * error + 1e-13


@pytest.mark.parametrize(
    ("rows", "kinds"),
    [
        # Alone: real, exactly so. A pair knows of its other half. What is not parted is left open.
        ([[1, 0.1], [0.2, 3]], {(True, 0)}),
        ([[1, -1], [1, 1]], {(False, 1)}),
        ([[1, -1, 0.1], [1, 1, 0.2], [0.3, 0.1, 4]], {(False, 1), (True, 0)}),
        ([[1, 1e-3], [1e-30, 1 + 1e-13]], {(False, 0)}),
    ],
)
def test_T10_what_is_real_and_what_is_a_pair_is_known_where_nothing_else_may_be_it(rows, kinds):
    found = next(iter(invariant_blocks(balls(np.array(rows, dtype=float), 1e-15))))
    assert {(block.real, len(block.conjugate)) for block in found.blocks} == kinds
    for i, block in enumerate(found.blocks):
        assert not block.real or block.value.imag == 0 == block.T[0][0].imag
        for column in block.conjugate:
            other = next(b for b in found.blocks if column in b.columns)
            assert other is not found.blocks[i] and set(other.conjugate) == set(block.columns)
            assert other.value.overlaps(block.value.conjugate())


# --- every matrix that rounds to the same floats ---

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


def member(M, rng):
    """Fractions that round to the entries."""
    found = []
    for row in M.tolist():
        found.append([])
        for x in row:
            moved = Fraction(x) * (1 + Fraction(rng.randint(-9, 9), 10 * 2**54))
            assert float(moved) == x
            found[-1].append(moved)
    return found


def in_balls(M):
    return [[flint.acb(flint.arb(x, abs(x) * 2.0**-53)) for x in row] for row in M.tolist()]


def eigenvalues(M):
    """In small balls, each as often as it occurs."""
    return [x for x, count in M.charpoly().complex_roots() for _ in range(count)]


@pytest.mark.parametrize("name", _MATRICES)
@pytest.mark.parametrize("seed", range(4))
def test_every_matrix_of_the_cell_has_its_eigenvalues_and_projectors_in_the_balls(name, seed):
    M = _MATRICES[name]
    exact = rational(member(M, Random(seed)))
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
