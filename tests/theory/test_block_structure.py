"""T1: X -> X + A X W is two decoupled linear systems and one static coupling."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given, settings, strategies as st
from scipy.optimize import linear_sum_assignment

from oversmoothing.theory.claims.lemmas import symbolic_attention, symbolic_matrix
from oversmoothing.theory.layer.attention import (
    class_families,
    closed_classes,
    complement_basis,
    perron_deviation,
    quotient,
    rational_quotient,
    stationary_distribution,
)
from oversmoothing.theory.numbers.exact import exact_stationary, to_flint, to_float
from oversmoothing.theory.proofs import strategies as own
from oversmoothing.theory.spectra.algebraic import factors
from oversmoothing.theory.spectra.discs import Discs, enclose
from oversmoothing.theory.spectra.layer_discs import (
    attention_discs,
    attention_spectrum,
    eigenvalues,
    head_spectrum,
    multipliers,
    value_projection_spectrum,
)
from oversmoothing.theory.support.errors import InputError
from tests.support.float_cases import floating_attention

EPS = np.finfo(float).eps
# The smallest number of binary64.
TINY = 5e-324


def matched_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Largest distance in the best matching of two multisets of eigenvalues."""
    cost = np.abs(first[:, None] - second[None, :])
    return float(cost[linear_sum_assignment(cost)].max(initial=0.0))


def layer_matrix(A: sp.Matrix, H: sp.Matrix) -> sp.Matrix:
    """M = I + H (x) A, [n d, n d] (T1)."""
    return sp.eye(A.rows * H.rows) + sp.kronecker_product(H, A)


def vec_residual(A: sp.Matrix, H: sp.Matrix, X: sp.Matrix) -> sp.Matrix:
    """vec(X + A X H^T) - (I + H (x) A) vec(X), vec stacking columns."""
    left, right = ((M.T).reshape(X.rows * X.cols, 1) for M in (X + A * X * H.T, X))
    return (left - layer_matrix(A, H) * right).applyfunc(sp.expand)


def characteristic_residual(A: sp.Matrix, H: sp.Matrix) -> sp.Expr:
    """charpoly of I + H (x) A minus the product over all pairs of x - (1 + h a) (T1a).

    The product is a resultant of the two characteristic polynomials, so no eigenvalue is ever
    written down and no diagonalisability is assumed.
    """
    x, t, s = sp.symbols("x t s")
    left = layer_matrix(A, H).charpoly(x).as_expr()
    # prod over i of det((x - 1) I - a_i H), as the resultant of charpoly(A) in s with that form.
    form = sp.expand(s**H.rows * H.charpoly(t).as_expr().subs(t, (x - 1) / s))
    return sp.expand(left - sp.resultant(A.charpoly(s).as_expr(), form, s))


@given(own.exact_cases())
def test_vec_of_one_layer_is_identity_plus_H_kronecker_A(case):
    A, H, X = (sp.Matrix(m) for m in case)
    assert vec_residual(A, H, X).is_zero_matrix


def test_vec_identity_holds_for_symbols():
    A, H = symbolic_attention(3), symbolic_matrix(2, 2, "h")
    assert vec_residual(A, H, symbolic_matrix(3, 2, "x")).is_zero_matrix


def test_T1a_characteristic_polynomial_is_the_product_over_pairs_for_symbols():
    A, H = symbolic_attention(2), symbolic_matrix(2, 2, "h")
    assert characteristic_residual(A, H) == 0


@given(own.exact_cases(max_n=3, max_d=2))
@settings(max_examples=25)
def test_T1a_characteristic_polynomial_is_the_product_over_pairs(case):
    A, H, _ = case
    assert characteristic_residual(sp.Matrix(A), sp.Matrix(H)) == 0


