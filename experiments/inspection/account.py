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
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor

from oversmoothing.experiments.inspection.watch import attention_output
from oversmoothing.experiments.models.model import Layer, Norm, Trace

PARTS = ("body", "scales", "gains")
SUBLAYERS = ("attention", "ffn")
PART_NAMES = tuple(f"{sublayer}_{part}" for sublayer in SUBLAYERS for part in PARTS)


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


def layer_account(
    layer: Layer,
    trace: Trace,
    log_ratio: Callable[[Tensor], Tensor],
    keep: Tensor | None = None,
    *,
    verify: bool = True,
) -> dict[str, Tensor]:
    """{'attention_body', 'attention_scales', ..., 'ffn_gains': change of the natural log, [b]}.

    log_ratio maps a stream [b, n, d] to log HFC/LFC [b], float64, over the kept tokens; keep [b, n]
    bool or None for all. With verify each part is computed from the weights, so that their sum is
    the measured change only where the model was read rightly; without, the last step of a sublayer
    is the measured stream.
    """
    assert trace.attention is not None
    A = trace.attention.to(trace.before.dtype)
    weights = layer.heads.to(A.device, A.dtype)
    start, middle, end = map(log_ratio, (trace.before, trace.after_attention, trace.after_ffn))

    def account(
        norm: Norm, f: Callable[[Tensor], Tensor], X: Tensor, first: Tensor, last: Tensor
    ) -> list[Tensor]:
        """The parts of a sublayer's change from log HFC/LFC `first` to the measured `last`."""
        steps: list[Callable[[Tensor], Tensor]] = [partial(bare, norm, keep=keep), norm.scaled]
        steps += [norm] if verify else []
        if layer.placement == "pre":
            logs = [log_ratio(X + f(step(X))) for step in steps]
        else:
            added = X + f(X)
            logs = [log_ratio(added), *(log_ratio(step(added)) for step in steps[1:])]
        logs = [first, *logs, *([] if verify else [last])]
        return [after - before for before, after in pairwise(logs)]

    def mix(N: Tensor) -> Tensor:
        return attention_output(A, N, weights)

    changes = account(layer.norm_attention, mix, trace.before, start, middle)
    if layer.ffn is None:
        changes += [torch.zeros_like(start)] * len(PARTS)
    else:
        changes += account(layer.norm_ffn, layer.ffn, trace.after_attention, middle, end)
    return dict(zip(PART_NAMES, changes, strict=True))
