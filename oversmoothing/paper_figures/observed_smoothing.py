"""Figure d: smoothing observed in random, trained, ViT+ and ViT- models, layer by layer.

HFC/LFC, the mean and the smallest pairwise cosine, and the effective rank of the residual stream:
the three notions of T4 beside each other, because a mean cosine near 1 or a rank near 1 is not
HFC/LFC -> 0.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oversmoothing.experiments.digits.data import digits
from oversmoothing.experiments.inspection.answer import MILD, STRONG, Grade, grades
from oversmoothing.experiments.inspection.inspect import inspect
from oversmoothing.experiments.inspection.sentences import DOES, NAMED
from oversmoothing.experiments.intervals import mean_interval
from oversmoothing.paper_figures.digits_models import COLOUR, LABEL, SHARED_VALUE, digits_models
from oversmoothing.paper_figures.figure_base import Context, label_panels, new_figure
from oversmoothing.simulations.drawing.picture import decade_axis
from oversmoothing.simulations.drawing.wording import signed

NAME = "observed_smoothing"
TITLE = "Smoothing observed along the layers of trained models"
SHORT = (
    "What each digits model does to its tokens, layer by layer, by four measures. Lines are "
    "means over images, bands hold nine images of ten."
)
NOT_SHOWN = (
    "Four small models, one seed each, on handwritten digits. The bands are over images and not"
    " over seeds: another training may differ."
)

PANELS = (
    ("log_hfc_lfc", "HFC/LFC"),
    ("cos_mean", "mean cosine (signed)"),
    ("cos_min", "smallest cosine (signed)"),
    ("effective_rank", "effective rank"),
)


def data(context: Context) -> pd.DataFrame:
    """One row a model and layer (0 is the input): `inspect` on the validation images.

    The columns total_change, total_change_low and total_change_high repeat the change of log
    HFC/LFC over the whole model, with its 95 % interval. Raises `RequirementError` where a model
    misses the required test accuracy.
    """
    frames = []
    for name, found in digits_models(context).items():
        report = inspect(found.model, digits().validation.pixels, name=name)
        frame = report.to_frame()
        frame.insert(0, "model", name)
        total = dict(zip(("", "_low", "_high"), mean_interval(report.change), strict=True))
        for suffix, value in total.items():
            frame[f"total_change{suffix}"] = value
        frame["images"], frame["tokens"] = report.images, report.tokens
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def draw(table: pd.DataFrame) -> Figure:
    """Four panels against the layer; lines are means, bands the middle 90 % of the images."""
    figure, axes = new_figure(2, 2, height=4.4, sharex=True)
    panels: list[Axes] = axes.ravel().tolist()
    for axis, (name, label) in zip(panels, PANELS, strict=True):
        _panel(axis, table, name)
        axis.set_ylabel(label)
    decade_axis(axes[0, 0])
    for axis in axes[1]:
        axis.set_xlabel("layer (0: input)")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    label_panels(axes)
    return figure


# Ways to draw a model besides its colour: line, marker, and how dense its band is.
LOOK = {
    "vit-random": (":", "s", 0.10),
    "vit": ("-", "o", 0.06),
    "vit+": ("--", "^", 0.10),
    "vit-": ("-.", "v", 0.10),
}


def _panel(axis: Axes, table: pd.DataFrame, name: str) -> None:
    scale = 1 / np.log(10.0) if name.startswith("log_") else 1.0
    for model, part in table.groupby("model", sort=False):
        colour, (line, marker, density) = COLOUR[str(model)], LOOK[str(model)]
        low, high = scale * part[f"{name}_p05"], scale * part[f"{name}_p95"]
        # Where bands lie over each other their edges still tell them apart.
        axis.fill_between(part["layer"], low, high, color=colour, alpha=density, linewidth=0)
        for edge in (low, high):
            axis.plot(part["layer"], edge, color=colour, linestyle=line, linewidth=0.5, alpha=0.7)
        axis.plot(
            part["layer"], scale * part[name], color=colour, linestyle=line, marker=marker,
            label=LABEL[str(model)],
        )  # fmt: skip


def caption(table: pd.DataFrame) -> str:
    """What is shown, in which convention, and what each model does, in words."""
    images, tokens = int(table["images"].iloc[0]), int(table["tokens"].iloc[0])
    said = "; ".join(
        _sentence(str(name), part) for name, part in table.groupby("model", sort=False)
    )
    return (
        f"{TITLE}: residual stream after each layer (before the next LN), all {tokens} tokens with "
        f"CLS, {images} validation images of the digits. Lines: mean over images (of the "
        "logarithm for HFC/LFC, ratio of Frobenius norms); bands: 5th to 95th percentile of the "
        "images. Cosines are signed, over pairs of distinct tokens. "
        "Graded by the change of the natural log HFC/LFC from input to output, held against the "
        f"mean cosine at the end (mild from {MILD:.2f}, strong from {STRONG:.2f} on): {said}. "
        f"{SHARED_VALUE}"
    )


def _sentence(name: str, part: pd.DataFrame) -> str:
    """The graded answer of one model: what it does, and whether the images tell."""
    first, last = part.iloc[0], part.iloc[-1]

    def ends(column: str, row: pd.Series) -> tuple[float, float, float]:
        return float(row[column]), float(row[f"{column}_low"]), float(row[f"{column}_high"])

    change, cosine, ratio = (
        ends(*each) for each in (("total_change", first), ("cos_mean", last), ("log_hfc_lfc", last))
    )
    here, least, most = grades(change, cosine, ratio)
    does = "cannot be graded (HFC/LFC is undefined)" if here is None else DOES[here]
    if least is not None and most is not None and least < most:
        others = [NAMED[Grade(k)] for k in range(most, least - 1, -1) if k != here]
        does += f", which leaves {' or '.join(others)} open"
        if least < 0 < most:
            does = f"cannot be told to smooth or sharpen ({NAMED[least]} to {NAMED[most]})"
    attention, ffn = part["log_change_attention"].sum(), part["log_change_ffn"].sum()
    return (
        f"{LABEL[name]} {does} (ln HFC/LFC {signed(change[0])}, 95 % interval {signed(change[1])} "
        f"to {signed(change[2])}; attention sublayers {signed(attention)}, FFN {signed(ffn)}; mean "
        f"cosine {float(first['cos_mean']):.2f} to {cosine[0]:.2f})"
    )
