"""Figure: where statements on papers hold, region by region, with points that were checked.

A panel is a statement of the ledger with a region in two parameters (`statement_regions.py`). The
region is the theory's; the points are decided without it, half of them near its boundary.
"""

import re
from fractions import Fraction
from itertools import groupby

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from oversmoothing.paper_figures.figure_base import Context, mark, paler
from oversmoothing.paper_figures.statement_regions import PANELS, Panel
from oversmoothing.simulations.drawing.picture import PALETTE, new_figure
from oversmoothing.theory.proofs.claim import cited

TITLE = "Where statements on papers hold: regions of the theory, points that were checked"
SHORT = (
    "Statements of the ledger that have a region in two parameters: tinted where the theory "
    "says that they hold or fail, dots where an exact or certified check agrees."
)
NOT_SHOWN = (
    "A slice each, small cases of two to fourteen tokens: a region in two parameters is not "
    "all of a statement, and points that agree are no proof; the proofs stand in the ledger."
)

POINTS = 60
# How many cells from a boundary a point is near it.
NEAR = 2
COLUMNS = 4
HOLDS, FAILS, NOTHING, OPEN = "holds", "fails", "nothing said", "tie or cannot tell"
CODES = (NOTHING, HOLDS, FAILS)
# Blue and orange mean alike and apart elsewhere.
COLOUR = {HOLDS: PALETTE["green"], FAILS: PALETTE["purple"], OPEN: PALETTE["grey"]}


def data(context: Context) -> pd.DataFrame:
    """A row a band of a region (kind, claim, said, x, low, high) or a point (kind, claim, x, y,
    said, checked, check)."""
    parts = []
    for number, panel in enumerate(PANELS):
        codes = _codes(panel)
        parts += [_bands(panel, codes), _points(panel, codes, [context.seed, number])]
    return pd.concat(parts, ignore_index=True)


def _codes(panel: Panel) -> NDArray[np.int64]:
    """[rows, columns]: 1 where it is said to hold, 2 to fail, 0 where nothing is said."""
    x, y = np.meshgrid(*(np.array(each, dtype=float) for each in (panel.columns, panel.rows)))
    holds, fails = panel.said(x, y)
    return np.asarray(np.where(holds, 1, np.where(fails, 2, 0)))


def _edges(values: tuple[Fraction, ...]) -> tuple[float, float]:
    """The first cell's lower and the last one's upper end."""
    half = (values[1] - values[0]) / 2
    return float(values[0] - half), float(values[-1] + half)


def _bands(panel: Panel, codes: NDArray[np.int64]) -> pd.DataFrame:
    """Cells of one column that lie together and say the same."""
    half = float(panel.rows[1] - panel.rows[0]) / 2
    rows = []
    for x, column in zip(panel.columns, codes.T, strict=True):
        for code, run in groupby(enumerate(column), key=lambda each: int(each[1])):
            if code:
                places = [place for place, _ in run]
                ends = float(panel.rows[places[0]]) - half, float(panel.rows[places[-1]]) + half
                rows.append((float(x), *ends, CODES[code]))
    bands = pd.DataFrame(rows, columns=["x", "low", "high", "said"])
    return bands.assign(kind="band", claim=panel.claim)


