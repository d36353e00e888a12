"""Where real inputs lie: trained models and data sets that are never part of the project."""

import os
from pathlib import Path

from oversmoothing.theory.support.errors import InputError

CIFAR100 = "cifar100"  # what --images calls it
VARIABLE = "OVERSMOOTHING_DATA"


def real_inputs(given: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder given, else that of the environment variable OVERSMOOTHING_DATA, else None.

    Raises `InputError` where it is named and does not exist.
    """
    named = given if given is not None else os.environ.get(VARIABLE)
    if not named:
        return None
    folder = Path(named)
    if not folder.is_dir():
        source = "--data-dir" if given is not None else VARIABLE
        raise InputError(f"the folder '{folder}' of {source} does not exist: name one that does")
    return folder
