"""What the attention of a network on images decides: which eigenvalue dominates, and intervals."""

import itertools

import torch
from torch import Tensor

from oversmoothing.experiments.digits.vit import HeadedAttention, StudyNet
from oversmoothing.experiments.forms.regions import MeasuredInterval
from oversmoothing.simulations.spectra.head_values import (
    LayerDominance,
    layer_dominance,
    mean_attention,
)
from oversmoothing.theory.support.sizes import Array

# How often a tied H whose attention moves with it is measured before s = 1 is taken.
MEASURED_AGAIN = 8


@torch.no_grad()
def attention_by_layer(net: StudyNet, pixels: Tensor) -> list[Array]:
    """Attention [m, heads, n, n] of every layer on images on the network's device."""
    stream: list[Tensor] = []
    net(pixels, stream)
    layers = zip(net.blocks(), stream[:-1], strict=True)
    return [block.heads_of(x).cpu().numpy() for block, x in layers]


def dominance_by_layer(net: StudyNet, pixels: Tensor) -> list[LayerDominance]:
    """Reading E2 of every layer, the mean A of its heads against its whole H: where values are
    shared its operator, and else a reading."""
    both = zip(attention_by_layer(net, pixels), net.value_projections(), strict=True)
    return [layer_dominance(A, H.numpy()) for A, H in both]


def refresh_intervals(net: StudyNet, pixels: Tensor) -> None:
    """Set every measured interval (-s, 0) to the smallest s of its layers over these images.

    H moves with s, and the attention of later layers with H: layers are taken in turn, each behind
    those already set. Where H is tied, s sinks until the attention that it makes allows it, or to 1
    (safe under every attention).
    """
    for own in dict.fromkeys(block.attention.owner for block in net.blocks()):
        form = None if own.projection is None else own.projection.form
        if isinstance(form, MeasuredInterval):
            for _ in range(MEASURED_AGAIN):
                held = form.refresh(*_attention_of(net, own, pixels))
                if form.measured(*_attention_of(net, own, pixels)) >= held:
                    break
            else:
                form.set_interval(1.0)


def _attention_of(net: StudyNet, own: HeadedAttention, pixels: Tensor) -> list[Array]:
    """Attention [n, n] of every image in every layer that has this H, mean over heads."""
    both = zip(net.blocks(), attention_by_layer(net, pixels), strict=True)
    meant = (mean_attention(A) for block, A in both if block.attention.owner is own)
    return list(itertools.chain(*meant))
