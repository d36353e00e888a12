"""T2, T3 in binary64: what the error of each eigenvalue means for the radii and the verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oversmoothing.theory.ask import verdict
from oversmoothing.theory.layer.golden import golden_case
from oversmoothing.theory.spectra.radii import consensus_interval, quotient_interval
from oversmoothing.theory.spectra.spectrum import (
    EPS,
    Spectrum,
    attention_spectrum,
    eigenvalues,
    head_spectrum,
)
from oversmoothing.theory.verdict.expansion import Expansion, _leading, expand, expansion_limits
from oversmoothing.theory.verdict.float_comparison import compare
from oversmoothing.theory.verdict.limits import Limits
from oversmoothing.theory.verdict.present_modes import present_radii


def spectrum(values, errors=0.0, exact=False) -> Spectrum:
    z = np.array(values, dtype=complex)
    return Spectrum(z, np.broadcast_to(errors, z.shape).astype(float), np.full(len(z), exact))


def joined(*parts: Spectrum) -> Spectrum:
    return Spectrum(
        *(np.concatenate([getattr(p, n) for p in parts]) for n in ("values", "errors", "exact"))
    )


# --- the two radii ---


def test_each_bound_of_rho_C_comes_from_the_eigenvalue_that_gives_most():
    found = consensus_interval(spectrum([1.0, -2.999], [0.5, 0.0]))
    assert found.high == pytest.approx(2.5, abs=1e-13)
    assert found.low == pytest.approx(1.999, abs=1e-13)
    assert found.index == (-1, 0) and found.middle == pytest.approx((2.5 + 1.999) / 2)


def test_each_bound_of_rho_Q_comes_from_the_pair_that_gives_most():
    found = quotient_interval(spectrum([0.5, -0.25]), spectrum([2.0, 1.99], [0.5, 0.0]))
    assert found.high == pytest.approx(2.25, abs=1e-13)
    assert found.low == pytest.approx(1 + 0.5 * 1.99, abs=1e-13)
    assert found.index == (0, 0)


def test_the_error_of_a_product_has_both_factors_and_their_product():
    found = quotient_interval(spectrum([-0.5], 0.01), spectrum([-2.0], 0.1))
    assert found.high - 2 == pytest.approx(2 * 0.01 + 0.5 * 0.1 + 0.01 * 0.1, rel=1e-12)
    assert 2 - found.low == pytest.approx(2 * 0.01 + 0.5 * 0.1 + 0.01 * 0.1, rel=1e-12)


@pytest.mark.parametrize("h", [-3.0, 1e-3, 7.5, 100.0])
@pytest.mark.parametrize("a", [-0.9, 0.1, 0.9])
def test_rounding_of_1_plus_h_a_widens_the_bounds_by_a_few_units(h, a):
    """1 + h a is rounded twice: by h a and by the sum; the interval has to cover that."""
    consensus = consensus_interval(spectrum([h]))
    quotient = quotient_interval(spectrum([a]), spectrum([h]))
    for found, size, value in (
        (consensus, 1 + abs(h), abs(1 + h)),
        (quotient, 1 + abs(h * a), abs(1 + h * a)),
    ):
        assert found.low <= value - EPS * size and found.high >= value + EPS * size
        assert found.high - found.low <= 32 * EPS * size


def test_only_an_exact_zero_gives_exactly_one():
    one = consensus_interval(spectrum([0.0], exact=True))
    assert one.low == one.high == 1.0
    found = consensus_interval(spectrum([0.0], 1e-3))
    assert (found.low, found.high) == pytest.approx((1 - 1e-3, 1 + 1e-3), abs=1e-12)
    pairs = quotient_interval(spectrum([0.5], 1e-3), spectrum([0.0], exact=True))
    assert pairs.low == pairs.high == 1.0
    pairs = quotient_interval(spectrum([0.5], 1e-3), spectrum([0.0], 1e-2))
    assert pairs.high - 1 == pytest.approx(0.5e-2 + 1e-5, rel=1e-9)
    mixed = consensus_interval(joined(spectrum([0.0], exact=True), spectrum([-0.5], 1e-3)))
    assert mixed.low == mixed.high == 1.0


def test_an_exact_value_that_is_not_zero_is_rounded_like_any_other():
    found = consensus_interval(spectrum([0.3], exact=True))
    assert found.low < 1.3 < found.high


def test_one_token_has_the_empty_quotient():
    found = quotient_interval(spectrum([]), spectrum([0.5]))
    assert (found.low, found.high, found.index) == (0.0, 0.0, None)


# --- the verdict from them ---


@pytest.mark.parametrize(
    ("h", "error", "expected"),
    [
        (0.5, 1e-9, "SMOOTHING"),
        (-0.5, 1e-9, "NON_SMOOTHING"),
        (0.5, 0.2, "SMOOTHING"),
        (-0.5, 0.3, "NON_SMOOTHING"),
        (0.5, 0.6, "UNDECIDED"),
        (-0.5, 0.6, "UNDECIDED"),
        (-1.5, 0.3, "UNDECIDED"),
    ],
)
def test_disjoint_intervals_or_a_sign_that_decides_are_a_verdict(h, error, expected):
    """T2d: a real h in [-1, 0) never smooths and a real h > 0 always does, whatever a is."""
    assert compare(spectrum([0.5]), spectrum([h], error))[0] == expected


def test_exact_zeros_tie_when_nothing_exceeds_them():
    zero, half = spectrum([0.0], exact=True), spectrum([-0.5], 1e-12)
    assert compare(spectrum([0.5], 1e-12), joined(zero, half))[0] == "TIE"
    assert compare(spectrum([0.5], 1e-12), spectrum([0.0], 1e-12))[0] == "UNDECIDED"
    # a = -1/2 lifts the pair of h = -1/2 to 5/4.
    assert compare(spectrum([-0.5], 1e-12), joined(zero, half))[0] == "NON_SMOOTHING"


def test_where_1_repeats_the_verdict_is_never_smoothing():
    one = spectrum([1.0], exact=True)
    attention = joined(one, spectrum([0.5], 1e-12))
    assert compare(attention, spectrum([0.5], 1e-12))[0] == "TIE"
    assert compare(attention, spectrum([-0.5], 1e-12))[0] == "NON_SMOOTHING"
    assert compare(attention, spectrum([0.5], 0.5))[0] == "UNDECIDED"
    assert compare(attention, spectrum([0.0], exact=True))[0] == "TIE"
    assert compare(one, spectrum([-0.5]))[0] == "TIE"
    # An eigenvalue near 1 that is not known to be 1 is no further copy of it.
    assert compare(spectrum([1.0], 1e-9), spectrum([-1.5]))[0] == "UNDECIDED"
    assert compare(spectrum([0.5], exact=True), spectrum([0.5]))[0] == "SMOOTHING"


# --- equal moduli ---


def leading(moduli):
    found = _leading(np.array(moduli, dtype=float), 1.0)
    return None if found is None else found.tolist()


def test_equal_moduli_lead_together_and_different_ones_do_not():
    assert leading([1.0, 1 - 1e-14, 0.5, 0.0]) == [True, True, False, False]
    assert leading([1.0, 1 - 2e-7]) == [True, False]
    assert leading([0.25, 2.0, 1.0]) == [False, True, False]
    assert leading([2.0, 1.0, 1 - 1e-9]) == [True, False, False]


def test_moduli_closer_than_the_gap_but_not_equal_leave_the_winner_open():
    assert leading([1.0, 1 - 1e-9]) is None
    assert leading([1.0, 1 - 0.8e-7, 1 - 1.6e-7, 0.5]) is None
    assert leading([1e-3, 1e-3 * (1 - 1e-9)]) is None


# --- what X_0 contains ---


def expansion(attention, value, coefficients, n=None) -> Expansion:
    a, h = np.array(attention, dtype=complex), np.array(value, dtype=complex)
    V, U = np.eye(len(a), dtype=complex), np.eye(len(h), dtype=complex)
    c = np.array(coefficients, dtype=complex)
    doubtful = (np.abs(c) <= 64e-15 * np.abs(c).max()) & (c != 0)
    return Expansion(a, h, V, U, c, 1e-15, doubtful, balanced=False, classes=1)


def ends(found):
    return tuple((side.low, side.high) for side in (found.consensus, found.quotient))


def test_T4e_only_modes_that_X_0_contains_have_a_radius():
    modes = ([0.5, -0.5, 1.0], [2.0, -0.5])
    every = expansion(*modes, np.ones((3, 2)))
    assert ends(present_radii(every)) == ((3.0, 3.0), (2.0, 2.0))
    weak = [[0, 1], [0, 1], [0, 1]]
    assert ends(present_radii(expansion(*modes, weak))) == ((0.5, 0.5), (1.25, 1.25))
    none = expansion(*modes, [[0, 0], [0, 1], [0, 0]])
    assert ends(present_radii(none)) == ((-1.0, -1.0), (1.25, 1.25))
    alone = expansion(*modes, [[0, 0], [0, 0], [1, 0]])
    assert ends(present_radii(alone)) == ((3.0, 3.0), (-1.0, -1.0))


@pytest.mark.parametrize(("share", "low"), [(1e-12, 3.0), (1e-8, 3.0), (1e-14, 0.5)])
def test_T4e_a_share_within_its_error_may_be_there_and_may_be_not(share, low):
    found = expansion([0.5, -0.5, 1.0], [2.0, -0.5], [[0, 1], [0, 1], [share, 1]])
    assert ends(present_radii(found))[0] == (low, 3.0)


def test_T1f_the_eigenvectors_other_than_consensus_are_free_of_it():
    A = np.array([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.5, 0.2, 0.3]])
    H, X0 = np.array([[-0.5, 0.25], [0.125, 0.75]]), np.array([[1.0, 2.0], [3.0, 5.0], [7.0, 0.0]])
    found = expand(A, H, X0)
    assert found is not None
    assert found.attention[-1] == 1 and np.all(found.V[:, -1] == found.V[0, -1])
    assert np.linalg.norm(found.V[:, :-1], axis=0) == pytest.approx(1, rel=1e-14)
    assert np.array([26, 9, 5]) / 40 @ found.V[:, :-1] == pytest.approx(0, abs=1e-15)
    assert found.V @ found.coefficients @ found.U.T == pytest.approx(X0, abs=1e-13)
    assert sorted(found.attention.real) == pytest.approx([0.2, 0.5, 1.0], abs=1e-14)
    assert found.U @ np.diag(found.value) == pytest.approx(H @ found.U, abs=1e-14)
    condition = np.linalg.cond(found.V) * np.linalg.cond(found.U)
    assert found.error == pytest.approx(condition * 3 * EPS, rel=1e-9, abs=0)


def test_an_ill_conditioned_basis_is_not_trusted():
    A = np.array([[0.75, 0.25], [0.25, 0.75]])
    assert expand(A, np.array([[0.5, 1.0], [0.0, 0.5]]), np.ones((2, 2))) is None
    steep = np.array([[0.5, 1e9], [0.0, 0.25]])
    assert expand(A, steep, np.ones((2, 2))) is None
    assert expand(A, np.array([[0.5, 1e3], [0.0, 0.25]]), np.ones((2, 2))) is not None


def test_T14_the_families_of_1_are_where_tokens_end():
    A = np.array([[1.0, 0, 0], [0, 1.0, 0], [0.25, 0.25, 0.5]])
    X0 = np.array([[1.0], [2.0], [5.0]])
    found = expand(A, np.array([[0.5]]), X0)
    assert found is not None and found.classes == 2
    assert found.V @ found.coefficients @ found.U.T == pytest.approx(X0, abs=1e-14)
    assert sorted(found.coefficients[1:, 0].real) == pytest.approx([1.0, 2.0], abs=1e-15)
    assert found.attention.tolist() == [0.5, 1.0, 1.0]
    assert (found.V[:, 1] + found.V[:, 2]).tolist() == pytest.approx([1.0, 1.0, 1.0])


@pytest.mark.parametrize(("X0", "tie"), [([1, 2, 5], True), ([2, 2, 5], False)])
def test_T14_in_floats_classes_tie_where_their_means_differ(X0, tie):
    A = np.array([[1.0, 0, 0], [0, 1.0, 0], [0.3, 0.2, 0.5]])
    found = present_radii(expand(A, np.array([[0.7]]), np.array(X0, dtype=float)[:, None]))
    assert found.tie == tie and found.consensus.low == pytest.approx(1.7)
    assert found.quotient.low == pytest.approx(1.7 if tie else 1.35)


@pytest.mark.parametrize("name", ["GT1", "GT2", "GT4", "GT5", "GT10", "GT11"])
def test_T4_limits_from_eigenvectors_are_those_from_exact_projectors(name):
    case = golden_case(name)
    exact = verdict(A=case.A, H=case.H, X0=case.X0)
    A, H, X0 = (np.array([[float(x) for x in r] for r in m]) for m in (case.A, case.H, case.X0))
    for given in ({}, {"X0": X0}):
        found = verdict(A=A, H=H, **given)
        assert (found.tends_to, found.limit_rank) == (exact.tends_to, exact.limit_rank)
        assert found.limit == pytest.approx(exact.limit, rel=1e-12)
    assert found.verdict_x0 == exact.verdict_x0


def test_T4_an_unclear_boundary_below_the_winner_leaves_every_limit_open():
    close = expansion([0.5, 1.0], [-0.5, -0.5 * (1 + 1e-9)], np.ones((2, 2)))
    assert expansion_limits(close) == Limits(None, None, None)
    assert expansion_limits(expansion([-1.0, -1.0], [1.0], np.ones((2, 1)))) == Limits(
        None, None, None
    )


# --- error estimates of eigenvalues ---


def test_a_triangular_matrix_is_taken_at_its_word_unless_it_was_rounded():
    for M in (np.array([[1.0, 5.0], [0.0, 2.0]]), np.array([[1.0, 0.0], [5.0, 2.0]])):
        found = eigenvalues(M)
        assert found.values.tolist() == [1, 2] and found.exact.all() and not found.errors.any()
        rounded = eigenvalues(M, rounding=1e-6)
        assert not rounded.exact.any() and (rounded.errors >= 1e-6).all()
    assert len(eigenvalues(np.zeros((0, 0)))) == 0


def test_a_symmetric_matrix_has_perfectly_conditioned_eigenvalues():
    M = np.array([[1.0, 2.0, 0.0], [2.0, -1.0, 1.0], [0.0, 1.0, 3.0]])
    found = eigenvalues(M, rounding=1e-9)
    assert found.errors == pytest.approx(3 * EPS * np.linalg.norm(M) + 1e-9, rel=1e-12)
    assert np.sort(found.values.real) == pytest.approx(np.linalg.eigvalsh(M))
    assert not found.exact.any() and not found.values.imag.any()


@pytest.mark.parametrize(("b", "c"), [(100.0, 0.25), (1e6, 1e-6)])
def test_a_simple_eigenvalue_moves_by_the_backward_error_over_its_condition(b, c):
    M = np.array([[1.0, b], [c, -1.0]])
    found = eigenvalues(M)
    for value, error in zip(found.values, found.errors, strict=True):
        right = np.array([b, value - 1]) / np.linalg.norm([b, value - 1])
        left = np.array([c, value - 1]) / np.linalg.norm([c, value - 1])
        expected = 2 * EPS * np.linalg.norm(M) / abs(left @ right)
        assert error == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("exponent", [-1000, -600, 600, 1000])
def test_eigenvalues_scale_with_their_matrix_whatever_its_size(exponent):
    M = np.array([[1.0, 2.0], [3.0, -1.0]])
    plain, scaled = eigenvalues(M), eigenvalues(np.ldexp(M, exponent))
    assert scaled.values.tolist() == (plain.values * 2.0**exponent).tolist()
    assert scaled.errors == pytest.approx(plain.errors * 2.0**exponent, rel=1e-12)


@pytest.mark.parametrize("m", [2, 3, 4, 5])
@pytest.mark.parametrize("others", [(), (-3,), (0, 3)])
def test_a_defective_cluster_of_m_moves_by_the_m_th_root(m, others):
    """Integer conjugates of a Jordan block: the eigenvalue 2 is known, and what rounding makes of
    it (a ring of radius eps^(1/m)) has to stay within the error that is claimed."""
    rng, k = np.random.default_rng(m), m + len(others)
    J = np.diag([2] * m + list(others)) + np.diag([1] * (m - 1) + [0] * len(others), 1)
    for _ in range(20):
        lower = np.tril(rng.integers(-2, 3, (k, k)), -1) + np.eye(k, dtype=int)
        upper = np.triu(rng.integers(-2, 3, (k, k)), 1) + np.eye(k, dtype=int)
        S = lower @ upper
        M = (S @ J @ np.rint(np.linalg.inv(S))).astype(float)
        assert (M @ S == S @ J).all(), "the conjugation is exact"
        found = eigenvalues(M)
        near = [np.abs(value - [2, *others]).min() for value in found.values]
        assert (near <= found.errors).all()
        assert found.errors.max() <= 2 * np.linalg.norm(M) * (k * EPS) ** (1 / m) * 1.001


def test_a_far_eigenvalue_does_not_widen_a_cluster():
    M = np.array([[3.0, 1.0, 0.5], [-1.0, 1.0, 0.5], [0.0, 0.0, 50.0]])
    found = eigenvalues(M)
    far = int(np.argmax(found.values.real))
    assert found.errors[far] < 1e-12
    assert (np.abs(np.delete(found.values, far) - 2) <= np.delete(found.errors, far)).all()
    # Each is given by the law of its cluster of two, or more sharply by its own condition.
    assert np.delete(found.errors, far).max() <= 2 * np.linalg.norm(M) * (3 * EPS) ** 0.5 * 1.001


def test_T1h_causal_attention_rounds_on_its_diagonal_alone():
    A = np.array([[1.0, 0, 0, 0], [1.0, 0.0, 0, 0], [0.25, 0.25, 0.5, 0], [0.2, 0.2, 0.3, 0.3]])
    found = attention_spectrum(A)
    assert found.values.tolist() == [0.0, 0.3, 0.5]
    assert found.exact.tolist() == [True, False, False]
    assert found.errors == pytest.approx([0.0, 2 * 4 * EPS * 0.3, 2 * 4 * EPS * 0.5], rel=1e-12)
    alone = attention_spectrum(np.eye(2))
    assert alone.values.tolist() == [1] and alone.exact.all() and not alone.errors.any()
    upper = attention_spectrum(A[::-1, ::-1])
    assert upper.values.tolist() == [0.0, 0.3, 0.5]


def test_T1c_further_copies_of_1_are_exact_and_the_rest_is_kept():
    block = np.array([[0.75, 0.25], [0.5, 0.5]])
    A = np.kron(np.eye(3), block)
    found = attention_spectrum(A)
    assert found.exact.tolist() == [True, True, False, False, False]
    assert found.values[:2].tolist() == [1, 1] and not found.errors[:2].any()
    assert found.values[2:] == pytest.approx(0.25, abs=1e-7)
    assert (np.abs(found.values[2:] - 0.25) <= found.errors[2:]).all()


def test_the_rounding_of_A_is_in_the_error_even_where_B_is_tiny():
    uniform = np.full((4, 4), 0.25)
    uniform[0, :2] += (1e-9, -1e-9)
    found = attention_spectrum(uniform)
    assert (found.errors >= 4 * EPS).all() and (found.errors < 1e-3).all()


def test_real_means_real_as_far_as_the_errors_tell():
    assert spectrum([1 + 1e-9j], 1e-8).is_real and not spectrum([1 + 1e-7j], 1e-8).is_real
    assert not spectrum([1.0, 1e-7j], 1e-8).is_real


def test_T1a_a_head_has_its_zeros_first_and_then_its_core():
    W_V, W_proj = np.array([[1.0], [2.0], [0.0]]), np.array([[3.0, 0.5, 7.0]])
    found = head_spectrum(W_V, W_proj)
    assert found.values.tolist() == [0, 0, 4] and found.exact.tolist() == [True, True, True]
    square = head_spectrum(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.0, 1.0], [1.0, 1.0]]))
    expected = np.linalg.eigvals(np.array([[2.0, 3.0], [4.0, 7.0]]))
    assert np.sort(square.values.real) == pytest.approx(np.sort(expected)) and len(square) == 2
    assert not square.exact.any()


def test_T2e_T4d_a_limit_in_floats_weighs_the_modes_as_X_0_does():
    """h = 0: every mode keeps its size, and the limit is HFC/LFC of X_0 itself."""
    for first, second in ((1.0, 3.0), (5.0, 3.0), (-1.0, 3.0)):
        found = verdict(A=[[0.75, 0.25], [0.25, 0.75]], H=[[0.0]], X0=[[first], [second]])
        assert found.verdict == "TIE" and found.tends_to == "constant" and found.limit_rank == 1
        assert found.limit == pytest.approx(abs(first - second) / abs(first + second))


def test_T14_vectors_off_a_1_have_length_1_once_they_are_free_of_the_class_means():
    A = np.array([[0.5, 0.5, 0, 0], [0.25, 0.75, 0, 0], [0, 0, 1, 0], [0.1, 0.2, 0.3, 0.4]])
    found = expand(A, np.diag([0.5, -0.25]), np.array([[1.0, 2], [3, 5], [-2, 1], [4, 4]]))
    assert found is not None and found.classes == 2
    assert np.linalg.norm(found.V[:, :2], axis=0) == pytest.approx([1, 1], rel=1e-14)
    assert np.abs([[1 / 3, 2 / 3, 0, 0], [0, 0, 1, 0]] @ found.V[:, :2]).max() < 1e-15


def test_T14_class_means_differ_beyond_the_error_of_the_largest_coefficient():
    """Means of 1e-3 that are 1e-14 apart beside a coefficient of 1, known to 64e-15 of it."""
    one_class = expansion([0.5, 1, 1], [0.5], [[1.0], [1e-3], [1e-3 + 1e-14]])
    assert ends(present_radii(replace(one_class, classes=2)))[1] == (1.25, 1.5)
    apart = expansion([0.5, 1, 1], [0.5], [[1.0], [1e-3], [1e-3 + 1e-12]])
    assert ends(present_radii(replace(apart, classes=2)))[1] == (1.5, 1.5)


@pytest.mark.parametrize("leak", [1e-8, 1e-12, 1e-16])
def test_T14_vectors_have_length_1_where_a_is_within_rounding_of_1_too(leak):
    """There LAPACK's vector holds some of (1, 1), which is taken out of it."""
    A = np.array([[1 - leak, leak], [2 * leak, 1 - 2 * leak]])
    found = expand(A, np.array([[0.5]]), np.array([[1.0], [2.0]]))
    assert found is not None and found.classes == 1
    assert np.linalg.norm(found.V[:, 0]) == pytest.approx(1, rel=1e-12)
