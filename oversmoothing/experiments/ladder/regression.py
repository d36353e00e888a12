"""What the regressions read and how they are fitted: features of a state, ridge, kernel ridge.

Penalties are chosen inside the calibration set. P0'' and P0''' read features of X_0, P7 also those
of states of landmarks, whose context is predicted by reduced-rank regression (`Environment`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist, pdist
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from oversmoothing.experiments.ladder.recording import log_ratio
from oversmoothing.experiments.models.model import Heads
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

Predictor = Callable[[Array], Array]

RIDGE_PENALTIES = tuple(10.0**k for k in range(-3, 6))
KERNEL_SCALES = (2.0, 8.0, 32.0)
KERNEL_PENALTIES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
FOLDS = 5
DIRECTIONS = 20
VALUES = 40  # singular values
PARTS = 100  # images at a time
RIDGE = 1e-3
NOISE = 1e-2  # of the mean residual variance, in the interpolation


def ridge(X: Array, Y: Array, penalties: tuple[float, ...] = RIDGE_PENALTIES) -> Predictor:
    """Ridge regression of Y [m, t] on X [m, p] (standardised); for each target the penalty of the
    least leave-one-out error, exactly. Raises `InputError` for fewer than two observations."""
    if len(X) < 2:
        raise InputError(f"{len(X)} observations cannot be regressed: give at least 2")
    fitted = make_pipeline(
        StandardScaler(), RidgeCV(np.array(penalties), alpha_per_target=Y.shape[1] > 1)
    ).fit(X, Y)
    return lambda Z: fitted.predict(Z).reshape(len(Z), -1)


@dataclass(frozen=True)
class Features:
    """Features [m, p] of one kind and their weight in the kernel's squared distance."""

    values: Array
    weight: float = 1.0


def kernel_ridge(
    blocks: list[Features], Y: Array, targets: list[Features], sources: NDArray[np.int_], *,
    scales: tuple[float, ...] = KERNEL_SCALES, penalties: tuple[float, ...] = KERNEL_PENALTIES,
) -> Array:  # fmt: skip
    """Kernel ridge predictions [q, t] at `targets` (the same blocks at q other points).

    Kernel exp(-D / (scale median D)), D the sum over blocks of weight^2 times the mean squared
    difference of standardised features. Scale and penalty are chosen for each target by FOLDS-fold
    cross-validation. sources [m]: the image each of the m observations came from: altered copies
    of one image stay in one fold, and only the first observation of each source counts in the
    error.
    """
    X, Z = _scaled(blocks, targets)
    original = np.zeros(len(X), dtype=bool)
    original[np.unique(sources, return_index=True)[1]] = True
    median = float(np.median(pdist(X[original], "sqeuclidean"))) if original.sum() > 1 else 1.0
    median = median if median > 0 else 1.0
    # Consecutive ranks and not the numbers themselves: no fold is empty unless images are few.
    rank = np.searchsorted(np.unique(sources), sources)
    folds = rank % min(FOLDS, int(original.sum()))
    D, E = (cdist(points, X, "sqeuclidean") / median for points in (X, Z))
    means = Y[original].mean(0)
    choices = [(scale, penalty) for scale in scales for penalty in penalties]
    errors = np.zeros((len(choices), Y.shape[1]))
    for k, (scale, penalty) in enumerate(choices):
        K = np.exp(-D / scale)
        for fold in np.unique(folds):
            test = (folds == fold) & original
            train = folds != fold
            if not train.any():
                continue
            weights = _solve(K[np.ix_(train, train)], penalty, Y[train] - means)
            errors[k] += np.square(K[np.ix_(test, train)] @ weights + means - Y[test]).sum(0)
    best = np.argmin(errors, axis=0)
    predicted = np.empty((len(Z), Y.shape[1]))
    for k in np.unique(best):
        scale, penalty = choices[k]
        weights = _solve(np.exp(-D / scale), penalty, Y - means)
        chosen = best == k
        predicted[:, chosen] = (np.exp(-E / scale) @ weights + means)[:, chosen]
    return predicted


def kernel_cost(blocks: list[Features], observations: int, targets: int) -> int:
    """Multiply-adds of one prediction: distances to and sums over the observations."""
    features = sum(int(block.values.shape[1]) for block in blocks)
    return observations * (features + targets)


def _solve(K: Array, penalty: float, Y: Array) -> Array:
    factor = cho_factor(K + penalty * np.eye(len(K)), check_finite=False)
    weights: Array = cho_solve(factor, Y, check_finite=False)
    return weights


