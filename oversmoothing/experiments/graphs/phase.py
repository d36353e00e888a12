"""Homophily against h: does X' = X + h A X smooth on drawn graphs, predicted and run?

A is the graph's walk, its spectrum real (T1g): it smooths iff h > 0 or h < -2/(1 + a_1), a_1 the
smallest eigenvalue (T2b). Or A is a GAT layer's attention, whose spectrum may be complex: it
smooths iff h lies in the disc of no eigenvalue but the 1 (T3b). Several components leave a second
eigenvalue 1, a TIE, and nothing smooths over all nodes. Two predictions: from the spectrum of each
graph; and from homophily alone, with a_1 the smaller of the class eigenvalue and the end of the
bulk, 1/(k+1) - 2 sqrt(k)/(k+1) of a random graph's walk of degree k (a rule of thumb, no theorem).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversmoothing.experiments.graphs.drawn import (
    Matrix,
    class_eigenvalue,
    gat,
    homophilous_graph,
    labels_of,
    walk,
)
from oversmoothing.experiments.graphs.measures import dirichlet_energy, mad
from oversmoothing.experiments.intervals import in_words, share_interval
from oversmoothing.theory.support.errors import whole_number

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
    found = np.take_along_axis(values, moduli.argmax(1)[:, None], axis=1)[:, 0]
    return np.asarray(found, dtype=np.complex128)


def radii(a: NDArray[np.complex128], h: Matrix) -> tuple[Matrix, Matrix]:
    """(rho_C, rho_Q) [m] of X' = X + h A X: |1 + h|, and |1 + h a| of the deciding a."""
    return np.abs(1 + h), np.abs(1 + h * a)


def by_homophily(homophily: Matrix, h: Matrix) -> np.ndarray:
    """Smooths or not [m], from homophily, degree and h alone."""
    bulk = (1 - 2 * DEGREE**0.5) / (DEGREE + 1)
    a_1 = np.minimum([class_eigenvalue(s, DEGREE, CLASSES) for s in homophily], bulk)
    return np.asarray((h > 0) | (h < -2 / (1 + a_1)))


def run(batch: Batch, depth: int = DEPTH) -> tuple[Matrix, Matrix, Matrix]:
    """(slope of log HFC/LFC over the second half [m], centred state and state at the end).

    The centred state is run on its own: modulo consensus it is autonomous (T1), and in the state
    it would be lost in rounding.
    """
    X, Y = batch.X0, _centred(batch.X0)
    h = batch.h[:, None, None]
    logs = np.zeros((2, len(X)))
    kept = []
    for layer in range(1, depth + 1):
        X, Y = X + h * (batch.A @ X), _centred(Y + h * (batch.A @ Y))
        for k, state in enumerate((X, Y)):
            size = np.sqrt(np.square(state).sum((1, 2)))
            logs[k] += np.log(size)
            state /= size[:, None, None]
        if layer in (depth // 2, depth):
            mean = np.sqrt(NODES * np.square(X.mean(1)).sum(-1))
            kept.append(logs[1] - logs[0] - np.log(mean))
    return (kept[1] - kept[0]) / (depth - depth // 2), Y, X


def _centred(X: Matrix) -> Matrix:
    return np.asarray(X - X.mean(1, keepdims=True))


def phase_table(count: int = 2000, seed: int = 0, attention: str = "walk") -> pd.DataFrame:
    """A row a graph: homophily, h, a_real, a_imag (the eigenvalue of A that gives rho_Q), rho_C,
    rho_Q, predicted, thumb (from homophily alone), observed (True: smooths), clear (no near tie),
    tie (to rounding: several components); label_share, the share of the centred end state between
    labels; energy_0, energy (Dirichlet, of the centred state), mad_0, mad (all pairs) at the start
    and the end. Raises `InputError` for no graphs.
    """
    whole_number("the number of graphs", count, 1)
    rng = np.random.default_rng([seed, 19028])
    parts = []
    for start in range(0, count, BATCH):
        batch = drawn_batch(min(BATCH, count - start), rng, attention)
        a = deciding(batch.A, batch.h)
        C, Q = radii(a, batch.h)
        slope, Y, X = run(batch)
        gap = np.log(C) - np.log(Q)
        parts.append(
            pd.DataFrame(
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
                    "energy_0": _each(dirichlet_energy, _centred(batch.X0), batch.edges),
                    "energy": _each(dirichlet_energy, Y, batch.edges),
                    "mad_0": [mad(each) for each in batch.X0],
                    "mad": [mad(each) for each in X],
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def _each(measure: object, X: Matrix, edges: Matrix) -> list[float]:
    return [measure(x, e) for x, e in zip(X, edges, strict=True)]  # type: ignore[operator]


def _label_shares(Y: Matrix, labels: np.ndarray) -> Matrix:
    """The share of |Y|^2 that differences between the labels' means hold, [m]."""
    found = []
    for y, own in zip(Y, labels, strict=True):
        means = np.stack([y[own == c].mean(0) for c in range(CLASSES)])
        found.append(np.square(means[own]).sum() / np.square(y).sum())
    return np.array(found)


def _left_over(table: pd.DataFrame, clear: pd.DataFrame) -> str:
    """The near ties, the rule of thumb's failures and the complex eigenvalues, counted."""
    ties, near = int(table["tie"].sum()), int((~table["clear"]).sum())
    wrong = clear[clear["thumb"] != clear["observed"]]
    early = int((wrong["observed"] & (wrong["h"] < 0)).sum())
    turning = int((table["a_imag"].abs() > ROUNDING).sum())
    return (
        f"Of the near ties {ties} are ties (several components), {near - ties} too close for "
        f"{DEPTH} layers. Homophily alone fails on {len(wrong)}: {early} smooth at an h < 0 nearer "
        f"to 0 than it says, {len(wrong) - early} otherwise. The eigenvalue of A that decides is "
        f"complex in {turning} of {len(table)}."
    )


def words(table: pd.DataFrame) -> str:
    """How often prediction and run agree, and what the sign of h does, with intervals."""
    clear = table[table["clear"]]
    lines = []
    for name, said in (("predicted", "the graph's spectrum"), ("thumb", "homophily alone")):
        right, count = int((clear[name] == clear["observed"]).sum()), len(clear)
        ends = in_words(*share_interval(right / count, count), count, "{:.4f}".format, "graph")
        lines.append(
            f"From {said}: {right} of {count} graphs smooth or not as predicted ({ends}); "
            f"{len(table) - count} near ties left out."
        )
    lines.append(_left_over(table, clear))
    moderate = table[(table["h"] > -1) & (table["h"].abs() > 0.1)]
    for sign, chosen in (("h > 0", moderate["h"] > 0), ("-1 < h < 0", moderate["h"] < 0)):
        for side, which in (
            ("heterophilous", moderate["homophily"] < 0.3),
            ("homophilous", moderate["homophily"] > 0.7),
        ):
            own = moderate[chosen & which]
            if len(own):
                lines.append(
                    f"{sign}, {side} ({len(own)} graphs): differences between labels hold "
                    f"{own['label_share'].mean():.2f} of what is left of HFC; Dirichlet energy "
                    f"{own['energy_0'].mean():.2f} to {own['energy'].mean():.2f}, MAD "
                    f"{own['mad_0'].mean():.2f} to {own['mad'].mean():.2f}."
                )
    return "\n".join(lines)
