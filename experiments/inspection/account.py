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

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from oversmoothing.experiments.inspection.watch import attention_output
from oversmoothing.experiments.models.model import Layer, Norm, Trace

PARTS = ("body", "scales", "gains")
SUBLAYERS = ("attention", "ffn")


@dataclass(frozen=True)
class LayerAccount:
    """Natural logs, float64 [b]: log HFC/LFC before and after the layer, and the parts.

    parts: {'attention_body', 'attention_scales', ..., 'ffn_gains'}. With verify each is computed
    from the weights, so that their sum is the measured after - before only where the model was read
    rightly: `error` is what is left. Without, the last step of a sublayer is the measured stream.
    """

    before: Tensor
    after: Tensor
    parts: dict[str, Tensor]

    @property
    def error(self) -> Tensor:
        """|sum of the parts - measured change|, [b]."""
        return (self.of("attention") + self.of("ffn") - self.change).abs()

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
    centred = norm.centred(X)
    square = norm.square(centred)
    if keep is None:
        return centred * square.mean(-2, keepdim=True).rsqrt()
    weight = keep.unsqueeze(-1).to(square.dtype)
    return centred * ((square * weight).sum(-2, keepdim=True) / weight.sum(-2, True)).rsqrt()


def scaled(norm: Norm, X: Tensor) -> Tensor:
    """N with each token's own scale and unit gains."""
    if norm.kind == "none":
        return X
    centred = norm.centred(X)
    return centred * norm.square(centred).rsqrt()


def layer_account(
    layer: Layer,
    trace: Trace,
    log_ratio: Callable[[Tensor], Tensor],
    keep: Tensor | None = None,
    *,
    verify: bool = True,
) -> LayerAccount:
    """Account for one traced layer. log_ratio maps a stream [b, n, d] to log HFC/LFC [b], over the
    kept tokens; keep [b, n] bool or None for all.
    """
    A = trace.attention
    assert A is not None
    A = A.to(trace.before.dtype)

    start = log_ratio(trace.before)
    middle = log_ratio(trace.after_attention)
    end = log_ratio(trace.after_ffn)
    weights = layer.heads.to(A.device, A.dtype)
    sublayer = _Sublayer(layer.placement, log_ratio, keep)
    known = (None, None) if verify else (middle, end)

    def mix(N: Tensor) -> Tensor:
        return attention_output(A, N, weights)

    parts = sublayer.parts("attention", layer.norm_attention, mix, trace.before, start, known[0])
    if layer.ffn is None:
        parts |= {f"ffn_{part}": torch.zeros_like(start) for part in PARTS}
    else:
        parts |= sublayer.parts(
            "ffn", layer.norm_ffn, layer.ffn, trace.after_attention, middle, known[1]
        )
    return LayerAccount(start, end, parts)


@dataclass(frozen=True)
class _Sublayer:
    placement: str
    log_ratio: Callable[[Tensor], Tensor]
    keep: Tensor | None

    def parts(
        self,
        name: str,
        norm: Norm,
        f: Callable[[Tensor], Tensor],
        X: Tensor,
        start: Tensor,
        end: Tensor | None,
    ) -> dict[str, Tensor]:
        """end: log HFC/LFC after the sublayer where it is taken from the measured stream."""
        if self.placement == "pre":
            logs = [start, self.log_ratio(X + f(bare(norm, X, self.keep)))]
            logs.append(self.log_ratio(X + f(scaled(norm, X))))
            logs.append(self.log_ratio(X + f(norm(X))) if end is None else end)
        else:
            added = X + f(X)
            logs = [start, self.log_ratio(added), self.log_ratio(scaled(norm, added))]
            logs.append(self.log_ratio(norm(added)) if end is None else end)
        return {f"{name}_{part}": logs[k + 1] - logs[k] for k, part in enumerate(PARTS)}
