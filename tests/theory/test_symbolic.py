"""The verdict on symbols: its conditions are the exact verdict of the substituted case (T2, T3)."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
import sympy as sp

import oversmoothing
from oversmoothing import InputError
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.symbolic_layer import said
from tests.oracle.truth import truth
from tests.support.conditions import extremes, holds


def circulant(*row: str) -> list[list[str]]:
    n = len(row)
    return [[row[(j - i) % n] for j in range(n)] for i in range(n)]


def mixing(n: int) -> list[list[str]]:
    return [[f"a + (1-a)/{n}" if i == j else f"(1-a)/{n}" for j in range(n)] for i in range(n)]


TWO = [["(1+a)/2", "(1-a)/2"], ["(1-a)/2", "(1+a)/2"]]
# (A, H, form): real and complex spectra, defective ones, several closed classes.
CASES = {
    "one": (TWO, [["h"]], "closed form"),
    "diagonal": (TWO, [["h", 0], [0, "k"]], "closed form"),
    "turning": (TWO, [["h", "k"], ["-k", "h"]], "closed form"),
    "any-2x2": (TWO, [["h", "k"], ["l", "m"]], "closed form"),
    "two-rates": ([["1-p", "p"], ["q", "1-q"]], [["h"]], "closed form"),
    "jordan": (TWO, [["h", 1], [0, "h"]], "closed form"),
    "turning-attention": (circulant("p", "q", "1-p-q"), [["h"]], "closed form"),
    "both-turning": (circulant("p", "q", "1-p-q"), [["h", "k"], ["-k", "h"]], "closed form"),
    "mixing-3": (mixing(3), [["h", 1], ["k", "h"]], "closed form"),
    "causal": ([[1, 0, 0], ["p", "1-p", 0], ["q", "1/4", "3/4-q"]], [["h"]], "closed form"),
    "symmetric-3": (
        [["1-p-q", "p", "q"], ["p", "1-p", 0], ["q", 0, "1-q"]],
        [["h", "1/2"], ["1/2", "k"]],
        "closed form",
    ),
    "classes": ([["1-p", "p", 0], ["q", "1-q", 0], [0, 0, 1]], [["h"]], "closed form"),
    "path-4": (
        [["1-a", "a", 0, 0], ["a", "1-2*a", "a", 0], [0, "a", "1-2*a", "a"], [0, 0, "a", "1-a"]],
        [["h"]],
        "closed form",
    ),
    "ring-4": (circulant("p", "q", "0", "1-p-q"), [["h"]], "closed form"),
    "cubic-attention": (
        [
            ["p", 0, "1-p", 0],
            ["1/4", "1/4", "1/4", "1/4"],
            [0, "1/2", "1/2", 0],
            ["1/3", 0, "p/2", "2/3-p/2"],
        ],
        [["h"]],
        "cells",
    ),
    "symmetric-4": (
        [["1-p", "p", 0, 0], ["p", ".5-p", ".5", 0], [0, ".5", ".25", ".25"], [0, 0, ".25", ".75"]],
        [["h", 1], [1, "-h"]],
        "closed form",
    ),
    "mixing-5": (mixing(5), [["h", "k"], [1, "h"]], "closed form"),
    "ring-5": (circulant("a", "1-a", "0", "0", "0"), [["h"]], "cells"),
    "line-5": (
        [
            ["1-a", "a", 0, 0, 0],
            ["a/2", "1-a", "a/2", 0, 0],
            [0, "a/2", "1-a", "a/2", 0],
            [0, 0, "a/2", "1-a", "a/2"],
            [0, 0, 0, "a", "1-a"],
        ],
        [["-3/2"]],
        "closed form",
    ),
    "cubic-values": (TWO, [["h", 1, 0], [0, "h", 1], ["k", 0, -1]], "cells"),
}  # fmt: skip
ORDER = (Outcome.SMOOTHING, Outcome.TIE, Outcome.NON_SMOOTHING)


def drawn_points(found, count: int, seed: int) -> list[dict]:
    """Rational points where A is attention, every second one on a boundary where it can be."""
    rng = random.Random(seed)
    linear = [(p, s) for p in found.boundaries for s in found.parameters if sp.degree(p, s) == 1]
    entries = sp.Matrix([found.entries]) if found.entries else sp.Matrix([[1]])
    points = []
    while len(points) < count:
        point = {
            s: sp.Rational(rng.randint(0, 12), 12)
            if entries.has(s)
            else sp.Rational(rng.randint(-16, 16), rng.choice([1, 2, 3, 5, 8]))
            for s in found.parameters
        }
        if linear and len(points) % 2:
            polynomial, s = rng.choice(linear)
            rest = sp.Poly(polynomial.xreplace({k: x for k, x in point.items() if k != s}), s)
            if rest.degree() == 1:
                point[s] = -rest.nth(0) / rest.nth(1)
        try:
            found.subs(point)
        except InputError:
            continue
        points.append(point)
    return points


def exact_verdict(A, H, point) -> Outcome:
    """Of the substituted case, in fractions, by the public verdict."""
    numbers = [
        [[Fraction(str(x)) for x in M.xreplace(point).row(i)] for i in range(M.rows)]
        for M in (A, H)
    ]
    return oversmoothing.verdict(A=numbers[0], H=numbers[1]).verdict


def no_verdict(values) -> None:
    raise AssertionError(f"the verdict was asked at {values}, where a condition holds")


def check(name: str, count: int, seed: int) -> set[Outcome]:
    """The conditions, evaluated by none of the verdict's code, at so many points in `where`, where
    `subs` evaluates them too; where there is no closed form, the oracle beside the verdict."""
    A, H, form = CASES[name]
    symbols = oversmoothing.symbolic(A, H)
    found, alone = symbols.verdict(), symbols.verdict()
    alone._exact = no_verdict
    assert found.form == form
    seen, inside = set(), 0
    for point in drawn_points(found, 4 * count, seed):
        if inside == count:
            break
        numbers = [M.xreplace(point) for M in (symbols.layer.A, symbols.layer.H)]
        right = exact_verdict(*numbers, {})
        if form == "cells":
            rows = [[[Fraction(str(x)) for x in M.row(i)] for i in range(M.rows)] for M in numbers]
            assert str(right) in truth(*rows).verdict, point
            # The verdict changes on a boundary alone.
            assert right is not Outcome.TIE or 0 in [p.xreplace(point) for p in found.boundaries]
        else:
            if not holds(found.where, point):
                assert found.subs(point) is right, point
                continue
            assert (found if found.names else alone).subs(point) is right, point
            values = {**point, **extremes(found.names, *numbers)}
            conditions = (found.smooths, found.ties, found.does_not)
            values_of = [holds(condition, values) for condition in conditions]
            assert values_of == [right is each for each in ORDER], point
        seen.add(right)
        inside += 1
    assert inside == count
    return seen


QUICK = ("one", "two-rates", "turning-attention", "cubic-attention", "ring-5", "line-5")


@pytest.mark.parametrize("name", QUICK)
def test_conditions_agree_with_the_exact_verdict_at_a_few_points(name: str) -> None:
    assert len(check(name, 8, 1)) > 1


@pytest.mark.parametrize("name", CASES)
def test_conditions_agree_with_the_exact_verdict_at_200_points(name: str) -> None:
    seen = check(name, 200, 0)
    # Only this one has no boundary with rational points at hand.
    assert Outcome.TIE in seen or name == "both-turning"


def test_one_eigenvalue_smooths_above_zero_and_below_the_threshold() -> None:
    """T2b as a condition: h > 0 or h < -2/(1 + a)."""
    a, h = sp.symbols("a h", real=True)
    A = [[(1 + a) / 2, (1 - a) / 2], [(1 - a) / 2, (1 + a) / 2]]
    found = oversmoothing.verdict(A=A, H=sp.Matrix([[h]]))
    threshold = -2 / (1 + a)
    assert found.smooths == sp.Or(h > 0, h < threshold)
    assert found.ties == sp.Or(sp.Eq(h, 0), sp.Eq(h, threshold))
    assert found.does_not == sp.And(h > threshold, h < 0)
    assert set(found.boundaries) == {h, a - 1, sp.expand(h * (1 + a) + 2)}
    assert r"h > 0 \vee h < - \frac{2}{a + 1}" in found.latex()
    assert "\n  ties iff h = 0 or h = -2/(a + 1)\n" in str(found)
    assert "\n  does not smooth iff -2/(a + 1) < h < 0\n" in str(found)
    edges = "at a = -1 and a = 1 A has entries 0 and needs its own answer"
    assert f"\n  for -1 < a < 1; {edges}\n  assumed: -1 <= a <= 1" in str(found)
    # What is no short condition is not said twice.
    both = str(oversmoothing.symbolic(*CASES["diagonal"][:2]).verdict())
    assert "not (" not in both and "ties iff neither of the others holds" in both
    # W is the transpose, and its factors make it.
    assert oversmoothing.verdict(A=A, W=[[h]]).smooths == found.smooths
    factors = (sp.Matrix([[h]]), sp.Matrix([[1]]))
    assert oversmoothing.verdict(A=A, W=factors).smooths == found.smooths


def test_a_turning_h_smooths_outside_the_disc() -> None:
    """T3b as a condition: (1 + a) |h|^2 + 2 Re h > 0."""
    h, k, a = sp.symbols("h k a", real=True)
    found = oversmoothing.symbolic(TWO, [["h", "k"], ["-k", "h"]]).verdict()
    assert found.smooths == sp.Gt(sp.expand((1 + a) * (h**2 + k**2) + 2 * h), 0)


def test_one_parameter_is_solved_on_the_line_with_its_edges() -> None:
    h = sp.Symbol("h", real=True)
    found = oversmoothing.symbolic([["3/4", "1/4"], ["1/4", "3/4"]], [["h"]]).verdict()
    assert found.smooths == sp.Or(h > 0, h < sp.Rational(-4, 3))
    a = sp.Symbol("a", real=True)
    never = oversmoothing.symbolic(TWO, [["-1/2"]]).verdict()
    assert never.smooths is sp.false and never.ties == sp.Eq(a, 1)
    assert never.does_not == sp.And(a >= -1, a < 1)
    # An irrational boundary: h^2 - 2 = 0 multiplied into the eigenvalue.
    crossing = oversmoothing.symbolic([["3/4", "1/4"], ["1/4", "3/4"]], [["t**2 - 2"]]).verdict()
    t = sp.Symbol("t", real=True)
    assert crossing.ties.subs(t, sp.sqrt(2)) == sp.true
    assert crossing.subs(t=2) is Outcome.SMOOTHING and crossing.subs(t=1) is Outcome.NON_SMOOTHING


def test_part_of_the_parameters_leaves_a_verdict_on_the_others() -> None:
    found = oversmoothing.symbolic(TWO, [["h"]]).verdict()
    rest = found.subs(a="1/2")
    h = sp.Symbol("h", real=True)
    assert rest.smooths == sp.Or(h > 0, h < sp.Rational(-4, 3))


def test_each_cell_has_the_exact_verdict_of_its_point() -> None:
    for name in ("one", "ring-5"):
        A, H, _ = CASES[name]
        symbols = oversmoothing.symbolic(A, H)
        cells = symbols.verdict().cells()
        assert {cell.outcome for cell in cells} == {Outcome.SMOOTHING, Outcome.NON_SMOOTHING}
        for cell in cells:
            right = exact_verdict(symbols.layer.A, symbols.layer.H, cell.point)
            assert cell.outcome is right
    with pytest.raises(InputError, match="one or two parameters"):
        oversmoothing.symbolic(*CASES["both-turning"][:2]).verdict().cells()


def test_what_is_assumed_is_stated_and_never_taken_in_silence() -> None:
    b = sp.Symbol("b")
    found = oversmoothing.symbolic([["a", 1 - b], [0, 1]], [["h"]])
    a = sp.Symbol("a", real=True)
    assert sp.Eq(a - b + 1, 1) in found.assumed and sp.Ge(1 - b, 0) in found.assumed
    assert "real b" in str(found.verdict())
    with pytest.raises(InputError, match="no attention"):
        found.verdict().subs(a="1/2", b="1/3", h=1)
    positive = sp.Symbol("h", positive=True)
    settled = oversmoothing.verdict(A=[["3/4", "1/4"], ["1/4", "3/4"]], H=[[positive]])
    with pytest.raises(InputError, match="declared positive"):
        settled.subs(h=-1)


@pytest.mark.parametrize(
    ("A", "H", "words"),
    [
        ([["a", "1-a"], ["1", "1"]], [["h"]], "row 1 sums to 2"),
        ([["a", "1-a"], ["3/2", "-1/2"]], [["h"]], "negative"),
        ([["a", "1-a"], ["1-a", "a"]], [["h", "k"]], "must be square"),
        ([["a", "1-a"], ["1-a", "a"]], [["__import__('os')"]], "no expression"),
        ([["a", "1-a"], ["1-a", "a"]], [[sp.exp(sp.Symbol("h"))]], "rational function"),
        ([["a", "1-a"], ["1-a", "a"]], [[sp.Symbol("h") * 0.5]], "float beside parameters"),
        ([["a", "1-a"], ["1-a", "a"]], [[sp.Symbol("h", imaginary=True)]], "not real"),
        ([[sp.Symbol("a", positive=True), 1 - sp.Symbol("a")], [0, 1]], [["h"]], "two different"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(A, H, words: str) -> None:
    with pytest.raises(InputError, match=words):
        oversmoothing.symbolic(A, H)


@pytest.mark.parametrize("name", ["diagonal", "turning", "ring-4", "jordan", "cubic-values"])
def test_the_symbolic_operator_is_what_its_parts_say(name: str) -> None:
    found = oversmoothing.symbolic(*CASES[name][:2])
    x = sp.Symbol("x")
    point = {s: sp.Rational(3 + k, 11 + 2 * k) for k, s in enumerate(found.parameters)}
    M = found.matrix.subs(point)
    assert sp.expand(found.polynomial(x).subs(point) - M.charpoly(x).as_expr()) == 0
    assert sp.simplify(found.determinant.subs(point) - M.det()) == 0
    assert (found.inverse.subs(point) * M).applyfunc(sp.simplify) == sp.eye(M.rows)
    for pair in found.eigenpairs:
        for side, of in ((pair.right, M), (pair.left, M.T)):
            assert side
            for u, v in side:
                z = sp.kronecker_product(u, v).subs(point)
                error = of * z - pair.multiplier.subs(point) * z
                assert error.applyfunc(sp.simplify).is_zero_matrix and not z.is_zero_matrix
    assert bool(found.unsolved) == (name == "cubic-values")


def test_a_condition_is_said_in_words_with_brackets_where_and_and_or_mix() -> None:
    x, y = sp.symbols("x y", real=True)
    mixed = sp.And(sp.Or(sp.Eq(x, 0), x > y), sp.Ne(y, 1))
    assert said(mixed) == "y is not 1 and (x = 0 or x > y)"
    assert said(sp.true) == "always" and said(sp.false) == "never"
    # A condition without exceptions is no "iff".
    positive = sp.Symbol("h", positive=True)
    printed = str(oversmoothing.verdict(A=[["3/4", "1/4"], ["1/4", "3/4"]], H=[[positive]]))
    assert "smooths: always" in printed and "ties: never" in printed


def test_a_picture_says_what_its_letters_are_and_gives_the_matrices_or_their_sizes() -> None:
    h, a = sp.symbols("h a", real=True)
    A = [[(1 + a) / 2, (1 - a) / 2], [(1 - a) / 2, (1 + a) / 2]]
    region = oversmoothing.Layer(A=A, H=[[h]]).region(h=(-3, 1), a=(-1, 1))
    assert region.caption == [
        "a and h: the parameters of the case",
        "A = [[a/2 + 1/2, 1/2 - a/2], [1/2 - a/2, a/2 + 1/2]]",
        "H = [[h]]",
    ]
    assert "H = [[h]]" in "".join(text.get_text() for text in region.plot().texts)
    large = oversmoothing.Layer(A=[["1/9"] * 9] * 9, H=[["h"]]).region(h=(1, 2))
    assert large.caption[:2] == ["h: the parameter of the case", "A: 9 by 9"]
