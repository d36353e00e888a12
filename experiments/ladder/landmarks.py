"""P7: a few tokens of the image go through the model's own layers, the rest are an environment.

Two stages for a square grid of patches. Stage 1: every second patch in both directions (and CLS)
through the first layers, the context being the patches of one colour of a chessboard, each for two,
predicted from X_0 (`Environment`). Stage 2: a coarser grid of those patches through all other
layers, the context being the patches of stage 1. What a landmark does is exact but for its context.
The changes of log HFC/LFC are then regressed (kernel ridge) on features of X_0, of the last state
of stage 1, and on log HFC/LFC of the landmarks at every layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from oversmoothing.experiments.inspection.watch import attention_output
from oversmoothing.experiments.ladder.costs import token_cost
from oversmoothing.experiments.ladder.environment import Environment
from oversmoothing.experiments.ladder.features import StateFeatures, _directions
from oversmoothing.experiments.ladder.operators import check_pre_norm
from oversmoothing.experiments.ladder.recording import Recording, log_energies
from oversmoothing.experiments.ladder.regression import Block
from oversmoothing.experiments.models.model import Layer, Model
from oversmoothing.theory.support.errors import InputError

FIRST_LAYERS = 3
RANKS = (24, 32)
PCS = (20, 40)
BLURRED = 12
PARTS = 50
TOLERANCE = 1e-3  # of a layer's largest change, in float32
START_WEIGHT, STATE_WEIGHT, PATH_WEIGHT = 0.5, 1.0, 2.0


@dataclass(frozen=True)
class Grid:
    """Token numbers of the two stages: context and landmarks of each (without CLS), and `share`,
    how many patches a context token stands for."""

    side: int
    prefix: int
    context: tuple[Tensor, Tensor]
    landmarks: tuple[Tensor, Tensor]
    share: tuple[float, float]

    @classmethod
    def of(cls, tokens: int, cls_token: bool) -> Grid:
        """The stages of a grid of tokens. Raises `InputError` where the patches are no square of at
        least 4 x 4."""
        prefix = int(cls_token)
        side = round((tokens - prefix) ** 0.5)
        if side * side != tokens - prefix or side < 4:
            raise InputError(
                f"{tokens - prefix} patches are no square grid of at least 4 x 4: P7 follows "
                "patches on a grid; leave it out"
            )
        rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
        even = ((rows + columns) % 2 == 0).flatten().nonzero().squeeze(1)
        coarse = ((rows % 2 == 0) & (columns % 2 == 0)).flatten().nonzero().squeeze(1)
        half = (side + 1) // 2
        # Odd places of the coarse grid, every second of them, as on a chessboard: few and spread.
        odd = [(i, j) for i in range(1, half, 2) for j in range(1, half, 2)]
        fine = torch.tensor([2 * (side * i + j) for i, j in odd if (i + j) % 4 == 2])
        patches = side * side
        return cls(
            side,
            prefix,
            (even + prefix, coarse + prefix),
            (coarse + prefix, fine + prefix),
            (patches / len(even), patches / len(coarse)),
        )


@dataclass(frozen=True)
class Landmarks:
    """The fitted P7 of one model."""

    model: Model
    grid: Grid
    first: int
    place_mean: Tensor
    place_basis: Tensor
    state_mean: Tensor
    state_basis: Tensor
    environments: tuple[Environment, Environment]
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
        _check_layers(model, states[:, :2])
        start = calibration.start
        grid = Grid.of(start.shape[1], model.cls)
        if first_layers < 1:
            raise InputError(f"first_layers is {first_layers}: it must be at least 1")
        first = min(first_layers, model.depth)
        patches = start[:, grid.prefix :]
        place_mean = patches.mean(0)
        place_basis = _scaled_directions((patches - place_mean).flatten(0, 1), PCS[0])

        def normed(number: int, tokens: Tensor) -> Tensor:
            return model.layers[number].norm_attention(states[number][:, tokens])

        own = _places(grid.context[0], grid.landmarks[0])
        features = _patch_features(patches, place_mean, place_basis, grid)
        targets = [normed(k, grid.context[0]) for k in range(first)]
        one = Environment.fit(features, targets, own, RANKS[0])
        path = _follow(model, start, grid, 0, range(first), one, features)
        after = [states[k + 1][:, grid.context[0]] for k in range(first)]
        whole = Environment.fit(features, after, own, RANKS[0])
        completed = _completed(whole, features, own, path, grid.prefix)
        last = path[-1]
        inner = last[:, grid.prefix :]
        state_mean = inner.mean(0)
        state_basis = _scaled_directions((inner - state_mean).flatten(0, 1), PCS[1])
        own = _places(grid.context[1], grid.landmarks[1])
        seen = _state_features(inner, state_mean, state_basis)
        targets = [normed(k, grid.context[1]) for k in range(first, model.depth)]
        two = (
            Environment.fit(seen, targets, own, RANKS[1])
            if targets
            else Environment(one.centre, one.size, one.reduction, ())
        )
        return cls(
            model, grid, first, place_mean, place_basis, state_mean, state_basis, (one, two),
            whole,
            StateFeatures.fit(start, content=True),
            StateFeatures.fit(last, weights=_weights(grid, 0)),
            StateFeatures.fit(completed[-1]),
        )  # fmt: skip

    def features(self, start: Tensor) -> list[Block]:
        """The blocks that the regression reads, from X_0 [m, n, d] alone."""
        blocks: list[list[Block]] = []
        for X in torch.split(start, PARTS):
            path, further, completed = self._run(X)
            logs = [log_energies(X)]
            logs += [_weighted_logs(Z, _weights(self.grid, 0)) for Z in path]
            logs += [_weighted_logs(Z, _weights(self.grid, 1)) for Z in further]
            logs += [log_energies(Z) for Z in completed]
            ratio = torch.stack([each[:, 0] - each[:, 1] for each in logs], dim=1)
            blocks.append(
                [
                    *self.start_features(X),
                    *self.state_features(path[-1]),
                    *self.whole_features(completed[-1]),
                    Block(ratio.numpy()),
                ]
            )
        weights = (*2 * (START_WEIGHT,), *4 * (STATE_WEIGHT,), PATH_WEIGHT)
        return [
            Block(torch.cat([torch.from_numpy(p[k].values) for p in blocks]).numpy(), weight)
            for k, weight in enumerate(weights)
        ]

    def _run(self, X: Tensor) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """States of the landmarks after each layer of stage 1 and of stage 2, and the states of all
        context patches of stage 1 after its layers, completed from the landmarks."""
        patches = X[:, self.grid.prefix :]
        seen = _patch_features(patches, self.place_mean, self.place_basis, self.grid)
        path = _follow(self.model, X, self.grid, 0, range(self.first), self.environments[0], seen)
        own = _places(self.grid.context[0], self.grid.landmarks[0])
        completed = _completed(self.whole, seen, own, path, self.grid.prefix)
        if self.first == self.model.depth:
            return path, [], completed
        inner = path[-1][:, self.grid.prefix :]
        seen = _state_features(inner, self.state_mean, self.state_basis)
        keep = _places(self.grid.landmarks[0], self.grid.landmarks[1]) + self.grid.prefix
        keep = torch.cat([torch.arange(self.grid.prefix), keep])
        layers = range(self.first, self.model.depth)
        further = _follow(
            self.model, path[-1][:, keep], self.grid, 1, layers, self.environments[1], seen
        )
        return path, further, completed

    def cost(self) -> int:
        """Multiply-adds for one image, but for the final kernel sum."""
        n = self.grid.prefix + self.grid.side**2
        d = self.model.width
        total = 0
        for stage, layers in enumerate((range(self.first), range(self.first, self.model.depth))):
            k = len(self.grid.landmarks[stage])
            for number in layers:
                layer = self.model.layers[number]
                queries = self.grid.prefix + k
                total += queries * token_cost(layer)
                total += self.environments[stage].cost(
                    queries, k, layer.heads.number, layer.heads.width
                )
        raw = [environment.reduction.numel() for environment in self.environments]
        total += n * d * PCS[0] + 25 * n * BLURRED + len(self.grid.context[0]) * raw[0]
        total += len(self.grid.context[1]) * (d * PCS[1] + raw[1])
        c, k = len(self.grid.context[0]), len(self.grid.landmarks[0])
        total += self.first * c * d * (self.whole.reduction.shape[1] + k + 2)
        total += self.whole_features.cost(c) + len(self.grid.context[0]) * raw[0]
        total += self.start_features.cost(n)
        total += self.state_features.cost(len(self.grid.landmarks[0]))
        return total


def patch_states(model: Model, calibration: Recording) -> Tensor:
    """The calibration states of a model that P7 applies to.

    Raises `InputError` for states that were not kept and for Post-LN or causal models.
    """
    if calibration.states is None:
        raise InputError("P7 is fitted to calibration states: record with states=True")
    if model.causal or model.modality != "vision":
        raise InputError(
            f"'{model.name}' is no vision model without a mask: P7 stands on a grid of patches"
        )
    check_pre_norm(model)
    return calibration.states


def _check_layers(model: Model, states: Tensor) -> None:
    """Raise `InputError` unless `_layer`, on all tokens, is the model's own layer: position terms
    in the logits would make another one of it."""
    for number, layer in enumerate(model.layers):
        X = states[number]
        N = layer.norm_attention(X)
        change = states[number + 1] - X
        error = _layer(layer, X, N, N, torch.zeros(X.shape[1])) - X - change
        if not bool(error.abs().max() <= TOLERANCE * change.abs().max()):
            raise InputError(
                f"layer {number + 1} of '{model.name}' is not attention by q k^T alone and an FFN: "
                "P7 knows no other terms; leave it out"
            )


def _places(among: Tensor, tokens: Tensor) -> Tensor:
    """Where each of `tokens` stands in the increasing list `among`."""
    found = torch.searchsorted(among, tokens)
    assert bool((among[found] == tokens).all())
    return found


def _weights(grid: Grid, stage: int) -> Tensor:
    """How many tokens of the image each landmark (CLS first) stands for."""
    k = len(grid.landmarks[stage])
    return torch.cat([torch.ones(grid.prefix), torch.full((k,), grid.side**2 / k)])


def _weighted_logs(Z: Tensor, weights: Tensor) -> Tensor:
    """log ||HFC||, log ||LFC|| of landmarks Z [b, k, d] that stand for `weights` [k] tokens."""
    Z, w = Z.double(), weights.double()
    mean = torch.einsum("k,bkd->bd", w / w.sum(), Z)
    hfc = torch.einsum("k,bkd->b", w, (Z - mean[:, None]).square())
    return torch.stack([hfc, w.sum() * mean.square().sum(-1)], dim=-1).log() / 2


def _scaled_directions(Y: Tensor, k: int) -> Tensor:
    """Principal directions [d, k] of rows Y [m, d], scaled to unit coordinates."""
    V = _directions(Y, min(k, Y.shape[1]))
    return V / (Y @ V).std(0).clamp_min(1e-12)


def _patch_features(patches: Tensor, mean: Tensor, basis: Tensor, grid: Grid) -> Tensor:
    """Per context token of stage 1: its own principal coordinates, their 5 x 5 average around it
    and their average over the image."""
    Q = (patches - mean) @ basis
    r = min(BLURRED, Q.shape[-1])
    image = Q[..., :r].transpose(1, 2).reshape(len(Q), r, grid.side, grid.side)
    padded = torch.nn.functional.pad(image, (2, 2, 2, 2), mode="replicate")
    blurred = torch.nn.functional.avg_pool2d(padded, 5, 1).flatten(2).transpose(1, 2)
    whole = Q[..., :r].mean(1, keepdim=True).expand(-1, Q.shape[1], -1)
    return torch.cat([Q, blurred, whole], dim=-1)[:, grid.context[0] - grid.prefix]


def _completed(
    whole: Environment, features: Tensor, own: Tensor, path: list[Tensor], prefix: int
) -> list[Tensor]:
    """States [b, c, d] of all context patches of stage 1 after each of its layers: affine in the
    features, with the landmarks' residuals interpolated."""
    phi = whole.phi(features)
    return [f(phi, own, Z[:, prefix:]) for f, Z in zip(whole.layers, path, strict=True)]


