"""Figure: every smoothing metric against depth, theory over simulation, in four regimes (T4, T5).

Smoothing, non-smoothing and tie are told apart by H alone; with complex eigenvalues on both sides
the rank does not collapse either. Ratios are drawn from their logarithms, however small.
"""

from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from oversmoothing.paper_figures.figure_base import Context, label_panels, mark
from oversmoothing.simulations.drawing.picture import (
    PALETTE,
    VERDICT_COLOUR,
    decade_axis,
    new_figure,
    plot_log,
)
from oversmoothing.simulations.engine.evolve import evolve
from oversmoothing.simulations.generators.attention import Softmax, SymmetricIndefinite, sinkhorn
from oversmoothing.simulations.generators.value_projection import chosen_spectrum
from oversmoothing.simulations.state import join
from oversmoothing.simulations.state_metrics import metrics
from oversmoothing.theory.depth.bounds import rank_rate
from oversmoothing.theory.depth.closed_form import closed_form
from oversmoothing.theory.spectra.layer_discs import attention_spectrum, largest_modulus
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.formulas import Outcome, dominance, threshold
from oversmoothing.theory.verdict.verdict import verdict

TITLE = "Smoothing metrics against depth: theory over simulation"
SHORT = (
    "Three metrics in four regimes: H alone decides whether HFC/LFC falls, levels off or "
    "swings; rank can collapse without smoothing. Lines are the closed form, symbols the "
    "iteration."
)
NOT_SHOWN = (
    "One random A and one X_0 a column, the same weights in every layer, fixed "
    "attention, no norm and no FFN: what a trained network does is in the figures of the "
    "digits models."
)

TOKENS = 8
MARKERS = 18
# Inside HFC a second direction is known down to rounding, and no further.
RANK_FLOOR = 1e-13


def cases(seed: int) -> list[tuple[str, dict[str, Any], int]]:
    """Smoothing, non-smoothing, a tie by construction, and complex spectra on both sides: a name,
    A [n, n], H [d, d] and X0 [n, d] by their names, and how many layers are drawn."""
    streams = np.random.default_rng(seed).spawn(5)
    A = SymmetricIndefinite(temperature=0.6, dim=8).draw(TOKENS, rng=streams[0])
    balanced = sinkhorn(A)
    lowest = float(attention_spectrum(balanced).real.min())
    twisted = _complex_dominant(streams[1])

    def H(*eigenvalues: complex) -> Array:
        return chosen_spectrum(
            len(eigenvalues), rng=streams[2], eigenvalues=eigenvalues, basis="general"
        )

    values = (
        ("smoothing", A, H(0.4, 0.15, -0.4), 450),
        ("non-smoothing", A, H(-0.9, -0.5, -0.2), 60),
        ("tie", balanced, H(threshold(lowest), -0.3, -0.6), 60),
        ("complex", twisted, H(-0.5 + 0.45j, -0.5 - 0.45j, -0.2), 60),
    )
    X0 = streams[3].standard_normal((TOKENS, 3))
    return [(name, {"A": a, "H": h, "X0": X0}, depth) for name, a, h, depth in values]


def _complex_dominant(rng: np.random.Generator) -> Array:
    """The first softmax attention drawn whose dominant mode at h = -1/2 + 0.45i is non-real."""
    while True:
        A = Softmax(temperature=0.5, dim=8).draw(TOKENS, rng=rng)
        a = attention_spectrum(A)
        answer = dominance(a, np.array([-0.5 + 0.45j, -0.5 - 0.45j]))
        assert answer.quotient_index is not None
        if abs(a[answer.quotient_index[0]].imag) > 0.3:
            return A


def cosine_limit(A: Array, H: Array, answer: Outcome) -> float:
    """Limit of the mean cosine: 1 at consensus, ((n_+ - n_-)^2 - n) / (n (n - 1)) for one real
    dominant mode with n_+ positive and n_- negative tokens (T4a, T4b); NaN otherwise."""
    if answer is Outcome.SMOOTHING:
        return 1.0
    a, V = np.linalg.eig(A)
    h = np.linalg.eigvals(H).astype(np.complex128)
    _, i, j = largest_modulus(a, h)
    if answer is not Outcome.NON_SMOOTHING or abs(a[i].imag) > 0 or abs(h[j].imag) > 0:
        return float("nan")
    balance = float(np.sign(V[:, i].real).sum())
    n = len(a)
    return (balance**2 - n) / (n * (n - 1))


