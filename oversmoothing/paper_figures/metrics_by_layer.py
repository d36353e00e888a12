"""The paper's three metrics by layer: untrained, trained on CIFAR-100 and ImageNet, ViT+ and ViT-.

HFC/LFC, mean pairwise cosine and effective rank of the residual stream, as v1 and v3 of arXiv
2401.04301 draw them (their numbers were not at hand, only what they conclude). Digits models stand
in for CIFAR-100 where no run of it is there (`paper_models`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from oversmoothing.experiments.study.base_streams import IMAGES, layer_metrics
from oversmoothing.paper_figures.comparison import (
    Comparison,
    at_accuracy,
    in_words,
    sign,
    unchecked,
)
from oversmoothing.paper_figures.digits_models import LABEL, SHARED_VALUE
from oversmoothing.paper_figures.figure_base import PALETTE, Context, label_panels, new_figure
from oversmoothing.paper_figures.paper_models import (
    CIFAR,
    PAPER_ERROR,
    on_imagenet,
    recorded_cifar,
    trained_here,
    untrained,
)
from oversmoothing.simulations.drawing.picture import decade_axis

NAME = "metrics_by_layer"
TITLE = "The paper's three metrics by layer, in untrained and trained models"
SHORT = (
    "What models do to their tokens from layer to layer, by the paper's three metrics. Lines are "
    "means over images; the rank is a share of the largest that is possible."
)
NOT_SHOWN = (
    "The models are not the paper's, but for the untrained one, and a finite network says nothing "
    "of a limit. Spread over images stands in the table."
)

PANELS = (
    ("log_hfc_lfc", "HFC/LFC"),
    ("cos_mean", "mean cosine (signed)"),
    ("rank_share", "effective rank / min(n, d)"),
)
# Colour and marker say which model, the line on what it was trained.
_LOOK = {
    "vit-random": ("green", "s"),
    "vit": ("black", "o"),
    "vit+": ("blue", "^"),
    "vit-": ("vermillion", "v"),
}
_IMAGENET = ("purple", "D")
_LINE = {"": ":", "digits": "--", CIFAR: "-", "ImageNet": "-"}


def data(context: Context) -> pd.DataFrame:
    """One row a model and layer (0 is the input), with 95 % intervals and percentiles over images.

    change, change_low, change_high repeat its change from input to output, of ln HFC/LFC by the
    mean over images (so of HFC/LFC the geometric mean); test_error: of ours, in per cent. Raises
    what `digits_models` does.
    """
    models = [untrained(context), *trained_here(context, IMAGES)]
    shown = on_imagenet(IMAGES)
    frames = []
    for each in [*models, *([shown] if shown else [])]:
        head = {"model": each.label, "variant": each.variant, "data": each.data}
        frame = layer_metrics(each.model, each.inputs)
        known: dict[str, Any] = {
            "images": each.images,
            "trained": each.trained,
            "test_error": each.test_error,
        }
        frames.append(_headed(frame.assign(**known), head))
    rows, trained = recorded_cifar("streams", context.results)
    for variant, own in rows.groupby("variant", sort=False) if len(rows) else ():
        head = {"model": f"{LABEL[str(variant)]}, {CIFAR}", "variant": str(variant), "data": CIFAR}
        frame = own[[*(name for name in frames[0] if name in own and name not in head)]]
        known = {"images": own["images"], "trained": trained, "test_error": own["test_error"]}
        frames.append(_headed(frame.assign(**known), head))
    return pd.concat(frames, ignore_index=True)


def _headed(frame: pd.DataFrame, head: Mapping[str, str]) -> pd.DataFrame:
    heads = pd.DataFrame([head] * len(frame))
    return pd.concat([heads, frame.reset_index(drop=True)], axis=1)


def draw(table: pd.DataFrame) -> Figure:
    """A panel a metric, a line a model."""
    figure, axes = new_figure(1, 3, height=3.0)
    for axis, (name, label) in zip(axes[0], PANELS, strict=True):
        scale = 1 / np.log(10.0) if name.startswith("log_") else 1.0
        for model, part in table.groupby("model", sort=False):
            first = part.iloc[0]
            known = first["data"] == "ImageNet"
            colour, marker = _IMAGENET if known else _LOOK[first["variant"]]
            axis.plot(
                part["layer"], scale * part[name], color=PALETTE[colour], marker=marker,
                linestyle=_LINE[first["data"]], markersize=2.5, label=str(model),
            )  # fmt: skip
        axis.set(xlabel="layer (0: input)", title=label)
    decade_axis(axes[0, 0])
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    label_panels(axes)
    return figure


def compared(table: pd.DataFrame) -> list[Comparison]:
    """What the paper concludes, by the sign of the change of ln HFC/LFC from input to output."""
    found = []
    for model, part in table.groupby("model", sort=False):
        row = part.iloc[0]
        change = (row["change"], row["change_low"], row["change_high"])
        why = f"{row['images']} images; change of ln HFC/LFC over the whole model"
        if row["variant"] == "vit+":
            what, positive = "ViT+ smooths", False
        elif row["variant"] == "vit-":
            what, positive = "ViT\u2212 does not smooth", True
        elif row["data"] == "ImageNet":
            what, positive = "a trained model need not smooth (v3)", True
        else:
            continue
        each = sign(f"{model}: ln HFC/LFC", what, change, positive, why)
        if row["data"] == CIFAR:
            each = at_accuracy(each, float(row["test_error"]), PAPER_ERROR[row["variant"]])
        found.append(each)
    values = "its curves' numbers were not at hand"
    return [*found, unchecked("the three metrics by layer, values", "curves", values)]


def caption(table: pd.DataFrame) -> str:
    """What is shown, in which convention, and each comparison in words."""
    counts = ", ".join(
        f"{model} {part['images'].iloc[0]}" for model, part in table.groupby("model", sort=False)
    )
    shown = table[table["trained"].fillna("") != ""].groupby("model", sort=False)["trained"].first()
    runs = "".join(f" {model}: {trained}." for model, trained in shown.items())
    return (
        f"{TITLE}: residual stream after each layer (before the next LN), all tokens with CLS. "
        "Means over images, of the logarithm for HFC/LFC (Frobenius norms); cosines are signed, "
        f"over pairs of distinct tokens. Images: {counts}.{runs} {SHARED_VALUE}\n"
        + in_words(compared(table))
    )
