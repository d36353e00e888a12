"""T4, T5a and T6b: what HFC/LFC, the cosines and the rank tend to."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from oversmoothing.theory.numbers.exact import exact_stationary, to_float
from oversmoothing.theory.proofs import strategies as own
from oversmoothing.theory.verdict.verdict import verdict

FAR = 10**9


@given(own.exact_cases(max_n=3, max_d=2))
@settings(max_examples=150)
def test_T4_T5_T6b_the_trajectory_does_what_the_limits_say(case):
    """Measured at a depth of a billion layers, in balls, for any X_0: generic or not, defective or
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
def test_T1f_T4c_the_rank_is_that_of_a_matching_of_dominant_pairs(n, values, weight, data):
    """A = w I + (1 - w) 11^T/n has the eigenvalue w n - 1 times: repeated and tied on purpose. It
    is doubly stochastic: HFC/LFC diverges where it does not smooth."""
    A = [[weight * (i == j) + (1 - weight) / n for j in range(n)] for i in range(n)]
    h = [Fraction(value, 2) for value in values]
    H = data.draw(own.with_jordan_blocks([(value, 1) for value in h]))
    expected = generic_rank([float(weight)] * (n - 1) + [1.0], [float(x) for x in h])
    found = verdict(A=A, H=H)
    assert found.limit_rank == expected
    assert (found.limit == np.inf) == (found.verdict == "NON_SMOOTHING")
    assert found.verdict == "NON_SMOOTHING" or not all(-1 <= x < 0 for x in h)
    # A state that contains every mode does not exceed what the dominant pairs say.
    drawn = verdict(A=A, H=H, X0=own.general_state(1, n, len(h))).limit_rank
    assert drawn is not None and drawn <= expected


# Of these H a quarter ties.
CHOSEN = own.cases(own.attention(2, 4), own.value_projections(3))


@given(CHOSEN)
@settings(max_examples=60)
def test_T4c_no_drawn_state_exceeds_the_rank_of_the_dominant_pairs(case):
    A, H, _ = case
    drawn = verdict(A=A, H=H, X0=own.general_state(1, len(A), len(H))).limit_rank
    assert drawn is not None and drawn <= verdict(A=A, H=H).limit_rank


@given(own.exact_cases() | CHOSEN)
@settings(max_examples=250)
def test_T2_T4_floats_agree_with_fractions_or_leave_open(case):
    """Short binary numbers are what they say: where rounding would decide, they are decided so."""
    A, H, _ = case
    exact, numerical = verdict(A=A, H=H), verdict(A=to_float(A), H=to_float(H))
    alike = numerical.verdict == exact.verdict
    assert alike or (numerical.status, numerical.verdict) == ("numerical", "UNDECIDED")
    assert alike or exact.margin is None or abs(exact.margin) <= 1e-3
    for name in ("tends_to", "limit_rank"):
        assert not alike or getattr(numerical, name) in (None, getattr(exact, name))
    if numerical.limit is not None and exact.limit is not None:
        assert numerical.limit == pytest.approx(exact.limit, rel=1e-6)
    if exact.verdict == "NON_SMOOTHING" and exact.tends_to == "constant" and exact.limit:
        # T1f: 1/(sqrt(n) |pi - 1/n|), above 1/sqrt(n - 1).
        n = len(A)
        squared = sum((p - Fraction(1, n)) ** 2 for p in exact_stationary(A, [list(range(n))]))
        assert squared and exact.limit >= 1 / np.sqrt(n * float(squared)) * (1 - 1e-12)
        assert exact.limit > 1 / np.sqrt(n - 1) * (1 - 1e-12)
