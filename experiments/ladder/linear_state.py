"""P6: one affine operator a layer on the state, fixed by calibration, from X_0 alone.

X_hat_{l+1} = B_{l+1} + (X_hat_l - B_hat_l) M_l, with B the calibration mean of each position. M_l
[d, d] is refitted to the propagated calibration states, so that errors made below are seen when the
next layer is fitted. What the linear state cannot carry is put back as energy: log ||HFC|| and
log ||LFC|| are those of X_hat with the calibration mean of the missing energy added, and the
changes are read off their logs over all layers by ridge. No part of the model is evaluated on the
held-out image.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.ladder.recording import Recording
from oversmoothing.experiments.ladder.regression import Predictor, ridge
from oversmoothing.theory.support.arrays import Array
from oversmoothing.theory.support.errors import InputError

PENALTY = 1e-2  # of the mean diagonal of the Gram matrix
PARTS = 50  # images at a time


@dataclass(frozen=True)
class LinearState:
    """means [layers + 1, n, d]: B (row 0: of X_0); centres [layers, n, d]: B_hat; maps [layers, d,
    d]: M; missing [layers + 1, 2]: energy that the linear state lacks, of HFC and of LFC."""

    means: Tensor
    centres: Tensor
    maps: Tensor
    missing: Array
    read: Predictor

    @classmethod
    def fit(cls, calibration: Recording) -> LinearState:
        """Fit to calibration images. Raises `InputError` where their states were not kept."""
        states = calibration.states
        if states is None:
            raise InputError("P6 is fitted to calibration states: record with states=True")
        X = calibration.start
        truth = np.exp(2 * calibration.logs)
        means, centres, maps = [X.mean(0)], [], []
        missing = [np.zeros(2)]
        logs = [calibration.logs[:, 0]]
        for number in range(len(states) - 1):
            centre, target = X.mean(0), states[number + 1].mean(0)
            M = _fit(X, states[number + 1], centre, target)
            X = torch.cat([_step(x, centre, M, target) for x in torch.split(X, PARTS)])
            found = energies(X)
            lacking = np.maximum((truth[:, number + 1] - found).mean(0), 0.0)
            centres.append(centre)
            maps.append(M)
            means.append(target)
            missing.append(lacking)
            logs.append(half_logs(found + lacking))
        read = ridge(np.concatenate(logs, axis=1), calibration.change)
        return cls(
            torch.stack(means), torch.stack(centres), torch.stack(maps), np.stack(missing), read
        )

    def logs(self, start: Tensor) -> Array:
        """(log ||HFC||_F, log ||LFC||_F) of the propagated states with the missing energy put back,
        [m, 2 (layers + 1)], from X_0 [m, n, d] alone."""
        found = []
        for X in torch.split(start, PARTS):
            rows = [half_logs(energies(X))]
            for number, M in enumerate(self.maps):
                X = _step(X, self.centres[number], M, self.means[number + 1])
                rows.append(half_logs(energies(X) + self.missing[number + 1]))
            found.append(np.concatenate(rows, axis=1))
        return np.concatenate(found)

    def predict(self, start: Tensor) -> Array:
        """Changes of log HFC/LFC [m, layers] from X_0 [m, n, d]."""
        return self.read(self.logs(start))

    def cost(self) -> int:
        """Multiply-adds for one image: the maps, the energies and the reading."""
        layers, n, d = self.centres.shape
        return layers * n * d * d + (layers + 1) * 2 * n * d + 2 * (layers + 1) * layers


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


def energies(X: Tensor) -> Array:
    """(||HFC||^2, ||LFC||^2) of X [m, n, d]: [m, 2]."""
    mean = X.mean(1, keepdim=True)
    hfc = (X - mean).square().sum((1, 2))
    lfc = X.shape[1] * mean.square().sum((1, 2))
    found: Array = torch.stack([hfc, lfc], dim=-1).double().numpy()
    return found


def half_logs(energies: Array) -> Array:
    found: Array = np.log(np.maximum(energies, 1e-300)) / 2
    return found
