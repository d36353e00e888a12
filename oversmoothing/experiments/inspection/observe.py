"""What is observed of one batch: the metrics of the stream by layer and the account by sublayer.

Everything kept is a number an input (image or text): thousands of inputs run in bounded memory, and
intervals are over inputs, which are the independent observations.
"""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.inspection.account import check_account, layer_account
from oversmoothing.experiments.models.model import Extraction, Model
from oversmoothing.simulations.state_metrics import stream_log_ratio, stream_metrics
from oversmoothing.theory.support.sizes import Array


class Observed(NamedTuple):
    """By name, float64: metrics [layers + 1, b] (row 0: in front of layer 1); account [layers, b],
    the changes of log HFC/LFC over each sublayer and, over the inputs whose account was taken,
    their parts; drift [layers, b]: ||A_l - A_{l-1}||_F / ||A_l||_F of the mean over heads (NaN for
    l = 1)."""

    metrics: dict[str, Array]
    account: dict[str, Array]
    drift: dict[str, Array]


def join(batches: Iterable[Observed]) -> Observed:
    """Batches one after the other; the first ones have had their account taken, or none."""
    return Observed(
        *(
            {
                name: np.concatenate([each[name] for each in parts if name in each], axis=1)
                for name in parts[0]
            }
            for parts in zip(*batches, strict=True)
        )
    )


def log_ratio(X: Tensor, keep: Tensor | None = None) -> Tensor:
    """log HFC/LFC [b] over the kept tokens of X [b, n, d], float64. Padding counts for nothing."""
    return torch.cat([stream_log_ratio(x) for x in _kept(X, keep)])


def _kept(X: Tensor, keep: Tensor | None) -> list[Tensor]:
    """The stream without padding: input by input where there is any."""
    if keep is None:
        return [X]
    return [x[k].unsqueeze(0) for x, k in zip(X, keep, strict=True)]


def observe(
    model: Model, batch: Extraction, *, account: bool = True, verify: bool = True
) -> Observed:
    """Metrics of every stream, with and without CLS where the model has one, and the account.

    account: split each sublayer's change by what its norm adds. verify: compute every part of that
    from the weights (see `layer_account`). Raises `InputError` for an account that does not close.
    """
    keep = None if bool(batch.keep.all()) else batch.keep
    metrics: list[dict[str, Tensor]] = []
    for X in (batch.traces[0].before, *(trace.after_ffn for trace in batch.traces)):
        each = [stream_metrics(x, without_first=model.cls) for x in _kept(X, keep)]
        metrics.append({name: torch.cat([one[name] for one in each]) for name in each[0]})
    changes: list[dict[str, Tensor]] = []
    for number, (layer, trace) in enumerate(zip(model.layers, batch.traces, strict=True)):
        start, end = (metrics[k]["log_hfc_lfc"] for k in (number, number + 1))
        middle = log_ratio(trace.after_attention, keep)
        change = {"attention": middle - start, "ffn": end - middle}
        if account:
            measure = partial(log_ratio, keep=keep)
            parts = layer_account(layer, trace, measure, keep, verify=verify)
            check_account(number, parts, (start, middle, end), model.dtype)
            change |= parts
        changes.append({f"log_change_{name}": value for name, value in change.items()})
    return Observed(_stacked(metrics), _stacked(changes), {"attention_drift": _drift(batch, keep)})


def _stacked(rows: list[dict[str, Tensor]]) -> dict[str, Array]:
    return {name: torch.stack([row[name] for row in rows]).cpu().numpy() for name in rows[0]}


def _drift(batch: Extraction, keep: Tensor | None) -> Array:
    """Rows and columns of padding are 0 in a masked mean attention only if its queries are; they
    are cut by the weights."""
    found: list[Tensor] = []
    before = torch.tensor(torch.nan)
    for trace in batch.traces:
        assert trace.attention is not None
        A = trace.attention.mean(1)
        if keep is not None:
            A = A * keep.unsqueeze(-1)
        step, size = (
            torch.linalg.vector_norm(each, dim=(-2, -1), dtype=torch.float64)
            for each in (A - before, A)
        )
        found.append(step / size)
        before = A
    return torch.stack(found).cpu().numpy()
