"""The random walk on graphs with communities, as Oversmoothing.jl (gdalle) defines it.

Its layer is X' = (D + I)^-1 (E + I) X on a contextual stochastic block model: C communities, edges
with p_in within and p_out between, features of a node Gaussian about its community's mean. Given
the graph a node's features after l layers are Gaussian with mean sum_c s_c mu_c and covariance
sum_c t_c Sigma_c, where s_c and t_c sum the entries of W^l, and their squares, over community c.
The accuracy of the best guess of the community is an integral over that mixture; a logistic
regression on simulated features should come to the same, says its test. Written anew from the
definitions in its `src/random_walk.jl`, `src/sbm.jl`, `src/accuracy.jl` and `test/depth.jl`; Julia
itself is not run. Rates at great depth are of `evolve`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from oversmoothing.experiments.graphs.phase import Matrix, walk
from oversmoothing.simulations.engine.evolve import evolve
from oversmoothing.theory.support.errors import required

# Points of the grid in each direction: off by less than 1e-3, for the kinks between communities.
GRID = 100


@dataclass(frozen=True)
class Blocks:
    """A contextual stochastic block model in the plane: means on a circle, neighbours 1 apart."""

    nodes: int = 300
    communities: int = 3
    p_in: float = 0.1
    p_out: float = 0.02
    sigma: float = 1.0

    @property
    def labels(self) -> np.ndarray:
        """The community of each node [n]."""
        return np.repeat(np.arange(self.communities), self.nodes // self.communities)

    @property
    def means(self) -> Matrix:
        """[C, 2], on a circle of radius 1/(2 sin(pi/C))."""
        angle = 2 * np.pi * np.arange(self.communities) / self.communities
        circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return np.asarray(circle / (2 * np.sin(np.pi / self.communities)))

    def draw(self, graphs: int, rng: np.random.Generator) -> tuple[Matrix, Matrix]:
        """The walks W [g, n, n] and the features X_0 [g, n, 2] of drawn graphs."""
        same = self.labels[:, None] == self.labels[None, :]
        chance = np.where(same, self.p_in, self.p_out)
        upper = np.triu(rng.random((graphs, *chance.shape)) < chance, 1).astype(float)
        noise = self.sigma * rng.standard_normal((graphs, self.nodes, 2))
        return walk(upper + upper.swapaxes(-1, -2)), self.means[self.labels] + noise


def features_by_depth(W: Matrix, X0: Matrix, depths: range) -> Iterator[Matrix]:
    """X_l = W^l X_0 [g, n, 2] at each depth, layer by layer."""
    X = X0
    for depth in range(depths.stop):
        if depth in depths:
            yield X
        X = W @ X


def accuracy_in_theory(blocks: Blocks, depth: int, graphs: int, rng: np.random.Generator) -> float:
    """The accuracy of the best guess under the mixture of `graphs` graphs, on a grid."""
    communities = np.eye(blocks.communities)[blocks.labels]
    W, _ = blocks.draw(graphs, rng)
    power = np.linalg.matrix_power(W, depth)
    mean = power @ communities @ blocks.means
    spread = blocks.sigma * np.sqrt(np.square(power).sum(-1))
    low = (mean - 7 * spread[..., None]).min((0, 1))
    high = (mean + 7 * spread[..., None]).max((0, 1))
    step = (high - low) / GRID
    axes = [low[k] + step[k] * (np.arange(GRID) + 0.5) for k in (0, 1)]
    density = np.zeros((blocks.communities, GRID, GRID))
    for c in range(blocks.communities):
        mine = blocks.labels == c
        # A sum over nodes of products of two one-dimensional Gaussians.
        parts = [
            np.exp(-np.square((axes[k] - mean[:, mine, k, None]) / spread[:, mine, None]) / 2)
            / spread[:, mine, None] for k in (0, 1)
        ]  # fmt: skip
        x, y = (part.reshape(-1, GRID) for part in parts)
        density[c] = x.T @ y / (2 * np.pi * len(x))
    best = density.max(0).sum() * step[0] * step[1]
    return float(best / blocks.communities)


def accuracy_of_regression(
    blocks: Blocks, depths: range, graphs: int, rng: np.random.Generator
) -> list[float]:
    """The share guessed right by a logistic regression without intercept, on other graphs."""
    linear = required("sklearn.linear_model")
    sides = [list(features_by_depth(*blocks.draw(graphs, rng), depths)) for _ in range(2)]
    y = np.tile(blocks.labels, graphs)
    accuracies = []
    for train, test in zip(*sides, strict=True):
        # Without a penalty a scale changes nothing but the steps of the solver.
        scale = train.std()
        model = linear.LogisticRegression(C=np.inf, fit_intercept=False)
        model.fit(train.reshape(-1, 2) / scale, y)
        accuracies.append(float(model.score(test.reshape(-1, 2) / scale, y)))
    return accuracies


def rates(blocks: Blocks, rng: np.random.Generator, depths: tuple[int, int]) -> tuple[float, float]:
    """The measured log of HFC/LFC a layer between two depths, and log |lambda_2| of the walk."""
    W, X0 = (each[0] for each in blocks.draw(1, rng))
    run = evolve(X0=X0, A=W, H=np.eye(2), depth=list(depths), residual=False)
    measured = np.diff(run.metrics()["log_hfc_lfc"].to_numpy())[-1] / (depths[1] - depths[0])
    second = np.sort(np.abs(np.linalg.eigvals(W)))[-2]
    return float(measured), float(np.log(second))
