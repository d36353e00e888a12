"""What is asked of the first few inputs alone: behind the sinks, head by head, token by token."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversmoothing.experiments.inspection.head_table import Measured, head_measures, head_table
from oversmoothing.experiments.inspection.shown import DRAWN
from oversmoothing.experiments.inspection.sink_attention import Seen, seen_attention, sink_attention
from oversmoothing.experiments.inspection.sinks import sink_columns
from oversmoothing.experiments.inspection.token_clusters import (
    cluster_columns,
    token_clusters,
    token_table,
)
from oversmoothing.experiments.models.model import Extraction, Model
from oversmoothing.theory.support.sizes import Array


class Closer:
    """A closer look at some inputs; kept are numbers by layer, head and token."""

    def __init__(self, model: Model) -> None:
        self.model, self.inputs = model, 0
        self._states: list[dict[str, Array]] = []
        self._heads: list[Measured] = []
        self._labels: list[NDArray[np.int64]] = []
        self._sinks: list[list[list[Seen]]] = []

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
        if any(layer.sinks is not None for layer in self.model.layers):
            self._sinks.append(seen_attention(self.model, batch))
        self._labels += labels[: max(0, DRAWN - self.inputs)]
        self.inputs += len(batch.keep)

    def columns(self) -> dict[str, Array]:
        """By name [layers + 1, inputs]: of `sinks`, of `cluster_columns`, and where the attention
        has sinks of `sink_attention`; empty for none."""
        attention = sink_attention(self.model, self._sinks) if self._sinks else {}
        return _joined(self._states) | attention

    def heads(self) -> pd.DataFrame:
        """`head_table`; empty for none."""
        return head_table(_joined(self._heads)) if self._heads else pd.DataFrame()

    def tokens(self, words: Sequence[Sequence[str]] | None = None) -> pd.DataFrame:
        """`token_table` of the first DRAWN inputs, with the words of theirs; empty for none."""
        return token_table(self._labels, words) if self._labels else pd.DataFrame()


def _joined(parts: Sequence[dict[str, Array]]) -> dict[str, Array]:
    names = parts[0] if parts else ()
    return {name: np.concatenate([each[name] for each in parts], axis=-1) for name in names}
