"""E3, T2b: many heads together, the nearest other verdict, and short floats, by hand."""

import math
import random
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import example, given as drawn, settings

from oversmoothing.theory.proofs.strategies import SEEDS
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict import verdict as room
from oversmoothing.theory.verdict.by_fractions import distance_to_tie
from oversmoothing.theory.verdict.verdict import heads_verdict, verdict
from tests.support.cases import cases
from tests.support.refusals import refuses

MIXING = np.array([[0.75, 0.25], [0.25, 0.75]])
TURNED = np.array([[0.25, 0.75], [0.75, 0.25]])
# Of numbers that nobody writes by hand.
LONG = np.array([[[0.7, 0.3], [0.1, 0.9]]] * 2)


# --- many heads ---


def test_E3_heads_add_up_at_consensus_and_on_differences():
    """a = 1/2 and -1/2: consensus 1 + h + g, differences 1 + (h - g)/2."""
    heads = np.array([MIXING, TURNED])
    for h, g, outcome, *radii in (
        (0.5, 0.25, "SMOOTHING", 1.75, 1.125),
        (-1.0, 0.5, "SMOOTHING", 0.5, 0.25),
        (-0.5, -1.5, "NON_SMOOTHING", 1.0, 1.5),
    ):
        found = heads_verdict(A=heads, W=np.array([[[h]], [[g]]]))
        assert (found.verdict, found.status) == (outcome, "certified")
        assert [found.rho_consensus, found.rho_quotient] == pytest.approx(radii, rel=1e-14)
    assert "the radius of the differences between tokens is 1.5" in found.reason
    assert "that of I + sum_h H_h 1 (2 heads, dense)" in found.reason
    # In fractions the same, with what one X_0 does.
    found = heads_verdict(
        A=[texts(MIXING), texts(TURNED)], W=[[["1/2"]], [["1/4"]]], X0=[[1], [2]], depth=[1, 4000]
    )
    assert (found.verdict, found.status, found.verdict_x0) == ("SMOOTHING", "exact", "SMOOTHING")
    assert found.rho_quotient.exact == Fraction(9, 8) and found.rate.exact == Fraction(9, 14)
    assert (found.tends_to, found.limit_rank, found.shows_from) == ("zero", 1, 0)
    assert found.hfc_lfc[1].squared == Fraction(9, 196)
    assert found.hfc_lfc[4000].log == pytest.approx(math.log(1 / 3) + 4000 * math.log(9 / 14))


def texts(M):
    return [[str(Fraction(x)) for x in row] for row in np.asarray(M).tolist()]


def test_E3_without_the_residual_only_the_heads_count():
    for half in (0.5, "1/2"):
        A = MIXING if half == 0.5 else texts(MIXING)
        found = heads_verdict(A=A, W=[[half]], residual=False)
        assert (found.verdict, found.rho_consensus, found.rho_quotient) == (
            "SMOOTHING", pytest.approx(0.5), pytest.approx(0.25)
        )  # fmt: skip
        assert "the radius of sum_h H_h is 0.5" in found.reason and "(1 head" in found.reason


def test_E3_structural_ties_are_ties_in_floats_and_in_fractions():
    """All A_h = I; sum_h W_h and all that heads do to differences nilpotent; both radii 0."""
    rng = np.random.default_rng(3)
    W = rng.standard_normal((3, 4, 4))
    A = rng.dirichlet(np.ones(5), size=(3, 5))
    strict = np.triu(W, 1)
    turned = rng.permutation(4)
    for attention, weights in (
        (np.stack([np.eye(5)] * 3), W),
        (A, strict),
        (A, strict[:, turned][:, :, turned]),
    ):
        found = heads_verdict(A=attention, W=weights)
        assert (found.verdict, found.status) == ("TIE", "certified")
        exact = heads_verdict(A=attention, W=weights, exact_binary=True)
        assert (exact.verdict, exact.about) == ("TIE", "point")
    found = heads_verdict(A=MIXING, W=[[0.0]], residual=False)
    assert (found.verdict, found.rho_consensus, found.rho_quotient) == ("TIE", 0, 0)
    alone = heads_verdict(A=[[[1.0]]] * 2, W=[[[0.25]]] * 2)
    assert (alone.verdict, alone.rho_consensus, alone.rho_quotient) == ("TRIVIAL", 1.5, None)
    assert alone.status == "certified" and "one token only" in alone.reason


