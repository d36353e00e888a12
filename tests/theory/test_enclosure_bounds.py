"""T10: the a-priori rounding bounds are those that are proved, recomputed in fractions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given, strategies as st

from oversmoothing.theory.layer.cell import EXP_ERROR, softmax_balls, softmax_within
from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers.rounding import (
    TINY,
    UNIT,
    gamma,
    inflated,
    of_others,
    upper_product,
    upper_sum,
)
from oversmoothing.theory.spectra import layer_discs
from oversmoothing.theory.spectra.blocks import _discs as ball_discs, _refined
from oversmoothing.theory.spectra.discs import Discs, components, enclose
from oversmoothing.theory.spectra.layer_discs import Interval
from oversmoothing.theory.verdict import stages, stages as verdicts
from oversmoothing.theory.verdict.stages import CertifiedDominance
from oversmoothing.theory.verdict.verdict import verdict

U = Fraction(1, 2**53)
SMALL = Fraction(1, 2**1074)
# What the evaluation of a bound may itself be off by: a handful of roundings.
EVALUATION = 4 * U


def exact_gamma(k: int) -> Fraction:
    return k * U / (1 - k * U)


def exactly_inflated(x: Fraction, operations: int) -> Fraction:
    return x * (1 + 2 * exact_gamma(operations + 2)) + operations * SMALL


def agree(found: float, formula: Fraction, within: Fraction = EVALUATION) -> bool:
    return abs(Fraction(found) - formula) <= within * formula


# --- the elementary bounds ---


@given(st.integers(1, 2**40))
def test_gamma_is_its_quotient_rounded_up(k):
    assert exact_gamma(k) <= Fraction(gamma(k)) <= exact_gamma(k) * (1 + 16 * U)


def test_gamma_means_nothing_from_half_on():
    assert gamma(2**52 - 1) < 1.01
    with pytest.raises(ValueError, match="no useful rounding bound"):
        gamma(2**52)


@given(st.integers(0, 60), st.floats(2.0**-500, 2.0**500))
def test_a_bound_is_inflated_by_twice_the_roundings_that_made_it(operations, x):
    found = Fraction(float(inflated(np.array(x), operations)))
    assert agree(found, exactly_inflated(Fraction(x), operations), 2 * U)
    assert float(inflated(np.array(0.0), operations)) == operations * TINY


@pytest.mark.parametrize(("m", "k", "r"), [(1, 1, 1), (2, 1, 7), (9, 2, 5), (2, 9, 3)])
def test_a_product_of_stacks_is_inflated_by_its_inner_length(m, k, r):
    P, Q = np.zeros((m, k, r)), np.ones((m, r, 2))
    assert (upper_product(P, Q) == r * TINY).all()
    assert (upper_sum(P) == r * TINY).all()
    P[..., 0] = 1.0
    assert (upper_product(P, Q) == float(inflated(np.array(1.0), r))).all()


# --- the bounds of an enclosure ---


def test_a_small_residual_leaves_small_radii():
    """max(u) is over what there is: the radii scale with the matrix."""
    M = np.diag([1.0, 2.0, 4.0]) + np.triu(np.ones((3, 3)), 1) / 8 + np.tri(3, k=-1) / 16
    large, small = enclose(M), enclose(M * 2.0**-600)
    assert isinstance(large, Discs) and isinstance(small, Discs)
    assert (small.radii <= large.radii * 2.0**-600 * (1 + 1e-12)).all()
    assert (small.radii >= large.radii * 2.0**-600 * (1 - 1e-12)).all()


@pytest.mark.parametrize("scale", [1.0, -1.0, 2.0**300])
def test_discs_that_touch_within_rounding_are_joined(scale):
    """|1 - (1 + t)| <= 8 u + (r + s)(1 + 8 u)."""
    for gap, radius, joined in (
        (2 * UNIT, 0.0, True),
        (8 * UNIT, 0.0, True),
        (10 * UNIT, 0.0, False),
        (0.5, 0.25, True),
        (0.5 + 32 * UNIT, 0.25, False),
    ):
        centres = scale * np.array([1.0, 1.0 + gap])
        label = components(centres + 0j, np.full(2, radius * abs(scale)))
        assert (label[0] == label[1]) == joined


# --- moduli of modes, heads, attention ---


@pytest.mark.parametrize(("d", "r"), [(1, 1), (2, 2), (3, 3), (2, 5), (3, 2), (6, 1)])
def test_T10_the_discs_of_a_head_hold_every_product_within_its_rounding(monkeypatch, d, r):
    """gamma_k |P| |Q| for inner products of length k: r for a square head, d for a core."""
    asked = []

    def spy(M, error):
        asked.append((M, error))
        return enclose(M, error)

    monkeypatch.setattr(layer_discs, "enclose", spy)
    rng = np.random.default_rng(d + 10 * r)
    W_V, W_proj = rng.standard_normal((d, r)), rng.standard_normal((r, d))
    assert len(layer_discs.head_discs(W_V, W_proj)) == d
    ((M, error),) = asked
    P, Q, length = (W_V, W_proj, r) if r >= d else (W_proj, W_V, d)
    assert np.allclose(M, P @ Q)
    for i, j in np.ndindex(M.shape):
        size = sum(Fraction(abs(x)) * Fraction(abs(y)) for x, y in zip(P[i], Q[:, j], strict=True))
        proved = exact_gamma(length) * size
        assert proved <= Fraction(error[i, j])
        assert Fraction(error[i, j]) <= exact_gamma(length + 2) * size * (1 + 100 * U)
    assert (abs(P @ Q - M) <= error).all()


@pytest.mark.parametrize("n", [2, 3, 8])
def test_T1h_the_diagonal_of_a_causal_attention_is_off_by_its_sum_and_division(n):
    A = np.tril(np.ones((n, n)))
    found = layer_discs.attention_discs(A)
    for i in range(1, n):
        entry = 1 / (i + 1)
        # n roundings and two to spare; the products that make the bound are six more at most.
        assert found.radii[i - 1] == float(inflated(np.array(gamma(n + 2) * entry), 6))


def test_T1h_a_weight_that_underflows_is_not_taken_for_a_zero():
    """The diagonal of a causal A is known to n + 2 roundings, a quotient to eleven at least."""
    causal, near = (
        layer_discs.attention_discs(np.array([[2.0, weight], [1.0, 1.0]]))
        for weight in (0.0, 5e-324)
    )
    assert causal.radii[0] < gamma(5) / 2 and near.radii[0] > gamma(11) / 2


# --- softmax ---


@pytest.mark.parametrize("far", [0.0, 1.0, 300.0])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_T10_the_error_of_a_softmax_is_its_formula(n, far):
    logits = np.zeros((n, n))
    logits[:, -1] = -far
    A, error = softmax_within(logits)
    others = of_others(inflated(A, 4))
    e = Fraction(EXP_ERROR) + Fraction(1.01) * U * Fraction(min(2 * far, 800.0))
    e, rounding = exactly_inflated(e * (1 + 4 * e), 12), exact_gamma(n + 4)
    for i, j in np.ndindex(n, n):
        formula = (2 * e * Fraction(others[i, j]) + rounding) * (1 + 2 * rounding)
        assert agree(error[i, j], exactly_inflated(formula * Fraction(A[i, j]), 12), 20 * U)


def test_T10_a_stack_of_attentions_is_enclosed_as_each_of_it_is():
    logits = np.random.default_rng(3).standard_normal((2, 7, 3, 3))
    logits[..., 0, 2] = -np.inf
    A, error = softmax_within(logits)
    for i, j in np.ndindex(2, 7):
        one, its = softmax_within(logits[i, j])
        assert (A[i, j] == one).all() and (error[i, j] == its).all()
        assert one[0, 2] == its[0, 2] == 0


def test_a_softmax_in_balls_does_not_change_when_a_row_is_shifted():
    base = softmax_balls([[0, 1], [2, None]], 128)
    for shift in (10**4, -(10**4), 10**300):
        moved = softmax_balls([[shift, shift + 1], [shift, None]], 128)
        for x, y in zip(base.entries(), moved.entries(), strict=True):
            assert abs(x - y) < 1e-30


def test_a_softmax_in_balls_of_logits_far_apart_is_the_hard_maximum():
    for far in (10**4, 10**300):
        found = softmax_balls([[0, far], [0, -far]], 128)
        for x, expected in zip(found.entries(), (0, 1, 1, 0), strict=True):
            assert abs(x - expected) < 1e-30


# --- balls ---


def test_T10_a_disc_of_a_similarity_is_as_wide_as_its_row_and_as_its_column():
    """left_vector bounds by columns what Gershgorin's theorem encloses by rows."""
    identity = flint.acb_mat(2, 2, [1, 0, 0, 1])
    found = ball_discs(identity, flint.acb_mat(2, 2, [1, 2, 0, 9]), 128)
    for box in found.boxes:
        assert 2 <= box.real.rad() < 2 + 1e-8 and 2 <= box.imag.rad() < 2 + 1e-8
    assert found.alone == [True, True]


