"""What stored weights must be before they are believed: each name once, and floats."""

import re
from collections.abc import Mapping

from safetensors.torch import load as load_bytes
from torch import Tensor

from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import parse_json

# Counters and masks, which older libraries stored beside the weights.
BUFFERS = re.compile(
    r"(^|\.)(position_ids|masked_bias|attn\.bias|inv_freq|num_batches_tracked|"
    r"relative_position_index)$"
)


def weights_of(content: bytes, name: str) -> dict[str, Tensor]:
    """`read_weights` of the content of a safetensors file; name is what messages call it.

    Raises `SafetensorError` for damaged content, `InputError` as `read_weights` does.
    """
    weights = load_bytes(content)
    check_header(content[8 : 8 + int.from_bytes(content[:8], "little")], name)
    refuse_integers(weights, name)
    return weights


def check_header(header: bytes, name: str) -> None:
    """Raise `InputError` for a repeated key: the library keeps the last weight of a name."""
    parse_json(header.decode("utf-8"), f"the header of '{name}'")


def refuse_integers(weights: Mapping[str, Tensor], name: str) -> None:
    """Raise `InputError` for weights that are no floats: loading would round or rescale nothing."""
    odd = [
        f"{key} ({str(value.dtype).removeprefix('torch.')})"
        for key, value in weights.items()
        if not value.is_floating_point() and not BUFFERS.search(key)
    ]
    if odd:
        raise InputError(
            f"'{name}' holds {len(odd)} weights that are no floats, among them "
            f"{', '.join(sorted(odd)[:3])}: quantised weights are not read, store them as floats"
        )
