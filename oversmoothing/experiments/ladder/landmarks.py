"""P7: a few tokens of the image go through the model's own layers, the rest are an environment.

A stage follows a few tokens (and CLS) on a square grid of patches through some layers; they attend
to a context that an `Environment` predicts, or to one another alone, each context token standing
for several patches. What a landmark does is exact but for its context. Stage 1: every second patch
in both directions through the first layers, the context being the patches of one colour of a
chessboard, each for two, predicted from X_0. Stage 2: a coarser grid of those patches through all
other layers, the context being the patches of stage 1. The changes of log HFC/LFC are regressed
(kernel ridge) on features of X_0, of the last state of stage 1, and on log HFC/LFC of the landmarks
at every layer.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.ladder import recording
from oversmoothing.experiments.ladder.reduced import HiddenUnits, ReducedFfn, stage_layers
from oversmoothing.experiments.ladder.regression import (
    Environment,
    Features,
    StateFeatures,
    principal_directions,
)
from oversmoothing.experiments.models.model import Layer, Model, projected
from oversmoothing.theory.support.errors import InputError

BLURRED = 12
PARTS = 50  # images at a time
TOLERANCE = 1e-3  # of a layer's largest change, in float32
FIRST_LAYERS = 3
RANKS = (24, 32)
PCS = (20, 40)
KEPT = (3 / 8, 1 / 4, 1 / 32)  # of the hidden units, by stage, where FFNs are reduced
START_WEIGHT, STATE_WEIGHT, PATH_WEIGHT = 0.5, 1.0, 2.0
Coordinates = Callable[[Tensor], Tensor]


class Grid:
    """Token numbers of the two kinds of context and their landmarks (without CLS): every second
    patch of a chessboard, and every second in both directions. denser: with more landmarks of the
    second kind, odd rows and even columns of the coarse grid."""

    def __init__(self, tokens: int, cls_token: bool, denser: bool = False) -> None:
        prefix = int(cls_token)
        side: int = round((tokens - prefix) ** 0.5)
        self.prefix, self.side = prefix, side
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
        odd = [(i, j) for i in range(1, half, 2) for j in range(0 if denser else 1, half, 2)]
        fine = torch.tensor([2 * (side * i + j) for i, j in odd if denser or (i + j) % 4 == 2])
        self.context = even + prefix, coarse + prefix
        self.landmarks = coarse + prefix, fine + prefix

    def with_prefix(self, tokens: Tensor) -> Tensor:
        """CLS and the tokens."""
        return torch.cat([torch.arange(self.prefix), tokens])

    @property
    def kept(self) -> Tensor:
        """Which of the landmarks of the first kind, CLS first, are those of the second."""
        return self.with_prefix(places(self.landmarks[0], self.landmarks[1]) + self.prefix)

    def patch_features(self, coordinates: Coordinates, X: Tensor) -> Tensor:
        """Per context token of the first kind, of tokens X [m, n, d]: its own principal
        coordinates, their 5 x 5 average around it and their average over the image."""
        Q = coordinates(X[:, self.prefix :])
        r = min(BLURRED, Q.shape[-1])
        image = Q[..., :r].transpose(1, 2).reshape(len(Q), r, self.side, self.side)
        padded = torch.nn.functional.pad(image, (2, 2, 2, 2), mode="replicate")
        blurred = torch.nn.functional.avg_pool2d(padded, 5, 1).flatten(2).transpose(1, 2)
        whole = Q[..., :r].mean(1, keepdim=True).expand(-1, Q.shape[1], -1)
        return torch.cat([Q, blurred, whole], dim=-1)[:, self.context[0] - self.prefix]


def places(among: Tensor, tokens: Tensor) -> Tensor:
    """Where each of `tokens` stands in the increasing list `among`."""
    order = torch.searchsorted(among, tokens)
    assert bool((among[order] == tokens).all())
    return order


def coordinates(X: Tensor, number: int) -> Coordinates:
    """Principal coordinates of tokens [m, k, d] around the mean of each place, fitted to X, over
    which they have unit size."""
    mean = X.mean(0)
    Y = (X - mean).flatten(0, 1)
    V = principal_directions(Y, min(number, Y.shape[1]))
    basis = V / (Y @ V).std(0).clamp_min(1e-12)
    return lambda tokens: (tokens - mean) @ basis


def with_average(Q: Tensor) -> Tensor:
    """Per token its own coordinates and the image's average."""
    return torch.cat([Q, Q.mean(1, keepdim=True).expand(-1, Q.shape[1], -1)], dim=-1)