def _points(panel: Panel, codes: NDArray[np.int64], seed: list[int]) -> pd.DataFrame:
    """Middles of drawn cells, half of them near a boundary, each decided by the panel's check."""
    rng = np.random.default_rng(seed)
    near = np.zeros(codes.shape, dtype=bool)
    for axis in (0, 1):
        for step in range(1, NEAR + 1):
            other = np.roll(codes, step, axis) != codes
            # What was rolled over the edge is no neighbour.
            np.moveaxis(other, axis, 0)[:step] = False
            near |= other | np.roll(other, -step, axis)
    chosen: list[int] = []
    for where in (near, np.ones_like(near)):
        left = np.setdiff1d(np.flatnonzero(where), chosen)
        chosen += rng.choice(left, min(POINTS // 2, len(left)), replace=False).tolist()
    rows = []
    for place in chosen:
        row, column = np.unravel_index(place, codes.shape)
        x, y = panel.columns[column], panel.rows[row]
        checked = {None: OPEN, True: HOLDS, False: FAILS}[panel.checked(x, y)]
        rows.append((float(x), float(y), CODES[codes[row, column]], checked))
    points = pd.DataFrame(rows, columns=["x", "y", "said", "checked"])
    return points.assign(kind="point", claim=panel.claim, check=panel.check)


def agrees(points: pd.DataFrame) -> pd.Series:
    """Of points where something is said and the check decided: whether it is what is said."""
    decided = points[(points["said"] != NOTHING) & (points["checked"] != OPEN)]
    return decided["said"] == decided["checked"]


def draw(table: pd.DataFrame) -> Figure:
    """A panel a statement, and the legend in the places that are left."""
    rows = -(-(len(PANELS) + 1) // COLUMNS)
    figure, axes = new_figure(rows, COLUMNS, height=1.95 * rows)
    places = axes.flatten().tolist()
    for panel, axis in zip(PANELS, places, strict=False):
        _panel(axis, panel, table[table["claim"] == panel.claim])
    for axis in places[len(PANELS) :]:
        axis.axis("off")
    legend = places[len(PANELS)].legend(
        handles=[
            Patch(color=paler(COLOUR[HOLDS]), label="the theory: holds"),
            Patch(color=paler(COLOUR[FAILS]), label="the theory: fails"),
            Patch(facecolor="white", edgecolor=PALETTE["grey"], label="the theory is silent"),
            *(mark(f"checked: {each}", color=COLOUR[each], markersize=4)
              for each in (HOLDS, FAILS, OPEN)),
            mark("not as said", "X", color="black"),
        ],
        loc="center left", fontsize=6.5, frameon=False,
    )  # fmt: skip
    # It may reach over the next place, and no column is to be widened for it.
    legend.set_in_layout(False)
    return figure


def _panel(axis: Axes, panel: Panel, table: pd.DataFrame) -> None:
    across, up = _edges(panel.columns), _edges(panel.rows)
    raster = np.zeros((len(panel.rows), len(panel.columns)))
    heights = np.array(panel.rows, dtype=float)
    columns = {float(x): place for place, x in enumerate(panel.columns)}
    bands = table[table["kind"] == "band"]
    for x, low, high, said in bands[["x", "low", "high", "said"]].itertuples(index=False):
        raster[(heights > low) & (heights < high), columns[x]] = CODES.index(said)
    axis.imshow(
        raster, origin="lower", aspect="auto", extent=(*across, *up), interpolation="nearest",
        cmap=ListedColormap(["white", *(paler(COLOUR[each]) for each in CODES[1:])]),
        vmin=-0.5, vmax=2.5,
    )  # fmt: skip
    points = table[table["kind"] == "point"]
    for outcome, colour in COLOUR.items():
        own = points[points["checked"] == outcome]
        axis.scatter(own["x"], own["y"], s=6, color=colour, linewidths=0.3, edgecolors="white")
    right = agrees(points)
    wrong = points.loc[right.index[~right]]
    axis.scatter(wrong["x"], wrong["y"], s=30, marker="X", color="black", zorder=4)
    axis.set_title(f"{panel.stated}\n{_paper(panel.claim)}", fontsize=6.5)
    axis.set(xlim=across, ylim=up)
    axis.set_xlabel(panel.x, fontsize=7, labelpad=1)
    axis.set_ylabel(panel.y, fontsize=7, labelpad=1)
    axis.tick_params(labelsize=6)
    axis.xaxis.set_major_locator(MaxNLocator(5, integer=panel.columns[0].denominator == 1))
    axis.grid(False)


def _paper(claim: str) -> str:
    """Authors, year and version of a claim on a paper."""
    version = re.match(r"P-[\d.]+v(\d)", claim)
    return cited(claim) + (f" (v{version[1]})" if version else "")


def words(table: pd.DataFrame) -> str:
    """What the panels state, and how many points are as said; all others by name."""
    points = table[table["kind"] == "point"]
    right = agrees(points)
    silent = int((points["said"] == NOTHING).sum())
    still = int((points["checked"] == OPEN).sum())
    papers = len({panel.claim[2:12] for panel in PANELS})
    lines = [
        f"{len(PANELS)} statements of the ledger on {papers} papers. Tinted: where the theory says "
        "that the statement above the panel holds or fails. Dots: points decided without the "
        f"region, half of them within {NEAR} cells of a boundary. {int(right.sum())} of "
        f"{len(right)} agree with the theory; {silent} lie where it is silent, {still} are ties or "
        "cannot be told."
    ]
    for panel in PANELS:
        own = points[points["claim"] == panel.claim]
        agreed = agrees(own)
        beyond = own[(own["said"] == NOTHING) & (own["checked"] == HOLDS)]
        more = f"; holds at {len(beyond)} where the theory is silent" if len(beyond) else ""
        lines.append(
            f"{panel.claim}: {int(agreed.sum())} of {len(agreed)} agree ({panel.check}){more}."
        )
    return "\n".join(lines)
