"""P7 with reduced FFNs: landmark tokens go through the model's attention and `ReducedFfn`s.

Three stages for a square grid of patches (layers of a model of 12). A (layer 1): every second patch
in both directions, and CLS, with the environment of `Landmarks`' first stage. B (layers 2 to 7):
the same tokens, attending to one another alone, each patch for four. C (layers 8 to 12): few of
them, the context being the patches of B. Each layer's FFN is fitted to what is missing between the
landmarks' own state after attention and the true next state, so that it corrects earlier errors;
what is saved on the FFNs pays for more layers on the finer grid. The changes of log HFC/LFC are
regressed as for `Landmarks`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from oversmoothing.experiments.ladder.costs import attention_cost, ffn_cost, token_cost
from oversmoothing.experiments.ladder.features import StateFeatures
from oversmoothing.experiments.ladder.landmarks import (
    PATH_WEIGHT,
    PCS,
    RANKS,
    START_WEIGHT,
    STATE_WEIGHT,
)
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
from oversmoothing.experiments.ladder.reduced_ffn import HiddenUnits, ReducedFfn
from oversmoothing.experiments.ladder.regression import Block, joined
from oversmoothing.experiments.models.model import Model
from oversmoothing.theory.support.errors import InputError

ENDS = (1 / 12, 7 / 12)  # of stages A and B, in the model's depth
KEPT = (3 / 8, 1 / 4, 1 / 32)  # of the hidden units, by stage


@dataclass(frozen=True)
class ReducedLandmarks:
    """The fitted rung of one model."""

    model: Model
    grid: Grid
    stages: tuple[Stage, Stage, Stage]
    place: Coordinates
    state: Coordinates
    start_features: StateFeatures
    state_features: StateFeatures

    @classmethod
    def fit(cls, model: Model, calibration: Recording) -> ReducedLandmarks:
        """Fit environments, FFNs and features to calibration images.

        Raises `InputError` for states that were not kept, Post-LN or causal models, models of one
        layer, FFNs without hidden units to keep, and tokens that are no grid of patches.
        """
        states = patch_states(model, calibration)
        ranges = stage_layers(model.depth)
        start = calibration.start
        grid = _grid(start.shape[1], model.cls)
        units = [
            HiddenUnits.of(layer, f"layer {number + 1} of '{model.name}'")
            for number, layer in enumerate(model.layers)
        ]
        check_layers(model, states)

        def fitted(
            number: int, X: Tensor, seen: Tensor | None, tokens: Tensor, context: Tensor
        ) -> tuple[Stage, list[Tensor]]:
            """Stage `number` from the landmarks' states X in front of it."""
            stage = Stage.of(grid, ranges[number], tokens, context)
            if seen is not None:
                normed = [
                    model.layers[k].norm_attention(states[k][:, context]) for k in ranges[number]
                ]
                stage = stage.fitted(seen, normed, RANKS[int(number == 2)])
            followed = grid.with_prefix(tokens)
            path, ffns = [], []
            for k in stage.layers:
                middle = stage.attended(model, k, X, seen)
                N = model.layers[k].norm_ffn(middle)
                missing = states[k + 1][:, followed] - middle
                kept = round(KEPT[number] * len(units[k]))
                ffn = ReducedFfn.fit(units[k], N.flatten(0, 1), missing.flatten(0, 1), kept)
                X = middle + ffn(N)
                ffns.append(ffn)
                path.append(X)
            return replace(stage, ffns=tuple(ffns)), path

        patches = start[:, grid.prefix :]
        place = Coordinates.fit(patches, PCS[0])
        coarse, few = grid.landmarks
        X = start[:, grid.with_prefix(coarse)]
        one, path = fitted(0, X, grid.patch_features(place, patches), coarse, grid.context[0])
        two, further = fitted(1, path[-1], None, coarse, coarse)
        last = (path + further)[-1]
        inner = last[:, grid.prefix :]
        state = Coordinates.fit(inner, PCS[1])
        three, _ = fitted(2, last[:, grid.kept], state.with_average(inner), few, grid.context[1])
        return cls(
            model, grid, (one, two, three), place, state,
            StateFeatures.fit(start, content=True),
            StateFeatures.fit(last, weights=two.weights),
        )  # fmt: skip

    def features(self, start: Tensor) -> list[Block]:
        """The blocks that the regression reads, from X_0 [m, n, d] alone."""
        one, two, three = self.stages
        grid, model = self.grid, self.model
        blocks: list[list[Block]] = []
        for X in torch.split(start, PARTS):
            seen = grid.patch_features(self.place, X[:, grid.prefix :])
            first = one.follow(model, X[:, grid.with_prefix(grid.landmarks[0])], seen)
            second = two.follow(model, first[-1], None)
            last = (first + second)[-1]
            seen = self.state.with_average(last[:, grid.prefix :])
            third = three.follow(model, last[:, grid.kept], seen)
            logs = [log_energies(X)]
            for stage, path in zip(self.stages, (first, second, third), strict=True):
                logs += map(stage.logs, path)
            ratio = torch.stack([each[:, 0] - each[:, 1] for each in logs], dim=1)
            blocks.append(
                [*self.start_features(X), *self.state_features(last), Block(ratio.numpy())]
            )
        return joined(blocks, (*2 * (START_WEIGHT,), *2 * (STATE_WEIGHT,), PATH_WEIGHT))

    def words(self) -> str:
        """What it is, for a reader of the table."""
        first, second, third = self.stages
        return (
            f"{len(first.weights)} tokens through the first {first.layers.stop} layers, among "
            f"themselves to layer {second.layers.stop}, {len(third.weights)} through the others; "
            "FFNs of few hidden units; kernel ridge"
        )

    def cost(self) -> int:
        """Multiply-adds for one image, but for the final kernel sum."""
        n, d = self.grid.tokens, self.model.width
        total = n * d * PCS[0] + 25 * n * BLURRED
        for stage in self.stages:
            queries, k = len(stage.weights), len(stage.own)
            environment = stage.environment
            for number, ffn in zip(stage.layers, stage.ffns, strict=True):
                layer = self.model.layers[number]
                assert isinstance(ffn, ReducedFfn)
                total += queries * (token_cost(layer) - ffn_cost(layer) + ffn.cost())
                if environment is None:
                    total += attention_cost(layer, queries, len(stage.bias))
                else:
                    total += environment.cost(queries, k, layer.heads.number, layer.heads.width)
            if environment is not None:
                total += (len(stage.bias) - stage.prefix) * environment.reduction.numel()
        coarse = len(self.grid.landmarks[0])
        total += coarse * d * PCS[1]
        return total + self.start_features.cost(n) + self.state_features.cost(coarse)


def stage_layers(depth: int) -> tuple[range, range, range]:
    """The layers of the three stages; B may be empty. Raises `InputError` for fewer than two."""
    if depth < 2:
        raise InputError("a model of one layer has no stages: leave the reduced landmarks out")
    first = max(1, round(ENDS[0] * depth))
    second = min(max(first, round(ENDS[1] * depth)), depth - 1)
    return range(first), range(first, second), range(second, depth)


def _grid(tokens: int, cls_token: bool) -> Grid:
    """`Grid.of` with more patches in the last stage: odd rows and even columns of the coarse."""
    grid = Grid.of(tokens, cls_token)
    half = (grid.side + 1) // 2
    few = [2 * (grid.side * i + j) for i in range(1, half, 2) for j in range(0, half, 2)]
    return replace(grid, landmarks=(grid.landmarks[0], torch.tensor(few) + grid.prefix))
