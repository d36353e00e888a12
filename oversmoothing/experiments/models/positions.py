"""How positions and masks come into the logits: rotation of q and k, and terms that are added.

Read from what the attention module is called with; layouts are told by the numbers.
"""

import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from oversmoothing.theory.support.errors import InputError


def rotary(q: Tensor, k: Tensor, call: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """q, k [b, heads, n, r] turned by the (cos, sin) [b, n', r'] or [n', r'] that the attention was
    called with, unless it says that it turns nothing (use_rope).

    The last n' tokens turn, in their first r' features. Where every angle stands twice in the
    table, feature i turns with i + r'/2 (halves alike) or 2i with 2i + 1 (neighbours alike); where
    it stands once, r' counts angles and feature i turns with i + r'. A `rotate_half` beside the
    attention's class that turns neighbours goes before the table: GLM and Helium write halves alike
    and turn neighbours.
    """
    positions = call.get("position_embeddings")
    if positions is None or call.get("alibi") is not None:  # Falcon hands both on, and takes one
        return q, k
    module = call["module"]
    if not getattr(module, "use_rope", True):
        return q, k
    cos, sin = (each.to(q) for each in positions)
    if cos.ndim == 3:
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    neighbours = _turns_neighbours(module)
    return _turn(q, cos, sin, neighbours), _turn(k, cos, sin, neighbours)


def _turns_neighbours(module: nn.Module) -> bool:
    """Whether the code that the attention comes with turns feature 0 toward feature 1."""
    half = getattr(sys.modules.get(type(module).__module__), "rotate_half", None)
    return half is not None and float(half(torch.arange(4.0))[0]) == -1.0


def _turn(x: Tensor, cos: Tensor, sin: Tensor, neighbours: bool) -> Tensor:
    for pairs in (_halves, _neighbours):
        if cos.shape[-1] % 2 == 0 and all(torch.equal(*pairs(each)) for each in (cos, sin)):
            neighbours |= pairs is _neighbours
            cos, sin = pairs(cos)[0], pairs(sin)[0]
            break
    tokens, width = cos.shape[-2], 2 * cos.shape[-1]
    stay, x = x[..., :-tokens, :], x[..., -tokens:, :]
    a, b = (_neighbours if neighbours else _halves)(x[..., :width])
    turned = [a * cos - b * sin, b * cos + a * sin]
    part = torch.stack(turned, -1).flatten(-2) if neighbours else torch.cat(turned, -1)
    return torch.cat([stay, torch.cat([part, x[..., width:]], -1)], -2)


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    width = x.shape[-1] // 2
    return x[..., :width], x[..., width:]


def _neighbours(x: Tensor) -> tuple[Tensor, Tensor]:
    return x[..., ::2], x[..., 1::2]


def logit_bias(call: Mapping[str, Any]) -> Tensor | None:
    """What is added to the logits, [b or 1, heads or 1, n, n]: masks (-inf where attention is not
    allowed) and position terms, of the call's arguments or of the attention module itself.

    call: the arguments by name, and "module", "query", "key"; see `experiments.models.model.Layer`.
    """
    module: nn.Module = call["module"]
    terms = [_mask(call.get(name), module) for name in ("attention_mask", "mask", "attn_mask")]
    terms += [
        call.get(name)
        for name in ("position_bias", "relative_position_bias")
        if isinstance(call.get(name), Tensor)
    ]
    terms += [term(module, call) for term in (_buckets, _grid, _shifted, _disentangled, _earlier)]
    answer: Tensor | None = None
    for term in terms:
        if term is not None:
            answer = term if answer is None else answer + term
    return answer


def _mask(mask: Tensor | None, module: nn.Module) -> Tensor | None:
    """Numbers as they are; True, or 1 in integers, where attention is allowed. PyTorch's own
    attention takes [n, n] or [b heads, n, n] and says True where it is not allowed."""
    if mask is None:
        return None
    own = isinstance(module, nn.MultiheadAttention)
    if isinstance(module, nn.MultiheadAttention) and mask.ndim == 3:
        mask = mask.view(-1, module.num_heads, *mask.shape[1:])
    elif own and mask.ndim == 2:
        mask = mask[None, None]
    if mask.ndim != 4:
        return None
    if mask.is_floating_point():
        return mask
    hidden = mask.bool() if own else ~mask.bool()
    return torch.zeros(mask.shape, device=mask.device).masked_fill(hidden, -torch.inf)


def _buckets(module: Any, call: Mapping[str, Any]) -> Tensor | None:
    """T5: the first layer makes the position terms that all are called with."""
    if not getattr(module, "has_relative_attention_bias", False):
        return None
    if call.get("position_bias") is not None:
        return None
    n = call["query"].shape[-2]
    terms: Tensor = module.compute_bias(n, n)
    return terms


def _grid(module: Any, call: Mapping[str, Any]) -> Tensor | None:
    """Data2Vec: each layer has its own table of relative positions on the grid of patches."""
    inner = getattr(module, "attention", None)
    if not getattr(inner, "has_relative_position_bias", False):
        return None
    assert inner is not None
    grid = tuple(size // inner.config.patch_size for size in call["resolution"])
    interpolated = call.get("interpolate_pos_encoding", False)
    n = call["query"].shape[-2]
    terms: Tensor = inner.relative_position_bias(grid, interpolated, dim_size=n)
    return terms if terms.ndim == 4 else terms.unsqueeze(0)


def _shifted(block: Any, call: Mapping[str, Any]) -> Tensor | None:
    """Swin: tokens of other windows are not seen, those of one have a table of positions, and where
    shifting puts parts of two edges into one window, these do not see each other."""
    if not hasattr(block, "shift_size"):
        return None
    height, width = call["input_dimensions"]
    side = block.window_size
    if height % side or width % side:
        raise InputError(
            f"a grid of {height} x {width} tokens is padded to windows of {side} x {side}, and the "
            "padding is attended to: give images whose grid is whole windows"
        )
    tokens = torch.arange(height * width, device=call["query"].device).view(1, height, width, 1)
    tokens = block.cyclic_shift(tokens).view(height // side, side, width // side, side)
    tokens = tokens.transpose(1, 2).reshape(-1, side * side)
    inside: Tensor = block.attention.relative_position_bias()
    edges = block.get_attn_mask(height, width, dtype=inside.dtype, device=inside.device)
    inside = inside[0].unsqueeze(1) + (0.0 if edges is None else edges)
    terms = inside.new_full((1, len(inside), height * width, height * width), -torch.inf)
    terms[0][:, tokens[:, :, None], tokens[:, None, :]] = inside.expand(-1, len(tokens), -1, -1)
    return terms


def _disentangled(module: Any, call: Mapping[str, Any]) -> Tensor | None:
    """DeBERTa: queries and keys times those of relative positions."""
    if not getattr(module, "relative_attention", False):
        return None
    q, k, positions = call["query"], call["key"], call["rel_embeddings"]
    share = 1 + ("c2p" in module.pos_att_type) + ("p2c" in module.pos_att_type)
    flat = [each.flatten(0, 1).to(positions.dtype) for each in (q, k)]
    where = call.get("relative_pos")
    terms: Tensor = module.disentangled_attention_bias(*flat, where, positions, share)
    return terms.view(*q.shape[:2], *terms.shape[-2:])


def _earlier(module: nn.Module, call: Mapping[str, Any]) -> Tensor | None:
    """The call says that a token sees no later one, and leaves the mask to the kernel."""
    if call.get("is_causal") is not True:
        return None
    n = call["query"].shape[-2]
    later = torch.ones(n, n, dtype=torch.bool, device=call["query"].device).triu(1)
    return torch.zeros(later.shape, device=later.device).masked_fill(later, -torch.inf)[None, None]
