"""The hooks of one forward pass, and what is computed from what they see.

Tensors are detached and copied when they are seen, so that a module that works in place spoils
nothing; hooks are removed whatever happens.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from oversmoothing.experiments.models.model import Extraction, Heads, Layer, Model, Trace
from oversmoothing.theory.support.errors import InputError

# A check that lets a quarter of the output pass would pass anything.
LARGEST_TOLERANCE = 0.25


# (number of a layer, dtype) -> its heads' weights where the model lies.
Weights = Callable[[int, torch.dtype], Heads]


class Watch:
    """One forward pass, watched."""

    def __init__(
        self, model: Model, weights: Weights, keep: Tensor | None, attention: bool,
        dtype: torch.dtype, verify: bool,
    ) -> None:  # fmt: skip
        self.model, self.weights, self.keep = model, weights, keep
        self.attention, self.dtype, self.verify = attention, dtype, verify
        self.traces: list[Trace] = []
        self.errors: list[float] = []
        self.seen: dict[str, Any] = {}
        # The last block's output as the module gave it, its version, and our copy of it.
        self.last: tuple[Tensor, int, Tensor] | None = None

    def run(self, batch: Any) -> Extraction:
        """Raises `InputError` where the pass does not go through every layer once."""
        with ExitStack() as hooks:
            for number, layer in enumerate(self.model.layers):
                for handle in self._watch(number, layer):
                    hooks.callback(handle.remove)
            self.model.run(batch)
        if len(self.traces) != self.model.depth:
            raise InputError(
                f"the forward pass went through {len(self.traces)} of the {self.model.depth} layers"
                " described: describe those that run, in their order, each once"
            )
        assert self.keep is not None
        return Extraction(tuple(self.traces), self.keep.cpu(), tuple(self.errors))

    def _watch(self, number: int, layer: Layer) -> list[Any]:
        seen = self.seen

        def note(name: str) -> Callable[[Tensor], None]:
            def remember(X: Tensor) -> None:
                seen[name] = X.detach().clone()

            return remember

        def start(X: Tensor) -> None:
            seen.clear()
            last = self.last
            same = last is not None and X is last[0] and X._version == last[1]
            seen["before"] = last[2] if same and last is not None else X.detach().clone()

        def end(X: Tensor) -> None:
            copy = X.detach().clone()
            self._finish(number, layer, dict(seen), copy)
            self.last = (X, X._version, copy)
            seen.clear()

        def call(module: nn.Module, args: Any, kwargs: Any) -> None:
            seen["call"] = _arguments(module, args, kwargs)

        handles = [_before(layer.block, start)]
        if layer.attention is not layer.block:
            handles.append(layer.attention.register_forward_pre_hook(call, with_kwargs=True))
            handles.append(_before(layer.attention, note("inputs")))
        elif layer.norm_attention.module is not None and layer.placement == "pre":
            handles.append(_after(layer.norm_attention.module, note("inputs")))
        if layer.out is not None:
            handles.append(_after(layer.out, note("output")))
        if layer.placement == "post" and layer.norm_attention.module is not None:
            handles.append(_after(layer.norm_attention.module, note("middle")))
        elif layer.placement == "pre" and layer.norm_ffn.module is not None:
            handles.append(_before(layer.norm_ffn.module, note("middle")))
        handles.append(_after(layer.block, end))
        return handles

    def _finish(self, number: int, layer: Layer, seen: dict[str, Any], after: Tensor) -> None:
        before, output = seen["before"], seen.get("output")
        middle = seen.get("middle")
        if middle is None:
            if output is None:
                raise InputError(
                    f"layer {number}: neither the output of its attention nor the input of its FFN "
                    "can be seen: name out=, or norm_ffn="
                )
            middle = before + output
        if output is None and layer.placement == "pre":
            output = middle - before
        if self.keep is None:
            self.keep = torch.ones(before.shape[:2], dtype=torch.bool, device=before.device)
        if not bool(torch.isfinite(after[self.keep]).all()):
            raise InputError(
                f"layer {number} gives numbers that are NaN or infinite on these inputs: "
                f"{_precision(before.dtype)}, or look for them in the inputs"
            )
        A, error = None, 0.0
        if self.attention:
            A, error = self._attention(number, layer, seen, output)
        if self.verify and output is not None:
            self._verify(number, layer, before, output, middle, after)
        shared = self.last is not None and self.last[2] is before
        self.traces.append(
            Trace(
                None if A is None else A.cpu(),
                self.traces[-1].after_ffn if shared else before.to("cpu", self.dtype),
                middle.to("cpu", self.dtype),
                after.to("cpu", self.dtype),
            )
        )
        self.errors.append(error)

    def _attention(
        self, number: int, layer: Layer, seen: dict[str, Any], output: Tensor | None
    ) -> tuple[Tensor, float]:
        keep = self.keep
        assert keep is not None
        X = seen.get("inputs")
        X = (seen["before"] if X is None else X).to(self.dtype)
        heads = self.weights(number, self.dtype)
        A, reach = attention(X, heads, layer, seen.get("call", {}), keep, self.model.causal)
        if output is None:
            return A, 0.0
        own = attention_output(A, X, heads)[keep]
        given = output.to(self.dtype)[keep]
        size = given.abs().max()
        error = float((own - given).abs().max() / size) if size else float(own.abs().max())
        # q and k are rounded once each, which moves a logit by 2 eps |q| |k| at most; then the
        # softmax, the values and the sum over heads. The residual's rounding comes in where the
        # output is a difference of streams.
        eps = _eps(output.dtype)
        scale = 1.0 if "output" in seen else float(1 + seen["before"].abs().max() / size)
        tolerance = min(LARGEST_TOLERANCE, eps * (64 + 4 * reach) * scale)
        if not error <= tolerance:
            raise InputError(
                f"layer {number}: attention times values differs from the attention module's own "
                f"output by {error:.1e} of it (at most {tolerance:.1e} is rounding): the model "
                "attends in a way that its description does not say (norms on queries and keys, "
                "other positions, masks or scaling, another order of a fused projection); describe "
                "it with rotate=, bias=, scaling= or fused=, or open it with dtype=torch.float32 "
                "if it runs in half precision"
            )
        return A, error

    def _verify(
        self, number: int, layer: Layer, before: Tensor, output: Tensor, middle: Tensor,
        after: Tensor,
    ) -> None:  # fmt: skip
        """The sublayers put together give the block, to rounding."""
        wide = torch.promote_types(before.dtype, torch.float32)
        X, Y, Z = before.to(wide), middle.to(wide), after.to(wide)
        first = X + output.to(wide)
        if layer.placement == "pre":
            second = Y if layer.ffn is None else Y + layer.ffn(layer.norm_ffn(Y))
        else:
            first = layer.norm_attention(first)
            second = Y if layer.ffn is None else layer.norm_ffn(Y + layer.ffn(Y))
        tolerance = min(LARGEST_TOLERANCE, 256 * _eps(before.dtype))
        for name, own, given in (("attention", first, Y), ("FFN", second, Z)):
            own, given = own[self.keep], given[self.keep]
            error = float((own - given).abs().max() / given.abs().max())
            if not error <= tolerance:
                raise InputError(
                    f"layer {number}: its {name} sublayer is not the residual sum that its "
                    f"description says (off by {error:.1e} of the stream, at most {tolerance:.1e} "
                    "is rounding): layer scale, further norms, a parallel FFN and the like are not "
                    "understood; check placement, norms and ffn"
                )


def _eps(dtype: torch.dtype) -> float:
    """The rounding of a forward pass; libraries round softmax and norms to float32 in any dtype."""
    return max(torch.finfo(dtype).eps, torch.finfo(torch.float32).eps)


def _precision(dtype: torch.dtype) -> str:
    return "open it with dtype=torch.float32" if dtype.itemsize < 4 else "use float64"


def attention(
    X: Tensor, heads: Heads, layer: Layer, call: Mapping[str, Any], keep: Tensor, causal: bool
) -> tuple[Tensor, float]:
    """(A [b, heads, n, n], max |q| |k| scaling) for attention inputs X [b, n, d].

    Rows sum to 1 over the kept tokens (and, causal, the earlier ones); padding is 0.
    """
    q, k = projected(X, heads.W_Q, heads.b_Q), projected(X, heads.W_K, heads.b_K)
    if layer.rotate is not None:
        q, k = layer.rotate(q, k, call)
    scaling = q.shape[-1] ** -0.5 if layer.scaling is None else layer.scaling
    logits = (q * scaling) @ k.mT
    sizes = [float(torch.linalg.vector_norm(each, dim=-1).amax()) for each in (q, k)]
    added = None if layer.bias is None else layer.bias(call)
    if added is not None:
        logits = logits + added.to(logits)
    n = X.shape[1]
    whole = bool(keep.all())
    if causal or not whole:
        allowed = keep[:, None, None, :]
        if causal:
            allowed = allowed & torch.ones(n, n, dtype=torch.bool, device=X.device).tril()
        logits = logits.masked_fill(~allowed, -torch.inf)
    A = logits.softmax(-1)
    if not whole:
        # A padding row may have nothing to attend to (NaN); nobody reads it.
        A = torch.where(keep[:, None, :, None], A, 0.0)
    return A, abs(scaling) * sizes[0] * sizes[1]


def attention_output(A: Tensor, X: Tensor, heads: Heads) -> Tensor:
    """sum_h A_h X W_V,h W_O,h + biases, [b, n, d]."""
    values = A @ projected(X, heads.W_V, heads.b_V)
    out: Tensor = values.transpose(1, 2).flatten(2) @ heads.W_O.flatten(0, 1)
    return out if heads.b_O is None else out + heads.b_O


def projected(X: Tensor, W: Tensor, bias: Tensor | None) -> Tensor:
    """X [b, n, d] by W [heads, d, r]: [b, heads, n, r]."""
    (b, n, _), (heads, _, r) = X.shape, W.shape
    out = (X @ W.transpose(0, 1).flatten(1)).view(b, n, heads, r).transpose(1, 2)
    return out if bias is None else out + bias.unsqueeze(1)


def _arguments(module: nn.Module, args: Any, kwargs: Any) -> dict[str, Any]:
    """The call's arguments by name, those swallowed by **kwargs among them."""
    try:
        bound = inspect.signature(module.forward).bind_partial(*args, **kwargs)
    except TypeError:
        return dict(kwargs)
    named = dict(bound.arguments)
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            named |= named.pop(name, {})
    return named


def _before(module: nn.Module, see: Callable[[Tensor], None]) -> Any:
    def hook(_: nn.Module, args: Any, kwargs: Any) -> None:
        see(_first((*args, *kwargs.values()), module))

    return module.register_forward_pre_hook(hook, with_kwargs=True)


def _after(module: nn.Module, see: Callable[[Tensor], None]) -> Any:
    def hook(_: nn.Module, __: Any, output: Any) -> None:
        see(_first(output if isinstance(output, tuple | list) else (output,), module))

    return module.register_forward_hook(hook)


def _first(values: Any, module: nn.Module) -> Tensor:
    """The tokens: the first tensor [b, n, d] among a call's arguments or results."""
    for value in values:
        if isinstance(value, Tensor) and value.ndim == 3 and value.is_floating_point():
            return value
    raise InputError(
        f"no tokens [b, n, d] are seen at {type(module).__name__}: its blocks must take and give "
        "them as the first tensor"
    )
