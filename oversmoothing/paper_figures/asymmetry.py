"""Asymmetry of H while models train, against the paper's Figure 2 (the ICLR submission and v1).

||H - H^T||_F / (2 ||H||_F): 0 for a symmetric H, 1 for an antisymmetric one, and about 1/sqrt(2)
for one of independent entries. The paper's own formula was not at hand; a reviewer quotes its
values, from about .95 down to about .70.
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from oversmoothing.experiments.intervals import mean_interval
from oversmoothing.paper_figures.comparison import Comparison, in_words, sign, unchecked
from oversmoothing.paper_figures.digits_models import COLOUR, LABEL, digits_models
from oversmoothing.paper_figures.figure_base import PALETTE, Context, new_figure
from oversmoothing.paper_figures.paper_models import (
    cifar_runs,
    in_words as run_in_words,
    recorded_cifar,
)

NAME = "asymmetry"
TITLE = "Asymmetry of H while models train"
SHORT = (
    "How far H is from symmetric, layer by layer and in the mean, while the free form trains; of "
    "ViT+ and ViT\u2212 it is symmetric by its form. Grey lines are the values of the paper."
)
NOT_SHOWN = (
    "The paper's formula is not known, so its values stand on a scale that may be another; and "
    "small models of one seed on digits are not its models."
)

# Typed in: as a public review of the submission quotes them.
PAPER = (0.95, 0.70)
TRAINED = ("vit", "vit+", "vit-")
# Two that lie upon each other are both seen.
_MARKER = {"vit": ("o", 3.5), "vit+": ("s", 6.0), "vit-": ("v", 3.0)}


def data(context: Context) -> pd.DataFrame:
    """One row a run, watched step and layer: data, variant, epoch, layer, asymmetry, trained (how,
    in words, with the date where it is recorded).

    Runs that were stored without being watched have none. Of CIFAR-100 those in the folder of
    results, else as recorded. Raises what `digits_models` does.
    """
    found = digits_models(context)
    runs = [("digits", variant, found[variant]) for variant in TRAINED]
    runs += [("CIFAR-100", name, run) for name, run in cifar_runs(context.results).items()]
    columns = ["data", "variant", "epoch", "layer", "asymmetry", "trained"]
    frames = [pd.DataFrame(columns=columns)]
    for name, variant, run in runs:
        watched = run.run.watched
        if "asymmetry" not in watched:
            continue
        own = watched[watched["asymmetry"].notna()]
        epoch = own["step"] / run.config.per_epoch
        own = own[["layer", "asymmetry"]].assign(data=name, variant=variant, epoch=epoch)
        frames.append(own.assign(trained=run_in_words(run.config))[columns])
    rows, words = recorded_cifar("watched", context.results)
    if len(rows):
        frames.append(rows.assign(data="CIFAR-100", trained=words)[columns])
    return pd.concat([each for each in frames if len(each)] or frames, ignore_index=True)


def draw(table: pd.DataFrame) -> Figure:
    """A panel a data set: thin lines are layers, thick ones their means."""
    names = list(dict.fromkeys(table["data"])) or ["digits"]
    figure, axes = new_figure(1, len(names), height=2.8, sharey=True)
    for axis, name in zip(axes[0], names, strict=True):
        part = table[table["data"] == name]
        for variant, own in part.groupby("variant", sort=False):
            colour = COLOUR[str(variant)]
            for _, layer in own.groupby("layer"):
                axis.plot(
                    layer["epoch"], layer["asymmetry"], color=colour, linewidth=0.5, alpha=0.5
                )
            mean = own.groupby("epoch")["asymmetry"].mean()
            marker, size = _MARKER[str(variant)]
            axis.plot(
                mean.index, mean, color=colour, marker=marker, markersize=size,
                label=LABEL[str(variant)],
            )  # fmt: skip
        for value, words in zip(PAPER, ("the paper, start", "the paper, end"), strict=True):
            axis.axhline(value, color=PALETTE["grey"], linestyle=":", linewidth=1)
            axis.text(
                0.99, value - 0.03, f"{words} (typed in): {value:.2f}", fontsize=7, ha="right",
                va="top", color="#5A5A5A", transform=axis.get_yaxis_transform(),
            )  # fmt: skip
        axis.axhline(0.5**0.5, color=PALETTE["light"], linewidth=1, zorder=0)
        axis.set(xlabel="epoch", ylim=(-0.05, 1.08), title=f"{name}, ours")
        if not len(part):
            axis.text(0.5, 0.4, "no run was watched", ha="center", transform=axis.transAxes)
    axes[0, 0].set_ylabel(r"$\|H - H^T\|_F\,/\,(2\,\|H\|_F)$")
    if len(table):
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def compared(table: pd.DataFrame) -> list[Comparison]:
    """That it falls; and the values, whose formula is not known."""
    found = []
    values = f"from {PAPER[0]:.2f} to {PAPER[1]:.2f}"
    free = table[table["variant"] == "vit"]
    for name, part in free.groupby("data", sort=False):
        ends = part.sort_values("epoch").groupby("layer")["asymmetry"].agg(["first", "last"])
        change = mean_interval((ends["last"] - ends["first"]).to_numpy(dtype=np.float64))
        why = f"{len(ends)} layers of one run on {name}, our formula"
        found.append(sign(f"asymmetry falls while training, {name}", "falls", change, False, why))
    why = "its formula is not known"
    if len(free):
        first, last = (free[free["epoch"] == end(free["epoch"])] for end in (min, max))
        ours = f"from {first['asymmetry'].mean():.2f} to {last['asymmetry'].mean():.2f}"
        why += ": by ours independent entries start at .71"
        found.append(unchecked("asymmetry, values", values, why, ours))
    else:
        found.append(unchecked("asymmetry, values", values, "no run here was watched"))
    return found


def caption(table: pd.DataFrame) -> str:
    """What is shown, and each comparison in words."""
    shown = table.groupby("data", sort=False)["trained"].first()
    runs = "".join(f" {name}: {words}." for name, words in shown.items())
    return (
        f"{TITLE}. Thin lines: layers; thick: their mean; light line: 1/sqrt(2), independent "
        "entries. ViT+ and ViT\u2212 have a symmetric H by their form."
        f"{runs}\n" + in_words(compared(table))
    )
