"""P6: fixed affine operators on the state, one a layer, from X_0 alone.

P6 itself: X_hat_{l+1} = B_{l+1} + (X_hat_l - B_hat_l) M_l, with B the calibration mean of each
position. M_l [d, d] is refitted to the propagated calibration states, so that errors made below are
seen when the next layer is fitted. What the linear state cannot carry is put back as energy:
log ||HFC|| and log ||LFC|| are those of X_hat with the calibration mean of the missing energy
added, and the changes are read off their logs over all layers by ridge. No part of the model is
evaluated on the held-out image.

P6 lifted: each token's content x = x_0 - (its position's calibration mean) is lifted to
z = (x, relu(x G + g)) with random directions G, g drawn once (random features, Rahimi and Recht
2007), and centred by position. The state is then linear in z, layer by layer:

    X_hat_l[i] = B_l[i] + z_i M_l + z_mean R_l,      CLS rows: B_l + z_mean R_l,

with B the calibration mean of each position, z_mean the mean over the image's tokens, and M_l, R_l
fitted by ridge to calibration states (as T1's operator, the only mixing of tokens being their
mean). On (z, X_hat) these are linear operators, one a layer, that leave z as it is.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.ladder.recording import Recording
from oversmoothing.experiments.ladder.regression import ridge
from oversmoothing.theory.support.sizes import Array

PENALTY = 1e-2  # of the mean diagonal of the Gram matrix
PARTS = 50  # images at a time
FUNCTIONS = 1024  # random functions of a token
LIFTED_DIRECTIONS = 64  # principal directions of the contents that they see
SPREAD = 2.0  # standard deviation of x G, where g has 1
LIFTED_PENALTY = 1e-3  # of each feature's mean square
FLOOR = 1e-6  # of the mean of these: features that never vary
IMAGE_PENALTIES = tuple(10.0**k for k in range(1, 6))
# X_0 [m, n, d] alone -> X_hat_1 ... X_hat_L, each [m, n, d].
States = Callable[[Tensor], list[Tensor]]


class PropagatedState:
    """P6; operations: multiply-adds of the states. What is missing [layers + 1, 2], the energy of
    HFC and of LFC that the states lack in the mean, and the reading are fitted to calibration."""

    def __init__(self, states: States, operations: int, calibration: Recording) -> None:
        self.states, self.operations = states, operations
        energies = _energies(states, calibration.start)
        self.missing = np.maximum((np.exp(2 * calibration.logs) - energies).mean(0), 0.0)
        self.missing[0] = 0.0
        self.shape = calibration.start.shape[1:]
        self.read = ridge(_half_logs(energies + self.missing), calibration.change)

    def logs(self, start: Tensor) -> Array:
        """(log ||HFC||_F, log ||LFC||_F) of X_0 and of the propagated states with the missing
        energy put back, [m, 2 (layers + 1)], from X_0 [m, n, d] alone."""
        return _half_logs(_energies(self.states, start) + self.missing)

    def predict(self, start: Tensor) -> Array:
        """Changes of log HFC/LFC [m, layers] from X_0 [m, n, d]."""
        return self.read(self.logs(start))

    def cost(self) -> int:
        """Multiply-adds for one image: the states, their energies and the reading."""
        layers, (n, d) = len(self.missing) - 1, self.shape
        return self.operations + (layers + 1) * 2 * n * d + 2 * (layers + 1) * layers


def linear_state(calibration: Recording) -> PropagatedState:
    """Fit to calibration images and their states; means: B, centres: B_hat, maps: M."""
    known, X = calibration.states, calibration.start
    assert known is not None
    means, centres, maps = known[1:].mean(1), [], []
    for after, mean in zip(known[1:], means, strict=True):
        centres.append(X.mean(0))
        maps.append(_fit(X, after, centres[-1], mean))
        X = torch.cat([mean + (x - centres[-1]) @ maps[-1] for x in torch.split(X, PARTS)])

    def states(start: Tensor) -> list[Tensor]:
        states = [start]
        for centre, M, mean in zip(centres, maps, means, strict=True):
            states.append(mean + (states[-1] - centre) @ M)
        return states[1:]

    return PropagatedState(states, means.numel() * X.shape[-1], calibration)


def _fit(X: Tensor, Y: Tensor, centre: Tensor, target: Tensor) -> Tensor:
    d = X.shape[-1]
    gram, cross = torch.zeros(2, d, d, dtype=torch.float64)
    for x, y in zip(torch.split(X, PARTS), torch.split(Y, PARTS), strict=True):
        rows = (x - centre).flatten(0, 1)
        gram += (rows.T @ rows).double()
        cross += (rows.T @ (y - target).flatten(0, 1)).double()
    size = float(gram.diagonal().mean())
    if size == 0:  # one image, or all alike: nothing to learn from
        return torch.zeros(d, d)
    M: Tensor = torch.linalg.solve(gram + PENALTY * size * torch.eye(d), cross).float()
    return M


def _energies(states: States, start: Tensor) -> Array:
    """(||HFC||^2, ||LFC||^2) of X_0 [m, n, d] and of the states from it, [m, layers + 1, 2]."""
    parts = []
    for X in torch.split(start, PARTS):
        energies = []
        for Y in (X, *states(X)):
            mean = Y.mean(1, keepdim=True)
            hfc = (Y - mean).square().sum((1, 2))
            energies.append(torch.stack([hfc, Y.shape[1] * mean.square().sum((1, 2))], dim=-1))
        parts.append(torch.stack(energies, dim=1))
    return torch.cat(parts).double().numpy()


def _half_logs(energies: Array) -> Array:
    """log of the square roots, [m, 2 (layers + 1)]."""
    logs: Array = np.log(np.maximum(energies, 1e-300)) / 2
    return logs.reshape(len(logs), -1)


class Lift:
    """Functions drawn for tokens X_0 [m, n, d]: place [n, d], the mean of each position; G [d, K],
    g [K]; centre [n, d + K]: of z."""

    def __init__(self, start: Tensor, functions: int, seed: int) -> None:
        self.place = start.mean(0)
        d = start.shape[-1]
        covariance = torch.zeros(d, d, dtype=torch.float64)
        for X in torch.split(start - self.place, PARTS):
            rows = X.flatten(0, 1)
            covariance += (rows.T @ rows).double()
        variance, directions = torch.linalg.eigh(covariance / (len(start) * start.shape[1]))
        k = min(LIFTED_DIRECTIONS, d)
        random = torch.Generator().manual_seed(seed)
        G = torch.randn(k, functions, generator=random)
        self.g = torch.randn(functions, generator=random)
        size = float(variance.flip(0)[:k].clamp_min(0).sum()) ** 0.5
        self.G = directions.flip(1)[:, :k].float() @ G * (SPREAD / size if size else 0.0)
        self.centre = torch.zeros(start.shape[1], d + functions)
        sums = [self(X).sum(0) for X in torch.split(start, PARTS)]
        self.centre = torch.stack(sums).sum(0) / len(start)

    def __call__(self, start: Tensor) -> Tensor:
        """z [m, n, d + K] of X_0 [m, n, d]."""
        content = start - self.place
        return torch.cat([content, torch.relu(content @ self.G + self.g)], dim=-1) - self.centre


def lifted_state(
    calibration: Recording, prefix: int = 0, *, functions: int = FUNCTIONS, seed: int = 0
) -> PropagatedState:
    """Fit to calibration images and their states; prefix: tokens in front that hold no content of
    their own. means: B, maps: M, image: R, [d + K] to the shift of the ordinary tokens [d] and of
    each prefix token (CLS) [prefix d]."""
    known, start = calibration.states, calibration.start
    assert known is not None
    m, _, d = start.shape
    layers = len(known) - 1
    lift = Lift(start, functions, seed)
    size = d + functions
    means = known[1:].mean(1)
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
            Y = known[number + 1, first : first + PARTS, prefix:] - means[number, prefix:]
            part = (rows.T @ (Y - Y.mean(1, keepdim=True)).flatten(0, 1)).double()
            cross[:, number * d : (number + 1) * d] += part
    diagonal = gram.diagonal()
    floor = max(FLOOR * float(diagonal.mean()), 1e-300)
    gram += LIFTED_PENALTY * torch.diag(diagonal.clamp_min(floor))
    maps = torch.linalg.solve(gram, cross).float().reshape(size, layers, d).transpose(0, 1)
    maps, mean = maps.contiguous(), torch.cat(over)
    image = []
    for after, B, M in zip(known[1:], means, maps, strict=True):
        Y = after - B
        left = Y[:, prefix:].mean(1) - mean @ M
        target = torch.cat([left, Y[:, :prefix].flatten(1)], dim=1)
        image.append(ridge(mean.double().numpy(), target.double().numpy(), IMAGE_PENALTIES))

    def states(start: Tensor) -> list[Tensor]:
        z = lift(start)[:, prefix:]
        mean, states = z.mean(1).double().numpy(), []
        for B, M, own in zip(means, maps, image, strict=True):
            shift = torch.from_numpy(own(mean)).float()
            front = shift[:, d:].reshape(len(shift), prefix, d)
            states.append(B + torch.cat([front, z @ M + shift[:, None, :d]], dim=1))
        return states

    # Of every ordinary token, of their mean, and of that once more for each prefix token.
    cost = len(lift.place) * lift.G.numel() + maps.numel() * (means.shape[1] + 1)
    return PropagatedState(states, cost, calibration)
