"""The weights of a layer in X W form, read from modules by what they hold."""

from copy import deepcopy
from dataclasses import replace
from itertools import product
from typing import Literal

import torch
from torch import Tensor, nn

from oversmoothing.experiments.models.model import HeadNorm, Heads, Norm
from oversmoothing.theory.support.errors import InputError, whole_number

# (W [inputs, outputs], b [outputs] or None)
Affine = tuple[Tensor, Tensor | None]
# Names under which norms keep their epsilon.
_EPSILONS = ("eps", "variance_epsilon", "epsilon")
# Of tokens of about unit size: their square is far below any usual eps.
_SHORT = 1e-4


def columns(module: nn.Module, where: str) -> Affine:
    """y = x W + b of a linear layer: nn.Linear, a Conv1D, which already keeps W as [in, out], or
    the three projections of an nn.MultiheadAttention in one.

    Raises `InputError` for any other module.
    """
    prefix = "in_proj_" if isinstance(module, nn.MultiheadAttention) else ""
    weight = getattr(module, f"{prefix}weight", None)
    if not isinstance(weight, Tensor) or weight.ndim != 2:
        raise InputError(f"{where} is a {type(module).__name__}, not a linear layer: name another")
    # A Conv1D of the Hugging Face library counts its outputs in nf.
    W = weight if hasattr(module, "nf") else weight.T
    bias = getattr(module, f"{prefix}bias", None)
    return W.detach(), None if bias is None else bias.detach()


