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

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.ladder.linear_state import PARTS, energies, half_logs
from oversmoothing.experiments.ladder.recording import Recording
from oversmoothing.experiments.ladder.regression import Predictor, ridge
from oversmoothing.theory.support.arrays import Array
from oversmoothing.theory.support.errors import InputError

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
class LiftedState:
    """means [layers, n, d]: B; maps [layers, d + K, d]: M; image: R, [d + K] to the shift of the
    ordinary tokens [d] and of each prefix token (CLS) [prefix d], a layer; missing [layers, 2]."""

    lift: Lift
    prefix: int
    means: Tensor
    maps: Tensor
    image: tuple[Predictor, ...]
    missing: Array
    read: Predictor

    @classmethod
    def fit(
        cls, calibration: Recording, prefix: int = 0, *, functions: int = FUNCTIONS, seed: int = 0
    ) -> LiftedState:
        """Fit to calibration images; prefix: tokens in front that hold no content of their own.

        Raises `InputError` where their states were not kept.
        """
        states = calibration.states
        if states is None:
            raise InputError("P6 is fitted to calibration states: record with states=True")
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
        for number in range(layers):
            Y = states[number + 1] - means[number]
            left = Y[:, prefix:].mean(1) - mean @ maps[number]
            target = torch.cat([left, Y[:, :prefix].flatten(1)], dim=1)
            image.append(ridge(_numbers(mean), _numbers(target), IMAGE_PENALTIES))
        bare = cls(
            lift, prefix, means, maps.contiguous(), tuple(image), np.zeros((layers, 2)), _unread
        )
        found = bare._energies(start)
        truth = np.exp(2 * calibration.logs)
        missing = np.maximum((truth - found).mean(0), 0.0)[1:]
        whole = replace(bare, missing=missing)
        return replace(whole, read=ridge(whole._logs(found), calibration.change))

    def states(self, start: Tensor) -> Tensor:
        """X_hat_1 ... X_hat_L [layers, m, n, d] from X_0 [m, n, d] alone."""
        d = start.shape[-1]
        z = self.lift(start)[:, self.prefix :]
        mean = z.mean(1)
        found = []
        for B, M, image in zip(self.means, self.maps, self.image, strict=True):
            shift = torch.from_numpy(image(_numbers(mean))).float()
            tokens = z @ M + shift[:, None, :d]
            front = shift[:, d:].reshape(len(shift), self.prefix, d)
            found.append(B + torch.cat([front, tokens], dim=1))
        return torch.stack(found)

    def logs(self, start: Tensor) -> Array:
        """(log ||HFC||_F, log ||LFC||_F) of X_0 and of the propagated states with the missing
        energy put back, [m, 2 (layers + 1)], from X_0 [m, n, d] alone."""
        return self._logs(self._energies(start))

    def predict(self, start: Tensor) -> Array:
        """Changes of log HFC/LFC [m, layers] from X_0 [m, n, d]."""
        return self.read(self.logs(start))

    def cost(self) -> int:
        """Multiply-adds for one image: the lift, the maps, the energies and the reading."""
        layers, n, d = self.means.shape
        size = self.maps.shape[1]
        image = layers * size * d * (1 + self.prefix)
        moved = layers * (n - self.prefix) * size * d
        return (
            self.lift.cost() + moved + image + (layers + 1) * 2 * n * d + 2 * (layers + 1) * layers
        )

    def _energies(self, start: Tensor) -> Array:
        """(||HFC||^2, ||LFC||^2) of X_0 and of the propagated states, [m, layers + 1, 2]."""
        parts = []
        for X in torch.split(start, PARTS):
            each = [energies(X), *(energies(Y) for Y in self.states(X))]
            parts.append(np.stack(each, axis=1))
        return np.concatenate(parts)

    def _logs(self, found: Array) -> Array:
        whole = found.copy()
        whole[:, 1:] += self.missing
        return half_logs(whole).reshape(len(found), -1)


def _numbers(X: Tensor) -> Array:
    found: Array = X.double().numpy()
    return found


def _unread(_: Array) -> Array:
    raise AssertionError("the reading is fitted last")
