"""Do small differences between tokens grow or die, layer by layer: `stability(model, inputs)`.

JVPs through the model's own blocks at consensus, near it and along the streams of the inputs, the
closed form of T8c beside them, real perturbations, and what the stack would do if it were looped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from oversmoothing.experiments.inspection.extract import batches, check_inputs, prepared
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.stability.asymptotic import loop_law
from oversmoothing.experiments.stability.block_maps import recorded
from oversmoothing.experiments.stability.found import Stability
from oversmoothing.experiments.stability.growth import SIZE, Growth, growth
from oversmoothing.experiments.threads import one_thread
from oversmoothing.theory.at_consensus import LoopLaw
from oversmoothing.theory.support.errors import InputError, whole_number


@one_thread()
def stability(
    model: Model,
    inputs: Iterable[Any],
    *,
    count: int | None = None,
    size: float = SIZE,
    seed: int = 0,
) -> Stability:
    """Measure the growth of differences between tokens on the first `count` inputs (None: all).

    model: described, in float64 (float32 rounds the small differences). inputs: as the model reads
    them, taken one at a time, so that texts may differ in length. size: of the real perturbations,
    relative to the stream. seed: of all directions.

    Raises `InputError` for a block without an invariant consensus, without a forward-mode
    derivative or whose output has another shape than its input, and for a single token.
    """
    if model.dtype != torch.float64:
        raise InputError(
            f"the model '{model.name}' is in {model.dtype}, in which small differences drown: open "
            "it with dtype=torch.float64"
        )
    if not 0 < size < 1:
        raise InputError(f"size is {size}: give a share of the stream's length between 0 and 1")
    check_inputs(inputs)
    wanted = None if count is None else whole_number("count", count, 1)
    generator = torch.Generator().manual_seed(seed)
    found: list[Growth] = []
    tokens: set[int] = set()
    law: LoopLaw | None = None
    for number, one in enumerate(batches(inputs, 1)):
        if number == wanted:
            break
        batch = prepared(model, one)
        run = recorded(model, batch)
        found.append(growth(model, run, generator, size))
        X = run.states[0]
        tokens.add(X.shape[1])
        if law is None:
            law = loop_law(run.blocks, X[0].double().mean(0), X.shape[1], model.causal)
    if law is None:
        raise InputError("there are no inputs: give at least one image or text")
    arrays = {name: np.concatenate([each[name] for each in found], axis=1) for name in found[0]}
    return Stability(model.name, sorted(tokens), arrays, law, size, seed)
