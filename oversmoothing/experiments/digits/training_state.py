"""A run that is not finished: all that decides how it goes on, in one file, without pickle.

`<run>-unfinished/checkpoint.safetensors` holds the weights, those of the best epoch, the state of
the optimiser and of every random generator, the sum of the losses of the epoch so far, and in its
metadata the step, the log and what was watched, as JSON. On the same versions, kind of machine
and number of threads the run that goes on from it ends with the same weights, bit for bit. It is
written whole, beside the one before it, which is kept as `checkpoint.previous.safetensors`.

A run that is finished is one folder, written whole, verified when read:
results/<kind>-<hash of the configuration>/ holds config.json, weights.safetensors, log.csv,
metrics.json, provenance.json, where the training was watched watched.csv, and manifest.json (a
SHA-256 of each of the others). It is filled under a temporary name and renamed into place, so that
an interrupted run leaves nothing that looks finished. Whatever is damaged later is refused with
advice, never silently retrained.
"""

import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from oversmoothing.experiments.models.checkpoints import weights_of
from oversmoothing.simulations.running import provenance
from oversmoothing.theory.support import files
from oversmoothing.theory.support.errors import InputError

FILES = ("config.json", "weights.safetensors", "log.csv", "metrics.json", "provenance.json")
WATCHED = "watched.csv"
MANIFEST = "manifest.json"
# The largest file that is read: 500 million weights, the best ones and AdamW's two moments.
LARGEST = 2**33


@dataclass(frozen=True)
class StoredRun:
    """What a finished run left behind; `folder` is where. watched: stream and spectra by step and
    layer while it trained; empty where nothing was watched."""

    folder: Path
    config: dict[str, Any]
    weights: dict[str, Tensor]
    log: pd.DataFrame
    metrics: dict[str, Any]
    watched: pd.DataFrame


def save_run(
    folder: Path, *, config: Mapping[str, Any], weights: Mapping[str, Tensor], log: pd.DataFrame,
    metrics: Mapping[str, Any], watched: pd.DataFrame | None = None,
) -> StoredRun:  # fmt: skip
    """Write the run to `folder`, all or nothing, and read it back.

    If another process finished the same run first, its folder stays. Raises `InputError` where
    the folder cannot be written.
    """
    parent = files.output_folder(folder.parent)
    tensors = {name: value.detach().cpu().contiguous() for name, value in weights.items()}
    contents: dict[str, bytes] = {
        "config.json": files.to_json(dict(config)).encode(),
        "weights.safetensors": save(tensors),
        "log.csv": log.to_csv(index=False).encode(),
        "metrics.json": files.to_json(dict(metrics)).encode(),
        "provenance.json": files.to_json(provenance()).encode(),
    }
    if watched is not None and len(watched):
        contents[WATCHED] = watched.to_csv(index=False).encode()
    manifest = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    partial = Path(tempfile.mkdtemp(dir=parent, prefix=f".{folder.name}-"))
    try:
        # mkdtemp makes private folders; a result is as readable as any folder the user makes.
        partial.chmod(parent.stat().st_mode & 0o777)
        for name, content in contents.items():
            files.write_atomically(partial / name, content)
        files.write_atomically(partial / MANIFEST, files.to_json(manifest))
        try:
            os.rename(partial, folder)
        except OSError as error:
            if not folder.exists():
                raise InputError(f"cannot write '{folder}' ({error.strerror})") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return load_run(folder)


