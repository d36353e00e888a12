"""T4, T14: what is said of one X_0 and of generic ones where floats and sizes have an end."""

from __future__ import annotations

from fractions import Fraction

import pytest

from oversmoothing.theory.layer.layer import Layer, read_layer
from oversmoothing.theory.spectra.algebraic import CloseRootsError
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import DEPTH
from oversmoothing.theory.verdict import decide, verdict as verdicts
from oversmoothing.theory.verdict.answer import AT_CONSENSUS, CLOSE_EIGENVALUES, TOO_MANY_MODES
from oversmoothing.theory.verdict.by_discs import cell_discs
from oversmoothing.theory.verdict.decide import compare_radii, limits_of_start
from oversmoothing.theory.verdict.disc_limits import UNKNOWN, Limits
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.verdict import check_depths, verdict

FLOATS = [[0.7, 0.3], [0.4, 0.6]]
EXACT = [["7/10", "3/10"], ["2/5", "3/5"]]
ZERO = Limits("zero", 0.0, 1)


def of_start(case, start, generic=None):
    compared = compare_radii(case)
    return limits_of_start(case, start, compared, generic or compared.outcome)


# --- sizes ---


@pytest.mark.parametrize(
    ("n", "d", "looked"), [(8, 3, True), (6, 4, True), (5, 5, False), (8, 4, False)]
)
def test_T14_tokens_of_short_floats_are_looked_at_up_to_24_entries(n, d, looked):
    A = [[1.0] + [0.0] * (n - 1) for _ in range(n)]
    H = [[0.5 * (i == j) for j in range(d)] for i in range(d)]
    found = verdict(A=A, H=H, X0=[[float(i + j) for j in range(d)] for i in range(n)])
    assert (found.token_growth is not None) == looked


def test_a_start_too_large_to_decompose_is_generic_where_it_contains_every_mode(monkeypatch):
    monkeypatch.setattr(decide, "start_content", lambda *_, **__: None)
    generic, start = read_layer(EXACT, [["1/2"]], [[1], [2]])
    found = of_start(generic, start)
    assert (found.limits, found.outcome) == (ZERO, Outcome.SMOOTHING)
    # (1, 1) and nothing beside it, of one token too.
    for A, X0 in ((EXACT, [[3], [3]]), ([[1]], [[3]])):
        same = of_start(*read_layer(A, [["1/2"]], X0), Outcome.SMOOTHING)
        assert (same.limits, same.outcome, same.words) == (ZERO, Outcome.TRIVIAL, AT_CONSENSUS)
    # The difference alone: consensus is missing.
    open_ = of_start(*read_layer(EXACT, [["1/2"]], [[3], [-4]]))
    assert open_ == decide.OfStart(UNKNOWN, Outcome.UNDECIDED, TOO_MANY_MODES)
    assert decide._drawn_limits(generic, decide.np.random.default_rng(1)) is UNKNOWN
    short, start = read_layer([[0.75, 0.25], [0.25, 0.75]], [[0.5]], [[1.0], [2.0]])
    assert decide._with_short_numbers(open_, short, start) == open_


# --- floats ---


def test_what_eigenvectors_leave_open_is_what_the_cell_says():
    """Two pairs of tokens and a Jordan block: the rank is 1, the verdict is left open."""
    A = [[0.7, 0.3, 0, 0], [0.4, 0.6, 0, 0], [0, 0, 0.6, 0.4], [0, 0, 0.1, 0.9]]
    case, start = read_layer(A, [[0.3, 1.0], [0.0, 0.3]], [[1.0, 0], [2.0, 0], [3.0, 0], [4.0, 0]])
    found = of_start(case, start)
    assert found.outcome is Outcome.UNDECIDED and found.limits == Limits(None, None, 1)
    causal = [[1, 0, 0], [0.7, 0.3, 0], [0.2, 0.2, 0.6]]
    block, start = read_layer(causal, [[-0.9, 1.0], [0, -0.9]], [[1.0, 1], [-1, -1], [0, 0]])
    decided = of_start(block, start)
    assert decided.outcome is Outcome.NON_SMOOTHING and decided.words == ""
    assert decided.limits.tends_to == "constant"


@pytest.mark.parametrize(
    ("H", "some", "each"),
    [
        ([[0.5]], True, True),
        ([[-1.0]], False, False),
        ([[-1.0, 1.0], [0.0, -1.0]], False, False),
        ([[-1.0, 0.0], [0.0, 0.5]], True, False),
        ([[1.0]], True, True),
        ([[-2.0, 0.0], [0.0, -2.0]], True, True),
    ],
)
def test_T11_1_consensus_lasts_where_1_plus_h_is_not_0(H, some, each):
    case = Layer.of(FLOATS, H)
    cell = cell_discs(case)
    assert decide._lasts(case, cell) == some
    assert decide._lasts(case, cell, all_modes=True) == each
    exact = [[Fraction(x) for x in row] for row in H]
    assert decide._lasts(Layer.of(EXACT, exact), None)


def test_T11_1_a_start_at_consensus_whose_modes_may_die_out_is_left_open(monkeypatch):
    monkeypatch.setattr(decide, "start_content", lambda *_, **__: None)
    for H, outcome, limits, words in (
        ([[0.5]], Outcome.TRIVIAL, ZERO, AT_CONSENSUS),
        ([[-1.0]], Outcome.UNDECIDED, UNKNOWN, TOO_MANY_MODES),
        ([[-1.0, 0.0], [0.0, 0.5]], Outcome.UNDECIDED, UNKNOWN, TOO_MANY_MODES),
    ):
        found = of_start(*read_layer(FLOATS, H, [[2.0] * len(H)] * 2))
        assert (found.outcome, found.limits, found.words) == (outcome, limits, words)


# --- eigenvalues too close to part, short floats, depths ---


def test_eigenvalues_too_close_to_part_leave_everything_open(monkeypatch):
    def refuses(*_):
        raise CloseRootsError("close")

    monkeypatch.setattr(verdicts, "compare_radii", refuses)
    for X0, verdict_x0 in ((None, None), ([[1], [2]], "UNDECIDED")):
        found = verdict(A=EXACT, H=[["1/2"]], X0=X0, depth=[0])
        assert (found.verdict, found.status, found.verdict_x0) == ("UNDECIDED", "exact", verdict_x0)
        assert found.rho_consensus is None and found.rho_quotient is None
        assert found.reason.startswith(CLOSE_EIGENVALUES) and (0 in found.hfc_lfc) == bool(X0)


def test_T4_short_floats_are_fractions_where_floats_leave_a_limit_open():
    """A Jordan block of h = -1: the verdict is known in floats, the limit in fractions."""
    half = [[0.5, 0.5], [0.5, 0.5]]
    found = verdict(A=half, H=[[-1.0, -1.25], [0.0, -1.0]], X0=[[2.0, -1.0], [-2.0, 0.0]])
    assert (found.verdict, found.tends_to, found.limit_rank) == ("NON_SMOOTHING", "infinity", 1)


def test_T11_5_depths_are_whole_numbers_up_to_the_largest():
    assert check_depths([0.0, 1e6, 2, float(DEPTH), DEPTH]) == [0, 2, 10**6, DEPTH]
    for bad in (0.5, -1.0, True, "3", float("nan"), [1e6, -1]):
        with pytest.raises(InputError, match="must be an integer"):
            check_depths(bad)
    for far in (DEPTH + 1, 2.0 * DEPTH, [3.0, DEPTH + 1]):
        with pytest.raises(InputError, match="the most that is computed"):
            check_depths(far)
