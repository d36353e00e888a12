"""A case as it was given: what is positive, what is short, what may balance, what is refused."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from oversmoothing.theory.layer.layer import Layer, load_layer, read_layer, softmax

A2 = [["1/2", "1/2"], ["1/4", "3/4"]]
H1 = [["1/2"]]
FLOATS = [[0.5, 0.5], [0.25, 0.75]]


def test_entries_are_positive_by_the_fractions_where_rounding_would_lose_them():
    tiny = [[f"1/{10**400}", f"{10**400 - 1}/{10**400}"], ["0", "1"]]
    case = Layer.of(tiny, H1)
    assert case.A[0, 0] == 0.0
    assert case.positive.tolist() == [[True, True], [False, True]]
    assert Layer.of([[1e-300, 1.0], [0.0, 1.0]], [[0.5]]).positive.tolist() == [
        [True] * 2,
        [False, True],
    ]


@pytest.mark.parametrize(
    ("logits", "balanced"),
    [
        ([[0.0, 1.0], [1.0, 0.0]], True),
        ([[0.0, 1.0, 2.0], [2.0, 0.0, 1.0], [1.0, 2.0, 0.0]], True),
        # The same rows, other columns; the same columns, other rows; two of three rows alike.
        ([[0.0, 1.0], [0.0, 1.0]], False),
        ([[0.0, 0.0], [1.0, 1.0]], False),
        ([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0], [1.0, 2.0, 3.0]], False),
        ([[1.0, 2.0, 3.0], [0.0, 1.0, 2.0], [2.0, 0.0, 1.0]], False),
    ],
)
def test_T2d_columns_of_logits_may_balance_where_rows_and_columns_hold_the_same(logits, balanced):
    assert Layer.of(logits=logits, H=[[0.5]]).may_balance is balanced
    assert Layer.of(FLOATS, [[0.5]]).may_balance


def test_binary_rows_are_divided_by_their_sums_and_fractions_are_taken_as_they_are():
    A = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.6, 0.1, 0.3]]
    rows = Layer.of(A, [[0.5]]).rational_A
    assert all(sum(row) == 1 for row in rows)
    whole = [Fraction(x) for x in A[0]]
    assert sum(whole) != 1 and rows[0] == [x / sum(whole) for x in whole]
    assert Layer.of(A2, H1).rational_A == [[Fraction(x) for x in row] for row in A2]
    near = Layer.of(logits=[[0.0, 1.0], [2.0, 0.0]], H=[[0.5]])
    assert [sum(row) for row in near.rational_A] == [1, 1]
    np.testing.assert_allclose(np.array(near.rational_A, dtype=float), near.A, rtol=1e-15)


@pytest.mark.parametrize("X0", [None, [["0"], ["0"]], [["1"], ["0"]], [[f"1/{10**400}"], ["0"]]])
def test_T11_a_start_at_zero_is_told_from_none_and_from_one_that_underflows(X0):
    _, start = read_layer(A2, H1, X0)
    assert (start is not None and start.is_zero) is (X0 == [["0"], ["0"]])
    assert (start is None) is (X0 is None)
    floats = None if X0 is None else [[float(Fraction(x)) for x in row] for row in X0]
    zero = floats is not None and not np.any(floats)
    _, start = read_layer(FLOATS, [[0.5]], floats)
    assert (start is not None and start.is_zero) is zero


@pytest.mark.parametrize(
    ("x", "short"),
    [
        *[(x, True) for x in (0, -2, 0.75, 2.0**26 - 1, (2.0**26 - 1) / 2**60, 2.0**80)],
        ((2.0**26 - 1) * 2**40, True),
        *[(x, False) for x in (2.0**26 + 1, (-(2.0**27) + 1) / 2**60)],
    ],
)
def test_numbers_are_short_up_to_26_bits_wherever_their_point_is(x, short):
    assert (Layer.of(FLOATS, [[float(x)]]).as_fractions() is not None) is short


def test_short_binary_cases_are_taken_at_their_word_up_to_8():
    assert Layer.of(FLOATS, [[-2.0]]).as_fractions().rational_H == [[-2]]
    assert Layer.of(FLOATS, [[0.1]]).as_fractions() is None
    # One row of two that does not sum to 1 exactly is enough.
    assert Layer.of([[0.5, 0.5], [0.25, 0.75 + 2**-52]], [[0.5]]).as_fractions() is None
    for n, d, taken in ((8, 8, True), (9, 1, False), (2, 9, False)):
        case = Layer.of(np.eye(n).tolist(), (0.5 * np.eye(d)).tolist())
        assert (case.as_fractions() is not None) is taken
    assert Layer.of(logits=[[0.0, 0.0]] * 2, H=[[0.5]]).as_fractions() is None
    assert Layer.of(A2, H1).as_fractions() is None
    head = Layer.of(FLOATS, factors=([[1.0], [2.0]], [[3.0, 5.0]])).as_fractions()
    assert head.rational_H == [[3, 6], [5, 10]]


def test_softmax_takes_each_row_from_its_largest():
    logits = np.array([[0.0, 1.0], [1000.0, 1001.0], [-1000.0, -1001.0]])
    table = softmax(np.hstack([logits, np.full((3, 1), -np.inf)]))
    share = 1 / (1 + np.e)
    np.testing.assert_allclose(table[:, 0], [share, share, 1 - share], rtol=1e-12)
    assert (table[:, 2] == 0).all()
    # What exists and underflows stays above zero.
    assert softmax(np.array([[0.0, -2000.0]]))[0, 1] > 0


def test_a_head_in_a_file_is_its_two_factors(tmp_path):
    path = tmp_path / "case.json"
    path.write_text(json.dumps({"A": A2, "W_V": [["1"]], "W_proj": [["2"]]}))
    assert load_layer(str(path))[0].rational_H == [[2]]
