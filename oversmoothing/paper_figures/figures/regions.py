"""Figure: where statements on papers hold, region by region, with points that were checked.

A panel is a statement of the ledger with a region in two parameters from the theory (`said`) and a
check that does not know it (`checked`): the exact verdict, exact layers in fractions, layers in
balls, or for Sinkhorn's matrix its rounds in floats. Half of the points lie near a boundary.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any

import flint
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from oversmoothing.paper_figures.figure_base import Context, mark, paler
from oversmoothing.simulations.drawing.picture import PALETTE, new_figure
from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.numbers.rounding import at_precision, to_ball
from oversmoothing.theory.proofs import instances as exact
from oversmoothing.theory.proofs.claim import cited
from oversmoothing.theory.verdict.by_fractions import exact_dominance
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.verdict import verdict

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
MARKER = {HOLDS: "o", FAILS: "v", OPEN: "s"}
CELLS = 48
# Two tokens: mean 2, difference 1 to either side. Symmetric attention of two with the eigenvalues 1
# and a is flat(a, 2): AA, J2 and AQ for a = 1/2, 0 and -1/2.
_X0 = exact.column("1 3")
# Four tokens with the eigenvalues 1, -1/5 and +-i/5 (P-2401.04301v1-thm1-complex).
_CIRCULANT = exact.scaled("1/5", exact.matrix("1 1 1 2; 2 1 1 1; 1 2 1 1; 1 1 2 1"))


@dataclass(frozen=True)
class Panel:
    """One statement: the ledger's name, what is stated, both parameters and their values.

    said(x, y): (holds, fails) of arrays, both False where nothing is said. checked(x, y): whether
    it holds at two fractions, None where the check cannot tell or there is a tie.
    """

    claim: str
    stated: str
    x: str
    y: str
    columns: tuple[Fraction, ...]
    rows: tuple[Fraction, ...]
    said: Callable[[Any, Any], tuple[Any, Any]]
    checked: Callable[[Fraction, Fraction], bool | None]
    check: str = "exact"


def span(low: int, high: int) -> tuple[Fraction, ...]:
    """The middles of CELLS equal parts of [low, high]."""
    return tuple(low + Fraction((2 * k + 1) * (high - low), 2 * CELLS) for k in range(CELLS))


def keeps(A: Matrix, H: Matrix) -> bool | None:
    """Whether the exact verdict is that tokens are kept apart; None for a tie."""
    known = {Outcome.SMOOTHING: False, Outcome.NON_SMOOTHING: True}
    return known.get(verdict(A=A, H=H).verdict)


def _below_zero(x: Any) -> bool | None:
    """None of 0, and of a ball that holds it."""
    return True if x < 0 else False if x > 0 else None


def _falls(before: Matrix, after: Matrix) -> bool | None:
    """Whether HFC/LFC fell, squared and multiplied out; None where it is what it was."""
    (p, q), (r, s) = exact.squared_norms(before), exact.squared_norms(after)
    return _below_zero(r * q - p * s)


def _larger(p: Any, q: Any) -> tuple[Any, Any]:
    return p > q, p < q


def _some_other_mode(x: Any, y: Any) -> tuple[Any, Any]:
    """|1 + h a|^2 of h = x + iy at a = 1, -1/5 and -i/5 (y > 0; a = i/5 is below)."""
    consensus = (1 + x) ** 2 + y * y
    smallest = (1 - x / 5) ** 2 + y * y / 25
    turning = (1 + y / 5) ** 2 + x * x / 25
    return _larger(np.maximum(consensus, smallest), turning)


def _dominant_is_real(x: Fraction, y: Fraction) -> bool | None:
    modes = exact_dominance(_CIRCULANT, [[x, -y], [y, x]])
    turning = [mode.attention is not None and not mode.attention.is_real for mode in modes.quotient]
    if not modes.comparison or (modes.comparison < 0 and len(set(turning)) > 1):
        return None
    return modes.comparison > 0 or not turning[0]


def _by_the_mean(x: Any, y: Any) -> tuple[Any, Any]:
    """Heads with a = 1/2 and -1/2: consensus |1 + h_1 + h_2|, the rest |1 + (h_1 - h_2)/2|; by the
    mean of both attentions the rest has 1."""
    consensus, rest = abs(1 + x + y), abs(1 + (x - y) / 2)
    return _larger((consensus - rest) * (consensus - 1), 0)


def _mean_is_right(x: Fraction, y: Fraction) -> bool | None:
    after = _X0
    for A, h in ((exact.AA, x), (exact.AQ, y)):
        after = exact.plus(after, exact.product(A, _X0), h)
    falls, kept = _falls(_X0, after), keeps(exact.J2, [[x + y]])
    return None if falls is None or kept is None else falls != kept


def _sign_turns(x: Fraction, y: Fraction) -> bool:
    """H with the eigenvalue 0 that LayerNorm's centring brings; a tie is a verdict of its own."""
    one, other = (verdict(A=exact.flat(x, 2), H=exact.diagonal([h, 0])).verdict for h in (y, -y))
    return bool(one != other)


