"""The region of parameters in which a layer smooths: exact boundaries, one exact verdict a cell.

The boundary polynomials and the edges of attention cut the picture into cells; a cell is a
connected set of points of one sign of each. What is decided, exactly, is one rational point in it,
as far from its border as there is. Cells narrower than the distance of two points are not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from textwrap import wrap
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from oversmoothing.theory.numbers.exact import to_fraction
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.symbolic import Cell, SymbolicVerdict

# Points along each axis of a picture of two parameters, squares that are links, and slices through
# a third.
_POINTS, _SQUARES, _SLICES = 240, 24, 3
# Characters of a matrix that the caption writes out.
_WRITTEN = 240
# The address of a page on a point, None where there is none.
Link = Callable[[dict[Any, Any]], str | None]
_COLOURS = {
    Outcome.SMOOTHING: "#9ecae1",
    Outcome.NON_SMOOTHING: "#fdae6b",
    Outcome.TIE: "#bcbddc",
    Outcome.UNDECIDED: "#d9d9d9",
}
_NAMES = {
    Outcome.SMOOTHING: "smooths",
    Outcome.NON_SMOOTHING: "does not smooth",
    Outcome.TIE: "ties",
    Outcome.UNDECIDED: "UNDECIDED",
}


@dataclass(frozen=True)
class Slice:
    """One panel: values of the parameters that are not drawn, cells, and the cell of each point.

    where: [points along the second axis, along the first], the place in `cells` or -1 where A is no
    attention; of one parameter [1, points]. shares: of the points, in each cell.
    """

    fixed: dict[Any, Any]
    cells: list[Cell]
    where: NDArray[np.int64]
    boundaries: tuple[Any, ...]

    @cached_property
    def shares(self) -> list[float]:
        """The share of each cell in the points where A is attention."""
        counts = np.bincount(self.where[self.where >= 0], minlength=len(self.cells))
        return [float(x) for x in counts / max(1, (self.where >= 0).sum())]


class Region:
    """Where a layer with parameters smooths, over ranges of one or two of them, slices of a third.

    slices: what was found, a `Slice` for each panel. caption: what stands below the picture, what
    the letters are. `plot()` draws it, `save(path)` writes PNG,
    PDF and CSV beside one another. link: the address of a page on a point, for an SVG on which one
    clicks.

    >>> import oversmoothing
    >>> layer = oversmoothing.Layer(A=[["(1+a)/2", "(1-a)/2"], ["(1-a)/2", "(1+a)/2"]], H=[["h"]])
    >>> region = layer.region(h=(-3, 1), a=(-1, 1))
    >>> [str(cell.outcome) for cell in region.slices[0].cells]
    ['SMOOTHING', 'NON_SMOOTHING', 'SMOOTHING']
    """

    def __init__(self, verdict: SymbolicVerdict, ranges: Mapping[Any, Any]) -> None:
        known = {s.name: s for s in verdict.parameters}
        named = {getattr(key, "name", key): value for key, value in ranges.items()}
        for name in named:
            if name not in known:
                raise InputError(f"no parameter {name!r}: there are {', '.join(known) or 'none'}")
        missing = [name for name in known if name not in named]
        if missing:
            raise InputError(f"give a range of {', '.join(missing)} too: {missing[0]}=(-1, 1)")
        if len(named) > 3:
            raise InputError("ranges are of at most three parameters: fix others by subs")
        self.ranges = {known[name]: _range(name, value) for name, value in named.items()}
        self.axes = list(self.ranges)[:2]
        self.caption = _caption(verdict.matrices)
        values = [
            [low + (high - low) * Fraction(2 * k + 1, 2 * _SLICES) for k in range(_SLICES)]
            for low, high in list(self.ranges.values())[2:]
        ]
        fixed = [
            {third: x} for third, xs in zip(list(self.ranges)[2:], values, strict=True) for x in xs
        ]
        self.slices = [self._slice(verdict, chosen) for chosen in fixed or [{}]]

    def points(self, axis: int) -> list[Fraction]:
        """Where the axis is looked at: the middles of equal parts."""
        low, high = self.ranges[self.axes[axis]]
        step = (high - low) / _POINTS
        return [low + step * Fraction(2 * k + 1, 2) for k in range(_POINTS)]

    def _slice(self, verdict: SymbolicVerdict, fixed: dict[Any, Fraction]) -> Slice:
        from scipy import ndimage

        rational = {s: sp.Rational(x.numerator, x.denominator) for s, x in fixed.items()}
        here = verdict.subs(rational) if fixed else verdict
        boundaries, edges = here.boundaries, here.edges
        axes = [self.points(k) for k in range(len(self.axes))]
        code = np.zeros([len(points) for points in reversed(axes)], dtype=np.int64)
        if len(axes) == 1:
            code = code[None]
        inside = self._values([*here.entries], code.shape) >= 0
        for k, value in enumerate(self._values([*boundaries, *edges], code.shape)):
            code += (value >= 0).astype(np.int64) << k
        where = np.full(code.shape, -1)
        cells: list[Cell] = []
        allowed = inside.all(axis=0) if len(inside) else np.ones(code.shape, bool)
        for each in np.unique(code[allowed]):
            parts, count = ndimage.label((code == each) & allowed)
            for label in range(1, count + 1):
                part = parts == label
                # The border counts as near, too.
                depth = ndimage.distance_transform_edt(np.pad(part, 1))[1:-1, 1:-1]
                place = np.unravel_index(int(np.argmax(depth)), part.shape)
                at = [points[i] for points, i in zip(axes, reversed(place), strict=False)]
                point = {s: sp.Rational(x.numerator, x.denominator)
                         for s, x in zip(self.axes, at, strict=True)}  # fmt: skip
                outcome = here.exactly(point)
                if outcome is not None:
                    where[part] = len(cells)
                    cells.append(Cell({**rational, **point}, outcome))
        return Slice(rational, cells, where, boundaries)

    def _values(self, expressions: list[Any], shape: tuple[int, ...]) -> Array:
        """[expressions, *shape] in floats."""
        grids = np.meshgrid(*([float(x) for x in self.points(k)] for k in range(len(self.axes))))
        values = np.zeros((len(expressions), *shape))
        for k, expression in enumerate(expressions):
            with np.errstate(all="ignore"):
                values[k] = sp.lambdify(self.axes, expression, "numpy")(*grids)
        return values

    def plot(self, link: Link | None = None) -> Any:
        """A matplotlib figure: cells in colours, boundaries between verdicts as curves."""
        from matplotlib.colors import BoundaryNorm, ListedColormap
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch

        count = len(self.slices)
        caption = [line for each in self.caption for line in wrap(each, 85 * count)]
        below = 0.14 * len(caption) + 0.05
        height = (1.9 if len(self.axes) == 1 else 4.4) + below
        figure = Figure(figsize=(1.6 + 4.2 * count, height))
        figure.text(0.02, 0.05 / height, "\n".join(caption), fontsize=8, va="bottom")
        panels = figure.subplots(1, count, squeeze=False, sharey=True)[0]
        order = list(_COLOURS)
        seen: set[Outcome] = set()
        for panel, each in zip(panels, self.slices, strict=True):
            outcomes = np.array([order.index(cell.outcome) for cell in each.cells] + [len(order)])
            shown = outcomes[each.where]
            seen |= {cell.outcome for cell in each.cells}
            colours = ListedColormap([*_COLOURS.values(), "white"])
            x = [float(v) for v in self.ranges[self.axes[0]]]
            y = [float(v) for v in self.ranges[self.axes[1]]] if len(self.axes) > 1 else [0.0, 1.0]
            panel.imshow(
                shown, origin="lower", extent=(*x, *y), aspect="auto", interpolation="nearest",
                cmap=colours, norm=BoundaryNorm(np.arange(-0.5, len(order) + 1), len(order) + 1),
            )  # fmt: skip
            self._curves(panel, each, shown)
            if link is not None:
                self._links(panel, each, link)
            panel.set_xlabel(str(self.axes[0]))
            panel.set_title(", ".join(f"{s} = {v}" for s, v in each.fixed.items()))
        if len(self.axes) > 1:
            panels[0].set_ylabel(str(self.axes[1]))
        else:
            panels[0].set_yticks([])
        keys = [Patch(color=_COLOURS[o], label=_NAMES[o]) for o in order if o in seen]
        figure.legend(handles=keys, loc="upper center", ncols=len(keys), frameon=False)
        figure.tight_layout(rect=(0, below / height, 1, 1 - 0.38 / height))
        return figure

    def _curves(self, panel: Any, each: Slice, shown: Any) -> None:
        """The zeros of the boundary polynomials where they part two verdicts."""
        from scipy.ndimage import binary_dilation

        if len(self.axes) == 1:
            change = np.flatnonzero(np.diff(shown[0]))
            points = [float(x) for x in self.points(0)]
            for k in change:
                panel.axvline((points[k] + points[k + 1]) / 2, color="black", lw=1.2)
            return
        changes = np.zeros(shown.shape, bool)
        changes[:, 1:] |= shown[:, 1:] != shown[:, :-1]
        changes[1:] |= shown[1:] != shown[:-1]
        near = binary_dilation(changes, iterations=3)
        x, y = ([float(v) for v in self.points(k)] for k in range(2))
        for value in self._values([*each.boundaries], shown.shape):
            value = np.where(near, value, np.nan)
            if (value < 0).any() and (value > 0).any():
                panel.contour(x, y, value, levels=[0], colors="black", linewidths=1.2)

    def _links(self, panel: Any, each: Slice, link: Link) -> None:
        """Squares, not to be seen, that lead to the page on the point in their middle."""
        from matplotlib.patches import Rectangle

        spans = [*self.ranges.values(), (Fraction(0), Fraction(1))][:2]
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
        """A row for each cell with the point that was decided, one for each boundary polynomial."""
        names = [str(s) for s in self.ranges]
        lines = [",".join(["kind", "verdict", *names, "share", "polynomial"])]
        for each in self.slices:
            for cell, share in zip(each.cells, each.shares, strict=True):
                values = [str(cell.point[s]) for s in self.ranges]
                lines.append(",".join(["cell", cell.outcome, *values, f"{share:.4f}", ""]))
            fixed = [str(each.fixed.get(s, "")) for s in self.ranges]
            for polynomial in each.boundaries:
                lines.append(",".join(["boundary", "", *fixed, "", str(polynomial)]))
        return "\n".join(lines) + "\n"

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


def _caption(matrices: Mapping[str, Any]) -> list[str]:
    """What the letters are, with the matrices of the case, or their sizes where they are long."""
    names = sorted({s.name for M in matrices.values() for s in M.free_symbols})
    words = ", ".join(names[:-1]) + " and " * (len(names) > 1) + names[-1]
    kind = "the parameters" if len(names) > 1 else "the parameter"
    written = {name: str(M.tolist()) for name, M in matrices.items()}
    return [
        f"{words}: {kind} of the case",
        *(
            f"{name} = {text}" if len(text) <= _WRITTEN else f"{name}: {M.rows} by {M.cols}"
            for (name, M), text in zip(matrices.items(), written.values(), strict=True)
        ),
    ]


def _range(name: str, value: Any) -> tuple[Fraction, Fraction]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InputError(f"the range of {name} is {value!r}: give two numbers, {name}=(-3, 1)")
    low, high = (to_fraction(x, f"the range of {name}") for x in value)
    if low >= high:
        raise InputError(f"the range of {name} is {value!r}: it must go up")
    return low, high
