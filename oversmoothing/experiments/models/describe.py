"""Describe any Pre-LN or Post-LN Transformer by the names of its parts.

A model of one's own in a few lines:

    model = describe(
        module,
        blocks="encoder",                       # a ModuleList, or a sequence of modules
        q="mix.qkv", k="mix.qkv", v="mix.qkv",  # within a block; one name thrice: fused
        out="mix.join",
        heads=4,
        norm_attention="first_norm",
        norm_ffn="second_norm",
        ffn="mlp",
        cls=True,
    )

Whether the description is right is not believed: `extract` compares attention times values with
what the module itself computes, and the sublayers with the block.

Without names they are guessed (`propose`): told by shapes, places and the first letters of names:
the largest list of equal blocks; in a block three projections side by side, or one that is fused,
and the one that leads back; the norms of the tokens' width in their order; the FFN in what is left.
A proposal is not believed: `extract` holds it against the module as it does every description.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Literal

import torch
from torch import Tensor, nn

from oversmoothing.experiments.models.inputs import stacked
from oversmoothing.experiments.models.model import (
    Bias,
    HeadNorm,
    Heads,
    Layer,
    Modality,
    Model,
    Norm,
    Placement,
    Rotate,
    value_parts,
)
from oversmoothing.experiments.models.weights import (
    check_finite,
    check_heads,
    columns,
    fused_parts,
    head_weights,
    recognise_head_norm,
    recognise_norm,
)
from oversmoothing.simulations.state import undisturbed
from oversmoothing.theory.support.errors import InputError

Ffn = str | Sequence[str] | Callable[[nn.Module], Callable[[Tensor], Tensor]]
# The name of a tensor or number within a block, or how to have it from a block.
Value = str | Callable[[nn.Module], Any]
Fused = Literal["qkv", "heads"]
_LETTER = re.compile(r"(?:to_|w|in_)?([qkv])[a-z_0-9]*")
_NUMBERS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "heads", "nhead", "h")


@undisturbed()
def describe(
    module: nn.Module,
    *,
    blocks: str | Sequence[nn.Module] | None = None,
    q: str | None = None,
    k: str | None = None,
    v: str | None = None,
    out: str | None = None,
    heads: int | None = None,
    norm_attention: str | None = None,
    norm_ffn: str | None = None,
    ffn: Ffn | None = None,
    kv_heads: int | None = None,
    placement: Placement | Callable[[nn.Module], Placement] = "pre",
    attention: str | None = None,
    fused: Fused = "qkv",
    scaling: float | Callable[[nn.Module], float | None] | None = None,
    rotate: Rotate | None = None,
    bias: Bias | None = None,
    q_norm: str | None = None,
    k_norm: str | None = None,
    softcap: float | Value | None = None,
    sinks: Value | None = None,
    output_norm_attention: str | None = None,
    output_norm_ffn: str | None = None,
    scale_attention: float | Value | None = None,
    scale_ffn: float | Value | None = None,
    causal: bool = False,
    cls: bool = False,
    registers: int = 0,
    modality: Modality = "vision",
    run: Callable[[Any], Any] | None = None,
    prepare: Callable[[list[Any]], Any] | None = None,
    name: str | None = None,
    notes: Sequence[str] = (),
    guess: bool = False,
) -> Model:
    """The `Model` of a module whose parts are named here, every name relative to a block.

    q, k, v, out name nn.Linear modules (or the transposed Conv1D of GPT-2). The same name three
    times is one fused projection (an nn.MultiheadAttention too): fused='qkv' where its outputs are
    all queries, then all keys, then all values, 'heads' where they are query, key, value head by
    head, or group by group. kv_heads: number of key-value heads where it is smaller (grouped).
    norm_attention and norm_ffn may be None: none. ffn: a name, several names (one after the other),
    or block -> callable; with a norm it takes normalised tokens. attention: the module that is
    called with the tokens (default: the one that holds `out`). scaling: of q k^T (default r^-1/2),
    or block -> number. q_norm, k_norm: norms of queries and keys in front of `rotate`. softcap: c
    of c tanh(logits / c). sinks: the logit of a token without a value, [heads].
    output_norm_attention, output_norm_ffn: norms behind a sublayer, in front of the residual sum.
    scale_attention, scale_ffn: what a sublayer is multiplied by, a number or [d] (layer scale). The
    last five are names (of modules; of a tensor or number of the block, dots allowed), or block ->
    value. placement, rotate and bias: see `experiments.models.model.Layer`; cls, registers and
    causal: see `Model` there. A block may stand in `blocks` several times. run: batch -> output
    (default: the module called on it). prepare: inputs -> batch (default: tensors are stacked).

    guess: names that are not given are proposed from shapes, places and names (`propose`),
    and said in run_notes; they are held against the module as given ones are.

    The module stays as it is; every pass of `extract` runs it in evaluation mode. Raises
    `InputError` for a part that is not there or has another shape, a norm of another form, and
    weights that are not finite.

    >>> import torch, oversmoothing
    >>> class Block(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.qkv, self.out = torch.nn.Linear(8, 24), torch.nn.Linear(8, 8)
    ...     def forward(self, x):
    ...         parts = self.qkv(x).chunk(3, -1)
    ...         q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in parts)
    ...         y = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    ...         return x + self.out(y.transpose(1, 2).flatten(2))
    >>> stack = torch.nn.Sequential(Block(), Block()).eval()
    >>> parts = {"q": "qkv", "k": "qkv", "v": "qkv", "out": "out", "heads": 2}
    >>> model = oversmoothing.describe(stack, blocks=list(stack), modality="features", **parts)
    >>> model.depth
    2
    """
    taken = dict(locals())
    if guess:
        own = ("module", "guess", "notes")
        given: dict[str, Any] = {x: y for x, y in taken.items() if x not in own and y is not None}
        proposal = propose(module, heads)
        said = ", ".join(f"{x}={y!r}" for x, y in proposal.items() if x not in given)
        return describe(module, **proposal | given | {"notes": [*notes, f"guessed: {said}"]})
    if blocks is None or q is None or k is None or v is None or out is None or heads is None:
        raise InputError(
            "a description names blocks=, q=, k=, v=, out= and heads=: describe(module, "
            "guess=True) proposes them"
        )
    check_finite(module)
    check_heads(heads, kv_heads)
    layers = []
    for number, block in enumerate(blocks_of(module, blocks)):
        where = f"block {number}"
        read = partial(_heads, block, where, (q, k, v, out), heads, kv_heads or heads, fused)
        weights = read()
        width = weights.W_V.shape[1]
        parent = out.rpartition(".")[0] if attention is None else attention
        attends = part(block, parent, where)
        if isinstance(attends, nn.MultiheadAttention) and not attends.batch_first:
            raise InputError(
                f"{where} reads tokens as [n, b, d]: build it with batch_first=True and load the "
                "same weights, which are stored alike"
            )
        scale = value_of(block, scale_attention, 1.0)
        norms = [
            _norm(block, where, name, width)
            for name in (norm_attention, norm_ffn, output_norm_attention, output_norm_ffn)
        ]
        layers.append(
            Layer(
                heads=weights.scaled(scale),
                norm_attention=norms[0],
                norm_ffn=norms[1],
                placement=placement(block) if callable(placement) else placement,
                ffn=_ffn(block, where, ffn, value_of(block, scale_ffn, 1.0)),
                block=block,
                attention=attends,
                # Its output projection is never called: the module multiplies by the weight.
                out=attends
                if isinstance(attends, nn.MultiheadAttention)
                else part(block, out, where),
                scaling=scaling(block) if callable(scaling) else scaling,
                rotate=rotate,
                bias=bias,
                q_norm=_head_norm(block, where, q_norm, weights, 1),
                k_norm=_head_norm(block, where, k_norm, weights, heads // (kv_heads or heads)),
                softcap=value_of(block, softcap, None),
                sinks=value_of(block, sinks, None),
                output_scale=scale,
                output_norm_attention=norms[2],
                output_norm_ffn=norms[3],
                read=partial(_scaled, read, block, scale_attention),
                parts=value_parts(block, (q, k, v, out), heads, kv_heads or heads, fused),
            )
        )
    return Model(
        name=name or type(module).__name__, module=module, layers=tuple(layers),
        width=layers[0].heads.W_V.shape[1], modality=modality, cls=cls, registers=registers,
        causal=causal, run=run or module, prepare=prepare or tensors, run_notes=tuple(notes),
    )  # fmt: skip


def tensors(inputs: list[Any]) -> Tensor:
    """A list of tensors of one shape as a batch. Raises `InputError` for anything else."""
    if not inputs or not all(isinstance(each, Tensor) for each in inputs):
        raise InputError(
            "this model reads tensors: give a list of tensors, a batch, or describe it with "
            "prepare=, a function from your inputs to a batch"
        )
    return stacked(inputs)


def part(block: nn.Module, name: str, where: str) -> nn.Module:
    """The submodule `name` of a block ('' is the block itself)."""
    try:
        return block.get_submodule(name)
    except AttributeError as error:
        names = ", ".join(each for each, _ in block.named_modules() if each)
        raise InputError(f"{where} has no part '{name}'; its parts are: {names}") from error


def blocks_of(module: nn.Module, blocks: str | Sequence[nn.Module]) -> list[nn.Module]:
    """The blocks named, or given; raises `InputError` where there are none."""
    if isinstance(blocks, str):
        stack = list(part(module, blocks, f"the module {type(module).__name__}").children())
    else:
        stack = list(blocks) if isinstance(blocks, Iterable) else []
    if not stack:
        raise InputError(f"there are no blocks in {blocks!r}: name the list of the layers")
    return stack


def _scaled(read: Callable[[], Heads], block: nn.Module, scale: Any) -> Heads:
    """The heads of a block with the scale of its attention in them, as both are now."""
    return read().scaled(value_of(block, scale, 1.0))


def _heads(
    block: nn.Module, where: str, names: tuple[str, str, str, str], heads: int, kv_heads: int,
    fused: Fused,
) -> Heads:  # fmt: skip
    *qkv, out = ((f"{where}, '{name}'", part(block, name, where)) for name in names)
    if len(set(names[:3])) == 1:
        fused_name, projection = qkv[0]
        weight, bias = columns(projection, fused_name)
        triples = fused_parts(weight, bias, heads, kv_heads, fused, fused_name)
    else:
        triples = [columns(projection, name) for name, projection in qkv]
    return head_weights(triples, columns(out[1], out[0]), heads, kv_heads, where)


def _norm(block: nn.Module, where: str, name: str | None, width: int) -> Norm:
    if name is None:
        return Norm("none", torch.ones(width))
    return recognise_norm(part(block, name, where), width, f"{where}, '{name}'")


def _head_norm(
    block: nn.Module, where: str, name: str | None, heads: Heads, repeats: int
) -> HeadNorm | None:
    if name is None:
        return None
    r = heads.W_Q.shape[-1]
    norm = part(block, name, where)
    return recognise_head_norm(norm, heads.number // repeats, repeats, r, f"{where}, '{name}'")


def value_of(block: nn.Module, value: float | Value | None, default: Any) -> Any:
    """A number or tensor as it is, by its name within the block, or from the block."""
    held = attrgetter(value)(block) if isinstance(value, str) else value
    held = held(block) if callable(held) and not isinstance(held, Tensor) else held
    held = default if held is None else held
    return held.detach() if isinstance(held, Tensor) else held


def _ffn(
    block: nn.Module, where: str, ffn: Ffn | None, scale: Tensor | float
) -> Callable[[Tensor], Tensor] | None:
    if ffn is None:
        return None
    if callable(ffn):
        steps = [ffn(block)]
    else:
        # An activation may be a plain function.
        names = [ffn] if isinstance(ffn, str) else ffn
        parts = [getattr(block, name, None) for name in names]
        steps = [
            each if callable(each) else part(block, name, where)
            for name, each in zip(names, parts, strict=True)
        ]
    reference = next(block.parameters())

    @torch.no_grad()
    def call(X: Tensor) -> Tensor:
        # The block's device and dtype are looked up at each call: the module may have moved.
        answer = X.to(reference.device, reference.dtype)
        for step in steps:
            answer = step(answer)
            answer = answer[0] if isinstance(answer, tuple) else answer
        return (answer * scale).to(X.device, X.dtype)

    return call


def propose(module: nn.Module, heads: int | None = None) -> dict[str, Any]:
    """blocks, q, k, v, out, attention, heads, norm_attention, norm_ffn and ffn, for `describe`.

    Raises `InputError` with what was not found.
    """
    place, blocks = _stack(module)
    block = blocks[0]
    linear = {name: each for name, each in block.named_modules() if _is_linear(each)}
    names: dict[str, Any] = {"blocks": place} | _guessed_attention(block, linear)
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
    names["ffn"] = _guessed_ffn(block, [name for name in linear if name not in used], norms)
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


def _guessed_attention(block: nn.Module, linear: dict[str, nn.Module]) -> dict[str, Any]:
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


def _guessed_ffn(
    block: nn.Module, names: list[str], norms: list[str]
) -> str | tuple[str, ...] | None:
    """The child that holds these projections and no norm, or those applied one after the other."""
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
        for name in _NUMBERS:
            value = getattr(place, name, None)
            if isinstance(value, int):
                return value
    raise _missing("the number of heads", "heads=")


def _missing(what: str, name: str) -> InputError:
    return InputError(f"a guess does not find {what}: give {name}")