class Stage:
    """Landmarks, numbers on the grid, that go through `layers` and attend to `context`.

    tokens: with CLS; own: their places in the context; bias [prefix + c]: on the logits; weights
    [prefix + k]: how many tokens of the image each stands for; environment: of the context, or None
    where landmarks attend to one another alone; ffns: one a layer for the model's own, or none."""

    def __init__(self, grid: Grid, layers: range, landmarks: Tensor, context: Tensor) -> None:
        def shares(number: int) -> Tensor:
            patches = torch.full((number,), grid.side**2 / number)
            return torch.cat([torch.ones(grid.prefix), patches])

        self.layers, self.prefix, self.tokens = layers, grid.prefix, grid.with_prefix(landmarks)
        self.own, self.weights = places(context, landmarks), shares(len(landmarks))
        self.bias = shares(len(context)).log()
        self.environment: Environment | None = None
        self.ffns: list[ReducedFfn] = []

    def within(
        self, model: Model, states: Tensor, context: Tensor, seen: Tensor, rank: int
    ) -> "Stage":
        """Itself, in the environment that raw features `seen` [m, c, p] of the context give."""
        if self.layers:
            targets = [model.layers[k].norm_attention(states[k][:, context]) for k in self.layers]
            self.environment = Environment(seen, targets, self.own, rank)
        return self

    def reduced(
        self, model: Model, states: Tensor, units: list[HiddenUnits], share: float, X: Tensor,
        seen: Tensor | None,
    ) -> list[Tensor]:  # fmt: skip
        """`follow` with a share of each FFN's units, fitted to what is missing in front of the true
        next state."""
        path = []
        for k in self.layers:
            middle = self.attended(model, k, X, seen)
            N = model.layers[k].norm_ffn(middle)
            missing = states[k + 1][:, self.tokens] - middle
            count = round(share * len(units[k]))
            ffn = ReducedFfn(units[k], N.flatten(0, 1), missing.flatten(0, 1), count)
            X = middle + ffn(N)
            self.ffns.append(ffn)
            path.append(X)
        return path

    def attended(self, model: Model, number: int, X: Tensor, seen: Tensor | None) -> Tensor:
        """The landmarks [b, prefix + k, d] after the attention of layer `number`; seen [b, c, p]:
        raw features of the context, for its environment."""
        layer = model.layers[number]
        parts = []
        features = torch.split(X if seen is None else seen, PARTS)
        for Z, part in zip(torch.split(X, PARTS), features, strict=True):
            N = context = layer.norm_attention(Z)
            if self.environment is not None:
                phi, k = self.environment.phi(part), number - self.layers.start
                others = self.environment.around(k, phi, self.own, N[:, self.prefix :])
                context = torch.cat([N[:, : self.prefix], others], dim=1)
            parts.append(Z + _mixed(layer, N, context, self.bias))
        return torch.cat(parts)

    def follow(self, model: Model, X: Tensor, seen: Tensor | None) -> list[Tensor]:
        """States of the landmarks after each layer of the stage, from those in front of it."""
        path = []
        for k, number in enumerate(self.layers):
            X = self.attended(model, number, X, seen)
            ffn = self.ffns[k] if self.ffns else model.layers[number].ffn
            if ffn is not None:
                norm = model.layers[number].norm_ffn
                X = torch.cat([Z + ffn(norm(Z)) for Z in torch.split(X, PARTS)])
            path.append(X)
        return path

    def logs(self, Z: Tensor) -> Tensor:
        """log ||HFC||, log ||LFC|| of landmarks Z [b, prefix + k, d] by their weights."""
        Z, w = Z.double(), self.weights.double()
        mean = torch.einsum("k,bkd->bd", w / w.sum(), Z)
        hfc = torch.einsum("k,bkd->b", w, (Z - mean[:, None]).square())
        return torch.stack([hfc, w.sum() * mean.square().sum(-1)], dim=-1).log() / 2

    def cost(self, model: Model) -> int:
        """Multiply-adds for one image."""
        queries, environment, total = len(self.weights), self.environment, 0
        if environment is not None:
            total += (len(self.bias) - self.prefix) * environment.reduction.numel()
        for k, number in enumerate(self.layers):
            layer = model.layers[number]
            total += queries * recording.token_cost(layer)
            if self.ffns:
                total += queries * (self.ffns[k].cost() - recording.ffn_cost(layer))
            if environment is None:
                total += recording.attention_cost(layer, queries, len(self.bias))
            else:
                total += environment.cost(queries, len(self.own), layer.heads)
        return total


