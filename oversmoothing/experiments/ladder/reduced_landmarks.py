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

from oversmoothing.experiments.ladder.features import StateFeatures
from oversmoothing.experiments.ladder.landmarks import PCS, RANKS, Landmarks
from oversmoothing.experiments.ladder.patches import (
    Coordinates,
    Grid,
    Stage,
    check_layers,
    patch_states,
)
from oversmoothing.experiments.ladder.recording import Recording
from oversmoothing.experiments.ladder.reduced_ffn import HiddenUnits, ReducedFfn
from oversmoothing.experiments.models.model import Model
from oversmoothing.theory.support.errors import InputError

ENDS = (1 / 12, 7 / 12)  # of stages A and B, in the model's depth
KEPT = (3 / 8, 1 / 4, 1 / 32)  # of the hidden units, by stage


@dataclass(frozen=True)
class ReducedLandmarks(Landmarks):
    """The fitted rung of one model."""

    @classmethod
    def fit(cls, model: Model, calibration: Recording) -> ReducedLandmarks:  # type: ignore[override]
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
        coarse, few = grid.landmarks

        def corrected(
            stage: Stage, kept: float, tokens: Tensor, X: Tensor, seen: Tensor | None
        ) -> tuple[Stage, list[Tensor]]:
            """The stage with FFNs fitted from the landmarks' states X in front of it, and those
            after each of its layers."""
            path, ffns = [], []
            for k in stage.layers:
                middle = stage.attended(model, k, X, seen)
                N = model.layers[k].norm_ffn(middle)
                missing = states[k + 1][:, grid.with_prefix(tokens)] - middle
                count = round(kept * len(units[k]))
                ffn = ReducedFfn.fit(units[k], N.flatten(0, 1), missing.flatten(0, 1), count)
                X = middle + ffn(N)
                ffns.append(ffn)
                path.append(X)
            return replace(stage, ffns=tuple(ffns)), path

        place = Coordinates.fit(start[:, grid.prefix :], PCS[0])
        seen = grid.patch_features(place, start)
        X = start[:, grid.with_prefix(coarse)]
        one = Stage.fit(model, states, grid, ranges[0], coarse, grid.context[0], seen, RANKS[0])
        one, path = corrected(one, KEPT[0], coarse, X, seen)
        two = Stage.of(grid, ranges[1], coarse, coarse)
        two, further = corrected(two, KEPT[1], coarse, path[-1], None)
        last = (path + further)[-1]
        inner = last[:, grid.prefix :]
        state = Coordinates.fit(inner, PCS[1])
        seen = state.with_average(inner)
        three = Stage.fit(model, states, grid, ranges[2], few, grid.context[1], seen, RANKS[1])
        three, _ = corrected(three, KEPT[2], few, last[:, grid.kept], seen)
        return cls(
            model, grid, (one, two, three), place, state,
            StateFeatures.fit(start, content=True),
            StateFeatures.fit(last, weights=two.weights),
        )  # fmt: skip

    def words(self) -> str:
        """What it is, for a reader of the table."""
        first, second, third = self.stages
        return (
            f"{len(first.weights)} tokens through the first {first.layers.stop} layers, among "
            f"themselves to layer {second.layers.stop}, {len(third.weights)} through the others; "
            "FFNs of few hidden units; kernel ridge"
        )


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
