"""What is said of several streams is what iteration in fractions does, and bad mixings are refused.

`python -m tests.streams 10000` is the same over a night.
"""

import json
import math
import re
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest

import oversmoothing
from oversmoothing import InputError
from oversmoothing.theory.numbers.exact import to_fractions
from oversmoothing.theory.spectra.discs import Discs
from oversmoothing.theory.streams.stream_modes import (
    EnclosedRadii,
    agreement_depth,
    compare_moduli,
    contractions,
    largest_root,
)
from oversmoothing.theory.streams.stream_verdict import StreamVerdict, _balls, stream_verdict
from oversmoothing.theory.streams.streams import make_mixing, read_streams, roots_of
from tests.oracle.judging import RIGHT, UNDECIDED
from tests.support.cases import cases

from .comparing import CLOSE, run

SEED = 2026
AA = [["3/4", "1/4"], ["1/4", "3/4"]]
HALF = [["1/2", "1/2"], ["1/2", "1/2"]]


@pytest.mark.parametrize("first, count", [(0, 40), (40, 160)], ids=["few", "many"])
def test_what_is_said_of_drawn_cases_is_what_iteration_does(first, count):
    """And most are decided, and told by iteration: of few the shares would say little."""
    report = run(count, SEED, first)
    assert not report.bad, report.bad[:3]
    for name in ("verdict", "certified verdict") if count > 100 else ():
        # What is certified cannot be a tie without structure: those are left out by rights.
        every = report.count(name, RIGHT, UNDECIDED, CLOSE)
        assert report.count(name, UNDECIDED) < {"verdict": 0.02}.get(name, 0.35) * every
        assert report.count(name, CLOSE) < 0.05 * every


def said(R: Any, H: Any, A: Any = AA, **more: Any) -> StreamVerdict:
    return stream_verdict(read_streams(R=R, A=A, H=H, **more))


def test_the_ball_of_each_disc_holds_its_whole_component():
    discs = Discs(np.array([0.0, 1.0, 5.0]) + 0j, np.array([0.6, 0.6, 0.1]), np.array([0, 0, 1]))
    *joined, alone = _balls(discs)
    assert all(ball.contains(flint.acb(x)) for ball in joined for x in (-0.5, 1.5))
    assert not alone.contains(flint.acb(1))


@pytest.mark.parametrize("h", ["1/2", "-1/2", "-4/3", "-3/2", "0", "-1"])
def test_one_stream_is_the_layer_without_streams(h):
    alone = oversmoothing.verdict(A=AA, H=[[h]])
    found = said([[1]], [[h]], p=[1], q=[1])
    assert (found.verdict, found.rho_consensus) == (alone.verdict, alone.rho_consensus)
    assert found.rho_quotient == alone.rho_quotient


@pytest.mark.parametrize("h", ["1/2", "-1/2", "-1"])
def test_rotating_and_idle_streams_tie_where_their_modulus_is_largest(h):
    """R = I and p = 1: the streams that q does not read keep the eigenvalue 1 (T13c)."""
    identity = [[1, 0], [0, 1]]
    assert said(identity, [[h]]).verdict == ("SMOOTHING" if h == "1/2" else "TIE")
    assert (
        said(identity, [[h]], start="equal").verdict == oversmoothing.verdict(A=AA, H=[[h]]).verdict
    )


def test_a_doubly_stochastic_mixing_has_the_verdict_of_one_stream_above_its_idle_modulus():
    """R with the eigenvalues 1 and 3/4: h in [-1/4, 0) is strict, below a tie can be (T13d)."""
    R = [["7/8", "1/8"], ["1/8", "7/8"]]
    found = said(R, [["-1/4"]])
    assert found.band is not None and found.band.strict == (-0.25, 0.0)
    assert found.band.never_smoothing == (-1.0, 0.0)
    assert found.verdict == "NON_SMOOTHING" and found.rho_quotient == 7 / 8
    # -1/2: 1 + h a = 3/4 for a = 1/2, the idle modulus itself.
    assert said(R, [["-1/2"]]).verdict == "TIE"
    assert said(R, [["-3"]]).verdict == "SMOOTHING"


def test_the_mix_of_streams_in_the_dominant_mode_is_an_eigenvector():
    R, p, q, h = [[0, 1], [0, 0]], [1, 2], [1, 0], Fraction(2)
    found = said(R, [[str(h)]], p=p, q=q)
    (mode,) = found.dominant
    assert mode.streams is not None and mode.h == 2 and mode.a == 1
    w, M = np.array(mode.streams), np.array(R) + float(h) * np.outer(p, q)
    assert np.allclose(M @ w, mode.multiplier * w, atol=1e-14)


