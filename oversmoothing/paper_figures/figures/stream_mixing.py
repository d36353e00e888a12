"""Figure: what mixing does to several residual streams (T13): a phase diagram, and agreement.

First the plane of h and of how much R mixes: for the mean of streams mixed in (doubly stochastic)
and for a rotation (orthogonal). Then how four doubly stochastic streams come to agree, beside the
certificate tau(R_L ... R_1).
"""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import flint
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from oversmoothing.paper_figures.figure_base import Context, label_panels, mark, paler
from oversmoothing.simulations.drawing.picture import (
    PALETTE,
    VERDICT_COLOUR,
    decade_axis,
    new_figure,
    plot_log,
)
from oversmoothing.simulations.engine.evolve_streams import MIXING_STREAM, evolve_streams
from oversmoothing.simulations.engine.layers import Drawn, Fixed
from oversmoothing.simulations.generators.attention import draw_mixing
from oversmoothing.theory.spectra.layer_discs import attention_spectrum
from oversmoothing.theory.streams.stream_answer import safe_band
from oversmoothing.theory.streams.stream_modes import contractions, enclosed_radii
from oversmoothing.theory.streams.streams import make_mixing
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.formulas import Outcome

TITLE = "Several residual streams: which mixing smooths, and when streams agree"
SHORT = (
    "Which eigenvalues h smooth when two residual streams are mixed, by how much they mix, "
    "and when four streams come to agree. Tints are the theory, dots are runs."
)
NOT_SHOWN = (
    "One feature, one doubly stochastic attention and fixed mixings: streams of a trained "
    "network mix anew in every layer, and that streams agree is not that tokens do."
)

STREAMS, FOUR, EPS = 2, 4, 1e-6
PANELS = ("doubly stochastic", "orthogonal")
H_RANGE, H_CELLS, MIX_CELLS = (-3.0, 1.0), 64, 24
RUNS_H, RUNS_MIX, DEPTH = 8, 5, 300
# log HFC/LFC must move by more than this a layer, over the second half of a run, to count.
_MOVES = 1e-3
# Doubly stochastic, so that HFC/LFC grows without bound where differences win and is constant in a
# tie; eigenvalues .4 (twice) and .2 beside 1.
ATTENTION = np.array([[5, 2, 1, 2], [2, 5, 2, 1], [1, 2, 5, 2], [2, 1, 2, 5]]) / 10
OUTCOMES = (Outcome.SMOOTHING, Outcome.NON_SMOOTHING, Outcome.TIE, Outcome.UNDECIDED)
WORDS = ("tokens become alike", "tokens stay apart", "a tie")


def mixing_of(panel: str, amount: float) -> Array:
    """(1 - x) I + x 11^T/2, or the rotation by x times a right angle."""
    if panel == PANELS[0]:
        return (1.0 - amount) * np.eye(STREAMS) + amount / STREAMS
    angle = amount * math.pi / 2
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


def data(context: Context) -> pd.DataFrame:
    """One row a cell, a run or a layer, by kind.

    'cell': panel, h, amount, outcome, band. 'run': panel, h, amount, slope, measured, outcome.
    'layer', of an agreement: panel, depth, log_spread, log_bound.
    """
    cells = pd.DataFrame([row for panel in PANELS for row in _cells(panel)])
    runs = pd.DataFrame([row for panel in PANELS for row in _runs(panel, context)])
    layers = (_agreement(changing, context) for changing in (False, True))
    return pd.concat([cells, runs, *layers], ignore_index=True)


def _spread(low: float, high: float, number: int, place: float = 0.5) -> list[float]:
    """A point in each of so many equal parts of [low, high], at a place within it."""
    points: list[float] = (low + (high - low) * (np.arange(number) + place) / number).tolist()
    return points


def _outcome(panel: str, h: float, amount: float) -> Outcome:
    mixing = make_mixing(mixing_of(panel, amount))
    a = sorted(set(np.round(attention_spectrum(ATTENTION).real, 12)))
    return enclosed_radii(mixing, [flint.acb(float(x)) for x in a], [flint.acb(h)]).outcome()


