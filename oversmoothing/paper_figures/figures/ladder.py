"""The ladder: how well predictors, from the paper's to ours, tell what a layer of DeiT-Ti does.

A recorded run of `oversmoothing probe MODEL ladder` on held-out images.
"""

import pandas as pd
from matplotlib.figure import Figure

from oversmoothing.paper_figures.figure_base import Context
from oversmoothing.paper_figures.models_shown import recorded_run
from oversmoothing.simulations.drawing.picture import PALETTE, new_figure

TITLE = "Which cheap theory predicts a trained model: the ladder of predictors"
SHORT = (
    "How much of the change of log HFC/LFC over the layers of DeiT-Ti each predictor "
    "explains, on images that it had not seen, from the paper's spectral gap to a few tokens "
    "run through."
)
NOT_SHOWN = (
    "One model on one kind of images. R² is over all layers and images together, and most of "
    "it is the difference between layers, which a mean for each layer has already."
)

RECORDED = (
    "oversmoothing probe deit-tiny-patch16-224 ladder --images cifar100 --calibration 500 "
    "--copies 3 --held-out-from 600"
)
# Rung of the record -> what it is, in a few words; from the bottom of the ladder to the top.
SHOWN = {
    "P0'": "the layer's mean change, no theory",
    "P1 spectral gap, raw weights, calibrated": "the paper's spectral gap, fitted",
    "P2 own attention, calibrated": "own attention, linear, fitted",
    "P4 norm scales, one step, calibrated": "own attention and norms, fitted",
    "P5 FFN by least squares, one step, calibrated": "own attention, norms and linear FFN",
    "P5 FFN by least squares, trajectory, calibrated": "own attention, norms, FFN, from X\u2080 on",
    "P0'''": "kernel regression, no theory",
    "P6": "one fixed operator a layer",
    "P6 lifted": "one fixed operator, lifted tokens",
    "P7 landmarks": "a few tokens, exact layers",
    "P7 landmarks, reduced FFN": "more tokens, reduced FFNs",
}


def data(context: Context) -> pd.DataFrame:
    """One row a rung shown: R² with its 95 % interval over images, and what it costs."""
    rungs = pd.DataFrame(recorded_run("ladder", "ladder_deit_tiny_200.json")["rungs"])
    table = rungs.set_index("rung").loc[list(SHOWN)].reset_index()
    names = ["rung", "what", "r2", "r2_low", "r2_high", "sign", "cost_share", "calibration"]
    return table.assign(what=table["rung"].map(SHOWN))[names]


def draw(table: pd.DataFrame) -> Figure:
    """R² as dots, the best above, with the cost of those that run alone beside them."""
    figure, axes = new_figure(1, 1, height=3.4)
    axis = axes[0, 0]
    names = []
    for place, row in enumerate(table.sort_values("r2").to_dict("records")):
        colour = PALETTE["grey" if str(row["rung"]).startswith("P0") else "blue"]
        reach = [[row["r2"] - row["r2_low"]], [row["r2_high"] - row["r2"]]]
        axis.errorbar(row["r2"], place, xerr=reach, color=colour, marker="o", markersize=5)
        cost = "needs the model's stream"
        if row["cost_share"] >= 0:
            cost = f"{100 * row['cost_share']:.2g} % of the model's pass"
        axis.text(row["r2_high"] + 0.006, place, cost, va="center", fontsize=7)
        names.append(str(row["what"]))
    axis.set_yticks(range(len(names)), names)
    axis.set(
        xlim=(0.7, 1.04), xlabel="R² of the change of ln HFC/LFC, held-out images (grey: no theory)"
    )
    return figure


def words(table: pd.DataFrame) -> str:
    plain, best = table[table["rung"] == "P0'"].iloc[0], table.sort_values("r2").iloc[-1]
    return (
        f"R² over all layers and 200 held-out images, whiskers 95 % intervals over "
        "images; fitted: slope and intercept on other images. Cost in multiply-adds of the model's "
        "own pass; without one, the model's own stream is needed. The mean of each layer alone has "
        f"{plain['r2']:.2f}; best: {best['what']}, {best['r2']:.2f}. Recorded: {RECORDED}."
    )
