"""What answers cost: time against tokens and layers, and proofs as multiples of the float answer.

All is measured when the figure is drawn, on one thread. A verdict and its certificate are of one
drawn A [n, n] (softmax) and H [d, d] (Gaussian); an enclosure is of the metrics in front of and
behind one block of an untrained ViT on a drawn stream [n, d], its yardstick the same in floats.
"""

import math
import time
import timeit
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oversmoothing.experiments.enclosures.enclosing import enclosed
from oversmoothing.experiments.enclosures.network import network_of
from oversmoothing.experiments.intervals import interleaved_medians
from oversmoothing.experiments.models.sources import open_model
from oversmoothing.paper_figures.figure_base import Context, label_panels
from oversmoothing.paper_figures.models_shown import untrained_vit
from oversmoothing.simulations.drawing.picture import PALETTE, new_figure
from oversmoothing.simulations.engine.evolve import evolve
from oversmoothing.simulations.generators.attention import Softmax
from oversmoothing.simulations.running import steps
from oversmoothing.simulations.state import one_thread
from oversmoothing.simulations.state_metrics import stream_metrics
from oversmoothing.theory.certificate import make_certificate
from oversmoothing.theory.checker.check import check_certificate
from oversmoothing.theory.support.files import to_json
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.verdict import given_layer, verdict

TITLE = "What answers and proofs cost, against tokens and layers"
SHORT = (
    "How time grows with tokens and with layers, and what certificates and enclosures cost, "
    "as multiples of the same answer in floats."
)
NOT_SHOWN = (
    "One machine, one thread, a few sizes and random matrices, measured when the figure was "
    "drawn: a fitted slope is no law, and near a tie or with a start X_0 a proof costs more."
)

# Of each growth the least of so many runs: what others do on the machine only adds.
REPEATS = 5
# Tokens of a proof, its features, the runs in turn, and from which size on one is enough.
TOKENS, FEATURES, IN_TURN, ONCE_FROM = (8, 16, 32, 64, 128), 16, 3, 100
# What is timed in turn, and what its seconds are divided by.
YARDSTICK = {
    **dict.fromkeys(("verdict", "certify", "check"), "verdict"),
    **dict.fromkeys(("forward", "enclose"), "forward"),
}
# Of a multiple: its words, colour, marker and line.
LOOK = {
    "certify": ("certificate (its check included)", "blue", "s", "-"),
    "check": ("check of it", "vermillion", "^", "--"),
    "enclose": ("enclosed metrics of a layer", "green", "v", "-"),
}


@dataclass(frozen=True)
class Series:
    """What grows with one size: seconds of run(size, repeats), and the exponent in theory."""

    name: str
    variable: str
    sizes: tuple[int, ...]
    run: Callable[[int, int], float]
    time: float


def evolution(n: int, d: int, depth: int, repeats: int, method: str = "plain") -> float:
    """The least seconds of iterating a drawn layer of n tokens and d features."""
    rng = np.random.default_rng(0)
    A = rng.random((n, n))
    A /= A.sum(axis=1, keepdims=True)
    H = rng.standard_normal((d, d)) * 0.5 / math.sqrt(d)
    run = partial(evolve, A=A, H=H, X0=rng.standard_normal((n, d)), method=method, device="cpu")
    return min(timeit.repeat(lambda: run(depth=[depth]), repeat=repeats, number=1))


def one_more_layer(n: int, d: int, repeats: int) -> float:
    """Seconds of one more layer: the setup cancels. NaN where noise exceeds the difference."""
    few = 8
    more = few + max(32, round(4e8 / (2 * n * d * (n + d))))
    runs = [evolution(n, d, depth, repeats) for depth in (few, more)]
    return (runs[1] - runs[0]) / (more - few) if runs[1] > runs[0] else math.nan


SERIES = (
    Series("one more layer, d = 16", "n", (128, 256, 512, 1024),
           lambda n, k: one_more_layer(n, 16, k), 2.0),
    Series("plain, n = 32, d = 16", "L", (1000, 4000, 16000, 64000),
           lambda L, k: evolution(32, 16, L, k), 1.0),
    Series("closed form, n = 32, d = 16", "L", (1000, 4000, 16000, 64000),
           lambda L, k: evolution(32, 16, L, k, "closed_form"), 0.0),
)  # fmt: skip


