"""The phase picture: homophily against h, what was run, and the two predicted boundaries."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from oversmoothing.experiments.graphs.drawn import class_eigenvalue
from oversmoothing.experiments.graphs.phase import CLASSES, DEGREE, HOMOPHILY, H
from oversmoothing.simulations.drawing.picture import PALETTE, VERDICT_COLOUR, new_figure, style
from oversmoothing.theory.verdict.formulas import Outcome

TITLES = {"walk": "a graph's random walk", "gat": "GAT attention on a graph"}


def phase_picture(table: pd.DataFrame, attention: str = "walk") -> Figure:
    """A point a graph, A its walk or gat: blue where the run smooths, vermillion where it does not;
    wrong predictions are ringed, near ties grey."""
    figure, grid = new_figure(width=5.5, height=4.6)
    axes = grid[0, 0]
    with style():
        clear = table["clear"]
        for smooths, outcome, said in (
            (True, Outcome.SMOOTHING, "run smooths"),
            (False, Outcome.NON_SMOOTHING, "run does not"),
        ):
            own = table[clear & (table["observed"] == smooths)]
            axes.scatter(
                own["homophily"], own["h"], s=5, linewidths=0, color=VERDICT_COLOUR[outcome],
                label=f"{said} ({len(own)})",
            )  # fmt: skip
        ties = table[~clear]
        axes.scatter(
            ties["homophily"], ties["h"], s=5, linewidths=0, color=PALETTE["grey"],
            label=f"near tie ({len(ties)})",
        )  # fmt: skip
        wrong = table[clear & (table["predicted"] != table["observed"])]
        axes.scatter(
            wrong["homophily"], wrong["h"], s=40, facecolors="none", edgecolors="black",
            label=f"spectrum predicts otherwise ({len(wrong)})",
        )  # fmt: skip
        s = np.linspace(*HOMOPHILY, 200)
        bulk = (1 - 2 * DEGREE**0.5) / (DEGREE + 1)
        a_1 = np.minimum([class_eigenvalue(each, DEGREE, CLASSES) for each in s], bulk)
        for boundary in (-2 / (1 + a_1), np.zeros_like(s)):
            axes.plot(s, boundary, color="black", linestyle="--", linewidth=1)
        axes.plot([], [], color="black", linestyle="--", label="from homophily alone (walk)")
        axes.set(
            xlabel="homophily: share of edges within labels", ylabel="h, H = h I", ylim=H,
            title=f"Smoothing by homophily and h: {TITLES[attention]}",
        )  # fmt: skip
        figure.legend(loc="outside lower center", ncols=2)
    return figure