def _de_escalated(x: Fraction, y: Fraction) -> bool | None:
    """The layer, then (I - tau J): HFC/LFC does not fall."""
    after = exact.layer(exact.AA, [[y]], _X0)
    fell = _falls(_X0, exact.plus(after, exact.product(exact.J2, after), -x))
    return None if fell is None else not fell


def _skip_keeps(x: Fraction, y: Fraction) -> bool:
    """HFC after one layer y X + A X W, for W of either sign, against HFC before."""
    branch = exact.product(exact.AA, _X0)
    states = [exact.plus(exact.scaled(y, _X0), branch, sign * x) for sign in (1, -1)]
    before = exact.squared_norms(_X0)[0]
    return all(exact.squared_norms(state)[0] >= before for state in states)


def _bounded_by_e(x: Fraction, y: Fraction) -> bool | None:
    """E LFC^2/E HFC^2 after x layers with weights of either sign, over that before, against e."""
    M = exact.product(_X0, exact.transposed(_X0))
    steps = [exact.plus_identity(exact.J2, sign * y) for sign in (1, -1)]
    for _ in range(int(x)):
        more, less = (exact.product(S, M, exact.transposed(S)) for S in steps)
        M = exact.scaled("1/2", exact.plus(more, less))
    low, diagonal = sum((entry for row in M for entry in row), Fraction(0)) / 2, M[0][0] + M[1][1]
    hfc, lfc = exact.squared_norms(_X0)
    with at_precision(128):
        return _below_zero(to_ball(low / (diagonal - low) * hfc / lfc) - flint.arb(1).exp())


def _come_together(x: Fraction, y: Fraction) -> bool | None:
    """The distance x of two tokens after six layers of attention alone, m = 1, W = y, in balls."""
    with at_precision(256):
        tokens = [to_ball(x / 2), to_ball(-x / 2)]
        for _ in range(6):
            moved = []
            for p in tokens:
                weights = [(p * q).exp() for q in tokens]
                mean = sum((w * q for w, q in zip(weights, tokens, strict=True)), flint.arb(0))
                moved.append(to_ball(y) * mean / sum(weights, flint.arb(0)))
            tokens = moved
        return _below_zero(tokens[0] - tokens[1] - to_ball(x))


def _sinkhorn(x: Fraction, y: Fraction) -> bool | None:
    """Tokens 1/2 and 1/2 + x, m = 1, W = y: does the distance fall in a layer of 400 rounds?"""
    tokens = 0.5 + np.array([0.0, float(x)])
    logits = np.outer(tokens, tokens)
    for _ in range(400):
        logits = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        logits = logits - np.logaddexp.reduce(logits, axis=0, keepdims=True)
    moved = float(y) * np.exp(logits) @ tokens
    change = abs(moved[1] - moved[0]) / float(x) - 1
    return None if abs(change) < 1e-9 else bool(change < 0)


def _no_layer_raises(x: Fraction, y: Fraction) -> bool:
    """Of layers whose first g rows look at token 1 and the others at token 2, logits in [-a, a] and
    k = e^(2a), none raises HFC of (1, -1, 0, ..., 0), whose square is 2."""
    n = int(x)
    rows = [[Fraction(1) + (y - 1) * (j == t) for j in range(n)] for t in (0, 1)]
    favour = [[entry / sum(row) for entry in row] for row in rows]
    start = exact.column(" ".join(["1", "-1", *"0" * (n - 2)]))
    return all(
        exact.squared_norms(exact.product([favour[i >= g] for i in range(n)], start))[0] <= 2
        for g in range(1, n)
    )


