"""What may be read of a folder of the Hugging Face library: its config and its weights.

No code of a folder runs: a config that names some is refused before the library sees it, and the
weights are read here (`checkpoints`), from files of the folder alone. The library is given tensors.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from oversmoothing.experiments.models.checkpoints import read_weights
from oversmoothing.experiments.models.inputs import read_object
from oversmoothing.experiments.stored_weights import BUFFERS
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import file_size

# Keys that name code to run, another model to fetch, or (with a slash) a kernel of the hub.
_CODE = ("auto_map", "custom_pipelines", "custom_generate")
_MODELS = ("backbone", "backbone_checkpoint", "base_model_name_or_path")
_KERNELS = ("attn_implementation", "_attn_implementation", "_attn_implementation_internal")
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


def check_configs(folder: Path) -> None:
    """Raises `InputError` for a folder with pipes or devices, and for one whose configs name code
    to run, another model, or sizes that nothing has; nothing is imported for it."""
    for path in sorted(folder.iterdir()):
        if path.exists() and not path.is_dir():
            file_size(path)
    for path in sorted(folder.glob("*config.json")):
        for place, key, value in _entries(read_object(path)):
            if key in _CODE:
                raise InputError(
                    f"'{path}' names code of its own ({place}): code of a model folder is never "
                    "run; load the model with its own code where you trust it, and give the module "
                    "to describe()"
                )
            kernel = key in _KERNELS and isinstance(value, str) and "/" in value
            if kernel or (key in _MODELS and isinstance(value, str)):
                raise InputError(
                    f"'{path}' names another model or kernel to be fetched ({place}): load it "
                    "where you trust it, and give the module"
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
    """Names of the files with the weights: one, or those of the index; [] without both.

    Raises `InputError` for an index that names anything but files of the folder.
    """
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
    """The named tensors of a folder: its safetensors, or where it has none its pickles.

    Raises `InputError` for a folder without weights, an index that leads out of it, a name in two
    files, and as `read_weights` does.
    """
    names = weight_files(folder)
    if not names and not any(folder.glob("*.safetensors")):
        names = weight_files(folder, "pytorch_model", ".bin")
        names = names or [path.name for path in weights_within(folder, (".bin",))]
    if not names:
        raise InputError(f"'{folder}' holds no weights: download the model.safetensors as well")
    weights: dict[str, Tensor] = {}
    for name in names:
        if len(names) > 1 and not _within(folder, folder / name):
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


def _within(folder: Path, path: Path) -> bool:
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
    """Raises `InputError` for weights that the library missed, and for some it had no place for.

    Outputs that no layer reads may do either. info: the library's loading info.
    """
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
