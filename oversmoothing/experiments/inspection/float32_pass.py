"""A model run in float32 for a moment, whatever its weights are stored in; then as it was.

Autocast, which would round the products of any dtype, is off meanwhile.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn


@contextmanager
def in_float32(module: nn.Module) -> Iterator[None]:
    """Half-precision parameters and buffers are float32 within, and the same tensors on leaving.

    Needs twice the memory of the half-precision weights on top of them.
    """
    held = [p for p in module.parameters() if _half(p)]
    stored = [p.data for p in held]
    buffers = [
        (owner, name, buffer)
        for owner in module.modules()
        for name, buffer in owner.named_buffers(recurse=False)
        if _half(buffer)
    ]
    try:
        for parameter in held:
            parameter.data = parameter.data.float()
        for owner, name, buffer in buffers:
            owner._buffers[name] = buffer.float()
        yield
    finally:
        for parameter, data in zip(held, stored, strict=True):
            parameter.data = data
        for owner, name, buffer in buffers:
            owner._buffers[name] = buffer


@contextmanager
def unrounded_products() -> Iterator[None]:
    """Products of float32 matrices are not rounded to TF32 or bfloat16 within."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with without_autocast():
            yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def without_autocast() -> Iterator[bool]:
    """Autocast is off within; gives whether it was on."""
    kinds = [kind for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)]
    with ExitStack() as off:
        for kind in kinds:
            off.enter_context(torch.autocast(kind, enabled=False))
        yield bool(kinds)


def _half(each: torch.Tensor) -> bool:
    return each.is_floating_point() and each.dtype.itemsize < 4
