"""T4e, T14e-T14h: the sentences of a verdict, by hand."""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest

import oversmoothing
from oversmoothing.commands.main import main
from oversmoothing.commands.options import table_text
from oversmoothing.simulations.drawing.wording import as_html, signed
from oversmoothing.theory.depth.onset import Onset
from oversmoothing.theory.depth.ratios import Ratio
from oversmoothing.theory.layer.layer import EXACT_SIZE
from oversmoothing.theory.numbers.rounding import ratio_text
from oversmoothing.theory.verdict.answer import announced, limit_words, number, shown, token_words
from oversmoothing.theory.verdict.by_cells import LARGEST_SIDE
from oversmoothing.theory.verdict.cosines import OSCILLATES, UNDEFINED, TokenLimits
from oversmoothing.theory.verdict.leading import TokenGrowth
from oversmoothing.theory.verdict.limits import Limits
from oversmoothing.theory.verdict.stages import BALL_SIZE
from oversmoothing.theory.verdict.verdict import verdict
from tests.support.cases import cases
from tests.support.tables import floats, matrix
from tests.theory.test_cosines_by_hand import HALF, constant, periodic


@pytest.mark.parametrize(("H", "does"), [("0 1; 0 0", "tends to 0"), ("0", "tends to a constant")])
def test_at_a_tie_what_HFC_LFC_does_stands_in_the_first_lines(H, does):
    """T6b; generic first, then for one X_0."""
    A, H = matrix("FLAT"), matrix(H)
    lines = str(verdict(A=A, H=H)).splitlines()
    assert "does not decide" in lines[1] and lines[2] == f"  from almost every X_0 HFC/LFC {does}"
    X0 = [["1", "2"][: len(H)], ["3", "5"][: len(H)]]
    assert f"  for this X_0: TIE: HFC/LFC {does}" in str(verdict(A=A, H=H, X0=X0)).splitlines()
    assert "not decide" not in str(verdict(A=A, H=matrix("1")))


@cases("H, layer", ("-1", 1), ("-1 1 0; 0 -1 1; 0 0 -1", 3), ("-1 1 0; 0 -1 0; 0 0 -1", 2))
def test_where_every_state_becomes_exactly_0_nothing_is_left_to_decide(H, layer):
    """A = I and every h = -1: I + H (x) A is nilpotent; its largest Jordan block says from where.

    Radii that are only too small for a float are no zeros.
    """
    I2, X0 = matrix("1 0; 0 1"), np.arange(1, 7).reshape(2, 3)[:, : len(matrix(H))].tolist()
    found = verdict(A=I2, H=matrix(H), X0=X0, depth=[layer - 1, layer])
    assert f"From layer {layer} on every state is exactly 0." in found.reason
    assert "both become exactly 0, from every X_0" in str(found).splitlines()[1]
    assert "L^" not in found.reason and "not decide" not in str(found)
    assert [ratio.value is None for ratio in found.hfc_lfc.values()] == [False, True]
    tiny = str(verdict(A=I2, H=[[f"-{10**400 - 1}/{10**400}"]]))
    assert "go like L^0" in tiny and "exactly 0" not in tiny and "does not decide" in tiny


@cases(
    "H, says",
    ("-1 1; 0 -1", "both become exactly 0"),
    ("0", "so it does not decide"),
    # Too small for a float, and not 0.
    (f"-{10**400 - 1}/{10**400}", "factor, so it does not decide"),
)
def test_a_certificate_says_where_every_state_becomes_exactly_0(H, says, tmp_path, capsys):
    case = tmp_path / "case.json"
    case.write_text(json.dumps({"A": matrix("1 0; 0 1"), "H": matrix(H)}, default=str))
    main(["certify", str(case)])
    assert says in " ".join(capsys.readouterr().out.split())


def test_of_heads_whose_radius_rounding_does_not_tell_from_0_both_are_said():
    """-0.3 - 0.7 is -1, which other numbers that round to these do not sum to."""
    A, W = np.stack([np.eye(2)] * 2), np.array([[[-0.3]], [[-0.7]]])
    first = str(oversmoothing.heads_verdict(A=A, W=W)).splitlines()[1]
    assert "0 perhaps (then each state becomes exactly 0; else this does not decide)" in first


