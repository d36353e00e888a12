"""Results are written whole or not at all: an interrupted run leaves the earlier result intact."""

import json
import math
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from oversmoothing.theory.support.errors import InputError

# The largest text that is read: a certificate of n = 197 and d = 768 has some 16 MiB.
BYTES = 2**26


def output_folder(path: str | os.PathLike[str]) -> Path:
    """Create the folder if needed and prove that a file can be written there.

    Raises `InputError` where it cannot, before any work is done.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".writable-"):
            pass
    except OSError as error:
        raise InputError(
            f"cannot write to the output folder '{folder}' ({error.strerror or error}): "
            "choose another with --out, or mend its permissions"
        ) from error
    return folder


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write `content` beside `path` and rename it into place (text as UTF-8)."""
    target = Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    output_folder(target.parent)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp makes private files; a result is as readable as any file the user makes.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, target)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise InputError(f"cannot write '{target}' ({error.strerror or error})") from error
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return target


def json_number(value: float | None) -> float | str | None:
    """A number as this project writes it in JSON: unknown is null, infinite is "inf" or "-inf"."""
    if value is None or math.isnan(value):
        return None
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return float(value)


def to_json(value: Any) -> str:
    """Strict JSON (no NaN, no Infinity), indented, with a final newline."""
    return json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def read_text(path: str | os.PathLike[str]) -> str:
    """The UTF-8 text of a regular file of at most `BYTES`.

    Raises `InputError` with the cause where it cannot be read.
    """
    try:
        # Looked at before it is opened: a pipe without a writer would wait for ever.
        found = os.stat(path)
        if stat.S_ISFIFO(found.st_mode) or stat.S_ISCHR(found.st_mode):
            raise InputError(f"'{path}' is no regular file: write what it gives into one")
        if found.st_size > BYTES:
            raise InputError(f"'{path}' is larger than {BYTES // 2**20} MiB, the most that is read")
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"'{path}' is not UTF-8 text: {error.reason} at byte {error.start}"
        ) from error
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror or error}") from error