def _cells(panel: str) -> Iterator[dict[str, Any]]:
    for amount in _spread(0.0, 1.0, MIX_CELLS):
        band = safe_band(make_mixing(mixing_of(panel, amount)))
        strict = None if band is None or band.strict is None else band.strict[0]
        for h in _spread(*H_RANGE, H_CELLS):
            yield {"kind": "cell", "panel": panel, "h": h, "amount": amount,
                   "outcome": str(_outcome(panel, h, amount)), "band": strict}  # fmt: skip


def _runs(panel: str, context: Context) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng([context.seed, PANELS.index(panel)])
    X0 = rng.standard_normal((STREAMS, len(ATTENTION), 1))
    for amount, h in product(_spread(0.0, 1.0, RUNS_MIX), _spread(*H_RANGE, RUNS_H, 0.37)):
        run = evolve_streams(
            X0=X0, mixing=mixing_of(panel, amount), attention=ATTENTION, weights=np.array([[h]]),
            depth=[DEPTH // 2, DEPTH], device=context.device,
        )  # fmt: skip
        early, late = run.stack.metrics()["log_hfc_lfc"]
        slope = (late - early) / (DEPTH - DEPTH // 2)
        measured = Outcome.TIE
        if abs(slope) > _MOVES:
            measured = Outcome.SMOOTHING if slope < 0 else Outcome.NON_SMOOTHING
        yield {"kind": "run", "panel": panel, "h": h, "amount": amount, "slope": slope,
               "measured": str(measured), "outcome": str(_outcome(panel, h, amount))}  # fmt: skip


def _agreement(changing: bool, context: Context) -> pd.DataFrame:
    """Four streams until the certificate has them agree, and a little further."""
    rule = Drawn(
        lambda rng: draw_mixing("doubly-stochastic", FOUR, rng=rng, temperature=0.7), context.seed
    )
    mixing = rule if changing else Fixed(rule.at(0, MIXING_STREAM))
    bounds = [0.0]
    for each in contractions(mixing.at(layer, MIXING_STREAM) for layer in range(1000)):
        bounds.append(math.log(each.of_product) if each.of_product else -math.inf)
        if bounds[-1] < 1.15 * math.log(EPS):
            break
    rng = np.random.default_rng([context.seed, 4])
    n, d = 8, 4
    run = evolve_streams(
        X0=rng.standard_normal((FOUR, n, d)), mixing=mixing, attention=rng.dirichlet(np.ones(n), n),
        weights=rng.standard_normal((d, d)) / 2, depth=list(range(len(bounds))),
        device=context.device,
    )  # fmt: skip
    spread = np.array(run.log_spread)
    return pd.DataFrame(
        {
            "kind": "layer", "panel": "changing" if changing else "fixed",
            "depth": range(len(bounds)), "log_spread": spread - spread[0], "log_bound": bounds,
        }
    )  # fmt: skip


def draw(data: pd.DataFrame) -> Figure:
    figure, axes = new_figure(1, 3, height=3.4)
    for axis, panel in zip(axes[0], PANELS, strict=False):
        _plane(axis, data[data["panel"] == panel])
        axis.set_title(f"$R$ {panel}")
    axes[0, 0].set_ylabel("$x$: $R = (1-x) I + x\\,11^T/2$")
    axes[0, 1].set_ylabel("turn of $R$ (right angles)")
    _layers(axes[0, 2], data[data["kind"] == "layer"])
    label_panels(axes)
    figure.legend(
        handles=[
            *(Patch(color=paler(VERDICT_COLOUR[name]), label=said)
              for name, said in zip(OUTCOMES, WORDS, strict=False)),
            mark("dot: simulated run", markeredgecolor="white", color="black"),
            mark("run that does otherwise", "X", color="black"),
            Line2D([], [], color="black", lw=1.2, ls="--",
                   label="right of it and below 0: apart for every attention"),
        ],
        loc="outside lower center",
        ncols=3,
        fontsize=7,
    )  # fmt: skip
    return figure


def _plane(axis: Axes, part: pd.DataFrame) -> None:
    cells, runs = part[part["kind"] == "cell"], part[part["kind"] == "run"]
    grid = cells.pivot(index="amount", columns="h", values="outcome")
    names = [str(name) for name in OUTCOMES]
    axis.imshow(
        grid.map(names.index).to_numpy(dtype=float), origin="lower", aspect="auto",
        extent=(*H_RANGE, 0, 1),
        cmap=ListedColormap([paler(VERDICT_COLOUR[name]) for name in OUTCOMES]),
        vmin=-0.5, vmax=len(OUTCOMES) - 0.5, interpolation="nearest",
    )  # fmt: skip
    bands = cells.dropna(subset=["band"]).drop_duplicates("amount")
    if len(bands):
        axis.plot(bands["band"], bands["amount"], color="black", linestyle="--", linewidth=1.2)
    for same, marker in ((True, "o"), (False, "X")):
        chosen = runs[(runs["measured"] == runs["outcome"]) == same]
        axis.scatter(
            chosen["h"], chosen["amount"], marker=marker, s=14, linewidths=0.5, edgecolors="white",
            c=[VERDICT_COLOUR[name] for name in chosen["measured"]], zorder=3,
        )  # fmt: skip
    axis.set(xlabel="$h$", xlim=H_RANGE, ylim=(0, 1))
    axis.grid(False)


def _layers(axis: Axes, table: pd.DataFrame) -> None:
    for (name, part), colour in zip(table.groupby("panel"), ("blue", "vermillion"), strict=True):
        plot_log(axis, part["depth"], part["log_spread"], color=PALETTE[colour], marker="o",
                 markersize=2.5, linestyle="none", label=f"{name} mixing, run")  # fmt: skip
        plot_log(axis, part["depth"], part["log_bound"], color=PALETTE[colour],
                 label="certificate")  # fmt: skip
    axis.axhline(math.log10(EPS), color=PALETTE["grey"], linestyle=":", linewidth=1.0)
    decade_axis(axis)
    axis.set_title("four streams agree")
    axis.set_ylim(None, 1.5)
    axis.set_xlabel("layer $L$")
    axis.set_xlim(-0.5, float(table["depth"].max()) + 0.5)
    axis.set_ylabel("largest distance of streams / at 0")
    axis.legend(fontsize=6, loc="upper right", labelspacing=0.2)


def words(data: pd.DataFrame) -> str:
    runs = data[data["kind"] == "run"]
    right = int((runs["measured"] == runs["outcome"]).sum())
    off = runs[runs["measured"] != runs["outcome"]]
    lines = [
        f"Two residual streams, x_k' = sum_l R_kl x_l + A (x_1 + x_2) W / 2 with one feature, W = "
        f"h, {len(ATTENTION)} tokens and a doubly stochastic A (eigenvalues .4, .4, .2 beside 1). "
        "Tinted: the verdict by the eigenvalues of R + h a p q^T, on a grid. (a) R = (1-x) I + x "
        "11^T/2; from the dashed line to h = 0 differences between tokens win for every positive "
        "A. (b) R turns by x right angles. Dots: runs of "
        f"{DEPTH} layers, judged by whether log HFC/LFC moves by more than {_MOVES:g} a layer: "
        f"{right} of {len(runs)} do what the verdict says"
        + (f"; the others have |slope| up to {off['slope'].abs().max():.1e}" if len(off) else "")
        + "."
    ]
    for name, part in data[data["kind"] == "layer"].groupby("panel"):
        at = {
            column: int(part[part[column] <= math.log(EPS)]["depth"].min())
            for column in ("log_spread", "log_bound")
        }
        lines.append(
            f"(c) Four doubly stochastic streams, {name} mixing: they agree to {EPS:g} of their "
            f"first difference at layer {at['log_spread']} of the run; the certificate says "
            f"{at['log_bound']}, for every branch and every start."
        )
    return "\n".join(lines)
