"""Homophily against h: does X' = X + h A X smooth on drawn graphs, predicted and run?

A is the graph's walk, its spectrum real (T1g): it smooths iff h > 0 or h < -2/(1 + a_1), a_1 the
smallest eigenvalue (T2b). Or A is a GAT layer's attention, whose spectrum may be complex: it
smooths iff h lies in the disc of no eigenvalue but the 1 (T3b). Several components leave a second
eigenvalue 1, a TIE, and nothing smooths over all nodes. Two predictions: from the spectrum of each
graph; and from homophily alone, with a_1 the smaller of the class eigenvalue and the end of the
bulk, 1/(k+1) - 2 sqrt(k)/(k+1) of a random graph's walk of degree k (a rule of thumb, no theorem).

Edges within labels are a set share of all edges in expectation (edge homophily). A is the random
walk with a loop at every node, D^-1 (E + I), or GAT: a softmax of LeakyReLU scores over the same
neighbours. Measures of smoothness beside HFC/LFC are Dirichlet energy and MAD.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from oversmoothing.experiments.intervals import share_interval
from oversmoothing.simulations.drawing.picture import PALETTE, VERDICT_COLOUR, new_figure, style
from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured
from oversmoothing.simulations.engine.evolve import evolve
from oversmoothing.simulations.generators.attention import row_softmax
from oversmoothing.simulations.running import steps
from oversmoothing.simulations.state_metrics import log_hfc_lfc_ratio
from oversmoothing.theory.support.errors import InputError, whole_number
from oversmoothing.theory.verdict.formulas import Outcome

Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]


def labels_of(n: int, classes: int, rng: np.random.Generator) -> Labels:
    """n labels, as even as can be, in drawn order."""
    if classes < 2 or n < 2 * classes:
        raise InputError(
            f"{n} nodes and {classes} classes: give 2 classes at least, with two nodes of each"
        )
    return rng.permutation(np.arange(n) % classes)


def homophilous_graph(
    labels: Labels, homophily: float, degree: float, rng: np.random.Generator
) -> Matrix:
    """Edges [n, n] (0, 1, symmetric, no loops), about n degree/2 of them, of which the share
    `homophily` is within labels in expectation."""
    n = len(labels)
    same = labels[:, None] == labels[None, :]
    within, between = (same.sum() - n) / 2, (~same).sum() / 2
    edges = n * degree / 2
    p_in, p_out = homophily * edges / within, (1 - homophily) * edges / between
    if not (0 <= p_in <= 1 and 0 <= p_out <= 1):
        raise InputError(
            f"homophily {homophily:g} at degree {degree:g} needs edges of probability "
            f"{max(p_in, p_out):.3g}: lower the degree, or give more nodes"
        )
    upper = np.triu(rng.random((n, n)) < np.where(same, p_in, p_out), 1).astype(float)
    return np.asarray(upper + upper.T)


def walk(edges: Matrix) -> Matrix:
    """D^-1 (E + I) [..., n, n] of edges [..., n, n]."""
    looped = edges + np.eye(edges.shape[-1])
    return np.asarray(looped / looped.sum(-1, keepdims=True))


def gat(edges: Matrix, X: Matrix, a: Matrix, slope: float = 0.2) -> Matrix:
    """softmax over neighbours and the node itself of LeakyReLU(a_1^T x_i + a_2^T x_k) [n, n]; X [n,
    d], a [2 d] (Velickovic et al. 2018, without its W, which X may have in it)."""
    d = X.shape[1]
    scores = (X @ a[:d])[:, None] + (X @ a[d:])[None, :]
    scores = np.where(scores > 0, scores, slope * scores)
    return row_softmax(np.where(edges + np.eye(len(edges)) > 0, scores, -np.inf))


def class_eigenvalue(homophily: float, degree: float, classes: int) -> float:
    """The walk's eigenvalue on differences between labels, where every node has its expected
    neighbours: (1 + degree (k s - 1)/(k - 1)) / (degree + 1), k even classes, homophily s."""
    between = (classes * homophily - 1) / (classes - 1)
    return (1 + degree * between) / (degree + 1)


def dirichlet_energy(X: Matrix, edges: Matrix) -> float:
    """sum over edges of |x_i - x_k|^2 over sum_i deg_i |x_i|^2, degrees with a loop: in [0, 2).

    0 where neighbours are equal. It is the Rayleigh quotient of the walk's Laplacian (T1g's
    similarity): X [n, d], edges [n, n]; NaN for X = 0.
    """
    degree = edges.sum(-1) + 1
    square = np.square(X).sum(-1)
    total = float(degree @ square)
    if total == 0:
        return float("nan")
    # sum over ordered pairs / 2 of |x_i|^2 + |x_k|^2 - 2 x_i x_k, centred first: no cancellation.
    Y = X - X.mean(0)
    own = np.square(Y).sum(-1)
    pairs = float(edges.sum(-1) @ own - (edges * (Y @ Y.T)).sum())
    return max(pairs, 0.0) / total


def mad(X: Matrix) -> float:
    """Mean average distance (Chen et al. 2020): the mean over nodes of the mean of 1 - cos over the
    others. Zero rows are left out; NaN where fewer than two are left. X [n, d]."""
    length = np.sqrt(np.square(X).sum(-1))
    unit = X[length > 0] / length[length > 0, None]
    # |u - v|^2 / 2 is 1 - cos without cancellation.
    return float((pdist(unit, "sqeuclidean") / 2).mean()) if len(unit) > 1 else float("nan")


NODES, CLASSES, DEGREE, FEATURES, DEPTH = 40, 2, 8.0, 4, 600
HOMOPHILY, H = (0.02, 0.98), (-10.0, 2.0)
# |log rho_C/rho_Q| below which DEPTH layers do not show which is larger.
NEAR_TIE = 0.02
# Of an eigenvalue of A: n eps times a condition number of up to a few thousand.
ROUNDING = 1e-10
BATCH = 250


@dataclass(frozen=True)
class Batch:
    """Graphs [m]: edges and A [m, n, n], labels [m, n], homophily and h [m], X0 [m, n, d]."""

    edges: Matrix
    A: Matrix
    labels: np.ndarray
    homophily: Matrix
    h: Matrix
    X0: Matrix


def drawn_batch(count: int, rng: np.random.Generator, attention: str = "walk") -> Batch:
    """`count` graphs with homophily and h uniform in their ranges; attention: walk or gat."""
    homophily, h = rng.uniform(*HOMOPHILY, count), rng.uniform(*H, count)
    labels = np.stack([labels_of(NODES, CLASSES, rng) for _ in range(count)])
    edges = np.stack(
        [homophilous_graph(y, s, DEGREE, rng) for y, s in zip(labels, homophily, strict=True)]
    )
    X0 = rng.standard_normal((count, NODES, FEATURES))
    if attention == "walk":
        A = walk(edges)
    else:
        weights = rng.standard_normal((count, 2 * FEATURES)) / 2
        A = np.stack([gat(*each) for each in zip(edges, X0, weights, strict=True)])
    return Batch(edges, A, labels, homophily, h, X0)


def deciding(A: Matrix, h: Matrix) -> NDArray[np.complex128]:
    """The eigenvalue a of A but its 1 with the largest |1 + h a|, [m]."""
    values = np.linalg.eigvals(A)
    one = np.argmin(np.abs(values - 1), axis=1)
    moduli = np.abs(1 + h[:, None] * values)
    np.put_along_axis(moduli, one[:, None], -np.inf, axis=1)
    largest = np.take_along_axis(values, moduli.argmax(1)[:, None], axis=1)[:, 0]
    return np.asarray(largest, dtype=np.complex128)


def radii(a: NDArray[np.complex128], h: Matrix) -> tuple[Matrix, Matrix]:
    """(rho_C, rho_Q) [m] of X' = X + h A X: |1 + h|, and |1 + h a| of the deciding a."""
    return np.abs(1 + h), np.abs(1 + h * a)


