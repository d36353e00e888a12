"""Two statements that surprise: weights that rotate smooth though no layer does, and the rank law.

T7b: every layer alone is NON_SMOOTHING, with eigenvalues of H in [-1, 0), and the product of layers
smooths. T4c: the rank of the limit is a maximum matching in the graph of dominant pairs, and has
nothing to do with smoothing.
"""

from fractions import Fraction

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from oversmoothing.paper_figures.figure_base import (
    PALETTE,
    Context,
    PaperFigure,
    label_panels,
    new_figure,
)
from oversmoothing.simulations.engine.evolve import evolve
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.verdict import verdict

LAYERS = 60
# The 3-4-5 triangle turns the eigenvectors; the eigenvalues of every layer lie in [-1, 0).
COSINE, SINE = 0.8, 0.6
VALUES = (-1.0, -0.05)
A = ((0.75, 0.25), (0.25, 0.75))
X0 = ((1.0, 2.0), (3.0, 5.0))
# d -> the eigenvalues of H, with A = .4 I + .6 J on 4 tokens: .4 three times.
RANKS = {
    "distinct, d = 2": (-0.5, -0.9),
    "repeated, d = 2": (-0.5, -0.5),
    "repeated, d = 5": (-0.5,) * 5,
}
RANK_LAYERS = 40


def data(context: Context) -> pd.DataFrame:
    """kind 'rotation': ln HFC/LFC by layer, of one layer repeated and of layers that turn, with
    the verdict on one layer. kind 'rank': effective rank by layer, with the exact rank of the
    limit."""
    return pd.concat([_rotation(), _ranks(context)], ignore_index=True)


def weights(layers: int) -> list[Array]:
    """W of each layer: the same eigenvalues, eigenvectors turned further."""
    step, turn, found = np.array([[COSINE, -SINE], [SINE, COSINE]]), np.eye(2), []
    for _ in range(layers):
        found.append(turn @ np.diag(VALUES) @ turn.T)
        turn = step @ turn
    return found


def log_ratios(layers: list[Array]) -> Array:
    """ln HFC/LFC of X0 and behind each layer."""
    mixing, X = np.array(A), np.array(X0)
    found = []
    for W in [np.zeros((2, 2)), *layers]:
        X = X + mixing @ X @ W
        mean = X.mean(axis=0)
        found.append(np.log(np.linalg.norm(X - mean) / (np.linalg.norm(mean) * 2**0.5)))
    return np.array(found)


def rotating_rate() -> float:
    """The factor of HFC/LFC per layer of the layers in turn: in the frame that turns with them
    every layer is one matrix, for the differences (a = 1/2) and for the mean (1) (T7b)."""
    back = np.array([[COSINE, SINE], [-SINE, COSINE]])
    radius = [
        np.abs(np.linalg.eigvals(back @ (np.eye(2) + a * np.diag(VALUES)))).max() for a in (0.5, 1)
    ]
    return float(radius[0] / radius[1])


def _rotation() -> pd.DataFrame:
    turning = weights(LAYERS)
    said = {str(verdict(A=np.array(A), W=W).verdict) for W in turning}
    frames = []
    for name, layers in (("the first, repeated", [turning[0]] * LAYERS), ("in turn", turning)):
        values = log_ratios(layers)
        frames.append(
            pd.DataFrame(
                {
                    "kind": "rotation",
                    "run": name,
                    "layer": np.arange(len(values)),
                    "log_hfc_lfc": values,
                    "each_layer": ", ".join(sorted(said)),
                    "rate": rotating_rate() if name == "in turn" else np.nan,
                }
            )
        )
    return pd.concat(frames)


