"""The verdict on symbols, in X_0 too: its conditions are the exact verdict of the substituted case,
also where a coefficient vanishes, eigenvalues meet or A has fewer classes (T2, T3, T4e)."""

import random
from fractions import Fraction

import pytest
import sympy as sp

import oversmoothing
from oversmoothing import InputError
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.symbolic.symbolic_layer import said
from oversmoothing.theory.verdict.symbolic.symbolic_verdict import when
from tests.oracle.truth import truth
from tests.support.cases import cases
from tests.support.conditions import extremes, holds
from tests.support.refusals import refuses


def matrix(text: str) -> list[list[str]]:
    return [row.split() for row in text.split(";")]


def circulant(text: str) -> list[list[str]]:
    row = text.split()
    return [[row[(j - i) % len(row)] for j in range(len(row))] for i in range(len(row))]


def mixing(n: int) -> list[list[str]]:
    return [[f"a + (1-a)/{n}" if i == j else f"(1-a)/{n}" for j in range(n)] for i in range(n)]


a, h, k, t, x, y, z = sp.symbols("a h k t x y z", real=True)
TWO = matrix("(1+a)/2 (1-a)/2; (1-a)/2 (1+a)/2")
ONE, TURNED, HALF = [["h"]], matrix("h k; -k h"), matrix("3/4 1/4; 1/4 3/4")
# (A, H): real and complex spectra, defective ones, several closed classes.
CASES = {
    "one": (TWO, ONE),
    "diagonal": (TWO, matrix("h 0; 0 k")),
    "symmetric": (matrix("1/2+a 1/2-a; 1/2-a 1/2+a"), matrix("h k; k h")),
    "turning": (TWO, TURNED),
    "any-2x2": (TWO, matrix("h k; l m")),
    "two-rates": (matrix("1-p p; q 1-q"), ONE),
    "jordan": (TWO, matrix("h 1; 0 h")),
    "turning-attention": (circulant("p q 1-p-q"), ONE),
    "both-turning": (circulant("p q 1-p-q"), TURNED),
    "mixing-3": (mixing(3), matrix("h 1; k h")),
    "causal": (matrix("1 0 0; p 1-p 0; q 1/4 3/4-q"), ONE),
    "symmetric-3": (matrix("1-p-q p q; p 1-p 0; q 0 1-q"), matrix("h 1/2; 1/2 k")),
    "classes": (matrix("1-p p 0; q 1-q 0; 0 0 1"), ONE),
    "path-4": (matrix("1-a a 0 0; a 1-2*a a 0; 0 a 1-2*a a; 0 0 a 1-a"), ONE),
    "ring-4": (circulant("p q 0 1-p-q"), ONE),
    "cubic-attention": (
        matrix("p 0 1-p 0; 1/4 1/4 1/4 1/4; 0 1/2 1/2 0; 1/3 0 p/2 2/3-p/2"), ONE
    ),
    "symmetric-4": (
        matrix("1-p p 0 0; p .5-p .5 0; 0 .5 .25 .25; 0 0 .25 .75"), matrix("h 1; 1 -h")
    ),
    "mixing-5": (mixing(5), matrix("h k; 1 h")),
    "ring-5": (circulant("a 1-a 0 0 0"), ONE),
    "line-5": (
        matrix("1-a a 0 0 0; a/2 1-a a/2 0 0; 0 a/2 1-a a/2 0; 0 0 a/2 1-a a/2; 0 0 0 a 1-a"),
        [["-3/2"]],
    ),
    "cubic-values": (TWO, matrix("h 1 0; 0 h 1; k 0 -1")),
}  # fmt: skip
CELLS = ("cubic-attention", "ring-5", "cubic-values")  # where there is no closed form
# (h, a) and (h, conj a) apart: x of the one, y of the other.
RING, APART = circulant("1/10 1/2 1/10 3/10"), matrix("1+x+y z; 1 z+y-x; 1-x-y z; 1 z+x-y")
# (A, H, X0): spectra real, complex on one side and on both, defective, of several closed classes.
STARTS = {
    "one": (TWO, ONE, matrix("x; y")),
    "start-alone": (HALF, matrix("-4/3 0; 0 -1/2"), matrix("x y; z 1")),
    "diagonal": (*CASES["diagonal"], matrix("x y; y 1")),
    "triangular": (HALF, matrix("h 1; 0 k"), matrix("x y; 0 1")),
    "any-2x2": (*CASES["any-2x2"], matrix("1 x; y x")),
    "turning": (TWO, TURNED, matrix("x y; y x")),
    "two-rates": (*CASES["two-rates"], matrix("x; 1-x")),
    "jordan": (*CASES["jordan"], matrix("x y; 1 y")),
    "turning-attention": (*CASES["turning-attention"], matrix("x; y; 1")),
    "both-turning": (circulant("1/10 4/5 1/10"), TURNED, matrix("x y; -x y; 0 1")),
    "turning-together": (RING, TURNED, APART),
    # Both turn by 1/5 i.
    "turning-alike": (RING, matrix("h 1/5; -1/5 h"), APART),
    "causal": (*CASES["causal"], matrix("x; y; 1")),
    "classes": (*CASES["classes"], matrix("x; y; 1")),
    "mixing-3": (*CASES["mixing-3"], matrix("x 0; 1 y; 0 y")),
    "path-4": (*CASES["path-4"], matrix("x; y; y; x")),
}  # fmt: skip
WORDS = {
    "smooths": Outcome.SMOOTHING, "ties": Outcome.TIE, "does_not": Outcome.NON_SMOOTHING,
    "trivial": Outcome.TRIVIAL, "undefined": Outcome.UNDEFINED,
}  # fmt: skip
ASKED = CASES | {f"{name} in X0": start for name, start in STARTS.items()}


