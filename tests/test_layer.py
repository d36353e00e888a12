"""`oversmoothing.Layer`: what the functions take as loose arguments, and its region."""

import csv
import io
import random
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
import torch
from matplotlib.colors import to_rgba

import oversmoothing
from oversmoothing import Layer
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tables import matrix

A, H = [["3/4", "1/4"], ["1/4", "3/4"]], [["-3/2"]]
TWO = [["(1+a)/2", "(1-a)/2"], ["(1-a)/2", "(1+a)/2"]]


@pytest.mark.parametrize("call", [oversmoothing.verdict, Layer, oversmoothing.operator])
def test_matrices_by_position_are_answered_with_which_is_which(call) -> None:
    refuses(r"W = W_V W_proj .* H = W", lambda: call(np.eye(2), np.eye(2)), error=TypeError)


def test_a_layer_answers_as_the_functions_do() -> None:
    layer, X0 = Layer(A=A, H=H), [["1"], ["2"]]
    direct = oversmoothing.verdict(A=A, H=H, X0=X0, depth=[1, 5])
    assert layer.verdict(X0, depth=[1, 5]).to_json_object() == direct.to_json_object()
    assert layer.verdict().dominant[0].consensus
    run = oversmoothing.evolve(
        X0=[[1.0], [2.0]], A=[[0.75, 0.25], [0.25, 0.75]], H=[[-1.5]], depth=9
    )
    assert layer.evolve(X0, 9).metrics().equals(run.metrics())
    assert layer.certify(X0).checked
    assert layer.symbolic().determinant == sp.Rational(-1, 8)
    assert (layer.n, layer.d, layer.numbers) == (2, 1, "fractions")


def test_a_batch_is_a_stack_of_layers_and_nothing_else_is_taken_for_one() -> None:
    rng = np.random.default_rng(0)
    stack, W = rng.dirichlet(np.ones(4), (3, 4)), rng.standard_normal((3, 3))
    layers = Layer(A=stack, W=W, batch=True)
    assert layers.batch == (3,) and len(layers) == 3
    for place, answer in enumerate(layers.verdict()):
        assert answer.rho_quotient == oversmoothing.verdict(A=stack[place], W=W).rho_quotient
        assert layers[place].d == 3
    X0 = rng.standard_normal((4, 3))
    assert layers.evolve(X0, 2).batch == (3,)
    for ask in (lambda: layers.operator, layers.certify, lambda: Layer(A=stack, W=W).verdict()):
        refuses("", ask)


@cases(
    "given, words",
    ({"heads": 1}, "list of pairs"),
    ({"heads": [(np.eye(2), np.eye(3)), (np.eye(3), np.eye(3))]}, r"A of the heads has the shapes"),
    ({"heads": [(np.eye(2), (np.eye(3),))]}, "of all as factors"),
    ({"heads": [(np.eye(2), (np.eye(3),) * 3)]}, "of all as factors"),
    ({"A": [np.eye(2), np.eye(3)], "H": np.eye(2), "batch": True}, "A, H are no stacks|H, A are"),
)
def test_heads_and_stacks_that_do_not_fit_are_refused(given, words: str) -> None:
    refuses(words, lambda: Layer(**given).core)


def test_heads_are_one_operator() -> None:
    rng = np.random.default_rng(1)
    attention = rng.dirichlet(np.ones(4), (2, 4))
    W = rng.standard_normal((2, 3, 3))
    layer = Layer(heads=list(zip(attention, W, strict=True)))
    whole = oversmoothing.heads_verdict(A=attention, W=W)
    assert layer.verdict().rho_quotient == whole.rho_quotient
    top = max(abs(np.linalg.eigvals(layer.operator.matrix())))
    assert top == pytest.approx(max(whole.rho_consensus, whole.rho_quotient), rel=1e-12)
    X0 = rng.standard_normal((4, 3))
    whole = oversmoothing.heads_verdict(A=attention, W=W, X0=X0, depth=[1, 5])
    assert layer.verdict(X0, depth=[1, 5]).to_json_object() == whole.to_json_object()
    assert whole.verdict_x0 is not None
    for ask in (layer.certify, layer.eigenpairs):
        refuses("", ask)
    refuses("leave A", Layer, A=attention[0], heads=[(attention[0], W[0])])


def test_a_softmax_of_float32_is_taken_with_its_rounding() -> None:
    attention = torch.softmax(torch.randn(5, 5, generator=torch.Generator().manual_seed(0)), -1)
    layer = Layer(A=attention, W=-0.5 * torch.eye(3))
    assert layer.verdict().verdict == "NON_SMOOTHING"
    assert not layer.eigenpairs().dominant[0].consensus


