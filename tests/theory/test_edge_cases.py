"""T11: degenerate but legal cases get a verdict that says so; illegal ones a sentence of advice."""

import json
from fractions import Fraction

import numpy as np
import pytest
import sympy

from oversmoothing.theory.claims.golden import golden_case
from oversmoothing.theory.depth.closed_form import closed_form
from oversmoothing.theory.layer.layer import (
    Layer,
    check_attention,
    check_square,
    load_layer,
    read_entries,
    softmax,
)
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict.verdict import verdict
from tests.support.cases import cases
from tests.support.refusals import refuses

HALF = [["1/2", "1/2"], ["1/2", "1/2"]]


def test_a_rank_deficient_head_ties_at_exactly_1_when_nothing_exceeds_it():
    A = 0.6 * np.eye(5) + 0.4 * np.full((5, 5), 0.2)  # a_i = 0.6: nothing exceeds 1
    W_V = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 2)))[0]
    result = verdict(A=A, W=(W_V, -0.5 * W_V.T))
    assert (result.verdict, result.margin) == ("TIE", 0.0)
    dense = verdict(A=A, W=W_V @ (-0.5 * W_V.T))
    assert dense.verdict in ("UNDECIDED", "TIE")


def test_exact_entries_of_every_kind_are_understood():
    A = [[Fraction(1, 2), "0.5"], [sympy.Rational(1, 2), "1/2"]]
    result = verdict(A=A, H=[[np.int64(-1)]])
    assert result.status == "exact"


BAD = [
    (dict(A=[[0.5, 0.6], [0.5, 0.5]], H=[[1.0]]), "row .0. sums to 1.1"),
    (dict(A=[["1/2", "1/3"], ["1/2", "1/2"]], H=[[1]]), "row 0 sums to 5/6"),
    (dict(A=[[1.5, -0.5], [0.5, 0.5]], H=[[1.0]]), "negative"),
    (dict(A=[["3/2", "-1/2"], ["1/2", "1/2"]], H=[[1]]), "negative"),
    (dict(A=[[0.5, float("nan")], [0.5, 0.5]], H=[[1.0]]), "nan"),
    (dict(A=HALF, H=[[float("inf")]]), "inf"),
    (dict(A=HALF, H=[["inf"]]), "not a finite number"),
    (dict(A=HALF, H=[["1/0"]]), "not a finite number"),
    (dict(A=HALF, H=[["x"]]), "takes a case with names"),
    (dict(A=HALF, H=[[True]]), "truth value"),
    (dict(A=HALF, H=[[None]]), "not a number"),
    (dict(A=[[0.5, 0.5]], H=[[1.0]]), "square"),
    (dict(A=[["1/2", "1/2"]], H=[[1]]), "square"),
    (dict(A=HALF, H=[[1, 2]]), "square"),
    (dict(A=HALF, H=[[1, 2], [3]]), "ragged"),
    (dict(A=HALF, H=[]), "must be a matrix"),
    (dict(A=HALF, H="1"), "must be a matrix"),
    (dict(A=HALF, H=[1]), "must be a row"),
    (dict(A=HALF, H=[[1]], X0=[[1, 2]]), "looks transposed"),
    (dict(A=HALF, H=[[1]], X0=[[1], [2], [3]]), "X0 has shape"),
    (dict(A=HALF), "exactly one of H and W"),
    (dict(A=HALF, H=[[1]], W=[[1]]), "exactly one of H and W"),
    (dict(A=HALF, H=[[1]], X0=[[1], [2]], depth=-1), "depth -1"),
    (dict(A=HALF, H=[[1]], X0=[[1], [2]], depth=1.5), "depth 1.5"),
    (dict(A=HALF, W=(np.ones((2, 1)), np.ones((2, 1)))), "head"),
    (dict(A=[[1j, 0], [0, 1]], H=[[1]]), "not a number"),
    (dict(logits=[[0.0]], A=[[1]], H=[[1]]), "exactly one of"),
    (dict(logits=[[-np.inf, -np.inf], [0.0, 0.0]], H=[[0.5]]), "row 0 of the logits is all -inf"),
    (dict(logits=[[0.0, 1.0]], H=[[0.5]]), "^logits has shape"),
    (dict(A=[[0.5, 0.5], [0.25, 0.75]], W=([[1e200], [1]], [[1e200, 1]])), r"^\(W_V W_proj\)\^T"),
]


@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize("shape", [(), (2,), (1, 2, 2), (0, 2), (2, 0)])
def test_an_array_that_is_no_matrix_is_refused_like_a_list(shape, masks):
    for value in (np.ones(shape), np.ones(shape).tolist()):
        with pytest.raises(InputError, match=r"must be a|is ragged or empty|is not a number"):
            read_entries(value, "M", masks=masks)


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_refused_with_a_sentence(arguments, message):
    refuses(message, verdict, **arguments)


def test_a_softmax_in_float32_passes_only_with_its_own_tolerance():
    A = np.array([[0.1, 0.9], [0.3, 0.7]], dtype=np.float32)
    refuses("not row-stochastic", check_attention, A)
    assert check_attention(A, tolerance=1e-6).dtype == np.float64


@pytest.mark.parametrize("sign", [1, -1])
def test_whole_numbers_that_no_float_has_are_refused(sign):
    assert check_square(np.array([[sign * 2**53]])) == sign * 2.0**53
    refuses(r"beyond 2\^53", check_square, np.diag([sign * (2**53 + 1), 0]))


def test_H_of_a_head_is_the_transpose_of_its_product():
    head = Layer.of(np.eye(1), factors=([[1.0], [2.0]], [[3.0, 4.0]]))
    assert head.H.tolist() == [[3, 6], [4, 8]]


