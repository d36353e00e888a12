"""The H of a layer in each reading, from the described weights, with the exact zeros that it has.

Norm 'unfolded' takes W_V as it is, as the paper does. 'folded' puts the norm in front of the
attention into it, W_V <- C diag(g) W_V with C = I - 1 1^T / d for LayerNorm and C = I for RMSNorm:
what multiplies the tokens but for each token's own scale and the constant shift. C makes one
eigenvalue of H exactly 0.
"""

from typing import Literal

import numpy as np
from torch import Tensor

from oversmoothing.experiments.models.model import Layer
from oversmoothing.simulations.spectra.head_values import HeadValues, dense_values, head_values
from oversmoothing.theory.layer.attention import complement_basis
from oversmoothing.theory.support.sizes import Array

Folding = Literal["unfolded", "folded"]


def factors(layer: Layer, folding: Folding) -> tuple[Array, Array]:
    """(W_V [heads, d, r], W_O [heads, r, d]) in float64, the norm folded in where asked."""
    W_V, W_O = _double(layer.heads.W_V), _double(layer.heads.W_O)
    norm = layer.norm_attention
    if folding == "folded" and norm.kind != "none":
        W_V = _double(norm.gain)[:, None] * W_V
        if norm.kind == "layer":
            W_V = W_V - W_V.mean(axis=1, keepdims=True)
    return W_V, W_O


def own_values(layer: Layer, folding: Folding) -> list[HeadValues]:
    """spec(H_h) of every head, through its r x r core where r < d."""
    return [
        head_values(first, second)
        if first.shape[1] < len(first)
        else _whole(first @ second, layer, folding)
        for first, second in zip(*factors(layer, folding), strict=True)
    ]


def whole_values(layer: Layer, folding: Folding) -> HeadValues:
    """spec(H), H = sum_h H_h, through a core where the heads together have rank below d."""
    W_V, W_O = factors(layer, folding)
    heads, d, r = W_V.shape
    if heads * r < d:
        return head_values(W_V.transpose(1, 0, 2).reshape(d, heads * r), W_O.reshape(heads * r, d))
    return _whole(np.einsum("hdr,hre->de", W_V, W_O), layer, folding)


def _whole(W: Array, layer: Layer, folding: Folding) -> HeadValues:
    """spec of a W [d, d] of full rank, but for the zero that the centring of a LayerNorm makes."""
    if folding == "folded" and layer.norm_attention.kind == "layer" and len(W) > 1:
        Q = complement_basis(len(W))
        return head_values(Q, Q.T @ W)
    return dense_values(W.T)


def _double(value: Tensor) -> Array:
    result: Array = value.detach().cpu().double().numpy()
    return result