def drawn_points(found, count: int, seed: int) -> list[dict]:
    """Rational points where A is attention: as they come, on a boundary, or where a coefficient of
    X_0 vanishes, in turn."""
    rng = random.Random(seed)
    modes = getattr(found, "modes", ())
    zero = [p for mode in modes for e in mode.contained.atoms(sp.Ne) for p in [e.lhs]]
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
    """Of the substituted case, on its X_0 if it has one, in fractions, by the public verdict."""
    given = {name: getattr(layer, name) for name in ("A", "H", "X0")}
    numbers = {
        name: [[Fraction(str(x)) for x in M.xreplace(point).row(i)] for i in range(M.rows)]
        for name, M in given.items()
        if M is not None
    }
    found = oversmoothing.verdict(**numbers)
    return found.verdict_x0 if "X0" in numbers else found.verdict


def no_verdict(values) -> None:
    raise AssertionError(f"the verdict was asked at {values}, where a condition holds")


def check(name: str, count: int, seed: int) -> tuple[set[Outcome], int]:
    """The conditions, evaluated by none of the verdict's code, at so many points in `where`, where
    `subs` evaluates them too; where there is no closed form, the oracle beside the verdict.

    Returns the outcomes seen, and at how many points X_0 lacks a mode that it has elsewhere."""
    symbols = oversmoothing.symbolic(*ASKED[name])
    found, alone = symbols.verdict(), symbols.verdict()
    alone._exact = no_verdict
    assert found.form == ("cells" if name in CELLS else "closed form")
    seen, inside, lacking = set(), 0, 0
    for point in drawn_points(found, 4 * count, seed):
        if inside == count:
            break
        numbers = [M.xreplace(point) for M in (symbols.layer.A, symbols.layer.H)]
        right = exact_verdict(symbols.layer, point)
        if name in CELLS:
            rows = [[[Fraction(str(x)) for x in M.row(i)] for i in range(M.rows)] for M in numbers]
            assert str(right) in truth(*rows).verdict, point
            # The verdict changes on a boundary alone.
            assert right is not Outcome.TIE or 0 in [p.xreplace(point) for p in found.boundaries]
        elif not holds(found.where, point):
            assert found.subs(point) is right, point
            continue
        else:
            assert (found if found.names else alone).subs(point) is right, point
            values = {**point, **extremes(found.names, *numbers)}
            modes = getattr(found, "modes", ())
            lacking += any(not holds(m.contained, point) for m in modes if holds(m.when, point))
            for word, outcome in WORDS.items():
                condition = getattr(found, word, sp.false)
                assert holds(condition, values) == (right is outcome), point
        seen.add(right)
        inside += 1
    assert inside == count
    return seen, lacking


