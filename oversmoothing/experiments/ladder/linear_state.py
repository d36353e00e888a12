"""P6: one affine operator a layer on the state, fixed by calibration, from X_0 alone.

X_hat_{l+1} = B_{l+1} + (X_hat_l - B_hat_l) M_l, with B the calibration mean of each position. M_l
[d, d] is refitted to the propagated calibration states, so that errors made below are seen when the
next layer is fitted. What the linear state cannot carry is put back as energy: log ||HFC|| and
log ||LFC|| are those of X_hat with the calibration mean of the missing energy added, and the
changes are read off their logs over all layers by ridge. No part of the model is evaluated on the
held-out image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.ladder.recording import Recording
from oversmoothing.experiments.ladder.regression import Predictor, ridge
from oversmoothing.theory.support.sizes import Array

PENALTY = 1e-2  # of the mean diagonal of the Gram matrix
PARTS = 50  # images at a time


class Operators(Protocol):
    """Fixed operators, one a layer."""

    def states(self, start: Tensor) -> Sequence[Tensor]:
        """X_hat_1 ... X_hat_L, each [m, n, d], from X_0 [m, n, d] alone."""

    def cost(self) -> int:
        """Multiply-adds of these states for one image."""


@dataclass(frozen=True)
class PropagatedState:
    """The fitted P6; shape (layers, n, d); missing [layers + 1, 2]: energy of HFC and of LFC that
    the propagated states lack in the calibration mean."""

    operators: Operators
    shape: tuple[int, int, int]
    missing: Array
    read: Predictor

    @classmethod
    def fit(
        cls, operators: Operators, calibration: Recording, *, recorded_start: bool = False
    ) -> PropagatedState:
        """Fit what is missing and the reading to calibration images; recorded_start: to the logs
        of X_0 as they were recorded in binary64, not to those of its energies in float32."""
        found = _energies(operators, calibration.start)
        missing = np.maximum((np.exp(2 * calibration.logs) - found).mean(0), 0.0)
        missing[0] = 0.0
        _, n, d = calibration.start.shape
        logs = _half_logs(found + missing)
        if recorded_start:
            logs[:, :2] = calibration.logs[:, 0]
        read = ridge(logs, calibration.change)
        return cls(operators, (len(missing) - 1, n, d), missing, read)

    def logs(self, start: Tensor) -> Array:
        """(log ||HFC||_F, log ||LFC||_F) of X_0 and of the propagated states with the missing
        energy put back, [m, 2 (layers + 1)], from X_0 [m, n, d] alone."""
        return _half_logs(_energies(self.operators, start) + self.missing)

    def predict(self, start: Tensor) -> Array:
        """Changes of log HFC/LFC [m, layers] from X_0 [m, n, d]."""
        return self.read(self.logs(start))

    def cost(self) -> int:
        """Multiply-adds for one image: the states, their energies and the reading."""
        layers, n, d = self.shape
        return self.operators.cost() + (layers + 1) * 2 * n * d + 2 * (layers + 1) * layers


@dataclass(frozen=True)
class LinearMaps:
    """means [layers, n, d]: B; centres [layers, n, d]: B_hat; maps [layers, d, d]: M."""

    means: Tensor
    centres: Tensor
    maps: Tensor

    def states(self, start: Tensor) -> list[Tensor]:
        found = [start]
        for centre, M, mean in zip(self.centres, self.maps, self.means, strict=True):
            found.append(_step(found[-1], centre, M, mean))
        return found[1:]

    def cost(self) -> int:
        layers, n, d = self.centres.shape
        return layers * n * d * d


def linear_state(calibration: Recording) -> PropagatedState:
    """Fit to calibration images. Raises `InputError` where their states were not kept."""
    states = calibration.kept("P6")
    X = calibration.start
    means, centres, maps = states[1:].mean(1), [], []
    for after, mean in zip(states[1:], means, strict=True):
        centres.append(X.mean(0))
        maps.append(_fit(X, after, centres[-1], mean))
        X = torch.cat([_step(x, centres[-1], maps[-1], mean) for x in torch.split(X, PARTS)])
    operators = LinearMaps(means, torch.stack(centres), torch.stack(maps))
    return PropagatedState.fit(operators, calibration, recorded_start=True)


def _fit(X: Tensor, Y: Tensor, centre: Tensor, target: Tensor) -> Tensor:
    d = X.shape[-1]
    gram = torch.zeros(d, d, dtype=torch.float64)
    cross = torch.zeros(d, d, dtype=torch.float64)
    for x, y in zip(torch.split(X, PARTS), torch.split(Y, PARTS), strict=True):
        rows = (x - centre).flatten(0, 1)
        gram += (rows.T @ rows).double()
        cross += (rows.T @ (y - target).flatten(0, 1)).double()
    size = float(gram.diagonal().mean())
    if size == 0:  # one image, or all alike: nothing to learn from
        return torch.zeros(d, d)
    found: Tensor = torch.linalg.solve(gram + PENALTY * size * torch.eye(d), cross).float()
    return found


def _step(X: Tensor, centre: Tensor, M: Tensor, target: Tensor) -> Tensor:
    return target + (X - centre) @ M


def _energies(operators: Operators, start: Tensor) -> Array:
    """(||HFC||^2, ||LFC||^2) of X_0 [m, n, d] and of the states from it, [m, layers + 1, 2]."""
    parts = []
    for X in torch.split(start, PARTS):
        found = []
        for Y in (X, *operators.states(X)):
            mean = Y.mean(1, keepdim=True)
            hfc = (Y - mean).square().sum((1, 2))
            found.append(torch.stack([hfc, Y.shape[1] * mean.square().sum((1, 2))], dim=-1))
        parts.append(torch.stack(found, dim=1))
    return torch.cat(parts).double().numpy()


def _half_logs(energies: Array) -> Array:
    """log of the square roots, [m, 2 (layers + 1)]."""
    found: Array = np.log(np.maximum(energies, 1e-300)) / 2
    return found.reshape(len(found), -1)