def _tilts(x: Fraction, y: Fraction) -> bool | None:
    """Even attention, F = diag(x, y), 12 and 24 layers: the share of feature 1 in the tokens."""
    start = exact.matrix("7/8 7/8; 9/8 9/8")
    shares = []
    for depth in (12, 24):
        X = exact.layer(exact.J2, exact.diagonal([x, y]), start, depth)
        first, second = (sum(row[k] ** 2 for row in X) for k in (0, 1))
        shares.append(first / (first + second))
    return _below_zero(shares[0] - shares[1])


def _tilts_by_modulus(x: Any, y: Any) -> tuple[Any, Any]:
    """By |1 + lambda|, where consensus dominates: some |1 + lambda| is above 1."""
    one, other = abs(1 + x), abs(1 + y)
    return (one > other) & (one > 1), (other > one) & (other > 1)


PANELS = (
    Panel(
        "P-2401.04301v1-psi", r"$H=-\psi^2$ keeps tokens apart", "$a$", r"$\psi$",
        span(-1, 1), span(0, 3), lambda x, y: _larger(2, y * y * (1 + x)),
        lambda x, y: keeps(exact.flat(x, 2), [[-y * y]]),
    ),
    Panel(
        "P-2401.04301v1-thm1-complex", "a real $a$ dominates", "Re $h$", "Im $h$",
        span(-3, 1), span(0, 3), _some_other_mode, _dominant_is_real,
    ),
    Panel(
        "P-2401.04301v1-heads-mean", "the mean of the heads decides", "$h_1$", "$h_2$",
        span(-3, 2), span(-3, 2), _by_the_mean, _mean_is_right,
    ),
    Panel(
        "P-2401.04301v3-control-negative", "$h_1, h_2$ keep tokens apart", "$h_1$", "$h_2$",
        span(-3, 1), span(-3, 1),
        lambda x, y: ((x >= -1) & (x < 0) & (y >= -1) & (y < 0), (x > 0) & (y > 0)),
        lambda x, y: keeps(exact.AA, exact.diagonal([x, y])),
    ),
    Panel(
        "P-2401.04301v3-layernorm-sign", r"$\gamma\to-\gamma$ turns the verdict", "$a$", "$|h|$",
        span(-1, 1), span(0, 5),
        lambda x, y: ((y <= 2) | (y * (1 + x) <= 2), (y > 2) & (y * (1 + x) > 2)), _sign_turns,
    ),
    Panel(
        "N-2206.10991-rule", "high frequencies dominate", r"$\lambda_-$", r"$\lambda_+$",
        span(-6, 0), span(0, 2),
        lambda x, y: ((-x / 2 > y) & (-x < 4), (-x / 2 < y) | (-x > 4)),
        lambda x, y: keeps(exact.AQ, exact.diagonal([x, y])),
    ),
    Panel(
        "N-2103.03404-doubly-exponential", "tokens come together", "distance $D$", "weight $w$",
        span(0, 4), span(0, 3), lambda x, y: (y * x * x < 4, y * x * x < 0), _come_together,
        "certified",
    ),
    Panel(
        "N-2604.07925-two-tokens", "Sinkhorn: tokens approach", "distance $D$", "weight $w$",
        span(0, 4), span(0, 3), lambda x, y: _larger(1, y * np.tanh(x * x / 4)), _sinkhorn,
        "numerical",
    ),
    Panel(
        "N-2203.05962-rate", "no layer raises HFC", "tokens $n$", "odds $e^{2a}$",
        tuple(map(Fraction, range(3, 15))), span(1, 25),
        lambda x, y: ((x - 2) * y < 2 * (x - 1), x < 0),
        _no_layer_raises,
    ),
    Panel(
        "N-2206.03126-scale", "consensus grows at most by $e$", "layers $L$", r"scale $\alpha$",
        tuple(map(Fraction, range(1, 41))), span(0, 1), lambda x, y: (x * y * y <= 1, x < 0),
        _bounded_by_e, "certified",
    ),
    Panel(
        "N-2312.06182-remedy", "de-escalation keeps tokens apart", r"strength $\tau$", "$h$",
        span(0, 2), span(-3, 2),
        lambda x, y: _larger(abs(1 + y / 2), abs(1 - x) * abs(1 + y)), _de_escalated,
    ),
    Panel(
        "N-2410.07799-removal", r"$A-\frac{1}{n}11^\top$ smooths", "$h$", "$a$",
        span(-3, 2), span(-1, 1),
        lambda x, y: ((x >= -1) & (x < 0) & (y > 0), (x > 0) & (y > 0)),
        lambda x, y: _falls(
            _X0, exact.layer(exact.plus(exact.flat(y, 2), exact.J2, -1), [[x]], _X0)
        ),
    ),
    Panel(
        "N-2410.10609-bound", "with a skip HFC does not fall", r"$\|W\|$", r"skip $\lambda$",
        span(0, 4), span(0, 4), lambda x, y: (y >= 1 + x / 2, y < 0), _skip_keeps,
    ),
    Panel(
        "N-2605.25619-direction", "tokens tilt to direction 1", r"$\lambda_1$", r"$\lambda_2$",
        span(-4, 1), span(-4, 1), _tilts_by_modulus, _tilts,
    ),
)  # fmt: skip


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


