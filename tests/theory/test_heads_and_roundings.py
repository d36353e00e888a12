"""E3, T2b: many heads together, the nearest other verdict, and short floats, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oversmoothing.theory.spectra.heads import Radius
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict import verdict as room
from oversmoothing.theory.verdict.nearest import distance_to_tie
from oversmoothing.theory.verdict.verdict import heads_verdict, verdict

MIXING = np.array([[0.75, 0.25], [0.25, 0.75]])
TURNED = np.array([[0.25, 0.75], [0.75, 0.25]])


# --- many heads ---


def test_E3_heads_add_up_at_consensus_and_on_differences():
    """a = 1/2 and -1/2: consensus 1 + h + g, differences 1 + (h - g)/2."""
    heads = np.array([MIXING, TURNED])
    for h, g, outcome, radii in (
        (0.5, 0.25, "SMOOTHING", (1.75, 1.125)),
        (-1.0, 0.5, "UNDECIDED", (0.5, 0.25)),
        (-0.5, -1.5, "NON_SMOOTHING", (1.0, 1.5)),
    ):
        found = heads_verdict(A=heads, W=np.array([[[h]], [[g]]]))
        if outcome != "UNDECIDED":
            assert found.verdict == outcome
        assert found.rho_consensus == pytest.approx(radii[0], rel=1e-14)
        assert found.rho_quotient == pytest.approx(radii[1], rel=1e-14)
        assert found.status == "estimated"
    found = heads_verdict(A=heads, W=np.array([[[0.5]], [[0.25]]]))
    assert "the radius of I + sum_h H_h (2 heads) is 1.75" in found.reason
    assert "that of the quotient 1.125 (dense)" in found.reason
    found = heads_verdict(A=heads, W=np.array([[[-0.5]], [[-1.5]]]))
    assert "the radius of the quotient is 1.5 (2 heads, dense), that of consensus 1" in found.reason


def test_E3_without_the_residual_only_the_heads_count():
    found = heads_verdict(A=MIXING, W=[[0.5]], residual=False)
    assert (found.verdict, found.rho_consensus, found.rho_quotient) == (
        "SMOOTHING", pytest.approx(0.5), pytest.approx(0.25)
    )  # fmt: skip
    assert "the radius of sum_h H_h (1 head) is 0.5" in found.reason


def test_E3_both_radii_0_are_a_tie_and_one_token_is_trivial():
    found = heads_verdict(A=MIXING, W=[[0.0]], residual=False)
    assert (found.verdict, found.rho_consensus, found.rho_quotient) == ("TIE", 0, 0)
    assert found.reason == "both radii are 0, exactly (1 head)."
    alone = heads_verdict(A=[[1.0]], W=[[0.5]])
    assert (alone.verdict, alone.rho_consensus, alone.rho_quotient) == ("TRIVIAL", 1.5, None)
    assert alone.status == "estimated" and "one token only" in alone.reason


@pytest.mark.parametrize(
    ("consensus", "quotient", "outcome"),
    [
        ((2.0, 0.25), (1.5, 0.125), "SMOOTHING"),
        ((2.0, 0.25), (1.5, 0.375), "UNDECIDED"),
        ((2.0, 0.375), (1.5, 0.25), "UNDECIDED"),
        ((1.5, 0.125), (2.0, 0.25), "NON_SMOOTHING"),
        ((1.5, 0.375), (2.0, 0.25), "UNDECIDED"),
        ((1.5, 0.25), (1.5, 0.0), "UNDECIDED"),
    ],
)
def test_E3_radii_are_told_apart_where_both_errors_leave_room(
    monkeypatch, consensus, quotient, outcome
):
    monkeypatch.setattr(room, "dense_radius", lambda *_: Radius(*consensus, "dense"))
    asked = []

    def other(layer, residual, dense_size, beside):
        asked.append((residual, dense_size, beside.value))
        return Radius(*quotient, "arnoldi")

    monkeypatch.setattr(room, "other_radius", other)
    found = heads_verdict(A=MIXING, W=[[1.0]], dense_size=7)
    assert asked == [(True, 7, consensus[0])]
    assert (found.verdict, found.rho_consensus, found.rho_quotient) == (
        outcome, consensus[0], quotient[0]
    )  # fmt: skip
    if outcome == "UNDECIDED":
        assert f"rho_Q = {quotient[0]:.12g} +- {quotient[1]:.1e} overlap" in found.reason
        assert f"rho_C = {consensus[0]:.12g} +- {consensus[1]:.1e}" in found.reason


def test_E3_a_radius_that_is_not_known_leaves_the_verdict_open(monkeypatch):
    unknown = Radius(None, math.inf, "arnoldi", "it did not converge")
    monkeypatch.setattr(room, "other_radius", lambda *_, **__: unknown)
    found = heads_verdict(A=MIXING, W=[[1.0]])
    assert (found.verdict, found.rho_consensus, found.rho_quotient) == ("UNDECIDED", 2.0, None)
    assert "rho_Q is not known: it did not converge. A larger dense_size" in found.reason


# --- the nearest other verdict ---


def gap(A, H):
    """rho_C - rho_Q: the moduli of 1 + h against those of 1 + h a, a besides one 1."""
    a = np.linalg.eigvals(A)
    rest = np.delete(a, np.argmin(abs(a - 1)))
    h = np.linalg.eigvals(H)
    return abs(1 + h).max() - abs(1 + np.multiply.outer(rest, h)).max()


def steepest(A, H, step=1e-6):
    """The slope of the gap over relative changes of A, rows kept, and of H, by differences."""
    slopes = []
    for M, other in ((A, lambda M: gap(M, H)), (H, lambda M: gap(A, M))):
        slope = np.zeros_like(M)
        for i, j in np.ndindex(*M.shape):
            E = np.zeros_like(M)
            E[i, j] = step
            slope[i, j] = (other(M + E) - other(M - E)) / (2 * step)
        if M is A:
            slope -= slope.mean(axis=1, keepdims=True)
        slopes.append(np.linalg.norm(slope) * np.linalg.norm(M))
    return sum(slopes)


A3 = np.array([[0.1, 0.7, 0.2], [0.3, 0.1, 0.6], [0.8, 0.1, 0.1]])
B3 = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])


@pytest.mark.parametrize("A", [A3, B3], ids=["complex a", "real a"])
@pytest.mark.parametrize(
    "H",
    [
        [[0.5]],
        [[-0.7]],
        [[0.1, 0.3], [0.0, 0.5]],
        [[0.2, 0.4], [0.3, -0.8]],
        [[0.3, -0.7], [0.4, 0.2]],
        [[-0.9, 0.2, 0.1], [0.3, -0.5, 0.4], [0.1, -0.6, 0.2]],
    ],
)
def test_T2b_the_distance_to_a_tie_is_the_gap_over_its_steepest_slope(A, H):
    H = np.array(H)
    found = distance_to_tie(A, H)
    assert found == pytest.approx(abs(gap(A, H)) / steepest(A, H), rel=1e-5)


def test_T2b_consensus_that_dies_has_no_slope_of_its_own():
    """h = -1, a = -1/2: rho_C = 0, rho_Q = 3/2 with d(rho_Q) = dh/2 + da."""
    found = distance_to_tie(TURNED, np.array([[-1.0]]))
    assert found == pytest.approx(1.5 / (0.5 + np.linalg.norm(TURNED)), rel=1e-12)


def test_T2b_there_is_no_distance_without_a_gradient():
    for H in ([[0.5, 1.0], [0.0, 0.5]], [[0.5, 1.0], [0.0, 0.5 + 1e-14]]):
        assert distance_to_tie(MIXING, np.array(H)) is None
    assert distance_to_tie(np.array([[1.0]]), np.array([[0.5]])) is None
    assert distance_to_tie(MIXING, np.array([[0.0]])) is None
    assert distance_to_tie(MIXING, np.array([[2e150]])) is None
    # a = 1/2, and next to h itself the gap is h/2.
    largest = distance_to_tie(MIXING, np.array([[1e150]]))
    assert largest == pytest.approx(0.5 / (0.5 + np.linalg.norm(MIXING)), rel=1e-12)


@pytest.mark.filterwarnings("error")
def test_T2b_a_left_eigenvector_beyond_binary64_warns_of_nothing():
    """Of [[1e-300, 1], [0, 1e-300]] it has entries near 1e300, and no square of them is a float."""
    assert distance_to_tie(MIXING, np.array([[1e-300, 1.0], [0.0, 1e-300]])) is None


@pytest.mark.parametrize(("gap", "known"), [(2e-12, True), (0.5e-12, False)])
def test_T2b_an_eigenvalue_of_condition_1e12_counts_as_defective(gap, known):
    """Of [[h, 1], [0, h + gap]] the eigenvectors are as far from orthogonal as 1 / gap."""
    assert (distance_to_tie(MIXING, np.array([[0.5, 1.0], [0.0, 0.5 + gap]])) is not None) == known


# --- short floats ---


def test_the_rounding_of_a_type_is_the_distance_to_the_next_number():
    import torch

    for name, eps in room.EPS.items():
        assert eps == torch.finfo(getattr(torch, name)).eps


@pytest.mark.parametrize(("name", "digits"), [("float32", 12), ("float16", 5), ("bfloat16", 4)])
def test_numbers_of_half_the_digits_of_their_type_are_short(name, digits):
    import torch

    def short(x):
        kind = getattr(torch, name)
        H = torch.tensor([[x]], dtype=kind)
        return "A is" not in verdict(A=torch.full((2, 2), 0.5, dtype=kind), H=H).reason

    # An odd number of so many binary digits.
    assert short(2.0**digits - 1) and short((2.0**digits - 1) * 2.0**-9)
    assert not short(2.0 ** (digits + 1) - 1)


def float32(rows):
    return np.array(rows, dtype=np.float32)


HALVES, THIRD = float32([[0.5, 0.5], [0.5, 0.5]]), float32([[1 / 3, 0.25], [0.5, 1.0]])


def test_short_attention_is_taken_at_its_word_beside_short_weights_alone():
    short = float32([[0.25, 0.5], [0.0, 1.0]])
    for weights in ({"H": short}, {"W": short}, {"W": (short, short)}):
        assert "A is float32" not in verdict(A=HALVES, **weights).reason
    for weights in ({"H": THIRD}, {"W": THIRD}, {"W": (THIRD, short)}, {"W": (short, THIRD)}):
        assert "A is float32: its rows were divided" in verdict(A=HALVES, **weights).reason


def test_weights_stay_what_they_are_beside_an_attention_of_less_precision():
    mixed = float32([[0.7, 0.3], [0.4, 0.6]])
    for A, W in ((HALVES, float32([[0.25, 0.5], [0.0, 1.0]])), (mixed, THIRD)):
        for given in ((None, W), (W.T, None)):
            (case, _), _ = room.rounded_layer(A, *given, None, False)
            assert np.array_equal(case.H, W.T)


def test_the_coarsest_of_the_types_counts():
    import torch

    A = torch.tensor([[0.7, 0.3], [0.4, 0.6]])
    fine, coarse = torch.tensor([[1 / 3]]), torch.tensor([[1 / 3]]).bfloat16()
    for W, error in (((fine, fine), "1.2e-07"), ((fine, coarse), "7.8e-03"), (coarse, "7.8e-03")):
        assert f"known to {error} of itself" in verdict(A=A, W=W).reason


@pytest.mark.parametrize(("units", "accepted"), [(1.5, True), (2.5, False)])
def test_rows_may_be_off_by_two_units_of_their_type(units, accepted):
    A = np.array([[0.5 + units * 2.0**-10, 0.5], [0.25, 0.75]], dtype=np.float16)
    if accepted:
        assert verdict(A=A, H=[[0.5]]).verdict == "SMOOTHING"
    else:
        with pytest.raises(InputError, match="not row-stochastic"):
            verdict(A=A, H=[[0.5]])


def test_every_row_has_to_sum_to_1_for_a_start():
    A = float32([[0.5, 0.5], [0.7, 0.3]])
    A[1, 0] += np.float32(2.0**-23)
    with pytest.raises(InputError, match="X0, depth and exact_binary need an A that is known"):
        verdict(A=A, H=[[0.5]], X0=[[1.0], [2.0]])
