"""What probe images measure in a digits model: dominance by layer, and the intervals of T3b."""

import torch
from torch import Tensor

from oversmoothing.experiments.digits.vit import LayerTrace, ViT
from oversmoothing.experiments.forms.form import ValueProjection
from oversmoothing.experiments.forms.regions import MeasuredInterval
from oversmoothing.simulations.spectra.layer_dominance import (
    LayerDominance,
    layer_dominance,
    mean_attention,
)
from oversmoothing.theory.support.sizes import Array

# How often a tied H whose attention moves with it is measured before s = 1 is taken.
MEASURED_AGAIN = 8


@torch.no_grad()
def dominance_by_layer(model: ViT, pixels: Tensor) -> list[LayerDominance]:
    """Reading E2 of every layer on images on the model's device."""
    record: list[LayerTrace] = []
    model(pixels, record)
    return [
        layer_dominance(trace.attention.cpu().numpy(), H.numpy())
        for trace, H in zip(record, model.value_projections(), strict=True)
    ]


def refresh_intervals(model: ViT, pixels: Tensor) -> None:
    """Set every measured interval (-s, 0) to the smallest s of its layers over these images.

    H moves with s, and the attention of later layers with H: layers are taken in turn, each behind
    those already set. Where H is tied, s sinks until the attention that it makes allows it, or to 1
    (safe under every attention).
    """
    for projection in model.projections():
        if isinstance(projection.form, MeasuredInterval):
            for _ in range(MEASURED_AGAIN):
                held = projection.form.refresh(*_attention(model, projection, pixels))
                if projection.form.measured(*_attention(model, projection, pixels)) >= held:
                    break
            else:
                projection.form.set_interval(1.0)


@torch.no_grad()
def _attention(model: ViT, projection: ValueProjection, pixels: Tensor) -> list[Array]:
    """Attention [n, n] of every image in every layer that has this H, mean over heads."""
    record: list[LayerTrace] = []
    model(pixels, record)
    return [
        A
        for trace, layer in zip(record, model.stack(), strict=True)
        if layer.value_projection is projection
        for A in mean_attention(trace.attention.cpu().numpy())
    ]
