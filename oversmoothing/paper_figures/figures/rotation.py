"""A statement that surprises: weights that rotate smooth though no layer does (T7b).

Every layer alone is NON_SMOOTHING, with eigenvalues of H in [-1, 0), and the product of layers
smooths.
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from oversmoothing.paper_figures.figure_base import Context, label_ends
from oversmoothing.simulations.drawing.picture import PALETTE, new_figure
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.verdict import verdict

TITLE = "Every layer spreads its tokens, the stack of them smooths"
SHORT = (
    "Weights that turn by one angle from layer to layer smooth although each layer repeated "
    "does not: the verdict on a layer says nothing of layers that differ."
)
NOT_SHOWN = (
    "A small construction that shows what is possible. How often trained weights do so is not "
    "said by it."
)

LAYERS = 60
# The 3-4-5 triangle turns the eigenvectors; the eigenvalues of every layer lie in [-1, 0).
COSINE, SINE = 0.8, 0.6
VALUES = (-1.0, -0.05)
A = ((0.75, 0.25), (0.25, 0.75))
X0 = ((1.0, 2.0), (3.0, 5.0))


def weights(layers: int) -> list[Array]:
    """W of each layer: the same eigenvalues, eigenvectors turned further."""
    step, turn, turned = np.array([[COSINE, -SINE], [SINE, COSINE]]), np.eye(2), []
    for _ in range(layers):
        turned.append(turn @ np.diag(VALUES) @ turn.T)
        turn = step @ turn
    return turned


def log_ratios(layers: list[Array]) -> Array:
    """ln HFC/LFC of X0 and behind each layer."""
    mixing, X, ratios = np.array(A), np.array(X0), []
    for W in [np.zeros((2, 2)), *layers]:
        X = X + mixing @ X @ W
        mean = X.mean(axis=0)
        ratios.append(np.log(np.linalg.norm(X - mean) / (np.linalg.norm(mean) * 2**0.5)))
    return np.array(ratios)


def rotating_rate() -> float:
    """The factor of HFC/LFC per layer of the layers in turn: in the frame that turns with them
    every layer is one matrix, for the differences (a = 1/2) and for the mean (1) (T7b)."""
    back = np.array([[COSINE, SINE], [-SINE, COSINE]])
    radius = [
        np.abs(np.linalg.eigvals(back @ (np.eye(2) + a * np.diag(VALUES)))).max() for a in (0.5, 1)
    ]
    return float(radius[0] / radius[1])


def data(context: Context) -> pd.DataFrame:
    """ln HFC/LFC by layer, of one layer repeated and of layers that turn, with the verdict on each
    layer and the rate of the layers in turn."""
    turning = weights(LAYERS)
    said = {str(verdict(A=np.array(A), W=W).verdict) for W in turning}
    frames = []
    for name, layers in (("the first, repeated", [turning[0]] * LAYERS), ("in turn", turning)):
        frame = pd.DataFrame({"log_hfc_lfc": log_ratios(layers), "run": name})
        frame["rate"] = rotating_rate() if name == "in turn" else np.nan
        frames.append(frame.assign(layer=range(LAYERS + 1), each_layer=", ".join(sorted(said))))
    return pd.concat(frames, ignore_index=True)


def draw(table: pd.DataFrame) -> Figure:
    """The two runs, and the rate of T7b."""
    figure, axes = new_figure(1, 1, height=3.0)
    axis = axes[0, 0]
    ends = []
    for (name, own), colour in zip(
        table.groupby("run", sort=False), ("vermillion", "blue"), strict=True
    ):
        axis.plot(own["layer"], own["log_hfc_lfc"], color=PALETTE[colour])
        ends.append((float(own["log_hfc_lfc"].iloc[-1]), str(name), PALETTE[colour]))
    turning = table[table["run"] == "in turn"]
    slope = np.log(turning["rate"])
    middle = turning["log_hfc_lfc"].mean() - turning["layer"].mean() * slope
    axis.plot(
        turning["layer"], middle + turning["layer"] * slope, ":", color=PALETTE["black"],
        label="rate of the theory (T7b)",
    )  # fmt: skip
    label_ends(axis, ends)
    axis.legend(loc="lower left")
    axis.set(xlabel="layer", ylabel="ln HFC/LFC", title="Every layer spreads, the stack smooths")
    return figure


def words(table: pd.DataFrame) -> str:
    turning = table[table["run"] == "in turn"]
    slope = np.polyfit(turning["layer"], turning["log_hfc_lfc"], 1)[0]
    return (
        f"H of each layer has the eigenvalues {VALUES[0]:g} and {VALUES[1]:g}, its eigenvectors "
        "turned by the angle of the 3-4-5 triangle from layer to layer; each layer alone: "
        f"{table['each_layer'].iloc[0]}. In turn HFC/LFC falls by the factor "
        f"{turning['rate'].iloc[0]:.4f} a layer (T7b), by a fitted line {np.exp(slope):.3f}."
    )