def _state_features(inner: Tensor, mean: Tensor, basis: Tensor) -> Tensor:
    """Per context token of stage 2: its own principal coordinates and the image's average."""
    Q = (inner - mean) @ basis
    return torch.cat([Q, Q.mean(1, keepdim=True).expand(-1, Q.shape[1], -1)], dim=-1)


def _follow(
    model: Model,
    X: Tensor,
    grid: Grid,
    stage: int,
    layers: range,
    environment: Environment,
    features: Tensor,
) -> list[Tensor]:
    """States of the landmarks (CLS first) after each of `layers`.

    X: X_0 for stage 0, where the landmarks are picked; their states in front of stage 1.
    """
    if stage == 0:
        X = torch.cat([X[:, : grid.prefix], X[:, grid.landmarks[0]]], dim=1)
    own = _places(grid.context[stage], grid.landmarks[stage])
    bias = torch.full((grid.prefix + len(grid.context[stage]),), grid.share[stage]).log()
    bias[: grid.prefix] = 0.0
    phi = environment.phi(features)
    found = []
    for number, surroundings in zip(layers, environment.layers, strict=True):
        layer = model.layers[number]
        parts = []
        for Z, part in zip(torch.split(X, PARTS), torch.split(phi, PARTS), strict=True):
            N = layer.norm_attention(Z)
            around = surroundings(part, own, N[:, grid.prefix :])
            parts.append(_layer(layer, Z, N, torch.cat([N[:, : grid.prefix], around], 1), bias))
        X = torch.cat(parts)
        found.append(X)
    return found


def _layer(layer: Layer, Z: Tensor, N: Tensor, context: Tensor, bias: Tensor) -> Tensor:
    """The layer on landmarks Z [b, k, d] (normalised: N) that attend to `context` [b, c, d]."""
    heads = layer.heads.to("cpu", Z.dtype)
    q, k = _heads(N, heads.W_Q, heads.b_Q), _heads(context, heads.W_K, heads.b_K)
    scaling = q.shape[-1] ** -0.5 if layer.scaling is None else layer.scaling
    A = (scaling * q @ k.transpose(-1, -2) + bias).softmax(-1)
    Z = Z + attention_output(A, context, heads)
    return Z if layer.ffn is None else Z + layer.ffn(layer.norm_ffn(Z))


def _heads(N: Tensor, W: Tensor, b: Tensor | None) -> Tensor:
    found = torch.einsum("bnd,hdr->bhnr", N, W)
    return found if b is None else found + b[:, None]
