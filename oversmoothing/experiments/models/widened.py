"""Half-precision weights in float32, one at a time, for what their own rounding would spoil.

Within `in_float32` a module's half-precision parameters are `Widened`: float32 to whoever asks,
without memory of their own. An operation on one gets a float32 copy that lives as long as the
operation; a view of one is another. So weights that lie in a file stay there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only


class Widened(Tensor):
    """A tensor in half precision, `stored`, that every operation takes as float32."""

    stored: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, stored: Tensor) -> Widened:
        made: Widened = Tensor._make_wrapper_subclass(
            cls, stored.shape, stored.stride(), stored.storage_offset(), dtype=torch.float32,
            device=stored.device,
        )  # fmt: skip
        made.stored = stored
        return made

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"Widened({self.stored!r})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func._schema.is_mutable and any(isinstance(each, Widened) for each in args[:1]):
            raise RuntimeError(f"a weight in half precision is written to ({func})")
        picked = func is torch.ops.aten.embedding.default  # a table may be larger than a layer
        if picked or (func.is_view and func is not torch.ops.aten.view.dtype):
            args, kwargs = tree_map_only(Widened, lambda each: each.stored, (args, kwargs))
            out = func(*args, **kwargs)
            return out.float() if picked else tree_map_only(Tensor, Widened, out)
        args, kwargs = tree_map_only(Widened, lambda each: each.stored.float(), (args, kwargs))
        return func(*args, **kwargs)


@contextmanager
def in_float32(module: nn.Module) -> Iterator[None]:
    """Half-precision parameters are `Widened` within, buffers float32; the same as before on
    leaving."""
    places = [p for owner in module.modules() for p in (owner._parameters, owner._buffers)]
    held: list[tuple[dict[str, Any], str, Tensor]] = [
        (place, name, each)
        for place in places
        for name, each in place.items()
        if each is not None and each.is_floating_point() and each.dtype.itemsize < 4
    ]
    wide: dict[int, Tensor] = {}  # a weight may stand in several places
    for _, _, each in held:
        if id(each) not in wide:
            own = isinstance(each, nn.Parameter)
            made = Widened(each.detach()) if own else each.float()
            wide[id(each)] = nn.Parameter(made, requires_grad=False) if own else made
    try:
        for place, name, each in held:
            place[name] = wide[id(each)]
        yield
    finally:
        for place, name, each in held:
            place[name] = each