def _bands(panel: Panel, codes: NDArray[np.int64]) -> pd.DataFrame:
    """Cells of one column that lie together and say the same."""
    half = float(panel.rows[1] - panel.rows[0]) / 2
    bands = []
    for x, column in zip(panel.columns, codes.T, strict=True):
        for code, run in groupby(zip(column, panel.rows, strict=True), key=lambda each: each[0]):
            heights = [float(height) for _, height in run]
            bands.append((float(x), heights[0] - half, heights[-1] + half, CODES[code]))
    table = pd.DataFrame(bands, columns=["x", "low", "high", "said"])
    return table[table["said"] != NOTHING].assign(kind="band", claim=panel.claim)


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
    for row, column in zip(*np.unravel_index(chosen, codes.shape), strict=True):
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
            *(mark(f"checked: {each}", MARKER[each], color=COLOUR[each], markersize=4)
              for each in (HOLDS, FAILS, OPEN)),
            mark("not as said", "X", color="black"),
        ],
        loc="center left", fontsize=6.5, frameon=False,
    )  # fmt: skip
    # It may reach over the next place, and no column is to be widened for it.
    legend.set_in_layout(False)
    return figure


def _panel(axis: Axes, panel: Panel, table: pd.DataFrame) -> None:
    columns, heights = (np.array(each, dtype=float) for each in (panel.columns, panel.rows))
    # From the first cell's lower end to the last one's upper end.
    across, up = (((3 * x[0] - x[1]) / 2, (3 * x[-1] - x[-2]) / 2) for x in (columns, heights))
    raster = np.zeros((len(heights), len(columns)))
    for band in table[table["kind"] == "band"].itertuples():
        inside = (heights > band.low) & (heights < band.high)
        raster[np.ix_(inside, columns == band.x)] = CODES.index(band.said)
    axis.imshow(
        raster, origin="lower", aspect="auto", extent=(*across, *up), interpolation="nearest",
        cmap=ListedColormap(["white", *(paler(COLOUR[each]) for each in CODES[1:])]),
        vmin=-0.5, vmax=2.5,
    )  # fmt: skip
    points = table[table["kind"] == "point"]
    for outcome, colour in COLOUR.items():
        own = points[points["checked"] == outcome]
        axis.scatter(own["x"], own["y"], 9, colour, marker=MARKER[outcome], lw=0.3, ec="white")
    right = agrees(points)
    wrong = points.loc[right.index[~right]]
    axis.scatter(wrong["x"], wrong["y"], s=30, marker="X", color="black", zorder=4)
    version = re.match(r"P-[\d.]+(v\d)", panel.claim)
    paper = cited(panel.claim) + (f" ({version[1]})" if version else "")
    axis.set_title(f"{panel.stated}\n{paper}", fontsize=6.5)
    axis.set(xlim=across, ylim=up)
    axis.set_xlabel(panel.x, fontsize=7, labelpad=1)
    axis.set_ylabel(panel.y, fontsize=7, labelpad=1)
    axis.tick_params(labelsize=6)
    axis.xaxis.set_major_locator(MaxNLocator(5, integer=panel.columns[0].denominator == 1))
    axis.grid(False)


def words(table: pd.DataFrame) -> str:
    """What the panels state, and how many points are as said; all others by name."""
    points = table[table["kind"] == "point"]
    right = agrees(points)
    silent = int((points["said"] == NOTHING).sum())
    still = int((points["checked"] == OPEN).sum())
    papers = len({panel.claim[2:12] for panel in PANELS})
    lines = [
        f"{len(PANELS)} statements of the ledger on {papers} papers. Tinted: where the theory says "
        "that the statement above the panel holds or fails; h: an eigenvalue of H, a: of A, other "
        "letters: `oversmoothing prove` of the name below. Marks: points decided without the "
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