QUICK = ("one", "two-rates", "turning-attention", "cubic-attention", "ring-5", "line-5",
         "one in X0", "start-alone in X0", "jordan in X0", "classes in X0",
         "turning-alike in X0")  # fmt: skip


@pytest.mark.parametrize("name", QUICK)
def test_conditions_agree_with_the_exact_verdict_at_a_few_points(name: str) -> None:
    seen, lacking = check(name, 16 if "X0" in name else 8, 1)
    assert len(seen) > 1 and bool(lacking) == ("X0" in name)


@pytest.mark.parametrize("name", ASKED)
def test_conditions_agree_with_the_exact_verdict_at_200_points(name: str) -> None:
    seen, lacking = check(name, 200, 0)
    if "X0" in name:
        assert {Outcome.SMOOTHING, Outcome.NON_SMOOTHING} <= seen and lacking > 10
    else:
        # Only this one has no boundary with rational points at hand.
        assert Outcome.TIE in seen or name == "both-turning"


def test_one_eigenvalue_smooths_above_zero_and_below_the_threshold() -> None:
    """T2b as a condition: h > 0 or h < -2/(1 + a)."""
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
    edges = "at a = -1 and a = 1 more entries of A are 0: ask for these apart"
    assert f"\n  for -1 < a < 1; {edges}\n  assumed: -1 <= a <= 1" in str(found)
    # What all cases share stands once, in front.
    cases = sp.Or(sp.And(a < 1, h > 0), sp.And(a < 1, h < -2))
    assert when(Outcome.SMOOTHING, cases) == "smooths iff a < 1 and (h > 0 or h < -2)"
    # What is no short condition is not said twice.
    both = str(oversmoothing.symbolic(*CASES["diagonal"]).verdict())
    assert "not (" not in both and "ties iff neither of the others holds" in both
    # W is the transpose, and its factors make it.
    assert oversmoothing.verdict(A=A, W=[[h]]).smooths == found.smooths
    factors = (sp.Matrix([[h]]), sp.Matrix([[1]]))
    assert oversmoothing.verdict(A=A, W=factors).smooths == found.smooths


def test_a_turning_h_smooths_outside_the_disc() -> None:
    """T3b as a condition: (1 + a) |h|^2 + 2 Re h > 0."""
    found = oversmoothing.symbolic(TWO, TURNED).verdict()
    assert found.smooths == sp.Gt(sp.expand((1 + a) * (h**2 + k**2) + 2 * h), 0)


def test_one_parameter_is_solved_on_the_line_with_its_edges() -> None:
    found = oversmoothing.symbolic(HALF, ONE).verdict()
    assert found.smooths == sp.Or(h > 0, h < sp.Rational(-4, 3))
    # So it is where one of two parameters has its value.
    assert oversmoothing.symbolic(TWO, ONE).verdict().subs(a="1/2").smooths == found.smooths
    never = oversmoothing.symbolic(TWO, [["-1/2"]]).verdict()
    assert never.smooths is sp.false and never.ties == sp.Eq(a, 1)
    assert never.does_not == sp.And(a >= -1, a < 1)
    # An irrational boundary: h^2 - 2 = 0 multiplied into the eigenvalue.
    crossing = oversmoothing.symbolic(HALF, [["t**2 - 2"]]).verdict()
    assert crossing.ties.subs(t, sp.sqrt(2)) == sp.true
    assert crossing.subs(t=2) is Outcome.SMOOTHING and crossing.subs(t=1) is Outcome.NON_SMOOTHING


def test_a_sum_that_cancels_to_a_number_has_its_sign() -> None:
    layer = oversmoothing.symbolic(TWO, [["h"]]).layer
    a, h = layer.parameters
    # sympy's factor_list refuses -2 as a factor; which form a difference takes is left to chance.
    sign, rest = layer.reduced((h * (1 + a) - h - a * h - 2) * h)
    assert (sign, rest) == (-1, [(h, 1)])


