"""How the Hugging Face library is spoken to: quietly, without foreign code, from local files."""

import io
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oversmoothing.theory.support.errors import InputError


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
            raise LookupError("no vocabulary")
        longest = tokenizer.model_max_length
        if (
            not isinstance(longest, int | float)
            or not 1 <= longest < math.inf
            or longest != int(longest)
        ):
            raise TypeError("model_max_length is no number of tokens")
    except Exception as error:  # the library raises many kinds
        raise InputError(
            f"'{folder}' has no tokenizer that can be loaded ({type(error).__name__}): put its "
            "tokenizer.json there, give open_model(..., tokenizer=), or token ids as a tensor"
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
