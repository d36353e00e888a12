"""T4, T5a, T14: what all cases that round to the same floats share, and what the exact case does.

The table says what is decided of a cell: verdict, what HFC/LFC tends to, the limit and the rank;
None is left open. The exact case of the decimals, by its resolvent in integers, must agree.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf

import pytest

from oversmoothing.theory.layer.layer import read_layer
from oversmoothing.theory.verdict.cell_limits import decided_in_cell
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.verdict import verdict

_A = {
    "two": [[0.7, 0.3], [0.4, 0.6]],
    "alike": [[1 / 3, 1 / 3, 1 / 3], [1 / 3, 1 / 3, 1 / 3], [1 / 3, 1 / 3, 1 / 3]],
    "three alone": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "two groups": [[0, 0.3, 0, 0.7], [0.6, 0, 0.4, 0], [0, 0.9, 0, 0.1], [0.2, 0, 0.8, 0]],
    "causal, twice 3/10": [[1, 0, 0], [0.7, 0.3, 0], [0.7, 0, 0.3]],
    "circulant": [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]],
    "two pairs": [[0.7, 0.3, 0, 0], [0.4, 0.6, 0, 0], [0, 0, 0.6, 0.4], [0, 0, 0.1, 0.9]],
    "cycle": [[0, 1, 0], [0, 0, 1], [1, 0, 0]],
    "causal, 0 twice": [[1, 0, 0], [1, 0, 0], [0.3, 0.7, 0]],
    "a swap and one alone": [[0, 1, 0], [1, 0, 0], [0, 0, 1]],
    "one leaves": [[0.2, 0.5, 0.3], [0, 1, 0], [0, 0, 1]],
    "two alone": [[1, 0], [0, 1]],
    "causal, defective": [[1, 0, 0, 0], [0.7, 0.3, 0, 0], [0.2, 0.5, 0.3, 0], [0.1, 0.1, 0.5, 0.3]],
    "a swap and one that follows": [[0, 1, 0], [1, 0, 0], [0.3, 0.3, 0.4]],
    "two swaps": [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]],
    "turning, and one alone": [
        [0.1, 0.8, 0.1, 0],
        [0.2, 0.1, 0.7, 0],
        [0.6, 0.3, 0.1, 0],
        [0, 0, 0, 1],
    ],
    "turning": [[0.1, 0.8, 0.1], [0.2, 0.1, 0.7], [0.6, 0.3, 0.1]],
    "three that turn and leave": [
        [0.1, 0.6, 0.1, 0.2],
        [0.2, 0.1, 0.6, 0.1],
        [0.5, 0.3, 0.1, 0.1],
        [0, 0, 0, 1],
    ],
    "halves": [[0.5, 0.5], [0.5, 0.5]],
    "a cycle and one alone": [[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1]],
    "causal": [[1, 0, 0], [0.7, 0.3, 0], [0.2, 0.2, 0.6]],
    "a swap beside a circulant": [
        [0, 1, 0, 0, 0],
        [1, 0, 0, 0, 0],
        [0, 0, 0.1, 0.8, 0.1],
        [0, 0, 0.1, 0.1, 0.8],
        [0, 0, 0.8, 0.1, 0.1],
    ],
    "groups of 1 and 2, and a cycle": [
        [0, 0.3, 0.7, 0, 0, 0],
        [1, 0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0, 1],
        [0, 0, 0, 1, 0, 0],
    ],
    "nearly alone": [[1, 0], [1e-20, 1]],
    "all to the first": [[1, 0], [1, 0]],
    "three nearly alike": [
        [0.799998, 0.100003, 0.099999],
        [0.100001, 0.799998, 0.100001],
        [0.100002, 0.099997, 0.800001],
    ],
    "four nearly alike": [
        [0.700002, 0.100001, 0.099998, 0.099999],
        [0.100001, 0.700001, 0.099999, 0.099999],
        [0.099999, 0.100001, 0.699997, 0.100003],
        [0.100002, 0.099997, 0.1, 0.700001],
    ],
}
_H = {
    "d0": [[0.3, 0], [0, 0]],
    "-1": [[-1]],
    "J3": [[-0.6, 1, 0.2], [0, -0.6, 1], [0, 0, -0.6]],
    "dd": [[-0.6, 0], [0, -0.6]],
    "J": [[0.3, 1], [0, 0.3]],
    "CC": [[-0.5, -1, 0, 0], [0.06, -0.5, 0, 0], [0, 0, -0.5, -1], [0, 0, 0.06, -0.5]],
    "Cs": [[-0.5, -1], [0.06, -0.5]],
    "CR": [[-0.6, -0.9, 0], [0.9, -0.6, 0], [0, 0, -0.3]],
    "-.5": [[-0.5]],
    "J-t": [[-0.6, 0], [0.7, -0.6]],
    "JJ": [[-0.6, 1, 0], [0, -0.6, 0], [0, 0, -0.6]],
    "0": [[0]],
    "CRs": [[-0.6, -0.9, 0.2], [0.3, -0.6, 0.5], [0.1, 0, 0.4]],
    "T": [[0.3, 0.2], [0, -0.6]],
    "d-1": [[-1, 0], [0, -0.6]],
    "d-13": [[-1.3, 0], [0, -0.7]],
    "C-": [[-0.6, -0.9], [0.9, -0.6]],
    "C": [[0.3, -0.7], [0.7, 0.3]],
    "-1.1": [[-1.1]],
    "S-": [[0.1, -0.7], [0.7, -1.3]],
    "d0-": [[-0.6, 0], [0, 0]],
    "-.3": [[-0.3]],
    "-.6c": [[-0.6, 0.4], [-0.2, -0.5]],
    "-3": [[-3]],
    "CRd": [[-0.6, -0.2, 0], [0.5, -0.6, 0], [0, 0, -0.6]],
    "J-9": [[-0.9, 1], [0, -0.9]],
    "third of a turn": [[-0.25, -0.4330127018922193], [0.4330127018922193, -0.25]],
    "quarter": [[0, -1], [1, 0]],
    "-2": [[-2]],
    "-.6": [[-0.6]],
    "-1.2": [[-1.2]],
}
_SAID = [
    ("two", "d0", [[1, 1], [-1, -1]], "SMOOTHING", "zero", 0.0, 1),
    ("alike", "-1", [[2], [3], [4]], "NON_SMOOTHING", None, None, 1),
    ("three alone", "-1", [[2.11], [2.11], [2.19]], "UNDECIDED", None, None, None),
    (
        "two groups",
        "J3",
        [[0.98, 2, 0.38], [0.98, 2, 0.38], [-2.89, -2.78, -1.13], [0.23, 0.71, 1.09]],
        "NON_SMOOTHING",
        "infinity",
        inf,
        1,
    ),
    ("causal, twice 3/10", "-1", [[0.61], [0.61], [1]], "NON_SMOOTHING", None, None, 1),
    ("circulant", "dd", [[0, 0], [2.3, -1.13], [1.16, 2.09]], "NON_SMOOTHING", None, None, None),
    ("two pairs", "J", [[1, 0], [2, 0], [3, 0], [4, 0]], "UNDECIDED", None, None, 1),
    (
        "cycle",
        "CC",
        [[0, 1.12, 1.01, -2.85], [0, -2.83, -1.64, -0.15], [0, 2.7, -2.95, -2.17]],
        "NON_SMOOTHING",
        "infinity",
        inf,
        None,
    ),
    ("circulant", "Cs", [[1.5, 1.5], [1.5, 1.5], [2.5, 2.5]], "NON_SMOOTHING", None, None, 2),
    (
        "causal, 0 twice",
        "CR",
        [[0.71, -1.9, -1.69], [-2.46, 2.42, -1.02], [-0.92, -2.27, 1.82]],
        "NON_SMOOTHING",
        None,
        None,
        None,
    ),
    ("causal, 0 twice", "-.5", [[0], [-0.54], [2.78]], "NON_SMOOTHING", "constant", 1.41421356, 1),
    ("cycle", "J-t", [[0, -2.22], [0, 2.82], [0, 2.05]], "NON_SMOOTHING", "infinity", inf, 1),
    (
        "causal, twice 3/10",
        "JJ",
        [[-0.7, 2, 0], [1.3, -2.4, 0], [2.82, 0.94, 0]],
        "NON_SMOOTHING",
        None,
        None,
        None,
    ),
    (
        "circulant",
        "J3",
        [[-1.86, -0.37, -2.87], [-1.86, -0.37, -2.87], [-1.76, -1.29, 0.25]],
        "NON_SMOOTHING",
        None,
        None,
        1,
    ),
    ("a swap and one alone", "0", [[1], [2], [3]], "TIE", "constant", 0.40824829, 1),
    (
        "three alone",
        "CRs",
        [[0.45, 2.14, -0.3], [-0.17, 1.99, 1.05], [0.15, 0.38, 1.83]],
        "TIE",
        "constant",
        1.20445917,
        1,
    ),
    ("one leaves", "T", None, "TIE", "constant", None, 1),
    ("cycle", "d-1", [[0.83, 0], [-1.37, 0], [-1.41, 0]], "NON_SMOOTHING", "infinity", inf, 1),
    ("causal, twice 3/10", "d-13", [[1, 1], [-1, -1], [0, 0]], "NON_SMOOTHING", None, None, 1),
    (
        "three alone",
        "CR",
        [[1.21, 1.83, 2.71], [1.21, 1.83, 2.71], [0.01, -0.13, 1.08]],
        "TIE",
        None,
        None,
        2,
    ),
    ("one leaves", "C-", [[1.31, 0], [0.14, 0], [1, 0]], "TIE", None, None, None),
    ("two alone", "Cs", [[-2.41, 1.99], [-2.22, 0.36]], "TIE", "oscillates", None, 2),
    ("three alone", "C", [[-2.94, 1.59], [-2.49, 1.9], [-2.79, 0.17]], "TIE", None, None, 2),
    ("three alone", "CR", [[1, 1, 1], [-1, -1, -1], [0, 0, 0]], "TIE", None, None, None),
    (
        "causal, defective",
        "d-13",
        [[0, -2.43], [0, -0.83], [0, -1.27], [0, -2.11]],
        "NON_SMOOTHING",
        "constant",
        1.73205081,
        1,
    ),
    ("a swap and one that follows", "-1.1", [[1], [2], [3]], "NON_SMOOTHING", None, None, 1),
    ("two swaps", "S-", [[1, 1], [-1, -1], [0, 0], [0, 0]], "NON_SMOOTHING", None, None, None),
    (
        "turning, and one alone",
        "d0-",
        [[0, -0.64], [0, -1.34], [0, 0.37], [0, 1.51]],
        "TIE",
        "constant",
        42.9869748,
        1,
    ),
    ("turning", "-.3", [[0], [1.78], [-2.17]], "NON_SMOOTHING", "oscillates", None, 1),
    ("two alone", "-.6c", [[1, 0], [2, 0]], "TIE", None, None, None),
    (
        "three that turn and leave",
        "-3",
        [[0], [1.39], [-2.2], [-0.11]],
        "NON_SMOOTHING",
        "oscillates",
        None,
        1,
    ),
    (
        "two swaps",
        "J",
        [[-1.28, 2.33], [0.66, 1.26], [-2.17, 1.99], [-1.28, 0.71]],
        "TIE",
        None,
        None,
        1,
    ),
    ("turning, and one alone", "-.3", [[1.5], [1.5], [1.5], [2.5]], "UNDECIDED", None, None, 1),
    ("halves", "CRd", [[2, 2, 2], [2, 2, 3]], "NON_SMOOTHING", None, None, 1),
    ("a cycle and one alone", "S-", None, "NON_SMOOTHING", "infinity", inf, None),
    ("causal", "J-9", [[1, 1], [-1, -1], [0, 0]], "NON_SMOOTHING", "constant", 6.164414, 1),
    ("nearly alone", "J", None, "SMOOTHING", "zero", 0.0, 1),
    ("nearly alone", "J-9", None, "NON_SMOOTHING", "constant", 1.0, 1),
    ("two alone", "d-1", None, "TIE", "constant", None, 1),
    # A difference of a few units in the last place is there for certain.
    ("two", "-.6", [[1], [1 + 2**-50]], "NON_SMOOTHING", "constant", 7.0, 1),
    # Each mean is 0 by the zeros of A, or only in this matrix.
    (
        "groups of 1 and 2, and a cycle",
        "third of a turn",
        None,
        "NON_SMOOTHING",
        "infinity",
        inf,
        2,
    ),
    ("a swap beside a circulant", "third of a turn", None, "NON_SMOOTHING", None, None, 2),
    # Of eigenvalues that are nearly equal the finest blocks leave open what coarser ones decide:
    # the verdict, or what HFC/LFC tends to.
    ("three nearly alike", "-1.2", [[-2], [2], [0]], "SMOOTHING", "zero", 0.0, 1),
    ("four nearly alike", "-.5", None, "NON_SMOOTHING", "constant", None, 1),
    # Equal moduli that no structure shows.
    ("a swap and one alone", "quarter", None, "UNDECIDED", None, None, None),
    ("all to the first", "-2", [[1], [2]], "UNDECIDED", None, None, 1),
]


def floats(M):
    return None if M is None else [[float(x) for x in row] for row in M]


def exact(M):
    """The decimals as they are written; of what are no decimals the floats, rows of A completed."""
    return None if M is None else [[Fraction(repr(x)) for x in row] for row in M]


@pytest.mark.parametrize(("A", "H", "X0", "outcome", "tends_to", "limit", "rank"), _SAID)
def test_a_cell_has_the_verdict_and_the_limits_that_all_of_it_shares(
    A, H, X0, outcome, tends_to, limit, rank
):
    case, start = read_layer(floats(_A[A]), floats(_H[H]), floats(X0))
    found = decided_in_cell(case, start)
    assert (found.outcome, found.limits.tends_to, found.limits.limit_rank) == (
        outcome, tends_to, rank
    )  # fmt: skip
    assert found.limits.limit == (limit if limit is None else pytest.approx(limit, rel=1e-8))


# Thirds, and what is no decimal, mean other matrices.
_DECIMAL = [row for row in _SAID if row[0] != "alike" and row[1] != "third of a turn"]


@pytest.mark.parametrize(("A", "H", "X0", "outcome", "tends_to", "limit", "rank"), _DECIMAL)
def test_the_case_in_fractions_agrees_with_its_cell(A, H, X0, outcome, tends_to, limit, rank):
    table = exact(_A[A])
    for row in table:
        row[row.index(max(row))] += 1 - sum(row)
    found = verdict(A=table, H=exact(_H[H]), X0=exact(X0))
    assert outcome in (found.verdict if X0 is None else found.verdict_x0, "UNDECIDED")
    assert tends_to in (found.tends_to, None) and rank in (found.limit_rank, None)
    assert limit is None or limit == pytest.approx(found.limit, rel=1e-8)


@pytest.mark.parametrize(("n", "outcome"), [(32, "SMOOTHING"), (33, "UNDECIDED")])
def test_cells_are_looked_at_up_to_32_tokens(n, outcome):
    case, start = read_layer([[1 / n] * n] * n, [[0.3]], [[float(i)] for i in range(n)])
    assert decided_in_cell(case, start).outcome == outcome


@pytest.mark.parametrize(
    ("A", "H", "X0"),
    [
        # Consensus may be missing from a sum that cancels; what leads then is of rank 1 as well.
        ([[0.4, 0.6], [0.6, 0.4]], [[-0.5, -0.75], [1.5, 1.0]], [[0.1, 3.3], [-0.1, -3.3]]),
        # 1 + h and 1 + h a may each be 0, but not both.
        ([[1.0, 2e-100], [1e-100, 1.0]], [[-1.0]], [[-7.0], [4.0]]),
        ([[1.0, 0.0], [2e-20, 1.0]], [[-1.0]], [[-1.0], [-5.0]]),
    ],
    ids=["a mean that may be 0", "nearly decoupled", "saturated"],
)
def test_T4c_the_rank_is_known_where_the_verdict_is_not(A, H, X0):
    found = verdict(A=A, H=H, X0=X0)
    assert found.verdict_x0 is Outcome.UNDECIDED
    assert found.limit_rank == 1


def test_T4c_a_state_that_may_become_0_has_no_rank():
    """X_0 = (0, -9) holds one mode alone, and 1 + h a may be 0 in a case that rounds to it."""
    found = verdict(A=[[1.0, 0.0], [2e-17, 1.0]], H=[[-1.0]], X0=[[0.0], [-9.0]])
    assert found.limit_rank is None
