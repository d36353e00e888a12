"""T6, T10: blocks of a matrix hold for every matrix of its cell: M V = V T, eigenvalues within."""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np
import pytest

from oversmoothing.theory.spectra import blocks as module
from oversmoothing.theory.spectra.blocks import Block, invariant_blocks


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


def test_T10_two_eigenvalues_that_the_cell_cannot_part_have_no_blocks_of_their_own():
    """The least distance of all pairs decides, not the largest."""
    values = np.array([0.0, 1e-6, 5.0])
    M = np.diag(values) + np.triu(np.full((3, 3), 1e-3), 1)
    M[2, 0] = 1e-12
    apart = [[0], [1], [2]]
    own = np.linalg.eigvals(M).astype(complex)
    assert module._stewart(balls(M, 1e-6), M, own, apart) is None
    assert module._stewart(balls(M, 1e-16), M, own, apart) is not None
    close = [i for i in range(3) if abs(own[i]) < 1]
    together = sorted([close, [int(np.argmax(abs(own)))]])
    assert module._stewart(balls(M, 1e-6), M, own, together) is not None


def test_T10_a_basis_of_close_eigenvectors_is_refused():
    M = np.array([[0.5, 1e15], [1e-30, 0.5 + 1e-3]])
    own = np.linalg.eigvals(M).astype(complex)
    assert module._stewart(balls(M, 1.0), M, own, [[0], [1]]) is None


def test_T10_a_smaller_change_of_the_basis_than_an_eighth_is_claimed_alone():
    """Of diag(0, 1) within e: the change is 2 e sqrt(4)."""
    M, own = np.array([[0.0, 1e-9], [1e-9, 1.0]]), np.array([0.0, 1.0], complex)
    assert module._stewart(balls(M, 0.03), M, own, [[0], [1]]) is not None
    assert module._stewart(balls(M, 0.032), M, own, [[0], [1]]) is None


def test_T10_eigenvalues_are_linked_by_chains_up_to_the_distance():
    def linked(values, distance):
        return module.clusters(len(values), lambda i, j: abs(values[i] - values[j]) <= distance)

    values = [0.0, 2.0, 1.0, 5.0, 6.5]
    assert linked(values, 1.0) == [[0, 1, 2], [3], [4]]
    assert linked(values, 0.99) == [[0], [1], [2], [3], [4]]
    assert linked([0, 1, 2, 2.5], 1.0) == [[0, 1, 2, 3]]


def test_T10_the_separation_is_the_least_singular_value_of_sylvesters_operator():
    rng = np.random.default_rng(5)
    for i, j in ((1, 1), (2, 1), (1, 3), (3, 2)):
        first = rng.standard_normal((i, i)) + 1j * rng.standard_normal((i, i))
        second = rng.standard_normal((j, j)) + 1j * rng.standard_normal((j, j))
        units = np.eye(i * j).reshape(i * j, i, j)
        table = np.stack([(first @ Y - Y @ second).ravel() for Y in units], axis=1)
        expected = np.linalg.svd(table, compute_uv=False)[-1]
        found = module._separation(first, second)
        assert expected / np.sqrt(i * j) * (1 - 1e-9) <= found <= expected * (1 + 1e-9)


@pytest.mark.parametrize("error", [0.0, 1e-12, 1e-6])
def test_T10_the_disc_of_a_block_holds_eigenvalues_of_all_near_it(error):
    """J_3(1/2 + i): a change of e in the corner moves eigenvalues by e^(1/3)."""
    block = np.diag([0.5 + 1j] * 3) + np.diag([1.0, 1.0], 1)
    found = module._disc(block, flint.arb(error))
    corner = error ** (1 / 3) * np.exp(2j * np.pi * np.arange(3) / 3)
    for x in corner:
        assert found.contains(flint.acb(complex(0.5 + 1j + x * (1 - 1e-9))))
    radius = float(found.real.rad())
    # ||K^3|| = 0: what is lost is of the size 3 ||K||^2 e in each of nine entries.
    assert radius <= (30 * error) ** (1 / 3) + 1e-12
    simple = module._disc(np.array([[2.0 - 3j]]), flint.arb(error))
    assert float(simple.real.rad()) <= 1.5 * error + 1e-15


# --- what is real ---


def block(value, column, size=1):
    columns = tuple(range(column, column + size))
    T = [[value if i == j else flint.acb(0) for j in range(size)] for i in range(size)]
    return Block(columns, T, value, False)


def ball(x, radius=1e-3):
    x = complex(x)
    return flint.acb(flint.arb(x.real, radius), flint.arb(x.imag, radius))


def test_T10_an_eigenvalue_that_no_other_can_mirror_is_real():
    lone = block(ball(1), 0)
    found = module._realised(lone, [lone, block(ball(3), 1)])
    assert found.real and found.value.imag == 0 and found.T[0][0].imag == 0
    assert found.conjugate == ()


def test_T10_conjugate_eigenvalues_know_of_each_other():
    up, down = block(ball(1 + 1j), 0), block(ball(1 - 1j), 1)
    found = module._realised(up, [up, down])
    assert (found.columns, found.real, found.conjugate) == ((0,), False, (1,))
    assert found.T is up.T and found.value is up.value  # a ball is not equal to itself
    assert module._realised(down, [up, down]).conjugate == (0,)


def test_T10_what_two_may_mirror_or_a_larger_block_holds_is_left_open():
    lone, close = block(ball(1), 0), block(ball(1.001), 1)
    assert module._realised(lone, [lone, close]) is lone
    pair = block(ball(2), 0, size=2)
    assert module._realised(pair, [pair]) is pair
    up, wide = block(ball(1 + 1j), 0), block(ball(1 - 1j), 1, size=2)
    assert module._realised(up, [up, wide]) is up
    three = block(ball(2), 0, size=3)
    assert module._realised(three, [three, block(ball(5), 3)]) is three
