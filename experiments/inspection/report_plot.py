"""The report as one picture: what was observed above, why below; the layer on every x axis."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from oversmoothing.experiments.inspection.account import PARTS, SUBLAYERS
from oversmoothing.experiments.inspection.findings import Findings
from oversmoothing.experiments.inspection.why import REGIONS
from oversmoothing.simulations.drawing.picture import FULL_WIDTH, PALETTE, new_figure, style

_LINES = ("blue", "vermillion", "green", "purple")
_PART_COLOUR = {
    "attention_body": "blue",
    "attention_scales": "sky",
    "attention_gains": "light",
    "ffn_body": "vermillion",
    "ffn_scales": "orange",
    "ffn_gains": "purple",
}
_PART_LABEL = {"body": "one scale", "scales": "token scales", "gains": "gains"}
_REGION = {
    "zero": ("light", "0 (exact)"),
    "universal_disc": ("vermillion", "|h + 1/2| ≤ 1/2"),
    "positive": ("blue", "Re h > 0"),
    "other": ("orange", "other"),
}


def draw(report: Findings) -> Figure:
    """Eight panels, on the Agg canvas and with no pyplot state."""
    table = report.table
    inner = table.iloc[1:]
    with style():
        figure, axes = new_figure(4, 2, width=FULL_WIDTH + 1.5, height=9.6)
        panels: list[Axes] = axes.ravel().tolist()
        _ratio(panels[0], table)
        _lines(panels[1], table, {"cos_mean": "mean", "cos_min": "smallest"}, bands=True)
        panels[1].set_ylabel("cosine between tokens (signed)")
        _lines(panels[2], table, {"effective_rank": "all tokens"}, bands=True)
        if report.cls:
            _lines(panels[2], table, {"effective_rank_without_cls": "without CLS"}, first=1)
        panels[2].set_ylabel("effective rank")
        _account(panels[3], inner)
        _regions(panels[4], inner)
        _tilt(panels[5], inner)
        _attention(panels[6], inner)
        _weights(panels[7], inner)
        for letter, panel in zip("abcdefgh", panels, strict=True):
            panel.set_xlabel("layer (0: input)" if letter in "abc" else "layer")
            panel.set_title(letter, loc="left", fontweight="bold")
            if panel.get_legend_handles_labels()[0]:
                panel.legend(fontsize=6.5, ncols=2)
        figure.suptitle(f"{report.model}: {report.inputs}, {report.counted}")
    return figure


def _ratio(axis: Axes, table: pd.DataFrame) -> None:
    both = {"log_hfc_lfc": "all tokens", "log_hfc_lfc_without_cls": "without CLS"}
    _lines(axis, table, both, bands=True, exponential=True)
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.yaxis.set_minor_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    low, high = axis.get_ylim()
    if high < 10 * low:
        # Within a decade the ticks of a logarithmic axis leave half of it bare.
        axis.yaxis.set_major_locator(MaxNLocator(5))
        axis.yaxis.set_minor_locator(NullLocator())
    axis.tick_params(axis="y", which="minor", labelsize=6.5)
    axis.set_ylabel("HFC/LFC (geometric mean)")


def _lines(
    axis: Axes,
    table: pd.DataFrame,
    names: dict[str, str],
    *,
    bands: bool = False,
    first: int = 0,
    exponential: bool = False,
) -> None:
    """Columns against the layer; bands from _p05 to _p95; exponential: the columns are logs."""
    shown = np.exp if exponential else np.asarray
    for k, (name, label) in enumerate(names.items()):
        if name not in table:
            continue
        colour = PALETTE[_LINES[k + first]]
        axis.plot(table["layer"], shown(table[name]), color=colour, marker="o", label=label)
        if bands and f"{name}_p05" in table:
            low, high = shown(table[f"{name}_p05"]), shown(table[f"{name}_p95"])
            axis.fill_between(table["layer"], low, high, color=colour, alpha=0.12, linewidth=0)


def _account(axis: Axes, inner: pd.DataFrame) -> None:
    names = [f"{sublayer}_{part}" for sublayer in SUBLAYERS for part in PARTS]
    labels = [f"{'FFN' if s == 'ffn' else s}: {_PART_LABEL[p]}" for s in SUBLAYERS for p in PARTS]
    values = [inner.get(f"log_change_{name}") for name in names]
    if any(value is None for value in values):
        names, labels = ["attention_body", "ffn_body"], ["attention", "FFN"]
        values = [inner["log_change_attention"], inner["log_change_ffn"]]
    stacked = [np.asarray(value, dtype=float) for value in values]
    _stack(axis, inner["layer"], stacked, [_PART_COLOUR[name] for name in names], labels)
    axis.plot(inner["layer"], sum(stacked), "k.", label="whole layer")
    axis.axhline(0, color=PALETTE["grey"], linewidth=0.7)
    axis.set_ylabel("change of ln HFC/LFC")


def _stack(
    axis: Axes,
    x: pd.Series,
    values: Sequence[np.ndarray],
    colours: Sequence[str],
    labels: Sequence[str],
) -> None:
    """Bars stacked upward and downward by sign."""
    up, down = np.zeros(len(x)), np.zeros(len(x))
    for value, colour, label in zip(values, colours, labels, strict=True):
        base = np.where(value >= 0, up, down)
        axis.bar(x, value, bottom=base, color=PALETTE[colour], label=label, width=0.8)
        up, down = up + np.maximum(value, 0), down + np.minimum(value, 0)


def _regions(axis: Axes, inner: pd.DataFrame) -> None:
    values = [np.asarray(inner[f"h_{name}"], dtype=float) for name in REGIONS]
    colours, labels = zip(*(_REGION[name] for name in REGIONS), strict=True)
    _stack(axis, inner["layer"], values, colours, labels)
    if "consensus_share" in inner:
        axis.plot(
            inner["layer"], inner["consensus_share"], "k.-", linewidth=0.8,
            label="consensus dominates (E2)",
        )  # fmt: skip
    axis.set_ylim(0, 1.45)  # room for the legend
    axis.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axis.set_ylabel("share of the eigenvalues of H")


def _tilt(axis: Axes, inner: pd.DataFrame) -> None:
    names = {"tilt_residual": "toward largest |1 + h|", "tilt_modulus": "toward largest |h|"}
    if "tilt_residual" not in inner:
        _absent(axis)
        return
    _lines(axis, inner, names)
    for k, name in enumerate(names):
        axis.plot(
            inner["layer"], inner[f"{name}_random"], color=PALETTE[_LINES[k]], linestyle=":",
            label="random directions" if k == 0 else None,
        )  # fmt: skip
    axis.axhline(0, color=PALETTE["grey"], linewidth=0.7)
    axis.set_ylabel("tilt (gain in mean |cos|)")


def _attention(axis: Axes, inner: pd.DataFrame) -> None:
    names = {
        "dobrushin_mean": "Dobrushin coefficient",
        "subdominant_mean": "subdominant |a|",
        "attention_drift": "drift from the layer before",
    }
    _lines(axis, inner, names)
    axis.set_ylim(0, 1.35 * axis.get_ylim()[1])  # the legend stands above the lines
    axis.set_ylabel("attention, mean over heads")


def _absent(axis: Axes) -> None:
    axis.text(0.5, 0.5, "no spectra were taken", ha="center", transform=axis.transAxes)


def _weights(axis: Axes, inner: pd.DataFrame) -> None:
    names = {
        "asymmetry": "asymmetry of H",
        "departure_from_normality": "departure from normality",
        "negative_gains_attention": "negative gains, attention",
        "negative_gains_ffn": "negative gains, FFN",
    }
    _lines(axis, inner, names)
    axis.set_ylim(-0.02, 1.02)
    axis.set_ylabel("weights")