def exponent(sizes: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Slope of log value against log size and its standard error (n - 2 degrees of freedom).

    NaN where a value is NaN or not positive, or of fewer than two sizes; the error is NaN for two.
    """
    if len(sizes) < 2 or not (np.asarray(values, float) > 0).all():
        return math.nan, math.nan
    x, y = np.log(sizes), np.log(values)
    if len(x) == 2:
        return float(np.polyfit(x, y, 1)[0]), math.nan
    fit, covariance = np.polyfit(x, y, 1, cov=True)
    return float(fit[0]), math.sqrt(covariance[0, 0])


def growth_rows(series: Series, seconds: Sequence[float] | None = None) -> list[dict[str, Any]]:
    """The rows of a series with its exponent, from the seconds given, or as measured."""
    if seconds is None:
        seconds = [series.run(size, REPEATS) for size in series.sizes]
    slope, error = exponent(series.sizes, seconds)
    return [
        {"kind": "growth", "what": series.name, "variable": series.variable, "size": size,
         "seconds": value, "exponent": slope, "exponent_error": error, "expected": series.time}
        for size, value in zip(series.sizes, seconds, strict=True)
    ]  # fmt: skip


def data(context: Context) -> pd.DataFrame:
    """Some 20 s of a core. kind 'growth': a row a series and size, with the least seconds of some
    runs, the exponent (slope of a least squares line in log-log), its error and that of theory.
    kind 'proof': a row a number of tokens and answer, with processor seconds (medians of runs in
    turn), `ratio` to its yardstick, and the verdict ('' where it gives none)."""
    work: list[Callable[[], list[dict[str, Any]]]] = [
        *(partial(growth_rows, each) for each in SERIES),
        *(partial(proof_rows, n, context.seed) for n in TOKENS),
    ]
    with one_thread():
        SERIES[0].run(16, 1)  # what loads on first use is loaded
        return pd.DataFrame([row for each in steps(work, len(work), "size") for row in each()])


def layer(n: int, seed: int) -> tuple[Array, Array]:
    """A [n, n] and H of a proof, the same for the same seed."""
    rng = np.random.default_rng([seed, n, FEATURES])
    A = Softmax().draw(n, rng=rng)
    return A, rng.standard_normal((FEATURES, FEATURES)) / (2 * FEATURES**0.5)


def proof_rows(n: int, seed: int) -> list[dict[str, Any]]:
    """The rows of one number of tokens."""
    A, H = layer(n, seed)
    given, _ = given_layer(A, None, H, None, None)
    body = make_certificate(given).body
    said = {"verdict": str(verdict(A=A, H=H).verdict), "certify": body["claim"]["verdict"]}
    text = to_json(body)
    forward, enclose = _block(n, seed)
    runs: dict[str, Callable[[], object]] = {
        "verdict": lambda: verdict(A=A, H=H),
        "certify": lambda: make_certificate(given),
        "check": lambda: check_certificate(text),
        "forward": forward,
        "enclose": enclose,
    }
    repeats = IN_TURN if n < ONCE_FROM else 1
    times = interleaved_medians(list(runs.values()), repeats, clock=time.process_time)
    seconds = dict(zip(runs, times, strict=True))
    return [
        {"kind": "proof", "what": what, "variable": "n", "size": n, "seconds": seconds[what],
         "ratio": seconds[what] / seconds[of], "verdict": said.get(what, "")}
        for what, of in YARDSTICK.items()
    ]  # fmt: skip


def _block(n: int, seed: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """The forward pass of a block with the metrics of its streams, then the same enclosed."""
    vit = untrained_vit(seed, width=FEATURES, depth=1, heads=1, side=32).double()
    model = open_model(vit, dtype=torch.float64)
    network = replace(network_of(model), patches=None, cls=False)
    X = np.random.default_rng([seed, n, FEATURES, 1]).standard_normal((n, FEATURES))
    stream = torch.from_numpy(X)[None]

    @torch.no_grad()
    def forward() -> object:
        return stream_metrics(stream), stream_metrics(vit.blocks[0](stream))

    return forward, lambda: enclosed(network, X)


def draw(table: pd.DataFrame) -> Figure:
    """Seconds against tokens and against layers, then multiples of floats; all axes logarithmic."""
    figure, axes = new_figure(1, 3, height=3.0)
    grown, proofs = (table[table["kind"] == kind] for kind in ("growth", "proof"))
    by_size = [grown[grown["variable"] == variable] for variable in ("n", "L")]
    for axis, each in zip(axes[0], by_size, strict=False):
        parts = each.groupby("what", sort=False)
        for (name, part), colour in zip(parts, ("black", "green"), strict=False):
            _growth(axis, str(name).split(",")[0], part, PALETTE[colour])
        axis.legend(loc="upper left", fontsize=7)
    for what, (words_of, colour, marker, line) in LOOK.items():
        own = proofs[proofs["what"] == what]
        axes[0, 2].plot(
            own["size"], own["ratio"], line, color=PALETTE[colour], marker=marker, label=words_of
        )
    axes[0, 2].axhline(1, color=PALETTE["grey"], linewidth=0.8)
    axes[0, 2].legend(loc="upper left", fontsize=7)
    names = "tokens n (d = 16)", "layers L (n = 32, d = 16)", "tokens n (d = 16)"
    titles = "one more layer", "a run of L layers", "a proof over floats"
    for axis, part, name, title in zip(axes[0], (*by_size, proofs), names, titles, strict=True):
        axis.set(xscale="log", yscale="log", xlabel=name, title=title)
        low, high = axis.get_ylim()
        # Room for the words above what is drawn.
        axis.set_ylim(low / 1.3, high * (high / low) ** 0.45)
        sizes = sorted({int(x) for x in part["size"]})
        axis.set_xticks(sizes, [f"{x // 1000}k" if x >= 1000 else str(x) for x in sizes])
        axis.minorticks_off()
    axes[0, 0].set_ylabel("seconds")
    axes[0, 2].set_ylabel("multiple of the float answer")
    label_panels(axes)
    return figure


def _growth(axis: Axes, name: str, part: pd.DataFrame, colour: str) -> None:
    """The points of a series and their line, where there is one."""
    size, value = part["size"].to_numpy(float), part["seconds"].to_numpy(float)
    slope = float(part["exponent"].iloc[0])
    axis.plot(size, np.where(value > 0, value, np.nan), "o", color=colour)
    with np.errstate(invalid="ignore"):
        line = np.exp(np.log(value).mean() + slope * (np.log(size) - np.log(size).mean()))
    axis.plot(size, line, "-", color=colour, label=f"{name}:\n{_exponent(part)}")


def _exponent(part: pd.DataFrame) -> str:
    slope, error = float(part["exponent"].iloc[0]), float(part["exponent_error"].iloc[0])
    if not math.isfinite(slope):
        return "no fit"
    reach = f" ± {error:.2f}" if math.isfinite(error) else ""
    return f"exponent {slope:.2f}{reach}".replace("-0.00", "0.00")


def words(table: pd.DataFrame) -> str:
    """What was measured: every exponent beside that of theory, every multiple at both ends."""
    grown, proofs = (table[table["kind"] == kind] for kind in ("growth", "proof"))
    fits = [
        f"time in {part['variable'].iloc[0]} ({name}): {_exponent(part)}, in theory "
        f"{part['expected'].iloc[0]:g}"
        for name, part in grown.groupby("what", sort=False)
    ]
    ends = proofs.groupby("what").agg(["first", "last"])
    multiples = [
        f"{what}: {own['ratio', 'first']:.3g} at {own['size', 'first']:g} tokens, "
        f"{own['ratio', 'last']:.3g} at {own['size', 'last']:g}"
        for what, own in ends.loc[list(LOOK)].iterrows()
    ]
    pairs = proofs.pivot(index="size", columns="what", values="verdict")
    same = int((pairs["verdict"] == pairs["certify"]).sum())
    return (
        "(a, b) Seconds, the least of some runs on one thread, in float64; exponents are slopes of "
        "least squares lines in log-log, with their standard errors; the theory's hold for large "
        f"sizes. {'; '.join(fits)}. (c) Processor seconds, medians of runs in turn: certificate "
        "and check over the verdict in floats, of softmax attention and a Gaussian H; the metrics "
        "of an untrained ViT block, enclosed, over the same in floats. "
        f"{'; '.join(multiples)}. {same} of {len(pairs)} certificates prove the verdict that "
        "floats gave."
    )
