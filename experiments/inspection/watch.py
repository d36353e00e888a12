"""The hooks of one forward pass, and what is computed from what they see.

Tensors are detached and copied when they are seen, so that a module that works in place spoils
nothing; hooks are removed whatever happens.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from oversmoothing.experiments.inspection.attention import attention, attention_output
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
            # A block that is used several times has its hooks once.
            for layer in {layer.block: layer for layer in self.model.layers}.values():
                for handle in self._watch(layer):
                    hooks.callback(handle.remove)
            self.model.run(batch)
        if len(self.traces) != self.model.depth:
            raise self._order()
        assert self.keep is not None
        return Extraction(tuple(self.traces), self.keep.cpu(), tuple(self.errors))

    def _order(self) -> InputError:
        return InputError(
            f"the forward pass went through {len(self.traces)} of the {self.model.depth} layers"
            " described, in their order: describe those that run, in their order, as often as they "
            "run"
        )

    def _watch(self, layer: Layer) -> list[Any]:
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
            copy, number = X.detach().clone(), len(self.traces)
            if number == self.model.depth or self.model.layers[number].block is not layer.block:
                raise self._order()
            self._finish(number, self.model.layers[number], dict(seen), copy)
            self.last = (X, X._version, copy)
            seen.clear()

        def call(module: nn.Module, args: Any, kwargs: Any) -> None:
            seen["call"] = _arguments(module, args, kwargs)

        handles = [_before(layer.block, start)]
        handles.append(layer.attention.register_forward_pre_hook(call, with_kwargs=True))
        if layer.attention is not layer.block:
            handles.append(_before(layer.attention, note("inputs")))
        elif layer.norm_attention.module is not None and layer.placement != "post":
            handles.append(_after(layer.norm_attention.module, note("inputs")))
        if layer.out is not None:
            handles.append(_after(layer.out, note("output")))
        if layer.placement == "post" and layer.norm_attention.module is not None:
            handles.append(_after(layer.norm_attention.module, note("middle")))
        elif layer.placement == "pre" and layer.norm_ffn.module is not None:
            handles.append(_before(layer.norm_ffn.module, note("middle"), flat=True))
        handles.append(_after(layer.block, end))
        return handles

    def _finish(self, number: int, layer: Layer, seen: dict[str, Any], after: Tensor) -> None:
        before, middle = seen["before"], seen.get("middle")
        if "output" in seen and seen["output"].shape != before.shape:
            del seen["output"]  # tokens in another arrangement, as in windows
        output = seen.get("output")
        if middle is None:
            if output is None:
                raise InputError(
                    f"layer {number}: neither the output of its attention nor the input of its FFN "
                    "can be seen: name out=, or norm_ffn="
                )
            middle = layer.after_attention(before, output * layer.output_scale)
        middle = middle.view_as(before)
        if output is not None:
            output = output * layer.output_scale
        elif layer.placement != "post":
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
        scale = (
            1.0
            if "output" in seen and seen["output"].shape == output.shape
            else float(1 + seen["before"].abs().max() / size)
        )
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
        first, second = layer.after_attention(X, output.to(wide)), layer.after_ffn(X, Y)
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


def _before(module: nn.Module, see: Callable[[Tensor], None], flat: bool = False) -> Any:
    def hook(_: nn.Module, args: Any, kwargs: Any) -> None:
        see(_first((*args, *kwargs.values()), module, flat))

    return module.register_forward_pre_hook(hook, with_kwargs=True)


def _after(module: nn.Module, see: Callable[[Tensor], None]) -> Any:
    def hook(_: nn.Module, __: Any, output: Any) -> None:
        see(_first(output if isinstance(output, tuple | list) else (output,), module))

    return module.register_forward_hook(hook)


def _first(values: Any, module: nn.Module, flat: bool = False) -> Tensor:
    """The tokens: the first tensor [b, n, d], or if `flat` [b n, d], among arguments or results."""
    for value in values:
        dimensions = (2, 3) if flat else (3,)
        if isinstance(value, Tensor) and value.ndim in dimensions and value.is_floating_point():
            return value
    raise InputError(
        f"no tokens [b, n, d] are seen at {type(module).__name__}: its blocks must take and give "
        "them as the first tensor"
    )