def _scaled(blocks: list[Features], targets: list[Features]) -> tuple[Array, Array]:
    left, right = [], []
    for block, target in zip(blocks, targets, strict=True):
        # Of standard deviations; a constant counts for nothing.
        sd = block.values.std(0)
        varies = sd > 1e-12 * (np.abs(block.values).max(0) + 1e-300)
        factor = block.weight / (np.where(varies, sd, 1.0) * block.values.shape[1] ** 0.5)
        left.append((block.values - block.values.mean(0)) * factor)
        right.append((target.values - block.values.mean(0)) * factor)
    return np.concatenate(left, axis=1), np.concatenate(right, axis=1)


def spectral_statistics(X: Tensor) -> Array:
    """A few statistics of each state X [m, n, d], [m, at most 5] float64.

    log HFC/LFC, the log of ||HFC||_F, the effective rank of HFC, the share of its first singular
    value and the log ratio of the second to the first. Fewer for states of fewer columns or tokens.
    """
    rows = []
    for part in torch.split(X, PARTS):
        Y = part.double()
        sigma = torch.linalg.svdvals(Y - Y.mean(-2, keepdim=True)).clamp_min(1e-300)
        share = sigma / sigma.sum(-1, keepdim=True)
        columns = [log_ratio(part), torch.linalg.vector_norm(sigma, dim=-1).log()]
        if sigma.shape[-1] > 2:
            columns += [torch.special.entr(share).sum(-1).exp(), share[:, 0]]
            columns += [(sigma[:, 1] / sigma[:, 0]).log()]
        rows.append(torch.stack(columns, dim=-1))
    return torch.cat(rows).numpy()


def singular_value_cost(n: int, d: int) -> int:
    """Multiply-adds of the singular values of an [n, d] state: its Gram matrix and their cube."""
    return min(n, d) * n * d + min(n, d) ** 3


class StateFeatures:
    """Two blocks of features in bases fixed by calibration states X [m, n, d].

    content: each position's mean is subtracted first, so that only what differs from image to image
    is described. weights [n]: of the tokens (None: equal). energy_basis [d, k]: principal
    directions of the tokens around their image's mean; mean_basis [d, k]: of the images' means
    around `mean` [d], fewer than there are images, since what lies beyond is rounding.
    """

    def __init__(self, X: Tensor, *, content: bool = False, weights: Tensor | None = None) -> None:
        n, k = X.shape[1], min(DIRECTIONS, X.shape[2])
        weights = torch.full((n,), 1 / n) if weights is None else weights / weights.sum()
        self.place = X.mean(0) if content else torch.zeros(())
        self.weights, Y = weights, X - self.place
        m = torch.einsum("n,mnd->md", weights, Y)
        Y = (Y - m[:, None]).flatten(0, 1)
        self.mean = m.mean(0)
        self.energy_basis = principal_directions(Y * weights.sqrt().repeat(len(X))[:, None], k)
        self.mean_basis = principal_directions(m - self.mean, min(k, len(X) - 1))

    def __call__(self, X: Tensor) -> list[Features]:
        """[log energies along the directions, coordinates of the mean row] of X [m, n, d]."""
        Y = X - self.place
        m = torch.einsum("n,mnd->md", self.weights, Y)
        along = (Y - m[:, None]) @ self.energy_basis
        energy = torch.einsum("n,mnk->mk", self.weights, along.square()).double()
        # A floor at rounding size of the whole: an empty direction must not give -inf.
        floor = 1e-12 * energy.sum(-1, keepdim=True) + 1e-300
        return [
            Features((energy + floor).log().numpy()),
            Features(((m - self.mean) @ self.mean_basis).double().numpy()),
        ]

    def cost(self, tokens: int) -> int:
        """Multiply-adds for one image: projections of the tokens and of the mean."""
        d, k = self.energy_basis.shape
        return tokens * d * (k + 1) + d * k


def principal_directions(Y: Tensor, k: int) -> Tensor:
    """The k leading principal directions [d, k] of rows Y [m, d]."""
    _, V = torch.linalg.eigh((Y.T @ Y).double())
    leading: Tensor = V.flip(1)[:, :k].to(Y.dtype)
    return leading