def test_streams_that_agree_are_told_from_those_that_do_not():
    mixed, apart = said(HALF, [["1/2"]]), said([[0, 1], [1, 0]], [["1/2"]])
    assert mixed.streams_become_one and mixed.disagreement == 0 and mixed.agree_from == 1
    # A swap: differences only change sign, the rest grows.
    assert apart.streams_become_one and apart.disagreement == 1 and apart.agree_from is None
    assert said([[1, 0], [0, 1]], [["-1/2"]]).streams_become_one is False


def test_the_depth_of_agreement_is_the_least():
    R = to_fractions([["7/8", "1/8"], ["1/8", "7/8"]], "R")
    depth = agreement_depth(make_mixing(R), 1e-6)
    assert depth == math.ceil(math.log(1e-6) / math.log(0.75))
    assert agreement_depth(make_mixing([[0, 1], [1, 0]]), 1e-6) is None
    with pytest.raises(oversmoothing.InputError, match="between 0 and 1"):
        agreement_depth(make_mixing(R), 2.0)
    with pytest.raises(oversmoothing.InputError, match="multiple of 1"):
        agreement_depth(make_mixing(R, p=[1, 2]), 1e-3)


def test_contractions_of_changing_mixings_bound_the_differences():
    rng = np.random.default_rng(3)
    layers = [rng.dirichlet(np.ones(4), size=4) for _ in range(12)]
    x = rng.standard_normal((4, 3))
    first = _diameter(x)
    for R, found in zip(layers, contractions(layers), strict=True):
        # Any branch, the same for every stream.
        x = R @ x + 50 * rng.standard_normal(3)
        assert _diameter(x) <= found.of_product * first * (1 + 1e-9) + 1e-12
        assert found.of_product <= found.product_of_each
    assert found.depth == 12


def _diameter(x: np.ndarray) -> float:
    return float(max(np.linalg.norm(a - b) for a in x for b in x))


def test_equal_moduli_of_different_polynomials_are_equal():
    # 2^(1/3) in modulus: three roots of x^3 - 2, six of x^6 + 4; and sqrt 2 of x^2 - 2x + 2.
    three, six = (roots_of(flint.fmpq_poly(c)) for c in ([-2, 0, 0, 1], [4, 0, 0, 0, 0, 0, 1]))
    pair = roots_of(flint.fmpq_poly([2, -2, 1]))
    assert {compare_moduli(x, y) for x in three for y in six} == {0}
    assert {compare_moduli(x, y) for x in three for y in pair} == {-1}


def test_a_double_root_is_enclosed():
    for coefficients in ([1, -2, 1], [-1, 3, -3, 1]):
        found = largest_root(flint.acb_poly(coefficients))
        assert found.contains(1) and float(found.rad()) < 1e-2


@cases(
    "change, words",
    ({"R": [[1, 2]]}, "R has shape"),
    ({"R": [["1/2", "1/3"], ["1/2", "1/2"]], "mixing": "row-stochastic"}, "row 0 sums to"),
    ({"R": [["1/2", "1/2"], ["1/4", "3/4"]], "mixing": "doubly-stochastic"}, "column 0 sums"),
    ({"R": [[1, "1/9"], [0, 1]], "mixing": "identity"}, "not identity: R.0, 1. = 0.111"),
    ({"R": [[1, 1], [0, 1]], "mixing": "orthogonal"}, "not orthogonal: R.T R is 1 from I"),
    ({"R": [[2, -1], [0, 1]], "mixing": "row-stochastic"}, "is negative"),
    ({"mixing": "magic"}, "none of identity"),
    ({"p": [1, 2, 3]}, "p must be a list of 2 numbers"),
    ({"q": [[1], [2]]}, "q must be a list of 2 numbers"),
    ({"q": [1.0, float("nan")]}, "NaN"),
    ({"start": "cold"}, "none of generic, equal"),
    ({"R": np.eye(17)}, "16 are the most"),
    ({"X0": [[1, 2], [3, 4], [5, 6]]}, "X0 has shape"),
    ({"X0": [[[1], [2]], [[3], [5]]], "start": "equal"}, "copies of one X0"),
)
def test_mixing_that_is_not_what_it_claims_to_be_is_refused(change, words):
    with pytest.raises(oversmoothing.InputError, match=words):
        read_streams(**{"R": HALF, "A": AA, "H": [["1/2"]], **change})