def _ranks(context: Context) -> pd.DataFrame:
    rng = np.random.default_rng(context.seed)
    exact = [[Fraction(11, 20) if i == j else Fraction(3, 20) for j in range(4)] for i in range(4)]
    frames = []
    for name, values in RANKS.items():
        # Two digits, so that the exact question is the run's.
        start = np.round(rng.standard_normal((4, len(values))), 2)
        H = np.diag(values)
        run = evolve(
            X0=start, A=np.array(exact, dtype=float), H=H, depth=range(RANK_LAYERS + 1),
            method="plain", device="cpu", progress=False,
        ).metrics()  # fmt: skip
        found = verdict(
            A=[[str(value) for value in row] for row in exact],
            H=[[str(value) for value in row] for row in H.tolist()],
            X0=[[str(value) for value in row] for row in start.tolist()],
        )
        frames.append(
            pd.DataFrame(
                {
                    "kind": "rank",
                    "run": name,
                    "layer": np.asarray(run["depth"]),
                    "effective_rank": np.asarray(run["effective_rank"]),
                    "limit_rank": found.limit_rank,
                    "verdict": str(found.verdict),
                }
            )
        )
    return pd.concat(frames)


def draw(table: pd.DataFrame) -> Figure:
    """The two runs (left), effective rank against depth with the exact limits (right)."""
    figure, axes = new_figure(1, 2, height=3.0)
    left, right = axes[0]
    colours = ("vermillion", "blue", "green")
    looks = ("-", "--", "-.")
    for axis, kind, column in (
        (left, "rotation", "log_hfc_lfc"),
        (right, "rank", "effective_rank"),
    ):
        part = table[table["kind"] == kind]
        runs = part.groupby("run", sort=False)
        for (name, own), colour, look in zip(runs, colours, looks, strict=False):
            axis.plot(own["layer"], own[column], look, color=PALETTE[colour], label=str(name))
            if kind == "rank":
                limit = own["limit_rank"].iloc[0]
                axis.plot([RANK_LAYERS], [limit], "D", color=PALETTE[colour], clip_on=False)
        axis.set_xlabel("layer")
    turning = table[(table["kind"] == "rotation") & (table["run"] == "in turn")]
    middle = turning["log_hfc_lfc"].mean() - turning["layer"].mean() * np.log(turning["rate"])
    left.plot(
        turning["layer"], middle + turning["layer"] * np.log(turning["rate"]), ":",
        color=PALETTE["black"], label="rate of T7b",
    )  # fmt: skip
    left.legend(loc="lower left")
    right.legend(loc="center right", bbox_to_anchor=(1.0, 0.54))
    left.set(ylabel="ln HFC/LFC", title="layers that each sharpen")
    right.set(ylabel="effective rank", title="diamonds: rank of the limit, exact")
    label_panels(axes)
    return figure


def words(table: pd.DataFrame) -> str:
    """What is shown, with the verdicts and the slope."""
    rotation, ranks = (table[table["kind"] == kind] for kind in ("rotation", "rank"))
    turning = rotation[rotation["run"] == "in turn"]
    slope = np.polyfit(turning["layer"], turning["log_hfc_lfc"], 1)[0]
    limits = "; ".join(
        f"{name}: {part['limit_rank'].iloc[0]:.0f} ({part['verdict'].iloc[0]})"
        for name, part in ranks.groupby("run", sort=False)
    )
    return (
        f"(a) H of each layer has the eigenvalues {VALUES[0]:g} and {VALUES[1]:g}, its "
        "eigenvectors turned by the angle of the 3-4-5 triangle from layer to layer; each layer "
        f"alone: {rotation['each_layer'].iloc[0]}. In turn HFC/LFC falls by "
        f"the factor {turning['rate'].iloc[0]:.4f} a layer (T7b), by a fitted line "
        f"{np.exp(slope):.3f}. (b) A has the eigenvalue .4 three times; exact rank of the limit, "
        f"the maximum matching of T4c, by the eigenvalues of H: {limits}."
    )


FIGURE = PaperFigure(
    title="Every layer sharpens, the product smooths; and the rank law",
    short=(
        "Weights that turn by one angle from layer to layer smooth although each layer repeated "
        "does not. And the rank of the limit: a matching of dominant eigenvalues, smoothing or "
        "not."
    ),
    not_shown=(
        "Two small constructions that show what is possible. How often trained weights do so is "
        "not said by them."
    ),
    data=data,
    draw=draw,
    words=words,
)
