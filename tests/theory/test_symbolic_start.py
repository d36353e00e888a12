"""The verdict on symbols in X_0: its conditions are the exact verdict of the substituted case on
this X_0, also where a coefficient vanishes, eigenvalues meet or A has fewer classes (T4e)."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
import sympy as sp

import oversmoothing
from oversmoothing import InputError
from oversmoothing.theory.verdict.formulas import Outcome
from tests.support.conditions import holds
from tests.theory.test_symbolic import CASES as LAYERS, TWO, circulant, no_verdict

HALF = [["3/4", "1/4"], ["1/4", "3/4"]]
# (A, H, X0): spectra real, complex on one side and on both, defective, of several closed classes.
CASES = {
    "one": (*LAYERS["one"][:2], [["x"], ["y"]]),
    "start-alone": (HALF, [["-4/3", "0"], ["0", "-1/2"]], [["x", "y"], ["z", "1"]]),
    "diagonal": (*LAYERS["diagonal"][:2], [["x", "y"], ["y", "1"]]),
    "triangular": (HALF, [["h", 1], [0, "k"]], [["x", "y"], ["0", "1"]]),
    "any-2x2": (*LAYERS["any-2x2"][:2], [["1", "x"], ["y", "x"]]),
    "turning": (*LAYERS["turning"][:2], [["x", "y"], ["y", "x"]]),
    "two-rates": (*LAYERS["two-rates"][:2], [["x"], ["1 - x"]]),
    "jordan": (*LAYERS["jordan"][:2], [["x", "y"], ["1", "y"]]),
    "turning-attention": (*LAYERS["turning-attention"][:2], [["x"], ["y"], ["1"]]),
    "both-turning": (
        [["1/10", "4/5", "1/10"], ["1/10", "1/10", "4/5"], ["4/5", "1/10", "1/10"]],
        [["h", "k"], ["-k", "h"]],
        [["x", "y"], ["-x", "y"], ["0", "1"]],
    ),
    # (h, a) and (h, conj a) apart: x of the one, y of the other.
    "turning-together": (
        circulant("1/10", "1/2", "1/10", "3/10"),
        [["h", "k"], ["-k", "h"]],
        [["1 + x + y", "z"], ["1", "z + y - x"], ["1 - x - y", "z"], ["1", "z + x - y"]],
    ),
    "causal": (*LAYERS["causal"][:2], [["x"], ["y"], ["1"]]),
    "classes": (*LAYERS["classes"][:2], [["x"], ["y"], ["1"]]),
    "mixing-3": (*LAYERS["mixing-3"][:2], [["x", 0], ["1", "y"], ["0", "y"]]),
    "path-4": (*LAYERS["path-4"][:2], [["x"], ["y"], ["y"], ["x"]]),
}  # fmt: skip
FIVE = ("smooths", "ties", "does_not", "trivial", "undefined")
OUTCOMES = [Outcome[name] for name in
            ("SMOOTHING", "TIE", "NON_SMOOTHING", "TRIVIAL", "UNDEFINED")]  # fmt: skip


def drawn_points(found, count: int, seed: int) -> list[dict]:
    """Rational points where A is attention: as they come, on a boundary, or where a coefficient of
    X_0 vanishes, in turn."""
    rng = random.Random(seed)
    zero = [p for mode in found.modes for e in mode.contained.atoms(sp.Ne) for p in [e.lhs]]
    special = [
        [(p, s) for p in each for s in found.parameters
         if p.is_polynomial(s) and sp.degree(p, s) == 1]
        for each in (found.boundaries, zero)
    ]  # fmt: skip
    entries, points = sp.Matrix([[1, *found.entries]]), []
    while len(points) < count:
        point = {
            s: sp.Rational(rng.randint(0, 12), 12)
            if entries.has(s)
            else sp.Rational(rng.randint(-4, 4), rng.choice([1, 2, 3]))
            for s in found.parameters
        }
        # Up to two of them at once, one of each kind.
        for kind in range(2):
            if special[kind] and len(points) >> kind & 1:
                polynomial, s = rng.choice(special[kind])
                rest = sp.Poly(polynomial.xreplace({k: x for k, x in point.items() if k != s}), s)
                if rest.degree() == 1:
                    point[s] = -rest.nth(0) / rest.nth(1)
        if all(isinstance(x, sp.Rational) for x in point.values()):
            try:
                found.subs(point)
            except InputError:
                continue
            points.append(point)
    return points


def exact_verdict(layer, point) -> Outcome | None:
    """Of the substituted case on its X_0, in fractions, by the public verdict."""
    A, H, X0 = (
        [[Fraction(str(x)) for x in M.xreplace(point).row(i)] for i in range(M.rows)]
        for M in (layer.A, layer.H, layer.X0)
    )
    return oversmoothing.verdict(A=A, H=H, X0=X0).verdict_x0


def check(name: str, count: int, seed: int) -> tuple[set[Outcome], int]:
    """The outcomes seen, and at how many points X_0 lacks a mode that it has elsewhere."""
    symbols = oversmoothing.symbolic(*CASES[name])
    found, alone = symbols.verdict(), symbols.verdict()
    alone._exact = no_verdict
    assert found.form == "closed form"
    seen, lacking = set(), 0
    for point in drawn_points(found, count, seed):
        right = exact_verdict(symbols.layer, point)
        seen.add(right)
        if not holds(found.where, point):
            assert found.subs(point) is right, point
            continue
        assert alone.subs(point) is right, point
        lacking += any(not holds(m.contained, point) for m in found.modes if holds(m.when, point))
        truth = [holds(getattr(found, each), point) for each in FIVE]
        assert truth == [right is each for each in OUTCOMES], point
    return seen, lacking


@pytest.mark.parametrize("name", ["one", "start-alone", "jordan", "classes"])
def test_conditions_on_x0_agree_with_the_exact_verdict_at_a_few_points(name: str) -> None:
    seen, lacking = check(name, 16, 1)
    assert len(seen) > 1 and lacking


@pytest.mark.parametrize("name", CASES)
def test_conditions_on_x0_agree_with_the_exact_verdict_at_200_points(name: str) -> None:
    seen, lacking = check(name, 200, 0)
    assert {Outcome.SMOOTHING, Outcome.NON_SMOOTHING} <= seen and lacking > 10


def test_a_coefficient_that_vanishes_changes_the_mode_that_decides() -> None:
    """T4e on T2b: w = (1, 1) and (1, -1); with H = -1/2 it never smooths, and h decides else."""
    x, y, h, a = sp.symbols("x y h a", real=True)
    found = oversmoothing.verdict(A=HALF, H=[["-1/2"]], X0=[[x], [y]])
    assert found.smooths is sp.false and found.ties is sp.false
    assert found.does_not == sp.Ne(x - y, 0)
    assert found.trivial == sp.And(sp.Eq(x - y, 0), sp.Ne(x + y, 0))
    assert found.undefined == sp.And(sp.Eq(x - y, 0), sp.Eq(x + y, 0))
    layer = oversmoothing.Layer(A=TWO, H=[["h"]])
    found = layer.verdict([["x"], ["y"]])
    above = h * (a * h + h + 2) > 0
    assert found.smooths == sp.And(sp.Ne(x + y, 0), sp.Ne(x - y, 0), above)
    assert [mode.contained for mode in found.modes] == [sp.Ne(x + y, 0), sp.Ne(x - y, 0)]
    assert "another mode, |mu|^2 = (a*h + 1)**2: in X0 iff x - y is not 0" in str(found)
    # GT14: all eigenvalues of H in [-1, 0], and it smooths from this X_0 alone.
    special = oversmoothing.symbolic(HALF, [["0", "0"], ["0", "-1"]], [["1", 1], ["z", "-1"]])
    z = sp.Symbol("z", real=True)
    assert special.verdict().smooths == sp.And(sp.Eq(z - 1, 0), sp.Ne(z + 1, 0))
    assert special.verdict().subs(z=1) is Outcome.SMOOTHING


def test_where_eigenvalues_meet_or_attention_has_a_zero_subs_answers_all_the_same() -> None:
    found = oversmoothing.symbolic(*CASES["triangular"]).verdict()
    h, k = sp.symbols("h k", real=True)
    assert found.where == sp.Ne(h - k, 0)
    # A Jordan block there: from (0, 1) it is contained whole.
    point = {"h": 1, "k": 1, "x": 0, "y": 1}
    assert found.where.subs({h: 1, k: 1}) == sp.false
    assert found.subs(point) is Outcome.TRIVIAL and found.exactly(point) is Outcome.TRIVIAL
    edge = oversmoothing.symbolic(*CASES["one"]).verdict()
    # a = 1: two closed classes, so that (1, -1) is consensus within each.
    assert edge.subs(a=1, h=1, x=1, y=-1) is Outcome.TIE
    assert edge.subs(a="1/2", h=1, x=1, y=-1) is Outcome.NON_SMOOTHING


def test_part_of_the_parameters_leaves_a_verdict_on_this_x0_and_a_region_is_drawn() -> None:
    found = oversmoothing.symbolic(*CASES["one"]).verdict()
    rest = found.subs(x=1, y=-1)
    assert rest.smooths is sp.false and set(map(str, rest.parameters)) == {"a", "h"}
    layer = oversmoothing.Layer(A=TWO, H=[["h"]])
    cells = layer.region([["1"], ["-1"]], h=(-3, 1), a=(-1, 1)).slices[0].cells
    assert {cell.outcome for cell in cells} == {Outcome.NON_SMOOTHING}


def test_what_has_no_closed_form_is_said_in_a_sentence_and_each_point_is_decided() -> None:
    H = [["h", 1, 0], [0, "h", 1], ["1", 0, -1]]
    symbols = oversmoothing.symbolic(HALF, H, [["x", "y", 1], ["y", 1, 0]])
    found = symbols.verdict()
    assert found.form == "cells" and found.smooths is None
    assert "H has the factor" in found.why and "which of its roots X0 contains" in str(found)
    for point in drawn_points(found, 8, 0):
        assert found.subs(point) is exact_verdict(symbols.layer, point)
    # From an X_0 that holds none of them there is one.
    A = [["1/2", "1/2", 0], ["1/4", "1/4", "1/2"], ["1/3", "1/3", "1/3"]]
    alone = oversmoothing.symbolic(A, [["h", 0], [0, "1/2"]], [["x", 0]] * 3).verdict()
    assert alone.form == "closed form" and alone.subs(x=1, h=1) is Outcome.TRIVIAL


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: oversmoothing.symbolic(TWO, [["h"]], [["x"]]), "must be .2, 1."),
        (lambda: oversmoothing.symbolic(TWO, [["h"]]).verdict([[sp.exp(sp.Symbol("x"))], [1]]),
         "rational function"),
        (lambda: oversmoothing.Layer(A=TWO, H=[["h"]]).verdict([["x"], [1]], depth=3), "depth"),
        (lambda: oversmoothing.symbolic(*CASES["one"]).verdict().subs(a=2, h=1, x=1, y=1),
         "no attention"),
    ],
)  # fmt: skip
def test_an_x0_that_cannot_be_used_is_refused_in_a_sentence(call, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
