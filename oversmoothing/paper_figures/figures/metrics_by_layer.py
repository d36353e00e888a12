"""The paper's three metrics by layer: digits models, models of CIFAR-100 and of ImageNet.

HFC/LFC, mean pairwise cosine and effective rank of the residual stream, as v1 and v3 of arXiv
2401.04301 draw them (their numbers were not at hand, only what they conclude). All three stand
beside each other, because a mean cosine near 1 or a rank near 1 is not HFC/LFC -> 0 (T4).
"""

import sys
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from oversmoothing.experiments.inspection.budget import Plan
from oversmoothing.experiments.inspection.inspect import inspect
from oversmoothing.experiments.intervals import mean_interval, named
from oversmoothing.experiments.models.model import Model
from oversmoothing.paper_figures import figure_base as base
from oversmoothing.paper_figures.models_shown import (
    CIFAR,
    COLOUR,
    LABEL,
    PAPER_ERROR,
    on_imagenet,
    trained_here,
)
from oversmoothing.simulations.drawing.picture import PALETTE, band, decade_axis, new_figure

TITLE = "The paper's three metrics by layer, in untrained and trained models"
SHORT = (
    "What models do to their tokens from layer to layer, by the paper's three metrics: a row "
    "a data set, lines are means over images, bands their intervals."
)
NOT_SHOWN = (
    "The models are not the paper's, one seed each, and a finite network says nothing of a "
    "limit. The bands are over images: another training may differ."
)

IMAGES = 50
STREAM = ("log_hfc_lfc", "cos_mean", "effective_rank")
_ENDS = ("", "_low", "_high", "_p05", "_p95")
PANELS = (
    ("log_hfc_lfc", "HFC/LFC"),
    ("cos_mean", "mean cosine (signed)"),
    ("rank_share", "effective rank / min(n, d)"),
)
_COLOUR = COLOUR | {"vit-random": PALETTE["grey"]}


def data(context: base.Context) -> pd.DataFrame:
    """One row a model and layer (0 is the input), with 95 % intervals and percentiles over images.

    change, change_low, change_high repeat its change from input to output, of ln HFC/LFC by the
    mean over images (so of HFC/LFC the geometric mean); test_error: of ours, in per cent. Raises
    what `digits_models` does.
    """
    frames = []
    of_imagenet = on_imagenet(IMAGES)
    for each in [*trained_here(context, IMAGES, True), *([of_imagenet] if of_imagenet else [])]:
        frame = layer_metrics(each.model, each.inputs)
        frames.append(frame.assign(
            model=each.label, trained=each.trained, variant=each.variant, data=each.data,
            images=len(each.inputs), test_error=each.test_error,
        ))  # fmt: skip
    table = pd.concat(frames, ignore_index=True)
    heads = ["model", "variant", "data"]
    return table[[*heads, *(name for name in table if name not in heads)]]


def layer_metrics(model: Model, inputs: Any) -> pd.DataFrame:
    """The paper's three metrics of the residual stream, a row a layer (0 is the input).

    Columns: layer; each of STREAM as its mean over images, with _low and _high of its 95 % interval
    and the percentiles _p05, _p95; rank_share, the effective rank over the largest possible `most`;
    change, change_low, change_high: of log_hfc_lfc from input to output, in every row.
    """
    report = inspect(model, inputs, budget=Plan(ranks=sys.maxsize))
    most = min(int(report.tokens or model.width), model.width)
    frame = report.to_frame()[["layer", *(f"{name}{end}" for name in STREAM for end in _ENDS)]]
    frame = frame.assign(rank_share=frame["effective_rank"] / most, most=most)
    return frame.assign(**named("change", mean_interval(report.change)))


