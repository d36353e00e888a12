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

import torch
from torch import Tensor

from oversmoothing.experiments.ladder.costs import token_cost
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
from oversmoothing.experiments.ladder.regression import Block, joined
from oversmoothing.experiments.models.model import Model
from oversmoothing.theory.support.errors import InputError

FIRST_LAYERS = 3
RANKS = (24, 32)
PCS = (20, 40)
START_WEIGHT, STATE_WEIGHT, PATH_WEIGHT = 0.5, 1.0, 2.0


@dataclass(frozen=True)
class Landmarks:
    """The fitted P7 of one model; whole: the states of all context patches of stage 1."""

    model: Model
    grid: Grid
    stages: tuple[Stage, Stage]
    place: Coordinates
    state: Coordinates
    whole: Environment
    start_features: StateFeatures
    state_features: StateFeatures
    whole_features: StateFeatures

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
        even, coarse = grid.context

        def normed(layers: range, tokens: Tensor) -> list[Tensor]:
            return [model.layers[k].norm_attention(states[k][:, tokens]) for k in layers]

        patches = start[:, grid.prefix :]
        place = Coordinates.fit(patches, PCS[0])
        seen = grid.patch_features(place, patches)
        one = Stage.of(grid, range(first), grid.landmarks[0], even)
        one = one.fitted(seen, normed(one.layers, even), RANKS[0])
        path = one.follow(model, start[:, grid.with_prefix(grid.landmarks[0])], seen)
        after = [states[k + 1][:, even] for k in one.layers]
        whole = Environment.fit(seen, after, one.own, RANKS[0])
        last = path[-1]
        inner = last[:, grid.prefix :]
        state = Coordinates.fit(inner, PCS[1])
        two = Stage.of(grid, range(first, model.depth), grid.landmarks[1], coarse)
        if two.layers:
            two = two.fitted(state.with_average(inner), normed(two.layers, coarse), RANKS[1])
        return cls(
            model, grid, (one, two), place, state, whole,
            StateFeatures.fit(start, content=True),
            StateFeatures.fit(last, weights=one.weights),
            StateFeatures.fit(_completed(whole, one, seen, path)[-1]),
        )  # fmt: skip

    def features(self, start: Tensor) -> list[Block]:
        """The blocks that the regression reads, from X_0 [m, n, d] alone."""
        one, two = self.stages
        blocks: list[list[Block]] = []
        for X in torch.split(start, PARTS):
            seen = self.grid.patch_features(self.place, X[:, self.grid.prefix :])
            path = one.follow(self.model, X[:, self.grid.with_prefix(self.grid.landmarks[0])], seen)
            completed = _completed(self.whole, one, seen, path)
            last = path[-1]
            seen = self.state.with_average(last[:, self.grid.prefix :])
            further = two.follow(self.model, last[:, self.grid.kept], seen)
            logs = [log_energies(X), *map(one.logs, path), *map(two.logs, further)]
            logs += map(log_energies, completed)
            ratio = torch.stack([each[:, 0] - each[:, 1] for each in logs], dim=1)
            blocks.append(
                [
                    *self.start_features(X),
                    *self.state_features(last),
                    *self.whole_features(completed[-1]),
                    Block(ratio.numpy()),
                ]
            )
        return joined(blocks, (*2 * (START_WEIGHT,), *4 * (STATE_WEIGHT,), PATH_WEIGHT))

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
        total = n * d * PCS[0] + 25 * n * BLURRED + len(self.grid.context[1]) * d * PCS[1]
        for stage in self.stages:
            queries, k = len(stage.weights), len(stage.own)
            environment = stage.environment
            if environment is None:
                continue
            total += (len(stage.bias) - stage.prefix) * environment.reduction.numel()
            for number in stage.layers:
                layer = self.model.layers[number]
                total += queries * token_cost(layer)
                total += environment.cost(queries, k, layer.heads.number, layer.heads.width)
        c, k = len(self.grid.context[0]), len(self.grid.landmarks[0])
        reduction = self.whole.reduction
        total += len(self.stages[0].layers) * c * d * (reduction.shape[1] + k + 2)
        total += self.whole_features.cost(c) + c * reduction.numel()
        return total + self.start_features.cost(n) + self.state_features.cost(k)


def _completed(
    whole: Environment, stage: Stage, features: Tensor, path: list[Tensor]
) -> list[Tensor]:
    """States [b, c, d] of all context patches of stage 1 after each of its layers: affine in the
    features, with the landmarks' residuals interpolated."""
    phi = whole.phi(features)
    return [
        f(phi, stage.own, Z[:, stage.prefix :]) for f, Z in zip(whole.layers, path, strict=True)
    ]
