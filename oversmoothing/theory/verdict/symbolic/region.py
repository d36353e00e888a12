"""The region of parameters in which a layer smooths: exact boundaries, one exact verdict a cell.

The boundary polynomials and the edges of attention cut the picture into cells; a cell is a
connected set of points of one sign of each, and neighbours with a zero between them are not joined.
What is decided, exactly, is one rational point in it, as far from its border as there is. Cells
narrower than the distance of two points are not seen. A part of a boundary is drawn where it parts
verdicts, or has one of its own. Conditions on two parameters are read off the signs of the
polynomials in all cells of a cylindrical decomposition. One file for one room: cells, conditions
and picture are of the same polynomials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import groupby, product
from textwrap import wrap
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from oversmoothing.theory.numbers.exact import to_fraction
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import REAL, Array
from oversmoothing.theory.verdict.formulas import COMPARED, Outcome
from oversmoothing.theory.verdict.symbolic.boundaries import (
    between,
    critical,
    real_roots,
    sign_condition,
)
from oversmoothing.theory.verdict.symbolic.symbolic_verdict import (
    WORDS,
    Cell,
    SymbolicVerdict,
    when,
)

# Points along each axis of a picture of two parameters, squares that are links, and slices through
# a third.
_POINTS, _SQUARES, _SLICES = 240, 24, 3
# Characters of a matrix that the caption writes out.
_WRITTEN = 240
# Crossings that the boundaries of two parameters may have, and characters of a condition in words.
_CROSSINGS, _SAID = 400, 300
# The address of a page on a point, None where there is none.
Link = Callable[[dict[Any, Any]], str | None]
_COLOURS = {
    Outcome.SMOOTHING: "#9ecae1",
    Outcome.NON_SMOOTHING: "#fdae6b",
    Outcome.TIE: "#756bb1",
    Outcome.UNDECIDED: "#d9d9d9",
}
_NAMES = {**WORDS, Outcome.UNDECIDED: "UNDECIDED"}


@dataclass(frozen=True)
class Curve:
    """A part of the zeros of a polynomial, as a line [points, 2].

    cell: a point on it with the verdict there, where that is another than on both its sides (in
    floats where no coordinate is linear); None where these differ.
    """

    line: Array
    polynomial: Any
    cell: Cell | None


@dataclass(frozen=True)
class Slice:
    """One panel: values of the parameters that are not drawn, cells, and the cell of each point.

    where: [points along the second axis, along the first], the place in `cells` or -1 where A is no
    attention. curves: what is drawn of the boundaries. shares: of the points, in each cell.
    """

    fixed: dict[Any, Any]
    cells: list[Cell]
    where: NDArray[np.int64]
    boundaries: tuple[Any, ...]
    curves: list[Curve]

    @cached_property
    def shares(self) -> list[float]:
        """The share of each cell in the points where A is attention."""
        counts = np.bincount(self.where[self.where >= 0], minlength=len(self.cells))
        return [float(x) for x in counts / max(1, (self.where >= 0).sum())]


class Region:
    """Where a layer with parameters smooths, over ranges of one or two of them, slices of a third.

    slices: what was found, a `Slice` for each panel. caption: the lines below the picture.
    `plot()` draws it, `save(path)` writes PNG, PDF and CSV, with links to pages an SVG.

    >>> import oversmoothing
    >>> layer = oversmoothing.Layer(A=[["(1+a)/2", "(1-a)/2"], ["(1-a)/2", "(1+a)/2"]], H=[["h"]])
    >>> region = layer.region(h=(-3, 1), a=(-1, 1))
    >>> [str(cell.outcome) for cell in region.slices[0].cells]
    ['NON_SMOOTHING', 'SMOOTHING', 'SMOOTHING']
    """

    def __init__(self, verdict: SymbolicVerdict, ranges: Mapping[Any, Any]) -> None:
        known = {s.name: s for s in verdict.parameters}
        named = {getattr(key, "name", key): value for key, value in ranges.items()}
        for name in named:
            if name not in known:
                raise InputError(f"no parameter {name!r}: there are {', '.join(known) or 'none'}")
        if len(known) > 3:
            names = ", ".join(known)
            raise InputError(f"{names}: a region has 3 at most\nput numbers for others in the case")
        if missing := [name for name in known if name not in named]:
            how = "give {0}=(low, high) in Python, --vary {0}=LOW:HIGH here".format(missing[0])
            raise InputError(f"there is no range of {', '.join(missing)}\n{how}")
        self.ranges = {known[name]: _range(name, value) for name, value in named.items()}
        self.axes = list(self.ranges)[:2]
        # Of one parameter the picture is of it and of nothing.
        self._plane = {s: self.ranges[s] for s in self.axes}
        if len(self.axes) == 1:
            self._plane[sp.Dummy(real=True)] = (Fraction(0), Fraction(1))
        self._verdict = verdict
        fixed = [
            {third: low + (high - low) * Fraction(2 * k + 1, 2 * _SLICES)}
            for third, (low, high) in list(self.ranges.items())[2:]
            for k in range(_SLICES)
        ]
        self.slices = [self._slice(verdict, chosen) for chosen in fixed or [{}]]

    def points(self, axis: int) -> list[Fraction]:
        """Where the axis is looked at: the middles of equal parts."""
        low, high = list(self._plane.values())[axis]
        step = (high - low) / _POINTS
        return [low + step * Fraction(2 * k + 1, 2) for k in range(_POINTS)]

    def _slice(self, verdict: SymbolicVerdict, fixed: dict[Any, Fraction]) -> Slice:
        from scipy import ndimage

        rational = {s: sp.Rational(x) for s, x in fixed.items()}
        here = verdict.subs(rational) if fixed else verdict
        polynomials = list(dict.fromkeys([*here.boundaries, *here.edges]))
        axes = [self.points(k) for k in range(2)]
        grid = np.array(np.meshgrid(*(np.array(points, dtype=float) for points in axes)))
        allowed = (self._values(here.entries, grid) >= 0).all(axis=0)
        code = np.where(allowed, self._code(polynomials, grid), -1)
        parts = self._parts(polynomials, code)
        where = np.full(code.shape, -1)
        cells: list[Cell] = []
        for label in np.unique(parts[allowed]):
            part = parts == label
            # The border counts as near, too.
            depth = ndimage.distance_transform_edt(np.pad(part, 1))[1:-1, 1:-1]
            row, column = np.unravel_index(int(np.argmax(depth)), part.shape)
            at = zip(self.axes, (axes[0][column], axes[1][row]), strict=False)
            point = {s: sp.Rational(x) for s, x in at}
            outcome = here.exactly(point)
            if outcome is not None:
                where[part] = len(cells)
                cells.append(Cell({**rational, **point}, outcome))
        curves = list(self._curves(here, polynomials, grid, where))
        return Slice(rational, cells, where, here.boundaries, curves)

    def _parts(self, polynomials: Sequence[Any], code: NDArray[np.int64]) -> NDArray[np.int64]:
        """The connected part of each point: neighbours of one code, no zero between them.

        Two discs that are the zeros of one irreducible polynomial meet in points: close to these
        both neighbours have the sign of the outside, and a sliver of a disc lies between them.
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        index, pairs = np.arange(code.size).reshape(code.shape), []
        for axis in range(2):
            lines = (index, index.T)[axis]
            first, second = lines[:, :-1], lines[:, 1:]
            joined = (code.flat[first] == code.flat[second]) & ~self._walls(polynomials, axis)
            pairs.append(np.stack([first[joined], second[joined]]))
        one, other = np.concatenate(pairs, axis=1)
        graph = coo_array((np.ones(len(one)), (one, other)), shape=(code.size, code.size))
        labels: NDArray[np.int64] = connected_components(graph, directed=False)[1]
        return labels.reshape(code.shape)

    def _walls(self, polynomials: Sequence[Any], axis: int) -> NDArray[np.bool_]:
        """[lines, points - 1]: between which neighbours along the axis a polynomial has a zero."""
        along, across = (list(self._plane)[k] for k in (axis, 1 - axis))
        points, lines = (np.array(self.points(k), dtype=float) for k in (axis, 1 - axis))
        walls = np.zeros((len(lines), len(points) - 1), dtype=bool)
        for polynomial in (p for p in polynomials if p.has(along)):
            terms = sp.Poly(polynomial, along).all_coeffs()
            rows = [np.broadcast_to(_function((across,), c)(lines), lines.shape) for c in terms]
            for line, coefficients in enumerate(zip(*rows, strict=True)):
                roots = np.roots(coefficients)
                real = roots.real[abs(roots.imag) <= 1e-9 * (1 + abs(roots))]
                places = np.searchsorted(points, real)
                walls[line, places[(places > 0) & (places < len(points))] - 1] = True
        return walls

    def _values(self, expressions: Sequence[Any], at: Array) -> Array:
        """[expressions, *shape] in floats, at [2, *shape]."""
        values = np.zeros((len(expressions), *at.shape[1:]))
        for k, expression in enumerate(expressions):
            with np.errstate(all="ignore"):
                values[k] = _function(tuple(self._plane), expression)(*at)
        return values

    def _code(self, polynomials: Sequence[Any], at: Array) -> NDArray[np.int64]:
        """The signs of polynomials as one number, polynomial k in bit k."""
        signs = (self._values(polynomials, at) >= 0).astype(np.int64)
        return np.tensordot(1 << np.arange(len(signs)), signs, 1)

    def _curves(
        self, here: Any, polynomials: list[Any], grid: Array, where: NDArray[np.int64]
    ) -> Iterator[Curve]:
        """The parts of all boundaries that are drawn.

        On a part the other polynomials keep their signs, and the cells beside it are the same. It
        is asked in its middle and on both sides of that.
        """
        from contourpy import contour_generator

        for k, polynomial in enumerate(here.boundaries):
            (z,) = self._values([polynomial], grid)
            lines: Any = contour_generator(x=grid[0], y=grid[1], z=z).lines(0.0)
            for line in [*lines, *self._on_border(polynomial)]:
                middles = (line[1:] + line[:-1]) / 2
                codes = self._code(polynomials, middles.T) & ~(1 << k)
                keys = list(zip(codes.tolist(), *self._beside(line, where), strict=True))
                for (key, *_), each in groupby(range(len(keys)), keys.__getitem__):
                    places = list(each)
                    at = places[len(places) // 2]
                    across = (line[at + 1] - line[at])[::-1] * (-1, 1)
                    wanted = [key, key + (1 << k)]
                    sides = self._sides(here, polynomials, middles[at], across, wanted)
                    part = line[places[0] : places[-1] + 2]
                    if None not in sides and len(sides) == 2:
                        yield Curve(part, polynomial, None)
                    elif None not in sides and len(places) > 2:
                        cell = self._on(here, polynomial, middles[at], *sides)
                        if cell.outcome not in (None, *sides):
                            yield Curve(part, polynomial, cell)

    def _on_border(self, polynomial: Any) -> Iterator[Array]:
        """The sides of the picture that are zeros: the points of no contour lie there."""
        for axis, s in enumerate(self.axes):
            for end in self.ranges[s]:
                if sp.expand(polynomial.xreplace({s: sp.Rational(end)})) == 0:
                    along = np.array(self.points(1 - axis), dtype=float)
                    pair = np.full_like(along, float(end)), along
                    yield np.stack(pair if axis == 0 else pair[::-1], axis=1)

    def _beside(self, line: Array, where: NDArray[np.int64]) -> Iterator[list[int]]:
        """The cells left and right of each step of a line, a point and a half away."""
        low, high = np.array([list(map(float, ends)) for ends in self._plane.values()]).T
        path = (line - low) / (high - low) * _POINTS - 0.5
        steps, middles = np.diff(path, axis=0), (path[1:] + path[:-1]) / 2
        across = steps[:, ::-1] * (-1.5, 1.5) / np.linalg.norm(steps, axis=1, keepdims=True)
        for near in (middles + across, middles - across):
            column, row = np.clip(np.rint(near), 0, _POINTS - 1).astype(int).T
            yield where[row, column].tolist()

    def _sides(
        self, here: Any, polynomials: list[Any], middle: Array, across: Array, wanted: list[int]
    ) -> set[Outcome | None]:
        """The verdicts close to a boundary, at points of these signs; None where none is found."""
        near = np.array([middle + across * sign / 2**k for k in range(9) for sign in (1, -1)])
        codes = self._code(polynomials, near.T).tolist()
        points = [near[codes.index(code)] for code in wanted if code in codes]
        return {here.exactly(self._rational(x)) for x in points} if len(points) == 2 else {None}

    def _rational(self, point: Array) -> dict[Any, Any]:
        pairs = zip(self.axes, point, strict=False)
        return {s: sp.Rational(Fraction(x).limit_denominator(10**6)) for s, x in pairs}

    def _on(self, here: Any, polynomial: Any, middle: Array, side: Any) -> Cell:
        """The verdict at a zero: at a rational one by a point, where one coordinate is linear."""
        point = self._rational(middle)
        for t in self.axes:
            cut = sp.Poly(polynomial.xreplace({s: x for s, x in point.items() if s is not t}), t)
            if cut.degree() == 1:
                point[t] = -cut.nth(0) / cut.nth(1)
                return Cell(point, here.exactly(point))
        point = {s: sp.Float(x) for s, x in zip(self.axes, middle, strict=False)}
        return Cell(point, here.on_boundary(point, side))

    # ------------------------------------------------------------------------------ conditions

    @cached_property
    def conditions(self) -> dict[Outcome, Any] | None:
        """The condition of each verdict within the ranges of two parameters, of generic X_0.

        A part of a condition is left out where the signs of the polynomials that remain give the
        same verdict in every cell of a cylindrical decomposition of the ranges, walls and corners
        too. Not looked at: single points, where boundaries cross and no coordinate is rational
        (`crossings`). None for other numbers of parameters, where boundaries can cross too often,
        and where a wall is UNDECIDED or signs do not tell verdicts apart.
        """
        verdict = self._verdict
        if len(self.ranges) != 2 or "X0" in verdict.matrices:
            return None
        polynomials = list(dict.fromkeys([*verdict.boundaries, *verdict.edges]))
        degrees = [sp.Poly(p, *self.axes).total_degree() for p in polynomials]
        if (sum(degrees) ** 2 - sum(k * k for k in degrees)) / 2 > _CROSSINGS:
            return None
        verdicts: dict[tuple[int, ...], Outcome] = {}
        self.crossings = True
        for s, t in (self.axes, self.axes[::-1]):
            ends = self._ends(s, real_roots(critical(polynomials, s, t), s))
            rational = [x for x in ends if x.is_Rational]
            self.crossings &= len(rational) < len(ends)
            for x in rational + between(ends)[1:-1]:
                for signs, outcome in self._on_line(polynomials, {s: x}, t):
                    if outcome is not None and verdicts.setdefault(signs, outcome) is not outcome:
                        return None
        if Outcome.UNDECIDED in verdicts.values():
            return None
        return {
            each: sign_condition(
                polynomials,
                [signs for signs, outcome in verdicts.items() if outcome is each],
                [signs for signs, outcome in verdicts.items() if outcome is not each],
            )
            for each in COMPARED
        }

    def _ends(self, s: Any, roots: list[Any]) -> list[Any]:
        """The ends of the range of s, and the roots between them."""
        low, high = map(sp.Rational, self.ranges[s])
        return [low, *(root for root in roots if low < root < high), high]

    def _on_line(
        self, polynomials: list[Any], at: dict[Any, Any], t: Any
    ) -> Iterator[tuple[tuple[int, ...], Outcome | None]]:
        """(signs, verdict) on and between all zeros on a line; None where A is no attention."""
        cut = [sp.sympify(p.xreplace(at)) for p in polynomials]
        ends = self._ends(t, real_roots(cut, t))
        samples = between(ends)[1:-1]
        zeros = [real_roots([p], t) for p in cut]
        signs = [tuple(int(sp.sign(p.xreplace({t: x}))) for p in cut) for x in samples]
        outcomes = [self._verdict.exactly({**at, t: x}) for x in samples]
        yield from zip(signs, outcomes, strict=True)
        for k, root in enumerate(ends):
            near = slice(max(0, k - 1), k + 1)
            there = (0 if root in own else s for s, own in zip(signs[near][0], zeros, strict=True))
            yield tuple(there), self._verdict.on_boundary({**at, t: root}, *outcomes[near])

    @cached_property
    def caption(self) -> list[str]:
        """The condition as the verdict writes it, where it is short, and the matrices."""
        wanted = ("smooths iff", "for ", *(f"{symbol}:" for symbol in self._verdict.names))
        said = (line.strip().partition(";")[0] for line in str(self._verdict).splitlines())
        condition = ", ".join(line for line in said if line.startswith(wanted))
        lines = [condition] if 0 < len(condition) <= _WRITTEN else []
        for name, M in self._verdict.matrices.items():
            text = f"{name} = {M.tolist()}"
            lines.append(text if len(text) <= _WRITTEN else f"{name}: {M.rows} by {M.cols}")
        return lines

    def words(self) -> str:
        """The conditions within the ranges where they are short, else what is known without."""
        verdict, ranges = self._verdict, repr(self).partition(": ")[0].removeprefix("<Region of ")
        lines = [when(each, condition) for each, condition in (self.conditions or {}).items()]
        if lines and max(map(len, lines)) <= _SAID:
            assumed = [f"assumed: {verdict.stated}"] if verdict.stated else []
            if self.crossings:
                assumed += ["not asked: points where boundaries cross at irrational values"]
            return "\n  ".join([f"for {ranges}:", *lines, *assumed])
        if verdict.left_out or max(map(len, str(verdict).splitlines())) <= _SAID:
            return str(verdict)
        first = (
            f"no short condition for {ranges}: the verdict changes only where one of these holds"
        )
        zeros = (f"{p} = 0" for p in verdict.boundaries)
        return "\n  ".join([first, *zeros, "the CSV has a point of each cell, with its verdict"])

    def plot(self, link: Link | None = None) -> Any:
        """A matplotlib figure: cells in colours, boundaries between verdicts as curves."""
        from matplotlib.colors import BoundaryNorm, ListedColormap
        from matplotlib.figure import Figure
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        count = len(self.slices)
        caption = [line for each in self.caption for line in wrap(each, 85 * count)]
        below = 0.14 * len(caption) + 0.05
        height = (2.2 if len(self.axes) == 1 else 4.7) + below
        figure = Figure(figsize=(1.6 + 4.2 * count, height))
        figure.text(0.02, 0.05 / height, "\n".join(caption), fontsize=8, va="bottom")
        panels = figure.subplots(1, count, squeeze=False, sharey=True)[0]
        order, seen = list(_COLOURS), set[Outcome]()
        for panel, each in zip(panels, self.slices, strict=True):
            outcomes = np.array([order.index(cell.outcome) for cell in each.cells] + [len(order)])
            shown = outcomes[each.where]
            seen |= {cell.outcome for cell in each.cells}
            colours = ListedColormap([*_COLOURS.values(), "white"])
            extent = [float(end) for ends in self._plane.values() for end in ends]
            panel.imshow(
                shown, origin="lower", extent=extent, aspect="auto", interpolation="nearest",
                cmap=colours, norm=BoundaryNorm(np.arange(-0.5, len(order) + 1), len(order) + 1),
            )  # fmt: skip
            for curve in each.curves:
                own = curve.cell.outcome if curve.cell else None
                seen |= {own} if own else set()
                style: Any = (
                    {"color": _COLOURS[own], "lw": 3} if own else {"color": "black", "lw": 1.2}
                )
                # Over the frame: a boundary may be a side of the picture.
                style |= {"solid_capstyle": "round", "clip_on": False, "zorder": 3}
                panel.plot(*curve.line.T, scalex=False, scaley=False, **style)
            if link is not None:
                self._links(panel, each, link)
            # A black frame would look like boundaries.
            panel.spines[:].set_color("0.7")
            panel.set_xlabel(str(self.axes[0]))
            panel.set_title(", ".join(f"{s} = {v}" for s, v in each.fixed.items()))
        if len(self.axes) > 1:
            panels[0].set_ylabel(str(self.axes[1]))
        else:
            panels[0].set_yticks([])
        keys: list[Any] = [Patch(color=_COLOURS[o], label=_NAMES[o]) for o in order if o in seen]
        if any(curve.cell is None for each in self.slices for curve in each.curves):
            tie = Outcome.UNDECIDED not in seen and "X0" not in self._verdict.matrices
            keys.append(Line2D([], [], color="k", lw=1.2, label="boundary" + ": ties" * tie))
        if any((each.where < 0).any() for each in self.slices):
            keys.append(Patch(facecolor="white", edgecolor="0.7", label="no attention"))
        title = f"For which {' and '.join(map(str, self.ranges))} does the layer smooth?"
        figure.text(0.5, 1 - 0.08 / height, title, ha="center", va="top", fontsize=11)
        place: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, 1 - 0.26 / height)}
        figure.legend(handles=keys, ncols=len(keys), frameon=False, fontsize=8, **place)
        figure.tight_layout(rect=(0, below / height, 1, 1 - 0.6 / height))
        return figure

    def _links(self, panel: Any, each: Slice, link: Link) -> None:
        """Squares, not to be seen, that lead to the page on the point in their middle."""
        from matplotlib.patches import Rectangle

        spans = self._plane.values()
        steps = [(high - low) / _SQUARES for low, high in spans]
        for place in product(range(_SQUARES), repeat=2):
            corner = [low + k * step for (low, _), k, step in zip(spans, place, steps, strict=True)]
            middle = (x + step / 2 for x, step in zip(corner, steps, strict=True))
            address = link({**each.fixed, **dict(zip(self.axes, middle, strict=False))})
            if address is not None:
                x, y, width, height = map(float, (*corner, *steps))
                square = Rectangle((x, y), width, height, alpha=0.002, zorder=9)
                square.set_url(address)
                panel.add_patch(square)

    def to_csv(self) -> str:
        """A row for each cell with the point that was decided, one for each boundary polynomial.

        Between them one for each curve with a verdict of its own, with a point on it.
        """
        rows: list[tuple[str, ...]] = [
            ("kind", "verdict", *map(str, self.ranges), "share", "polynomial")
        ]

        def row(kind: str, outcome: str, at: Any, share: str = "", polynomial: Any = "") -> None:
            values = (_number(at[s]) if s in at else "" for s in self.ranges)
            rows.append((kind, outcome, *values, share, str(polynomial)))

        for each in self.slices:
            for cell, share in zip(each.cells, each.shares, strict=True):
                row("cell", cell.outcome, cell.point, f"{share:.4f}")
            for curve in each.curves:
                if (own := curve.cell) is not None:
                    row("curve", own.outcome, each.fixed | own.point, "", curve.polynomial)
            for polynomial in each.boundaries:
                row("boundary", "", each.fixed, "", polynomial)
        return "".join(",".join(each) + "\n" for each in rows)

    def save(self, path: Any, link: Link | None = None) -> list[str]:
        """Write PATH.png, PATH.pdf and PATH.csv, with links PATH.svg; returns their paths."""
        from oversmoothing.theory.support.files import write_atomically

        figure = self.plot()
        paths = [f"{path}.{kind}" for kind in ("png", "pdf", "csv")]
        for name in paths[:2]:
            figure.savefig(name, dpi=150)
        write_atomically(paths[2], self.to_csv())
        if link is not None:
            paths.append(f"{path}.svg")
            self.plot(link).savefig(paths[3], dpi=150)
        return paths

    def _repr_png_(self) -> bytes:
        from io import BytesIO

        held = BytesIO()
        self.plot().savefig(held, format="png", dpi=100)
        return held.getvalue()

    def __repr__(self) -> str:
        words = ", ".join(f"{s} from {low} to {high}" for s, (low, high) in self.ranges.items())
        cells = sum(len(each.cells) for each in self.slices)
        return f"<Region of {words}: {cells} cells>"


_function = cache(sp.lambdify)


def _number(x: Any) -> str:
    return str(x) if x.is_Rational else str(float(x))


def _range(name: str, value: Any) -> tuple[Fraction, Fraction]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InputError(f"the range of {name} is {value!r}: give two numbers, {name}=(-3, 1)")
    low, high = (to_fraction(x, f"the range of {name}") for x in value)
    if low >= high or max(-low, high) > REAL:
        raise InputError(f"the range of {name} is {value!r}: it must go up, to {REAL:g} at most")
    return low, high
