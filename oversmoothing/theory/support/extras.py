"""Libraries that only an extra of the distribution brings, and what is said without them."""

from importlib import import_module
from typing import Any

from oversmoothing.theory.support.errors import RequirementError

EXTRA_OF = {
    "cvc5": "prove",
    "hypothesis": "prove",
    "latex2mathml": "prove",
    "sympy": "prove",
    "z3": "prove",
    "gguf": "models",
    "transformers": "models",
    "huggingface_hub": "models",
    "sklearn": "models",
    "accelerate": "models",
    "kornia": "training",
    "lightning": "training",
    "pytorch_lightning": "training",
    "psutil": "figures",
    "pyarrow": "sweep",
    "dask": "cluster",
    "distributed": "cluster",
}


def required(name: str) -> Any:
    """The module of that name, imported.

    Raises `RequirementError` where it or one that it needs is of an extra that is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise explained(error) from error


def explained(error: ModuleNotFoundError) -> Exception:
    """A `RequirementError` that names the extra; the error itself where no extra would help."""
    name = str(error.name).split(".")[0]
    if name not in EXTRA_OF:
        return error
    return RequirementError(
        f"{name} is not installed: pip install 'oversmoothing[{EXTRA_OF[name]}]', or [all]"
    )
