"""Table 1 of arXiv 2401.04301 (v1) in the readings that fit it: which eigenvalue dominates.

The paper does not say what its percentages count. E1: a head, its A against its H; E2: a layer, the
mean A against the whole H; E4: an eigenvalue of the whole H. (E3, the operator of all heads, is E2
where heads share H; for DeiT-Ti it is in the recorded table.) The paper's column stands beside.
"""

from importlib import resources

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from oversmoothing.experiments.models.model import start_in_words
from oversmoothing.experiments.study.readings import PUBLISHED, readings_of
from oversmoothing.paper_figures.comparison import (
    Comparison,
    at_accuracy,
    in_words,
    number,
    unchecked,
)
from oversmoothing.paper_figures.digits_models import SHARED_VALUE
from oversmoothing.paper_figures.figure_base import PALETTE, Context, new_figure
from oversmoothing.paper_figures.paper_models import PAPER_ERROR, trained_here, untrained

NAME = "table_1"
TITLE = "Table 1: which eigenvalue dominates, in every reading"
SHORT = (
    "The share of cases in which consensus dominates, by what a case may be. Grey bars are the "
    "paper's, as printed; the others are ours, by reading."
)
NOT_SHOWN = (
    "Only the untrained column is the same model as the paper's. DeiT-Ti stands beside DeiT-B/16, "
    "and digits models beside those of CIFAR-100, where no run of CIFAR-100 is there."
)

RECORDED = (
    "recorded: oversmoothing readings deit-tiny-patch16-224 --images cifar100 --count 100 "
    "--readings E1 E2 E4, and --count 8 --costly 8 --readings E3"
)
COMPUTED = "computed"
PAPER = "arXiv 2401.04301 (v1), Table 1, typed in"
IMAGES = 20
# Percentages are printed to two decimals.
PRINTED = 0.005
COLOUR = {"E1": "blue", "E2": "vermillion", "E3": "green", "E4": "orange"}
MEANING = {
    "E1": "E1, a head",
    "E2": "E2, a layer: mean A, whole H",
    "E3": "E3, a layer: all heads as they are",
    "E4": "E4, an eigenvalue of H",
}


def data(context: Context) -> pd.DataFrame:
    """One row a model, reading and class: ours with 95 % intervals over images, then the paper's.

    test_error: of ours that were trained here, in per cent; cos_start_low, cos_start_high: the
    smallest and largest cos(H_start, H_end) of its layers, NaN where the start is unknown.
    Raises what `digits_models` does.
    """
    parts = []
    for shown in (untrained(context), *trained_here(context, IMAGES)):
        # The heads of the project's own ViTs share H: E2 is their operator, and E1 has no meaning.
        readings = ["E1", "E2", "E4"] if shown.variant == "vit-random" else ["E2", "E4"]
        found = readings_of({shown.label: shown.model}, shown.inputs, readings)
        starts = [layer.cos_start for layer in shown.model.layers]
        known = [value for value in starts if value is not None]
        parts.append(
            found.assign(
                column=shown.column,
                data=shown.data,
                source=COMPUTED,
                variant=shown.variant,
                test_error=shown.test_error,
                cos_start_low=min(known, default=np.nan),
                cos_start_high=max(known, default=np.nan),
            )
        )
    parts += [recorded(), typed_in()]
    return pd.concat(parts, ignore_index=True)


def recorded() -> pd.DataFrame:
    """DeiT-Ti on 100 images of CIFAR-100, E3 on 8, by the commands that `RECORDED` names."""
    file = resources.files("oversmoothing.experiments.study") / "results/readings_deit_tiny.csv"
    with resources.as_file(file) as path:
        table = pd.read_csv(path)
    return table.assign(
        model="DeiT-Ti, ImageNet", column="DeiT-B/16", data="ImageNet", source=RECORDED
    )


def typed_in() -> pd.DataFrame:
    """The published columns; the paper gives two classes."""
    rows = [
        (name, name, "paper", each, percent, PAPER)
        for name, pair in PUBLISHED.items()
        for each, percent in zip(("consensus", "smallest"), pair, strict=True)
    ]
    return pd.DataFrame(rows, columns=["model", "column", "reading", "class", "percent", "source"])


