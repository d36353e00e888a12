"""T1: the basis of differences, the stationary distribution in floats, Jordan sizes of H."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from oversmoothing.theory.layer.attention import (
    class_families,
    closed_classes,
    complement_basis,
    stationary_distribution,
)
from oversmoothing.theory.numbers.exact import exact_stationary, to_float
from oversmoothing.theory.proofs import strategies as own
from oversmoothing.theory.spectra.algebraic import factors
from oversmoothing.theory.spectra.layer_discs import attention_spectrum
from tests.support.cases import cases
from tests.support.kronecker import leaning
from tests.support.refusals import refuses

EPS = np.finfo(float).eps
# The smallest number of binary64.
TINY = 5e-324


@given(st.integers(1, 40))
def test_complement_basis_is_orthonormal_and_orthogonal_to_ones(n):
    Q = complement_basis(n)
    assert Q.shape == (n, n - 1)
    assert np.abs(Q.T @ Q - np.eye(n - 1)).max(initial=0) <= 8 * n * EPS
    assert np.abs(Q.sum(axis=0)).max(initial=0) <= 8 * n * EPS


@given(own.attention(1, 6, zeros=True))
def test_T1d_stationary_distribution_is_right_to_every_digit(A):
    floating = to_float(A)
    classes = [list(map(int, c)) for c in closed_classes(floating)]
    exact = exact_stationary(A, classes)
    pi = stationary_distribution(floating)
    assert sum(exact) == 1
    for j in range(len(A)):
        assert sum((p * row[j] for p, row in zip(exact, A, strict=True)), Fraction(0)) == exact[j]
    # GTH subtracts nothing: each entry is right to relative precision, the tiny ones too.
    assert np.allclose(pi, [float(p) for p in exact], rtol=64 * len(A) * EPS, atol=0)


# 40 tokens that hardly leave themselves, each for the next one; the first twice as often.
LONG_RING = np.eye(40) + TINY * np.roll(np.eye(40), 1, axis=1)
LONG_RING[0, 1] = 2 * TINY


@cases(
    "A, pi",
    (LONG_RING, [1 / 79] + [2 / 79] * 39),
    ([[TINY, TINY, 1e-192, 1.0]] * 4, [TINY, TINY, 1e-192, 1.0]),
    ([[1.0, TINY], [TINY, 1.0]], [0.5, 0.5]),
    ([[1.0, TINY, 0.0], [0.0, 1.0, 2 * TINY], [0.5, 0.0, 0.5]], [2 / 3, 1 / 3, 4 / 3 * TINY]),
    ids=["a long ring", "one token holds all", "two that hardly mix", "a ring"],
)
def test_T1d_stationary_distribution_beyond_the_range_of_binary64(A, pi):
    assert np.allclose(stationary_distribution(np.array(A)), pi, rtol=1e-12, atol=TINY)


def test_T1d_what_binary64_cannot_hold_of_a_large_A_is_refused():
    A = np.diag([0.5] * 39 + [1.0]) + np.diag([0.5] * 39, 1) + np.diag([TINY] * 39, -1)
    refuses("beyond binary64", stationary_distribution, A)


@given(st.integers(65, 110), st.floats(0.1, 3.0), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_T1d_stationary_distribution_by_iteration_agrees_with_the_elimination(n, spread, seed):
    A = np.exp(spread * np.random.default_rng(seed).standard_normal((n, n)))
    A /= A.sum(axis=1, keepdims=True)
    # Beside a second class the first is solved by elimination.
    beside = np.zeros((n + 1, n + 1))
    beside[:n, :n], beside[n, n] = A, 1.0
    pi = class_families(beside)[0][0, :n]
    assert np.allclose(stationary_distribution(A), pi, rtol=64 * n * EPS, atol=0)


def test_T1d_groups_that_hardly_meet_are_not_iterated():
    """A step moves nothing here, though pi is three times as large on the first group."""
    A = np.full((80, 80), 1 / 40)
    A[:40, 40:], A[40:, :40] = 2.0**-60 / 40, 3 * 2.0**-60 / 40
    pi = stationary_distribution(A)
    assert np.allclose(pi[:40], 3 * pi[40:], rtol=1e-12)


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, -2]), st.integers(1, 3)), min_size=1, max_size=3),
    st.data(),
)
def test_jordan_sizes_are_read_off_exactly(blocks, data):
    blocks = [(Fraction(value), size) for value, size in blocks]
    H = data.draw(own.with_jordan_blocks(blocks))
    for factor in factors(H):
        root = -Fraction(int(factor.polynomial[0]), int(factor.polynomial[1]))
        expected = sorted((k for value, k in blocks if value == root), reverse=True)
        assert list(factor.jordan) == expected


def test_a_factor_prints_the_same_before_and_after_its_roots_are_found():
    """x^2 - 2: what it is shows, the roots that were computed on the way do not."""
    (factor,) = factors([[Fraction(0), Fraction(2)], [Fraction(1), Fraction(0)]])
    before = repr(factor)
    assert "x^2" in before.replace(" ", "")
    assert len(factor.roots(64)) == 2 and repr(factor) == before


@pytest.mark.parametrize("kind", ["causal", "in any order", "a prefix seen whole", "packed"])
def test_T1h_zeros_part_the_spectrum_of_attention(kind: str) -> None:
    """Each token mostly sees the one before: LAPACK's values of the whole quotient are false."""
    rng, n, seen = np.random.default_rng(0), 64, 10
    A = leaning(n)
    if kind in ("a prefix seen whole", "packed"):
        A[:seen] = np.pad(rng.random((seen, seen)), ((0, 0), (0, n - seen)))
    if kind == "packed":
        A[seen:, :seen] = 0
        A[seen, seen] = 1
    A /= A.sum(axis=1, keepdims=True)
    first = np.linalg.eigvals(A[:seen, :seen])
    expected = np.append(np.delete(first, np.abs(first - 1).argmin()), np.diag(A)[seen:])
    if kind == "in any order":
        order = rng.permutation(n)
        A = A[np.ix_(order, order)]
    values = attention_spectrum(A)
    assert len(values) == n - 1
    apart = np.abs(values[:, None] - expected)
    # Random positive blocks are well conditioned.
    assert max(apart.min(0).max(), apart.min(1).max()) < 100 * n * EPS
    assert np.sum(values == 1) == len(closed_classes(A)) - 1
