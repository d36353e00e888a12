"""Thirty ways and more in which a description and its model may differ in one layer.

A tamper takes an honest `Model` and gives one whose description is wrong in one place, or hooks the
module so that it does in one place what its description does not say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from oversmoothing.experiments.models.model import Heads, Layer, Model
from oversmoothing.experiments.models.sources import open_model
from tests.support.tiny_transformers import tiny

Tamper = Callable[[Model], Model]
WHERE = 1  # the second of two layers: what is wrong in one layer must not hide behind the first


def loud(family: str, **settings: object) -> nn.Module:
    """A tiny model whose attention is far from uniform: queries and keys are enlarged."""
    module = tiny(family, **settings)  # type: ignore[arg-type]
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if any(part in name for part in ("q_proj", "k_proj", "query", "key", "c_attn")):
                parameter.mul_(2.0)
    return module


def opened(family: str, dtype: torch.dtype) -> Model:
    return open_model(loud(family).to(dtype))


def _layer(change: Callable[[Layer, Model], Layer]) -> Tamper:
    def tamper(model: Model) -> Model:
        layers = list(model.layers)
        layers[WHERE] = change(layers[WHERE], model)
        return replace(model, layers=tuple(layers))

    return tamper


def _heads(change: Callable[[Heads], Mapping[str, Tensor | None]]) -> Tamper:
    def altered(layer: Layer, _: Model) -> Layer:
        changed = replace(layer.heads, **change(layer.heads))
        return replace(layer, read=lambda: changed)

    return _layer(altered)


def _norm(name: str, change: Callable[[Any], Mapping[str, Any]]) -> Tamper:
    def altered(layer: Layer, _: Model) -> Layer:
        norm = getattr(layer, name)
        return replace(layer, **{name: replace(norm, **change(norm))})  # type: ignore[arg-type]

    return _layer(altered)


def _ffn(change: Callable[[Tensor, Tensor], Tensor]) -> Tamper:
    """change: (what the FFN is given, what it gives) -> what the description says it gives."""

    def altered(layer: Layer, _: Model) -> Layer:
        inner = layer.ffn
        assert inner is not None
        return replace(layer, ffn=lambda X: change(X, inner(X)))

    return _layer(altered)


def _hooked(name: str, change: Callable[[Tensor], Tensor], *, entering: bool = False) -> Tamper:
    """The tokens that a part of the layer takes, or gives, are changed in the module itself."""

    def tamper(model: Model) -> Model:
        layer = model.layers[WHERE]
        module = {
            "block": layer.block,
            "attention": layer.attention,
            "out": layer.out,
            "norm_attention": layer.norm_attention.module,
            "norm_ffn": layer.norm_ffn.module,
            "mlp": getattr(layer.block, "mlp", None),
        }[name]
        assert module is not None

        def enter(_: nn.Module, args: Any, kwargs: Any) -> Any:
            if args:
                return (change(args[0]), *args[1:]), kwargs
            return args, {**kwargs, "hidden_states": change(kwargs["hidden_states"])}

        def leave(_: nn.Module, __: Any, output: Any) -> Any:
            return (change(output[0]), *output[1:]) if isinstance(output, tuple) else change(output)

        if entering:
            module.register_forward_pre_hook(enter, with_kwargs=True)
        else:
            module.register_forward_hook(leave)
        return model

    return tamper


def _first_head(W: Tensor, factor: float) -> Tensor:
    return torch.cat([factor * W[:1], W[1:]])


def _but_first(factor: float) -> Callable[[Tensor], Tensor]:
    return lambda X: torch.cat([X[:, :1], factor * X[:, 1:]], 1)


def _positions(X: Tensor) -> Tensor:
    n, d = X.shape[-2:]
    return X + 0.1 * torch.sin(torch.arange(n * d).view(n, d)).to(X)


def _one_token(factor: float) -> Callable[[Tensor], Tensor]:
    def change(X: Tensor) -> Tensor:
        Y = X.clone()
        Y[0, 2] = factor * Y[0, 2]
        return Y

    return change


def _swapped(model: Model) -> Model:
    return replace(model, layers=model.layers[::-1])


def _other_ffn(layer: Layer, model: Model) -> Layer:
    return replace(layer, ffn=model.layers[0].ffn)


# name -> (family, tamper)
TAMPERED: dict[str, tuple[str, Tamper]] = {
    "sign of a head's values": ("vit", _heads(lambda h: {"W_V": _first_head(h.W_V, -1.0)})),
    "a head's values by 1.01": ("deit", _heads(lambda h: {"W_V": _first_head(h.W_V, 1.01)})),
    "output by 1.01": ("llama", _heads(lambda h: {"W_O": 1.01 * h.W_O})),
    "order of the values' heads": ("vit", _heads(lambda h: {"W_V": h.W_V.flip(0)})),
    "order of the output's heads": ("bert", _heads(lambda h: {"W_O": h.W_O.flip(0)})),
    "order of grouped heads": ("llama", _heads(lambda h: {"W_V": h.W_V[[0, 2, 1, 3]]})),
    "no bias of values": ("vit", _heads(lambda h: {"b_V": None})),
    "no bias of the output": ("gpt2", _heads(lambda h: {"b_O": None})),
    "causal where it is not": ("deit", lambda model: replace(model, causal=True)),
    "eps of 1e-3": ("vit", _norm("norm_attention", lambda _: {"eps": 1e-3})),
    "eps of 1e-3 behind": ("bert", _norm("norm_ffn", lambda _: {"eps": 1e-3})),
    "gain by 1.01": ("llama", _norm("norm_attention", lambda x: {"gain": 1.01 * x.gain})),
    "gain as a difference from 1": ("gpt2", _norm("norm_ffn", lambda x: {"gain": 1 + x.gain})),
    "no shift": ("deit", _norm("norm_ffn", lambda _: {"shift": None})),
    "centred where it is not": ("llama", _norm("norm_ffn", lambda _: {"kind": "layer"})),
    "norms exchanged": ("vit", _layer(lambda x, _: replace(
        x, norm_attention=x.norm_ffn, norm_ffn=x.norm_attention))),
    "norms in front where they are behind": ("bert", _layer(
        lambda x, _: replace(x, placement="pre"))),
    "norms behind where they are in front": ("gpt2", _layer(
        lambda x, _: replace(x, placement="post"))),
    "FFN by 1.01": ("llama", _ffn(lambda _, Y: 1.01 * Y)),
    "sign of the FFN": ("bert", _ffn(lambda _, Y: -Y)),
    "FFN with a residual": ("vit", _ffn(lambda X, Y: X + Y)),
    "no FFN": ("deit", _layer(lambda x, _: replace(x, ffn=None))),
    "another layer's FFN": ("gpt2", _layer(_other_ffn)),
    "layers in another order": ("vit", _swapped),
    "FFN by -1 but at the first token": ("llama", _hooked("mlp", _but_first(-1.0))),
    "FFN by 0 but at the first token": ("gpt2", _hooked("mlp", _but_first(0.0))),
    "FFN by 3 but at the first token": ("vit", _hooked("mlp", _but_first(3.0))),
    "FFN that sees the mean": ("vit", _hooked("mlp", lambda X: X + 0.1 * X.mean(1, True))),
    "positions between the blocks": ("deit", _hooked("block", _positions, entering=True)),
    "positions in front of the norm": ("vit", _hooked("norm_attention", _positions, entering=True)),
    "positions behind the norm": ("llama", _hooked("attention", _positions, entering=True)),
    "positions in front of Post-LN attention": ("bert", _hooked("attention", _positions,
                                                                entering=True)),
    "the output's bias by 2": ("gpt2", _heads(lambda h: {"b_O": 2 * h.b_O})),
    "the values' bias by 2": ("vit", _heads(lambda h: {"b_V": 2 * h.b_V})),
    "not centred where it is": ("deit", _norm("norm_attention", lambda _: {"kind": "rms"})),
    "gain of the FFN by 1.01": ("llama", _norm("norm_ffn", lambda x: {"gain": 1.01 * x.gain})),
    "shift by 2": ("bert", _norm("norm_attention", lambda x: {"shift": 2 * x.shift})),
    "sublayers in parallel": ("vit", _layer(lambda x, _: replace(x, placement="parallel"))),
    "FFN that sees the token in front": ("llama", _hooked("mlp", lambda X: X + 0.1 * X.roll(1, 1))),
    "a token's attention by 1.01": ("gpt2", _hooked("out", _one_token(1.01))),
    "a token without attention": ("llama", _hooked("out", _one_token(0.0))),
}  # fmt: skip