def start_features(start: Tensor) -> tuple[Callable[[Tensor], list[Features]], int]:
    """(the blocks of P0''', multiply-adds of them), fitted to X_0 [m, n, d]: principal energies and
    means, with and without each position's calibration mean, and the logs of the leading singular
    values of HFC."""
    n, d = start.shape[1:]
    content, whole = StateFeatures(start, content=True), StateFeatures(start)

    def features(start: Tensor) -> list[Features]:
        rows = []
        for X in map(Tensor.double, torch.split(start, PARTS)):
            sigma = torch.linalg.svdvals(X - X.mean(1, keepdim=True))
            floor = 1e-12 * sigma[:, :1] + 1e-300
            rows.append((sigma[:, :VALUES] + floor).log())
        return [*content(start), *whole(start), Features(torch.cat(rows).numpy())]

    return features, content.cost(n) + whole.cost(n) + singular_value_cost(n, d)


class Environment:
    """What the tokens that are not followed contribute to attention, affinely.

    The normalised tokens in front of layer l are taken as
    N_j = mean_j + phi_j B_l + sum_k S_jk r_k: phi are features of a known earlier state (rank r,
    the same for all layers), B_l is fitted by least squares and S interpolates the residuals r_k at
    the followed tokens (the landmarks) to all others, as the best linear predictor from the
    residuals' covariance over calibration images. centre [c, p] and size [p] of the raw features,
    reduction [p, r] to phi; of each layer (mean [c, d], B [r, d], S [c, k] with unit rows at the k
    landmarks).
    """

    def __init__(
        self, features: Tensor, targets: list[Tensor], landmarks: Tensor, rank: int
    ) -> None:
        """Fit to calibration: features [m, c, p], targets of each layer N [m, c, d]; kept are the
        `rank` directions of the features that explain all targets best (reduced-rank regression).
        """
        self.centre = features.mean(0)
        self.size = (features - self.centre).square().mean((0, 1)).sqrt().clamp_min(1e-12)
        F = (features - self.centre) / self.size
        rows = F.flatten(0, 1).double()
        gram = rows.T @ rows / len(rows) + RIDGE * torch.eye(F.shape[-1], dtype=torch.float64)
        solved = []
        for N in targets:
            Y = (N - N.mean(0)).flatten(0, 1).double()
            scale = Y.std().clamp_min(1e-12)
            solved.append(torch.linalg.solve(gram, rows.T @ Y / len(rows)) / scale)
        L = torch.linalg.cholesky(gram)
        U, _, _ = torch.linalg.svd(L.T @ torch.cat(solved, dim=1), full_matrices=False)
        self.reduction: Tensor = torch.linalg.solve_triangular(L.T, U[:, :rank], upper=True).float()
        phi = F @ self.reduction
        # Orthonormal under the ridged Gram matrix; the projection is taken anew without it.
        thin = phi.flatten(0, 1).double()
        small = thin.T @ thin / len(thin) + RIDGE * torch.eye(thin.shape[1], dtype=torch.float64)
        self.layers: list[tuple[Tensor, Tensor, Tensor]] = []
        for N in targets:
            mean = N.mean(0)
            cross = thin.T @ (N - mean).flatten(0, 1).double() / len(thin)
            B = torch.linalg.solve(small, cross).float()
            self.layers.append((mean, B, _interpolation(N - mean - phi @ B, landmarks)))

    def phi(self, features: Tensor) -> Tensor:
        """phi [b, c, r] of raw features [b, c, p]."""
        return (features - self.centre) / self.size @ self.reduction

    def around(self, layer: int, phi: Tensor, landmarks: Tensor, N: Tensor) -> Tensor:
        """Normalised context tokens [b, c, d] from phi [b, c, r] and the landmarks' own N [b, k,
        d], which are kept as they are; landmarks [k] are their places among the c."""
        mean, B, S = self.layers[layer]
        plain = mean + phi @ B
        return plain + S @ (N - plain[:, landmarks])

    def cost(self, queries: int, followed: int, heads: Heads) -> int:
        """Multiply-adds of attending to the environment in one layer, never forming its keys:
        logits q.(mean W_K) + (q W_K^T B^T) phi^T + (q . residual keys) S^T, and values alike."""
        c = len(self.centre)
        r, k = self.reduction.shape[1], followed
        own = heads.width * (c + r + k)
        return 2 * queries * heads.number * (own + c * (r + k))


def _interpolation(residual: Tensor, landmarks: Tensor) -> Tensor:
    flat = residual.transpose(0, 1).flatten(1).double()
    C = flat @ flat.T
    within = C[landmarks][:, landmarks]
    noise = NOISE * C.diagonal().mean().clamp_min(1e-300)
    S = torch.linalg.solve(within + noise * torch.eye(len(landmarks)).double(), C[landmarks]).T
    weights: Tensor = S.float()
    weights[landmarks] = torch.eye(len(landmarks))
    return weights