def test_parameters_are_set_and_a_region_is_drawn(tmp_path) -> None:
    layer = Layer(A=TWO, H=[["h"]])
    assert repr(layer) == "Layer(2 tokens, 1 feature, in a, h)"
    assert layer.subs(a="1/2", h="-3/2").verdict().verdict == "SMOOTHING"
    region = layer.region(h=(-3, 1), a=(-1, 1))
    for each in region.slices:
        for cell in each.cells:
            point = {s.name: str(x) for s, x in cell.point.items()}
            assert layer.subs(**point).verdict().verdict is cell.outcome
        area = {o: 0.0 for o in ("SMOOTHING", "NON_SMOOTHING")}
        for cell, share in zip(each.cells, each.shares, strict=True):
            area[cell.outcome] += 8 * share
        # Right of 0: 2; left: the integral over a of 3 - 2/(1 + a) from -1/3 to 1.
        assert area["SMOOTHING"] == pytest.approx(2 + 4 - 2 * np.log(3), abs=0.03)
    paths = region.save(tmp_path / "region")
    assert [p.rpartition(".")[2] for p in paths] == ["png", "pdf", "csv"]
    rows = list(csv.DictReader(io.StringIO(region.to_csv())))
    assert [row["kind"] for row in rows].count("cell") == 3
    assert "a*h + h + 2" in {row["polynomial"] for row in rows}


@cases(
    "ranges, words",
    ({"h": (-3, 1)}, r"there is no range of a\ngive a="),
    ({"h": (-3, 1), "a": (-1, 1), "b": (0, 1)}, "no parameter 'b'"),
    *(({"h": (1, to), "a": (-1, 1)}, "must go up, to 1e.250") for to in (-3, 10**400)),
    ({"h": 3, "a": (-1, 1)}, "give two numbers"),
)
def test_a_range_that_is_none_is_refused(ranges, words: str) -> None:
    refuses(words, lambda: Layer(A=TWO, H=[["h"]]).region(**ranges))


@pytest.mark.parametrize("ends", [(-3, 0), (0, 1)])
def test_a_tie_on_the_side_of_a_picture_is_drawn(ends):
    """h = 0 parts verdicts (T2b), and no point of the grid lies beyond it."""
    (each,) = Layer(A=TWO, H=[["h"]]).region(h=ends, a=(-1, 1)).slices
    (line,) = (curve.line for curve in each.curves if str(curve.polynomial) == "h")
    assert not line[:, 0].any() and np.ptp(line[:, 1]) > 1.9


def test_one_parameter_is_a_line_and_a_third_is_sliced() -> None:
    line = Layer(A=A, H=[["h"]]).region(h=(-3, 1))
    assert [str(c.outcome) for c in line.slices[0].cells].count("SMOOTHING") == 2
    turning = Layer(A=TWO, H=[["h", "k"], ["-k", "h"]]).region(h=(-3, 1), k=(-2, 2), a=(-1, 1))
    assert len(turning.slices) == 3
    assert {len(each.cells) for each in turning.slices} == {2}
    refuses("no parameters", lambda: Layer(A=A, H=H).region(h=(-3, 1)))


# (A, H, ranges): a quadrilateral, a tie within one verdict, a discriminant, an edge of attention.
REGIONS = {
    "two-values": (A, [["h", 0], [0, "k"]], {"h": (-4, 2), "k": (-4, 2)}),
    "tie-within": ([["1/2+a", "1/2-a"], ["1/4", "3/4"]], [["h", 0], [0, "-h/2"]],
                   {"h": (-4, 4), "a": ("-1/2", "1/2")}),
    "turning": (A, [["h", "k"], ["-k", "h"]], {"h": (-3, 1), "k": (-2, 2)}),
    "edge": (TWO, [["h"]], {"h": (-3, 1), "a": (0, 1)}),
}  # fmt: skip


# H turns and A has complex eigenvalues: two discs that meet in points, zeros of one polynomial.
TURNING = [["x", "-y"], ["y", "x"]]
DISCS = {
    "cycle": (matrix("1/2 1/2 0; 0 1/2 1/2; 1/2 0 1/2"), TURNING, {"x": (-4, 1), "y": (-2, 2)}),
    "wide": (matrix("1/5 3/5 1/5; 1/10 1/10 4/5; 4/5 1/10 1/10"), TURNING,
             {"x": (-6, 2), "y": (-4, 4)}),
}  # fmt: skip


def region_of(name: str):
    A, H, ranges = (REGIONS | DISCS)[name]
    layer = Layer(A=A, H=H)
    return layer, layer.region(**ranges)


@pytest.mark.parametrize("name", [*REGIONS, *DISCS])
def test_a_picture_has_the_exact_verdict_at_its_points(name: str) -> None:
    layer, region = region_of(name)
    (each,), rng = region.slices, random.Random(1)
    for row, column in ((rng.randrange(240), rng.randrange(240)) for _ in range(40)):
        at = zip(region.axes, (region.points(0)[column], region.points(1)[row]), strict=True)
        if (cell := each.where[row, column]) >= 0:
            right = layer.subs(**{s.name: str(x) for s, x in at}).verdict().verdict
            assert right == each.cells[cell].outcome, (row, column)


