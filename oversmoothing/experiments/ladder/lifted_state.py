"""P6 on a lifted state: fixed linear operators on X_0's tokens and fixed functions of them.

Each token's content x = x_0 - (its position's calibration mean) is lifted to z = (x, relu(x G + g))
with random directions G, g drawn once (random features, Rahimi and Recht 2007), and centred by
position. The state is then linear in z, layer by layer:

    X_hat_l[i] = B_l[i] + z_i M_l + z_mean R_l,      CLS rows: B_l + z_mean R_l,

with B the calibration mean of each position, z_mean the mean over the image's tokens, and M_l, R_l
fitted by ridge to calibration states (as T1's operator, the only mixing of tokens being their
mean). On (z, X_hat) these are linear operators, one a layer, that leave z as it is. Nothing of the
model is evaluated on the held-out image. As for `linear_state`, the missing energy is put back as
its calibration mean; the changes are read off the logs of ||HFC|| and ||LFC|| of all layers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from oversmoothing.experiments.ladder.linear_state import PARTS, PropagatedState
from oversmoothing.experiments.ladder.recording import Recording
from oversmoothing.experiments.ladder.regression import Predictor, ridge
from oversmoothing.theory.support.sizes import Array

FUNCTIONS = 1024  # random functions of a token
DIRECTIONS = 64  # principal directions of the contents that they see
SPREAD = 2.0  # standard deviation of x G, where g has 1
PENALTY = 1e-3  # of each feature's mean square
FLOOR = 1e-6  # of the mean of these: features that never vary
IMAGE_PENALTIES = tuple(10.0**k for k in range(1, 6))


@dataclass(frozen=True)
class Lift:
    """place [n, d]: mean of each position of X_0; G [d, K], g [K]; centre [n, d + K]: of z."""

    place: Tensor
    G: Tensor
    g: Tensor
    centre: Tensor

    @classmethod
    def fit(cls, start: Tensor, functions: int, seed: int) -> Lift:
        """Draw the functions for tokens X_0 [m, n, d]."""
        place = start.mean(0)
        d = start.shape[-1]
        covariance = torch.zeros(d, d, dtype=torch.float64)
        for X in torch.split(start - place, PARTS):
            rows = X.flatten(0, 1)
            covariance += (rows.T @ rows).double()
        variance, directions = torch.linalg.eigh(covariance / (len(start) * start.shape[1]))
        k = min(DIRECTIONS, d)
        random = torch.Generator().manual_seed(seed)
        G = torch.randn(k, functions, generator=random)
        g = torch.randn(functions, generator=random)
        size = float(variance.flip(0)[:k].clamp_min(0).sum()) ** 0.5
        G = directions.flip(1)[:, :k].float() @ G * (SPREAD / size if size else 0.0)
        lift = cls(place, G, g, torch.zeros(start.shape[1], d + functions))
        sums = [lift(X).sum(0) for X in torch.split(start, PARTS)]
        return replace(lift, centre=torch.stack(sums).sum(0) / len(start))

    def __call__(self, start: Tensor) -> Tensor:
        """z [m, n, d + K] of X_0 [m, n, d]."""
        content = start - self.place
        return torch.cat([content, torch.relu(content @ self.G + self.g)], dim=-1) - self.centre

    def cost(self) -> int:
        """Multiply-adds for one image."""
        return len(self.place) * self.G.numel()


@dataclass(frozen=True)
class LiftedMaps:
    """means [layers, n, d]: B; maps [layers, d + K, d]: M; image: R, [d + K] to the shift of the
    ordinary tokens [d] and of each prefix token (CLS) [prefix d], a layer."""

    lift: Lift
    prefix: int
    means: Tensor
    maps: Tensor
    image: tuple[Predictor, ...]

    def states(self, start: Tensor) -> list[Tensor]:
        d = start.shape[-1]
        z = self.lift(start)[:, self.prefix :]
        mean = _numbers(z.mean(1))
        found = []
        for B, M, image in zip(self.means, self.maps, self.image, strict=True):
            shift = torch.from_numpy(image(mean)).float()
            tokens = z @ M + shift[:, None, :d]
            front = shift[:, d:].reshape(len(shift), self.prefix, d)
            found.append(B + torch.cat([front, tokens], dim=1))
        return found

    def cost(self) -> int:
        # Of every ordinary token, of their mean, and of that once more for each prefix token.
        return self.lift.cost() + self.maps.numel() * (self.means.shape[1] + 1)


def lifted_state(
    calibration: Recording, prefix: int = 0, *, functions: int = FUNCTIONS, seed: int = 0
) -> PropagatedState:
    """Fit to calibration images; prefix: tokens in front that hold no content of their own.

    Raises `InputError` where their states were not kept.
    """
    states = calibration.kept("P6")
    start = calibration.start
    m, _, d = start.shape
    layers = len(states) - 1
    lift = Lift.fit(start, functions, seed)
    size = d + functions
    means = states[1:].mean(1)
    gram = torch.zeros(size, size, dtype=torch.float64)
    cross = torch.zeros(size, layers * d, dtype=torch.float64)
    over = []
    for first in range(0, m, PARTS):
        z = lift(start[first : first + PARTS])[:, prefix:]
        mean = z.mean(1, keepdim=True)
        over.append(mean[:, 0])
        # Within an image, so that what the mean does is left to R.
        rows = (z - mean).flatten(0, 1)
        gram += (rows.T @ rows).double()
        for number in range(layers):
            Y = states[number + 1, first : first + PARTS, prefix:] - means[number, prefix:]
            part = (rows.T @ (Y - Y.mean(1, keepdim=True)).flatten(0, 1)).double()
            cross[:, number * d : (number + 1) * d] += part
    diagonal = gram.diagonal()
    floor = max(FLOOR * float(diagonal.mean()), 1e-300)
    gram += PENALTY * torch.diag(diagonal.clamp_min(floor))
    maps = torch.linalg.solve(gram, cross).float().reshape(size, layers, d).transpose(0, 1)
    mean = torch.cat(over)
    image = []
    for after, B, M in zip(states[1:], means, maps, strict=True):
        Y = after - B
        left = Y[:, prefix:].mean(1) - mean @ M
        target = torch.cat([left, Y[:, :prefix].flatten(1)], dim=1)
        image.append(ridge(_numbers(mean), _numbers(target), IMAGE_PENALTIES))
    operators = LiftedMaps(lift, prefix, means, maps.contiguous(), tuple(image))
    return PropagatedState.fit(operators, calibration)


def _numbers(X: Tensor) -> Array:
    return X.double().numpy()