@cases("X0, h, x0", (0.1, -0.3, "TRIVIAL"), (0.5, -0.3, "TRIVIAL"), (0.1, -1.0, "UNDEFINED"))
def test_an_X0_at_consensus_in_floats_is_said_to_be_about_these_very_numbers(X0, h, x0):
    """All that rounds to the layer is followed, but not all that rounds to equal tokens."""
    found = verdict(A=[[0.7, 0.3], [0.4, 0.6]], H=[[h]], X0=[[X0], [X0]])
    assert (found.about, found.verdict_x0) == ("cell", x0)
    assert "is about these very numbers, not about all that rounds to them" in found.reason
    exact = verdict(A=matrix("AA"), H=[["-1/3"]], X0=[[1], [1]])
    assert "very numbers" not in exact.reason + verdict(A=np.eye(2), H=[[-0.3]]).reason


def test_a_large_X0_at_consensus_is_followed_without_its_krylov_vectors(monkeypatch):
    """T11.1: h = -1 and d = 96; what becomes 0 is seen from the product alone."""
    monkeypatch.setattr("oversmoothing.theory.verdict.of_start.start_content", None)
    found = verdict(A=np.full((2, 2), 0.5), H=-np.eye(96), X0=np.full((2, 96), 0.1))
    assert found.verdict_x0 == "UNDEFINED"


@cases("size, words", (1e3, " = 2.16 to 2.22 (h"), (1e5, " (h"))
def test_radii_that_overlap_are_not_said_beside_a_definite_answer(size, words):
    """h = -1.7 in one Jordan block: balls decide, discs hold the radii ever more loosely."""
    H = [[size - 1.7, size], [-size, -size - 1.7]]
    found = verdict(A=[[0.15, 0.85, 0], [0.85, 0.15, 0], [0, 0, 1]], H=H)
    assert found.verdict == "NON_SMOOTHING" and found.vague
    assert f"dominate: |1 + h a|{words}" in found.reason
    assert (" exceeds |1 + h|, the largest at" in found.reason) == (size > 1e4)


@cases(
    "z, text",
    (complex(1.5, 0), "1.5"),
    (complex(-1, 2), "-1+2i"),
    (complex(0.25, -0.5), "0.25-0.5i"),
    # An imaginary part of rounding is not shown: 1e-15 of the number, or of 1.
    (complex(1, 1e-15), "1"),
    (complex(2, 1.5e-15), "2"),
    (complex(0.125, 9e-16), "0.125"),
    (complex(0.125, 1.5e-15), "0.125+1.5e-15i"),
)
def test_a_complex_number_is_shown_with_6_digits_and_real_where_it_is(z, text):
    assert number(z) == text


@cases(
    "said, text",
    # From ten layers on the horizon is worth a sentence.
    (shown(None), ""),
    (shown(Onset(9.0, "falls")), ""),
    (shown(Onset(10.0, "falls")), " The dominant modes do not lead this X_0 from the start: "
     "HFC/LFC falls in every layer only from about layer 10 on."),
    (shown(Onset(12345.0, "rises")), " The dominant modes do not lead this X_0 from the start: "
     "HFC/LFC rises in every layer only from about layer 1.23e+04 on."),
    (shown(Onset(12.0, "outweighs")), " The dominant modes do not lead this X_0 from the "
     "start: they outweigh the others only from about layer 12 on."),
    (limit_words(Limits(None, None, 3), True), ""),
    (limit_words(Limits("zero", 0.0, None), True), " For this X_0 HFC/LFC tends to 0."),
    (limit_words(Limits("oscillates", None, 2), False),
     " For generic X_0 HFC/LFC oscillates, rank of the limit 2."),
    (limit_words(Limits("constant", None, 1), False),
     " For generic X_0 HFC/LFC tends to a constant that depends on X_0, rank of the limit 1."),
    (limit_words(Limits("constant", 0.125, None), True),
     " For this X_0 HFC/LFC tends to 0.125."),
)  # fmt: skip
def test_T4e_T5a_limits_and_their_horizon_in_words(said, text):
    assert said == text


