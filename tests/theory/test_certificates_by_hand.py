"""T5d, T6b, T10: what a certificate claims, on cases worked by hand."""

from __future__ import annotations

import flint
import numpy as np
import pytest

from oversmoothing.theory.layer.cell import stationary_balls
from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers.rounding import at_precision, largest, norm
from oversmoothing.theory.spectra.blocks import enclose_in_balls
from oversmoothing.theory.spectra.discs import Discs, Failure, enclose
from oversmoothing.theory.spectra.layer_discs import attention_discs
from oversmoothing.theory.verdict.stages import (
    attention_balls,
    ball_side,
    ball_stage,
    certified_dominance,
    certify_spectra,
    decide,
    exact_stage,
    outward,
    value_core,
)
from oversmoothing.theory.verdict.verdict import verdict
from tests.support.tables import floats, matrix

A2, A3, FLOAT = matrix("AA"), matrix("A3"), floats("AA")


def test_what_is_not_enclosed_is_undecided_with_its_reason():
    bad, good = Failure("why not"), enclose(np.array([[0.5]]))
    for pair, name in (((bad, good), "A"), ((good, bad), "H")):
        found = certify_spectra(*pair)
        assert (
            found.verdict == "UNDECIDED"
            and found.reason == f"spec({name}) was not enclosed: why not"
        )
        assert found.consensus is None and found.quotient is None and found.margin is None
        assert found.method.startswith("float64")


def test_T11_one_token_a_tie_and_a_repeated_1_in_the_exact_stage():
    one = exact_stage(Layer.of([[1]], [["1/2"]]))[0]
    assert (one.verdict, one.quotient, one.gap) == ("TRIVIAL", None, None)
    assert one.consensus.low <= 1.5 <= one.consensus.high
    tie = exact_stage(Layer.of(A2, [["-4/3"]]))[0]
    assert tie.verdict == "TIE" and tie.gap == (0.0, 0.0)
    assert ball_stage(Layer.of(A2, [["-4/3"]])).verdict == "UNDECIDED"
    repeated = exact_stage(Layer.of([[1, 0], [0, 1]], [["1/2"]]))[0]
    assert "repeats" in repeated.reason and "repeats" not in tie.reason


def test_a_head_goes_through_balls_by_its_core():
    W_V, W_proj = np.array([[1.0], [2.0], [0.0]]), np.array([[0.25, 0.125, 7.0]])
    case = Layer.of(FLOAT, factors=(W_V, W_proj))
    core, zeros = value_core(case)
    assert (core.nrows(), int(2 * core[0, 0]), zeros) == (1, 1, 2) and ball_side(case) == 2
    assert ball_stage(case).verdict == decide(case)[0].verdict == "SMOOTHING"
    dense, none = value_core(Layer.of(FLOAT, [[0.5]]))
    assert (dense.nrows(), none) == (1, 0)


def test_bounds_are_rounded_outward():
    with at_precision(128):
        third = flint.arb(1) / 3
        low, high = outward(third)
        assert low < 1 / 3 < high
        top = largest([flint.arb(1, 0.5), flint.arb(1.25), flint.arb(0)])
        assert float(top.lower()) == pytest.approx(1.25) and float(top.upper()) == pytest.approx(
            1.5
        )
        assert float(norm([flint.acb(3), flint.acb(0, 4)]).mid()) == pytest.approx(5)
        case = Layer.of(A3, [[1]])
        pi = [float(x.mid()) for x in stationary_balls(attention_balls(case), case.classes)]
    assert pi == pytest.approx([0.65, 0.225, 0.125])


def test_repeated_ones_never_certify_smoothing():
    found = certified_dominance(np.eye(2), np.array([[0.5]]))
    assert found.verdict == "UNDECIDED" and "occurs 2 times" in found.reason
    assert found.quotient.low >= found.consensus.low
    zero = certified_dominance(np.eye(2), np.array([[0.0]]))
    assert zero.verdict in ("TIE", "UNDECIDED")


def test_T10_a_certified_verdict_replaces_word_radii_and_reason():
    for h, word, rho_q in ((0.5, "SMOOTHING", 1.25), (-0.5, "NON_SMOOTHING", 0.75)):
        found = verdict(A=FLOAT, H=[[h]], exact_binary=True)
        assert (found.verdict, found.status) == (word, "certified")
        assert found.rho_consensus == pytest.approx(1 + h, rel=1e-12)
        assert found.rho_quotient == pytest.approx(rho_q, rel=1e-12)
        numerical = verdict(A=FLOAT, H=[[h]])
        assert found.reason.startswith("certified: rho_") and "(float64" in found.reason
        assert found.reason.endswith(numerical.reason)
        assert (found.tends_to, found.limit_rank) == (numerical.tends_to, numerical.limit_rank)


def test_T10_what_no_stage_separates_is_not_certified():
    """a = -1/2 and h = -4 tie at 3; H = -4 11^T/32 is too large to be decided exactly."""
    A, H = [[0.25, 0.75], [0.75, 0.25]], np.full((32, 32), -4 / 32)
    found = verdict(A=A, H=H, exact_binary=True)
    assert (found.verdict, found.status) == ("UNDECIDED", "numerical")
    assert found.reason.startswith("not certified: ") and "(balls" in found.reason
    assert found.rho_consensus == pytest.approx(3) == found.rho_quotient
    assert verdict(A=A, H=[[-4.0]], exact_binary=True).verdict == "TIE"
    # The word of a state that is 0 is kept even so.
    zero = verdict(A=A, H=H, X0=np.zeros((2, 32)), exact_binary=True)
    assert zero.verdict == "UNDEFINED" and zero.reason.startswith("not certified: ")