def data(context: Context) -> pd.DataFrame:
    """One row for each case, source ('theory' or 'simulation') and layer.

    Columns: case, source, depth, every metric of `simulations.state_metrics`, and what is
    predicted of the case: verdict, rho_consensus, rho_quotient, log_rate = log r, log_r_sigma,
    limit of HFC/LFC, cos_mean_limit (NaN where there is none), limit_rank.
    """
    parts = []
    for name, layer, depth in cases(context.seed):
        every = range(depth + 1)
        some = sorted({round(x) for x in np.linspace(0, depth, MARKERS)})
        run = evolve(
            **layer, depth=some, method="plain", device=context.device, progress=context.progress
        ).metrics()
        states = closed_form(**layer, depths=every)
        held = [(s.hfc, s.mean, s.log2_hfc_scale, s.log2_mean_scale) for s in states]
        values = metrics(join(*(torch.tensor(np.array(x)) for x in zip(*held, strict=True))))
        curve = pd.DataFrame({"case": name, "source": "theory", "depth": every, **values})
        table = pd.concat([curve, run.assign(case=name, source="simulation")], ignore_index=True)
        answer = verdict(**layer)
        h = np.linalg.eigvals(layer["H"]).astype(np.complex128)
        table["verdict"] = Outcome.TIE if name == "tie" else answer.verdict
        table["rho_consensus"], table["rho_quotient"] = answer.rho_consensus, answer.rho_quotient
        table["log_rate"] = np.log(answer.rate if answer.rate else np.nan)
        table["log_r_sigma"] = np.log(rank_rate(attention_spectrum(layer["A"]), h))
        table["limit"] = np.nan if answer.limit is None else answer.limit
        table["limit_rank"] = np.nan if answer.limit_rank is None else answer.limit_rank
        table["cos_mean_limit"] = cosine_limit(layer["A"], layer["H"], answer.verdict)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


_HEADS = {
    "smoothing": "tokens become alike",
    "non-smoothing": "rank 1, yet apart",
    "tie": "neither wins",
    "complex": "apart, and no rest",
}


