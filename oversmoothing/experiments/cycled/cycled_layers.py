"""The layers of a trained model, as linear operators, over and over (T7a).

Each keeps the attention that it had on one input and the weights of its heads; norms, biases and
FFNs are left out, the gains of the norm folded into W_V where that is asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.table1.value_spectra import Folding, factors
from oversmoothing.simulations.engine.layers import PerLayer
from oversmoothing.theory.support.sizes import Array


def cycled_layers(
    model: Model, batch: Any, scale: float = 1.0, folding: Folding = "unfolded"
) -> tuple[PerLayer, PerLayer, Array]:
    """Attention and weights by layer, and the X_0 that the first block was given, [n, d].

    batch: one input, as `extract` takes it. scale: multiplies every W_V W_O.
    """
    found = extract(model, batch)
    attention = [
        _rows(trace.attention[0].double().numpy())
        for trace in found.traces
        if trace.attention is not None
    ]
    weights = [
        (scale * W_V, W_O) for W_V, W_O in (factors(layer, folding) for layer in model.layers)
    ]
    X0 = found.traces[0].before[0].double().numpy()
    period = len(attention)
    return (
        PerLayer(lambda layer: attention[layer % period]),
        PerLayer(lambda layer: weights[layer % period]),
        X0,
    )


def _rows(A: Array) -> Array:
    """What is stochastic to the rounding of float32, to that of float64."""
    return np.asarray(A / A.sum(-1, keepdims=True))
