"""A described layer at consensus: where it sends equal tokens, and its derivative in closed form.

From the weights of the description alone (T8c), for any number of heads, masks, rotary positions
and norms; only the FFN's own Jacobian is taken by jvp, of the FFN on one token.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.models.model import Layer, Norm
from oversmoothing.experiments.repeated.blocks import BlockMap
from oversmoothing.theory.at_consensus import (
    AtConsensus,
    LoopLaw,
    TokenMap,
    TokenNorm,
    layer_at_consensus,
    transverse_eigenvalue,
)
from oversmoothing.theory.support.sizes import Array


@torch.no_grad()
def consensus_step(layer: Layer, c: Tensor) -> Tensor:
    """g(c) for c [b, d]: the layer sends equal tokens 1 c^T to 1 g(c)^T, whatever its attention."""
    X = c.unsqueeze(1)
    N = X if layer.placement == "post" else layer.norm_attention(X)
    heads = layer.heads.to(c.device, c.dtype)
    alone = torch.ones(len(c), heads.number, 1, 1, dtype=c.dtype, device=c.device)
    middle = layer.after_attention(X, heads.attended(alone, N))
    return layer.after_ffn(X, middle).squeeze(1)


@torch.no_grad()
def linearised(f: BlockMap, c: Tensor, n: int) -> AtConsensus:
    """The closed form of T8c at 1 c^T with n tokens, c [d].

    In float64 but for attention and the FFN, which are the block's own and run in its dtype.
    """
    layer, dtype, c = f.layer, f.dtype, c.double()
    heads = layer.heads.to(c.device, c.dtype)
    A = f.first().attention(c.to(dtype).expand(1, n, -1).contiguous())[0].double()
    A = A / A.sum(-1, keepdim=True)  # what is stochastic to the rounding of float32
    W = torch.einsum("hdr,hre->hde", heads.W_V, heads.W_O)
    bias = torch.zeros_like(c)
    if heads.b_V is not None:
        bias = bias + torch.einsum("hr,hre->e", heads.b_V, heads.W_O)
    if heads.b_O is not None:
        bias = bias + heads.b_O
    ffn = layer.ffn
    return layer_at_consensus(
        c.numpy(),
        A.numpy(),
        W.numpy(),
        bias.numpy(),
        placement=layer.placement,
        norm=_token_norm(layer.norm_attention, len(c)),
        norm_ffn=_token_norm(layer.norm_ffn, len(c)),
        ffn=None if ffn is None else TokenMap(_value(layer, dtype), _jacobian(layer, dtype)),
        behind=_token_norm(layer.output_norm_attention, len(c)),
        behind_ffn=_token_norm(layer.output_norm_ffn, len(c)),
    )


def _token_norm(norm: Norm, d: int) -> TokenNorm:
    gain = np.ones(d) if norm.kind == "none" else norm.gain.double().cpu().numpy()
    shift = np.zeros(d) if norm.shift is None else norm.shift.double().cpu().numpy()
    return TokenNorm(norm.kind, gain, shift, norm.eps)


def _value(layer: Layer, dtype: torch.dtype) -> Any:
    def value(x: Array) -> Array:
        assert layer.ffn is not None
        given = torch.from_numpy(x).to(dtype)[None, None]
        image: Array = layer.ffn(given)[0, 0].double().numpy()
        return image

    return value


def _jacobian(layer: Layer, dtype: torch.dtype) -> Any:
    def jacobian(x: Array) -> Array:
        """One jvp of d equal tokens, each in another direction: row k is column k of J."""
        assert layer.ffn is not None
        d = len(x)
        X = torch.from_numpy(x).to(dtype).expand(1, d, d).contiguous()
        D = torch.eye(d, dtype=dtype)[None]
        moved = torch.func.jvp(layer.ffn, (X,), (D,))[1]
        J: Array = moved[0].T.double().numpy()
        return J

    return jacobian


LOOPS = 400


def loop_laws(blocks: Sequence[BlockMap], c: Tensor, n: int, loops: int = LOOPS) -> list[LoopLaw]:
    """The laws near consensus of the blocks applied in turn, after `loops` rounds from each 1 c^T:
    what they would do for ever to small differences between nearly equal tokens (T12).

    Only equal tokens are followed, one token for all of them, and the derivative across consensus
    is taken where that path has led (T8c): a few per cent of the cost of looping the layers.

    c [b, d], n tokens; one law for each of the b. In float32 they are right to about 1e-3: their
    logarithms are of the order of 1 / loops.
    """
    point, lengths = c, [_lengths(c)]
    for _ in range(loops):
        point = _round(blocks, point)
        lengths.append(_lengths(point))
    image = _round(blocks, point)
    size, far = _lengths(image), lengths[-1]
    cosine = (image.double() * point.double()).sum(-1).cpu().numpy() / (size * far)
    laws = []
    for k in range(len(c)):
        at, linear = point[k], []
        for block in blocks:
            linear.append(linearised(block, at, n))
            at = consensus_step(block.layer, at[None])[0]
        across = abs(transverse_eigenvalue(linear))
        laws.append(
            LoopLaw(
                loops=loops,
                along=float(np.log(size[k] / far[k])),
                across=math.log(across) if across > 0 else -math.inf,
                power=float(np.log2(far[k] / lengths[loops // 2][k])),
                turning=math.acos(max(-1.0, min(1.0, float(cosine[k])))),
            )
        )
    return laws


def loop_law(blocks: Sequence[BlockMap], c: Tensor, n: int, loops: int = LOOPS) -> LoopLaw:
    """`loop_laws` of a single c [d]."""
    return loop_laws(blocks, c[None], n, loops)[0]


def _round(blocks: Sequence[BlockMap], point: Tensor) -> Tensor:
    for block in blocks:
        point = consensus_step(block.layer, point)
    return point


def _lengths(c: Tensor) -> np.ndarray:
    lengths: np.ndarray = torch.linalg.vector_norm(c.double(), dim=-1).cpu().numpy()
    return lengths