def test_each_cell_has_the_exact_verdict_of_its_point() -> None:
    for name in ("one", "ring-5"):
        symbols = oversmoothing.symbolic(*CASES[name])
        cells = symbols.verdict().cells()
        assert {cell.outcome for cell in cells} == {Outcome.SMOOTHING, Outcome.NON_SMOOTHING}
        for cell in cells:
            assert cell.outcome is exact_verdict(symbols.layer, cell.point)
    with pytest.raises(InputError, match="one or two parameters"):
        oversmoothing.symbolic(*CASES["both-turning"]).verdict().cells()


def test_what_is_assumed_is_stated_and_never_taken_in_silence() -> None:
    b = sp.Symbol("b")
    found = oversmoothing.symbolic([["a", 1 - b], [0, 1]], [["h"]])
    assert sp.Eq(a - b + 1, 1) in found.assumed and sp.Ge(1 - b, 0) in found.assumed
    assert "real b" in str(found.verdict())
    refuses("no attention", lambda: found.verdict().subs(a="1/2", b="1/3", h=1))
    positive = sp.Symbol("h", positive=True)
    settled = oversmoothing.verdict(A=HALF, H=[[positive]])
    refuses("declared positive", settled.subs, h=-1)


@cases(
    "words, A, H, X0",
    ("row 1 sums to 2", [["a", "1-a"], ["1", "1"]], ONE, None),
    ("negative", [["a", "1-a"], ["3/2", "-1/2"]], ONE, None),
    ("must be square", TWO, [["h", "k"]], None),
    ("no expression", TWO, [["__import__('os')"]], None),
    ("rational function", TWO, [[sp.exp(sp.Symbol("h"))]], None),
    ("float beside parameters", TWO, [[sp.Symbol("h") * 0.5]], None),
    ("not real", TWO, [[sp.Symbol("h", imaginary=True)]], None),
    ("two different", [[sp.Symbol("a", positive=True), 1 - sp.Symbol("a")], [0, 1]], ONE, None),
    ("must be .2, 1.", TWO, ONE, [["x"]]),
    ("rational function", TWO, ONE, [[sp.exp(sp.Symbol("x"))], [1]]),
)
def test_what_cannot_be_used_is_refused_in_a_sentence(words: str, A, H, X0) -> None:
    refuses(words, oversmoothing.symbolic, A, H, X0)
    if X0 is not None:
        refuses(words, oversmoothing.symbolic(A, H).verdict, X0)


@pytest.mark.parametrize("name", ["diagonal", "turning", "ring-4", "jordan", "cubic-values"])
def test_the_symbolic_operator_is_what_its_parts_say(name: str) -> None:
    found = oversmoothing.symbolic(*CASES[name])
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
    mixed = sp.And(sp.Or(sp.Eq(x, 0), x > y), sp.Ne(y, 1))
    assert said(mixed) == "y is not 1 and (x = 0 or x > y)"
    assert said(sp.true) == "always" and said(sp.false) == "never"
    # A condition without exceptions is no "iff".
    positive = sp.Symbol("h", positive=True)
    printed = str(oversmoothing.verdict(A=HALF, H=[[positive]]))
    assert "smooths: always" in printed and "ties: never" in printed


def test_a_picture_says_what_its_letters_are_and_gives_the_matrices_or_their_sizes() -> None:
    region = oversmoothing.Layer(A=TWO, H=ONE).region(h=(-3, 1), a=(-1, 1))
    assert region.caption == [
        "smooths iff h > 0 or h < -2/(a + 1), for -1 < a < 1",
        "A = [[a/2 + 1/2, 1/2 - a/2], [1/2 - a/2, a/2 + 1/2]]",
        "H = [[h]]",
    ]
    assert "H = [[h]]" in "".join(text.get_text() for text in region.plot().texts)
    large = oversmoothing.Layer(A=[["1/9"] * 9] * 9, H=[["h"]]).region(h=(1, 2))
    assert large.caption[:2] == ["smooths iff h > 0 or h < -2", "A: 9 by 9"]
    assert [text.get_text() for text in region.plot().legends[0].texts][-1] == "boundary: ties"


# --- in X_0 ---