def _mixed(layer: Layer, N: Tensor, context: Tensor, bias: Tensor) -> Tensor:
    """What attention adds to landmarks (normalised: N) that attend to `context` [b, c, d]."""
    heads = layer.heads.to("cpu", N.dtype)
    q, k = projected(N, heads.W_Q, heads.b_Q), projected(context, heads.W_K, heads.b_K)
    scaling = q.shape[-1] ** -0.5 if layer.scaling is None else layer.scaling
    A = (scaling * q @ k.mT + bias).softmax(-1)
    return heads.attended(A, context)


def check_layers(model: Model, states: Tensor) -> None:
    """Raise `InputError` unless each layer is attention by q k^T alone and an FFN: position terms
    in the logits would make another one of it."""
    for number, layer in enumerate(model.layers):
        X, after = states[number : number + 2, :2]
        N = layer.norm_attention(X)
        own = X + _mixed(layer, N, N, torch.zeros(X.shape[1]))
        if layer.ffn is not None:
            own = own + layer.ffn(layer.norm_ffn(own))
        if not bool((own - after).abs().max() <= TOLERANCE * (after - X).abs().max()):
            raise InputError(
                f"layer {number + 1} of '{model.name}' is not attention by q k^T alone and an FFN: "
                "P7 knows no other terms; leave it out"
            )


