"""What is observed of one batch: the metrics of the stream by layer and the account by sublayer.

Everything kept is a number an input (image or text): thousands of inputs run in bounded memory, and
intervals are over inputs, which are the independent observations.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.inspection.account import PARTS, SUBLAYERS, layer_account
from oversmoothing.experiments.models.model import Extraction, Model
from oversmoothing.simulations.metrics.stream_metrics import stream_log_ratio, stream_metrics
from oversmoothing.theory.support.arrays import Array

PART_NAMES = tuple(f"{sublayer}_{part}" for sublayer in SUBLAYERS for part in PARTS)


@dataclass(frozen=True)
class Observed:
    """metrics {name: [layers + 1, b]} (row 0: in front of layer 1); parts {PART_NAMES: [layers,
    k]}, of the change of log HFC/LFC, over the k inputs whose account was taken; middle [layers,
    b]: log HFC/LFC after each attention sublayer; drift [layers, b]: ||A_l - A_{l-1}||_F /
    ||A_l||_F of the mean over heads (NaN for l = 1). All float64."""

    metrics: dict[str, Array]
    parts: dict[str, Array]
    middle: Array
    drift: Array


def join(parts: list[Observed]) -> Observed:
    """Batches one after the other."""
    return Observed(
        {k: np.concatenate([p.metrics[k] for p in parts], axis=1) for k in parts[0].metrics},
        {
            k: np.concatenate([p.parts[k] for p in parts if p.parts[k].size], axis=1)
            for k in parts[0].parts
            if parts[0].parts[k].size
        },
        np.concatenate([p.middle for p in parts], axis=1),
        np.concatenate([p.drift for p in parts], axis=1),
    )


def log_ratio(X: Tensor, keep: Tensor | None = None) -> Tensor:
    """log HFC/LFC [b] over the kept tokens of X [b, n, d], float64. Padding counts for nothing."""
    if keep is None:
        return stream_log_ratio(X)
    each = [stream_log_ratio(x[k].unsqueeze(0)) for x, k in zip(X, keep, strict=True)]
    return torch.cat(each)


def observe(
    model: Model, batch: Extraction, *, account: bool = True, verify: bool = True
) -> Observed:
    """Metrics of every stream, with and without CLS where the model has one, and the account.

    account: split each sublayer's change by what its norm adds. verify: compute every part of that
    from the weights (see `layer_account`).
    """
    keep = None if bool(batch.keep.all()) else batch.keep
    streams = [batch.traces[0].before, *(trace.after_ffn for trace in batch.traces)]
    rows = [_metrics(X, keep, model.cls) for X in streams]
    middle, parts = [], []
    for layer, trace in zip(model.layers, batch.traces, strict=True):
        if account:
            found = layer_account(layer, trace, lambda X: log_ratio(X, keep), keep, verify=verify)
            parts.append(found.parts)
        middle.append(log_ratio(trace.after_attention, keep))
    return Observed(
        {name: np.stack([row[name].cpu().numpy() for row in rows]) for name in rows[0]},
        {
            # No column where no account was taken.
            name: np.stack([part[name].cpu().numpy() for part in parts])
            if account
            else np.zeros((1, 0))
            for name in PART_NAMES
        },
        torch.stack(middle).cpu().numpy(),
        _drift(batch, keep),
    )


def _metrics(X: Tensor, keep: Tensor | None, cls: bool) -> dict[str, Tensor]:
    if keep is None:
        return stream_metrics(X, without_first=cls)
    each = [
        stream_metrics(x[k].unsqueeze(0), without_first=cls) for x, k in zip(X, keep, strict=True)
    ]
    return {name: torch.cat([one[name] for one in each]) for name in each[0]}


def _drift(batch: Extraction, keep: Tensor | None) -> Array:
    """Rows and columns of padding are 0 in a masked mean attention only if its queries are; they
    are cut by the weights."""
    found: list[Tensor] = []
    before = None
    for trace in batch.traces:
        if trace.attention is None:
            found.append(torch.full((len(trace.before),), torch.nan, dtype=torch.float64))
            continue
        A = trace.attention.mean(1)
        if keep is not None:
            A = A * keep.unsqueeze(-1)
        size = torch.linalg.vector_norm(A, dim=(-2, -1), dtype=torch.float64)
        if before is None:
            found.append(torch.full_like(size, torch.nan))
        else:
            found.append(
                torch.linalg.vector_norm(A - before, dim=(-2, -1), dtype=torch.float64) / size
            )
        before = A
    return torch.stack(found).cpu().numpy()
