"""A proposal of the names that `describe` takes, for a module that no adapter knows.

Told by shapes, places and the first letters of names: the largest list of equal blocks; in a block
three projections side by side, or one that is fused, and the one that leads back; the norms of the
tokens' width in their order; the FFN in what is left. A proposal is not believed: `extract` holds
it against the module as it does every description.
"""

import re
from typing import Any

from torch import nn

from oversmoothing.theory.support.errors import InputError

_LETTER = re.compile(r"(?:to_|w|in_)?([qkv])[a-z_0-9]*")
_HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "heads", "nhead", "h")


def propose(module: nn.Module, heads: int | None = None) -> dict[str, Any]:
    """blocks, q, k, v, out, attention, heads, norm_attention, norm_ffn and ffn, for `describe`.

    Raises `InputError` with what was not found.
    """
    place, blocks = _stack(module)
    block = blocks[0]
    linear = {name: each for name, each in block.named_modules() if _is_linear(each)}
    names: dict[str, Any] = {"blocks": place} | _attention(block, linear)
    width = _shape(linear[names["q"]])[0]
    norms = [
        name
        for name, each in block.named_modules()
        if name not in linear and getattr(getattr(each, "weight", None), "shape", None) == (width,)
    ]
    if len(norms) > 2:
        raise _missing(f"two norms among {', '.join(norms)}", "norm_attention=, norm_ffn=")
    for key, name in zip(("norm_attention", "norm_ffn"), norms, strict=False):
        names[key] = name
    used = {names[key] for key in ("q", "k", "v", "out")}
    names["ffn"] = _ffn(block, [name for name in linear if name not in used], norms)
    names["heads"] = heads or _number(block, names["attention"], module)
    return {name: value for name, value in names.items() if value is not None}


def _stack(module: nn.Module) -> tuple[str, list[nn.Module]]:
    """The list of blocks of one kind with the most weights, and its name."""
    stacks = []
    for name, each in module.named_modules():
        blocks = list(each.children())
        listed = isinstance(each, nn.ModuleList | nn.Sequential)
        if listed and blocks and len({type(block) for block in blocks}) == 1:
            linear = sum(_is_linear(part) for part in blocks[0].modules())
            if linear >= 3:
                stacks.append((sum(p.numel() for p in each.parameters()), name, blocks))
    if not stacks:
        raise _missing("a list of blocks with projections", "blocks=")
    _, place, blocks = max(stacks, key=lambda each: each[0])
    return place, blocks


def _is_linear(module: nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    flat = weight is not None and weight.ndim == 2 and not isinstance(module, nn.Embedding)
    return flat or isinstance(module, nn.MultiheadAttention)


def _shape(module: nn.Module) -> tuple[int, int]:
    """(inputs, outputs) of a linear layer."""
    if isinstance(module, nn.MultiheadAttention):
        return module.embed_dim, 3 * module.embed_dim
    weight: Any = module.weight
    first, second = weight.shape
    return (first, second) if hasattr(module, "nf") else (second, first)


def _attention(block: nn.Module, linear: dict[str, nn.Module]) -> dict[str, Any]:
    """q, k, v, out and the module that holds them."""
    names = list(linear)
    for name, each in linear.items():
        if isinstance(each, nn.MultiheadAttention):
            out = f"{name}.out_proj"
            return {"q": name, "k": name, "v": name, "out": out, "attention": name}
    for k, name in enumerate(names):
        parent = name.rpartition(".")[0]
        three, back = names[k : k + 3], names[k + 3 : k + 4]
        shapes = [_shape(linear[each]) for each in three]
        beside = len(three) == 3 and all(each.rpartition(".")[0] == parent for each in three)
        alike = beside and len({inputs for inputs, _ in shapes}) == 1
        if alike and back and _shape(linear[back[0]])[1] == shapes[0][0]:
            letters = [_LETTER.fullmatch(each.rpartition(".")[2].lower()) for each in three]
            order = [letter.group(1) for letter in letters if letter]
            named = dict(zip(order, three, strict=False)) if {*order} == {*"qkv"} else None
            named = named or dict(zip("qkv", three, strict=True))
            if _shape(linear[named["v"]])[1] <= _shape(linear[named["q"]])[1]:
                named = {letter: named[letter] for letter in "qkv"}
                return named | {"out": back[0], "attention": _holder(name, back[0])}
        if k + 1 < len(names):
            (d, outputs), (inside, after) = shapes[0], _shape(linear[names[k + 1]])
            if after == d and inside < outputs <= 3 * inside and (outputs - inside) % 2 == 0:
                fused = {"q": name, "k": name, "v": name, "out": names[k + 1]}
                return fused | {"attention": _holder(name, names[k + 1])}
    raise _missing(
        f"queries, keys, values and the projection back among {', '.join(names)}",
        "q=, k=, v=, out=",
    )


def _holder(first: str, last: str) -> str:
    """The module that holds both."""
    shared = []
    for a, b in zip(first.split(".")[:-1], last.split(".")[:-1], strict=False):
        if a != b:
            break
        shared.append(a)
    return ".".join(shared)


def _ffn(block: nn.Module, names: list[str], norms: list[str]) -> str | tuple[str, ...] | None:
    """The child that holds all these projections and no norm, or the children that are applied one
    after the other."""
    if not names:
        return None
    child = names[0].split(".")[0]
    within = all(name.startswith(f"{child}.") for name in names)
    if within and not any(name.startswith(f"{child}.") for name in norms):
        return child
    if len(names) == 2 and all("." not in name for name in names):
        for act in ("activation", "activation_fn", "act", "act_fn", "gelu", "relu"):
            if hasattr(block, act):
                return names[0], act, names[1]
    raise _missing(f"the FFN: how {', '.join(names)} go together", "ffn=")


def _number(block: nn.Module, attention: str, module: nn.Module) -> int:
    for place in (block.get_submodule(attention), block, getattr(module, "config", None), module):
        for name in _HEADS:
            value = getattr(place, name, None)
            if isinstance(value, int):
                return value
    raise _missing("the number of heads", "heads=")


def _missing(what: str, name: str) -> InputError:
    return InputError(f"a guess does not find {what}: give {name}")