def draw(data: pd.DataFrame) -> Figure:
    figure, axes = new_figure(3, 4, height=5.8, sharex="col")
    panels = {
        "HFC/LFC (Frobenius)": _ratio_panel,
        "cosine of token pairs\n(signed; mean, smallest)": _cosine_panel,
        "effective rank $-$ 1": _rank_panel,
    }
    for column, name in enumerate(_HEADS):
        part = data[data["case"] == name]
        theory, run = part[part["source"] == "theory"], part[part["source"] == "simulation"]
        first = part.iloc[0]
        colour = VERDICT_COLOUR[first["verdict"]]
        for axis, panel in zip(axes[:, column], panels.values(), strict=True):
            panel(axis, theory, run, colour)
        title = f"{_HEADS[name]}\n$r$ = {np.exp(first['log_rate']):.3g}"
        axes[0, column].set_title(title, linespacing=1.3)
        depth = int(theory["depth"].max())
        axes[2, column].set(xlabel="layer", xticks=[0, depth // 2, depth])
    for axis, label in zip(axes[:, 0], panels, strict=True):
        axis.set_ylabel(label)
    label_panels(axes)
    grey: Any = {"color": PALETTE["grey"], "linestyle": "--", "linewidth": 1.0}
    hollow: Any = {"color": PALETTE["black"], "markerfacecolor": "none"}
    figure.legend(
        handles=[
            Line2D([], [], color=PALETTE["black"], label="closed form"),
            mark("simulation", **hollow),
            Line2D(
                [], [], color=PALETTE["black"], linestyle=":", label="smallest cosine, closed form"
            ),
            mark("smallest cosine, simulation", "v", **hollow),
            Line2D([], [], label="asymptotic rate or limit", **grey),
        ],
        loc="outside lower center",
        ncols=3,
    )
    return figure


def _points(axis: Axes, x: pd.Series, y: pd.Series, colour: str, marker: str = "o") -> None:
    axis.plot(x, y, marker, color=colour, markerfacecolor="white", markeredgewidth=0.9, zorder=3)


def _guide(axis: Axes, x: pd.Series, y: pd.Series | float) -> None:
    axis.plot(x, np.broadcast_to(y, x.shape), "--", color=PALETTE["grey"], linewidth=1.0, zorder=1)


def _ratio_panel(axis: Axes, theory: pd.DataFrame, run: pd.DataFrame, colour: str) -> None:
    plot_log(axis, theory["depth"], theory["log_hfc_lfc"], color=colour)
    _points(axis, run["depth"], run["log_hfc_lfc"] / np.log(10), colour)
    first, last = theory.iloc[0], theory.iloc[-1]
    if first["verdict"] == Outcome.SMOOTHING:
        line = last["log_hfc_lfc"] + first["log_rate"] * (theory["depth"] - last["depth"])
        _guide(axis, theory["depth"], line / np.log(10))
    elif np.isfinite(first["limit"]):
        _guide(axis, theory["depth"], float(np.log10(first["limit"])))
    decade_axis(axis)


def _cosine_panel(axis: Axes, theory: pd.DataFrame, run: pd.DataFrame, colour: str) -> None:
    # Every other layer carries the one symbol or the other: where both are 1 neither hides.
    for start, (name, marker, line) in enumerate((("cos_mean", "o", "-"), ("cos_min", "v", ":"))):
        axis.plot(theory["depth"], theory[name], line, color=colour)
        _points(axis, run["depth"].iloc[start::2], run[name].iloc[start::2], colour, marker)
    first = theory.iloc[0]
    if first["verdict"] == Outcome.TIE:
        axis.text(0.98, 0.72, "two modes of\nequal size", ha="right", transform=axis.transAxes)
    if np.isfinite(first["cos_mean_limit"]):
        _guide(axis, theory["depth"], float(first["cos_mean_limit"]))
    axis.set_ylim(-1.08, 1.08)
    axis.set_yticks([-1, -0.5, 0, 0.5, 1])


def _rank_panel(axis: Axes, theory: pd.DataFrame, run: pd.DataFrame, colour: str) -> None:
    axis.plot(theory["depth"], _drawn_rank(theory) / np.log(10), color=colour)
    _points(axis, run["depth"], _drawn_rank(run) / np.log(10), colour)
    rate = theory["log_r_sigma"].iloc[0]
    if rate < -1e-3:
        # erank - 1 ~ eps (1 + log 1/eps), eps ~ r_sigma^L (T5c), through the last point drawn.
        y = _drawn_rank(theory)
        last = int(np.flatnonzero(np.isfinite(y))[-1])
        end = theory["log_sigma2_sigma1"].iloc[last]
        log_eps = end + rate * (theory["depth"] - theory["depth"].iloc[last])
        shown = (log_eps < 0) & (theory["depth"] <= theory["depth"].iloc[last])
        line = (log_eps + np.log1p(-log_eps.where(shown))) / np.log(10)
        _guide(axis, theory["depth"], line)
    decade_axis(axis)
    if np.ptp(axis.get_ylim()) < 0.6:
        axis.set_yticks(np.log10([1, 2]), ["1", "2"])


def _drawn_rank(table: pd.DataFrame) -> pd.Series:
    """log(effective rank - 1) where rounding, RANK_FLOOR of HFC, does not decide it."""
    floor = np.log(RANK_FLOOR) + np.minimum(table["log_hfc_lfc"], 0.0)
    return table["log_effective_rank_excess"].where(table["log_sigma2_sigma1"] > floor)


def words(data: pd.DataFrame) -> str:
    both = data.pivot_table(
        index=["case", "depth"], columns="source", values="log_hfc_lfc", dropna=False
    ).dropna()
    error = float((both["theory"] - both["simulation"]).abs().max())
    lines = [
        f"Smoothing metrics of X' = X + A X W, n = {TOKENS} tokens, d = 3 features, against the "
        "layer. Rows: ||HFC||/||LFC|| in Frobenius norms; mean (circles) and minimum (triangles) "
        "signed cosine over pairs of distinct tokens; effective rank (exp of the entropy of the "
        "normalised singular values) minus 1. Lines: closed form; symbols: simulation in float64; "
        "dashed grey: asymptotic rate or limit. HFC/LFC and effective rank on logarithmic axes; "
        "the rank is left out where sigma_2 is below "
        f"{RANK_FLOOR:g} of HFC or of the state (rounding)."
        f" The largest |log HFC/LFC simulated - closed form| over all runs is {error:.1e}."
    ]
    for name in _HEADS:
        theory = data[(data["case"] == name) & (data["source"] == "theory")]
        lines.append(_verdict_sentence(name, theory))
    return "\n".join(lines)


def _verdict_sentence(name: str, theory: pd.DataFrame) -> str:
    first, half, last = theory.iloc[0], theory.iloc[len(theory) // 2], theory.iloc[-1]
    start = (
        f"{name} ({first['verdict']}, rho_C = {first['rho_consensus']:.4g}, "
        f"rho_Q = {first['rho_quotient']:.4g}): HFC/LFC"
    )
    layers, late = int(last["depth"]), theory.iloc[len(theory) // 2 :]
    rank, least = last["effective_rank"], late["effective_rank"].min()
    if first["verdict"] == Outcome.SMOOTHING:
        slope = (last["log_hfc_lfc"] - half["log_hfc_lfc"]) / (last["depth"] - half["depth"])
        return (
            f"{start} falls to 1e{last['log_hfc_lfc'] / np.log(10):.1f} at layer {layers}, "
            f"by exp({slope:.6f}) a layer over the second half against log r = "
            f"{first['log_rate']:.6f}; minimum cosine {last['cos_min']:.6f}, rank {rank:.4f}."
        )
    if name == "complex":
        return (
            f"{start}, with a non-real dominant h and a, oscillates between "
            f"{late['hfc_lfc'].min():.3g} and {late['hfc_lfc'].max():.3g} over the second half and "
            f"the effective rank stays above {least:.3f}"
            + (": neither smoothing nor rank collapse." if least > 1.01 else ".")
        )
    near, cosine = first["limit"], first["cos_mean_limit"]
    limit = f", limit {near:.6g}" if np.isfinite(near) else ", no limit predicted"
    angle = f", limit {cosine:.4f}" if np.isfinite(cosine) else ""
    return (
        f"{start} is {last['hfc_lfc']:.6g} at layer {layers}{limit}; mean cosine "
        f"{last['cos_mean']:.4f}{angle}, minimum {last['cos_min']:.4f}; rank {rank:.4f}"
        + (": rank collapse without smoothing." if rank < 1.001 else ".")
    )