@pytest.mark.parametrize(("gap", "moved"), [(4, 0.0), (5, 0.2)])
def test_T10_a_basis_is_refined_where_the_step_is_below_a_quarter(gap, moved):
    identity = flint.acb_mat(2, 2, [1, 0, 0, 1])
    found = ball_discs(identity, flint.acb_mat(2, 2, [0, 1, 0, gap]), 128)
    assert complex(_refined(found)[0, 1]) == moved


# --- stages ---


@pytest.mark.parametrize(("n", "stage"), [(24, "exact"), (25, "balls")])
def test_T10_a_tie_of_binary64_numbers_is_decided_exactly_up_to_24_tokens(n, stage):
    """Two tokens that look at each other: a = -1, and |1 + i| = |1 - i|."""
    A = np.zeros((n, n))
    A[:, 0] = A[0, 1] = 1.0
    A[0, 0] = 0.0
    found, exact = stages.decide(Layer.of(A.tolist(), [[0.0, -1.0], [1.0, 0.0]]))
    assert found.method.startswith(stage) and (exact is not None) == (stage == "exact")
    assert found.verdict in ("TIE", "UNDECIDED")
    assert found.verdict == "TIE" or stage == "balls"


def test_T10_a_certified_verdict_states_the_middles_of_both_enclosures(monkeypatch):
    found = CertifiedDominance("SMOOTHING", Interval(4.0, 5.0), Interval(1.0, 3.0), "so", "thus")
    monkeypatch.setattr(verdicts, "decide", lambda case: (found, None))
    case = Layer.of([[0.75, 0.25], [0.25, 0.75]], [[0.5]])
    stated = verdicts.certify_case(case, replace(verdict(A=case.A, H=case.H), reason="."))
    assert (stated.rho_consensus, stated.rho_quotient) == (4.5, 2.0)
    assert stated.status == "certified" and stated.reason == "certified: so (thus). ."