def load_run(folder: Path) -> StoredRun:
    """Read a stored run, every file checked against the manifest.

    Raises `InputError`, saying which folder to delete, when a file is missing or was changed.
    """
    if not folder.is_dir():
        raise InputError(f"there is no run folder '{folder}': train first, or mend the path")
    contents = {}
    # What was watched is one more file of the runs that have it.
    optional = (WATCHED,) if (folder / WATCHED).exists() else ()
    for name in (MANIFEST, *FILES, *optional):
        try:
            contents[name] = files.read_bytes(folder / name, LARGEST)
        except InputError as error:
            raise _damaged(folder, str(error)) from error
    manifest = _object(contents[MANIFEST], folder, MANIFEST)
    if WATCHED in manifest and not optional:
        raise _damaged(folder, f"{WATCHED} is missing")
    for name in (*FILES, *optional):
        if hashlib.sha256(contents[name]).hexdigest() != manifest.get(name):
            raise _damaged(folder, f"{name} is not the file that was written")
    try:
        weights = weights_of(contents["weights.safetensors"], "weights.safetensors")
    except (InputError, SafetensorError) as error:
        raise _damaged(folder, f"weights.safetensors: {error}") from error
    return StoredRun(
        folder=folder,
        config=_object(contents["config.json"], folder, "config.json"),
        weights=weights,
        log=pd.read_csv(io.BytesIO(contents["log.csv"])),
        metrics=_object(contents["metrics.json"], folder, "metrics.json"),
        watched=pd.read_csv(io.BytesIO(contents[WATCHED])) if optional else pd.DataFrame(),
    )


def _object(content: bytes, folder: Path, name: str) -> dict[str, Any]:
    try:
        parsed = files.parse_json(content.decode("utf-8"), name)
    except (InputError, UnicodeDecodeError) as error:
        raise _damaged(folder, str(error)) from error
    if not isinstance(parsed, dict):
        raise _damaged(folder, f"{name} is not a JSON object")
    return parsed


def _damaged(folder: Path, what: str) -> InputError:
    return InputError(
        f"the stored run '{folder}' is damaged or incomplete: {what}. "
        "Delete that folder and train again"
    )


LAST, PREVIOUS = (f"checkpoint{part}.safetensors" for part in ("", ".previous"))


def unfinished(folder: Path) -> Path:
    """Where the run that will be `folder` is kept until it is finished."""
    return folder.with_name(f"{folder.name}-unfinished")


def keep(folder: Path, tensors: Mapping[str, Tensor], said: Mapping[str, Any]) -> None:
    """Write a checkpoint, what is said as JSON; the one before it is kept. Raises `InputError`
    where it cannot be written; the last good one is then as it was."""
    held = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    # To the last bit, and with NaN and infinity as Python writes and reads them.
    text = json.dumps(said, default=float)
    content = save(held, {"state": text, "digest": _digest(held, text)})
    before: dict[str | os.PathLike[str], str | bytes] = {}
    if (folder / LAST).exists():
        before[folder / PREVIOUS] = files.read_bytes(folder / LAST, LARGEST)
    files.write_together({**before, folder / LAST: content})


def kept(folder: Path) -> tuple[Path, dict[str, Tensor], dict[str, Any]] | None:
    """The last checkpoint (its file, tensors, what is said); None where there is none. Raises
    `InputError` for a damaged one, saying what to delete."""
    path = next((folder / name for name in (LAST, PREVIOUS) if (folder / name).exists()), None)
    if path is None:
        return None
    try:
        content = files.read_bytes(path, LARGEST)
        tensors = load(content)
        header: Any = files.parse_json(
            content[8 : 8 + int.from_bytes(content[:8], "little")].decode(), ""
        )
        text = header["__metadata__"]["state"]
        if header["__metadata__"]["digest"] != _digest(tensors, text):
            raise InputError("its content is not what was written")
        return path, tensors, json.loads(text)
    except (InputError, SafetensorError, KeyError, TypeError, ValueError) as error:
        first = " ".join(str(error).split())[:200]
        then = "delete its folder and train again"
        if path.name == LAST and (folder / PREVIOUS).exists():
            then = f"delete it and the run goes on from the checkpoint before it, '{PREVIOUS}'"
        raise InputError(f"the checkpoint '{path}' is damaged ({first}): {then}") from error


def _digest(tensors: dict[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