class Landmarks:
    """The fitted P7 of one model. stages: the first two on the grid's finer landmarks, the second,
    which may be empty, among themselves; place, state: coordinates of X_0 and of the landmarks in
    front of the last stage; whole: the states of all context patches of stage 1 and their features,
    where they are read."""

    def __init__(
        self, model: Model, calibration: recording.Recording, first_layers: int = FIRST_LAYERS,
        reduced: bool = False,
    ) -> None:  # fmt: skip
        """Fit environments and features to calibration images; first_layers: of stage 1, more cost
        more and predict better. reduced: three stages with FFNs as in `reduced`. Raises
        `InputError` as `Grid` and `check_layers` do, for what P7 does not stand on, and with
        reduced FFNs for models of one layer and FFNs without hidden units to keep."""
        if model.causal or model.modality != "vision":
            raise InputError(
                f"'{model.name}' is no vision model without a mask: P7 stands on a grid of patches"
            )
        states, start = calibration.states, calibration.start
        assert states is not None
        first, every = min(first_layers, model.depth), range(model.depth)
        ranges = stage_layers(model.depth) if reduced else (every[:first], every[:0], every[first:])
        grid = Grid(start.shape[1], model.cls, denser=reduced)
        units = [
            HiddenUnits.of(layer, f"layer {number} of '{model.name}'")
            for number, layer in enumerate(model.layers, 1)
            if reduced
        ]
        check_layers(model, states)
        if first_layers < 1:
            raise InputError(f"first_layers is {first_layers}: it must be at least 1")
        (even, coarse), (followed, few) = grid.context, grid.landmarks

        def path_of(stage: Stage, share: float, X: Tensor, seen: Tensor | None) -> list[Tensor]:
            if reduced:
                return stage.reduced(model, states, units, share, X, seen)
            return stage.follow(model, X, seen)

        self.model, self.grid = model, grid
        self.place = coordinates(start[:, grid.prefix :], PCS[0])
        self.start_features = StateFeatures(start, content=True)
        seen = grid.patch_features(self.place, start)
        one = Stage(grid, ranges[0], followed, even).within(model, states, even, seen, RANKS[0])
        path = path_of(one, KEPT[0], start[:, one.tokens], seen)
        self.whole: tuple[Environment, StateFeatures] | None = None
        if not reduced:
            after = [states[k + 1][:, even] for k in one.layers]
            environment = Environment(seen, after, one.own, RANKS[0])
            completed = _completed(environment, one, seen, path)
            self.whole = environment, StateFeatures(completed[-1])
        two = Stage(grid, ranges[1], followed, followed)
        last = [*path, *path_of(two, KEPT[1], path[-1], None)][-1]
        self.state_features = StateFeatures(last, weights=one.weights)
        self.state = coordinates(last[:, grid.prefix :], PCS[1])
        near = with_average(self.state(last[:, grid.prefix :]))
        three = Stage(grid, ranges[2], few, coarse).within(model, states, coarse, near, RANKS[1])
        if reduced:
            path_of(three, KEPT[2], last[:, grid.kept], near)
        self.stages = one, two, three

    def features(self, start: Tensor) -> list[Features]:
        """The blocks that the regression reads, from X_0 [m, n, d] alone."""
        grid, model = self.grid, self.model
        one, two, last = self.stages
        parts: list[list[Features]] = []
        for X in torch.split(start, PARTS):
            seen = grid.patch_features(self.place, X)
            path = one.follow(model, X[:, one.tokens], seen)
            blocks, completed = self.start_features(X), []
            if self.whole is not None:
                completed = _completed(self.whole[0], one, seen, path)
            path += two.follow(model, path[-1], None)
            blocks += self.state_features(path[-1])
            if self.whole is not None:
                blocks += self.whole[1](completed[-1])
            seen = with_average(self.state(path[-1][:, grid.prefix :]))
            further = last.follow(model, path[-1][:, grid.kept], seen)
            logs = [recording.log_energies(X), *map(one.logs, path), *map(last.logs, further)]
            logs += map(recording.log_energies, completed)
            ratio = torch.stack([each[:, 0] - each[:, 1] for each in logs], dim=1)
            parts.append([*blocks, Features(ratio.numpy())])
        lots = list(zip(*parts, strict=True))
        weights = [START_WEIGHT] * 2 + [STATE_WEIGHT] * (len(lots) - 3) + [PATH_WEIGHT]
        return [
            Features(np.concatenate([block.values for block in lot]), weight)
            for lot, weight in zip(lots, weights, strict=True)
        ]

    def words(self) -> str:
        """What it is, for a reader of the table."""
        first, second, third = self.stages
        among = f"among themselves to layer {second.layers.stop}, " * bool(first.ffns)
        return (
            f"{len(first.weights)} tokens through the first {first.layers.stop} layers, "
            f"{among}{len(third.weights)} through the others; "
            f"{'FFNs of few hidden units; ' * bool(first.ffns)}kernel ridge"
        )

    def cost(self) -> int:
        """Multiply-adds for one image, but for the final kernel sum."""
        n, d = self.grid.prefix + self.grid.side**2, self.model.width
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
    """All context patches [b, c, d] behind each layer of stage 1, residuals interpolated."""
    phi = whole.phi(features)
    return [whole.around(k, phi, stage.own, Z[:, stage.prefix :]) for k, Z in enumerate(path)]