@pytest.mark.parametrize("X0", [None, [[0.0], [0.0]]])
def test_T11_trivial_and_undefined_keep_their_word_in_a_certificate(X0):
    A = [[1.0]] if X0 is None else FLOAT
    found = verdict(A=A, H=[[0.5]], X0=X0, exact_binary=True)
    assert found.verdict == ("TRIVIAL" if X0 is None else "UNDEFINED")
    assert found.status == "certified" and found.rho_consensus == pytest.approx(1.5)
    assert (found.rho_quotient is None) == (X0 is None)


def test_T10_a_defective_H_too_large_to_be_exact_is_decided_where_it_is_triangular():
    """One Jordan block of 26 has no eigenbasis, but shows its spectrum on its diagonal."""
    H = 0.5 * np.eye(26) + np.eye(26, k=1)
    for certified in (False, True):
        found = verdict(A=FLOAT, H=H, exact_binary=certified)
        assert (found.verdict, found.status) == ("SMOOTHING", "certified")


# --- what is enclosed holds for every matrix within the error ---


def within(found, values):
    """Every value lies in a disc, up to the rounding of the values themselves."""
    assert isinstance(found, Discs)
    away = np.abs(np.asarray(values)[:, None] - found.centres[None, :]) - found.radii[None, :]
    return bool((away.min(axis=1) <= 1e-12).all())


def others(A):
    """spec(A) without one copy of 1."""
    values = np.linalg.eigvals(A)
    return np.delete(values, np.abs(values - 1).argmin())


@pytest.mark.parametrize("rows", [[0], [2], [0, 1, 2]], ids=["first", "last", "all"])
@pytest.mark.parametrize("columns", [[0, 1], [1, 2]], ids=["left", "right"])
def test_T10_discs_of_attention_hold_for_all_attention_within_the_error(rows, columns):
    """Two entries of some rows are moved against each other, as far as the error allows."""
    A, error = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]]), 1e-3
    allowed = np.zeros((3, 3))
    allowed[np.ix_(rows, columns)] = error
    found = attention_discs(A, allowed)
    moved = []
    for signs in np.ndindex(*[3] * len(rows)):
        near = A.copy()
        for row, sign in zip(rows, signs, strict=True):
            near[row, columns] += error * (sign - 1) * np.array([1.0, -1.0])
        moved.append(others(near))
    assert all(within(found, values) for values in moved)
    assert found.radii.max() < 50 * error
    # Without the error they are discs of A alone, and some of these lie outside.
    assert not all(within(attention_discs(A), values) for values in moved)


def test_T10_two_tokens_move_by_both_of_their_errors():
    """A = [[a, 1-a], [b, 1-b]] has a - b beside 1."""
    A, error = np.array([[0.75, 0.25], [0.25, 0.75]]), 1e-3
    for slack in ([[1, 1], [1, 1]], [[1, 1], [0, 0]], [[0, 0], [1, 1]]):
        found = attention_discs(A, error * np.array(slack, dtype=float))
        least = error * sum(row[0] for row in slack)
        # B is centred: what one token may be off by is shared with the other.
        assert least <= found.radii[0] <= 2 * least * (1 + 1e-9) + 1e-15
        assert found.centres[0] == 0.5


def test_T1h_what_the_error_leaves_above_the_diagonal_is_not_causal():
    """[[1 - e, e], [1/2, 1/2]] has 1/2 - e."""
    A, error = np.array([[1.0, 0.0], [0.5, 0.5]]), np.zeros((2, 2))
    error[0] = 1e-3
    assert within(attention_discs(A, error), [0.5 - 1e-3])
    assert np.array_equal(attention_discs(A, np.zeros((2, 2))).centres, [0.5])


@pytest.mark.parametrize("seed", range(3))
def test_T10_left_eigenvectors_hold_for_every_matrix_of_the_cell(seed):
    """Normalised as y_i = 1 in the coordinates of the basis."""
    rng = np.random.default_rng(seed)
    middle, error, k = rng.standard_normal((4, 4)), 1e-7, 4
    cell = flint.acb_mat([[flint.acb(flint.arb(x, error)) for x in row] for row in middle.tolist()])
    found = next(iter(enclose_in_balls(cell)))
    assert all(found.alone)
    V = np.array([[complex(x.mid()) for x in row] for row in found.basis.tolist()])
    for _ in range(5):
        own = middle + error * rng.choice([-1.0, 1.0], middle.shape)
        values, left = np.linalg.eig(np.linalg.inv(V) @ own @ V)
        left = np.linalg.inv(left)
        for i in range(k):
            j = int(np.abs(left[:, i] / np.linalg.norm(left, axis=1)).argmax())
            assert found.boxes[i].contains(flint.acb(complex(values[j])))
            expected = np.linalg.solve(V.T, left[j] / left[j, i])
            for x, ball in zip(expected, found.left_vector(i), strict=True):
                wide = ball + flint.acb(flint.arb(0, 1e-12), flint.arb(0, 1e-12))
                assert wide.contains(flint.acb(complex(x))) and ball.real.rad() < 1e-2