@given(floating_attention(1, 6), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_T1a_spectrum_of_the_dense_operator_is_all_pairs(A, d, seed):
    H = np.random.default_rng(seed).standard_normal((d, d))
    a = np.append(attention_spectrum(A).values, 1.0)
    pairs = multipliers(a, value_projection_spectrum(H).values).ravel()
    dense, vectors = np.linalg.eig(np.eye(len(A) * d) + np.kron(H, A))
    # Bauer-Fike: the eigenvalues move by at most cond(V) ||E||, and so do those of the factors.
    condition = np.linalg.cond(vectors)
    assume(condition < 1e8)
    tolerance = 64 * len(pairs) * EPS * condition * (1 + np.linalg.norm(H))
    assert matched_distance(dense, pairs) <= tolerance


@given(own.exact_cases())
def test_T1b_consensus_is_invariant_with_restriction_I_plus_H(case):
    A, H, X = case
    row = X[0]
    flat = sp.Matrix([row] * len(A))
    moved = flat + sp.Matrix(A) * flat * sp.Matrix(H).T
    expected = sp.Matrix([row]) + sp.Matrix([row]) * sp.Matrix(H).T
    assert all(moved.row(i) == expected for i in range(len(A)))


@given(own.exact_cases())
def test_T1c_differences_are_autonomous(case):
    A, H, X = (sp.Matrix(m) for m in case)
    n, B = A.rows, sp.Matrix(rational_quotient(A.tolist()))
    D = sp.Matrix(n - 1, n, lambda i, j: int(i == j) - int(j == n - 1))
    assert n == 1 or D * (X + A * X * H.T) == D * X + B * D * X * H.T


@given(own.attention(1, 5, zeros=True))
def test_T1c_rational_quotient_has_the_spectrum_of_A_without_one_copy_of_1(A):
    whole = to_flint(A).charpoly()
    rest = to_flint(rational_quotient(A)).charpoly() if len(A) > 1 else whole * 0 + 1
    x_minus_1 = type(whole)([-1, 1])
    assert whole == rest * x_minus_1


@given(floating_attention(2, 12))
def test_T1c_both_forms_of_the_quotient_are_similar(A):
    rational = A[:-1, :-1] - A[-1:, :-1]
    rounding = np.full_like(rational, 4 * len(A) * EPS)
    first, second = enclose(quotient(A), rounding), enclose(rational, rounding)
    assume(isinstance(first, Discs) and isinstance(second, Discs))
    tolerance = 8 * (first.radii.max() + second.radii.max())
    assume(tolerance < 1e-6)
    assert matched_distance(first.centres, second.centres) <= tolerance


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


@pytest.mark.parametrize(
    "A, pi",
    [
        ([[TINY, TINY, 1e-192, 1.0]] * 4, [TINY, TINY, 1e-192, 1.0]),
        ([[1.0, TINY], [TINY, 1.0]], [0.5, 0.5]),
        ([[1.0, TINY, 0.0], [0.0, 1.0, 2 * TINY], [0.5, 0.0, 0.5]], [2 / 3, 1 / 3, 4 / 3 * TINY]),
    ],
    ids=["one token holds all", "two that hardly mix", "a ring"],
)
def test_T1d_stationary_distribution_beyond_the_range_of_binary64(A, pi):
    assert np.allclose(stationary_distribution(np.array(A)), pi, rtol=1e-12, atol=TINY)


def test_T1d_what_binary64_cannot_hold_of_a_large_A_is_refused():
    A = np.diag([0.5] * 39 + [1.0]) + np.diag([0.5] * 39, 1) + np.diag([TINY] * 39, -1)
    with pytest.raises(InputError, match="beyond binary64"):
        stationary_distribution(A)


def test_T1d_stationary_distribution_of_a_nearly_reducible_A_keeps_relative_accuracy():
    e, f = Fraction(1, 10**12), Fraction(1, 10**9)
    A = [[1 - e, e], [f, 1 - f]]
    pi = stationary_distribution(to_float(A))
    assert pi[0] / pi[1] == pytest.approx(1000, rel=1e-3)


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


@given(own.exact_cases(max_n=3, max_d=2))
@settings(max_examples=40)
def test_T1d_pi_mean_is_autonomous(case):
    pi = sp.Matrix([exact_stationary(case[0], [range(len(case[0]))])])
    A, H, X = (sp.Matrix(m) for m in case)
    assert pi * A == pi
    assert pi * (X + A * X * H.T) == pi * X + pi * X * H.T


@given(floating_attention(1, 8), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_T1d_recoupling_inverts_decoupling_and_commutes_with_the_layer(A, d, seed):
    rng = np.random.default_rng(seed)
    H, X = rng.standard_normal((d, d)), rng.standard_normal((len(A), d))
    Q, pi = complement_basis(len(A)), stationary_distribution(A)

    def recouple(Y, c):
        hfc = Q @ Y
        return hfc + c + (1 / len(A) - pi) @ hfc

    Y, c = Q.T @ X, pi @ X
    size = 64 * len(A) * d * EPS * (1 + np.linalg.norm(H)) * np.linalg.norm(X)
    assert np.abs(recouple(Y, c) - X).max() <= size
    moved = recouple(Y + quotient(A) @ Y @ H.T, c + c @ H.T)
    assert np.abs(moved - (X + A @ X @ H.T)).max() <= size


@given(own.exact_cases())
def test_T1e_two_sided_identity_between_t_and_the_ratio(case):
    A, _, X = case
    n = len(A)
    pi = exact_stationary(A, [list(range(n))])
    state = np.array([[float(x) for x in row] for row in X])
    c = np.array([float(p) for p in pi]) @ state
    hfc = np.linalg.norm(state - state.mean(axis=0))
    lfc = np.sqrt(n) * np.linalg.norm(state.mean(axis=0))
    assume(np.linalg.norm(c) > 1e-9 and hfc > 1e-9 and lfc > 1e-9)
    t = hfc / (np.sqrt(n) * np.linalg.norm(c))
    k = np.sqrt(n) * perron_deviation(np.array([float(p) for p in pi]))
    assert hfc / lfc >= (1 - 1e-9) / (k + 1 / t)
    if 1 / t > k * (1 + 1e-9):
        assert hfc / lfc <= (1 + 1e-9) / (1 / t - k)


@given(own.attention(2, 5), st.data())
def test_T1f_states_free_of_consensus_have_a_floor(A, data):
    """pi^T X = 0 implies ||LFC||^2 <= n delta^2 ||HFC||^2, in fractions: no rounding."""
    n = len(A)
    X = data.draw(own.states(n, 2))
    pi = exact_stationary(A, [list(range(n))])
    c = [sum((p * row[j] for p, row in zip(pi, X, strict=True)), Fraction(0)) for j in range(2)]
    X = [[x - y for x, y in zip(row, c, strict=True)] for row in X]
    mean = [sum(column, Fraction(0)) / n for column in zip(*X, strict=True)]
    hfc = sum((x - m) ** 2 for row in X for x, m in zip(row, mean, strict=True))
    lfc = n * sum(m * m for m in mean)
    delta_squared = sum((p - Fraction(1, n)) ** 2 for p in pi)
    assert lfc <= n * delta_squared * hfc
    assert delta_squared < 1 - Fraction(1, n)


@given(st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_T1g_symmetric_positive_semidefinite_logits_give_a_spectrum_in_0_1(n, seed):
    X = np.random.default_rng(seed).standard_normal((n, 3))
    K = np.exp(X @ X.T)
    found = attention_discs(K / K.sum(axis=1, keepdims=True))
    if isinstance(found, Discs):
        assert (np.abs(found.centres.imag) <= found.radii).all()
        assert (found.centres.real >= -found.radii).all()


@given(st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_T1h_causal_attention_shows_its_spectrum_on_the_diagonal(n, seed):
    weights = np.tril(np.exp(np.random.default_rng(seed).standard_normal((n, n))))
    A = weights / weights.sum(axis=1, keepdims=True)
    values = attention_spectrum(A).values
    assert np.allclose(np.sort(values.real), np.sort(np.diag(A))[: n - 1], rtol=8 * n * EPS)
    assert np.allclose(stationary_distribution(A), np.eye(n)[0])


@given(st.integers(2, 6), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_a_head_of_rank_r_has_d_minus_r_exact_zeros_and_the_spectrum_of_its_core(d, r, seed):
    rng = np.random.default_rng(seed)
    r = min(r, d)
    W_V, W_proj = rng.standard_normal((d, r)), rng.standard_normal((r, d))
    structured, dense = head_spectrum(W_V, W_proj), eigenvalues((W_V @ W_proj).T)
    assert np.count_nonzero(structured.exact & (structured.values == 0)) >= d - r
    tolerance = 1e-7 * (1 + np.linalg.norm(W_V @ W_proj))
    assert matched_distance(structured.values, dense.values) <= tolerance


@given(st.integers(1, 4), st.integers(1, 3))
def test_the_eigenvalue_1_occurs_once_for_each_closed_class(blocks, size):
    A = np.kron(np.eye(blocks), np.full((size, size), 1 / size))
    assert len(closed_classes(A)) == blocks
    spectrum = attention_spectrum(A)
    assert np.count_nonzero(spectrum.exact & (spectrum.values == 1)) == blocks - 1


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
