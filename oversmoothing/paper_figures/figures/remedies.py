"""What remedies do to the two radii: predicted by their formulas, measured on the modules, run."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from oversmoothing.experiments.remedies.shift import remedies_table
from oversmoothing.paper_figures.figure_base import Context, label_panels
from oversmoothing.simulations.drawing.picture import PALETTE, new_figure

TITLE = "What remedies against oversmoothing do to the spectrum"
SHORT = (
    "How far each remedy moves the growth of consensus and of everything else, by its formula"
    " and by the derivative of its module; above the diagonal it works against smoothing."
)
NOT_SHOWN = (
    "Drawn linear layers with one setting of each remedy: no trained model, no accuracy. What"
    " a remedy does to training is another question."
)

DRAWS = 40
# Marks so near to each other have their names in one place.
NEAR = 0.06


def data(context: Context) -> pd.DataFrame:
    """One row a remedy: `remedies_table` of DRAWS layers, without its timings."""
    return remedies_table(draws=DRAWS, seed=context.seed, cost=False)


def draw(table: pd.DataFrame) -> Figure:
    """Shifts in the plane of both radii (left), what moves as claimed (right)."""
    figure, axes = new_figure(1, 2, height=4.2, width_ratios=[3.2, 1])
    plane, bars = axes[0]
    shown = table[np.isfinite(table["log_shift_C"])].reset_index(drop=True)
    plane.axline((0, 0), slope=1, color=PALETTE["grey"], linewidth=0.8)
    for line in (plane.axhline, plane.axvline):
        line(0, color=PALETTE["light"], linewidth=0.8, zorder=0)
    plane.plot(
        shown["measured_shift_C"], shown["measured_shift_Q"], "o", color=PALETTE["sky"],
        markersize=7, label="measured",
    )  # fmt: skip
    plane.plot(shown["log_shift_C"], shown["log_shift_Q"], "k.", markersize=3, label="predicted")
    low, high = plane.get_xlim()[0], 1.15
    plane.fill_between([low, high], [low, high], 1.0, color=PALETTE["light"], alpha=0.35, zorder=0)
    plane.set(xlim=(low, high), ylim=(-0.7, 0.6), aspect="equal")
    plane.set_title("shaded: the remedy works against smoothing")
    plane.set(
        xlabel=r"consensus: mean $\log\,\rho_C'/\rho_C$",
        ylabel=r"the rest: mean $\log\,\rho_Q'/\rho_Q$",
    )
    plane.legend(loc="lower right")
    claimed = shown.dropna(subset=["as_claimed"])
    claimed = claimed.assign(share=100 * claimed["as_claimed"] / claimed["draws"])
    claimed = claimed.sort_values("share", kind="stable", ignore_index=True)
    bars.plot(claimed["share"], claimed.index, "o", color=PALETTE["blue"])
    bars.set_yticks(claimed.index, claimed["remedy"], fontsize=6.5)
    least = claimed.iloc[0]
    bars.set_title(f"{least['remedy']}: {least['share']:.0f} %", loc="right")
    bars.set(xlim=(0, 104), xlabel="moved as claimed (%)")
    label_panels(axes)
    _name(figure, plane, _together(shown))
    return figure


def _name(figure: Figure, plane: Axes, places: list[tuple[tuple[float, float], list[str]]]) -> None:
    """The names beside their marks, right or left, where they meet the fewest others."""
    figure.draw_without_rendering()  # the places of the layout, which no name is to change
    marks = plane.transData.transform([at for at, _ in places])
    taken = [Bbox([mark - 4, mark + 4]) for mark in marks]
    for at, names in places:
        tried = [
            plane.annotate(
                ",\n".join(names), at, (x, y), textcoords="offset points", fontsize=6,
                ha="left" if x > 0 else "right", va="center", in_layout=False,
            )
            for y in (0, 7, -7) for x in (5, -5)
        ]  # fmt: skip
        boxes = [text.get_window_extent() for text in tried]
        met = [sum(box.overlaps(other) for other in taken) for box in boxes]
        best = met.index(min(met))
        taken.append(boxes[best])
        for text in (*tried[:best], *tried[best + 1 :]):
            text.remove()


def _together(shown: pd.DataFrame) -> list[tuple[tuple[float, float], list[str]]]:
    """Places in the plane and the names of the remedies there, those that meet as one."""
    places: list[tuple[tuple[float, float], list[str]]] = []
    for x, y, name in shown[["log_shift_C", "log_shift_Q", "remedy"]].itertuples(index=False):
        near = next((names for (u, v), names in places if np.hypot(x - u, y - v) < NEAR), None)
        if near is None:
            places.append(((x, y), near := []))
        near.append(name)
    return places


def words(table: pd.DataFrame) -> str:
    clear, right = table["runs_clear"].sum(), table["runs_right"].sum()
    left_out = table[~np.isfinite(table["log_shift_C"])]["remedy"]
    beyond = f" {', '.join(left_out)} takes consensus away altogether." if len(left_out) else ""
    return (
        f"{int(table['draws'].max())} random layers, softmax attention, Gaussian H. (a) "
        "Mean shifts of the radii; predicted radii differ from those of the modules by at most "
        f"{table['error'].max():.0e} of themselves.{beyond} (b) Share of layers that move as the "
        f"remedy is for, our statement of it. {int(right)} of {int(clear)} runs of 1,200 layers do "
        "what the radii say, near ties left out."
    )