def draw(table: pd.DataFrame) -> Figure:
    """A row a data set, a column a metric, a line a model; bands are 95 % intervals."""
    sources = [name for name in ("digits", CIFAR, "ImageNet") if name in set(table["data"])]
    figure, axes = new_figure(
        len(sources), 3, height=0.6 + 1.9 * len(sources), sharex="row", sharey="col"
    )
    for row, source in zip(axes, sources, strict=True):
        part = table[table["data"] == source]
        for axis, (name, label) in zip(row, PANELS, strict=True):
            _panel(axis, part, name)
            axis.set(ylabel=label, xlabel="layer (0: input)")
            axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        row[0].set_title(f"{source}: {_finding(part)}", loc="left")
    decade_axis(axes[0, 0])
    # The last column's height is that of all rows.
    for row, source in zip(axes, sources, strict=True):
        part = table[table["data"] == source].groupby("variant", sort=False).last()
        base.label_ends(row[2], [(own["rank_share"], _name(variant, own), _COLOUR[str(variant)])
                            for variant, own in part.iterrows()])  # fmt: skip
    base.label_panels(axes[:, :1])
    return figure


def _panel(axis: Axes, part: pd.DataFrame, name: str) -> None:
    scale = 1 / np.log(10.0) if name.startswith("log_") else 1.0
    for variant, own in part.groupby("variant", sort=False):
        colour = _COLOUR[str(variant)]
        axis.plot(own["layer"], scale * own[name], color=colour, marker="o", markersize=2.0)
        share = own["most"] if name == "rank_share" else 1 / scale
        column = "effective_rank" if name == "rank_share" else name
        low, high = (own[f"{column}_{end}"] / share for end in ("low", "high"))
        band(axis, own["layer"], low, high, colour)


def _name(variant: Any, row: pd.Series) -> str:
    return "DeiT-Ti" if row["data"] == "ImageNet" else LABEL[str(variant)]


def _finding(part: pd.DataFrame) -> str:
    """'ViT+ smooths, ViT- does not': by the interval of the change over the whole model."""
    said = []
    for variant, own in part[part["variant"] != "vit-random"].groupby("variant", sort=False):
        low, high = own["change_low"].iloc[0], own["change_high"].iloc[0]
        does = "smooths" if high < 0 else "does not smooth" if low > 0 else "is not decided"
        said.append(f"{_name(variant, own.iloc[0])} {does}")
    return ", ".join(said)


def compared(table: pd.DataFrame) -> list[base.Comparison]:
    """What the paper concludes, by the sign of the change of ln HFC/LFC from input to output."""
    said = []
    for model, part in table.groupby("model", sort=False):
        row = part.iloc[0]
        change = (row["change"], row["change_low"], row["change_high"])
        why = f"{row['images']} images"
        if row["variant"] == "vit+":
            what, positive = "ViT+ smooths, a fall", False
        elif row["variant"] == "vit-":
            what, positive = "ViT\u2212 does not smooth, no fall", True
        elif row["data"] == "ImageNet":
            what, positive = "a trained model need not smooth, no fall (v3)", True
            why += "; 'need not' asks for one model"
        else:
            continue
        of = f"{model}: change of ln HFC/LFC from input to output"
        each = base.sign(of, what, change, positive, why)
        if row["data"] != "ImageNet":
            each = base.at_accuracy(each, float(row["test_error"]), PAPER_ERROR[row["variant"]])
        said.append(each)
    values = "its curves' numbers were not at hand"
    return [*said, base.unchecked("the three metrics by layer, values", "curves", values)]


def words(table: pd.DataFrame) -> str:
    does, runs = [], []
    for model, part in table.groupby("model", sort=False):
        row = part.iloc[0]
        factor, low, high = (np.exp(row[f"change{end}"]) for end in ("", "_low", "_high"))
        does.append(
            f"{model} ({row['images']} images) by the factor {factor:.2f} [{low:.2f}, {high:.2f}]"
        )
        if isinstance(row["trained"], str) and row["trained"]:
            runs.append(f" {model}: {row['trained']}.")
    return (
        f"From input to output HFC/LFC changes in {'; '.join(does)}. Residual stream after each "
        "layer (before the next LN), all tokens with CLS. Means over images, of the logarithm for "
        "HFC/LFC (Frobenius norms), with 95 % intervals; cosines are signed, over pairs of "
        f"distinct tokens.{''.join(runs)}"
    )
