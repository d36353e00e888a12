"""Numbers that describe a state: what the regressions on X_0 (P0'', P0''') and P7 read."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from oversmoothing.experiments.ladder.recording import log_ratio
from oversmoothing.experiments.ladder.regression import Block
from oversmoothing.theory.support.sizes import Array

DIRECTIONS = 20
VALUES = 40  # singular values
PARTS = 100  # images at a time


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
        found = [log_ratio(part), torch.linalg.vector_norm(sigma, dim=-1).log()]
        if sigma.shape[-1] > 2:
            found += [torch.special.entr(share).sum(-1).exp(), share[:, 0]]
            found += [(sigma[:, 1] / sigma[:, 0]).log()]
        rows.append(torch.stack(found, dim=-1))
    return torch.cat(rows).numpy()


def singular_value_cost(n: int, d: int) -> int:
    """Multiply-adds of the singular values of an [n, d] state: its Gram matrix and their cube."""
    return min(n, d) * n * d + min(n, d) ** 3


@dataclass(frozen=True)
class StateFeatures:
    """Two blocks of features in bases fixed by calibration states.

    energy_basis [d, k]: principal directions of the tokens around their image's mean; mean_basis
    [d, k]: of the images' means around `mean` [d]; position_mean [n, d] or None: subtracted first,
    so that only what differs from image to image is described. weights [n]: of the tokens.
    """

    energy_basis: Tensor
    mean_basis: Tensor
    mean: Tensor
    position_mean: Tensor | None
    weights: Tensor

    @classmethod
    def fit(
        cls, X: Tensor, *, content: bool = False, weights: Tensor | None = None
    ) -> StateFeatures:
        """Fit to calibration states X [m, n, d]. content: subtract each position's mean."""
        n, d = X.shape[1:]
        weights = torch.full((n,), 1 / n) if weights is None else weights / weights.sum()
        place = X.mean(0) if content else None
        Y = X - place if place is not None else X
        m = torch.einsum("n,mnd->md", weights, Y)
        Y = (Y - m[:, None]).flatten(0, 1)
        k = min(DIRECTIONS, d)
        centre = m.mean(0)
        return cls(
            principal_directions(Y * weights.sqrt().repeat(len(X))[:, None], k),
            principal_directions(m - centre, k),
            centre,
            place,
            weights,
        )

    def __call__(self, X: Tensor) -> list[Block]:
        """[log energies along the directions, coordinates of the mean row] of X [m, n, d]."""
        Y = X if self.position_mean is None else X - self.position_mean
        m = torch.einsum("n,mnd->md", self.weights, Y)
        along = (Y - m[:, None]) @ self.energy_basis
        energy = torch.einsum("n,mnk->mk", self.weights, along.square()).double()
        # A floor at rounding size of the whole: an empty direction must not give -inf.
        floor = 1e-12 * energy.sum(-1, keepdim=True) + 1e-300
        return [
            Block((energy + floor).log().numpy()),
            Block(((m - self.mean) @ self.mean_basis).double().numpy()),
        ]

    def cost(self, tokens: int) -> int:
        """Multiply-adds for one image: projections of the tokens and of the mean."""
        d, k = self.energy_basis.shape
        return tokens * d * (k + 1) + d * k


def principal_directions(Y: Tensor, k: int) -> Tensor:
    """The k leading principal directions [d, k] of rows Y [m, d]."""
    _, V = torch.linalg.eigh((Y.T @ Y).double())
    found: Tensor = V.flip(1)[:, :k].to(Y.dtype)
    return found


@dataclass(frozen=True)
class StartFeatures:
    """The blocks of P0''': principal energies and means of X_0, with and without each position's
    calibration mean, and the logs of the leading singular values of HFC."""

    content: StateFeatures
    whole: StateFeatures
    shape: tuple[int, int]

    @classmethod
    def fit(cls, start: Tensor) -> StartFeatures:
        n, d = start.shape[1:]
        return cls(StateFeatures.fit(start, content=True), StateFeatures.fit(start), (n, d))

    def __call__(self, start: Tensor) -> list[Block]:
        rows = []
        for X in torch.split(start, PARTS):
            sigma = torch.linalg.svdvals((X - X.mean(1, keepdim=True)).double())
            floor = 1e-12 * sigma[:, :1] + 1e-300
            rows.append((sigma[:, :VALUES] + floor).log())
        return [*self.content(start), *self.whole(start), Block(torch.cat(rows).numpy())]

    def cost(self) -> int:
        n, d = self.shape
        return self.content.cost(n) + self.whole.cost(n) + singular_value_cost(n, d)