def test_a_coefficient_that_vanishes_changes_the_mode_that_decides() -> None:
    """T4e on T2b: w = (1, 1) and (1, -1); with H = -1/2 it never smooths, and h decides else."""
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
    assert special.verdict().smooths == sp.And(sp.Eq(z - 1, 0), sp.Ne(z + 1, 0))
    assert special.verdict().subs(z=1) is Outcome.SMOOTHING


def test_where_eigenvalues_meet_or_attention_has_a_zero_subs_answers_all_the_same() -> None:
    found = oversmoothing.symbolic(*STARTS["triangular"]).verdict()
    assert found.where == sp.Ne(h - k, 0)
    # A Jordan block there: from (0, 1) it is contained whole.
    point = {"h": 1, "k": 1, "x": 0, "y": 1}
    assert found.where.subs({h: 1, k: 1}) == sp.false
    assert found.subs(point) is Outcome.TRIVIAL and found.exactly(point) is Outcome.TRIVIAL
    edge = oversmoothing.symbolic(*STARTS["one"]).verdict()
    # a = 1: two closed classes, so that (1, -1) is consensus within each.
    assert edge.subs(a=1, h=1, x=1, y=-1) is Outcome.TIE
    assert edge.subs(a="1/2", h=1, x=1, y=-1) is Outcome.NON_SMOOTHING


def test_part_of_the_parameters_leaves_a_verdict_on_this_x0_and_a_region_is_drawn() -> None:
    found = oversmoothing.symbolic(*STARTS["one"]).verdict()
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


def test_a_depth_and_a_point_without_attention_are_refused_of_an_x0() -> None:
    refuses("depth", oversmoothing.Layer(A=TWO, H=ONE).verdict, [["x"], [1]], depth=3)
    found = oversmoothing.symbolic(*STARTS["one"]).verdict()
    refuses("no attention", found.subs, a=2, h=1, x=1, y=1)


CUBIC_A = "1/2 1/4 1/8 1/8; 1/8 1/2 1/4 1/8; 1/3 1/6 1/4 1/4; 1/10 1/5 3/10 2/5"


def test_factors_with_coefficients_beyond_a_c_int_are_sorted_all_the_same() -> None:
    """An OverflowError of FLINT's. rho_C - rho_Q is .58 at least (600 bits, h from -10 to 10)."""
    found = oversmoothing.symbolic(matrix(CUBIC_A), matrix("h 1 0; 0 1/2 1; 1 0 0")).verdict()
    assert (found.smooths, found.ties, found.does_not) == (True, False, False)


def test_boundaries_that_take_hours_are_not_begun() -> None:
    A = matrix("a 1-a 0; 1/4 1/2 1/4; 1/3 1/3 1/3")
    found = oversmoothing.symbolic(A, matrix("h 1 0; 0 k 1; 1 0 0")).verdict()
    refuses("boundaries in h, k, a can take|boundaries in a, h, k can take",
            lambda: found.boundaries)  # fmt: skip
    assert "give numbers to all but two parameters by subs" in str(found)
    assert found.subs(a="1/2", h=1, k=1) is Outcome.SMOOTHING
    assert found.subs(a="1/2").boundaries


def test_boundaries_left_out_for_their_cost_are_computed_where_they_are_asked_for() -> None:
    """Those of x^3 = h k m, in which the three stand as one, take no time."""
    A, H = matrix("1/2 1/2 0; 0 1/2 1/2; 1/2 0 1/2"), matrix("0 0 h*k*m; 1 0 0; 0 1 0")
    layer = oversmoothing.Layer(A=A, H=H)
    assert "thorough=True (--thorough) computes them" in str(layer.verdict())
    public = oversmoothing.verdict(A=A, H=sp.Matrix(H), thorough=True)
    for whole in (layer.verdict(thorough=True), public):
        assert {"h", "k", "m", "h*k*m + 64"} < set(map(str, whole.boundaries))
        assert "h*k*m + 64 = 0" in str(whole)


def test_a_region_of_four_parameters_says_that_three_are_the_most() -> None:
    layer = oversmoothing.Layer(A=[["1-p", "p"], ["q", "1-q"]], H=TURNED)
    refuses("h, k, p, q: a region has 3 at most\nput numbers", layer.region, h=(-1, 1))
