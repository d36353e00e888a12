"""Does a looped block of a trained model bring its tokens together: `loop(model, inputs)`.

Every block, or group of blocks in turn, is predicted before its tokens are looped, then looped with
attention recomputed, and both are held against each other (T12).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.inspection.extract import (
    batches,
    check_inputs,
    count,
    extract,
    prepared,
)
from oversmoothing.experiments.ladder.operators import GAP_NAMES, spectral_gaps
from oversmoothing.experiments.models.model import Model, evaluating
from oversmoothing.experiments.repeated.blocks import BlockMap, check_consensus, recorded
from oversmoothing.experiments.repeated.loop_result import Loops
from oversmoothing.experiments.repeated.outcomes import looped, outcomes
from oversmoothing.experiments.repeated.predictors import (
    EARLY,
    FEW,
    GAP,
    LOCAL,
    LOOKED_AT,
    early_predictions,
    few_tokens,
    local_predictions,
    token_predictions,
)
from oversmoothing.experiments.threads import one_thread
from oversmoothing.simulations.progress import Bar
from oversmoothing.theory.support.errors import InputError, whole_number

LOOPS = 200
BATCH = 20

Group = tuple[int, ...]


@one_thread()
def loop(
    model: Model,
    inputs: Iterable[Any],
    *,
    groups: Sequence[Group] | None = None,
    loops: int = LOOPS,
    seed: int = 0,
) -> Loops:
    """Loop each group of layers (numbers from 1, in turn) `loops` times from the stream in front of
    its first on every input; None: every block of the model by itself, each once.

    With two or more groups and inputs a predictor is chosen on half of both and scored on the
    others, by the seed. Raises `InputError` for fewer than 20 loops, groups that the model does not
    have, inputs of different lengths, and blocks without an invariant consensus.
    """
    whole_number("loops", loops, 20)
    check_inputs(inputs)
    chosen = own_blocks(model) if groups is None else list(groups)
    check_groups(model, chosen)
    rows: list[dict[str, Any]] = []
    curves: list[list[np.ndarray]] = [[] for _ in chosen]
    names: dict[str, None] = {}
    seen = 0
    size = 1 if model.modality == "text" else BATCH
    shown = Bar(len(chosen) * ceil((count(inputs) or 1) / size), "block")
    for one in batches(inputs, size):
        batch = prepared(model, one)
        run = recorded(model, batch)
        gaps = _gaps(model, batch)
        with torch.no_grad(), evaluating(model.module):
            for place, group in enumerate(chosen):
                blocks = [run.blocks[number - 1] for number in group]
                X = run.states[group[0] - 1]
                gap = gaps[:, [number - 1 for number in group]].sum(1)
                own, logs = _group(model, blocks, X, gap, loops, batch)
                curves[place].append(logs)
                for number, row in enumerate(own):
                    names |= dict.fromkeys(row["predicted"])
                    rows.append({"group": place, "input": seen + number} | row)
                shown.update()
        seen += len(run.states[0])
    shown.close()
    if not rows:
        raise InputError("there are no inputs: give at least one image or text")
    joined = [np.concatenate(each, axis=1) for each in curves]
    return Loops(model.name, chosen, seed, rows, np.stack(joined), tuple(names))


def own_blocks(model: Model) -> list[Group]:
    """Each block of the model by itself; one that serves as several layers (ALBERT) once."""
    first: dict[int, int] = {}
    for number, layer in enumerate(model.layers, 1):
        first.setdefault(id(layer.block), number)
    return [(number,) for number in first.values()]


def check_groups(model: Model, groups: Sequence[Group]) -> None:
    """Raises `InputError` unless every group names layers that the model has."""
    for group in groups:
        if not group or not all(1 <= number <= model.depth for number in group):
            named = "-".join(map(str, group[:9])) + "-..." * (len(group) > 9)
            raise InputError(
                f"the group {named or '(none)'} names layers that "
                f"'{model.name}' does not have: it has layers 1 to {model.depth}"
            )


def _gaps(model: Model, batch: Any) -> Tensor:
    """log(rho_Q/rho_C) [b, layers] of each layer on its own stream."""
    traces = extract(model, batch, verify=False).traces
    return spectral_gaps(model.layers, traces)[GAP_NAMES[0]]


def _group(
    model: Model, blocks: list[BlockMap], X: Tensor, gap: Tensor, loops: int, batch: Any
) -> tuple[list[dict[str, Any]], Any]:
    at = X
    for f in blocks:
        check_consensus(f, at)
        at = f(at)
    predicted = {}
    predicted[LOCAL], laws = local_predictions(blocks, X, loops)
    for number in FEW:
        if number < X.shape[1]:
            few = _of_few(model, blocks, X, number, loops, batch)
            if few is not None:
                predicted[few_tokens(number)] = few
    run = looped(blocks, X, loops)
    predicted[GAP] = run.logs[0] + loops * gap.numpy()
    predicted[EARLY] = early_predictions(run.logs[: LOOKED_AT + 1], loops)
    rows = []
    for k, outcome in enumerate(outcomes(run)):
        own = {name: float(values[k]) for name, values in predicted.items()}
        law = laws[k]
        rows.append(
            {
                "start": float(np.exp(run.logs[0, k])), **outcome, "predicted": own,
                "exponent": law.exponent, "rate": law.rate, "attracts": law.attracts,
                "power": law.power, "turning": law.turning, "settled": law.settled,
                "law": law,
            }
        )  # fmt: skip
    return rows, run.logs


def _of_few(
    model: Model, blocks: list[BlockMap], X: Tensor, number: int, loops: int, batch: Any
) -> Any:
    """Of images, whose blocks know no positions; None for texts, whose blocks may."""
    if model.modality != "vision" or any(_token_sized(f, X.shape[1]) for f in blocks):
        return None
    return token_predictions(blocks, X, number, loops)


def _token_sized(f: BlockMap, n: int) -> bool:
    """Whether the block is called with something as long as its tokens beside the stream."""
    given = [*f.args, *f.kwargs.values(), *f.call.values()]
    beside = [each for each in given if isinstance(each, Tensor) and each.ndim != 3]
    return any(n in each.shape for each in beside)