@settings(max_examples=40)
@drawn(seed=SEEDS, n=st.integers(1, 4), d=st.integers(1, 3), heads=st.integers(2, 3))
@example(seed=221741, n=2, d=1, heads=2)
def test_E3_heads_of_one_attention_are_one_head(seed, n, d, heads):
    """sum_h A X W_h = A X (sum_h W_h), and A cut in two halves: every field of the answer."""
    rng = random.Random(seed)
    rows = [[rng.randint(0, 3) for _ in range(n)] for _ in range(n)]
    A = [
        [Fraction(x + (i == j), sum(row) + 1) for j, x in enumerate(row)]
        for i, row in enumerate(rows)
    ]
    draw = [[[rng.randint(-4, 2) for _ in range(d)] for _ in range(d)] for _ in range(heads)]
    X0 = [[rng.randint(-2, 2) for _ in range(d)] for _ in range(n)]
    one = [[Fraction(sum(W[i][j] for W in draw), 3) for j in range(d)] for i in range(d)]
    W = [[[Fraction(x, 3) for x in row] for row in each] for each in draw]
    alone = verdict(A=A, W=one, X0=X0, depth=[1, 70]).to_json_object()
    found = heads_verdict(A=[A] * heads, W=W, X0=X0, depth=[1, 70]).to_json_object()
    # A fraction is written where it is short, and neither has a gradient of several heads.
    for left_out in ("reason", "distance", "distance_exact", "hfc_lfc_squared", "dominant"):
        alone.pop(left_out, None), found.pop(left_out, None)
    # Heads have no eigenvectors of one A, from which a rank, a limit or an angle may follow.
    for name in ("limit_rank", "tends_to", "limit", "limit_exact", "cos_min", "cos_mean"):
        if found.get(name) is None:
            alone.pop(name, None), found.pop(name, None)
    pairs = zip(found.pop("cosine_limits") or (), alone.pop("cosine_limits") or (), strict=True)
    assert all(one == other for one, other in pairs if one["tends_to"] is not None)
    # One writes 0.75000000000000000 where the other knows that it is 3/4.
    for answer in (alone, found):
        answer |= {k: Fraction(x) for k, x in answer.items() if k.endswith("_exact")}
    assert found == alone


def test_E3_a_head_may_part_the_tokens_further_than_all_together():
    eye, pair = np.eye(3), np.array([[1, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]])
    found = heads_verdict(A=np.array([eye, pair]), W=np.array([[[0.5]], [[0.25]]]))
    assert "of every A_h occurs at least 2 times (2 groups" in found.reason


@settings(max_examples=25)
@drawn(seed=SEEDS, n=st.integers(2, 4), d=st.integers(1, 2), heads=st.integers(2, 3))
def test_E3_floats_and_the_fractions_that_they_are_agree(seed, n, d, heads):
    rng = np.random.default_rng(seed)
    A, W = rng.dirichlet(np.ones(n), size=(heads, n)), rng.standard_normal((heads, d, d))
    X0 = rng.standard_normal((n, d))
    cell, point = (
        heads_verdict(A=A, W=W, X0=X0, depth=[5, 500], exact_binary=exact)
        for exact in (False, True)
    )
    assert (cell.status, point.status) == ("certified", "certified")
    assert (cell.verdict, cell.verdict_x0) == (point.verdict, point.verdict_x0)
    if cell.tends_to is not None:
        assert cell.tends_to == point.tends_to
    if cell.limit is not None:
        assert cell.limit == pytest.approx(point.limit, rel=1e-6)
    for depth in (5, 500):
        assert cell.hfc_lfc[depth].log == pytest.approx(point.hfc_lfc[depth].log, rel=1e-12)


@pytest.mark.parametrize("of", [np.asarray, torch.tensor, np.ndarray.tolist])
def test_E3_heads_may_come_as_a_list_of_what_one_head_is(of):
    W = np.array([[[0.5]], [[0.25]]])
    found = heads_verdict(A=[of(head) for head in LONG], W=[of(weights) for weights in W])
    assert found == heads_verdict(A=LONG, W=W)


def test_E3_many_heads_beyond_balls_are_iterated_and_say_how_they_are_known():
    rng = np.random.default_rng(0)
    A, W = rng.dirichlet(np.ones(24), size=(2, 24)), 0.05 * rng.standard_normal((2, 20, 20))
    X0 = rng.standard_normal((24, 20))
    found = heads_verdict(A=A, W=W, X0=X0, depth=[30])
    assert (found.status, found.verdict_x0) == ("estimated", "UNDECIDED")
    assert "dense_size=460 proves it" in found.reason
    sure = heads_verdict(A=A, W=W, dense_size=460)
    assert (sure.verdict, sure.status) == (found.verdict, "certified")
    state = X0
    for _ in range(30):
        state = state + sum(a @ state @ w for a, w in zip(A, W, strict=True))
    mean = state.mean(axis=0)
    ratio = np.linalg.norm(state - mean) / math.sqrt(24) / np.linalg.norm(mean)
    assert found.hfc_lfc[30].value == pytest.approx(ratio, rel=1e-11)


