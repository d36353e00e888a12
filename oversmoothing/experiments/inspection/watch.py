"""The hooks of one forward pass, and what is computed from what they see.

Tensors are detached and copied when they are seen, so that a module that works in place spoils
nothing; hooks are removed whatever happens. One block may stand for several layers (a model that
uses it many times): a call belongs to the next layer of the description.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from oversmoothing.experiments.inspection.attention import attention
from oversmoothing.experiments.inspection.verify import NORMS, Seen, Verifier
from oversmoothing.experiments.models.model import Extraction, Heads, Layer, Model, Trace
from oversmoothing.theory.support.errors import InputError

# (number of a layer, dtype) -> its heads' weights where the model lies.
Weights = Callable[[int, torch.dtype], Heads]


class Watch:
    """One forward pass, watched.

    attention: compute it; dtype: in which it is computed and everything kept; verify: hold every
    layer against its description (`verify`), in a pass in float32 or float64.
    """

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
        """Raises `InputError` where the pass does not go through every layer once, in order, each
        on what the one before gave."""
        with ExitStack() as hooks:
            for layer in {id(layer.block): layer for layer in self.model.layers}.values():
                for handle in self._watch(layer):
                    hooks.callback(handle.remove)
            output = self.model.run(batch)
        if len(self.traces) != self.model.depth:
            raise InputError(
                f"the forward pass went through {len(self.traces)} of the {self.model.depth} layers"
                " described: describe those that run, in their order, each as often as it runs"
            )
        assert self.keep is not None
        self._hold_against(getattr(output, "hidden_states", None))
        return Extraction(tuple(self.traces), self.keep.cpu(), tuple(self.errors))

    def _watch(self, layer: Layer) -> list[Any]:
        def note(name: str) -> Callable[[Tensor], None]:
            def remember(X: Tensor) -> None:
                self.seen[name] = X.detach().clone()

            return remember

        def call(module: nn.Module, args: Any, kwargs: Any) -> None:
            self.seen["call"] = call_arguments(module, args, kwargs)

        handles = [_before(layer.block, lambda X: self._start(layer, X))]
        handles.append(layer.attention.register_forward_pre_hook(call, with_kwargs=True))
        if layer.attention is not layer.block:
            handles.append(_before(layer.attention, note("inputs")))
        for name in NORMS:
            norm = getattr(layer, name).module
            if norm is not None:
                handles.append(_before(norm, note(f"{name} input"), flat=True))
                handles.append(_after(norm, note(f"{name} output"), flat=True))
        if layer.out is not None:
            handles.append(_after(layer.out, note("output")))
        handles.append(_after(layer.block, self._end))
        return handles

    def _start(self, layer: Layer, X: Tensor) -> None:
        if "before" in self.seen:
            raise self._nested()
        number = len(self.traces)
        if number == self.model.depth or self.model.layers[number].block is not layer.block:
            raise InputError(
                f"the forward pass does not go through the blocks as described: what runs after "
                f"{number} of the {self.model.depth} is another; describe those that run, in "
                "their order, each as often as it runs"
            )
        self.seen = {}
        last = self.last
        if last is not None and X is last[0] and X._version == last[1]:
            self.seen["before"] = last[2]
            return
        self.seen["before"] = before = X.detach().clone()
        if last is not None:
            _continues(number, last[2], before, self._kept(before))

    def _end(self, X: Tensor) -> None:
        if "before" not in self.seen:
            raise self._nested()
        copy = X.detach().clone()
        self._finish(len(self.traces), self.seen, copy)
        self.last = (X, X._version, copy)
        self.seen = {}

    def _nested(self) -> InputError:
        return InputError(
            f"layer {len(self.traces)}: its block holds another block of the description, or runs "
            "within one: describe blocks that follow one another"
        )

    def _kept(self, X: Tensor) -> Tensor:
        if self.keep is None:
            self.keep = torch.ones(X.shape[:2], dtype=torch.bool, device=X.device)
        return self.keep

    def _finish(self, number: int, noted: dict[str, Any], after: Tensor) -> None:
        layer = self.model.layers[number]
        keep = self._kept(after)
        if not bool(torch.isfinite(after[keep]).all()):
            raise InputError(
                f"layer {number} gives numbers that are NaN or infinite on these inputs: "
                f"{_precision(after.dtype)}, or look for them in the inputs"
            )
        seen = _seen(noted, after, layer)
        output, middle = seen.added(layer), seen.between(layer)
        if middle is None:
            if output is None:
                raise InputError(
                    f"layer {number}: neither the output of its attention nor the input of its FFN "
                    "can be seen: name out=, or norm_ffn="
                )
            middle = layer.after_attention(seen.before, output)
        verifier = Verifier(number, layer, keep)
        A, error = None, 0.0
        if self.attention:
            X = seen.attended(layer).to(self.dtype)
            heads = self.weights(number, self.dtype)
            found = attention(X, heads, layer, seen.call, keep, self.model.causal)
            # In half precision rounding hides any error: there the pass in float32 judges.
            if after.dtype.itemsize >= 4:
                error = verifier.attention(found, heads, X, seen)
            A = found.A
        if self.verify and output is not None:
            verifier.sublayers(seen, middle, output)
        before = seen.before
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

    def _hold_against(self, states: Any) -> None:
        """The hidden states that the model itself gives are what each block was given."""
        if not isinstance(states, tuple) or len(states) != self.model.depth + 1:
            return
        assert self.keep is not None
        for number, (trace, state) in enumerate(zip(self.traces, states[:-1], strict=True)):
            own = trace.before.to(state)
            if own.shape != state.shape or not torch.equal(own[self.keep], state[self.keep]):
                raise InputError(
                    f"layer {number}: what its block is given is not the model's own hidden state "
                    f"{number}: describe the blocks of the stack that gives it"
                )


def _continues(number: int, gave: Tensor, given: Tensor, keep: Tensor) -> None:
    """Raises `InputError` where a block is given what the one before did not give."""
    if gave.shape != given.shape:
        raise InputError(
            f"between layers {number - 1} and {number} the stream changes its shape, "
            f"{tuple(gave.shape)} to {tuple(given.shape)}: only stacks of one width and length are "
            "understood"
        )
    gave, given = gave[keep], given[keep]
    if not torch.equal(gave, given):
        lengths = (torch.linalg.vector_norm(x.double(), dim=-1) for x in (given - gave, gave))
        size = float(torch.div(*lengths).max())
        raise InputError(
            f"between layers {number - 1} and {number} the stream changes, by {size:.1e} of it at "
            "a token: positions, a norm or a second branch between the blocks are not understood, "
            "since no layer's account would hold them"
        )


def _seen(noted: dict[str, Any], after: Tensor, layer: Layer) -> Seen:
    """What was noted of a layer, tokens as [b, n, d] also where a module sees them as [b n, d]."""
    before = noted["before"]
    norms = {
        name: (noted[f"{name} input"].view_as(before), noted[f"{name} output"].view_as(before))
        for name in NORMS
        if f"{name} output" in noted
    }
    output = noted.get("output")
    if output is not None:
        # Tokens in another arrangement, as in windows, are not told apart.
        output = output * layer.output_scale if output.shape == before.shape else None
    return Seen(before, after, noted.get("call", {}), noted.get("inputs"), output, norms)


def _precision(dtype: torch.dtype) -> str:
    return "open it with dtype=torch.float32" if dtype.itemsize < 4 else "use float64"


def call_arguments(module: nn.Module, args: Any, kwargs: Any) -> dict[str, Any]:
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


def _after(module: nn.Module, see: Callable[[Tensor], None], flat: bool = False) -> Any:
    def hook(_: nn.Module, __: Any, output: Any) -> None:
        see(_first(output if isinstance(output, tuple | list) else (output,), module, flat))

    return module.register_forward_hook(hook)


def _first(values: Any, module: nn.Module, flat: bool) -> Tensor:
    """The tokens: the first tensor [b, n, d], or if `flat` [b n, d], among arguments or results."""
    for value in values:
        dimensions = (2, 3) if flat else (3,)
        if isinstance(value, Tensor) and value.ndim in dimensions and value.is_floating_point():
            return value
    raise InputError(
        f"no tokens [b, n, d] are seen at {type(module).__name__}: its blocks must take and give "
        "them as the first tensor"
    )