def draw(table: pd.DataFrame) -> Figure:
    """Consensus in per cent: a group a column of the paper, a bar a model and reading."""
    figure, axes = new_figure(1, 1, height=3.1)
    axis = axes[0, 0]
    consensus = table[table["class"] == "consensus"]
    place = 0.0
    centres: list[float] = []
    names: list[str] = []
    used: set[str] = set()
    for column in PUBLISHED:
        group = consensus[consensus["column"] == column]
        group = pd.concat([group[group["source"] == PAPER], group[group["source"] != PAPER]])
        first = place
        for row in group.to_dict("records"):
            paper, percent = row["source"] == PAPER, float(row["percent"])
            name = "paper" if paper else str(row["reading"])
            used.add(name)
            colour = PALETTE["light" if paper else COLOUR[name]]
            axis.bar(place, percent, color=colour, width=0.85)
            # Above the interval, where there is one.
            top = percent if paper or np.isnan(row["percent_high"]) else row["percent_high"]
            axis.text(place, top + 1.5, f"{percent:.3g}", ha="center", fontsize=6.5)
            if not paper:
                ends = [[max(0, percent - row["percent_low"])], [row["percent_high"] - percent]]
                axis.errorbar(place, percent, ends, color=PALETTE["black"], linewidth=0.8)
            place += 1
        beside = [name for name in dict.fromkeys(group["model"]) if name != column]
        centres.append((first + place - 1) / 2)
        names.append("\n".join([column, *(f"({name})".replace(", ", ",\n") for name in beside)]))
        place += 0.9
    axis.set_xticks(centres, names, fontsize=7)
    axis.tick_params(axis="x", length=0)
    axis.set(ylim=(0, 112), ylabel="consensus dominates (% of cases)")
    axis.set_yticks(range(0, 101, 20))
    axis.grid(False, axis="x")
    handles = [Patch(color=PALETTE["light"], label="the paper, as printed")]
    handles += [Patch(color=PALETTE[c], label=MEANING[r]) for r, c in COLOUR.items() if r in used]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def compared(table: pd.DataFrame) -> list[Comparison]:
    """Column by column, in the reading that is nearest to what the paper describes, E2; the
    untrained one in every reading."""
    found = []
    ours = table[(table["class"] == "consensus") & (table["source"] != PAPER)]
    for column, (paper, _) in PUBLISHED.items():
        own = ours[ours["column"] == column]
        if column == "ViT-B/16":
            why = "its weights are not here"
            found.append(unchecked(f"Table 1, {column}", f"{paper:.2f} %", why))
        for row in own.to_dict("records"):
            reading, percent = row["reading"], float(row["percent"])
            what = f"Table 1, {column}, {reading}"
            # One image has no interval.
            reach = float(row["percent_high"]) - float(row["percent_low"])
            tolerance = PRINTED + (reach / 2 if reach >= 0 else 0.0)
            if column == "random ViT-B/16":
                why = f"{row['images']:.0f} photographs, one draw; how the paper counts is unknown"
                found.append(number(what, paper, percent, tolerance, why))
            elif reading == "E2" and column == "ViT-Ti+":
                why = f"{row['data']}; every h > 0 demands it of any data (T2d)"
                found.append(number(what, paper, percent, tolerance, why))
            elif row["data"] == "CIFAR-100":
                why = "another recipe and number of epochs"
                found.append(number(what, paper, percent, tolerance, why))
            else:
                why = f"{row['model']} is another model"
                found.append(unchecked(what, f"{paper:.2f} %", why, f"{percent:.2f} %"))
            if row["data"] == "CIFAR-100":
                goal = PAPER_ERROR[row["variant"]]
                found[-1] = at_accuracy(found[-1], float(row["test_error"]), goal)
    return found


def caption(table: pd.DataFrame) -> str:
    """What is counted, and each comparison in words."""
    return (
        f"{TITLE}. Consensus: |1 + lambda_j^H| is the largest over all pairs (j, i). Intervals "
        "(95 %) are over images; one of no width says that all images agree. Grey: "
        f"{PAPER}. DeiT-Ti is {RECORDED}. {SHARED_VALUE} {_starts(table)}\n"
        + in_words(compared(table))
    )


def _starts(table: pd.DataFrame) -> str:
    """Of each trained model, how far its H has turned from where it was drawn."""
    ours = table[(table["source"] != PAPER) & (table["column"] != "random ViT-B/16")]
    said = [
        f"{model}: {start_in_words(row[['cos_start_low', 'cos_start_high']].tolist())}"
        for model, row in ours.groupby("model", sort=False).first(skipna=False).iterrows()
    ]
    return f"{'; '.join(said)}."