def boundary(homophily: Matrix) -> Matrix:
    """-2/(1 + a_1) [m], from homophily and degree alone: below this h consensus dominates (T2b)."""
    bulk = (1 - 2 * DEGREE**0.5) / (DEGREE + 1)
    a_1 = np.minimum([class_eigenvalue(s, DEGREE, CLASSES) for s in homophily], bulk)
    return np.asarray(-2 / (1 + a_1))


def by_homophily(homophily: Matrix, h: Matrix) -> np.ndarray:
    """Smooths or not [m], from homophily, degree and h alone."""
    return np.asarray((h > 0) | (h < boundary(homophily)))


def run(batch: Batch, depth: int = DEPTH) -> tuple[Matrix, Matrix, Matrix]:
    """(slope of log HFC/LFC over the second half [m], centred state and state at the end, each of
    them over some power of two)."""
    half, H = depth // 2, batch.h[:, None, None] * np.eye(FEATURES)
    states = evolve(X0=batch.X0, A=batch.A, H=H, depth=[half, depth], method="plain", device="cpu")
    middle, end = (states.state(k) for k in (0, 1))
    slope = (log_hfc_lfc_ratio(end) - log_hfc_lfc_ratio(middle)) / (depth - half)
    return slope.numpy(), end.hfc.numpy(), states.X(1)[0].numpy()