def fused_parts(
    W: Tensor, b: Tensor | None, heads: int, kv_heads: int, order: Literal["qkv", "heads"],
    where: str,
) -> list[Affine]:  # fmt: skip
    """The query, key and value parts of one fused projection.

    order 'qkv': all queries, all keys, all values. 'heads': (query, key, value) head by head, or
    where several heads share a key and a value (their queries, key, value) group by group.
    """
    outputs = W.shape[1]
    shares = heads + 2 * kv_heads
    if outputs % shares:
        raise InputError(
            f"{where} has {outputs} outputs, no multiple of {shares} (queries, keys and values of "
            f"{heads} heads, {kv_heads} key-value heads): check heads and kv_heads"
        )
    r = outputs // shares
    if order == "heads":
        index = torch.arange(outputs, device=W.device).view(kv_heads, heads // kv_heads + 2, r)
        index = torch.cat(
            [part.reshape(-1) for part in (index[:, :-2], index[:, -2], index[:, -1])]
        )
        W, b = W[:, index], None if b is None else b[index]
    sizes = [heads * r, kv_heads * r, kv_heads * r]
    biases: list[Tensor | None] = [None] * 3 if b is None else list(torch.split(b, sizes))
    return list(zip(torch.split(W, sizes, dim=1), biases, strict=True))


def head_weights(
    triples: list[Affine], output: Affine, heads: int, kv_heads: int, where: str
) -> Heads:
    """`Heads` from (query, key, value) and output projections; grouped heads are repeated.

    Raises `InputError` where the shapes do not go together.
    """
    (W_O, b_O) = output
    width = triples[0][0].shape[0]
    parts = []
    for name, (W, b), number in zip("qkv", triples, (heads, kv_heads, kv_heads), strict=True):
        if W.shape[0] != width or W.shape[1] % number:
            raise InputError(
                f"{where}: the {name} projection maps {W.shape[0]} to {W.shape[1]} features; with "
                f"{number} heads on tokens of width {width} that cannot be: check heads"
            )
        repeats = heads // number
        by_head = W.reshape(width, number, -1).transpose(0, 1).repeat_interleave(repeats, 0)
        bias = None if b is None else b.reshape(number, -1).repeat_interleave(repeats, 0)
        parts.append((by_head.contiguous(), bias))
    (W_Q, b_Q), (W_K, b_K), (W_V, b_V) = parts
    if W_Q.shape != W_K.shape or W_O.shape != (heads * W_V.shape[2], width):
        raise InputError(
            f"{where}: queries {_map(W_Q)}, keys {_map(W_K)}, values {_map(W_V)} a head and an "
            f"output projection of {W_O.shape[0]} to {W_O.shape[1]} features do not go together: "
            "check heads and kv_heads"
        )
    return Heads(
        W_Q, W_K, W_V, W_O.reshape(heads, -1, width).contiguous(),
        b_Q, b_K, b_V, None if b_O is None else b_O.clone(),
    )  # fmt: skip


def _map(W: Tensor) -> str:
    return f"{W.shape[1]} -> {W.shape[2]}"


@torch.no_grad()
def recognise_norm(module: nn.Module, shape: int | tuple[int, ...], where: str) -> Norm:
    """LayerNorm or RMSNorm, told apart by what the module does to random tokens, in float32.

    shape: of a token; the last dimension is normalised. The gain, of that shape, may be stored as
    it is or as its difference from 1. Half of the tokens are so short that eps decides their
    length: what the module calls its eps is held against that, and measured where it states none.
    Raises `InputError` for a norm of any other form.
    """
    shape = (shape,) if isinstance(shape, int) else shape
    if isinstance(module, nn.Identity):
        return Norm("none", torch.ones(shape), module=module)
    weight, shift = getattr(module, "weight", None), getattr(module, "bias", None)
    parameter = next(module.parameters(), torch.ones(()))
    stated = [getattr(module, name) for name in _EPSILONS if hasattr(module, name)]
    if None in stated and parameter.dtype.itemsize < 4:
        raise InputError(
            f"{where} ({type(module).__name__}) takes its eps from the dtype it runs in "
            f"({parameter.dtype}): open the model with dtype=torch.float32"
        )
    if weight is None:
        weight = torch.ones(shape, dtype=parameter.dtype, device=parameter.device)
    if weight.shape == shape:
        gains = (weight.detach().clone(), 1 + weight.detach().float())
        bias = None if shift is None else shift.detach().clone()
        draw = torch.randn(2, *shape, generator=torch.Generator().manual_seed(0)) * 2 + 1
        tokens = torch.cat([draw, _SHORT * draw]).to(parameter.device)
        given = deepcopy(module).float()(tokens).float()
        tolerance = 32 * torch.finfo(torch.float32).eps * (1 + given.abs().max())
        for kind, gain in product(("layer", "rms"), gains):
            norm = Norm(kind, gain, bias, 0.0, module)
            for eps in (*(float(each) for each in stated if each), _eps(norm, tokens, given)):
                norm = replace(norm, eps=eps)
                if (norm(tokens) - given).abs().max() <= tolerance:
                    return norm
    raise InputError(
        f"{where} ({type(module).__name__}) is neither a LayerNorm nor an RMSNorm over {shape[-1]} "
        "features: only these two are understood"
    )


def _eps(norm: Norm, tokens: Tensor, given: Tensor) -> float:
    """eps from the last, short token: given = gain centred / sqrt(square + eps) + shift."""
    shift = torch.zeros_like(norm.gain) if norm.shift is None else norm.shift
    token, out, gain, moved = (
        each.double().reshape(-1, tokens.shape[-1])[0]
        for each in (tokens[-1], given[-1], norm.gain, shift)
    )
    short = norm.centred(token)
    formed, shifted = short * gain, out - moved
    slope = (shifted @ formed) / (formed @ formed)
    return max(0.0, float(slope**-2 - norm.square(short)))


def recognise_head_norm(
    module: nn.Module, heads: int, repeats: int, r: int, where: str
) -> HeadNorm:
    """The norm of queries or keys of width r: one for every head, one a head, or one over all.

    heads: as many as the module sees, each of which stands for `repeats`. Raises `InputError` for a
    norm of any other form.
    """
    weight = getattr(module, "weight", torch.ones(r))
    shapes: dict[tuple[int, ...], tuple[int, ...]] = {
        (heads, r): (heads, r),
        (heads * r,): (heads * r,),
    }
    shape = (r,) if weight.shape == (r,) else shapes.get(tuple(weight.shape), (r,))
    norm = recognise_norm(module, shape, where)
    if shape == (r,):
        return HeadNorm(norm)

    def spread(each: Tensor | None) -> Tensor | None:
        if each is None:
            return None
        each = each.view(heads, 1, r).repeat_interleave(repeats, 0)
        return each.flatten() if len(shape) == 1 else each

    gain = spread(norm.gain)
    assert gain is not None
    return HeadNorm(replace(norm, gain=gain, shift=spread(norm.shift)), whole=len(shape) == 1)


def check_finite(module: nn.Module) -> None:
    """Raises `InputError` naming the first parameter with NaN or infinity in it."""
    for name, parameter in module.named_parameters():
        if parameter.is_meta:
            raise InputError(f"the weight '{name}' is not loaded (meta device): load it first")
        if parameter.is_floating_point() and not bool(torch.isfinite(parameter).all()):
            bad = int((~torch.isfinite(parameter)).sum())
            raise InputError(
                f"the weight '{name}' has {bad} entries that are NaN or infinite: the checkpoint "
                "is damaged or the training diverged; take another"
            )


def check_heads(heads: int, kv_heads: int | None) -> None:
    """Raises `InputError` unless both are at least 1, and the number of heads a multiple."""
    whole_number("heads", heads, 1)
    if kv_heads is not None and heads % whole_number("kv_heads", kv_heads, 1):
        raise InputError(
            f"{heads} heads and {kv_heads} key-value heads: the number of heads is no multiple"
        )