# --- the nearest other verdict ---


def gap_over_slope(A, H):
    """rho_C - rho_Q, the moduli of 1 + h against those of 1 + h a for a besides one 1, over its
    slope by relative changes of A, rows kept, and of H."""
    A, H = (torch.tensor(M, dtype=torch.float64, requires_grad=True) for M in (A, H))
    a, h = map(torch.linalg.eigvals, (A, H))
    rest = a[torch.arange(len(a)) != (a - 1).abs().argmin()]
    gap = (1 + h).abs().max() - (1 + torch.outer(rest, h)).abs().max()
    by_a, by_h = torch.autograd.grad(gap, (A, H))
    by_a = by_a - by_a.mean(dim=1, keepdim=True)
    return (gap.abs() / (by_a.norm() * A.norm() + by_h.norm() * H.norm())).item()


A3 = np.array([[0.1, 0.7, 0.2], [0.3, 0.1, 0.6], [0.8, 0.1, 0.1]])
B3 = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])


@pytest.mark.parametrize("A", [A3, B3], ids=["complex a", "real a"])
@cases(
    "H",
    [[0.5]],
    [[-0.7]],
    [[0.1, 0.3], [0.0, 0.5]],
    [[0.2, 0.4], [0.3, -0.8]],
    [[0.3, -0.7], [0.4, 0.2]],
    [[-0.9, 0.2, 0.1], [0.3, -0.5, 0.4], [0.1, -0.6, 0.2]],
)
def test_T2b_the_distance_to_a_tie_is_the_gap_over_its_steepest_slope(A, H):
    assert distance_to_tie(A, np.array(H)) == pytest.approx(gap_over_slope(A, H), rel=1e-9)


def test_T2b_consensus_that_dies_has_no_slope_of_its_own():
    """h = -1, a = -1/2: rho_C = 0, rho_Q = 3/2 with d(rho_Q) = dh/2 + da."""
    found = distance_to_tie(TURNED, np.array([[-1.0]]))
    assert found == pytest.approx(1.5 / (0.5 + np.linalg.norm(TURNED)), rel=1e-12)


@pytest.mark.filterwarnings("error")
@cases(
    "A, H, known",
    # Of [[h, 1], [0, h + gap]] the eigenvectors are as far from orthogonal as 1 / gap.
    *[(MIXING, [[0.5, 1.0], [0.0, 0.5 + gap]], known)
      for gap, known in ((0.0, False), (1e-14, False), (0.5e-12, False), (2e-12, True))],
    # A left eigenvector with entries near 1e300, no square of which is a float.
    (MIXING, [[1e-300, 1.0], [0.0, 1e-300]], False),
    (np.eye(1), [[0.5]], False),
    (MIXING, [[0.0]], False),
    (MIXING, [[2e150]], False),
    (MIXING, [[1e150]], True),
)  # fmt: skip
def test_T2b_there_is_no_distance_without_a_gradient(A, H, known):
    found = distance_to_tie(A, np.array(H))
    assert (found is not None) == known
    if known and len(H) == 1:
        # a = 1/2, and next to h itself the gap is h/2.
        assert found == pytest.approx(0.5 / (0.5 + np.linalg.norm(A)), rel=1e-12)


# --- short floats ---


def test_the_rounding_of_a_type_is_the_distance_to_the_next_number():
    for name, eps in room.EPS.items():
        assert eps == torch.finfo(getattr(torch, name)).eps


@pytest.mark.parametrize(("name", "digits"), [("float32", 12), ("float16", 5), ("bfloat16", 4)])
def test_numbers_of_half_the_digits_of_their_type_are_short(name, digits):
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
    # And beside numbers of no such type.
    for start in (None, [[1.0], [0.0]]):
        assert verdict(A=HALVES, H=[[-2.0]], X0=start).verdict == "TIE"
    for weights in ({"H": THIRD}, {"W": THIRD}, {"W": (THIRD, short)}, {"W": (short, THIRD)}):
        assert "A is float32: its rows were divided" in verdict(A=HALVES, **weights).reason


def test_weights_stay_what_they_are_beside_an_attention_of_less_precision():
    mixed = float32([[0.7, 0.3], [0.4, 0.6]])
    for A, W in ((HALVES, float32([[0.25, 0.5], [0.0, 1.0]])), (mixed, THIRD)):
        for given in ((None, W), (W.T, None)):
            (case, _), _ = room.rounded_layer(A, None, *given, None, False)
            assert np.array_equal(case.H, W.T)