ONE, TWO, GONE = TokenGrowth(2.0, 0), TokenGrowth(0.5, 1), TokenGrowth(0.0, 0)
PAIR = {(0, 1): constant(1.0)}
DIFFER = " Its tokens do not all grow alike: like "
EIGHTHS = [0.125 * k for k in range(7)]


@cases(
    "growth, cosines, least, average, text",
    # Growth is named where it differs and of all is known.
    ((ONE, ONE), PAIR, None, None, ""),
    ((ONE, TWO), PAIR, None, None, f"{DIFFER}2^L, L 0.5^L."),
    ((ONE, TWO, None), PAIR, None, None, ""),
    (None, PAIR, None, None, ""),
    ((ONE, TWO), None, None, None, ""),
    ((ONE,), {}, None, None, ""),
    # Six tokens are named.
    *[(tuple(TokenGrowth(3.0, k) for k in range(count)), PAIR, None, None,
       f"{DIFFER}3^L, L 3^L, L^2 3^L, L^3 3^L, L^4 3^L, L^5 3^L{end}")
      for count, end in ((6, "."), (7, ", ..."))],
    # A token that dies is named after the growth of all, pairs that oscillate are counted.
    ((ONE, GONE), PAIR, None, None,
     f"{DIFFER}2^L, 0. Token 1 is exactly 0 from some depth on."),
    ((GONE, GONE), PAIR, None, None, ""),
    ((ONE, TWO), {(0, 1): OSCILLATES, (0, 2): None, (1, 2): UNDEFINED}, None, None,
     f"{DIFFER}2^L, L 0.5^L. The cosines of 1 of 3 pairs of tokens oscillate."),
    # Cosines by residue are listed up to six.
    ((ONE, ONE), PAIR, HALF, periodic(0.5, None),
     " The smallest cosine between tokens tends to 0.5."
     " The mean cosine tends to 0.5, none by the residue of L modulo 2."),
    *[((ONE, ONE), PAIR, None, periodic(*EIGHTHS[:count]), " The mean cosine tends to 0, "
       f"0.125, 0.25, 0.375, 0.5, 0.625{more} by the residue of L modulo {count}.")
      for count, more in ((6, ""), (7, ", ..."))],
    ((ONE, ONE), PAIR, UNDEFINED, OSCILLATES, ""),
)  # fmt: skip
def test_T14_what_tokens_do_in_words(growth, cosines, least, average, text):
    said = token_words(TokenLimits(growth, cosines, least, average))
    assert said.startswith(text) if text.endswith("...") else said == text


def test_a_radius_of_which_rounding_leaves_no_digit_is_said_by_its_bounds():
    # 1 + h a = 1 - 5.000000000000001/5: its digits in float64 are rounding alone.
    found = verdict(A=[[0.4, 0.6], [0.6, 0.4]], H=[[5.000000000000001]])
    assert found.verdict == "SMOOTHING" and found.status == "certified" and found.vague
    said = str(found)
    assert re.search(r"\|1 \+ h a\| = 0 to [\d.]+e-1[45] \(h = 5, a = -0\.2\)", said)
    assert "rate rho" not in said and "margin rho_C - rho_Q = 6" in said
    # Where exact arithmetic decides the numbers themselves, all digits of its radii hold.
    turning = {"A": [[0.0, 1.0], [0.0, 1.0]], "H": [[-0.4, 0.8], [-0.8, -0.4]]}
    assert verdict(**turning).digits < verdict(**turning, exact_binary=True).digits == 17
    clear = verdict(A=[[0.4, 0.6], [0.6, 0.4]], H=[[4.0]])
    assert not clear.vague and "rho_C = 5, rho_Q = 0.2" in str(clear)


