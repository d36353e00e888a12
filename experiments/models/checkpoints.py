"""Named tensors out of checkpoint files, without running anything that a file holds."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from oversmoothing.theory.support.errors import InputError

PICKLES = (".bin", ".pt", ".pth")
# Training code wraps the weights under one of these keys.
_WRAPPERS = ("model", "state_dict", "model_state_dict")


def read_weights(path: Path) -> dict[str, Tensor]:
    """The named tensors of a checkpoint file; nothing in it is ever executed.

    Raises `InputError` for a damaged file, a pickle that holds more than tensors, another kind.
    """
    if path.suffix == ".safetensors":
        try:
            return load_file(path)
        except (SafetensorError, OSError) as error:
            raise _damaged(path, error) from error
    if path.suffix not in PICKLES:
        raise InputError(
            f"'{path}' is of a kind that is not read ('{path.suffix}'): convert the weights to "
            ".safetensors"
        )
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Detected pickle protocol")
            # weights_only: a pickle that would build anything but tensors is not opened.
            held = torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        raise InputError(
            f"'{path}' is a pickle that holds more than tensors, or no checkpoint; opening it "
            "could run foreign code, so it is refused: convert it to .safetensors where you trust "
            "it"
        ) from error
    except Exception as error:  # the loader raises many kinds on damaged files
        raise InputError(
            f"'{path}' cannot be read ({type(error).__name__}): it may be cut short; download it "
            "again, or convert it to .safetensors"
        ) from error
    if not isinstance(held, Mapping):
        raise InputError(f"'{path}' holds a {type(held).__name__}, not named weights")
    return unwrapped(held)


def check_header(path: Path) -> None:
    """Raises `InputError` for a safetensors file that is cut short or none at all."""
    try:
        with safe_open(path, "pt") as opened:
            opened.keys()
    except (SafetensorError, OSError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> InputError:
    return InputError(
        f"'{path}' is no intact safetensors file ({error}): it may be cut short; download it again"
    )


def unwrapped(weights: Mapping[str, object]) -> dict[str, Tensor]:
    """The named tensors of a checkpoint, taken out of the wrapper that training code puts on."""
    for name in _WRAPPERS:
        inner = weights.get(name)
        if isinstance(inner, Mapping):
            return unwrapped(inner)
    return {name: value for name, value in weights.items() if isinstance(value, Tensor)}
