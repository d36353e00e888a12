"""A model of the Hugging Face hub as the folder of its files, or why it cannot be had."""

import os
import re
from functools import partial
from pathlib import Path
from typing import Any

from oversmoothing.experiments.models.library import first_line, quiet
from oversmoothing.experiments.models.model_folder import check_configs, weight_files
from oversmoothing.theory.support.errors import InputError, required

# Seconds that the hub has to answer.
PATIENCE = 5.0
# What the hub accepts as a name: owner/model or model.
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
# Any of them set, the library asks no hub.
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


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