def test_no_digit_of_a_rate_is_said_that_rounding_may_change():
    """121/170 from numbers in float32; 13/20 and 4e-7 less, from one Jordan block of three rows."""
    A = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
    H = np.diag([0.3, 0.7, -0.2])
    assert "= 0.71176 a layer" in str(verdict(A=A.astype(np.float32), H=H.astype(np.float32)))
    assert "= 0.7117647059 a layer" in str(verdict(A=A, H=H))
    P = np.random.default_rng(0).standard_normal((3, 3))
    block = P @ (1.0000016 * np.eye(3) + np.eye(3, k=1)) @ np.linalg.inv(P)
    assert "rho_C = 2, rho_Q = 1.3: rate rho_Q/rho_C = 0.65 a layer" in str(verdict(A=A, H=block))


@cases(
    "A, H, X0, words, depths",
    # Infinite at every depth, from some depth on, and growing.
    ("1 0 0; 0 1 0; 0 0 1", "1/2", "1; 0; -1", "is infinite at every depth", "inf inf"),
    ("1/2 1/2; 1/2 1/2", "-1", "1; 0", "is infinite from some depth on", "1 inf"),
    ("3/4 1/4; 1/4 3/4", "-1/2", "1; 0", "tends to infinity", "1 1.5"),
    ("3/4 1/4; 1/4 3/4", "-2", "1; 0", "is 0 from some depth on", "1 0"),
    ("3/4 1/4; 1/4 3/4", "1/2", "1; 0", "tends to 0", "1 0.8333333333"),
)
def test_what_is_reached_is_not_said_to_be_tended_to(A, H, X0, words, depths):
    found = verdict(A=matrix(A), H=matrix(H), X0=matrix(X0), depth=[0, 1])
    assert f"For this X_0 HFC/LFC {words}, rank of the limit 1." in found.reason
    assert [f"{ratio.value:.10g}" for ratio in found.hfc_lfc.values()] == depths.split()
    if "some depth" in words:
        # Other numbers round to the same floats.
        words = "tends to infinity" if "infinite" in words else "tends to 0"
    assert words in verdict(A=floats(A), H=floats(H), X0=floats(X0)).reason


@pytest.mark.parametrize("form", [matrix, floats])
def test_what_is_infinite_from_the_start_is_not_said_to_grow(form):
    """h = 0 leaves X_0 as it is, and its mean is 0; in the first line too."""
    A = "3/8 1/8 1/2; 3/7 1/7 3/7; 3/7 3/7 1/7"
    said = str(verdict(A=form(A), H=form("0"), X0=form("-3; 2; 1"), depth=[0, 9]))
    assert "for this X_0: TIE: HFC/LFC tends to infinity\n" in said
    assert "after 9 layers: HFC/LFC = inf" in said and "grows without" not in said


def test_a_state_that_is_0_is_told_from_one_that_cancels():
    """X_0 = 1 and h = -1: X_1 = 0 exactly."""
    for form in (matrix, floats):
        found = verdict(A=form("FLAT"), H=form("-1"), X0=form("1; 1"), depth=[0, 1, 80])
        assert "becomes exactly 0" in found.reason and found.hfc_lfc[0].value == 0
        for layers in ("1 layer", "80 layers"):
            assert f"after {layers}: no value: the state is 0" in str(found)
    assert str(Ratio(None, None)) == "no value: HFC and LFC cancel further than is computed"


