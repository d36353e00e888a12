"""P7: a few tokens of the image go through the model's own layers, the rest are an environment.

Two stages for a square grid of patches. Stage 1: every second patch in both directions (and CLS)
through the first layers, the context being the patches of one colour of a chessboard, each for two,
predicted from X_0 (`Environment`). Stage 2: a coarser grid of those patches through all other
layers, the context being the patches of stage 1. The changes of log HFC/LFC are then regressed
(kernel ridge) on features of X_0, of the last state of stage 1, and on log HFC/LFC of the landmarks
at every layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.ladder.environment import Environment
from oversmoothing.experiments.ladder.features import StateFeatures
from oversmoothing.experiments.ladder.patches import (
    BLURRED,
    PARTS,
    Coordinates,
    Grid,
    Stage,
    check_layers,
    patch_states,
)
from oversmoothing.experiments.ladder.recording import Recording, log_energies
from oversmoothing.experiments.ladder.regression import Block
from oversmoothing.experiments.models.model import Model
from oversmoothing.theory.support.errors import InputError

FIRST_LAYERS = 3
RANKS = (24, 32)
PCS = (20, 40)
START_WEIGHT, STATE_WEIGHT, PATH_WEIGHT = 0.5, 1.0, 2.0


@dataclass(frozen=True)
class Landmarks:
    """The fitted P7 of one model. stages: all but the last on the grid's finer landmarks; place,
    state: coordinates of X_0 and of the landmarks in front of the last stage; whole: the states of
    all context patches of stage 1 and their features, where they are read."""

    model: Model
    grid: Grid
    stages: tuple[Stage, ...]
    place: Coordinates
    state: Coordinates
    start_features: StateFeatures
    state_features: StateFeatures
    whole: tuple[Environment, StateFeatures] | None = None

    @classmethod
    def fit(
        cls, model: Model, calibration: Recording, first_layers: int = FIRST_LAYERS
    ) -> Landmarks:
        """Fit environments and features to calibration images.

        first_layers: of stage 1; more cost more and predict better.

        Raises `InputError` for states that were not kept, Post-LN or causal models, and tokens that
        are no grid of patches.
        """
        states = patch_states(model, calibration)
        check_layers(model, states)
        start = calibration.start
        grid = Grid.of(start.shape[1], model.cls)
        if first_layers < 1:
            raise InputError(f"first_layers is {first_layers}: it must be at least 1")
        first = min(first_layers, model.depth)
        (even, coarse), (followed, few) = grid.context, grid.landmarks
        place = Coordinates.fit(start[:, grid.prefix :], PCS[0])
        seen = grid.patch_features(place, start)
        one = Stage.fit(model, states, grid, range(first), followed, even, seen, RANKS[0])
        path = one.follow(model, start[:, grid.with_prefix(followed)], seen)
        after = [states[k + 1][:, even] for k in one.layers]
        whole = Environment.fit(seen, after, one.own, RANKS[0])
        inner = path[-1][:, grid.prefix :]
        state = Coordinates.fit(inner, PCS[1])
        rest = range(first, model.depth)
        near = state.with_average(inner)
        two = Stage.fit(model, states, grid, rest, few, coarse, near, RANKS[1])
        return cls(
            model, grid, (one, two), place, state,
            StateFeatures.fit(start, content=True),
            StateFeatures.fit(path[-1], weights=one.weights),
            (whole, StateFeatures.fit(_completed(whole, one, seen, path)[-1])),
        )  # fmt: skip

    def features(self, start: Tensor) -> list[Block]:
        """The blocks that the regression reads, from X_0 [m, n, d] alone."""
        grid, model = self.grid, self.model
        one, *among, last = self.stages
        parts: list[list[Block]] = []
        for X in torch.split(start, PARTS):
            seen = grid.patch_features(self.place, X)
            path = one.follow(model, X[:, grid.with_prefix(grid.landmarks[0])], seen)
            blocks, completed = self.start_features(X), []
            if self.whole is not None:
                completed = _completed(self.whole[0], one, seen, path)
            for stage in among:
                path += stage.follow(model, path[-1], None)
            blocks += self.state_features(path[-1])
            if self.whole is not None:
                blocks += self.whole[1](completed[-1])
            seen = self.state.with_average(path[-1][:, grid.prefix :])
            further = last.follow(model, path[-1][:, grid.kept], seen)
            logs = [log_energies(X), *map(one.logs, path), *map(last.logs, further)]
            logs += map(log_energies, completed)
            ratio = torch.stack([each[:, 0] - each[:, 1] for each in logs], dim=1)
            parts.append([*blocks, Block(ratio.numpy())])
        lots = list(zip(*parts, strict=True))
        weights = [START_WEIGHT] * 2 + [STATE_WEIGHT] * (len(lots) - 3) + [PATH_WEIGHT]
        return [
            Block(np.concatenate([block.values for block in lot]), weight)
            for lot, weight in zip(lots, weights, strict=True)
        ]

    def words(self) -> str:
        """What it is, for a reader of the table."""
        first, second = self.stages
        return (
            f"{len(first.weights)} tokens through the first {first.layers.stop} layers, "
            f"{len(second.weights)} through the others; kernel ridge"
        )

    def cost(self) -> int:
        """Multiply-adds for one image, but for the final kernel sum."""
        n, d = self.grid.tokens, self.model.width
        context, followed = (len(each[0]) for each in (self.grid.context, self.grid.landmarks))
        total = n * d * PCS[0] + 25 * n * BLURRED + followed * d * PCS[1]
        total += sum(stage.cost(self.model) for stage in self.stages)
        if self.whole is not None:
            reduction = self.whole[0].reduction
            total += len(self.stages[0].layers) * context * d * (reduction.shape[1] + followed + 2)
            total += self.whole[1].cost(context) + context * reduction.numel()
        return total + self.start_features.cost(n) + self.state_features.cost(followed)


def _completed(
    whole: Environment, stage: Stage, features: Tensor, path: list[Tensor]
) -> list[Tensor]:
    """States [b, c, d] of all context patches of stage 1 after each of its layers: affine in the
    features, with the landmarks' residuals interpolated."""
    phi = whole.phi(features)
    return [
        f(phi, stage.own, Z[:, stage.prefix :]) for f, Z in zip(whole.layers, path, strict=True)
    ]
