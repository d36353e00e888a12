"""What the ladder keeps of a model's runs: X_0, the logs of HFC and LFC, calibration streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.inspection.extract import stream
from oversmoothing.experiments.models.model import Extraction, Model
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
    found = log_energies(X)
    return found[..., 0] - found[..., 1]


def record(
    model: Model,
    inputs: Iterable[Any],
    *,
    states: bool = False,
    watch: Callable[[Extraction], None] | None = None,
    batch_size: int = 25,
) -> Recording:
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
        found = [batch.traces[0].before, *(trace.after_ffn for trace in batch.traces)]
        starts.append(found[0].float().cpu())
        logs.append(torch.stack([log_energies(X) for X in found], dim=1).cpu())
        if states:
            kept.append(torch.stack([X.float().cpu() for X in found]))
        if watch is not None:
            watch(batch)
    if len({X.shape[1] for X in starts}) > 1:
        raise InputError("the inputs have different lengths: give inputs of one number of tokens")
    return Recording(
        torch.cat(starts), torch.cat(logs).numpy(), torch.cat(kept, dim=1) if states else None
    )
