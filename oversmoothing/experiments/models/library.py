"""How the Hugging Face library, its hub and GGUF files are read: quietly, without foreign code.

A model of the hub is the folder of its files, or why it cannot be had. A GGUF file, as llama.cpp
keeps it, holds weights, config and tokenizer, and no code; it is read by the library's own reader
(packages gguf and transformers), de-quantised, and the library is then given tensors, as for a
folder.
"""

import io
import math
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from oversmoothing.experiments.models.checkpoints import (
    check_configs,
    check_layers,
    check_loaded,
    check_size,
    shell_of,
    weight_files,
)
from oversmoothing.theory.support.errors import InputError, required

# Seconds that the hub has to answer.
PATIENCE = 5.0
# What the hub accepts as a name: owner/model or model.
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
# Any of them set, the library asks no hub.
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
GGUF = ".gguf"


def class_of(transformers: Any, config: Any) -> Any:
    """The class that the config names, with its classifier or language head; else the bare one."""
    for name in getattr(config, "architectures", None) or ():
        named = getattr(transformers, name, None)
        if isinstance(named, type) and issubclass(named, transformers.PreTrainedModel):
            return named
    return transformers.AutoModel


def first_line(error: Exception) -> str:
    """Of an error, its kind and what it says first."""
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"


def tokenizer_of(transformers: Any, folder: Path, **file: str) -> Any:
    """The tokenizer of a folder, or of a GGUF file in it (gguf_file=). Raises `InputError`."""
    try:
        with quiet(transformers.utils.logging):
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                folder, trust_remote_code=False, local_files_only=True, **file
            )
        # Without a file the library makes a tokenizer that knows its special tokens alone.
        if len(tokenizer.get_vocab()) <= len(set(tokenizer.all_special_tokens)):
            raise InputError("it knows no words but its special tokens")
        longest = tokenizer.model_max_length
        if (
            not isinstance(longest, int | float)
            or not 1 <= longest < math.inf
            or longest != int(longest)
        ):
            raise InputError("model_max_length is no number of tokens")
    except Exception as error:  # the library raises many kinds
        why = error if isinstance(error, InputError) else type(error).__name__
        raise InputError(
            f"'{folder}' has no tokenizer that can be loaded ({why}).\nPut its tokenizer.json "
            "there; in Python give open_model(..., tokenizer=), or token ids as a tensor."
        ) from error
    return tokenizer


@contextmanager
def quiet(logging: Any) -> Iterator[None]:
    """No progress bars, no news about unused weights, which are said here, and an empty input.

    The library asks on standard input whether foreign code may run.
    """
    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    stdin, sys.stdin = sys.stdin, io.StringIO()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        sys.stdin = stdin
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()


class NotOnHubError(InputError):
    """A model that the hub does not have, or that cannot be had from it now.

    cause: why, a clause; remedy: what to do about it.
    """

    def __init__(self, name: str, cause: str, remedy: str) -> None:
        super().__init__(f"'{name}' is no folder or file here, and {cause}: {remedy}")
        self.cause, self.remedy = cause, remedy


def folder_of(name: str) -> Path:
    """The folder of a model of the hub: its configs first, its weights where these may be read.

    Where the hub does not answer, what was downloaded from it before will do. Raises
    `NotOnHubError`, and `InputError` for a folder that is refused.
    """
    if not _HUB_NAME.fullmatch(name):
        raise NotOnHubError(
            name,
            "it is no name that the hub could have",
            "give a folder, a checkpoint file, or owner/model",
        )
    logging, hub = required("transformers").utils.logging, required("huggingface_hub")
    errors = required("huggingface_hub.errors")
    silent = None
    try:
        with quiet(logging):
            # Asked once and shortly: a download tries again and again where there is no network.
            silent = _silence(hub, errors, name)
            have = partial(hub.snapshot_download, name, local_files_only=silent is not None)
            said = ["*.json", "*.txt", "*.model"]
            folder = Path(have(allow_patterns=said, ignore_patterns=["*/*"]))
            check_configs(folder)
            weights = weight_files(folder) or ["model.safetensors"]
            return Path(have(allow_patterns=weights))
    except InputError:
        raise
    except Exception as error:  # the library raises many kinds
        raise NotOnHubError(name, *_why(errors, error, silent)) from error


def _silence(hub: Any, errors: Any, name: str) -> tuple[str, str] | None:
    """Why the hub does not answer and what to do, None where it does.

    What it answers with an error is raised: it knows no such model, or does not give it.
    """
    elsewhere = "download the model's folder elsewhere and give its path"
    try:
        hub.HfApi().model_info(name, timeout=PATIENCE)
    except (errors.HfHubHTTPError, errors.HFValidationError):
        raise
    except errors.OfflineModeIsEnabled:
        names = " and ".join(each for each in _OFFLINE if os.environ.get(each))
        return (
            f"the hub was not asked, for {names or 'the offline mode of its library'} is set",
            f"unset it, or {elsewhere}",
        )
    except Exception as error:  # of the network, of many kinds
        return (
            f"the hub could not be reached ({first_line(error)})",
            f"check the connection, or {elsewhere}",
        )
    return None


def _why(errors: Any, error: Exception, silent: tuple[str, str] | None) -> tuple[str, str]:
    """The cause and the remedy."""
    if silent is not None and isinstance(error, errors.LocalEntryNotFoundError):
        return f"{silent[0]}; what was downloaded from it before does not hold it", silent[1]
    login = "log in with `hf auth login`"
    if isinstance(error, errors.GatedRepoError):
        return "the hub gives it only to those who accepted its terms", f"accept them and {login}"
    if isinstance(error, errors.RepositoryNotFoundError):
        return (
            "the hub has no model of that name that it shows to everyone",
            f"check the spelling, owner/model; for a private one {login}",
        )
    return (
        f"the hub did not give it ({first_line(error)})",
        "check the name, or download the model's folder elsewhere and give its path",
    )


def read_gguf(path: Path, settings: dict[str, Any]) -> tuple[nn.Module, list[str]]:
    """The module in float32, and a remark; settings gets the file's tokenizer where it has none.

    Raises `InputError` for a file that the library cannot read, or whose parts do not go together.
    """
    transformers, gguf = required("transformers"), required("gguf")
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    # The reader draws a bar whatever the library's settings.
    with quiet(transformers.utils.logging), redirect_stderr(io.StringIO()):
        try:
            reader = gguf.GGUFReader(str(path))
            stored = {each.tensor_type.name for each in reader.tensors}
            load: Any = load_gguf_checkpoint
            said = load(str(path))["config"]
            check_layers(said, len(reader.tensors), str(path))
            config = transformers.AutoConfig.for_model(**said)
            # The class with a language head, which the file does not name.
            names = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
            config.architectures = [x for x in [names.get(config.model_type)] if x]
            kind = class_of(transformers, config)
            shell = shell_of(transformers, kind, config)
            weights = load(
                str(path), return_tensors=True, model_to_load=shell, torch_dtype=torch.float32
            )["tensors"]
            check_size(shell, weights, str(path))
            module, info = kind.from_pretrained(
                None, config=config, state_dict=weights, output_loading_info=True
            )
        except InputError:
            raise
        except Exception as error:  # the library raises many kinds
            raise InputError(f"'{path}' cannot be read as GGUF ({first_line(error)})") from error
    check_loaded(info, str(path))
    settings.setdefault(
        "tokenizer", lambda: tokenizer_of(transformers, path.parent, gguf_file=path.name)
    )
    return module, [f"stored as {', '.join(sorted(stored))}, de-quantised to float32"]
