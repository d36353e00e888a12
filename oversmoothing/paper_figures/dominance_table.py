"""Figure c: which eigenvalue dominates in random, trained, ViT+ and ViT- models (Table 1).

Bars carry the numbers of `experiments.study.table1_models`, reading E2 (our reading of Table 1 of
arXiv 2401.04301); the paper's own columns for ViT-Ti on CIFAR100 stand beside them, quoted for
comparison alone: other data, other models, and its way of counting is not known.
"""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from oversmoothing.experiments.digits.data import digits
from oversmoothing.experiments.study.readings import PUBLISHED
from oversmoothing.experiments.study.table1_models import dominance_table, require_theorems
from oversmoothing.paper_figures.digits_models import LABEL, SHARED_VALUE, digits_models
from oversmoothing.paper_figures.figure_base import PALETTE, Context, label_panels, new_figure
from oversmoothing.simulations.spectra.batch_verdicts import CLASSES

NAME = "dominance_table"
TITLE = "Which eigenvalue of I + H (x) A dominates, by model"
SHORT = (
    "Which family of eigenvalues is the largest, in per cent of (image, layer): in the digits "
    "models here, and as the paper published it for other models on other data."
)
NOT_SHOWN = (
    "The paper does not say what its percentages count, so this is a comparison and no "
    "reproduction; and dominance in a layer does not say what the whole network does."
)

OURS = "digits, reading E2"
QUOTED = "arXiv 2401.04301 (v1), Table 1, quoted"

# Percent from which a slice of a bar is tall enough for its number.
SMALLEST_INSIDE = 8
# Height of a row of the table under the bars.
ROW_POINTS = 12.5

COLOUR = {
    "consensus": PALETTE["blue"],
    "smallest": PALETTE["vermillion"],
    "other": PALETTE["orange"],
    "tie": PALETTE["green"],
}
MEANING = {
    "consensus": r"consensus, $\lambda_n^A = 1$",
    "smallest": r"smallest real part, $\lambda_1^A$",
    "other": r"another $\lambda_i^A$",
    "tie": "tie",
}


def data(context: Context) -> pd.DataFrame:
    """One row a model and class, with its source; trains what is not in `context.results`.

    Raises `RequirementError` where a model misses the required accuracy or the table contradicts a
    theorem.
    """
    found = digits_models(context)
    models = {name: each.model for name, each in found.items()}
    table = dominance_table(models, digits().validation.pixels)
    require_theorems(table)
    accuracy = {name: each.run.metrics["test_accuracy"] for name, each in found.items()}
    table.insert(0, "source", OURS)
    table["test_accuracy_percent"] = 100 * table["model"].map(accuracy)
    starts = {name: each.model.cos_start or [] for name, each in found.items()}
    table["cos_start_low"] = table["model"].map({name: min(c) for name, c in starts.items()})
    table["cos_start_high"] = table["model"].map({name: max(c) for name, c in starts.items()})
    whole = [name for name in table if table[name].dtype.kind == "i"]
    # Int64 keeps counts whole where the published rows have none.
    return pd.concat([table, quoted()], ignore_index=True).astype(dict.fromkeys(whole, "Int64"))


def quoted() -> pd.DataFrame:
    """The published columns for CIFAR100; what the paper does not give is missing."""
    rows = [
        (QUOTED, model, name, percent)
        for model, pair in PUBLISHED.items()
        if model.startswith("ViT-Ti")
        for name, percent in zip(("consensus", "smallest"), pair, strict=True)
    ]
    return pd.DataFrame(rows, columns=["source", "model", "class", "percent"])


def draw(table: pd.DataFrame) -> Figure:
    """Stacked bars of the classes: ours (left), the published ones (right)."""
    figure, axes = new_figure(1, 2, height=3.0, width_ratios=[4, 3], sharey=True)
    ours, theirs = axes[0]
    mine = table[table["source"] == OURS]
    labels = {name: LABEL[name] for name in dict.fromkeys(mine["model"])}
    _bars(ours, mine, labels)
    _under(ours, mine, labels)
    other = table[table["source"] == QUOTED]
    _bars(theirs, other, {name: name for name in dict.fromkeys(other["model"])})
    ours.set_ylabel("cases dominated (%)")
    ours.set_title("digits models, reading E2 (ours)")
    theirs.set_title("CIFAR100, as published (quoted)")
    # A class that has no case anywhere is no colour of this picture.
    drawn = table.loc[table["percent"] > 0, "class"].unique()
    shown = [name for name in CLASSES if name in drawn]
    handles = [Patch(color=COLOUR[name], label=MEANING[name]) for name in shown]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    label_panels(axes)
    return figure


