"""Figure: what certificates and enclosures cost, beside the float answers that they prove.

The numbers are measured when the figure is drawn, all of one size in turn on one thread.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oversmoothing.paper_figures.costs.proofs import FIXED, YARDSTICK, measure
from oversmoothing.paper_figures.figure_base import PALETTE, Context, label_panels, new_figure

NAME = "proof_costs"
TITLE = "What certificates and enclosures cost"
SHORT = (
    "Processor time of a verdict, of its certificate, of checking that, and of enclosing a layer's "
    "metrics, against tokens and features; below as multiples of the same in floats."
)
NOT_SHOWN = (
    "Drawn matrices on one machine, without a start X_0, whose claims (genericity, a depth) cost "
    "more. Near a tie a certificate takes further stages."
)

VARIABLES = {"n": f"tokens n (d = {FIXED})", "d": f"features d (n = {FIXED})"}
# What is timed -> its name in the legend, colour, marker and line.
LOOK = {
    "verdict": ("verdict (floats)", "black", "o", ":"),
    "certify": ("certify (its check included)", "blue", "s", "-"),
    "check": ("check", "vermillion", "^", "--"),
    "forward": ("layer and metrics (floats)", "grey", "D", ":"),
    "enclose": ("layer and metrics, enclosed", "green", "v", "-"),
}


def data(context: Context) -> pd.DataFrame:
    """The table of `paper_figures.costs.proofs.measure`; some 15 s of a core."""
    return measure(context.seed, progress=context.progress)


def draw(table: pd.DataFrame) -> Figure:
    """Above seconds, below multiples of the float answer, a column a variable; all axes log."""
    figure, axes = new_figure(2, len(VARIABLES), height=4.6, sharex="col", sharey="row")
    proofs = table[table["what"].map(YARDSTICK) != table["what"]]
    for column, (variable, label) in enumerate(VARIABLES.items()):
        for axis, part, quantity in (
            (axes[0, column], table, "seconds"),
            (axes[1, column], proofs, "ratio"),
        ):
            _lines(axis, part[part["variable"] == variable], variable, quantity)
        axes[1, column].set_xlabel(label)
    axes[0, 0].set_ylabel("processor seconds")
    axes[1, 0].set_ylabel("multiple of floats")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    label_panels(axes)
    return figure


def _lines(axis: Axes, part: pd.DataFrame, variable: str, quantity: str) -> None:
    for what, (label, colour, marker, line) in LOOK.items():
        own = part[part["what"] == what]
        if len(own):
            axis.plot(
                own[variable], own[quantity], color=PALETTE[colour], marker=marker, linestyle=line,
                label=label,
            )  # fmt: skip
    axis.set(xscale="log", yscale="log")
    axis.set_xticks(sorted(part[variable].unique()), [f"{x}" for x in sorted(set(part[variable]))])
    axis.minorticks_off()


def caption(table: pd.DataFrame) -> str:
    """What was measured, with the multiples at the smallest and the largest size."""
    said = []
    for variable, part in table.groupby("variable", sort=False):
        for what, of in YARDSTICK.items():
            own = part[part["what"] == what]
            if what != of:
                few, many = own[variable].min(), own[variable].max()
                first, last = own["ratio"].iloc[0], own["ratio"].iloc[-1]
                said.append(f"{what} in {variable}: {first:.3g} at {few}, {last:.3g} at {many}")
    verdicts = table.loc[table["verdict"] != "", ["variable", "n", "d", "what", "verdict"]]
    pairs = verdicts.pivot(index=["variable", "n", "d"], columns="what", values="verdict")
    same = int((pairs["verdict"] == pairs["certify"]).sum())
    return (
        "Processor seconds on one thread, medians of some runs in turn. A is the softmax of drawn "
        "scores, H Gaussian; the layer is an untrained ViT block (LN, attention, FFN) on a drawn "
        "stream, its metrics those in front of it and behind. Multiples: certify and check over "
        f"the verdict in floats, the enclosure over the layer in floats. {'; '.join(said)}. "
        f"{same} of {len(pairs)} certificates prove the verdict that floats gave."
    )
