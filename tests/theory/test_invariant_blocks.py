"""T6, T10: blocks of a matrix hold for every matrix of its cell: eigenvalues and projectors."""

from fractions import Fraction
from math import prod
from random import Random

import flint
import numpy as np
import pytest

from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.spectra.blocks import invariant_blocks
from tests.support.cases import cases
from tests.support.tables import identity, rational


def balls(rows, error=0.0):
    """A real matrix with that radius in every entry."""
    with flint.ctx.workprec(256):
        return [
            [flint.acb(flint.arb(flint.fmpq(*Fraction(x).as_integer_ratio()), error)) for x in row]
            for row in rows
        ]


# --- what the cell parts, and what it does not ---


@cases(
    "rows, error, sizes",
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
        values, table = eigenvalues(exact), flint.acb_mat(exact)
        one = flint.acb_mat(rational(identity(len(M))))
        with at_precision(192):
            ways = list(invariant_blocks(in_balls(M)))
        assert ways
        for blocks, block in ((way, block) for way in ways for block in way.blocks):
            inside = [x for x in values if block.value.overlaps(x)]
            assert len(inside) >= len(block)
            assert block.value.imag == 0 or not block.real
            if len(block) > 1 or len(inside) > 1:
                continue
            # P = product over the other eigenvalues of (M - x) / (value - x).
            others = [x for x in values if x is not inside[0]]
            P = prod(((table - one * x) * (1 / (inside[0] - x)) for x in others), start=one)
            (c,) = block.columns
            for i, j in np.ndindex(M.shape):
                ball = blocks.basis[i][c] * blocks.inverse[c][j]
                assert ball.overlaps(P[i, j])
                assert float(ball.real.rad()) < 1e-9 * (1 + float(abs(P[i, j]).mid()))