def _bars(axis: Axes, part: pd.DataFrame, label: dict[str, str]) -> None:
    for x, model in enumerate(label):
        rows = part[part["model"] == model]
        percent = dict(zip(rows["class"], rows["percent"], strict=True))
        base = 0.0
        for name in CLASSES:
            value = float(percent.get(name, 0.0))
            axis.bar(x, value, bottom=base, color=COLOUR[name], width=0.62)
            number = f"{value:.2f}"
            if value >= SMALLEST_INSIDE:
                ink = "white" if name in ("consensus", "smallest") else "black"
                axis.text(x, base + value / 2, number, ha="center", va="center", color=ink)
            elif value > 0:
                # Too thin a slice for its number, which goes above the bar in the same colour.
                axis.text(x, 101.5, number, ha="center", va="bottom", color=COLOUR[name])
            base += value
    axis.set_xticks(range(len(label)), list(label.values()), fontsize="small")
    axis.set_ylim(0, 112)
    axis.set_yticks(range(0, 101, 20))
    axis.tick_params(axis="x", length=0)
    axis.grid(False)


def _under(axis: Axes, part: pd.DataFrame, label: dict[str, str]) -> None:
    """The rows of the table under the bars: accuracy, spectrum of H and its safe interval."""
    first = _consensus(part).loc[list(label)]
    rows = {
        "test accuracy (%)": first["test_accuracy_percent"].map("{:.1f}".format),
        r"smallest Re $\lambda^H$": first["h_real_min"].map(_number),
        r"largest Re $\lambda^H$": first["h_real_max"].map(_number),
        r"$\lambda^H$ losing at consensus (%)": (100 - first["outside_percent"]).map(
            "{:.1f}".format
        ),
        r"cos($H_{start}, H_{end}$), least": first["cos_start_low"].map(_number),
    }
    below: Any = {"textcoords": "offset points", "va": "baseline", "fontsize": "medium"}
    for number, (header, cells) in enumerate(rows.items(), 1):
        # One text a cell: lines of one text with formulas would not keep level with their header.
        down = -12 - ROW_POINTS * number
        axis.annotate(
            header, (0, 0), (-4, down), xycoords="axes fraction", ha="right", **below
        )  # fmt: skip
        for x, cell in enumerate(cells):
            place = ("data", "axes fraction")
            axis.annotate(cell, (x, 0), (0, down), xycoords=place, ha="center", **below)


def _consensus(part: pd.DataFrame) -> pd.DataFrame:
    """The rows of the class consensus, by model."""
    return part[part["class"] == "consensus"].set_index("model")


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "\u2212")


def caption(table: pd.DataFrame) -> str:
    """What is counted, the numbers, and the verdict in words."""
    mine = table[table["source"] == OURS]
    top = mine.loc[mine.groupby("model", sort=False)["percent"].idxmax()]
    images, layers = int(mine["images"].iloc[0]), int(mine["layers"].iloc[0])
    shares = "; ".join(
        f"{LABEL[row['model']]} {row['class']} {row['percent']:.2f} % "
        f"({int(row['count'])} of {int(row['cases'])}, 95 % interval "
        f"{row['percent_low']:.1f} to {row['percent_high']:.1f})"
        for _, row in top.iterrows()
    )
    return (
        f"{TITLE}. (a) Digits models: one case is an (image, layer), {images} validation images "
        f"and {layers} layers; A is the mean over heads, the maximum of |1 + lambda_j^H "
        "lambda_i^A| runs over all pairs (j, i), complex eigenvalues by their modulus. This is "
        "reading E2, ours: the paper does not say what a case is. Most frequent class: "
        f"{shares}. Intervals count images, not cases, as independent. Losing at consensus: share "
        "of (image, layer, j) at which consensus loses for lambda_j^H taken alone; for real "
        "lambda^H those in (-s, 0), s the safe interval of that attention (T3b). "
        f"(b) The published percentages for ViT-Ti on CIFAR100, quoted from {QUOTED[:16]} for "
        f"comparison alone; other data and models. {SHARED_VALUE} " + " ".join(verdicts(mine))
    )


def verdicts(mine: pd.DataFrame) -> list[str]:
    """Sentences computed from the table: the two theorems, and where ViT- leaves their range."""
    rows = _consensus(mine)
    plus, minus = (rows.loc[name].to_dict() for name in ("vit+", "vit-"))
    said = [
        f"Verdict: ViT+ is dominated by consensus in {plus['percent']:.4g} % of its cases "
        "(T2d demands 100 %).",
        f"ViT\u2212: {minus['percent']:.4g} % in all; in the {int(minus['layers_within_unit'])} of "
        f"{int(minus['layers'])} layers with every psi^2 <= 1 consensus wins "
        f"{int(minus['consensus_within_unit'])} cases (T3d demands none).",
    ]
    beyond, outside = int(minus["layers_beyond_one"]), float(minus["outside_percent"])
    if beyond == 0:
        said.append("No psi^2 exceeds 1.")
    else:
        said.append(
            f"In {beyond} layers some psi^2 exceeds 1 (largest {-minus['h_real_min']:.2f}), where "
            f"the guarantee ends; {outside:.3g} % of \u2212psi^2 leave the safe interval, whose "
            f"smallest s is {minus['safe_interval_min']:.2f}."
        )
    return said
