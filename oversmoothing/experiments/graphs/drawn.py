"""Synthetic graphs with labels, the matrices A that stand for attention on them, and measures.

Edges within labels are a set share of all edges in expectation (edge homophily); the prior of arXiv
2604.19028, which never prefers edges between labels (N-2604.19028-prior), is `prior_graph`. A is
the random walk with a loop at every node, D^-1 (E + I), or GAT: a softmax of LeakyReLU scores over
the same neighbours. Both are row-stochastic; the walk is similar to a symmetric matrix. Measures of
smoothness beside HFC/LFC are Dirichlet energy and MAD.
"""

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.support.errors import InputError

Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]


def labels_of(n: int, classes: int, rng: np.random.Generator) -> Labels:
    """n labels, as even as can be, in drawn order. Raises `InputError` for fewer than 2 classes or
    fewer than two nodes of one."""
    if classes < 2 or n < 2 * classes:
        raise InputError(
            f"{n} nodes and {classes} classes: give 2 classes at least, with two nodes of each"
        )
    return rng.permutation(np.arange(n) % classes)


def homophilous_graph(
    labels: Labels, homophily: float, degree: float, rng: np.random.Generator
) -> Matrix:
    """Edges [n, n] (0, 1, symmetric, no loops), about n degree/2 of them, of which the share
    `homophily` is within labels in expectation.

    Raises `InputError` where no probabilities of edges give that.
    """
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
    return _drawn(np.where(same, p_in, p_out), rng)


def prior_graph(labels: Labels, rng: np.random.Generator) -> Matrix:
    """Edges [n, n] as the code of arXiv 2604.19028 draws them: half of the graphs with one
    probability for all pairs, half with blocks of the labels."""
    n, classes = len(labels), int(labels.max()) + 1
    if rng.random() < 0.5:
        return _drawn(np.full((n, n), rng.uniform(0.01, 0.05)), rng)
    p_in, homophily = rng.uniform(0.01, 0.1), rng.uniform(0.1, 0.9)
    p_out = p_in * (1 - homophily)
    blocks = rng.power(5, (classes, classes)) * p_out
    blocks = (blocks + blocks.T) / 2
    np.fill_diagonal(blocks, p_out + rng.power(2, classes) * (p_in - p_out))
    return _drawn(blocks[labels[:, None], labels[None, :]], rng)


def _drawn(probability: Matrix, rng: np.random.Generator) -> Matrix:
    upper = np.triu(rng.random(probability.shape) < probability, 1).astype(float)
    return np.asarray(upper + upper.T)


def walk(edges: Matrix) -> Matrix:
    """D^-1 (E + I) [..., n, n] of edges [..., n, n]."""
    looped = edges + np.eye(edges.shape[-1])
    return np.asarray(looped / looped.sum(-1, keepdims=True))


def gat(edges: Matrix, X: Matrix, a: Matrix, slope: float = 0.2) -> Matrix:
    """softmax over neighbours and the node itself of LeakyReLU(a_1^T x_i + a_2^T x_k) [n, n].

    X [n, d], a [2 d] (Velickovic et al. 2018, without its W, which X may have in it).
    """
    d = X.shape[1]
    scores = (X @ a[:d])[:, None] + (X @ a[d:])[None, :]
    scores = np.where(scores > 0, scores, slope * scores)
    looped = edges + np.eye(len(edges)) > 0
    scores = np.where(looped, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True))


def edge_homophily(edges: Matrix, labels: Labels) -> float:
    """The share of edges within labels; NaN for a graph without edges."""
    total = edges.sum()
    same = labels[:, None] == labels[None, :]
    return float((edges * same).sum() / total) if total else float("nan")


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


def mad(X: Matrix, edges: Matrix | None = None) -> float:
    """Mean average distance (Chen et al. 2020): the mean over nodes of the mean of 1 - cos over
    their neighbours, or over all other nodes where no edges are given.

    Nodes without neighbours and zero rows are left out; NaN where nothing is left. X [n, d].
    """
    length = np.sqrt(np.square(X).sum(-1))
    kept = length > 0
    unit = X[kept] / length[kept, None]
    # |u - v|^2 / 2 is 1 - cos without cancellation.
    far = np.square(unit[:, None] - unit[None, :]).sum(-1) / 2
    n = len(unit)
    near = (np.ones((n, n)) if edges is None else edges[np.ix_(kept, kept)]) * (1 - np.eye(n))
    number = near.sum(-1)
    if not (number > 0).any():
        return float("nan")
    rows = (far * near).sum(-1)[number > 0] / number[number > 0]
    return float(rows.mean())
