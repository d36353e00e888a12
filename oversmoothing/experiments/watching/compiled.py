"""Modules in wrappings: what a trainer or a compiler put around a model, and a pass without it."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from oversmoothing.theory.support.errors import InputError


def inner(module: nn.Module) -> tuple[nn.Module, list[nn.Module]]:
    """(the module within its wrappings, those of them that are compiled).

    Raises `InputError` for what is no module, and for `torch.nn.DataParallel`.
    """
    compiled = []
    found: Any = module
    while True:
        if not isinstance(found, nn.Module):
            raise InputError(f"{type(found).__name__} is no module of torch: give the model itself")
        if isinstance(found, nn.DataParallel):
            raise InputError(
                "torch.nn.DataParallel copies the model at each pass, and hooks see the copies: "
                "give its .module on one device, or use DistributedDataParallel"
            )
        if isinstance(found, nn.parallel.DistributedDataParallel):
            found = found.module
        elif isinstance(getattr(found, "_orig_mod", None), nn.Module):
            compiled.append(found)
            found = found._orig_mod
        else:
            return found, compiled


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