def phase_table(count: int = 2000, seed: int = 0, attention: str = "walk") -> pd.DataFrame:
    """A row a graph: homophily, h, a_real, a_imag (the eigenvalue of A that gives rho_Q), rho_C,
    rho_Q, predicted, thumb (from homophily alone), observed (True: smooths), clear (no near tie),
    tie (to rounding: several components); label_share, the share of the centred end state between
    labels; energy_0, energy (Dirichlet, of the centred state), mad_0, mad (all pairs) at the start
    and the end. Raises `InputError` for no graphs.
    """
    whole_number("the number of graphs", count, 1)
    rng = np.random.default_rng([seed, 19028])
    starts = range(0, count, BATCH)
    sizes = (min(BATCH, count - start) for start in steps(starts, len(starts), "batch"))
    return pd.concat((_rows(drawn_batch(m, rng, attention)) for m in sizes), ignore_index=True)


def _rows(batch: Batch) -> pd.DataFrame:
    a = deciding(batch.A, batch.h)
    C, Q = radii(a, batch.h)
    slope, Y, X = run(batch)
    centred = batch.X0 - batch.X0.mean(1, keepdims=True)
    gap = np.log(C) - np.log(Q)
    return pd.DataFrame(
        {
            "homophily": batch.homophily,
            "h": batch.h,
            "a_real": a.real,
            "a_imag": a.imag,
            "rho_C": C,
            "rho_Q": Q,
            "predicted": gap > 0,
            "thumb": by_homophily(batch.homophily, batch.h),
            "observed": np.where(gap > 0, slope < -gap / 2, slope < -NEAR_TIE / 2),
            "clear": np.abs(gap) > NEAR_TIE,
            "tie": np.abs(gap) < ROUNDING,
            "label_share": _label_shares(Y, batch.labels),
            "energy_0": list(map(dirichlet_energy, centred, batch.edges)),
            "energy": list(map(dirichlet_energy, Y, batch.edges)),
            "mad_0": list(map(mad, batch.X0)),
            "mad": list(map(mad, X)),
        }
    )


def _label_shares(Y: Matrix, labels: np.ndarray) -> Matrix:
    """The share of |Y|^2 that differences between the labels' means hold, [m]."""
    of = np.eye(CLASSES)[labels]
    means = of.mT @ Y / of.sum(1)[..., None]
    return np.asarray(np.square(of @ means).sum((1, 2)) / np.square(Y).sum((1, 2)))


def phase(
    count: int = 2000, seed: int = 0, attention: str = "walk", more: Sequence[Sentence] = ()
) -> Result:
    """`phase_table` with its picture and sentences; more: what else was found on graphs."""
    table = phase_table(count, seed, attention)
    return Result(
        "graphs" if attention == "walk" else f"graphs_{attention}",
        f"Smoothing on {count} graphs",
        {"graphs": Table(table)},
        [*sentences(table), *more],
        {"count": count, "seed": seed, "attention": attention},
        picture=lambda: phase_picture(table, attention),
    )


