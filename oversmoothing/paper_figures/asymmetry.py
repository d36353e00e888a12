"""Asymmetry of H while models train, against the paper's Figure 2 (the ICLR submission and v1).

||H - H^T||_F / ||H + H^T||_F: 0 for a symmetric H, about 1 for independent entries. The paper's own
formula was not at hand; a reviewer quotes its values, from about .95 down to about .70, which this
ratio fits: a share of 2 ||H||_F starts at 1/sqrt(2) and cannot start at .95.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oversmoothing.experiments.intervals import mean_interval
from oversmoothing.experiments.models.model import start_in_words
from oversmoothing.experiments.study.protocol import protocol
from oversmoothing.experiments.study.value_spectra import recorded_deit
from oversmoothing.paper_figures.comparison import Comparison, in_words, sign, unchecked
from oversmoothing.paper_figures.digits_models import COLOUR, LABEL, SHARED_VALUE, digits_models
from oversmoothing.paper_figures.figure_base import PALETTE, Context, new_figure
from oversmoothing.paper_figures.paper_models import (
    cifar_runs,
    in_words as run_in_words,
    recorded_cifar,
)
from oversmoothing.simulations.spectra.head_values import asymmetry_at_random

NAME = "asymmetry"
TITLE = "Asymmetry of H while models train, and of a trained one"
SHORT = (
    "How far H is from symmetric while the free form trains (thin lines: layers; thick: their "
    "mean), and layer by layer in the trained DeiT-Ti. Of ViT+ and ViT\u2212 it is symmetric by "
    "its form. Grey lines are the values of the paper."
)
NOT_SHOWN = (
    "The paper's formula is not known, so its values may stand on another scale. Our small models "
    "have hardly left their start, and the start of DeiT-Ti is not known."
)

# Typed in: as a public review of the submission quotes them.
PAPER = (0.95, 0.70)
TRAINED = ("vit", "vit+", "vit-")
DEIT = "DeiT-Ti"
# A run tells what training makes of H where no layer keeps more than this cosine with its start.
LEFT = 0.3
RECORDED = "recorded: oversmoothing readings deit-tiny-patch16-224 --images photographs --count 2"
# Two that lie upon each other are both seen.
_MARKER = {"vit": ("o", 3.5), "vit+": ("s", 6.0), "vit-": ("v", 3.0)}
_COLUMNS = ["data", "variant", "epoch", "layer", "asymmetry", "at_random", "cos_start", "trained"]


def data(context: Context) -> pd.DataFrame:
    """One row a run, watched step and layer, then one a layer of the trained DeiT-Ti.

    data, variant ('' of DeiT-Ti), epoch (NaN of DeiT-Ti), layer, asymmetry; at_random: of
    independent entries in that dimension; cos_start: of the finished H with its start, NaN where it
    is not known; trained (how, in words, with the date where it is recorded).

    Runs that were stored without being watched have none. Of CIFAR-100 those in the folder of
    results, else as recorded. Raises what `digits_models` does.
    """
    found = digits_models(context)
    runs = [("digits", variant, found[variant]) for variant in TRAINED]
    runs += [("CIFAR-100", name, run) for name, run in cifar_runs(context.results).items()]
    frames = []
    for name, variant, run in runs:
        watched = run.run.watched
        if "asymmetry" not in watched:
            continue
        own = watched.loc[watched["asymmetry"].notna(), ["step", "layer", "asymmetry"]]
        own = own.assign(data=name, variant=variant, epoch=own["step"] / run.config.per_epoch)
        own["at_random"] = asymmetry_at_random(run.config.width)
        own["cos_start"] = own["layer"].map(dict(enumerate(run.model.cos_start or [], 1)))
        frames.append(own.assign(trained=run_in_words(run.config)))
    rows, words = recorded_cifar("watched", context.results)
    if len(rows):
        width = protocol("cifar100").run({}, 0).config.width
        rows = rows.assign(data="CIFAR-100", trained=words, cos_start=np.nan)
        frames.append(rows.assign(at_random=asymmetry_at_random(width)))
    frames.append(of_deit())
    return pd.concat([each.reindex(columns=_COLUMNS) for each in frames], ignore_index=True)


def of_deit() -> pd.DataFrame:
    """A row a layer of the trained DeiT-Ti, H as stored, by the command that `RECORDED` names."""
    table = recorded_deit()
    own = table[(table["norm"] == "unfolded") & (table["of"] == "whole")]
    own = own.rename(columns={"asymmetry_at_random": "at_random"})
    return own.assign(data=DEIT, variant="", epoch=np.nan, trained=RECORDED)


def draw(table: pd.DataFrame) -> Figure:
    """A panel a data set: thin lines are layers, thick ones their means; then DeiT-Ti by layer."""
    names = list(dict.fromkeys(table["data"])) or ["digits"]
    figure, axes = new_figure(1, len(names), height=2.8, sharey=True)
    for axis, name in zip(axes[0], names, strict=True):
        part = table[table["data"] == name]
        if name == DEIT:
            axis.plot(part["layer"], part["asymmetry"], color=PALETTE["purple"], marker="D")
            axis.set(xlabel="layer", title=f"{name}, trained", xticks=range(3, 13, 3))
        else:
            _while_training(axis, part)
            axis.set(xlabel="epoch", title=f"{name}, ours")
        for value, words in zip(PAPER, ("the paper, start", "the paper, end"), strict=True):
            axis.axhline(value, color=PALETTE["grey"], linestyle=":", linewidth=1)
            if name != DEIT:
                _said(axis, value - 0.03, f"{words}: {value:.2f}", "top")
        for value in part["at_random"].dropna().unique():
            axis.axhline(value, color=PALETTE["light"], linewidth=2, zorder=0)
            _said(axis, value + 0.02, f"independent entries: {value:.2f}", "bottom")
        axis.set_ylim(-0.05, 1.15)
        if not len(part):
            axis.text(0.5, 0.4, "no run was watched", ha="center", transform=axis.transAxes)
    axes[0, 0].set_ylabel(r"$\|H - H^T\|_F\,/\,\|H + H^T\|_F$")
    if len(axes[0, 0].get_legend_handles_labels()[0]):
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _said(axis: Axes, height: float, words: str, place: str) -> None:
    axis.text(
        0.99, height, words, fontsize=7, ha="right", va=place, color="#5A5A5A",
        transform=axis.get_yaxis_transform(),
    )  # fmt: skip


def _while_training(axis: Axes, part: pd.DataFrame) -> None:
    for variant, own in part.groupby("variant", sort=False):
        colour = COLOUR[str(variant)]
        for _, layer in own.groupby("layer"):
            axis.plot(layer["epoch"], layer["asymmetry"], color=colour, linewidth=0.5, alpha=0.5)
        mean = own.groupby("epoch")["asymmetry"].mean()
        marker, size = _MARKER[str(variant)]
        axis.plot(
            mean.index, mean, color=colour, marker=marker, markersize=size,
            label=LABEL[str(variant)],
        )  # fmt: skip


def compared(table: pd.DataFrame) -> list[Comparison]:
    """That it falls, decided by models whose H has left its start; and the values, whose formula is
    not known."""
    found = []
    for name, part in table[table["variant"] == "vit"].groupby("data", sort=False):
        found.append(_while_trained(str(name), part))
    if len(deit := table[table["data"] == DEIT]):
        below = deit["asymmetry"] - deit["at_random"]
        why = (
            f"{(below < 0).sum()} of {len(deit)} layers below {deit['at_random'].mean():.3f}, that "
            "of independent entries; its start is unknown"
        )
        away = mean_interval(below.to_numpy(dtype=np.float64))
        what = f"asymmetry falls while training, {DEIT} less independent entries"
        found.insert(0, sign(what, "falls", away, False, why))
    values = f"from {PAPER[0]:.2f} to {PAPER[1]:.2f}"
    if not len(deit):
        return [*found, unchecked("asymmetry, values", values, "no trained model is here")]
    ours = f"from {deit['at_random'].mean():.2f} to {deit['asymmetry'].mean():.2f}"
    why = f"its formula is not known: by ours independent entries against {DEIT}, trained"
    return [*found, unchecked("asymmetry, values", values, why, ours)]


def _while_trained(name: str, part: pd.DataFrame) -> Comparison:
    """Of one run in which H is free; nothing is decided by an H that has not left its start."""
    what = f"asymmetry falls while training, {name}"
    layers = part.sort_values("epoch").groupby("layer")
    ends, cosines = layers["asymmetry"].agg(["first", "last"]), layers["cos_start"].last()
    change = mean_interval((ends["last"] - ends["first"]).to_numpy(dtype=np.float64), fewest=2)
    known = start_in_words(cosines.tolist()) if cosines.notna().any() else "its end is not recorded"
    why = f"{len(ends)} layers of one run; {known}"
    if (cosines > LEFT).any():
        why += ": H has not left its start"
        return unchecked(what, "falls", why, f"{change[0]:+.3f}")
    return sign(what, "falls", change, False, why)


def caption(table: pd.DataFrame) -> str:
    """What is shown, and each comparison in words."""
    shown = table.groupby("data", sort=False)["trained"].first()
    runs = "".join(f" {name}: {words}." for name, words in shown.items())
    return (
        f"{TITLE}. Thin lines: layers; thick: their mean; light line: independent entries of mean "
        "0, sqrt((d - 1) / (d + 1)). ViT+ and ViT\u2212 have a symmetric H by their form."
        f"{runs} {SHARED_VALUE}\n" + in_words(compared(table))
    )
