"""T4, T5a and T6b: what HFC/LFC, the cosines and the rank tend to."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings, strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from oversmoothing.theory.depth.closed_form import closed_form
from oversmoothing.theory.depth.ratios import ball_ratios
from oversmoothing.theory.numbers.exact import exact_stationary, to_float
from oversmoothing.theory.proofs import strategies as own
from oversmoothing.theory.verdict.by_fractions import exact_dominance
from oversmoothing.theory.verdict.verdict import verdict

FAR = 10**6


@given(own.exact_cases(max_n=3, max_d=2))
@settings(max_examples=150)
def test_T4_T5_T6b_the_trajectory_does_what_the_limits_say(case):
    """Measured at a depth of a million layers, in balls, for any X_0: generic or not, defective or
    not."""
    A, H, X0 = case
    depths = [FAR + k for k in range(6)]
    result = verdict(A=A, H=H, X0=X0, depth=depths)
    assume(len(A) > 1 and result.tends_to is not None)
    logs = [result.hfc_lfc[depth].log for depth in depths]
    assume(None not in logs)
    if result.tends_to == "zero":
        assert max(logs) < -8
    elif result.tends_to == "infinity":
        assert min(logs) > 8
    elif result.tends_to == "constant" and result.limit is not None:
        # A Jordan block is approached like 1/L.
        assert np.exp(logs) == pytest.approx(result.limit, rel=1e-3)
    else:
        assert max(logs) - min(logs) > 1e-6


@given(own.attention(2, 4), own.value_projections(3))
@settings(max_examples=100)
def test_T4a_strict_verdicts_fix_what_generic_states_tend_to(A, projection):
    result = verdict(A=A, H=projection[0])
    if result.verdict == "SMOOTHING":
        assert (result.tends_to, result.limit, result.limit_rank) == ("zero", 0.0, 1)
    if result.verdict == "NON_SMOOTHING":
        assert result.tends_to in ("constant", "infinity", "oscillates")


@given(own.attention(2, 4), own.value_projections(3))
@settings(max_examples=100)
def test_T1f_a_non_smoothing_limit_is_above_the_floor(A, projection):
    result = verdict(A=A, H=projection[0])
    n = len(A)
    delta_squared = sum((p - Fraction(1, n)) ** 2 for p in exact_stationary(A, [list(range(n))]))
    if result.verdict == "NON_SMOOTHING" and result.tends_to == "constant" and result.limit:
        floor = 1 / np.sqrt(n * float(delta_squared)) if delta_squared else np.inf
        assert result.limit >= floor * (1 - 1e-12)
        assert result.limit > 1 / np.sqrt(n - 1) * (1 - 1e-12)


@given(st.integers(2, 5), st.integers(1, 4), st.data())
@settings(max_examples=60)
def test_T1f_doubly_stochastic_attention_diverges_when_it_does_not_smooth(n, d, data):
    weight = data.draw(own.fractions(Fraction(1, 10), Fraction(9, 10), 10))
    A = [[weight * (i == j) + (1 - weight) / n for j in range(n)] for i in range(n)]
    values = data.draw(st.lists(own.fractions(-1, 0).filter(bool), min_size=d, max_size=d))
    H = data.draw(own.with_jordan_blocks([(value, 1) for value in values]))
    result = verdict(A=A, H=H)
    assert result.verdict == "NON_SMOOTHING"
    assert result.tends_to == "infinity" and result.limit == np.inf


def generic_rank(attention_values, h_values) -> int:
    """T4c: maximum matching of the bipartite graph of dominant pairs, with multiplicity."""
    moduli = np.abs(1 + np.outer(attention_values, h_values))
    dominant = moduli >= moduli.max() * (1 - 1e-9)
    matching = maximum_bipartite_matching(csr_matrix(dominant), perm_type="column")
    return int(np.count_nonzero(matching >= 0))


@given(
    st.integers(2, 5),
    st.lists(st.sampled_from([-3, -2, -1, 0, 1]), min_size=1, max_size=4),
    own.fractions(Fraction(1, 10), Fraction(9, 10), 10),
    st.data(),
)
@settings(max_examples=100)
def test_T4c_asymptotic_rank_is_the_maximum_matching_of_dominant_pairs(n, values, weight, data):
    """A = w I + (1 - w) 11^T/n has the eigenvalue w n - 1 times: repeated and tied on purpose."""
    A = [[weight * (i == j) + (1 - weight) / n for j in range(n)] for i in range(n)]
    h = [Fraction(value, 2) for value in values]
    H = data.draw(own.with_jordan_blocks([(value, 1) for value in h]))
    expected = generic_rank([float(weight)] * (n - 1) + [1.0], [float(x) for x in h])
    assert verdict(A=A, H=H).limit_rank == expected


@given(own.attention(2, 4), own.value_projections(3))
@settings(max_examples=60)
def test_T4c_rank_law_in_floats_and_in_fractions_agree(A, projection):
    H = projection[0]
    exact = verdict(A=A, H=H)
    numerical = verdict(A=to_float(A), H=to_float(H))
    for name in ("tends_to", "limit_rank"):
        if numerical.verdict == exact.verdict and getattr(numerical, name) is not None:
            assert getattr(numerical, name) == getattr(exact, name)
    if numerical.limit is not None and exact.limit is not None:
        assert numerical.limit == pytest.approx(exact.limit, rel=1e-6)


@given(own.attention(3, 5), st.integers(1, 3), st.integers(0, 2**32 - 1))
# Most drawn attention has complex eigenvalues or no gap: filtered out, by intent.
@settings(max_examples=50, suppress_health_check=[HealthCheck.filter_too_much])
def test_T4b_cosines_tend_to_the_signs_of_v_with_both_signs_present(A, d, seed):
    """NON_SMOOTHING, one real dominant pair: some pair of tokens points in opposite directions."""
    floating = to_float(A)
    rng = np.random.default_rng(seed)
    H = -np.diag(rng.uniform(0.2, 0.9, size=d))
    result = verdict(A=floating, H=H)
    a = result.attention
    moduli = np.sort(np.abs(1 + np.outer(a.values, np.diag(H))).ravel())[::-1]
    assume(
        (np.abs(a.values.imag) <= 1e-12).all() and (len(moduli) < 2 or moduli[1] < 0.98 * moduli[0])
    )
    values, vectors = np.linalg.eig(floating)
    v = np.real(vectors[:, np.argmin(values.real)])
    assume(np.abs(v).min() > 1e-3)
    # A nearly defective A has no closed form; it is measured elsewhere, in balls.
    assume(np.linalg.cond(vectors) < 1e6)
    state = closed_form(A=floating, H=H, X0=rng.standard_normal((len(A), d)), depths=[3000])[0]
    X = state.hfc + state.mean * 2.0 ** (state.log2_mean_scale - state.log2_hfc_scale)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert np.allclose(unit @ unit.T, np.sign(np.outer(v, v)), atol=1e-6)
    assert np.sign(v).min() == -1 and np.sign(v).max() == 1


@given(own.exact_cases(max_n=3, max_d=2))
# The first and the last token come together here, while both leave the second.
@example(
    (
        [
            [Fraction(2, 7), Fraction(1, 14), Fraction(9, 14)],
            [Fraction(1, 3)] * 3,
            [Fraction(3, 7), Fraction(1, 14), Fraction(1, 2)],
        ],
        [[Fraction(5, 4)]],
        [],
    )
)
@settings(max_examples=60)
def test_T4f_differences_vanish_iff_the_quotient_radius_is_below_1(case):
    """Input convergence is about rho_Q alone, whatever consensus does."""
    A, H, _ = case
    assume(len(A) > 1)
    n, d = len(A), len(H)
    rho = float(exact_dominance(A, H).radius(False).mid())
    assume(abs(rho - 1) > 1e-2)
    generic = [[Fraction(17 * i * i + 5 * j + 3 * i * j + 1) for j in range(d)] for i in range(n)]
    from oversmoothing.theory.depth.ratios import exact_state

    states = exact_state(A, H, generic, [0, 60])
    # Over all pairs of tokens: of one pair the leading mode may be absent.
    spread = [max(max(x) - min(x) for x in zip(*s, strict=True)) for s in states.values()]
    assume(spread[0] != 0 and spread[1] != 0)
    growth = (float(abs(spread[1])) / float(spread[0])) ** (1 / 60)
    # A Jordan block or a small coefficient shifts the finite-depth rate; not its side of 1 by far.
    if growth > 1.15:
        assert rho > 1
    if growth < 0.85:
        assert rho < 1


@pytest.mark.parametrize(
    ("H", "tends_to", "order"),
    [([[0, 1], [0, 0]], "zero", -1), ([["-4/3", 1], [0, "-4/3"]], "constant", 0)],
)
def test_T6b_jordan_blocks_decide_a_tie(H, tends_to, order):
    A = [["1/2", "1/2"], ["1/2", "1/2"]] if tends_to == "zero" else [["3/4", "1/4"], ["1/4", "3/4"]]
    result = verdict(A=A, H=H)
    assert (result.verdict, result.tends_to) == ("TIE", tends_to)
    X0 = [[Fraction(1), Fraction(2)], [Fraction(3), Fraction(5)]]
    pi = [Fraction(1, 2)] * 2
    parsed = [[Fraction(x) for x in row] for row in A], [[Fraction(x) for x in row] for row in H]
    near, far = ball_ratios(*parsed, X0, pi, [10**4, 10**6]).values()
    slope = (far.log - near.log) / np.log(100)
    assert slope == pytest.approx(order, abs=1e-3)


def test_T6b_a_defective_doubly_stochastic_A_at_the_tie_grows_linearly():
    """A = J + N with a Jordan block of size 2 at a = 1/4; h = -2/(1 + 1/4) ties."""
    quarter = Fraction(1, 4)
    # Circulant part with eigenvalue 1/4 twice, plus a nilpotent that respects rows and columns.
    base = [[quarter * (i == j) + quarter for j in range(3)] for i in range(3)]
    u, w = [1, -1, 0], [1, 1, -2]
    A = [[base[i][j] + Fraction(u[i] * w[j], 24) for j in range(3)] for i in range(3)]
    assert all(sum(row) == 1 for row in A) and all(sum(c) == 1 for c in zip(*A, strict=True))
    result = verdict(A=A, H=[[Fraction(-8, 5)]])
    assert (result.verdict, result.tends_to) == ("TIE", "infinity")
    assert "size 1 (consensus) and 2 (quotient)" in result.reason


def test_ratios_in_balls_come_in_the_order_of_depth():
    """Depths that need more bits are found later; a mean that is exactly 0 at depth 0 is inf."""
    A = [
        [Fraction(1, 3)] * 3,
        [Fraction(1, 3)] * 3,
        [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)],
    ]
    pi = exact_stationary(A, [[0, 1, 2]])
    X0 = [[Fraction(0)], [Fraction(1)], [Fraction(-1)]]
    found = ball_ratios(A, [[Fraction(1)]], X0, pi, [60, 0, 5])
    assert list(found) == [0, 5, 60]
    assert found[0].value == np.inf and found[5].value == pytest.approx(0.5301596485531742)


@given(own.attention(2, 4), own.value_projections(3))
@settings(max_examples=60)
def test_T4c_exact_matching_agrees_with_the_rank_of_drawn_trajectories(A, projection):
    """The generic rank is decided from the dominant pairs; drawn states must reach it."""
    from oversmoothing.theory.verdict.by_fractions import generic_rank
    from oversmoothing.theory.verdict.start import start_content

    found = exact_dominance(A, projection[0])
    rank = generic_rank(found)
    assume(rank is not None)
    n, d = len(A), len(projection[0])
    start = [
        # No power of i alone: tokens in arithmetic progression have the rank 1 beside consensus.
        [
            Fraction((7919 * i**3 + 104729 * j + 31 * i * i * j) % 1009 - 500)
            for j in range(1, d + 1)
        ]
        for i in range(1, n + 1)
    ]
    content = start_content(A, projection[0], start)
    assert content is not None
    drawn = content.limits.limit_rank
    assert drawn is not None and drawn <= rank