def test_the_coarsest_of_the_types_counts():
    A = torch.tensor([[0.7, 0.3], [0.4, 0.6]])
    fine, coarse = torch.tensor([[1 / 3]]), torch.tensor([[1 / 3]]).bfloat16()
    for W, error in (((fine, fine), "1.2e-07"), ((fine, coarse), "7.8e-03"), (coarse, "7.8e-03")):
        assert f"known to {error} of itself" in verdict(A=A, W=W).reason


def test_T10_an_entry_is_known_to_a_unit_of_its_type_and_a_product_to_two():
    """|1 + h| beside |1 + h'| at a = -1: h and -h' are each known to 1.2 spacings, or to 2.4."""
    A, h = np.array([[0, 1], [1, 0]], np.float16), np.float16(0.3)
    for apart in (2, 3, 4, 5):
        H = np.diag([h, -(h + np.float16(apart) * np.spacing(h))])
        for W, least in ((H, 3), ((np.diag([np.float16(0.7)] * 2), H), 5)):
            word = "UNDECIDED" if apart < least else "NON_SMOOTHING"
            assert verdict(A=A, W=W).verdict == word


@pytest.mark.parametrize(("units", "accepted"), [(1.5, True), (2.5, False)])
def test_rows_may_be_off_by_two_units_of_their_type(units, accepted):
    A = np.array([[0.5 + units * 2.0**-10, 0.5], [0.25, 0.75]], dtype=np.float16)
    if accepted:
        assert verdict(A=A, H=[[0.5]]).verdict == "SMOOTHING"
    else:
        refuses("not row-stochastic", verdict, A=A, H=[[0.5]])


def test_every_row_has_to_sum_to_1_for_a_start():
    A = float32([[0.5, 0.5], [0.7, 0.3]])
    A[1, 0] += np.float32(2.0**-23)
    for asked in ({"X0": [[1.0], [2.0]]}, {"exact_binary": True}):
        with pytest.raises(InputError, match="X0, depth and exact_binary need an A that is known"):
            verdict(A=A, H=[[0.5]], **asked)
    wide = A.astype(float) / A.astype(float).sum(axis=1, keepdims=True)
    assert verdict(A=wide, H=[[0.5]], X0=[[1.0], [1.0]]).verdict_x0 == "TRIVIAL"


# --- attention as networks compute it ---

KINDS = (torch.float32, torch.float16, torch.bfloat16)


def towards_uniform(n: int, t: float) -> torch.Tensor:
    """(1 - t) 1 1^T / n + t I, with the eigenvalue t besides 1."""
    even = torch.full((n, n), 1 / n, dtype=torch.float64)
    return (1 - t) * even + t * torch.eye(n, dtype=torch.float64)


def softmax_case(seed: int, n: int = 6, d: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, n, generator=generator, dtype=torch.float64)
    return logits, torch.randn(d, d, generator=generator, dtype=torch.float64) / 2


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("seed", range(12))
def test_a_networks_softmax_has_the_verdict_of_the_exact_one_or_none(kind, seed):
    logits, W = softmax_case(seed, n=4 + seed)
    known = verdict(A=torch.softmax(logits, -1), W=W).verdict
    found = verdict(A=torch.softmax(logits.to(kind), -1), W=W)
    assert found.verdict in (known, "UNDECIDED")
    name = str(kind).removeprefix("torch.")
    assert f"A is {name}: its rows were divided by their sums in float64" in found.reason
    assert found.status == ("numerical" if found.verdict == "UNDECIDED" else "certified")
    if kind is torch.float32:
        assert found.verdict == known, "nothing of these is near a tie"


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_the_rounding_can_turn_is_undecided(kind):
    """The tie is at h = -2 / (1 + t), which is moved by less and by more than the rounding."""
    n, t, eps = 5, 0.3, room.EPS[str(kind).removeprefix("torch.")]
    A = towards_uniform(n, t)
    for factor, decided in ((0.1, False), (30.0, True)):
        h = -2 / (1 + t) * (1 - factor * eps)
        found = verdict(A=A.to(kind), H=[[h]])
        exact = verdict(A=A, H=[[h]]).verdict
        assert exact == "NON_SMOOTHING"
        assert found.verdict == (exact if decided else "UNDECIDED")
        assert found.distance is not None or decided


def test_a_batch_is_told_what_to_do():
    A = torch.softmax(torch.zeros(2, 6, 6), -1)
    refuses(r"A has shape \[2, 6, 6\].*heads_verdict", verdict, A=A, H=[[1.0]])
    refuses(r"W has shape \[3, 1, 1\]", lambda: verdict(A=[[1.0]], W=np.ones((3, 1, 1))))
