"""Named tensors out of checkpoint files, without running anything that a file holds.

What a file declares is held against what it has before memory is taken for it, and what could be
read in two ways (a name twice, weights that are no floats) is refused.
"""

import mmap
import warnings
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from zipfile import ZIP_STORED, ZipFile, is_zipfile

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from oversmoothing.experiments.stored_weights import check_header, refuse_integers
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import file_size

PICKLES = (".bin", ".pt", ".pth")
# Training code wraps the weights under one of these keys, some of them in one another.
_WRAPPERS = ("model", "state_dict", "model_state_dict")
_WRAPPED = 4


def read_weights(path: Path) -> dict[str, Tensor]:
    """The named tensors of a checkpoint file; nothing in it is ever executed.

    Raises `InputError` for a damaged file, a name that occurs twice, weights that are no floats, a
    file that declares more than it holds, a pickle that holds more than tensors, another kind.
    """
    size = file_size(path)
    if path.suffix == ".safetensors":
        try:
            with safe_open(path, "pt") as opened:
                opened.keys()
            with open(path, "rb") as file:
                length = int.from_bytes(file.read(8), "little")
                check_header(file.read(length), str(path))
            weights = load_file(path)
        except (SafetensorError, OSError) as error:
            raise _damaged(path, error) from error
    elif path.suffix in PICKLES:
        weights = _unpickled(path, size)
    else:
        raise InputError(
            f"'{path}' is of a kind that is not read ('{path.suffix}'): convert the weights to "
            ".safetensors"
        )
    refuse_integers(weights, str(path))
    return weights


def _unpickled(path: Path, size: int) -> dict[str, Tensor]:
    try:
        _refuse_packed(path, size)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Detected pickle protocol")
            # weights_only: a pickle that would build anything but tensors is not opened.
            held = torch.load(path, map_location="cpu", weights_only=True)
    except InputError:
        raise
    except UnpicklingError as error:
        raise _foreign(path) from error
    except Exception as error:  # the loader raises many kinds on damaged files
        raise InputError(
            f"'{path}' cannot be read ({type(error).__name__}): it may be cut short; download it "
            "again, or convert it to .safetensors"
        ) from error
    if not isinstance(held, Mapping):
        raise InputError(f"'{path}' holds a {type(held).__name__}, not named weights")
    weights = unwrapped(held)
    storages = {}
    for name, value in weights.items():
        # A tensor without memory of its own (strides of 0, no device) would take it when copied.
        if value.layout != torch.strided or value.device.type != "cpu":
            raise InputError(f"'{path}': {name} is no plain tensor: convert it to .safetensors")
        held_bytes = value.untyped_storage()
        storages[held_bytes.data_ptr()] = held_bytes.nbytes()
        if value.numel() * value.element_size() > held_bytes.nbytes():
            raise _declares_more(path, f"{name} declares {value.numel()} numbers")
    if sum(storages.values()) > size:
        raise _declares_more(path, f"its tensors declare {sum(storages.values())} bytes")
    return weights


def _refuse_packed(path: Path, size: int) -> None:
    """torch writes its archives unpacked: one that grows when it is read was made to."""
    if is_zipfile(path):
        with ZipFile(path) as archive:
            held = archive.infolist()
        declared = sum(each.file_size for each in held)
        if declared > size or any(each.compress_type != ZIP_STORED for each in held):
            raise _declares_more(path, f"its archive unpacks to {declared} bytes")
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        # The one builder that torch allows and that takes memory by a number alone.
        if content.find(b"bytearray") >= 0:
            raise _foreign(path)


def _foreign(path: Path) -> InputError:
    return InputError(
        f"'{path}' is a pickle that holds more than tensors, or no checkpoint; opening it could "
        "run foreign code, so it is refused: convert it to .safetensors where you trust it"
    )


def _declares_more(path: Path, what: str) -> InputError:
    return InputError(
        f"'{path}': {what}, more than the file holds: convert it to .safetensors where you trust it"
    )


def _damaged(path: Path, error: Exception) -> InputError:
    return InputError(
        f"'{path}' is no intact safetensors file ({error}): it may be cut short; download it again"
    )


def unwrapped(weights: Mapping[str, object]) -> dict[str, Tensor]:
    """The named tensors of a checkpoint, taken out of the wrappers that training code puts on."""
    for _ in range(_WRAPPED):
        inner = [weights[name] for name in _WRAPPERS if isinstance(weights.get(name), Mapping)]
        weights = inner[0] if inner else weights  # type: ignore[assignment]
    return {
        name: value
        for name, value in weights.items()
        if isinstance(name, str) and isinstance(value, Tensor)
    }
