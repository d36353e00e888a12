"""Rates and depths: predicted from the two spectra, measured at 1,200 digits (T4c, T5)."""

from dataclasses import asdict

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oversmoothing.paper_figures.figure_base import PALETTE, Context, label_panels, new_figure
from oversmoothing.theory.depth.rates import rate_rows

NAME = "rates"
TITLE = "Rates and depths, predicted against measured"
SHORT = (
    "Factors per layer of HFC/LFC, of the second singular value and of angles, predicted from two "
    "spectra; and upper bounds, on a depth and on a transient, beside what they bound."
)
NOT_SHOWN = (
    "Few small cases with tied weights. A bound that holds may be far from sharp, as the distance "
    "from the diagonal shows."
)
# What a quantity begins with -> its name in the legend, colour and marker.
RATES = {
    "r of HFC/LFC": ("HFC/LFC", "blue", "o"),
    "r_sigma": (r"$\sigma_2/\sigma_1$", "vermillion", "s"),
    "sqrt of the rate": (r"angles, $\sqrt{\cdot}$", "green", "^"),
}
BOUNDS = {
    "depth": ("certified depth", "purple", "D"),
    "transient": ("transient growth", "orange", "v"),
}


def data(context: Context) -> pd.DataFrame:
    """One row a case and quantity: predicted, measured, its kind and whether it holds."""
    rows = [asdict(row) | {"holds": row.holds} for row in rate_rows(context.seed)]
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame) -> Figure:
    """Rates on the diagonal (left), bounds above it (right)."""
    figure, axes = new_figure(1, 2, height=3.3)
    left, right = axes[0]
    _panel(left, table[table["kind"] == "equal"], RATES)
    left.set(xlabel="predicted factor per layer", ylabel="measured")
    _panel(right, table[table["kind"] == "bound"], BOUNDS)
    right.set(xscale="log", yscale="log", xlabel="bound", ylabel="measured, at most the bound")
    label_panels(axes)
    return figure


def _panel(axis: Axes, part: pd.DataFrame, kinds: dict[str, tuple[str, str, str]]) -> None:
    shown = part[part["quantity"].str.startswith(tuple(kinds))]
    ends = [min(shown["predicted"].min(), shown["measured"].min()), shown["predicted"].max()]
    axis.plot(ends, ends, color=PALETTE["grey"], linewidth=0.8)
    for start, (label, colour, marker) in kinds.items():
        own = shown[shown["quantity"].str.startswith(start)]
        axis.plot(
            own["predicted"], own["measured"], marker, color=PALETTE[colour], label=label,
            markerfacecolor="none",
        )  # fmt: skip
    axis.legend(loc="upper left")


def caption(table: pd.DataFrame) -> str:
    """What is shown, with the largest disagreement."""
    equal, bounds = (table[table["kind"] == kind] for kind in ("equal", "bound"))
    rates = equal[equal["quantity"].str.startswith(tuple(RATES))]
    off = (rates["measured"] / rates["predicted"] - 1).abs().max()
    return (
        f"{TITLE}. {table['case'].nunique()} cases: random ones, a near tie and a pair that is not "
        "normal. (a) Slopes between two depths (400 and 1,200 layers, near ties 1,000 and 2,000) "
        f"against r, r_sigma and the root of the angles' rate (T5a, T5b): largest relative "
        f"difference {off:.1e}. (b) The certified depth to HFC/LFC <= 1/1000 against the actual "
        "one, and kappa(V_H) kappa(V_B) against the largest ||T^L||/rho_Q^L over 400 layers: "
        f"{int(bounds['holds'].sum())} of {len(bounds)} bounds hold."
    )
