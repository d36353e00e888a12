"""T4e: `shows_from` is the layer from which an X_0 shows what decides.

0 where the leading terms of X_L are at least as large as the rest at every layer; else the first
layer from which HFC/LFC falls (rises) in every layer, if there is one; else the first from which
the leading terms are at least as large as the rest.
"""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from random import Random

import pytest

from oversmoothing.theory.verdict.verdict import verdict
from tests.oracle.moduli import TooHard
from tests.oracle.onset import window
from tests.oracle.start import Start
from tests.oracle.system import System
from tests.support.tables import floats, holds, matrix, row, table

AA = matrix("AA")
LAYERS = 240
HIDDEN = "The dominant modes do not lead this X_0 from the start"


# --- by hand ---


TINY, SMALL = Fraction(1, 10**30), Fraction(1, 2**20)
SLOW = Fraction(1, 2 * 10**13)
REST, STAYS = Fraction(3, 10**20), 1 - Fraction(3, 10**20)


@table(
    # Consensus is 1.5 of (1, 2) in each token, what falls .5.
    *[row(f"consensus leads and HFC/LFC falls at h = {h}", "AA", h, X0, verdict_x0="SMOOTHING",
          shows_from=0.0, never=HIDDEN)
      for h, X0 in (("1/1000", "1; 2"), ("1/100000", "1; 2"), ("1/1000000", "10; 11"))],
    # h = -1/2: 3/4 a layer beside 1/2. It outweighs the mean late, but HFC/LFC rises at once.
    row("a small difference grows in every layer", "AA", "-1/2", [[1 + SMALL], [1 - SMALL]],
        shows_from=0.0),
    # h = -2 +- 3i/4 and a = 1/3: (1 + h/3) (1 + h) = -25/48. Leading terms of 5.5 and then 6.8
    # stand beside 10 and then 3.0.
    row("terms that lead and terms that follow turn half a turn apart", "1 0; 2/3 1/3",
        "-1/2 -3/4; 15/4 -7/2", "-2 -5; -2 5", shows_from=1.0),
    # h = -4/3 + 1e-30: HFC/LFC rises by 4.5e-30 in every layer.
    row("a near tie of one feature", "AA", [[Fraction(-4, 3) + TINY]], "1; 2", "exact",
        verdict_x0="NON_SMOOTHING", shows_from=0.0),
    *[row(f"nothing is compared at h = {h}", "AA", h, "1; 1", "exact", shows_from=None)
      for h in ("-1/2", "-1")],
    row("no mean is compared", "AA", "-1/2", "1; -1", "exact", shows_from=0.0),
    # 1 + h a is 1 (h = 0), -1 or 0: X_1 is off its leading terms by 6, and these are 8.5.
    row("what a multiplier 0 leaves of X0 counts at its own layer",
        "1 0 0; 1/2 1/2 0; 1/6 1/3 1/2", "0 0; 0 -2", "-5 -1; 6 8; 3 3", "exact",
        tends_to="constant", shows_from=1),
    # HFC/LFC falls by 1e-20 a layer, which binary64 does not see beyond the layers that are looked
    # at in fractions: nothing is said, and no layer where the fall comes into sight.
    row("a fall that rounding hides is not called a turn",
        [[1, 0, 0], [REST, STAYS, 0], [REST, 0, STAYS]], "-1/4 -3/2; 3/2 -1/4",
        "5 -1; -1e-9 1e-9; 3e-6 9", "exact", verdict_x0="SMOOTHING", tends_to="zero",
        shows_from=None),
    # The mean grows by 3 and by 1 in turn: whether HFC/LFC falls is for smaller terms to say.
    row("a layer that leaves the leading terms as they are", "0 0 1; 0 1/3 2/3; 0 0 1",
        "-1 -3; 1 -1", "3/2 6; 0 0; 0 -7/2", "exact", tends_to="zero", shows_from=None),
    # By sqrt 3 in the first layers, but by 1/3 and 9 in turn around layer 12,000.
    row("a slow turn", "1/2 1/2; 1/2 1/2", "-0.9999 -9; 1/3 -0.9999", "1026 5; -974 5", "exact",
        tends_to="zero", shows_from=7.0),
    # It turns by 1e-8 a layer, in whose course HFC/LFC rises at layers beyond a thousand million.
    row("a turn slower than is looked for", [[1 - SLOW, SLOW], [SLOW, 1 - SLOW]],
        "1 1/100; -1e-14 1", "1 2; -9/10 -20000001/10000000", "exact", tends_to="zero",
        shows_from=None),
)  # fmt: skip
def test_T4e_a_start_shows_what_decides_from_this_layer_on(A, H, X0, by, said):
    holds(A, H, X0, by, said)


@pytest.mark.parametrize("form", [matrix, floats])
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


def test_a_tie_shows_from_where_the_leading_terms_outweigh_the_rest():
    """h = -4/3, mean and difference s, both 1/3 a layer, beside a mean 1 that is 1/18 a layer."""
    s = Fraction(1, 2**30)
    H = [["-4/3", 0], [0, "-19/18"]]
    found = verdict(A=AA, H=H, X0=[[2 * s, 1], [0, 1]])
    # The squares: 4 s^2 (1/9)^L beside 2 (1/18)^2L.
    rest = next(L for L in range(99) if 2 * s**2 * Fraction(1, 9**L) >= Fraction(1, 324**L))
    assert (found.tends_to, found.shows_from) == ("constant", rest)
    assert f"they outweigh the others only from about layer {rest} on" in found.reason


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


def judged(case, answer):
    """ "right", "wrong", or why nothing is said."""
    if answer.verdict_x0 not in ("SMOOTHING", "NON_SMOOTHING", "TIE"):
        return "not compared"
    if answer.shows_from is None:
        return "not said"
    try:
        seen = window(Start(System(*case[:2]), case[2]), LAYERS)
        return seen.judged(answer.shows_from, answer.tends_to)
    except TooHard:
        return "too hard"


@pytest.mark.parametrize("seeds", [range(40), range(40, 200)], ids=["few", "many"])
@pytest.mark.parametrize("form", [matrix, floats])
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
    assert found["right"] >= (0.9 if form is matrix else 0.7) * len(seeds), found
    assert sum(layers[x] for x in layers if x) >= len(seeds) / 8, layers
