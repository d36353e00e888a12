"""T2, T3: the one comparison of rho_C with rho_Q, and how an answer is said."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import oversmoothing
from oversmoothing.theory.depth.ratios import Ratio
from oversmoothing.theory.support.sizes import DEPTH
from oversmoothing.theory.verdict.answer import Verdict
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.verdict import check_depths, verdict
from tests.support.refusals import refuses
from tests.support.tables import floats, matrix


def test_an_outcome_is_its_name():
    assert json.dumps(list(Outcome)) == json.dumps([one.name for one in Outcome])
    assert f"{Outcome.TIE}" == "TIE" == Outcome.TIE


def test_a_verdict_reads_as_sentences():
    found = verdict(A=matrix("AA"), H=[["-3/2"]], X0=[[1], [2]], depth=[1, 100])
    lines = str(found).splitlines()
    # The question, the answer and how it is known, the numbers, why, and the depths asked.
    assert lines[0] == "Does it smooth?" and lines[1].startswith("  SMOOTHING: yes, from almost ")
    assert lines[1].endswith(" [proved: exact arithmetic]")
    assert lines[2] == "  for this X_0: SMOOTHING"
    assert "rho_C = 0.5, rho_Q = 0.25: rate rho_Q/rho_C" in lines[3]
    assert " = 0.5 a layer (HFC/LFC falls by this factor in the long run), margin" in lines[3]
    assert lines[4].startswith("  consensus dominates: ")
    assert lines[-2] == "  after 1 layer: HFC/LFC = 0.167, squared 1/36"
    assert lines[-1] == "  after 100 layers: HFC/LFC = 2.63e-31"
    empty = oversmoothing.verdict(A=[[1]], H=[[-1]], X0=[[1]], depth=1)
    assert str(empty).endswith("after 1 layer: no value: the state is 0")


# Doubly stochastic, where the mean is that of consensus (T3), or not, where it follows them (T1f).
APART = {
    "3/4 1/4; 1/4 3/4": ("", "tends to infinity"),
    "7/10 3/10; 2/5 3/5": ("; HFC/LFC itself levels off", "tends to 7"),
}


@pytest.mark.parametrize("X0", [None, [[1], [2]]])
@pytest.mark.parametrize("A", APART)
def test_where_differences_outgrow_consensus_it_is_said_what_HFC_LFC_does(A, X0):
    """HFC/LFC need not grow by the rate; where it does not, the line of the rate says so."""
    said, (itself, limit) = str(oversmoothing.verdict(A=matrix(A), H=[["-1/2"]], X0=X0)), APART[A]
    assert f"a layer (differences outgrow consensus by it{itself}), margin" in said
    assert f"HFC/LFC {limit}, rank of the limit 1." in said
    assert "falls" not in said and "may level off" not in said


def test_HFC_LFC_may_level_off_where_it_is_not_known_what_it_does():
    """Two equal eigenvalues of A lead: the limit depends on X_0, and is not told of floats."""
    A = floats("0.7 0.18 0.12; 0.3 0.58 0.12; 0.3 0.18 0.52")
    found = oversmoothing.verdict(A=A, H=[[-0.7]])
    assert found.verdict == "NON_SMOOTHING" and found.tends_to is None
    assert "outgrow consensus by it; HFC/LFC itself may level off), margin" in str(found)


def test_what_replaces_the_layer_object_is_said():
    with pytest.raises(AttributeError, match=r"oversmoothing\.verdict gives both spectra"):
        _ = oversmoothing.Update


# --- the object, and the forms of input ---


def test_rate_and_margin_are_unknown_where_a_radius_is_and_infinite_where_consensus_dies():
    gone = verdict(A=[[1, 0], [0, 1]], H=[[-1]])
    assert gone.rate is None and "rate rho_Q/rho_C = 0/0, which is no number," in str(gone)
    for *radii, rate, margin in (
        (None, 0.5, None, None), (0.5, None, None, None), (None, None, None, None),
        (2.0, 0.5, 0.25, 1.5), (0.0, 0.5, math.inf, -0.5),
        # 0/0: every mode of the layer is gone at once (A = I, H = -I).
        (0.0, 0.0, None, 0.0),
    ):  # fmt: skip
        found = Verdict("UNDECIDED", "certified", *radii, "")
        assert (found.rate, found.margin) == (rate, margin)


def test_the_json_object_of_a_verdict_has_every_field_and_no_infinity():
    found = Verdict(
        "NON_SMOOTHING", "exact", 0.0, 0.5, "why", "infinity", math.inf, 1, "NON_SMOOTHING",
        {0: Ratio(0.5, -0.25, Fraction(1, 4)), 3: Ratio(math.inf, math.inf), 4: Ratio(None, None),
         5: Ratio(0.0, -math.inf)}, True,
    )  # fmt: skip
    unknown = ("distance", "shows_from", "token_growth", "cosine_limits", "cos_min", "cos_mean")
    assert found.to_json_object() == {
        "schema_version": 1, "verdict": "NON_SMOOTHING", "status": "exact", "about": "point",
        "rho_consensus": 0.0, "rho_quotient": 0.5, "rate": "inf", "margin": -0.5, "reason": "why",
        "tends_to": "infinity", "limit": "inf", "limit_rank": 1, "dominant": [],
        "verdict_x0": "NON_SMOOTHING", "hfc_lfc_squared": {"0": "1/4"},
        "hfc_lfc": {"0": 0.5, "3": "inf", "4": None, "5": 0.0},
        "log_hfc_lfc": {"0": -0.25, "3": "inf", "4": None, "5": "-inf"},
    } | dict.fromkeys(unknown)  # fmt: skip
    bare = Verdict("TRIVIAL", "certified", 1.0, None, "")
    assert "hfc_lfc" not in bare.to_json_object() and bare.to_json_object()["rate"] is None


def test_a_verdict_prints_as_its_answer_without_the_spectra():
    found = verdict(A=floats("AA"), H=[[0.5]])
    text = repr(found)
    assert text.startswith("Verdict(verdict='SMOOTHING'") and "Spectrum" not in text
    assert found.attention is not None and found.value is not None


def test_a_verdict_says_whether_it_is_about_the_numbers_or_all_that_rounds_to_them():
    # The float nearest to -4/3 is on one side of the tie, the fraction on it.
    A = floats("AA")
    cell = verdict(A=A, H=[[-4 / 3]])
    point = verdict(A=A, H=[[-4 / 3]], exact_binary=True)
    assert (cell.verdict, cell.about, cell.status) == ("UNDECIDED", "cell", "numerical")
    assert (point.verdict, point.about, point.status) == ("NON_SMOOTHING", "point", "certified")
    assert "rounding leaves" in cell.reason and "rounding leaves" not in point.reason
    alike = verdict(A=A, H=[[-4 / 3]], X0=[[1.0], [1.0]], exact_binary=True)
    assert "This X_0 is at consensus already" in alike.reason
    exact = verdict(A=matrix("AA"), H=[["-4/3"]])
    assert (exact.verdict, exact.about, exact.status) == ("TIE", "point", "exact")
    with pytest.warns(DeprecationWarning, match="exact_binary"):
        assert verdict(A=A, H=[[-4 / 3]], certified=True).to_json_object()["about"] == "point"


def test_logits_stand_for_the_softmax_of_their_rows():
    logits = np.array([[0.0, 1.0], [2.0, -1.0]])
    weights = np.exp(logits)
    A, X0 = weights / weights.sum(axis=1, keepdims=True), [[1.0], [2.0]]
    expected = verdict(A=A, H=[[-0.5]], X0=X0, depth=2)
    factors = (np.array([[-0.5]]), np.array([[1.0]]))
    for given in ({"H": [[-0.5]]}, {"W": [[-0.5]]}, {"W": factors}):
        found = verdict(logits=logits, **given, X0=X0, depth=2)
        assert found.verdict == expected.verdict and found.has_x0
        assert found.rho_quotient == pytest.approx(expected.rho_quotient)
        assert found.hfc_lfc[2].value == pytest.approx(expected.hfc_lfc[2].value)


def test_T11_5_depths_are_whole_numbers_up_to_the_largest():
    assert check_depths([0.0, 1e6, 2, float(DEPTH), DEPTH]) == [0, 2, 10**6, DEPTH]
    assert check_depths(3) == [3] and check_depths(()) == [] and check_depths(0) == [0]
    assert check_depths([5, np.int64(2), 5]) == [2, 5] and check_depths(iter((4, 1))) == [1, 4]
    for bad in (0.5, -1, -1.0, True, 1.5, "3", float("nan"), [1e6, -1], None):
        refuses("must be an integer", check_depths, bad)
    for far in (DEPTH + 1, 2.0 * DEPTH, [3.0, DEPTH + 1]):
        refuses("the most that is computed", check_depths, far)


def test_radii_are_printed_unless_rounding_leaves_no_digit_and_no_margin_where_it_decides():
    heads = oversmoothing.heads_verdict(A=np.array([floats("AA")] * 2), W=np.full((2, 1, 1), 0.5))
    assert "rho_C = 2, rho_Q = 1.5" in str(heads)
    # rho_C = |1 - 1| has no digit; the verdict is open, since -1 stands for numbers below it too.
    left_open = verdict(A=[[1.0, 1e-17], [1e-17, 1.0]], H=[[-1.0]])
    assert left_open.vague and left_open.verdict == "UNDECIDED"
    assert "margin" not in str(left_open)
    decided = verdict(A=floats("AA"), H=[[-1.0]])
    assert decided.verdict == "NON_SMOOTHING" and "margin" in str(decided)
