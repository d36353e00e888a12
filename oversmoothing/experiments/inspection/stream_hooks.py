"""The hooks that see the residual stream of a training pass, and what they may not do to it.

A hook copies a few inputs of what a block gives to float64 on the CPU and hands that on at once:
nothing of autograd is kept, no bit of the pass changes, and where nothing is wanted it returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from oversmoothing.experiments.inspection.heads_and_why import LARGEST, REGIONS, ValueModes
from oversmoothing.experiments.models.model import Heads
from oversmoothing.simulations.state_metrics import stream_metrics
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
        mask = call_arguments(module, args, kwargs).get("attention_mask")
        if isinstance(mask, Tensor) and mask.ndim == 2:
            self.keep = mask.detach()[: self.inputs].to("cpu", torch.bool)

    def _before(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        if torch.compiler.is_compiling() or not self.wanted():
            return
        if self.seen is None or self.once:
            self._hand_on(0, tokens_of((*args, *kwargs.values()), module))

    def _after(self, module: nn.Module, _: Any, output: Any) -> None:
        if torch.compiler.is_compiling() or self.seen is None or not self.wanted():
            return
        self._hand_on(self.seen + 1, tokens_of(_values(output), module))
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


def after_hook(module: nn.Module, see: Callable[[Tensor], None]) -> Any:
    """Tell of the tokens that a module gives; the handle of the hook."""

    def hook(_: nn.Module, __: Any, output: Any) -> None:
        see(tokens_of(_values(output), module))

    return module.register_forward_hook(hook)


def tokens_of(values: Any, module: nn.Module) -> Tensor:
    """The tokens: the first tensor [b, n, d] among arguments or results."""
    for value in values:
        if isinstance(value, Tensor) and value.ndim == 3 and value.is_floating_point():
            return value
    raise InputError(
        f"no tokens [b, n, d] are seen at {type(module).__name__}: its blocks must take and give "
        "them as the first tensor"
    )


def _values(output: Any) -> Any:
    return output if isinstance(output, tuple | list) else (output,)


def inner(module: nn.Module) -> tuple[nn.Module, list[nn.Module]]:
    """(the module within its wrappings, those of them that are compiled).

    Raises `InputError` for what is no module, and for `torch.nn.DataParallel`.
    """
    compiled = []
    given: Any = module
    while True:
        if not isinstance(given, nn.Module):
            raise InputError(f"{type(given).__name__} is no module of torch: give the model itself")
        if isinstance(given, nn.DataParallel):
            raise InputError(
                "torch.nn.DataParallel copies the model at each pass, and hooks see the copies: "
                "give its .module on one device, or use DistributedDataParallel"
            )
        if isinstance(given, nn.parallel.DistributedDataParallel):
            given = given.module
        elif isinstance(getattr(given, "_orig_mod", None), nn.Module):
            compiled.append(given)
            given = given._orig_mod
        else:
            return given, compiled


def eager_pass(module: nn.Module, args: Any, kwargs: Any, inputs: int) -> None:
    """module(*args, **kwargs) on the first inputs, in evaluation mode, without a gradient.

    Neither the state of the random generators nor the module's mode or buffers are other than
    before: the pass that follows is the same to the bit.
    """
    tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
    sizes = [len(each) for each in tensors if each.ndim > 1] or [0]

    def cut(value: Any) -> Any:
        batch = isinstance(value, Tensor) and value.ndim > 0 and len(value) == sizes[0]
        return value[:inputs] if batch else value

    modes = [(each, each.training) for each in module.modules()]
    devices = sorted({each.get_device() for each in tensors if each.is_cuda})
    args, kwargs = tree_map(cut, (args, kwargs))
    module.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices):
            module(*args, **kwargs)
    finally:
        for each, mode in modes:
            each.training = mode


METRICS = ("log_hfc_lfc", "cos_mean", "effective_rank")


def stream_readings(X: Tensor, keep: Tensor | None, *, cls: bool) -> dict[str, float]:
    """METRICS of X [m, n, d] over the kept tokens, means over the m inputs; hfc_lfc: the geometric
    mean. cls: the same without token 0 as well, under *_without_cls."""
    parts = [X] if keep is None else [x[k][None] for x, k in zip(X, keep, strict=True)]
    each = [stream_metrics(part, without_first=cls) for part in parts]
    given: dict[str, float] = {}
    for suffix in ("", "_without_cls") if "cos_mean_without_cls" in each[0] else ("",):
        for name in METRICS:
            values = torch.cat([one[name + suffix] for one in each])
            given[name + suffix] = float(values.mean())
        given[f"hfc_lfc{suffix}"] = float(np.exp(given[f"log_hfc_lfc{suffix}"]))
    return given


def spectral_readings(heads: Heads) -> dict[str, float]:
    """Shares of the eigenvalues h of H = sum_h (W_V,h W_O,h)^T by region (`why.REGIONS`),
    h_real_min, h_real_max, h_abs_max, asymmetry ||H - H^T||_F / ||H + H^T||_F and condition_V_H,
    that of its eigenvectors; {} for more than LARGEST features."""
    if heads.W_V.shape[1] > LARGEST:
        return {}
    why = ValueModes.of(heads).why
    names = [f"h_{name}" for name in (*REGIONS, "real_min", "real_max", "abs_max")]
    return {name: why[name] for name in (*names, "asymmetry", "condition_V_H")}
