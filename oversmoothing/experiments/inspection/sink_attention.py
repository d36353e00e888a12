"""Attention with learned sinks: its rows sum to less than 1, and what its spectrum is all the same.

1 + h a are the eigenvalues of I + H (x) A for any square A and H (T1a). But A 1 is not 1 there, so
that consensus is no mode, and the verdicts of the theory, which are of row-stochastic A, do not
apply: numbers alone, no verdict. A is the mean over heads, H whole, as in reading E2.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oversmoothing.experiments.inspection.attention_spectra import matrices
from oversmoothing.experiments.inspection.why import value_projection
from oversmoothing.experiments.models.model import Extraction, Model
from oversmoothing.theory.support.sizes import Array

# Of one layer and input: the mean sum of A's rows, and the eigenvalues of A.
Seen = tuple[float, NDArray[np.complex128]]


def seen_attention(model: Model, batch: Extraction) -> list[list[Seen]]:
    """Of every layer, of every input of a batch that carries attention."""
    found = []
    for number in range(model.depth):
        means = [A.astype(np.float64).mean(axis=0) for A in matrices(batch, number)]
        found.append([(float(A.sum(axis=1).mean()), _eigenvalues(A, model.causal)) for A in means])
    return found


def _eigenvalues(A: Array, causal: bool) -> NDArray[np.complex128]:
    return (np.diagonal(A) if causal else np.linalg.eigvals(A)).astype(np.complex128)


def sink_attention(model: Model, batches: Sequence[list[list[Seen]]]) -> dict[str, Array]:
    """By name [layers + 1, inputs], NaN in front of the first layer: row_sum, the mean over rows;
    attention_radius, the largest |a|; operator_radius, the largest |1 + h a|."""
    rows: dict[str, list[list[float]]] = {}
    for number, layer in enumerate(model.layers):
        h = np.linalg.eigvals(value_projection(layer.heads))
        each = [seen for batch in batches for seen in batch[number]]
        columns = {
            "row_sum": [total for total, _ in each],
            "attention_radius": [float(np.abs(a).max()) for _, a in each],
            "operator_radius": [float(np.abs(1 + np.outer(h, a)).max()) for _, a in each],
        }
        for name, values in columns.items():
            rows.setdefault(name, [[np.nan] * len(values)]).append(values)
    return {name: np.array(values) for name, values in rows.items()}
