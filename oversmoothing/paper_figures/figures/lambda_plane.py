"""Figure: where an eigenvalue h of H smooths, for a given A: discs against simulation (T3b, T3c).

Consensus loses at h exactly inside the union of the discs D(a), a in spec(A) without 1; inside
|h + 1/2| <= 1/2 it loses for every A. Each dot is one run to depth `DEPTH`, coloured by what its
HFC/LFC did.
"""

from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch
from numpy.typing import NDArray

from oversmoothing.paper_figures.figure_base import Context, label_panels, mark
from oversmoothing.simulations.drawing.picture import PALETTE, VERDICT_COLOUR, new_figure
from oversmoothing.simulations.engine.evolve import evolve
from oversmoothing.simulations.generators.attention import SymmetricIndefinite, row_softmax
from oversmoothing.simulations.generators.value_projection import real_form
from oversmoothing.simulations.state_metrics import log_hfc_lfc_ratio
from oversmoothing.theory.layer.attention import perron_deviation, stationary_distribution
from oversmoothing.theory.spectra.layer_discs import attention_spectrum
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.formulas import Outcome, disc, dominance, outcome_of

TITLE = "Which eigenvalues of H smooth: discs of the theory, runs of the layer"
SHORT = (
    "Where one eigenvalue h of H makes tokens alike: outside the discs of the attention. The "
    "dots are runs of the layer, coloured by what they did, not by the theory."
)
NOT_SHOWN = (
    "H has one eigenvalue or one pair here. With several the largest |1 + h| and the largest "
    "|1 + h a| are compared over all of them, and no single point decides."
)

TOKENS = 5
DEPTH, WINDOW = 2000, 100
# log HFC/LFC averaged over a window must fall by this much between the windows to count as decay;
# where it oscillates within bounds its average settles to a few hundredths.
DECAY = 0.3
X_RANGE, Y_MAX, STEP = (-4.2, 1.4), 2.8, 0.2
PANELS = ("real spectrum", "complex spectrum")


def attentions(seed: int) -> dict[str, Array]:
    """One A with real eigenvalues, and one whose tokens mostly attend to the next (complex)."""
    first, second = np.random.default_rng(seed).spawn(2)
    shift = np.roll(np.eye(TOKENS), 1, axis=1)
    logits = 2.2 * shift + 0.5 * second.standard_normal((TOKENS, TOKENS))
    return {
        PANELS[0]: SymmetricIndefinite(temperature=0.6, dim=8).draw(TOKENS, rng=first),
        PANELS[1]: row_softmax(logits),
    }


def grid_of_h() -> NDArray[np.complex128]:
    """Grid points h with Im h >= 0; half a step off the real axis' critical points 0 and -1."""
    x = np.arange(X_RANGE[0] + STEP / 2, X_RANGE[1], STEP)
    y = np.arange(0.0, Y_MAX, STEP)
    return np.asarray(np.add.outer(1j * y, x).ravel(), dtype=np.complex128)


