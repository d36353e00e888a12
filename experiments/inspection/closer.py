"""What is asked of the first few inputs alone: behind the sinks, head by head, token by token."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from oversmoothing.experiments.inspection.extract import prepared
from oversmoothing.experiments.inspection.head_table import Measured, head_measures, head_table
from oversmoothing.experiments.inspection.sinks import sink_columns
from oversmoothing.experiments.inspection.token_clusters import (
    cluster_columns,
    token_clusters,
    token_table,
)
from oversmoothing.experiments.models.model import Extraction, Model
from oversmoothing.theory.support.arrays import Array

# Inputs whose tokens are listed and drawn.
DRAWN = 3


class Closer:
    """A closer look at some inputs; kept are numbers by layer, head and token."""

    def __init__(self, model: Model) -> None:
        self.model, self.inputs = model, 0
        self._states: list[dict[str, Array]] = []
        self._heads: list[Measured] = []
        self._labels: list[NDArray[np.int64]] = []

    def see(self, batch: Extraction, spectra: int) -> None:
        """Look at every input of a batch that carries attention.

        spectra: how many inputs may have theirs taken; the heads share in it, so that all of them
        cost what the means over heads do.
        """
        heads = max(layer.heads.number for layer in self.model.layers)
        share = min(spectra, max(1, spectra // heads)) - self.inputs
        labels = token_clusters([batch])
        states = sink_columns([batch], cls=self.model.cls, registers=self.model.registers)
        states |= cluster_columns(labels)
        self._states.append(states)
        self._heads.append(head_measures(self.model, batch, max(0, share)))
        self._labels += labels[: max(0, DRAWN - self.inputs)]
        self.inputs += len(batch.keep)

    def columns(self) -> dict[str, Array]:
        """By name [layers + 1, inputs]: of `sinks` and of `cluster_columns`; empty for none."""
        return _joined(self._states)

    def heads(self) -> pd.DataFrame:
        """`head_table`; empty for none."""
        return head_table(_joined(self._heads)) if self._heads else pd.DataFrame()

    def tokens(self) -> pd.DataFrame:
        """`token_table` of the first DRAWN inputs; empty for none."""
        return token_table(self._labels) if self._labels else pd.DataFrame()


def _joined(parts: Sequence[dict[str, Array]]) -> dict[str, Array]:
    names = parts[0] if parts else ()
    return {name: np.concatenate([each[name] for each in parts], axis=-1) for name in names}


def shown_pixels(model: Model, inputs: Any) -> NDArray[np.float64] | None:
    """The first DRAWN inputs [k, H, W, 3] in [0, 1] as the model sees them, each stretched to its
    own range; None where they are no images or come from an iterator, which is read but once."""
    if model.modality != "vision" or not isinstance(inputs, Tensor | Mapping | Sequence):
        return None
    if isinstance(inputs, Mapping):
        batch: Any = {name: value[:DRAWN] for name, value in inputs.items()}
    else:
        batch = prepared(model, inputs[:DRAWN]) if len(inputs) else None
    pixels = batch.get("pixel_values") if isinstance(batch, Mapping) else batch
    if not isinstance(pixels, Tensor) or pixels.ndim not in (3, 4):
        return None
    if pixels.ndim == 3:
        pixels = pixels.unsqueeze(1)
    if pixels.shape[1] not in (1, 3):
        return None
    values = pixels.detach().cpu().double().permute(0, 2, 3, 1).expand(-1, -1, -1, 3)
    low, high = (getattr(values, f"a{end}")((1, 2, 3), keepdim=True) for end in ("min", "max"))
    scaled: NDArray[np.float64] = ((values - low) / (high - low).clamp_min(1e-12)).numpy()
    return scaled