def test_radii_near_the_largest_float_are_finite():
    for A in ([[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]):
        for exact_binary in (False, True):
            found = verdict(A=A, H=[[1.6e308]], exact_binary=exact_binary)
            assert found.rho_consensus == 1.6e308 and math.isfinite(found.margin)
            assert 0 < found.rate <= 1


def test_beyond_512_tokens_what_it_takes_and_leaves_out_is_said_first(tmp_path, capsys):
    path = tmp_path / "case.json"
    path.write_text(json.dumps({"A": [[1 / 513] * 513] * 513, "H": [[0.5]]}), "utf-8")
    assert oversmoothing.main(["verdict", str(path)]) == 0
    out, told = capsys.readouterr()
    assert out.startswith("Does it smooth?\n  SMOOTHING: yes")
    assert told.startswith("n = 513 and d = 1 take about ") and announced(512, 512, True) == ""
    assert announced(2048, 64, True) == (
        "n = 2048 and d = 64 take about 60 seconds. Left out at this size: exact arithmetic on "
        f"fractions (done up to n, d = {EXACT_SIZE}), balls where discs leave the verdict open (up "
        f"to {LARGEST_SIDE}; --exact-binary: up to {BALL_SIZE}), and what single tokens do."
    )


# --- no positive ratio is printed as 0, none that is finite as inf, and no 0 with a sign ---


@cases(
    "A, h, x, depth, said",
    # 2^-L / 3, and 2^L / 3 by -1/5 and 2/5 a layer: 2^1000000 = 9.9006562292958982507e301029.
    ("FLAT", "1", 2, 10**6, "after 1,000,000 layers: HFC/LFC = 3.37e-301031"),
    ("FLAT", "1", 2, 1, "after 1 layer: HFC/LFC = 0.167, squared 1/36"),
    ("AA", "-6/5", 2, 10**6, "after 1,000,000 layers: HFC/LFC = 3.3e+301029"),
    ("AA", "-1/2", 1, 3, "after 3 layers: HFC/LFC = 0, squared 0"),
    ("AA", "-1/2", -1, 3, "after 3 layers: HFC/LFC = inf"),
)
def test_a_ratio_beyond_the_floats_is_printed_from_its_logarithm(A, h, x, depth, said):
    found = verdict(A=matrix(A), H=[[h]], X0=[[1], [x]], depth=[depth])
    assert said == str(found).splitlines()[-1].strip()


@cases(
    "value, log, digits, text",
    (0.5, math.log(0.5), 10, "0.5"),
    (0.0, -1000 * math.log(10), 3, "1e-1000"),
    (0.0, math.log(9.9999) - 1000 * math.log(10), 3, "1e-999"),
    (math.inf, 1000 * math.log(10) + math.log(2.5), 2, "2.5e+1000"),
    (0.0, -math.inf, 3, "0"),
    (math.inf, math.inf, 3, "inf"),
    (None, None, 3, "-"),
    (5e-324, math.log(5e-324), 3, "4.94e-324"),
)
def test_ratio_text(value, log, digits, text):
    assert ratio_text(value, log, digits) == text


@cases(
    "value, text", (0.0, "0.00"), (-0.0, "0.00"), (-0.001, "0.00"), (0.314, "+0.31"),
    (-0.02, "-0.02"),
)  # fmt: skip
def test_a_change_has_a_sign_and_0_has_none(value, text):
    assert signed(value) == text


def test_a_table_says_no_minus_0_and_no_0_for_a_positive_ratio():
    rows = [(0.25, -1.4, 0), (4e-7, -0.0, 1), (0.0, -0.0001, 2), (math.nan, 2.0, 3)]
    table = pd.DataFrame(rows, columns=["HFC/LFC", "ln HFC/LFC", "layer"])
    seen = [line.split() for line in table_text(table, "{:+.3f}".format).splitlines()[1:]]
    assert seen == [
        ["+0.250", "-1.400", "0"], ["4e-07", "0.000", "1"], ["0.000", "0.000", "2"],
        ["-", "+2.000", "3"],
    ]  # fmt: skip
    shown = as_html("words", table)
    assert "4e-07" in shown and "-0.000" not in shown and "nan" not in shown.lower()


def test_of_a_start_that_rounding_made_its_binary_numbers_are_said_to_be_meant():
    """1/3 - 8/3 + 7/3 is 0 in fractions alone: there the mode that smooths is missing."""
    layer = {"A": [[0.25, 0.75], [0.75, 0.25]], "H": [[-1.0, 0.0], [2.0, 1.0]]}
    answer = verdict(**layer, X0=[[1 / 3, -8 / 3], [0, 7 / 3]])
    exactly = verdict(
        A=[["1/4", "3/4"], ["3/4", "1/4"]], H=matrix("-1 0; 2 1"), X0=matrix("1/3 -8/3; 0 7/3")
    )
    assert (answer.verdict_x0, exactly.verdict_x0) == ("SMOOTHING", "NON_SMOOTHING")
    assert "about its binary numbers alone" in answer.reason
    others = exactly, verdict(**layer, X0=[[0.25, -1], [0, 0.5]]), verdict(**layer)
    assert not any("binary numbers" in each.reason for each in others)