def data(context: Context) -> pd.DataFrame:
    """One row for each eigenvalue a of A (kind 'eigenvalue') and each run (kind 'run').

    Columns: panel, kind, re, im (of a or of h); for runs log_rate = log(rho_Q / rho_C), predicted,
    fall (of the window average of log HFC/LFC from depth DEPTH/2 to DEPTH, nats), mean_log (over
    the last window), measured; for both log_floor = -log(sqrt(n) delta) (T1f).
    """
    parts = []
    for number, (panel, A) in enumerate(attentions(context.seed).items()):
        a = attention_spectrum(A)
        floor = -np.log(np.sqrt(TOKENS) * perron_deviation(stationary_distribution(A)))
        grid = grid_of_h()
        # A real H has h and conj h: the pair decides.
        both = [dominance(a, np.array([h, h.conjugate()])) for h in grid]
        runs = pd.DataFrame({"panel": panel, "kind": "run", "re": grid.real, "im": grid.imag})
        runs["log_rate"] = [np.log(pair.rate) for pair in both]
        runs["predicted"] = [outcome_of(pair.margin, pair.margin) for pair in both]
        early, late = _windows(A, grid, np.random.default_rng([context.seed, number]), context)
        runs["fall"], runs["mean_log"] = early - late, late
        runs["measured"] = np.where(runs["fall"] > DECAY, Outcome.SMOOTHING, Outcome.NON_SMOOTHING)
        spectrum = pd.DataFrame({"panel": panel, "kind": "eigenvalue", "re": a.real, "im": a.imag})
        table = pd.concat([spectrum, runs], ignore_index=True)
        table["log_floor"] = floor
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def _windows(
    A: Array, grid: NDArray[np.complex128], rng: np.random.Generator, context: Context
) -> tuple[Array, Array]:
    """Means of log HFC/LFC over WINDOW layers ending at DEPTH/2 and at DEPTH, for each h."""
    depths = [layer for end in (DEPTH // 2, DEPTH) for layer in range(end - WINDOW + 1, end + 1)]
    early, late = np.zeros(len(grid)), np.zeros(len(grid))
    for real in (True, False):
        chosen, d = (grid.imag == 0) == real, 1 if real else 2
        H = np.stack([real_form([h, h.conjugate()][:d]) for h in grid[chosen]])
        trajectory = evolve(
            A=A, H=H, X0=rng.standard_normal((TOKENS, d)), depth=depths, method="plain",
            device=context.device, progress=context.progress,
        )  # fmt: skip
        logs = torch.stack([log_hfc_lfc_ratio(trajectory.state(i)) for i in range(len(depths))])
        values = logs.cpu().numpy()
        early[chosen], late[chosen] = values[:WINDOW].mean(0), values[WINDOW:].mean(0)
    return early, late


def draw(data: pd.DataFrame) -> Figure:
    figure, axes = new_figure(1, 2, height=4.3, sharey=True)
    for axis, panel in zip(axes[0], PANELS, strict=True):
        part = data[data["panel"] == panel]
        _plane(axis, part[part["kind"] == "eigenvalue"])
        _dots(axis, part[part["kind"] == "run"])
        axis.set(title=f"$A$ with {panel}", xlabel="Re $h$, an eigenvalue of $H$")
    axes[0, 0].set_ylabel("Im $h$")
    label_panels(axes)
    ring: Any = {"markersize": 7.5, "markerfacecolor": "none", "color": "black"}
    smooth, bounded = VERDICT_COLOUR[Outcome.SMOOTHING], VERDICT_COLOUR[Outcome.NON_SMOOTHING]
    universal, segment = "$|h + 1/2| \\leq 1/2$, $h \\neq 0$", "real $h$: $[-1, 0)$"
    discs = "tokens stay apart: union of discs $D(a)$"
    figure.legend(
        handles=[
            mark(f"run of {DEPTH} layers: alike", color=smooth, markersize=3.5),
            mark(f"run of {DEPTH} layers: apart", color=bounded, markersize=3.5),
            mark("run and discs differ ($h$ and $\\bar h$)", **ring),
            Patch(facecolor=_TINT, edgecolor=PALETTE["vermillion"], label=discs),
            Line2D([], [], color="black", ls="--", label=f"apart, all $A$: {universal}"),
            Line2D([], [], color="black", lw=4.0, label=f"apart for every $A$, {segment}"),
        ],
        loc="outside lower center",
        ncols=3,
    )
    return figure


_TINT = "#FBE3D6"


def _plane(axis: Axes, spectrum: pd.DataFrame) -> None:
    discs = [disc(complex(x, y)) for x, y in zip(spectrum["re"], spectrum["im"], strict=True)]
    fill: Any = {"facecolor": _TINT, "edgecolor": "none", "zorder": 0}
    edge: Any = {"fill": False, "edgecolor": PALETTE["vermillion"], "linewidth": 0.8, "zorder": 1}
    # The edges lie above every tint.
    for look in (fill, edge):
        for centre, radius in discs:
            axis.add_patch(Circle((centre.real, centre.imag), radius, **look))
    axis.add_patch(
        Circle((-0.5, 0.0), 0.5, fill=False, edgecolor="black", linestyle="--", zorder=4)
    )
    axis.plot([-1, 0], [0, 0], color="black", linewidth=4.0, solid_capstyle="butt", zorder=2)
    box: Any = {"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.85}
    for y, said in ((-2.4, "tokens become alike"), (-0.75, "tokens stay apart")):
        axis.text(-1.5, y, said, ha="center", va="center", bbox=box, zorder=6)
    axis.grid(False)
    axis.set(aspect="equal", xlim=X_RANGE, ylim=(-Y_MAX, Y_MAX))


def _dots(axis: Axes, runs: pd.DataFrame) -> None:
    for sign in (1.0, -1.0):
        half = runs if sign > 0 else runs[runs["im"] > 0]  # each run has both h and conj h
        for name in (Outcome.SMOOTHING, Outcome.NON_SMOOTHING):
            chosen = half[half["measured"] == name]
            axis.plot(
                chosen["re"], sign * chosen["im"], "o", color=VERDICT_COLOUR[name],
                markersize=2.1, zorder=3,
            )  # fmt: skip
        off = half[half["measured"] != half["predicted"]]
        ring: Any = {"color": "black", "markerfacecolor": "none", "markersize": 6.5}
        axis.plot(off["re"], sign * off["im"], "o", zorder=5, **ring)


def words(data: pd.DataFrame) -> str:
    lines = [
        "The plane of an eigenvalue h of H, for one A with real and one with complex eigenvalues "
        f"(n = {TOKENS}; X' = X + A X W, H = W^T). Tinted: union over the eigenvalues a of A other "
        "than 1 of the discs D(a), centre -(1 - conj a)/(1 - |a|^2), radius |1 - a|/(1 - |a|^2), "
        "where tokens stay apart. Dashed: |h + 1/2| <= 1/2; there they do for every A, but "
        "at h = 0, where nothing moves (a tie). r = rho_Q/rho_C is the rate at which differences "
        "outgrow what tokens share; log r < 0: they become alike. Each dot is "
        f"one run of {DEPTH} layers with H real 2 x 2 of eigenvalues h and conj h (1 x 1 for real "
        f"h) from random X_0; it smooths when log HFC/LFC, averaged over {WINDOW} layers, falls by "
        f"more than {DECAY} between layers {DEPTH // 2} and {DEPTH}."
    ]
    for panel in PANELS:
        part = data[data["panel"] == panel]
        runs = part[part["kind"] == "run"]
        off = runs[runs["measured"] != runs["predicted"]]
        # Well inside: the modes have separated by more than exp(5) at the end.
        stay = runs[(runs["measured"] == Outcome.NON_SMOOTHING) & (runs["log_rate"] * DEPTH > 5)]
        sentence = f"A with {panel}: {len(runs) - len(off)} of {len(runs)} runs agree"
        if len(off):
            places = ", ".join(
                f"{x:.2g}{y:+.2g}i (log r = {rate:.1e})"
                for x, y, rate in zip(off["re"], off["im"], off["log_rate"], strict=True)
            )
            # Between the windows log HFC/LFC moves by about log r a layer.
            close = bool((off["log_rate"].abs() * (DEPTH // 2) < 2 * DECAY).all())
            others, lie, are = (
                ("other", "lies", "is") if len(off) == 1 else ("others", "lie", "are")
            )
            sentence += f"; the {others}, at h = {places}, " + (
                f"{lie} so near the boundary that {DEPTH // 2} layers change the ratio too little "
                "to tell"
                if close
                else f"{are} not explained by nearness to the boundary"
            )
        if len(stay):
            low = float(np.exp(stay["mean_log"].min()))
            sentence += (
                f". Where log r > {5 / DEPTH:g}, the average ratio at the end is at least "
                f"{low:.3g}. In the limit it is at least 1/(sqrt(n) delta) = "
                f"{np.exp(part['log_floor'].iloc[0]):.3g}, where delta is the distance of the "
                "weights pi of the preserved mean (pi^T A = pi^T) from 1/n each (T1f)"
            )
        lines.append(sentence + ".")
    return "\n".join(lines)
