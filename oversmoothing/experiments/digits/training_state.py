"""A run that is not finished: all that decides how it goes on, in one file, without pickle.

`<run>-unfinished/checkpoint.safetensors` holds the weights, those of the best epoch, the state of
the optimiser and of every random generator, the sum of the losses of the epoch so far, and in its
metadata the step, the log and what was watched, as JSON. On the same versions, kind of machine
and number of threads the run that goes on from it ends with the same weights, bit for bit. It is
written whole, beside the one before it, which is kept as `checkpoint.previous.safetensors`.
"""

import hashlib
import json
import math
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from oversmoothing.experiments.digits.training_config import TrainConfig
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import parse_json, read_bytes, write_together

LAST, PREVIOUS = (f"checkpoint{part}.safetensors" for part in ("", ".previous"))
# The largest checkpoint that is read: 500 million weights, the best ones and AdamW's two moments.
LARGEST = 2**33
MODEL, BEST, OPTIMIZER = "model.", "best.", "optimizer."


@dataclass
class TrainingState:
    """What changes while a run goes on, beside the weights and the optimiser.

    step: steps done; an epoch's end is done with its last step. order: the generator of the order
    as it was in front of the epoch; augmentation: as it is now, one row a process. total: the sum
    of the losses of the epoch so far. lowest, selected, best: of the epoch that is kept. rows: the
    log; watched: what instruments saw.
    """

    order: torch.Generator
    augmentation: torch.Generator
    total: Tensor
    step: int = 0
    lowest: float = math.inf
    selected: int = 0
    best: dict[str, Tensor] | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    watched: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    # In front of the epoch that runs.
    epoch_order: Tensor | None = None


def unfinished(folder: Path) -> Path:
    """Where the run that will be `folder` is kept until it is finished."""
    return folder.with_name(f"{folder.name}-unfinished")


def save_state(
    folder: Path, config: TrainConfig, model: nn.Module, optimizer: torch.optim.Optimizer,
    state: TrainingState, augmentation: Tensor,
) -> None:  # fmt: skip
    """Write the checkpoint; the one before it is kept. augmentation: a generator state a process.

    Raises `InputError` where it cannot be written; the last good one is then as it was.
    """
    tensors = {MODEL + name: value for name, value in model.state_dict().items()}
    tensors |= {BEST + name: value for name, value in (state.best or {}).items()}
    for index, own in optimizer.state_dict()["state"].items():
        tensors |= {f"{OPTIMIZER}{index}.{name}": value for name, value in own.items()}
    tensors["total"], tensors["augmentation"] = state.total, augmentation
    order = state.epoch_order if state.epoch_order is not None else state.order.get_state()
    tensors["order"] = order
    tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    said = {
        "config": config.model_dump(),
        "step": state.step,
        "lowest": _said(state.lowest),
        "selected": state.selected,
        "rows": [{k: _said(v) for k, v in row.items()} for row in state.rows],
        "watched": [{k: _said(v) for k, v in row.items()} for row in state.watched],
        "seconds": state.seconds,
    }
    text = json.dumps(said, allow_nan=False)
    content = save(tensors, {"state": text, "digest": _digest(tensors, text)})
    files: dict[str | os.PathLike[str], str | bytes] = {}
    if (folder / LAST).exists():
        files[folder / PREVIOUS] = read_bytes(folder / LAST, LARGEST)
    write_together({**files, folder / LAST: content})


def load_state(
    folder: Path, config: TrainConfig, model: nn.Module, optimizer: torch.optim.Optimizer,
    state: TrainingState, process: int, processes: int,
) -> bool:  # fmt: skip
    """Bring model, optimiser and state to where the checkpoint is; False where there is none.

    Raises `InputError` for a damaged one, saying what to delete, for one of another configuration,
    and for one of another number of processes.
    """
    path = next((folder / name for name in (LAST, PREVIOUS) if (folder / name).exists()), None)
    if path is None:
        return False
    tensors, said = _read(path)
    if said["config"] != config.model_dump():
        raise InputError(f"'{path}' is of another configuration: delete that folder")
    generators = tensors["augmentation"]
    if len(generators) != processes:
        raise InputError(
            f"'{path}' is of a run on {len(generators)} processes, these are {processes}: go on "
            "with as many, or delete that folder"
        )
    model.load_state_dict(_part(tensors, MODEL))
    own: dict[int, dict[str, Tensor]] = {}
    for name, value in _part(tensors, OPTIMIZER).items():
        index, key = name.split(".", 1)
        own.setdefault(int(index), {})[key] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": own, "param_groups": groups})
    state.order.set_state(tensors["order"])
    state.augmentation.set_state(generators[process])
    state.total.copy_(tensors["total"])
    state.step, state.seconds, state.selected = said["step"], said["seconds"], said["selected"]
    state.lowest = _read_number(said["lowest"])
    device = state.total.device
    state.best = {k: v.to(device) for k, v in _part(tensors, BEST).items()} or None
    state.rows = [{k: _read_number(v) for k, v in row.items()} for row in said["rows"]]
    state.watched = [{k: _read_number(v) for k, v in row.items()} for row in said["watched"]]
    return True


def remove(folder: Path) -> None:
    """Of a run that is finished."""
    shutil.rmtree(folder, ignore_errors=True)


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        content = read_bytes(path, LARGEST)
        tensors = load(content)
        header = parse_json(content[8 : 8 + int.from_bytes(content[:8], "little")].decode(), "it")
        said: Any = header
        text = said["__metadata__"]["state"]
        if said["__metadata__"]["digest"] != _digest(tensors, text):
            raise InputError("its content is not what was written")
        return tensors, json.loads(text)
    except (InputError, SafetensorError, KeyError, TypeError, ValueError) as error:
        first = " ".join(str(error).split())[:200]
        other = path.with_name(PREVIOUS)
        if path.name == LAST and other.exists():
            then = f"delete it and the run goes on from the checkpoint before it, '{other.name}'"
        else:
            then = "delete its folder and train again"
        raise InputError(f"the checkpoint '{path}' is damaged ({first}): {then}") from error


def _digest(tensors: dict[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _said(value: Any) -> Any:
    """A value of the log as JSON has it: floats to the last bit, what is not finite by name."""
    if isinstance(value, str | bool | int) or value is None:
        return value
    number = float(value)
    return number if math.isfinite(number) else {"float": str(number)}


def _read_number(value: Any) -> Any:
    return float(value["float"]) if isinstance(value, dict) else value
