"""Where a block keeps W_V and W_O: which modules, which of their columns, laid out how."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class ValueParts:
    """The modules that hold W_V and W_O of one block of `heads` heads in `kv_heads` groups.

    columns: which outputs of `value` are values, group by group; None: all of them.
    """

    value: nn.Module
    out: nn.Module
    heads: int
    kv_heads: int
    columns: Tensor | None = None

    @property
    def name(self) -> str:
        """The name of the weight in `value`."""
        return "in_proj_weight" if isinstance(self.value, nn.MultiheadAttention) else "weight"


def value_parts(
    block: nn.Module,
    names: tuple[str, str, str, str],
    heads: int,
    kv_heads: int,
    fused: Literal["qkv", "heads"],
) -> ValueParts:
    """Of a block whose query, key, value and output projections have these names.

    One name three times is a fused projection (see `describe`), of a shape already found to fit.
    """
    value, out = block.get_submodule(names[2]), block.get_submodule(names[3])
    parts = ValueParts(value, out, heads, kv_heads)
    if len(set(names[:3])) > 1:
        return parts
    weight: Tensor = getattr(value, parts.name)
    outputs = weight.shape[1 if hasattr(value, "nf") else 0]
    r = outputs // (heads + 2 * kv_heads)
    index = torch.arange(outputs)
    if fused == "heads":
        index = index.view(kv_heads, heads // kv_heads + 2, r)[:, -1].reshape(-1)
    else:
        index = index[outputs - kv_heads * r :]
    return ValueParts(value, out, heads, kv_heads, index)
