"""The exact account of a layer's change of log HFC/LFC: attention or FFN, and what its norm adds.

Each sublayer's change is a sum of three, by switching its norm on in two steps:
    body     the sublayer with one scale for all tokens (their root mean square) and unit gains;
    scales   what each token's own scale adds to that;
    gains    what the norm's gain and shift add.
For a Pre-LN sublayer X + f(N(X)) the norm stands in front of f (one behind f is switched on with
it); for a Post-LN one N(X + f(X)) the body is X + f(X) without any norm, and `scales` holds
centring and scaling. The split depends on this order, as every split of a non-additive quantity
does; its sum does not. The attention A is the measured one throughout.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor

from oversmoothing.experiments.models.model import Layer, Norm, Trace
from oversmoothing.simulations.state_metrics import stream_log_ratio
from oversmoothing.theory.support.errors import InputError

# Relative errors of a stream in one sublayer, in eps: of float32, and of half precision, whose sums
# and products are rounded from wider ones.
ROUNDINGS = 2**8
HALF_ROUNDINGS = 2
PARTS = ("body", "scales", "gains")
SUBLAYERS = ("attention", "ffn")
PART_NAMES = tuple(f"{sublayer}_{part}" for sublayer in SUBLAYERS for part in PARTS)


def log_ratio(X: Tensor, keep: Tensor | None = None) -> Tensor:
    """log HFC/LFC [b] over the kept tokens of X [b, n, d], float64. Padding counts for nothing."""
    return torch.cat([stream_log_ratio(x) for x in kept_parts(X, keep)])


def kept_parts(X: Tensor, keep: Tensor | None) -> list[Tensor]:
    """The stream without padding: input by input where there is any."""
    if keep is None:
        return [X]
    return [x[k].unsqueeze(0) for x, k in zip(X, keep, strict=True)]


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
    the measured change only where the model was read rightly (`check_account`); without, the last
    step of a sublayer is the measured stream.
    """
    assert trace.attention is not None
    A = trace.attention.to(trace.before.dtype)
    weights = layer.heads.to(A.device, A.dtype)
    start, middle, end = map(log_ratio, (trace.before, trace.after_attention, trace.after_ffn))

    def account(
        norm: Norm, behind: Norm, f: Callable[[Tensor], Tensor], seen: Tensor, base: Tensor,
        first: Tensor, last: Tensor,
    ) -> list[Tensor]:  # fmt: skip
        """The parts of a sublayer's change from log HFC/LFC `first` to the measured `last`: it
        adds to `base` what it makes of `seen`."""
        steps: list[Callable[[Norm, Tensor], Tensor]] = [partial(bare, keep=keep), Norm.scaled]
        steps += [Norm.__call__] if verify else []
        if layer.placement == "post":
            added = base + f(seen)
            logs = [log_ratio(added), *(log_ratio(step(norm, added)) for step in steps[1:])]
        else:
            logs = [log_ratio(base + step(behind, f(step(norm, seen)))) for step in steps]
        logs = [first, *logs, *([] if verify else [last])]
        return [after - before for before, after in pairwise(logs)]

    def mix(N: Tensor) -> Tensor:
        return weights.attended(A, N)

    before, between = trace.before, trace.after_attention
    changes = account(
        layer.norm_attention, layer.output_norm_attention, mix, before, before, start, middle
    )
    if layer.ffn is None:
        changes += [torch.zeros_like(start)] * len(PARTS)
    else:
        seen = before if layer.placement == "parallel" else between
        changes += account(
            layer.norm_ffn, layer.output_norm_ffn, layer.ffn, seen, between, middle, end
        )
    return dict(zip(PART_NAMES, changes, strict=True))


def check_account(
    number: int, parts: dict[str, Tensor], logs: tuple[Tensor, Tensor, Tensor], dtype: torch.dtype
) -> None:
    """Raises `InputError` where the parts of a sublayer of layer `number` do not sum to its change.

    logs: the measured log HFC/LFC [b] in front of the layer, between its sublayers and behind it.
    A relative error e of a stream moves its log HFC/LFC = L by at most
        e |X| / |HFC| + e |X| / |LFC| = e (sqrt(1 + exp(-2 L)) + sqrt(1 + exp(2 L))),
    to first order. e: ROUNDINGS of float32, in which the parts are computed, and HALF_ROUNDINGS of
    the dtype in which the model ran, where that is half precision.
    """
    half = HALF_ROUNDINGS * torch.finfo(dtype).eps if dtype.itemsize < 4 else 0.0
    e = ROUNDINGS * torch.finfo(torch.float32).eps + half
    for sublayer, start, end in zip(SUBLAYERS, logs[:-1], logs[1:], strict=True):
        explained = sum((parts[f"{sublayer}_{part}"] for part in PARTS), torch.zeros_like(start))
        error = (explained - (end - start)).abs()
        allowed = e * sum(
            (1 + torch.exp(sign * 2 * L)).sqrt() for L in (start, end) for sign in (-1, 1)
        )
        wrong = ~(error <= allowed)
        if bool(wrong.any()):
            size, most = float(error[wrong].max()), float(torch.as_tensor(allowed).max())
            raise InputError(
                f"layer {number}: the parts of its {sublayer} sublayer's change of log HFC/LFC do "
                f"not sum to what is measured: {size:.1e} is left over (at most {most:.1e} is "
                "rounding): the layer was read wrongly"
                + (", or open the model with dtype=torch.float32" if half else "")
            )
