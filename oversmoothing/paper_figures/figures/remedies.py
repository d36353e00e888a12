"""What remedies do to the two radii: predicted by their formulas, measured on the modules, run."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from oversmoothing.experiments.remedies.shift import remedies_table
from oversmoothing.paper_figures.figure_base import (
    PALETTE,
    Context,
    PaperFigure,
    label_panels,
    new_figure,
)

DRAWS = 40
# Marks so near to each other have their numbers in one place.
NEAR = 0.06


def data(context: Context) -> pd.DataFrame:
    """One row a remedy: `remedies_table` of DRAWS layers, without its timings."""
    return remedies_table(draws=DRAWS, seed=context.seed, cost=False)


def draw(table: pd.DataFrame) -> Figure:
    """Shifts in the plane of both radii (left), runs and claims (right)."""
    figure, axes = new_figure(1, 2, height=3.9, width_ratios=[3, 2])
    plane, bars = axes[0]
    found = table[np.isfinite(table["log_shift_C"])].reset_index(drop=True)
    plane.axline((0, 0), slope=1, color=PALETTE["grey"], linewidth=0.8)
    plane.axhline(0, color=PALETTE["light"], linewidth=0.8, zorder=0)
    plane.axvline(0, color=PALETTE["light"], linewidth=0.8, zorder=0)
    plane.plot(
        found["measured_shift_C"], found["measured_shift_Q"], "o", color=PALETTE["sky"],
        markersize=7, label="measured",
    )  # fmt: skip
    plane.plot(found["log_shift_C"], found["log_shift_Q"], "k.", markersize=3, label="predicted")
    places = _together(found)
    for (x, y), own in places:
        # The number stands on the side where no mark is near.
        right = not any(0 < u - x < 5 * NEAR and abs(v - y) < NEAR for (u, v), _ in places)
        plane.annotate(
            ", ".join(own), (x, y), (5, 0) if right else (-5, 0), textcoords="offset points",
            fontsize=6.5, ha="left" if right else "right", va="center",
        )  # fmt: skip
    plane.set(
        xlabel=r"consensus: mean $\log\,\rho_C'/\rho_C$",
        ylabel=r"the rest: mean $\log\,\rho_Q'/\rho_Q$",
    )
    plane.legend(loc="lower right")
    names = [f"{place + 1}  {row['remedy']}" for place, row in found.iterrows()]
    share = 100 * found["as_claimed"] / found["draws"]
    bars.barh(range(len(found)), share.fillna(0.0), color=PALETTE["sky"])
    for place, value in enumerate(share):
        if not np.isfinite(value):
            bars.text(1, place, "no claim", va="center", fontsize=6.5)
    bars.set_yticks(range(len(found)), names, fontsize=6.5)
    bars.invert_yaxis()
    bars.set(xlim=(0, 100), xlabel="layers moved as claimed (%)")
    bars.grid(False, axis="y")
    label_panels(axes)
    return figure


def _together(found: pd.DataFrame) -> list[tuple[tuple[float, float], list[str]]]:
    """Places in the plane and the numbers of the remedies there, those that meet as one."""
    places: list[tuple[tuple[float, float], list[str]]] = []
    for number, x, y in zip(
        range(1, len(found) + 1), found["log_shift_C"], found["log_shift_Q"], strict=True
    ):
        for (u, v), own in places:
            if np.hypot(x - u, y - v) < NEAR:
                own.append(str(number))
                break
        else:
            places.append(((float(x), float(y)), [str(number)]))
    return places


def words(table: pd.DataFrame) -> str:
    """What is shown, with the counts and the largest disagreement."""
    clear, right = table["runs_clear"].sum(), table["runs_right"].sum()
    left_out = table[~np.isfinite(table["log_shift_C"])]["remedy"]
    beyond = f" {', '.join(left_out)} takes consensus away altogether." if len(left_out) else ""
    return (
        f"{int(table['draws'].max())} drawn layers, softmax attention, Gaussian H. (a) "
        "Mean shifts of the radii; predicted radii differ from those of the modules by at most "
        f"{table['error'].max():.0e} of themselves.{beyond} (b) Share of layers that move as the "
        f"remedy is for, our statement of it. {int(right)} of {int(clear)} runs of 1,200 layers do "
        "what the radii say, near ties left out."
    )


FIGURE = PaperFigure(
    title="What remedies against oversmoothing do to the spectrum",
    short=(
        "How far each remedy moves the growth of consensus and of everything else, by its formula"
        " and by the derivative of its module; above the diagonal it works against smoothing."
    ),
    not_shown=(
        "Drawn linear layers with one setting of each remedy: no trained model, no accuracy. What"
        " a remedy does to training is another question."
    ),
    data=data,
    draw=draw,
    words=words,
)
