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
from oversmoothing.experiments.ladder.environment import Environment
from oversmoothing.experiments.ladder.features import StateFeatures
from oversmoothing.experiments.ladder.landmarks import (
    BLURRED,
    PARTS,
    PATH_WEIGHT,
    PCS,
    RANKS,
    START_WEIGHT,
    STATE_WEIGHT,
    Grid,
    _check_layers,
    _layer,
    _patch_features,
    _places,
    _scaled_directions,
    _state_features,
    _weighted_logs,
    patch_states,
)
from oversmoothing.experiments.ladder.recording import Recording, log_energies
from oversmoothing.experiments.ladder.reduced_ffn import HiddenUnits, ReducedFfn
from oversmoothing.experiments.ladder.regression import Block
from oversmoothing.experiments.models.model import Model
from oversmoothing.theory.support.errors import InputError

ENDS = (1 / 12, 7 / 12)  # of stages A and B, in the model's depth
KEPT = (3 / 8, 1 / 4, 1 / 32)  # of the hidden units, by stage


@dataclass(frozen=True)
class Stage:
    """layers: numbers; own: the landmarks' places in the context; bias [prefix + c]: on the logits;
    environment: of the context, or None where landmarks attend to one another alone; weights
    [prefix + k]: how many tokens of the image each stands for; ffns: one a layer."""

    layers: range
    own: Tensor
    bias: Tensor
    environment: Environment | None
    weights: Tensor
    ffns: tuple[ReducedFfn, ...] = ()


@dataclass(frozen=True)
class ReducedLandmarks:
    """The fitted rung of one model."""

    model: Model
    grid: Grid
    stages: tuple[Stage, Stage, Stage]
    place_mean: Tensor
    place_basis: Tensor
    state_mean: Tensor
    state_basis: Tensor
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
        _check_layers(model, states[:, :2])
        prefix = grid.prefix

        def normed(number: int, tokens: Tensor) -> Tensor:
            return model.layers[number].norm_attention(states[number][:, tokens])

        def fitted(
            number: int, X: Tensor, seen: Tensor | None, tokens: Tensor
        ) -> tuple[Stage, list[Tensor]]:
            """Stage `number` from the landmarks' states X in front of it."""
            where = int(number == 2)  # of the two contexts of `grid`
            context = grid.context[where] if seen is not None else tokens
            own = _places(context, tokens)
            stands = grid.side**2 / len(context)
            bias = torch.full((prefix + len(context),), stands).log()
            bias[:prefix] = 0.0
            weights = torch.ones(prefix + len(tokens))
            weights[prefix:] = grid.side**2 / len(tokens)
            layers = ranges[number]
            environment = None
            if seen is not None:
                targets = [normed(k, context) for k in layers]
                environment = Environment.fit(seen, targets, own, RANKS[where])
            stage = Stage(layers, own, bias, environment, weights)
            followed = torch.cat([torch.arange(prefix), tokens])
            path, ffns = [], []
            for k in layers:
                middle = _attended(model, stage, k, X, seen, prefix)
                N = model.layers[k].norm_ffn(middle)
                missing = states[k + 1][:, followed] - middle
                kept = round(KEPT[number] * len(units[k]))
                ffn = ReducedFfn.fit(units[k], N.flatten(0, 1), missing.flatten(0, 1), kept)
                X = middle + ffn(N)
                ffns.append(ffn)
                path.append(X)
            return replace(stage, ffns=tuple(ffns)), path

        patches = start[:, prefix:]
        place_mean = patches.mean(0)
        place_basis = _scaled_directions((patches - place_mean).flatten(0, 1), PCS[0])
        coarse, few = grid.landmarks
        seen = _patch_features(patches, place_mean, place_basis, grid)
        X = torch.cat([start[:, :prefix], start[:, coarse]], dim=1)
        one, path = fitted(0, X, seen, coarse)
        two, further = fitted(1, path[-1], None, coarse)
        last = (path + further)[-1]
        inner = last[:, prefix:]
        state_mean = inner.mean(0)
        state_basis = _scaled_directions((inner - state_mean).flatten(0, 1), PCS[1])
        seen = _state_features(inner, state_mean, state_basis)
        three, _ = fitted(2, last[:, _kept(grid)], seen, few)
        return cls(
            model, grid, (one, two, three), place_mean, place_basis, state_mean, state_basis,
            StateFeatures.fit(start, content=True),
            StateFeatures.fit(last, weights=two.weights),
        )  # fmt: skip

    def features(self, start: Tensor) -> list[Block]:
        """The blocks that the regression reads, from X_0 [m, n, d] alone."""
        blocks: list[list[Block]] = []
        for X in torch.split(start, PARTS):
            paths = self._run(X)
            logs = [log_energies(X)]
            for stage, path in zip(self.stages, paths, strict=True):
                logs += [_weighted_logs(Z, stage.weights) for Z in path]
            ratio = torch.stack([each[:, 0] - each[:, 1] for each in logs], dim=1)
            last = (paths[0] + paths[1])[-1]
            blocks.append(
                [*self.start_features(X), *self.state_features(last), Block(ratio.numpy())]
            )
        weights = (*2 * (START_WEIGHT,), *2 * (STATE_WEIGHT,), PATH_WEIGHT)
        return [
            Block(torch.cat([torch.from_numpy(p[k].values) for p in blocks]).numpy(), weight)
            for k, weight in enumerate(weights)
        ]

    def _run(self, start: Tensor) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """States of the landmarks after each layer of the three stages."""
        prefix = self.grid.prefix
        one, two, three = self.stages
        seen = _patch_features(start[:, prefix:], self.place_mean, self.place_basis, self.grid)
        X = torch.cat([start[:, :prefix], start[:, self.grid.landmarks[0]]], dim=1)
        first = _follow(self.model, one, X, seen, prefix)
        second = _follow(self.model, two, first[-1], None, prefix)
        last = (first + second)[-1]
        seen = _state_features(last[:, prefix:], self.state_mean, self.state_basis)
        third = _follow(self.model, three, last[:, _kept(self.grid)], seen, prefix)
        return first, second, third

    def cost(self) -> int:
        """Multiply-adds for one image, but for the final kernel sum."""
        n = self.grid.prefix + self.grid.side**2
        d = self.model.width
        total = n * d * PCS[0] + 25 * n * BLURRED
        for stage in self.stages:
            queries = len(stage.weights)
            for number, ffn in zip(stage.layers, stage.ffns, strict=True):
                layer = self.model.layers[number]
                total += queries * (token_cost(layer) - ffn_cost(layer) + ffn.cost())
                if stage.environment is None:
                    total += attention_cost(layer, queries, len(stage.bias))
                else:
                    total += stage.environment.cost(
                        queries, len(stage.own), layer.heads.number, layer.heads.width
                    )
            if stage.environment is not None:
                c = len(stage.bias) - self.grid.prefix
                total += c * stage.environment.reduction.numel()
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


