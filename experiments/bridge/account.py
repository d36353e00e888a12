"""The exact account of a layer's change of log HFC/LFC: attention or FFN, and what its norm adds.

Each sublayer's change is a sum of three, by switching its norm on in two steps:
    body     the sublayer with one scale for all tokens (their root mean square) and unit gains;
    scales   what each token's own scale adds to that;
    gains    what the norm's gain and shift add.
For a Pre-LN sublayer X + f(N(X)) the norm stands in front of f; for a Post-LN one N(X + f(X)) the
body is X + f(X) without any norm, and `scales` holds centring and scaling. The split depends on
this order, as every split of a non-additive quantity does; its sum does not. The attention A is the
measured one throughout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from experiments.bridge.model import Heads, Layer, Norm, Trace

PARTS = ("body", "scales", "gains")
SUBLAYERS = ("attention", "ffn")


@dataclass(frozen=True)
class LayerAccount:
    """Natural logs, float64 [b]: log HFC/LFC before and after the layer, and the parts.

    parts: {'attention_body', 'attention_scales', ..., 'ffn_gains'}. Their sum is after - before up
    to rounding: the last step of each sublayer is the measured stream itself.
    """

    before: Tensor
    after: Tensor
    parts: dict[str, Tensor]

    @property
    def change(self) -> Tensor:
        """The whole change over the layer, [b]."""
        return self.after - self.before

    def of(self, sublayer: str) -> Tensor:
        """The change over one sublayer, 'attention' or 'ffn', [b]."""
        return sum((self.parts[f"{sublayer}_{part}"] for part in PARTS), torch.zeros(()))


def bare(norm: Norm, X: Tensor, keep: Tensor | None = None) -> Tensor:
    """N with one scale for all tokens of an input and unit gains: (X - row mean) / rms scale."""
    if norm.kind == "none":
        return X
    centred = X - X.mean(-1, keepdim=True) if norm.kind == "layer" else X
    square = centred.square().mean(-1, keepdim=True) + norm.eps
    if keep is None:
        return centred * square.mean(-2, keepdim=True).rsqrt()
    weight = keep.unsqueeze(-1).to(square.dtype)
    return centred * ((square * weight).sum(-2, keepdim=True) / weight.sum(-2, True)).rsqrt()


def scaled(norm: Norm, X: Tensor) -> Tensor:
    """N with each token's own scale and unit gains."""
    if norm.kind == "none":
        return X
    centred = X - X.mean(-1, keepdim=True) if norm.kind == "layer" else X
    return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + norm.eps)


def mix(A: Tensor, heads: Heads, N: Tensor) -> Tensor:
    """sum_h A_h N W_V,h W_O,h + biases for A [b, heads, n, n] and N [b, n, d]: [b, n, d]."""
    values = torch.einsum("bnd,hdr->bhnr", N, heads.W_V)
    if heads.b_V is not None:
        values = values + heads.b_V.unsqueeze(-2)
    out = torch.einsum("bhnr,hrd->bnd", A @ values, heads.W_O)
    return out if heads.b_O is None else out + heads.b_O


def layer_account(
    layer: Layer, trace: Trace, log_ratio: Callable[[Tensor], Tensor], keep: Tensor | None = None
) -> LayerAccount:
    """Account for one traced layer. log_ratio maps a stream [b, n, d] to log HFC/LFC [b], over the
    kept tokens; keep [b, n] bool or None for all.
    """
    A = trace.attention
    assert A is not None
    A = A.to(trace.before.dtype)

    def attention(N: Tensor) -> Tensor:
        return mix(A, layer.heads, N)

    start = log_ratio(trace.before)
    middle = log_ratio(trace.after_attention)
    end = log_ratio(trace.after_ffn)
    parts = _sublayer(
        "attention", layer.norm_attention, attention, trace.before, start, middle, layer,
        log_ratio, keep,
    )  # fmt: skip
    if layer.ffn is None:
        parts |= {f"ffn_{part}": torch.zeros_like(start) for part in PARTS}
    else:
        parts |= _sublayer(
            "ffn", layer.norm_ffn, layer.ffn, trace.after_attention, middle, end, layer,
            log_ratio, keep,
        )  # fmt: skip
    return LayerAccount(start, end, parts)


def _sublayer(
    name: str,
    norm: Norm,
    f: Callable[[Tensor], Tensor],
    X: Tensor,
    start: Tensor,
    end: Tensor,
    layer: Layer,
    log_ratio: Callable[[Tensor], Tensor],
    keep: Tensor | None,
) -> dict[str, Tensor]:
    if layer.placement == "pre":
        body = log_ratio(X + f(bare(norm, X, keep)))
        own_scales = log_ratio(X + f(scaled(norm, X)))
    else:
        added = X + f(X)
        body, own_scales = log_ratio(added), log_ratio(scaled(norm, added))
    return {
        f"{name}_body": body - start,
        f"{name}_scales": own_scales - body,
        f"{name}_gains": end - own_scales,
    }