def sentences(table: pd.DataFrame) -> list[Sentence]:
    """How often prediction and run agree, and what the sign of h does, with intervals."""
    clear = table[table["clear"]]
    count = len(clear)
    said = []
    by = {"predicted": "the graph's spectrum", "thumb": "homophily alone"}
    for name, source in by.items() if count else ():
        right = int((clear[name] == clear["observed"]).sum())
        ends = share_interval(right / count, count)
        says = f"From {source}: {right} of {count} graphs smooth or not as predicted."
        said.append(Sentence(says, measured(count, *ends, of="graph")))
    ties, near = int(table["tie"].sum()), int((~table["clear"]).sum())
    wrong = clear[clear["thumb"] != clear["observed"]]
    early = int((wrong["observed"] & (wrong["h"] < 0)).sum())
    turning = int((table["a_imag"].abs() > ROUNDING).sum())
    says = (
        f"Near ties left out: {ties} ties (graphs of several components) and "
        f"{near - ties} too close for {DEPTH} layers. "
        f"Homophily alone fails on {len(wrong)}: {early} smooth at an h < 0 nearer "
        f"to 0 than it says, {len(wrong) - early} otherwise. The eigenvalue of A that decides is "
        f"complex in {turning} of {len(table)}."
    )
    said.append(Sentence(says, measured(len(table), of="graph")))
    moderate = table[(table["h"] > -1) & (table["h"].abs() > 0.1)]
    for sign, chosen in (("h > 0.1", moderate["h"] > 0), ("-1 < h < -0.1", moderate["h"] < 0)):
        for side, which in (
            ("heterophilous", moderate["homophily"] < 0.3),
            ("homophilous", moderate["homophily"] > 0.7),
        ):
            own = moderate[chosen & which]
            if len(own):
                says = (
                    f"{sign}, {side} ({len(own)} graphs): differences between labels are "
                    f"{own['label_share'].mean():.2f} of what is left of HFC; Dirichlet energy "
                    f"{own['energy_0'].mean():.2f} to {own['energy'].mean():.2f}, MAD "
                    f"{own['mad_0'].mean():.2f} to {own['mad'].mean():.2f}."
                )
                said.append(Sentence(says, measured(len(own), of="graph")))
    return said


TITLES = {"walk": "a graph's random walk", "gat": "GAT attention on a graph"}


def phase_picture(table: pd.DataFrame, attention: str = "walk") -> Figure:
    """A point a graph, A its walk or gat: blue where the run smooths, vermillion where it does not;
    wrong predictions are ringed, near ties grey."""
    figure, grid = new_figure(width=5.5, height=4.6)
    axes = grid[0, 0]
    with style():
        clear = table["clear"]
        for shown, colour, said in (
            (clear & table["observed"], VERDICT_COLOUR[Outcome.SMOOTHING], "run smooths"),
            (clear & ~table["observed"], VERDICT_COLOUR[Outcome.NON_SMOOTHING], "run does not"),
            (~clear, PALETTE["grey"], "near tie"),
        ):
            own = table[shown]
            axes.scatter(
                own["homophily"], own["h"], s=5, linewidths=0, color=colour,
                label=f"{said} ({len(own)})",
            )  # fmt: skip
        wrong = table[clear & (table["predicted"] != table["observed"])]
        axes.scatter(
            wrong["homophily"], wrong["h"], s=40, facecolors="none", edgecolors="black",
            label=f"spectrum predicts otherwise ({len(wrong)})",
        )  # fmt: skip
        s = np.linspace(*HOMOPHILY, 200)
        for line in (boundary(s), np.zeros_like(s)):
            axes.plot(s, line, color="black", linestyle="--", linewidth=1)
        axes.plot([], [], color="black", linestyle="--", label="from homophily alone (walk)")
        axes.set(
            xlabel="homophily: share of edges within labels", ylabel="h (H = h I)", ylim=H,
            title=f"Smoothing by homophily and h: {TITLES[attention]}",
        )  # fmt: skip
        figure.legend(loc="outside lower center", ncols=2)
    return figure
