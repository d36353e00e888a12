"""The hooks that see the residual stream of a training pass, and what they may not do to it.

A hook copies a few inputs of what a block gives to float64 on the CPU and hands that on at once:
nothing of autograd is kept, no bit of the pass changes, and where nothing is wanted it returns.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from oversmoothing.theory.support.errors import InputError

# (layer, X [m, n, d] float64 on the CPU, the kept tokens [m, n] or None); layer 0: in front of all.
See = Callable[[int, Tensor, Tensor | None], None]


class StreamHooks:
    """Hooks on the blocks of `root`, in their order; one block may stand there several times.

    wanted: whether the pass that begins is to be seen. see: told of each layer of it. inputs: how
    many of a batch, from the first. done: told when the last layer was seen.
    """

    def __init__(
        self, root: nn.Module, blocks: Sequence[nn.Module], inputs: int,
        wanted: Callable[[], bool], see: See, done: Callable[[], None],
    ) -> None:  # fmt: skip
        self.depth, self.inputs = len(blocks), inputs
        self.wanted, self.see, self.done = wanted, see, done
        self.once = len({id(block) for block in blocks}) == len(blocks)
        self.reset()
        first = blocks[0]
        self.handles = [
            module.register_forward_pre_hook(self._call, with_kwargs=True)
            for module in root.modules()
            if module is not first and any(each is first for each in module.modules())
        ]
        self.handles.append(first.register_forward_pre_hook(self._before, with_kwargs=True))
        for block in dict.fromkeys(blocks):
            self.handles.append(block.register_forward_hook(self._after))

    def reset(self) -> None:
        """Forget a pass that was not seen to its end."""
        self.seen: int | None = None
        self.keep: Tensor | None = None

    def remove(self) -> None:
        """Take every hook off."""
        for handle in self.handles:
            handle.remove()
        self.handles.clear()

    # A compiled pass is traced once and never asks again: its hooks are empty.

    def _call(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        if torch.compiler.is_compiling() or not self.wanted():
            return
        mask = _named(module, args, kwargs).get("attention_mask")
        if isinstance(mask, Tensor) and mask.ndim == 2:
            self.keep = mask.detach()[: self.inputs].to("cpu", torch.bool)

    def _before(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        if torch.compiler.is_compiling() or not self.wanted():
            return
        if self.seen is None or self.once:
            self._hand_on(0, _tokens((*args, *kwargs.values()), module))

    def _after(self, module: nn.Module, _: Any, output: Any) -> None:
        if torch.compiler.is_compiling() or self.seen is None or not self.wanted():
            return
        self._hand_on(self.seen + 1, _tokens(output, module))
        if self.seen == self.depth:
            self.reset()
            self.done()

    @torch.no_grad()
    def _hand_on(self, layer: int, X: Tensor) -> None:
        X = X.detach()[: self.inputs].to("cpu", torch.float64, copy=True)
        keep = self.keep
        if keep is not None and keep.shape != X.shape[:2]:
            raise InputError(
                f"the attention mask {tuple(keep.shape)} is not of the tokens {tuple(X.shape[:2])} "
                "that the blocks take: which of them are padding is not known"
            )
        self.seen = layer
        self.see(layer, X, None if keep is None or bool(keep.all()) else keep)


def _named(module: nn.Module, args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments of a call by name; only those given by name where they do not bind."""
    try:
        bound = inspect.signature(module.forward).bind_partial(*args, **kwargs)
    except TypeError:
        return dict(kwargs)
    return {**bound.arguments, **kwargs}


def _tokens(values: Any, module: nn.Module) -> Tensor:
    """The first tensor [b, n, d] among what a block takes or gives."""
    for value in values if isinstance(values, tuple | list) else (values,):
        if isinstance(value, Tensor) and value.ndim == 3 and value.is_floating_point():
            return value
    raise InputError(
        f"no tokens [b, n, d] are seen at {type(module).__name__}: the blocks to watch must take "
        "and give them as the first tensor"
    )