# (a file, what is said of it)
ILLEGAL = [
    ("{", "not JSON"),
    *[(text, 'must hold an object with "A" and "H"') for text in
      ("[]", '{"A": [[1]]}', '{"H": [[1]]}', '{"logits": [[0.0]]}', '{"A": [[1]], "W_V": [[1]]}')],
    ('{"A": [["1"]], "H": [["1"]], "X": 3}', "unknown keys"),
    ('{"A": [[NaN]], "H": [["1"]]}', "nan"),
    ("[" * 100000, "nested too deeply"),
    ('{"A": [[1]], "W_V": null, "W_proj": [[1]]}', "both of W_V and W_proj"),
    ('{"logits": [[0.0]], "H": [[1.0]], "W_V": [[1.0]]}', "exactly one of"),
    ('{"logits": [["inf"]], "H": [[1]]}', "not a finite number"),
    ('{"logits": [[0.0]], "W_V": [[1.0]], "W_proj": [[1.0, 2.0]]}', r"needs \[d, r\]"),
    ('{"logits": [[0.0]], "W_V": [[1.0, 2.0], [1.0]], "W_proj": [[1.0]]}', "ragged"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), ILLEGAL, ids=[text[:60] for text, _ in ILLEGAL])
def test_an_illegal_case_file_is_refused(tmp_path, text, message):
    path = tmp_path / "case.json"
    path.write_text(text)
    refuses(message, load_layer, str(path))


def test_an_unreadable_case_file_is_refused(tmp_path):
    refuses("cannot read", load_layer, str(tmp_path / "absent.json"))
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    refuses("not UTF-8", load_layer, str(tmp_path / "binary.json"))


def test_a_case_file_round_trips(tmp_path):
    golden = golden_case("GT5")
    path = tmp_path / "case.json"
    path.write_text(
        json.dumps({key: getattr(golden, key) for key in ("A", "H", "X0")}, default=str)
    )
    case, start = load_layer(str(path))
    assert case.exact and case.rational_A == golden.A and start.fractions == golden.X0


def test_the_closed_form_refuses_a_defective_H():
    layer = {"A": np.full((2, 2), 0.5), "H": np.eye(2, k=1), "X0": [[1.0, 2.0], [3.0, 5.0]]}
    refuses("defective", closed_form, **layer, depths=[3])


def test_T1d_logits_are_doubly_stochastic_only_where_rows_and_columns_hold_the_same_ones():
    # [[e^-378, 1], [1, e^-198]] within rounding: the mean of the leading mode is small, not 0.
    saturated = [[9.0, 387.0], [-243.0, -441.0]]
    assert verdict(logits=saturated, H=[[-0.5]]).tends_to is None
    for even in ([[0.0] * 3] * 3, [[1.0, 2, 3], [3.0, 1, 2], [2.0, 3, 1]], [[0.0, 1], [1.0, 0]]):
        found = verdict(logits=even, H=[[-0.5]])
        assert (found.tends_to, found.limit) == ("infinity", np.inf)
    assert verdict(logits=[[0.0, 1], [2.0, 0]], H=[[-0.5]]).tends_to == "constant"


def test_T4_what_a_start_leads_to_does_not_depend_on_its_scale():
    """Sums of the largest numbers overflow: X_0 is scaled by a power of two first."""
    A = [[1 / 7, 5 / 7, 1 / 7], [0.2, 0.4, 0.4], [1.0, 0.0, 0.0]]
    start = np.array([[1.7], [-1.0], [-0.33]])
    for weight in (2.0, -0.5):
        found = [verdict(A=A, H=[[weight]], X0=np.ldexp(start, k)) for k in (0, 1023, -1000)]
        for other in found[1:]:
            for name in ("verdict_x0", "tends_to", "limit", "limit_rank", "shows_from"):
                assert getattr(other, name) == getattr(found[0], name)
    huge = [[1.7e308], [-1.0], [-0.33]]
    assert verdict(A=A, H=[[2.0]], X0=huge).verdict_x0 == "SMOOTHING"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("last", [1.6e308, 1.2e308])
def test_T2_eigenvalues_beyond_the_largest_float_are_said_to_be(last):
    """Their discs are without end: nothing counts as exact, and no warning is printed."""
    found = verdict(A=[[0.75, 0.25], [0.25, 0.75]], H=[[1.7e308, 1e308], [-1.5e308, last]])
    assert found.verdict == "UNDECIDED" and "beyond the range of binary64" in found.reason


# --- a case as it was given ---

A2 = [["1/2", "1/2"], ["1/4", "3/4"]]
H1 = [["1/2"]]
FLOATS = [[0.5, 0.5], [0.25, 0.75]]


def test_entries_are_positive_by_the_fractions_where_rounding_would_lose_them():
    tiny = [[f"1/{10**400}", f"{10**400 - 1}/{10**400}"], ["0", "1"]]
    case = Layer.of(tiny, H1)
    assert case.A[0, 0] == 0.0
    assert case.positive.tolist() == [[True, True], [False, True]]
    small = Layer.of([[1e-300, 1.0], [0.0, 1.0]], [[0.5]])
    assert small.positive.tolist() == case.positive.tolist()


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


@cases(
    "x, short",
    *[(x, True) for x in (0, -2, 0.75, 2.0**26 - 1, (2.0**26 - 1) / 2**60, 2.0**80)],
    ((2.0**26 - 1) * 2**40, True),
    *[(x, False) for x in (2.0**26 + 1, (-(2.0**27) + 1) / 2**60)],
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