def _kept(grid: Grid) -> Tensor:
    """Which of the followed tokens of stages A and B go on to C."""
    own = _places(grid.landmarks[0], grid.landmarks[1]) + grid.prefix
    return torch.cat([torch.arange(grid.prefix), own])


def _attended(
    model: Model, stage: Stage, number: int, X: Tensor, seen: Tensor | None, prefix: int
) -> Tensor:
    """The landmarks [b, prefix + k, d] after the attention of one layer.

    seen [b, c, p]: raw features of the stage's context, for its environment.
    """
    layer = replace(model.layers[number], ffn=None)
    parts = []
    features = torch.split(X if seen is None else seen, PARTS)
    for Z, part in zip(torch.split(X, PARTS), features, strict=True):
        N = layer.norm_attention(Z)
        context = N
        if stage.environment is not None:
            around = stage.environment.layers[number - stage.layers.start]
            phi = stage.environment.phi(part)
            context = torch.cat([N[:, :prefix], around(phi, stage.own, N[:, prefix:])], dim=1)
        parts.append(_layer(layer, Z, N, context, stage.bias))
    return torch.cat(parts)


def _follow(
    model: Model, stage: Stage, X: Tensor, seen: Tensor | None, prefix: int
) -> list[Tensor]:
    """States of the landmarks after each layer of the stage."""
    found = []
    for number, ffn in zip(stage.layers, stage.ffns, strict=True):
        middle = _attended(model, stage, number, X, seen, prefix)
        X = middle + ffn(model.layers[number].norm_ffn(middle))
        found.append(X)
    return found
