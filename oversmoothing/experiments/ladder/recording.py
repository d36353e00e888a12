"""What the ladder keeps of a model's runs, and what they cost.

X_0, the logs of HFC and LFC, calibration streams; costs are multiply-adds for one input, weights
times tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.inspection.extract import stream
from oversmoothing.experiments.models.model import Extraction, Heads, Layer, Model
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array


@dataclass(frozen=True)
class Recording:
    """start: X_0 [m, n, d] float32; logs [m, layers + 1, 2]: natural logs of ||HFC||_F and
    ||LFC||_F in front of layer 1 and after every layer; states [layers + 1, m, n, d] or None."""

    start: Tensor
    logs: Array
    states: Tensor | None = None

    @property
    def change(self) -> Array:
        """The change of log HFC/LFC over every layer, [m, layers]."""
        return np.diff(self.logs[..., 0] - self.logs[..., 1], axis=1)

    def __len__(self) -> int:
        return len(self.start)

    def kept(self, rung: str) -> Tensor:
        """The states. Raises `InputError` where they were not kept."""
        if self.states is None:
            raise InputError(f"{rung} is fitted to calibration states: record with states=True")
        return self.states

    def first(self, count: int) -> Recording:
        """The first inputs alone."""
        states = None if self.states is None else self.states[:, :count]
        return Recording(self.start[:count], self.logs[:count], states)

    def followed_by(self, copies: Recording) -> Recording:
        """These inputs and, below, altered copies of them; without states."""
        logs = np.concatenate([self.logs, copies.logs])
        return Recording(torch.cat([self.start, copies.start]), logs)


def log_energies(X: Tensor) -> Tensor:
    """(log ||HFC||_F, log ||LFC||_F) of X [..., n, d]: [..., 2] float64; centred first."""
    X = X.double()
    mean = X.mean(-2, keepdim=True)
    hfc = torch.linalg.vector_norm(X - mean, dim=(-2, -1))
    lfc = X.shape[-2] ** 0.5 * torch.linalg.vector_norm(mean, dim=(-2, -1))
    return torch.stack([hfc, lfc], dim=-1).log()


def log_ratio(X: Tensor) -> Tensor:
    """log HFC/LFC [...] of X [..., n, d], float64."""
    logs = log_energies(X)
    return logs[..., 0] - logs[..., 1]


def record(
    model: Model, inputs: Iterable[Any], *, states: bool = False,
    watch: Callable[[Extraction], None] | None = None, batch_size: int = 25,
) -> Recording:  # fmt: skip
    """Run the model on the inputs and keep what `Recording` says.

    watch: sees every batch of the run, with its attention. Raises `InputError` for inputs of
    different lengths.
    """
    starts, logs, kept = [], [], []
    for batch in stream(model, inputs, batch_size=batch_size, attention=watch is not None):
        if not bool(batch.keep.all()):  # the ladder's operators act on n tokens that all exist
            raise InputError(
                "the inputs have different lengths: give texts of one number of tokens, or cut them"
            )
        streams = [batch.traces[0].before, *(trace.after_ffn for trace in batch.traces)]
        starts.append(streams[0].float().cpu())
        logs.append(torch.stack([log_energies(X) for X in streams], dim=1).cpu())
        if states:
            kept.append(torch.stack([X.float().cpu() for X in streams]))
        if watch is not None:
            watch(batch)
    if len({X.shape[1] for X in starts}) > 1:
        raise InputError("the inputs have different lengths: give inputs of one number of tokens")
    return Recording(
        torch.cat(starts), torch.cat(logs).numpy(), torch.cat(kept, dim=1) if states else None
    )


def _projections(heads: Heads) -> int:
    return 2 * heads.W_Q.numel() + heads.W_V.numel() + heads.W_O.numel()


def token_cost(layer: Layer) -> int:
    """Multiply-adds of one token through the layer's projections and FFN, without attention."""
    return _projections(layer.heads) + ffn_cost(layer)


def ffn_cost(layer: Layer) -> int:
    """Multiply-adds of one token through the FFN: the block's matrices that are not attention's.

    0 without an FFN. A block whose attention module is the block itself counts what its own
    projections leave.
    """
    if layer.ffn is None:
        return 0
    if layer.attention is layer.block:
        entries = sum(p.numel() for p in layer.block.parameters() if p.ndim == 2)
        return max(entries - _projections(layer.heads), 0)
    inner = {id(p) for p in layer.attention.parameters()}
    if layer.out is not None:
        inner |= {id(p) for p in layer.out.parameters()}
    return sum(p.numel() for p in layer.block.parameters() if p.ndim == 2 and id(p) not in inner)


def attention_cost(layer: Layer, queries: int, keys: int) -> int:
    """Multiply-adds of q k^T and A v."""
    heads = layer.heads
    return queries * keys * heads.number * (heads.W_Q.shape[-1] + heads.width)


def model_cost(model: Model, tokens: int) -> int:
    """Multiply-adds of all layers on one input of `tokens` tokens (no embedding, no final head)."""
    return sum(tokens * token_cost(x) + attention_cost(x, tokens, tokens) for x in model.layers)