def test_degenerate_cases_have_an_answer():
    assert said(HALF, [["1/2"]], A=[[1]]).verdict == "TRIVIAL"
    assert said([[0, 0], [0, 0]], [["1/2"]], q=[0, 0]).verdict == "TIE"


def test_entries_near_the_largest_float_have_an_answer_or_a_sentence():
    """Their power of two is beyond the floats where no eigenvalue is: that made NaN of them."""
    large, A = 1.7e308, [[0.5, 0.5], [0.25, 0.75]]
    R = [[0.5, 0.5], [0.3, 0.7]]
    # h = large (-1 +- i sqrt 3) / 2, a = 1/4: radii |h| and |h| / 4.
    found = said(R, [[0.0, -large], [large, -large]], A=A)
    assert found.verdict == "SMOOTHING" and found.rho_consensus == pytest.approx(large)
    assert found.rho_quotient == pytest.approx(large / 4)
    with pytest.raises(InputError, match="eigenvalue beyond the range of binary64"):
        said(R, [[large, large], [large, 1.6e308]], A=A)


@cases(
    "more, said",
    ({"R": [[0.0, 1.0, -0.3], [-1.5, 1e155, 0.5], [4.0, 4.0, 0.5]]}, "R has an entry beyond"),
    ({"R": [[1.7e308, 1.7e308], [0.5, 0.5]]}, "R has an entry beyond 1e[+]100: scale it"),
    ({"p": ["1e200", "1e200"]}, "p has an entry beyond"),
    ({"X0": [["1e400"], ["1"]]}, "X0 has an entry beyond the range of binary64"),
    ({"H": [[1e300]], "p": [1e100, 1.0]}, "H times p and q is beyond the range"),
)
def test_numbers_beyond_floats_are_refused_in_a_sentence(more, said, tmp_path, told):
    case = tmp_path / "case.json"
    case.write_text(json.dumps({"A": AA, "H": [["-1/4"]], "R": HALF} | more))
    assert re.search(said, told(2, "verdict", case))


def test_a_gain_below_the_floats_has_no_band():
    small = ["1e-200", "1e-200"]
    assert said(HALF, [["-1/4"]], p=small, q=small).verdict in ("SMOOTHING", "NON_SMOOTHING")


def test_the_command_decides_a_case(tmp_path, told):
    case = tmp_path / "case.json"
    case.write_text(
        json.dumps({"A": AA, "H": [["-1/4"]], "R": HALF, "mixing": "doubly-stochastic"})
    )
    found = json.loads(told(0, "verdict", case, "--json"))
    assert found["verdict"] == "NON_SMOOTHING" and found["streams_become_one"] is True
    case.write_text(json.dumps({"A": AA, "H": [["-1/4"]], "R": HALF, "mixing": "orthogonal"}))
    assert "not orthogonal" in told(2, "verdict", case)


def test_T13a_no_branch_has_part_in_differences_where_H_is_0_and_one_has_where_it_is_nilpotent():
    """R [[1/3, 2/3], [2/3, 1/3]]: -1/3 is left; H = [[0, 1], [0, 0]] feeds unequal p for ever."""
    R, mixed = [["1/3", "2/3"], ["2/3", "1/3"]], {"p": ["-3/2", "3/2"], "q": [-1, 2]}
    still = said(R, [[0]], **mixed)
    assert (still.disagreement, still.streams_become_one) == (pytest.approx(1 / 3), True)
    fed = said(R, [[0, 1], [0, 0]], **mixed)
    assert (fed.disagreement, fed.streams_become_one) == (1.0, False)


@pytest.mark.parametrize("h, verdict", [("-2", "SMOOTHING"), ("-4", "SMOOTHING"), ("0", "TIE")])
def test_copies_count_the_modes_that_they_reach_under_each_attention(h, verdict):
    """R has 3 on (1, -1), which copies reach through p alone: not where h a = 0."""
    R, mixed = [[2, -1], [-1, 2]], {"p": [1, 0], "q": [1, 0], "start": "equal"}
    found = said(R, [[h]], HALF, **mixed)
    assert (found.verdict, found.rho_quotient) == (verdict, 1.0)
    case = read_streams(R=R, A=[[0.5, 0.5]] * 2, H=[[float(h)]], **mixed)
    assert stream_verdict(case, certified=True).verdict == "UNDECIDED"
    # A Jordan block of 0 reaches it: the second feature brings p into the first.
    assert said(R, [["0", "1"], ["0", "0"]], **mixed).rho_quotient == 3.0


