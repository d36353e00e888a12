"""A trained Transformer as the theory sees it: per layer the heads' weights, norms and FFN.

Whatever library or class the model comes from, an adapter brings it into this one form. Everything
is in X W form (rows = tokens): a linear layer y = x W + b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

Placement = Literal["pre", "post"]


@dataclass(frozen=True)
class Norm:
    """LayerNorm (kind 'layer'), RMSNorm ('rms') or none ('none'); gain [d], shift [d] or None."""

    kind: Literal["layer", "rms", "none"]
    gain: Tensor
    shift: Tensor | None
    eps: float

    def __call__(self, X: Tensor) -> Tensor:
        """N(X) for X [..., d]."""
        if self.kind == "none":
            return X
        if self.kind == "layer":
            X = X - X.mean(-1, keepdim=True)
        scaled = X * torch.rsqrt(X.square().mean(-1, keepdim=True) + self.eps) * self.gain
        return scaled if self.shift is None else scaled + self.shift


@dataclass(frozen=True)
class Heads:
    """The attention sublayer's weights, head by head (r = width of a head), in X W form.

    W_Q, W_K, W_V [heads, d, r], b_Q, b_K, b_V [heads, r] or None, W_O [heads, r, d], b_O [d] or
    None. Grouped key-value heads are already repeated. H of head h is (W_V[h] W_O[h])^T.
    """

    W_Q: Tensor
    W_K: Tensor
    W_V: Tensor
    W_O: Tensor
    b_Q: Tensor | None = None
    b_K: Tensor | None = None
    b_V: Tensor | None = None
    b_O: Tensor | None = None

    @property
    def number(self) -> int:
        return len(self.W_V)


@dataclass(frozen=True)
class Layer:
    """One layer: X <- X + sum_h A_h N(X) W_V,h W_O,h + bias, then X <- X + FFN(N'(X)) ('pre').

    'post': X <- N(X + attention(X)), then X <- N'(X + FFN(X)). `attention` and `block` are the
    modules themselves, for hooks; ffn maps normalised tokens [..., d] to the FFN's output [..., d]
    (None for a model without one).
    """

    heads: Heads
    norm_attention: Norm
    norm_ffn: Norm
    placement: Placement
    ffn: Callable[[Tensor], Tensor] | None
    block: nn.Module
    attention: nn.Module


@dataclass(frozen=True)
class Model:
    """A trained model in evaluation mode, described.

    modality: 'vision' or 'text'. cls: whether token 0 is a CLS token. causal: whether a token
    attends to itself and earlier ones only. run(batch) executes the forward pass on one batch of
    inputs as `prepare` makes them; prepare turns raw inputs (PIL images, strings) into a batch.
    """

    name: str
    module: nn.Module
    layers: tuple[Layer, ...]
    width: int
    modality: Literal["vision", "text"]
    cls: bool
    causal: bool
    run: Callable[[Any], Any]
    prepare: Callable[[list[Any]], Any]
    classes: int | None = None
    run_notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trace:
    """What one layer did to a batch of b inputs; all detached, on the CPU unless asked otherwise.

    attention [b, heads, n, n], row-stochastic over the kept tokens; the residual stream [b, n, d]
    before the layer, after its attention sublayer and after its FFN sublayer. For 'post' placement
    the streams are those after each sublayer's norm.
    """

    attention: Tensor | None
    before: Tensor
    after_attention: Tensor
    after_ffn: Tensor


@dataclass(frozen=True)
class Extraction:
    """One batch: its layers' traces; keep [b, n] bool, False at padding; av_error [layers], the
    largest relative difference between sum_h A_h N(X) W_V,h W_O,h + bias and the attention
    module's own output (0 where attention was not asked for)."""

    traces: tuple[Trace, ...]
    keep: Tensor
    av_error: tuple[float, ...]
