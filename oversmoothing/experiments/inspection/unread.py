"""What can still be shown of a model that is not read: HFC/LFC layer by layer, and its attention.

Both are tensors of the model's own pass, so that nothing is guessed: what is missing is the form
X + sum_h A_h N(X) W_V,h W_O,h, and with it H, spectra, causes and heads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch

from oversmoothing.experiments.inspection.extract import (
    batches,
    check_inputs,
    count,
    prepared_and_moved,
)
from oversmoothing.experiments.intervals import FEWEST, mean_interval
from oversmoothing.experiments.models.checkpoints import in_float32
from oversmoothing.experiments.models.describe import NotReadError
from oversmoothing.experiments.models.model import evaluating, without_autocast
from oversmoothing.experiments.models.pass_graph import Graph, watch
from oversmoothing.experiments.models.reader import read
from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured
from oversmoothing.simulations.state_metrics import stream_log_ratio
from oversmoothing.theory.support.errors import InputError

# Inputs of one pass, every tensor of which is kept.
BATCH = 4
TEN = float(np.log(10))
PLACES = ("in front", "behind attention", "behind layer")


@torch.no_grad()
def seen(refused: NotReadError, inputs: Any) -> Result:
    """log10 HFC/LFC of the streams of a refused model, and how its tokens attend, by layer.

    inputs: as `inspect` takes them. NaN where the pass shows no such stream. Raises `InputError`
    where no attention with a residual sum was seen.
    """
    model = refused.model
    check_inputs(inputs)
    size = 1 if model.modality == "text" and not isinstance(inputs, torch.Tensor) else BATCH
    parts: list[np.ndarray] = []
    names: list[str] = []
    with evaluating(model.module), in_float32(model.module), without_autocast():
        for part in batches(inputs, size):
            batch = prepared_and_moved(model, part)
            graph = watch(lambda batch=batch: model.run(batch), model.module, batch)  # type: ignore[misc]
            names, rows = _layers(graph, model.module, count(part) or 1)
            parts.append(rows)
    if not names or len({len(each) for each in parts}) > 1:
        raise InputError(f"{refused}. Its passes show no stream that could be measured")
    values = np.concatenate(parts, 2)
    columns = [*PLACES, "largest weight"]
    table = pd.DataFrame({"attention": range(1, len(names) + 1), "block": names} | {
        column: values[:, k].mean(1) for k, column in enumerate(columns)
    })  # fmt: skip
    last = values[-1, 2] if np.isfinite(values[-1, 2]).all() else values[-1, 1]
    change = last - values[0, 0]
    mean, low, high = mean_interval(change)
    number = len(change)
    # Without an interval it is said of these inputs alone, which the evidence counts.
    known = np.isfinite(mean) and not low <= 0 <= high
    how = f"tokens end {'more' if mean < 0 else 'less'} alike"
    says = (
        f"{model.name}: from the input to the last layer log10 HFC/LFC (differences between tokens "
        f"over what they share) changes by {mean:+.2f}: "
        f"{how if known else 'whether tokens end more alike cannot be told'}."
    )
    why = f"By what, it cannot say: {refused}."
    evidence = measured(number, low, high) if number >= FEWEST else measured(number)
    return Result(
        "unread", f"{model.name}: what its own pass shows", {
            "layers": Table(table, dict.fromkeys(PLACES, "log10 HFC/LFC"))
        }, [Sentence(says, evidence), Sentence(why, measured(number))],
        {"model": model.name, "inputs": number},
    )  # fmt: skip


def _layers(graph: Graph, module: Any, inputs: int) -> tuple[list[str], np.ndarray]:
    """(names of the blocks, [layers, 4, inputs]: the three ratios and the mean largest weight)."""
    names, rows = [], []
    for each in read(graph, module, inputs):
        if each.kind != "self" or not each.placed:
            continue
        A = graph.values[each.product.A]
        A = (A.mT if each.product.flipped else A).double()
        # Windows and heads lie side by side in the first dimensions.
        largest = A.amax(-1).reshape(inputs, -1).mean(1)
        streams, like = (each.before, each.total, each.end), graph.values[each.total]
        ratios = [_ratio(graph.values[v], like, inputs) if v >= 0 else None for v in streams]
        missing = torch.full((inputs,), torch.nan, dtype=torch.float64)
        rows.append(torch.stack([*(missing if x is None else x for x in ratios), largest]).numpy())
        names.append(graph.block(each.product.out, max(each.end, each.total)).name)
    return names, np.array(rows)


def _ratio(X: torch.Tensor, like: torch.Tensor, inputs: int) -> torch.Tensor | None:
    """log10 HFC/LFC by input; None where the sum with attention is no [inputs, tokens.., width]."""
    if like.ndim < 3 or len(like) != inputs or X.numel() != like.numel():
        return None
    return stream_log_ratio(X.reshape(like.shape).flatten(1, -2)).double() / TEN