@pytest.mark.parametrize("more", [
    {"R": [[1, 0], [0, 1]], "H": [[0.0, 1], [0, 0]]},
    {"R": [[-0.5, -1], [1, -2.5]], "H": [[0.0]], "p": [-5, -3]},
    {"R": [[1, 0], [0, 1]], "H": [[-1.0]], "q": [2, -2]},
])  # fmt: skip
@pytest.mark.parametrize("a", [0.75, 0.7])
def test_streams_do_not_stay_apart_beside_a_state_with_a_jordan_block(more, a):
    """The state grows like L rho^L, differences like rho^L; 0.75 exactly, 0.7 in balls."""
    case = read_streams(A=[[a, 1 - a], [1 - a, a]], **more)
    found = stream_verdict(case, certified=a == 0.7)
    assert found.disagreement and found.streams_become_one is None
    # Without a Jordan block, R = I and H = 0, they do.
    still = read_streams(R=[[1, 0], [0, 1]], A=[[a, 1 - a], [1 - a, a]], H=[[0.0]])
    assert stream_verdict(still, certified=a == 0.7).streams_become_one is False


@cases(
    "shared, consensus, quotient, repeated, verdict",
    (3, 1, 2, False, "TIE"), (3, 2, 1, False, "TIE"), (1, 3, 2, False, "SMOOTHING"),
    (2, 2.05, 1, False, "UNDECIDED"), (2, 1, 2.05, False, "UNDECIDED"),
    (1, 2, 1.5, True, "TIE"), (1, 2.05, 2, True, "UNDECIDED"), (1, 2, 3, True, "NON_SMOOTHING"),
)  # fmt: skip
def test_radii_known_to_a_tenth_decide_where_they_are_apart(
    shared, consensus, quotient, repeated, verdict
):
    balls = (flint.arb(x, 0.1) for x in (shared, consensus, quotient))
    found = EnclosedRadii(*balls, repeated=repeated)
    assert found.outcome() == verdict
    # Where 1 repeats in A, differences have all that consensus has.
    assert found.rho_quotient.contains(max(shared, quotient, consensus if repeated else 0))


@pytest.mark.parametrize("a", [0.75, 0.7])
@pytest.mark.parametrize("R, q", [
    ([[0.9, -0.1, 0.2], [0.3, 0.8, -0.1], [-0.1, 0.15, 0.95]], [1, 1, 1]),
    ([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]], [0.1, 0.2, -0.3]),
])  # fmt: skip
def test_sums_that_rounding_alone_parts_do_not_part_the_streams(R, q, a):
    """R 1 = 1 and q^T 1 = 0 in decimals, not in binary64: both are in question."""
    case = read_streams(R=R, q=q, A=[[a, 1 - a], [1 - a, a]], H=[[0.3]])
    found = stream_verdict(case, certified=a == 0.7)
    assert (found.disagreement, found.streams_become_one) == (None, None)
    assert said([[0.9, 0.2], [0.3, 0.9]], [["3/10"]]).streams_become_one is False


@pytest.mark.parametrize("a", [0.75, 0.7])
def test_T13a_equal_streams_that_lead_say_nothing_of_their_differences(a):
    """q^T 1 = 0: equal streams go like 3/4, differences like 1/4 + 3/10, or so."""
    more: dict[str, Any] = {"R": [[0.5, 0.25], [0.25, 0.5]], "p": [1, 2], "q": [1, -1]}
    case = read_streams(A=[[a, 1 - a], [1 - a, a]], H=[[-0.3]], **more)
    assert stream_verdict(case, certified=a == 0.7).streams_become_one is None


def test_a_radius_of_which_rounding_leaves_no_digit_is_none_and_said_by_its_bounds():
    # 1 + q p h a = 1 - 1: 5.6e-17 as written, 5e-15 the middle of what float64 knows.
    found = said([[1.0]], [[-8 / 3]], A=[[0.375, 0.625], [0.625, 0.375]], q=[-1.5])
    assert found.verdict == "SMOOTHING" and found.rho_quotient is None and found.rate is None
    assert re.search(r"rho_C = 5, rho_Q = 0 to \S+e-1[45];", str(found))
