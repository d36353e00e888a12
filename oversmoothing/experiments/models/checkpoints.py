"""Weights and configs out of files, without running anything that a file holds.

What a file declares is held against what it has before memory is taken for it, and what could be
read in two ways (a name twice, weights that are no floats) is refused. Weights stay in their files,
mapped into memory. Of a folder of the Hugging Face library no code runs: a config that names some
is refused before the library sees it, and the library is given tensors of the folder's own files.

Within `in_float32` a module's half-precision parameters are `Widened`: float32 to whoever asks,
without memory of their own. An operation on one gets a float32 copy that lives as long as the
operation; a view of one is another. So weights that lie in a file stay there.
"""

from __future__ import annotations

import mmap
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import chain
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, BinaryIO
from zipfile import ZIP_STORED, ZipFile, is_zipfile

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_bytes, load_file
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import file_size, parse_json, read_json


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
    """Within it half-precision parameters are `Widened`, and buffers float32."""
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


PICKLES = (".bin", ".pt", ".pth")
# Training code wraps the weights under one of these keys, some of them in one another.
_WRAPPERS = ("model", "state_dict", "model_state_dict")
_WRAPPED = 4
# Counters and masks, which older libraries stored beside the weights.
BUFFERS = re.compile(
    r"(^|\.)(position_ids|masked_bias|attn\.bias|inv_freq|num_batches_tracked|"
    r"relative_position_index)$"
)
# Keys that name code to run, another model to fetch, or what computes attention and experts: all
# but these of the library's own may be fetched as a kernel of the hub.
_CODE = ("auto_map", "custom_pipelines", "custom_generate")
_MODELS = ("backbone", "backbone_checkpoint", "base_model_name_or_path")
_IMPLEMENTATION = re.compile(r"_?(attn|experts)_implementation(_internal)?")
_OWN = {
    "attn": ("eager", "sdpa", "flex_attention"),
    "experts": ("eager", "grouped_mm", "batched_mm"),
}
# Numbers that the library counts to, and the most of them where the files hold fewer tensors.
_COUNTS = re.compile(r"(layers?|depths?|blocks?|stages|experts|codebooks)$")
MOST = 1024
LABELS = 10**6
# Weights that a config may describe beyond twice those stored (outputs that no layer reads), and
# bytes of the tables that a model makes by itself.
SPARE = 2**24
TABLES = 2**30
# Names, without their endings, of what the libraries' training loops write beside the weights.
_TRAINING = re.compile(r"training_args|optimizer|scheduler|scaler|(rng|random)_states?(_\d+)?")
# First or second part of the name of an output, which no layer reads.
_OUTPUT = re.compile(r"cls|head|score|pooler.*|.*classifier|lm_head.*|qa_outputs.*")


def read_weights(path: Path) -> dict[str, Tensor]:
    """The named tensors of a checkpoint file; nothing in it is ever executed.

    Raises `InputError` for a damaged file, a name that occurs twice, weights that are no floats, a
    file that declares more than it holds, a pickle that holds more than tensors, another kind.
    """
    size = file_size(path)
    if path.suffix == ".safetensors":
        try:
            weights = load_file(path)
            with open(path, "rb") as file:
                _check_header(file, str(path))
        except (SafetensorError, OSError) as error:
            raise InputError(
                f"'{path}' is no intact safetensors file ({error}): it may be cut short; download "
                "it again"
            ) from error
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
            held = torch.load(path, map_location="cpu", weights_only=True, mmap=is_zipfile(path))
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


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object of a file; raises `InputError` where it is none."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise InputError(f"'{path}' must hold a JSON object")
    return value


def weights_of(content: bytes, name: str) -> dict[str, Tensor]:
    """`read_weights` of the content of a safetensors file; name is what messages call it.

    Raises `SafetensorError` for damaged content, `InputError` as `read_weights` does.
    """
    weights = load_bytes(content)
    _check_header(BytesIO(content), name)
    refuse_integers(weights, name)
    return weights


def _check_header(file: BinaryIO, name: str) -> None:
    """Raise `InputError` for a repeated key: the library keeps the last weight of a name."""
    header = file.read(int.from_bytes(file.read(8), "little"))
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


def refuse_adapter(folder: Path) -> None:
    """Raises `InputError` for what PEFT saves: a change of another model's weights alone."""
    file = folder / "adapter_config.json"
    if file.exists() and not (folder / "config.json").exists():
        base = read_object(file).get("base_model_name_or_path") or "a model that it does not name"
        raise InputError(
            f"'{folder}' is an adapter (PEFT) of {base}, no whole model\n"
            "merge it into that first, in Python: PeftModel.from_pretrained(model, FOLDER)"
            ".merge_and_unload().save_pretrained(NEW), and give the folder NEW"
        )


def check_configs(folder: Path) -> None:
    """Raises `InputError` for a folder with pipes or devices, and for one whose configs name code
    to run, another model, or sizes that nothing has; nothing is imported for it."""
    for path in sorted(folder.iterdir()):
        if path.exists() and not path.is_dir():
            file_size(path)
    refuse_adapter(folder)
    for path in sorted(folder.glob("*config.json")):
        for place, key, value in _entries(read_json(path)):
            if key in _CODE:
                raise InputError(
                    f"'{path}' names code of its own ({place}): code of a model folder is never "
                    "run; load the model with its own code where you trust it, and give the module "
                    "to describe()"
                )
            if key in _MODELS and isinstance(value, str):
                raise InputError(
                    f"'{path}' names another model to be fetched ({place}): load it where you "
                    "trust it, and give the module"
                )
            if of := _IMPLEMENTATION.fullmatch(key):
                named = value.values() if isinstance(value, dict) else [value]
                if any(each is not None and each not in _OWN[of[1]] for each in named):
                    raise InputError(
                        f"'{path}' asks for a kernel that would be fetched ({place} is {value}): "
                        f"give {', '.join(_OWN[of[1]])}, or leave it out"
                    )
            if key == "num_labels" and isinstance(value, int) and value > LABELS:
                raise InputError(f"'{path}': {place} is {value}, more than {LABELS}")