def test_of_two_discs_that_meet_the_outline_alone_is_drawn() -> None:
    _, region = region_of("cycle")
    # Radius 2/sqrt(3), of which the other disc covers a third; together they are .3367 of 20.
    lines = [line.get_xydata() for line in region.plot().axes[0].lines]
    drawn = sum(np.linalg.norm(np.diff(line, axis=0), axis=1).sum() for line in lines)
    assert drawn == pytest.approx(16 * np.pi / 3 / np.sqrt(3), abs=0.2)
    (each,) = region.slices
    smooth = [share for cell, share in zip(each.cells, each.shares, strict=True)
              if cell.outcome == "SMOOTHING"]  # fmt: skip
    assert smooth == [pytest.approx(1 - (16 * np.pi / 9 + 2 / np.sqrt(3)) / 20, abs=0.003)]


@pytest.mark.parametrize("name", REGIONS)
def test_conditions_within_ranges_are_the_exact_verdict_on_walls_too(name: str) -> None:
    layer, region = region_of(name)
    (s, x_ends), (t, y_ends) = region.ranges.items()
    rng, seen = random.Random(0), set()
    for k in range(60):
        ends, twelfths = (x_ends, y_ends), [rng.randint(0, 12) for _ in range(2)]
        at = [a + (b - a) * Fraction(x, 12) for x, (a, b) in zip(twelfths, ends, strict=True)]
        point = {r: sp.Rational(x.numerator, x.denominator) if k else sp.Integer(0)
                 for r, x in zip((s, t), at, strict=True)}  # fmt: skip
        polynomial = rng.choice(region.slices[0].boundaries)
        if k % 2 and sp.degree(polynomial, s) == 1:  # to the wall
            (root,) = sp.solve(polynomial.subs(t, point[t]), s) or [point[s]]
            point[s] = root if x_ends[0] <= root <= x_ends[1] else point[s]
        right = layer.subs(**{r.name: str(x) for r, x in point.items()}).verdict().verdict
        holding = [o for o, when in region.conditions.items() if when.subs(point) == sp.true]
        assert holding == [right], point
        seen.add(right)
    assert "TIE" in seen and len(seen) > 1


def test_conditions_within_ranges_leave_out_what_never_matters() -> None:
    assert region_of("tie-within")[1].words().splitlines() == [
        "for h from -4 to 4, a from -1/2 to 1/2:",
        "  smooths iff h is not 0",
        "  ties iff h = 0",
        "  does not smooth: never",
        "  assumed: -1/2 <= a <= 1/2",
    ]
    said = region_of("two-values")[1].words()
    assert "does not smooth iff h < 0 and k < 0 and h + 2*k + 4 > 0 and 2*h + k + 4 > 0" in said
    assert "does not smooth iff a < 1 and h < 0 and a*h + h + 2 > 0" in region_of("edge")[1].words()
    # What has no short condition names the polynomials.
    many = Layer(A=A, H=[["h", 1, 0], [0, "h", 1], ["k", 0, -1]]).region(h=(-3, 1), k=(-2, 2))
    assert many.conditions is None and "\n  h**2 - k = 0\n" in many.words()


def test_only_parts_of_boundaries_that_part_verdicts_are_drawn() -> None:
    _, region = region_of("two-values")
    corners = np.array([(0, 0), (0, -2), (-4 / 3, -4 / 3), (-2, 0)])
    sides = list(zip(corners, np.roll(corners, -1, axis=0), strict=True))
    drawn = 0.0

    def distance(p, a, side) -> float:
        """Of a point to a side from a."""
        return np.linalg.norm(p - a - np.clip((p - a) @ side / (side @ side), 0, 1) * side)

    for line in region.plot().axes[0].lines:
        points = line.get_xydata()
        away = [[distance(p, a, b - a) for a, b in sides] for p in points]
        # One of 240 points of an axis is 0.025 wide.
        assert np.min(away, axis=1).max() < 0.025
        assert line.get_color() == "black"
        drawn += np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
    around = sum(np.linalg.norm(b - a) for a, b in sides)
    assert drawn == pytest.approx(around, abs=0.2)


def test_a_tie_within_one_verdict_is_drawn_and_said() -> None:
    line = Layer(A=A, H=[["h", 0], [0, "-h/2"]]).region(h=(-3, 2))
    for region in (region_of("tie-within")[1], line):
        figure = region.plot()
        (drawn,) = figure.axes[0].lines
        assert np.abs(drawn.get_xdata()).max() < 1e-9
        legend = dict(zip(("smooths", "ties"), figure.legends[0].get_patches(), strict=True))
        assert [text.get_text() for text in figure.legends[0].get_texts()] == list(legend)
        assert to_rgba(drawn.get_color()) == legend["ties"].get_facecolor()
        assert "ties iff h = 0" in region.words()
        rows = list(csv.DictReader(io.StringIO(region.to_csv())))
        assert [(r["verdict"], r["h"], r["polynomial"]) for r in rows if r["kind"] == "curve"] == [
            ("TIE", "0", "h")
        ]
