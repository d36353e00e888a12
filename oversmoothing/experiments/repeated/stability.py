"""Do small differences between tokens grow or die, layer by layer: `stability(model, inputs)`.

JVPs through the model's own blocks at consensus, near it and along the streams of the inputs, the
closed form of T8c beside them, real perturbations, and what the stack would do if it were looped.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from oversmoothing.experiments.inspection.extract import count
from oversmoothing.experiments.intervals import in_words, mean_interval, named, resampled_interval
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.repeated.blocks import runs
from oversmoothing.experiments.repeated.growth import (
    DISTANCES,
    DRAWS,
    GAUSSIAN,
    KINDS,
    SIZE,
    Growth,
    growth,
    loop_laws,
)
from oversmoothing.simulations.drawing.picture import FULL_WIDTH, PALETTE, band, new_figure, style
from oversmoothing.simulations.drawing.result import UNTESTED, Result, Sentence, Table, measured
from oversmoothing.simulations.drawing.wording import signed
from oversmoothing.simulations.running import steps
from oversmoothing.simulations.state import one_thread
from oversmoothing.theory.at_consensus import LoopLaw
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import json_number, json_row
from oversmoothing.theory.support.sizes import Array

# HFC/LFC that the finite-depth sentence asks for.
SMOOTH = 0.1
HOLDS = 0.9
# Columns of several random directions an input.
MANY = ("across", "closed", "actual", "observed")
SCORES = ("r2_closed_jvp", "r2_closed_near", "r2_closed_observed", "r2_jvp_observed")
SHOWN = ("layer", "mean", "along", "across", "closed", "actual", "observed", "observed_spread",
         "exponent_1", *SCORES)  # fmt: skip
# Of the columns of the two tables; growth is over one layer.
IN_A_LAYER = {
    "mean": "ln of the growth of equal tokens (consensus)",
    "along": "ln of the growth of a small common shift of equal tokens",
    "across": "the same of small differences between nearly equal tokens; below mean, such tokens "
    "become more alike",
    "closed": "across, by the closed form (T8c) from the weights",
    "actual": "of small differences at the stream itself, by the derivative",
    "observed": "of differences really made there (--size)",
    "observed_spread": "its standard deviation between random directions",
    "exponent_1": "of the direction that grows most over all layers (Lyapunov)",
    "r2_closed_jvp": "R^2 of the closed form for the derivative at equal tokens",
    "r2_closed_near": "a tenth of the way from there to the stream",
    "r2_closed_observed": "for differences really made at the stream",
    "r2_jvp_observed": "R^2 of the derivative at the stream for those",
}
BY_DISTANCE = {
    "distance": "share of the way from equal tokens (0) to the stream (1)",
    "r2": "R^2 of the closed form (T8c) for the derivative there, over all layers and inputs",
    "median_error": "median of its distance from that derivative, in ln of growth",
}


class Stability(Result):
    """Tables `layers` (logs of growth in each) and `distances` (how far the closed form holds).

    arrays: of `growth`, the inputs joined; law: of the whole stack looped, near the consensus of
    the first input; tokens: the numbers of tokens that the inputs have.
    """

    def __init__(
        self, model: str, tokens: list[int], arrays: Growth, law: LoopLaw, size: float, seed: int
    ) -> None:
        self.arrays, self.law = arrays, law
        layers, distances = by_layer(arrays), by_distance(arrays, seed)
        inputs = arrays["mean"].shape[1]
        looped = asdict(law) | {"rate": law.rate, "exponent": law.exponent, "settled": law.settled}
        super().__init__(
            "stability",
            f"{model}: do small differences between its tokens grow?",
            {
                "layers": Table(layers, shown=SHOWN, number="{:+.3f}", means=IN_A_LAYER),
                "distances": Table(distances, means=BY_DISTANCE),
            },
            [*_on_growth(arrays, layers, distances), *_on_depth(arrays["logs"], law)],
            {"model": model, "inputs": inputs, "tokens": tokens, "size": size, "seed": seed},
            details={
                "directions": KINDS,
                "gaussian_draws": DRAWS,
                "all_layers": {k: json_number(x) for k, x in _scores(arrays, slice(None)).items()},
                "exponents_moved_last": float(np.abs(arrays["moved"]).max()),
                "looped": json_row(looped),
            },
            picture=lambda: draw(model, arrays, layers, distances),
        )


@one_thread()
def stability(
    model: Model, inputs: Iterable[Any], *, size: float = SIZE, seed: int = 0
) -> Stability:
    """Measure the growth of differences between tokens on the inputs, one at a time: texts may
    differ in length.

    model: described, in float64 (float32 rounds the small differences). size: of the real
    perturbations, relative to the stream. seed: of all directions. Raises `InputError` for a block
    without an invariant consensus or a forward-mode derivative, a new shape of the stream, and a
    single token.
    """
    if model.dtype != torch.float64:
        raise InputError(
            f"the model '{model.name}' is in {model.dtype}, in which small differences drown: open "
            "it with dtype=torch.float64"
        )
    if not 0 < size < 1:
        raise InputError(f"size is {size}: give a share of the stream's length between 0 and 1")
    generator = torch.Generator().manual_seed(seed)
    each: list[Growth] = []
    tokens: set[int] = set()
    law: LoopLaw | None = None
    for _, run in steps(runs(model, inputs, 1), count(inputs) or 1, "input"):
        each.append(growth(model, run, generator, size))
        X = run.states[0]
        tokens.add(X.shape[1])
        if law is None:
            (law,) = loop_laws(run.blocks, X[:1].double().mean(1), X.shape[1])
    assert law is not None
    arrays = {name: np.concatenate([one[name] for one in each], axis=1) for name in each[0]}
    return Stability(model.name, sorted(tokens), arrays, law, size, seed)


def by_layer(arrays: Growth) -> pd.DataFrame:
    """One row a layer, means over inputs (logs of growth in one layer); _low, _high: 95 %.

    across, closed, actual and observed are means over DRAWS random directions an input, and
    _spread is the standard deviation between them, a mean over inputs; near is of one;
    exponent_k: of the direction that grows k-th most.
    """
    at, last = arrays["growth"], len(DISTANCES) - 1
    columns = {
        "mean": arrays["mean"],
        "along": arrays["along"],
        **{name: arrays[f"many_{name}"].mean(-1) for name in MANY},
        "near": at[:, :, DISTANCES.index(0.1), GAUSSIAN],
        "own": at[:, :, last, 0],
        **{f"exponent_{k + 1}": x for k, x in enumerate(np.moveaxis(arrays["exponents"], -1, 0))},
        "run": arrays["run"],
        "tangent": arrays["tangent"],
        "leak": arrays["leak"],
        "log_hfc_lfc": arrays["logs"][1:],
    }
    rows = []
    for number in range(len(arrays["mean"])):
        row: dict[str, float] = {"layer": number + 1}
        for name, values in columns.items():
            row |= named(name, mean_interval(values[number]))
        for name in MANY:
            spread = arrays[f"many_{name}"][number].std(axis=-1, ddof=1)
            row[f"{name}_spread"] = float(spread.mean())
        rows.append(row | _scores(arrays, number))
    return pd.DataFrame(rows)


def by_distance(arrays: Growth, seed: int) -> pd.DataFrame:
    """How the closed form at consensus fits the jvp at each distance from it, over all layers:
    R^2 with a 95 % bootstrap interval over inputs, the median error of the log of growth, and
    R^2 layer by layer."""
    closed = arrays["closed"]

    def row(t: float, seen: Array) -> dict[str, float]:
        ends = resampled_interval(
            lambda pick: r_squared(seen[:, pick], closed[:, pick]), closed.shape[1], seed
        )
        by_layer = enumerate(map(r_squared, seen, closed), 1)
        return {
            "distance": t,
            **named("r2", (r_squared(seen, closed), *ends)),
            "median_error": float(np.nanmedian(np.abs(seen - closed))),
            **{f"r2_layer_{number}": r2 for number, r2 in by_layer},
        }

    return pd.DataFrame(map(row, DISTANCES, np.moveaxis(arrays["growth"], 2, 0)))


def _scores(arrays: Growth, number: int | slice) -> dict[str, float]:
    closed, at = arrays["closed"][number], arrays["growth"][number]
    observed = arrays["observed"][number]
    near, last = at[..., DISTANCES.index(0.1), :], at[..., -1, :]
    pairs = ((at[..., 0, :], closed), (near, closed), (observed, closed), (observed, last))
    return {name: r_squared(*pair) for name, pair in zip(SCORES, pairs, strict=True)}


def r_squared(seen: Array, predicted: Array) -> float:
    """1 - SSE / sum (y - mean y)^2 over pairs that are both finite; NaN where nothing varies."""
    kept = np.isfinite(seen) & np.isfinite(predicted)
    y, p = seen[kept], predicted[kept]
    if len(y) < 2:
        return math.nan
    spread = float(np.square(y - y.mean()).sum())
    return 1 - float(np.square(y - p).sum()) / spread if spread > 0 else math.nan


def holds_to(distances: pd.DataFrame) -> float:
    """The largest distance up to which R^2 of the closed form is at least 0.9 (NaN: none)."""
    holds = (distances["r2"] >= HOLDS).cummin()
    return float(distances["distance"][holds].max())


def _on_growth(arrays: Growth, layers: pd.DataFrame, distances: pd.DataFrame) -> Iterator[Sentence]:
    """Do differences grow."""
    depth, inputs = arrays["mean"].shape
    grow = int((layers["observed"] > 0).sum())
    outrun = int((layers["observed"] > layers["mean"]).sum())
    start = "Yes" if grow == depth else "In part" if grow else "No"
    yield Sentence(
        f"{start}: small differences grow in {grow} of {depth} layers, and in {outrun} they gain "
        f"on what tokens share (consensus), in the mean over {DRAWS} random directions an input.",
        measured(inputs),
    )
    # The largest finite-time exponent a layer.
    top, low, high = mean_interval(arrays["exponents"].mean(0)[:, 0])
    yield Sentence(
        f"In the direction that grows most, ln of their size grows by {top:.2f} a layer "
        f"({in_words(low, high, inputs, signed)}).",
        measured(inputs, low, high, told=True),
    )
    held = holds_to(distances)
    reach = f"with R^2 of at least 0.9 up to {held:g} of the way from equal tokens to these"
    reach = "nowhere (R^2 < 0.9)" if math.isnan(held) else reach
    yield Sentence(f"The formula for nearly equal tokens (T8c) fits {reach}.", measured(inputs))


def _on_depth(logs: Array, law: LoopLaw) -> Iterator[Sentence]:
    """Asymptotically, by a law that nobody looped the stack to test, and within its layers."""
    depth, inputs = len(logs) - 1, logs.shape[1]
    first, last = (float(np.exp(x.mean())) for x in logs[[0, -1]])
    says = f"Its {depth} layers take HFC/LFC from {first:.3g} to {last:.3g}."
    yield Sentence(says, measured(inputs))
    if not law.settled:
        yield Sentence(
            "Looped, it has no settled law: the path of equal tokens still turns by "
            f"{law.turning:.2g} rad a round after {law.loops} rounds.",
            UNTESTED,
        )
    if not law.attracts:
        says = (
            "Looped, the stack would not bring nearly equal tokens together: ln HFC/LFC changes by "
            f"{signed(law.rate, 2, 'g')} a round there."
        )
    else:
        power = f"as the power {law.exponent:.2f} of the number of rounds"
        how = power if law.polynomial else f"by exp({law.rate:.2g}) a round"
        rounds = law.loops_to(max(first, SMOOTH), SMOOTH)
        says = (
            f"Looped, the stack would bring nearly equal tokens together, {how}: HFC/LFC = "
            f"{SMOOTH:g} after about {rounds:.3g} rounds, if that law held from the start."
        )
    yield Sentence(says, UNTESTED)


_LINES = (
    ("mean", "consensus itself", "grey", "-", ""),
    ("across", "across, at consensus (jvp)", "blue", "-", ""),
    ("closed", "the same, closed form (T8c)", "blue", "", "o"),
    ("actual", "on the inputs' streams (jvp)", "vermillion", "-", ""),
    ("observed", "really perturbed there", "vermillion", "", "x"),
    ("exponent_1", "largest exponent along them", "green", "--", ""),
)


def draw(model: str, arrays: Growth, frame: pd.DataFrame, far: pd.DataFrame) -> Figure:
    """By layer, how far the closed form holds, the ratio: on the Agg canvas, no pyplot state."""
    depth, inputs = arrays["mean"].shape
    x = frame["layer"].to_numpy()
    with style():
        figure, axes = new_figure(1, 3, width=FULL_WIDTH + 3, height=3.2)
        growth, holds, ratio = axes.ravel()
        for name, label, colour, line, marker in _LINES:
            growth.plot(
                x, frame[name], line, marker=marker, color=PALETTE[colour], label=label,
                markerfacecolor="none",
            )  # fmt: skip
        for name, colour in (("actual", "vermillion"), ("across", "blue")):
            band(growth, x, frame[f"{name}_low"], frame[f"{name}_high"], PALETTE[colour])
        growth.axhline(0, color=PALETTE["black"], linewidth=0.5)
        growth.set(xlabel="layer", ylabel="ln growth in the layer")
        # Below the axes: nowhere else is room for six lines in every case.
        growth.legend(fontsize=6.5, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
        growth.xaxis.set_major_locator(MaxNLocator(integer=True))
        # 0 has no place on a logarithmic axis.
        t = np.maximum(far["distance"].to_numpy(), 0.003)
        layers = [f"r2_layer_{k + 1}" for k in range(depth)]
        for name in layers:
            holds.plot(t, far[name].clip(lower=-1), color=PALETTE["light"], linewidth=0.8)
        holds.plot([], [], color=PALETTE["light"], label="one layer")
        holds.plot(t, far["r2"].clip(lower=-1), "o-", color=PALETTE["blue"], label="all layers")
        low, high = (far[f"r2_{end}"].clip(lower=-1) for end in ("low", "high"))
        band(holds, t, low, high, PALETTE["blue"])
        holds.axhline(HOLDS, color=PALETTE["grey"], linewidth=0.7, linestyle=":")
        holds.set(
            xscale="log", ylim=(-1.05, 1.05), xlabel="distance from consensus (1: the streams)",
            ylabel="R² of the closed form\n(below −1 drawn at −1)",
        )  # fmt: skip
        holds.set_xticks([0.003, 0.01, 0.1, 1.0], ["0", ".01", ".1", "1"])
        holds.minorticks_off()
        holds.legend(fontsize=6.5, loc="lower left")
        logs = arrays["logs"]
        layer = np.arange(len(logs))
        ratio.plot(layer, np.exp(logs), color=PALETTE["light"], linewidth=0.8)
        ratio.plot([], [], color=PALETTE["light"], label="one input")
        ratio.plot(layer, np.exp(logs.mean(1)), "o-", color=PALETTE["black"], label="measured")
        across = arrays["closed"][:, :, 0] - arrays["mean"]
        linear = logs[0].mean() + np.concatenate([[0], np.cumsum(np.nanmean(across, axis=1))])
        ratio.plot(
            layer, np.exp(linear), "--", color=PALETTE["blue"], label="if consensus' growth held"
        )
        ratio.set(yscale="log", xlabel="layer (0: input)", ylabel="HFC/LFC")
        ratio.xaxis.set_major_locator(MaxNLocator(integer=True))
        plain = FuncFormatter(lambda value, _: f"{value:g}")
        ratio.yaxis.set_major_formatter(plain)
        # Over a decade the labels between its ends overlap.
        ratio.yaxis.set_minor_formatter(plain if np.ptp(np.log10(ratio.get_ylim())) < 1 else "")
        ratio.legend(fontsize=6.5)
        titles = ("a  Growth by layer", "b  How far the closed form holds", "c  Finite depth")
        for title, panel in zip(titles, axes.ravel(), strict=True):
            panel.set_title(title, loc="left", fontweight="bold")
        figure.suptitle(f"{model}: differences between tokens, {inputs} inputs")
    return figure