def _entries(value: Any, place: str = "") -> Iterator[tuple[str, str, Any]]:
    """(where, key, value) of every key of every object within."""
    pairs = enumerate(value) if isinstance(value, list) else ()
    inner: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else pairs
    for key, each in ((str(name), each) for name, each in inner):
        where = f"{place}.{key}" if place else key
        yield where, key, each
        yield from _entries(each, where)


def weight_files(folder: Path, stem: str = "model", suffix: str = ".safetensors") -> list[str]:
    """Names of the files with the weights: one, or those of the index; [] without both. Raises
    `InputError` for an index that names anything but files of the folder."""
    if (folder / f"{stem}{suffix}").exists():
        return [f"{stem}{suffix}"]
    index = folder / f"{stem}{suffix}.index.json"
    if not index.exists():
        return []
    named = read_object(index).get("weight_map")
    if not isinstance(named, dict) or not named:
        raise InputError(f"'{index}' holds no weight_map: download it again")
    files = list(dict.fromkeys(named.values()))
    for name in files:
        if not isinstance(name, str) or not name or {"/", "\\", "\0"} & {*name} or name[0] == ".":
            raise InputError(
                f"'{index}' names {name!r}, which is no file of its folder: weights are read from "
                "the model's own folder alone"
            )
    return files


def weights_within(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Files of these kinds, but for what training code writes beside the weights, which is never
    opened: its arguments, the state of the optimiser and of random numbers."""
    paths = (path for path in sorted(folder.iterdir()) if path.suffix in suffixes)
    return [path for path in paths if not _TRAINING.fullmatch(path.stem)]


def folder_weights(folder: Path) -> dict[str, Tensor]:
    """The named tensors of a folder: its safetensors, or where it has none its pickles. Raises
    `InputError` for a folder without weights, an index that leads out of it, a name in two files,
    and as `read_weights` does."""
    names = weight_files(folder)
    if not names and not any(folder.glob("*.safetensors")):
        names = weight_files(folder, "pytorch_model", ".bin")
        names = names or [path.name for path in weights_within(folder, (".bin",))]
    if not names:
        raise InputError(f"'{folder}' holds no weights: download the model.safetensors as well")
    weights: dict[str, Tensor] = {}
    for name in names:
        if len(names) > 1 and not _lies_within(folder, folder / name):
            raise InputError(
                f"'{folder / name}' is a link out of its folder: weights are read from the "
                "model's own folder alone"
            )
        part = read_weights(folder / name)
        twice = sorted(weights.keys() & part.keys())
        if twice:
            raise InputError(f"'{folder / name}' holds {twice[0]}, which an earlier file has")
        weights |= part
    return weights


def _lies_within(folder: Path, path: Path) -> bool:
    """Whether a file lies in the folder, or in the store that the hub's cache links to."""
    place, own = path.resolve().parent, folder.resolve()
    cached = own.parent.name == "snapshots" and place == own.parent.parent / "blobs"
    return place == own or cached


def check_layers(config: dict[str, Any], stored: int, where: str) -> None:
    """Raises `InputError` where a config counts to more than that number of weights can be."""
    most = max(MOST, stored)
    for place, key, value in _entries(config):
        numbers = value if isinstance(value, list) else [value]
        if _COUNTS.search(key) and any(isinstance(x, int | float) and x > most for x in numbers):
            raise InputError(
                f"'{where}': {place} is {value}, and the files hold {stored} weights: they do not "
                "belong together"
            )


def check_size(shell: nn.Module, weights: dict[str, Tensor], where: str) -> None:
    """Raises `InputError` where a model, built without memory, is far larger than its weights."""
    described = sum(each.numel() for each in shell.parameters())
    stored = sum(each.numel() for each in weights.values())
    tables = sum(each.numel() * each.element_size() for each in shell.buffers())
    if described > 2 * stored + SPARE or tables > TABLES:
        raise InputError(
            f"the config of '{where}' describes {described} weights and {tables} bytes of tables, "
            f"the files hold {stored} weights: they do not belong together"
        )


def check_loaded(info: dict[str, Any], where: str) -> None:
    """Raises `InputError` for weights that the library missed, and for some it had no place for,
    but for outputs, which no layer reads. info: the library's loading info."""
    mismatched = [str(each[0]) for each in info.get("mismatched_keys", [])]
    lost = [name for name in chain(info["missing_keys"], mismatched) if not _is_output(name)]
    if lost:
        raise InputError(
            f"the weights of '{where}' lack {len(lost)} parts of the model, among them "
            f"{', '.join(sorted(lost)[:3])}, which would stay random: take a complete checkpoint"
        )
    surplus = [x for x in info["unexpected_keys"] if not _is_output(x) and not BUFFERS.search(x)]
    if surplus:
        raise InputError(
            f"the weights of '{where}' hold {len(surplus)} that the model of its config has no "
            f"place for, among them {', '.join(sorted(surplus)[:3])}: take the config that belongs "
            "to them"
        )


def _is_output(name: str) -> bool:
    return any(_OUTPUT.fullmatch(part) for part in name.split(".")[:2])


def shell_of(transformers: Any, kind: Any, config: Any) -> nn.Module:
    """The model of a config without memory for its weights."""
    with torch.device("meta"):
        if kind is transformers.AutoModel:
            shell: nn.Module = kind.from_config(config, trust_remote_code=False)
        else:
            shell = kind(config)
    return shell
