"""What the tokens that are not followed contribute to attention: an affine environment.

The normalised tokens in front of layer l are taken as N_j = mean_j + phi_j B_l + sum_k S_jk r_k:
phi are features of a known earlier state (rank r, the same for all layers), B_l is fitted by least
squares and S interpolates the residuals r_k at the followed tokens (the landmarks) to all others,
as the best linear predictor from the residuals' covariance over calibration images.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from oversmoothing.experiments.models.model import Heads

RIDGE = 1e-3
NOISE = 1e-2  # of the mean residual variance, in the interpolation


@dataclass(frozen=True)
class Surroundings:
    """One layer: mean [c, d], B [r, d], S [c, k] with unit rows at the k landmarks."""

    mean: Tensor
    B: Tensor
    S: Tensor

    def __call__(self, phi: Tensor, landmarks: Tensor, N: Tensor) -> Tensor:
        """Normalised context tokens [b, c, d] from phi [b, c, r] and the landmarks' own N [b, k,
        d], which are kept as they are; landmarks [k] are their places among the c."""
        plain = self.mean + phi @ self.B
        return plain + self.S @ (N - plain[:, landmarks])


@dataclass(frozen=True)
class Environment:
    """centre [c, p] and size [p] of the raw features and the reduction [p, r] to phi; one
    `Surroundings` a layer."""

    centre: Tensor
    size: Tensor
    reduction: Tensor
    layers: tuple[Surroundings, ...]

    def phi(self, features: Tensor) -> Tensor:
        """phi [b, c, r] of raw features [b, c, p]."""
        return (features - self.centre) / self.size @ self.reduction

    @classmethod
    def fit(
        cls, features: Tensor, targets: list[Tensor], landmarks: Tensor, rank: int
    ) -> Environment:
        """Fit to calibration: features [m, c, p], targets of each layer N [m, c, d].

        The reduction keeps the `rank` directions of the features that explain the targets of all
        layers best (reduced-rank regression).
        """
        centre = features.mean(0)
        size = (features - centre).square().mean((0, 1)).sqrt().clamp_min(1e-12)
        F = (features - centre) / size
        rows = F.flatten(0, 1).double()
        gram = rows.T @ rows / len(rows) + RIDGE * torch.eye(F.shape[-1], dtype=torch.float64)
        solved = []
        for N in targets:
            Y = (N - N.mean(0)).flatten(0, 1).double()
            scale = Y.std().clamp_min(1e-12)
            solved.append(torch.linalg.solve(gram, rows.T @ Y / len(rows)) / scale)
        L = torch.linalg.cholesky(gram)
        U, _, _ = torch.linalg.svd(L.T @ torch.cat(solved, dim=1), full_matrices=False)
        reduction = torch.linalg.solve_triangular(L.T, U[:, :rank], upper=True).float()
        phi = F @ reduction
        # Orthonormal under the ridged Gram matrix; the projection is taken anew without it.
        thin = phi.flatten(0, 1).double()
        small = thin.T @ thin / len(thin) + RIDGE * torch.eye(thin.shape[1], dtype=torch.float64)
        layers = []
        for N in targets:
            mean = N.mean(0)
            cross = thin.T @ (N - mean).flatten(0, 1).double() / len(thin)
            B = torch.linalg.solve(small, cross).float()
            S = _interpolation(N - mean - phi @ B, landmarks)
            layers.append(Surroundings(mean, B, S))
        return cls(centre, size, reduction, tuple(layers))

    def cost(self, queries: int, followed: int, heads: Heads) -> int:
        """Multiply-adds of attending to the environment in one layer, never forming its keys:
        logits q.(mean W_K) + (q W_K^T B^T) phi^T + (q . residual keys) S^T, and values alike."""
        c = len(self.layers[0].mean)
        r, k = self.reduction.shape[1], followed
        own = heads.width * (c + r + k)
        return 2 * queries * heads.number * (own + c * (r + k))


def _interpolation(residual: Tensor, landmarks: Tensor) -> Tensor:
    flat = residual.transpose(0, 1).flatten(1).double()
    C = flat @ flat.T
    within = C[landmarks][:, landmarks]
    noise = NOISE * C.diagonal().mean().clamp_min(1e-300)
    S = torch.linalg.solve(within + noise * torch.eye(len(landmarks)).double(), C[landmarks]).T
    S = S.float()
    S[landmarks] = torch.eye(len(landmarks))
    found: Tensor = S
    return found
