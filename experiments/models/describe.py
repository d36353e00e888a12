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
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from oversmoothing.experiments.models.inputs import stacked
from oversmoothing.experiments.models.model import (
    Bias,
    Heads,
    Layer,
    Model,
    Norm,
    Placement,
    Rotate,
)
from oversmoothing.experiments.models.weights import (
    check_finite,
    columns,
    fused_parts,
    head_weights,
    recognise_norm,
)
from oversmoothing.theory.support.errors import InputError

Ffn = str | Callable[[nn.Module], Callable[[Tensor], Tensor]]
Fused = Literal["qkv", "heads"]


def describe(
    module: nn.Module,
    *,
    blocks: str | Sequence[nn.Module],
    q: str,
    k: str,
    v: str,
    out: str,
    heads: int,
    norm_attention: str | None,
    norm_ffn: str | None = None,
    ffn: Ffn | None = None,
    kv_heads: int | None = None,
    placement: Placement = "pre",
    attention: str | None = None,
    fused: Fused = "qkv",
    scaling: float | Callable[[nn.Module], float | None] | None = None,
    rotate: Rotate | None = None,
    bias: Bias | None = None,
    causal: bool = False,
    cls: bool = False,
    modality: Literal["vision", "text"] = "vision",
    run: Callable[[Any], Any] | None = None,
    prepare: Callable[[list[Any]], Any] | None = None,
    name: str | None = None,
    notes: Sequence[str] = (),
) -> Model:
    """The `Model` of a module whose parts are named here, every name relative to a block.

    q, k, v, out name nn.Linear modules (or the transposed Conv1D of GPT-2). The same name three
    times is one fused projection: fused='qkv' where its outputs are all queries, then all keys,
    then all values, 'heads' where they are query, key, value head by head. kv_heads: number of
    key-value heads where it is smaller (grouped). norm_attention and norm_ffn may be None: none.
    ffn: a name, or block -> callable; with a norm it takes normalised tokens. attention: the
    module that is called with the tokens (default: the one that holds `out`). scaling: of q k^T
    (default r^-1/2), or block -> number. rotate and bias: see `experiments.models.model.Layer`.
    run: batch -> output (default: the module called on it). prepare: inputs -> batch (default: a
    list of tensors is stacked).

    The module stays as it is; every pass of `extract` runs it in evaluation mode. Raises
    `InputError` for a part that is not there or has another shape, a norm of another form, and
    weights that are not finite.
    """
    check_finite(module)
    if heads < 1 or (kv_heads or heads) < 1 or heads % (kv_heads or heads):
        raise InputError(
            f"{heads} heads and {kv_heads} key-value heads: both at least 1, and the number of "
            "heads a multiple"
        )
    layers = []
    for number, block in enumerate(_blocks(module, blocks)):
        where = f"block {number}"
        weights = _heads(block, where, (q, k, v, out), heads, kv_heads or heads, fused)
        width = weights.W_V.shape[1]
        parent = out.rpartition(".")[0] if attention is None else attention
        layers.append(
            Layer(
                heads=weights,
                norm_attention=_norm(block, where, norm_attention, width),
                norm_ffn=_norm(block, where, norm_ffn, width),
                placement=placement,
                ffn=_ffn(block, where, ffn),
                block=block,
                attention=part(block, parent, where),
                out=part(block, out, where),
                scaling=scaling(block) if callable(scaling) else scaling,
                rotate=rotate,
                bias=bias,
            )
        )
    return Model(
        name=name or type(module).__name__,
        module=module,
        layers=tuple(layers),
        width=layers[0].heads.W_V.shape[1],
        modality=modality,
        cls=cls,
        causal=causal,
        run=run or module,
        prepare=prepare or tensors,
        run_notes=tuple(notes),
    )


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
        names = ", ".join(found for found, _ in block.named_modules() if found)
        raise InputError(f"{where} has no part '{name}'; its parts are: {names}") from error


def _blocks(module: nn.Module, blocks: str | Sequence[nn.Module]) -> list[nn.Module]:
    if isinstance(blocks, str):
        stack = list(part(module, blocks, f"the module {type(module).__name__}").children())
    else:
        stack = list(blocks)
    if not stack:
        raise InputError(f"there are no blocks in {blocks!r}: name the list of the layers")
    return stack


def _heads(
    block: nn.Module,
    where: str,
    names: tuple[str, str, str, str],
    heads: int,
    kv_heads: int,
    fused: Fused,
) -> Heads:
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


def _ffn(block: nn.Module, where: str, ffn: Ffn | None) -> Callable[[Tensor], Tensor] | None:
    if ffn is None:
        return None
    inner = part(block, ffn, where) if isinstance(ffn, str) else ffn(block)
    reference = next(block.parameters())

    @torch.no_grad()
    def call(X: Tensor) -> Tensor:
        # The block's device and dtype are looked up at each call: the module may have moved.
        answer = inner(X.to(reference.device, reference.dtype))
        if isinstance(answer, tuple):
            answer = answer[0]
        return answer.to(X.device, X.dtype)

    return call
