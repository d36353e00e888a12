"""T4e: `shows_from` is the layer from which an X_0 shows what decides.

0 where the leading terms of X_L are at least as large as the rest at every layer; else the first
layer from which HFC/LFC falls (rises) in every layer, if there is one; else the first from which
the leading terms are at least as large as the rest.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from oversmoothing.theory.verdict.verdict import verdict
from tests.oracle.moduli import TooHard
from tests.oracle.onset import window
from tests.oracle.start import Start
from tests.oracle.system import System
from tests.support.cases import cases
from tests.support.tables import matrix

AA = matrix("AA")
LAYERS = 240
HIDDEN = "The dominant modes do not lead this X_0 from the start"


def fractions(M):
    return [[Fraction(x) for x in row] for row in M]


def floats(M):
    return [[float(Fraction(x)) for x in row] for row in M]


# --- by hand ---


@pytest.mark.parametrize("form", [fractions, floats])
@cases("h, X0", ("1/1000", (1, 2)), ("1/100000", (1, 2)), ("1/1000000", (10, 11)))
def test_a_start_in_which_consensus_leads_and_HFC_LFC_falls_shows_it_from_0(form, h, X0):
    """Consensus is 1.5 of (1, 2) in each token, what falls .5."""
    found = verdict(A=form(AA), H=form([[h]]), X0=form([[x] for x in X0]))
    assert (found.verdict_x0, found.shows_from) == ("SMOOTHING", 0.0)
    assert HIDDEN not in found.reason


@pytest.mark.parametrize("form", [fractions, floats])
def test_a_small_difference_that_grows_in_every_layer_shows_from_0(form):
    """h = -1/2: 3/4 a layer beside 1/2. It outweighs the mean late, but HFC/LFC rises at once."""
    X0 = [[1 + Fraction(1, 2**20)], [1 - Fraction(1, 2**20)]]
    assert verdict(A=form(AA), H=form([["-1/2"]]), X0=form(X0)).shows_from == 0.0


@pytest.mark.parametrize("form", [fractions, floats])
def test_terms_that_lead_and_terms_that_follow_may_turn_half_a_turn_apart(form):
    """h = -2 +- 3i/4 and a = 1/3: (1 + h/3) (1 + h) = -25/48. Leading terms of 5.5 and then 6.8
    stand beside 10 and then 3.0."""
    A, H = [["1", "0"], ["2/3", "1/3"]], [["-1/2", "-3/4"], ["15/4", "-7/2"]]
    assert verdict(A=form(A), H=form(H), X0=form([[-2, -5], [-2, 5]])).shows_from == 1.0


@pytest.mark.parametrize("form", [fractions, floats])
def test_HFC_LFC_that_rises_first_falls_from_the_layer_at_which_the_larger_mean_takes_over(form):
    """h = 1 and -1/2 in two features: LFC^2 = 2 s^2 4^L + 2 / 4^L beside HFC^2 = 2 (9/4)^L of the
    first and 2 (9/16)^L of the second, s = 2^-20."""
    s = Fraction(1, 2**20)
    H = [[1, 0], [0, Fraction(-1, 2)]]
    found = verdict(A=form(AA), H=form(H), X0=form([[s + 1, 2], [s - 1, 0]]))
    squares = [
        (Fraction(9, 4) ** L + Fraction(9, 16) ** L, s**2 * 4**L + Fraction(1, 4**L))
        for L in range(80)
    ]
    rises = [L for L, ((x, y), (z, w)) in enumerate(pairwise(squares)) if z * y >= x * w]
    assert found.shows_from == rises[-1] + 1 > 10
    assert f"{HIDDEN}: HFC/LFC falls in every layer only from about layer {rises[-1] + 1} on." in (
        found.reason
    )


@pytest.mark.parametrize("power", [12, 40, 400])
def test_a_mean_that_is_hidden_ever_deeper_takes_over_ever_later(power):
    """The same with s = 10^-power: it turns where s^2 4^L is about as large as 4^-L."""
    s = Fraction(1, 10**power)
    H = [[1, 0], [0, Fraction(-1, 2)]]
    found = verdict(A=AA, H=H, X0=[[s + 1, 2], [s - 1, 0]])
    assert found.shows_from == pytest.approx(power * math.log(10) / math.log(4), abs=2)


@pytest.mark.parametrize("power", [6, 12, 30, 300])
def test_near_a_tie_what_decides_is_hidden_for_as_long_as_is_said(power):
    """h = -4/3 - 2t, of which X_0 has only a mean s, beside h = -4/3 + t, mean and difference 1.

    For small t, 9^L LFC^2 = 2 exp(-6 t L) + 2 s^2 exp(12 t L) and 9^L HFC^2 = 2 exp(3 t L): the
    ratio turns where s^2 exp(18 t L) = 1."""
    s, t = Fraction(1, 10**3), Fraction(1, 10**power)
    H = [[Fraction(-4, 3) - 2 * t, 0], [0, Fraction(-4, 3) + t]]
    found = verdict(A=AA, H=H, X0=[[s, 2], [s, 0]])
    expected = 6 * math.log(10) / 18 * 10.0**power
    assert found.verdict_x0 == "SMOOTHING"
    assert found.shows_from == pytest.approx(expected, rel=1e-4 if power == 6 else 1e-6)
    assert f"only from about layer {expected:.3g} on" in found.reason


def test_a_near_tie_of_one_feature_shows_from_0():
    """h = -4/3 + 1e-30: HFC/LFC rises by 4.5e-30 in every layer."""
    found = verdict(A=AA, H=[[Fraction(-4, 3) + Fraction(1, 10**30)]], X0=[[1], [2]])
    assert (found.verdict_x0, found.shows_from) == ("NON_SMOOTHING", 0.0)


def test_where_nothing_is_compared_no_layer_is_said():
    assert verdict(A=AA, H=[["-1/2"]], X0=[[1], [1]]).shows_from is None
    assert verdict(A=AA, H=[[-1]], X0=[[1], [1]]).shows_from is None
    assert verdict(A=AA, H=[["-1/2"]], X0=[[1], [-1]]).shows_from == 0.0


def test_a_tie_shows_from_where_the_leading_terms_outweigh_the_rest():
    """h = -4/3, mean and difference s, both 1/3 a layer, beside a mean 1 that is 1/18 a layer."""
    s = Fraction(1, 2**30)
    H = [["-4/3", 0], [0, "-19/18"]]
    found = verdict(A=AA, H=H, X0=[[2 * s, 1], [0, 1]])
    # The squares: 4 s^2 (1/9)^L beside 2 (1/18)^2L.
    rest = next(L for L in range(99) if 2 * s**2 * Fraction(1, 9**L) >= Fraction(1, 324**L))
    assert (found.tends_to, found.shows_from) == ("constant", rest)
    assert f"they outweigh the others only from about layer {rest} on" in found.reason


def test_what_a_multiplier_0_leaves_of_X0_is_compared_at_its_own_layer():
    """1 + h a is 1 (h = 0), -1 or 0: X_1 is off its leading terms by 6, and these are 8.5."""
    A = [[1, 0, 0], ["1/2", "1/2", 0], ["1/6", "1/3", "1/2"]]
    found = verdict(A=A, H=[[0, 0], [0, -2]], X0=[[-5, -1], [6, 8], [3, 3]])
    assert (found.tends_to, found.shows_from) == ("constant", 1)


# --- drawn ---


def drawn(seed):
    """(A, H, X0) in fractions: real, complex and defective, ties, and starts that hide a mode."""
    rng = Random(f"onset/{seed}")
    n, d = rng.choice((2, 2, 3)), rng.choice((1, 2, 2))
    A = rng.choice(
        (
            lambda: [[Fraction(1 + (i == j) * 2, n + 2) for j in range(n)] for i in range(n)],
            lambda: stochastic([[rng.randint(1, 6) for _ in range(n)] for _ in range(n)]),
            lambda: stochastic([[rng.randint(1, 3) if j <= i else 0 for j in range(n)]
                                for i in range(n)]),
            lambda: circulant(stochastic([[1, *(rng.randint(0, 4) for _ in range(n - 1))]])[0]),
            lambda: stochastic([[int(j in (i, min(i + 1, n - 1))) for j in range(n)]
                                for i in range(n)]),
        )
    )()  # fmt: skip
    h, k = (Fraction(rng.randint(-12, 6), rng.choice((4, 5, 6))) for _ in range(2))
    tie = Fraction(-1)
    H = rng.choice(
        (
            [[h, 0], [0, k]],
            [[h, 0], [0, k]],
            [[h, 1], [0, h]],
            [[h, -k], [k, h]],
            [[Fraction(-4, 3), 0], [0, k]],
            [[h, k], [1, tie]],
        )
    )
    H = [[Fraction(x) for x in row[:d]] for row in H[:d]]
    large = [[Fraction(rng.randint(-3, 3)) for _ in range(d)] for _ in range(n)]
    shared = [Fraction(rng.randint(-3, 3)) for _ in range(d)]
    small = Fraction(1, 10 ** rng.choice((0, 0, 1, 3, 5)))
    # A share that is small of the state, of HFC, or of one feature.
    of = rng.choice(("state", "mean", "feature"))
    X0 = [
        [
            x * small + c if of == "state" else x + c * small if of == "mean"
            else x * (small if j else 1) + c * (1 if j else small)
            for j, (x, c) in enumerate(zip(row, shared, strict=True))
        ]
        for row in large
    ]  # fmt: skip
    return A, H, X0


def stochastic(rows):
    return [[Fraction(x, sum(row)) for x in row] for row in rows]


def circulant(row):
    return [row[-i:] + row[:-i] if i else row for i in range(len(row))]


def signs(A, H, X0, layers):
    """Whether HFC/LFC rises (1) or falls (-1) over each layer, by iteration in fractions; what is
    infinite rises, what is 0 falls, None where the state is 0."""
    A, H, X = (np.array(M, dtype=object) for M in (A, H, X0))
    squares = []
    for _ in range(layers + 1):
        mean = X.mean(axis=0)
        squares.append((((X - mean) ** 2).sum(), len(X) * (mean**2).sum()))
        X = X + A @ X @ H.T
    found = []
    for (x, y), (z, w) in pairwise(squares):
        gap = z * y - x * w
        stays = (y == w == 0) - (x == z == 0)
        found.append(stays if not gap and stays else (gap > 0) - (gap < 0))
    return found


def judged(case, answer):
    """ "right", "wrong", or why nothing is said."""
    if answer.verdict_x0 not in ("SMOOTHING", "NON_SMOOTHING", "TIE"):
        return "not compared"
    if answer.shows_from is None:
        return "not said"
    sign = {"zero": -1, "infinity": 1}.get(answer.tends_to)
    wrong = [L for L, move in enumerate(signs(*case, LAYERS)) if move != sign]
    if sign and (answer.shows_from == 0) == (not wrong) == 1:
        return "right"
    if sign and answer.shows_from and wrong and wrong[-1] < LAYERS / 2:
        moves = answer.shows_from == wrong[-1] + 1
        seen = window(Start(System(*case[:2]), case[2]), LAYERS)
        return "right" if moves and not all(seen.outweighs) else "wrong"
    try:
        return window(Start(System(*case[:2]), case[2]), LAYERS).judged(
            answer.shows_from, answer.tends_to
        )
    except TooHard:
        return "too hard"


@pytest.mark.parametrize("seeds", [range(40), range(40, 200)], ids=["few", "many"])
@pytest.mark.parametrize("form", [fractions, floats])
def test_on_drawn_starts_it_is_the_layer_of_the_exact_series(form, seeds):
    found, layers, wrong = Counter(), Counter(), []
    for seed in seeds:
        case = drawn(seed)
        if not any(map(any, case[2])):
            continue
        answer = verdict(A=form(case[0]), H=form(case[1]), X0=form(case[2]))
        outcome = judged(case, answer)
        found[outcome] += 1
        layers[answer.shows_from] += 1
        if outcome == "wrong":
            wrong.append((seed, answer.verdict_x0, answer.tends_to, answer.shows_from))
    assert not wrong, wrong
    # In floats nothing is said of modes that rounding may or may not have put there.
    assert found["right"] >= (0.9 if form is fractions else 0.7) * len(seeds), found
    assert sum(layers[x] for x in layers if x) >= len(seeds) / 8, layers


def test_a_fall_that_rounding_hides_is_not_called_a_turn():
    """HFC/LFC falls by 1e-20 a layer, which binary64 does not see beyond the layers that are looked
    at in fractions: nothing is said, and no layer where the fall comes into sight."""
    rest = "3/100000000000000000000"
    stays = "99999999999999999997/100000000000000000000"
    A = [["1", "0", "0"], [rest, stays, "0"], [rest, "0", stays]]
    H = [["-1/4", "-3/2"], ["3/2", "-1/4"]]
    X0 = [["5", "-1"], ["-1e-9", "1e-9"], ["3e-6", "9"]]
    answer = verdict(A=A, H=H, X0=X0)
    assert (answer.verdict_x0, answer.tends_to, answer.shows_from) == ("SMOOTHING", "zero", None)
