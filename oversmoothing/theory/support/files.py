"""Results are written whole or not at all: an interrupted run leaves the earlier result intact.

The one reader of JSON and of TOML that a user writes, too: a repeated key, NaN or Infinity, nesting
without end and numbers of endless digits are refused, each with a sentence, before anything of
their size is made. (`theory.checker` has a reader of its own.)
"""

import json
import math
import os
import shutil
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from oversmoothing.theory.support.errors import InputError, refuse_endless, refuse_length

DEPTH = 64


def read_json(path: str | PathLike[str]) -> Any:
    """The value of a JSON file. Raises `InputError` naming the file and what is wrong in it."""
    return parse_json(read_text(path), f"'{path}'")


def parse_json(text: str, name: str) -> Any:
    """`read_json` of a text; name is what messages call it."""

    def integer(digits: str) -> int:
        refuse_length(len(digits.lstrip("-")), name)
        return int(digits)

    def decimal(digits: str) -> float:
        refuse_endless(digits, name)
        value = float(digits)
        if math.isinf(value):
            raise InputError(
                f"{name}: {digits} is beyond the range of binary64 (1.8e308): write it in quotes, "
                "as an exact number, or scale"
            )
        return value

    def constant(word: str) -> float:
        raise InputError(f"{name} holds {word}: JSON has no nan and no infinity")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = sorted({key for key in keys if keys.count(key) > 1})
            raise InputError(f"{name}: {_shown(twice)} occurs more than once: keep one")
        return entries

    try:
        value = json.loads(
            text, object_pairs_hook=unique, parse_constant=constant, parse_int=integer,
            parse_float=decimal,
        )  # fmt: skip
    except json.JSONDecodeError as error:
        raise InputError(
            f"{name} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from error
    except RecursionError as error:
        raise InputError(f"{name} is nested too deeply to be read") from error
    if _is_deeper(value, DEPTH):
        raise InputError(f"{name} is nested too deeply to be read (more than {DEPTH} levels)")
    return value


def read_toml(path: str | PathLike[str]) -> dict[str, Any]:
    """The table of a TOML file. Raises `InputError` naming the file and what is wrong in it."""
    return parse_toml(read_text(path), f"'{path}'")


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """`read_toml` of a text; name is what messages call it."""
    try:
        import tomllib

        return tomllib.loads(text)
    except RecursionError as error:
        raise InputError(f"{name} is nested too deeply to be read") from error
    except ValueError as error:
        # Of tomllib, and of Python where an integer has more than 4,300 digits.
        raise InputError(f"{name} is not TOML: {error}") from error


def _shown(keys: list[str]) -> str:
    """A few keys, none of them endless."""
    shown = [repr(key if len(key) <= 40 else key[:40] + "...") for key in keys[:8]]
    return ", ".join(shown) + (" ..." if len(keys) > 8 else "")


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether it is nested in more than so many levels."""
    inner = value.values() if isinstance(value, dict) else value
    return isinstance(value, dict | list) and (
        levels == 0 or any(_is_deeper(each, levels - 1) for each in inner)
    )


# The largest text that is read: a certificate of n = 197 and d = 768 has some 16 MiB.
BYTES = 2**26
# What a folder of results must have room for: the files of one small result.
ROOM = 2**20


def output_folder(path: str | os.PathLike[str], room: int = ROOM) -> Path:
    """Create the folder if needed and prove that `room` bytes can be written there.

    Raises `InputError` where they cannot, before any work is done.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        import tempfile

        with tempfile.TemporaryFile(dir=folder) as probe:
            # Real bytes, down to the disk: a full one takes an empty file.
            probe.write(b"\xa5" * room)
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        raise InputError(
            f"cannot write to the output folder '{folder}' ({error.strerror or error}): "
            "choose another with --out, or mend its permissions or space"
        ) from error
    return folder


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write one file whole or not at all (`write_together`). Returns `path`."""
    return write_together({path: content})[0]


def write_together(contents: Mapping[str | os.PathLike[str], str | bytes]) -> list[Path]:
    """Write the files of one result: all of them new, or all of them as they were. Text is UTF-8.

    Each content lies on the disk beside its place before the first is renamed; where a rename
    fails, those before it are undone. (Only a kill between two renames leaves some of each.) A
    symbolic link is written through; a file keeps its mode. Raises `InputError` where a file cannot
    be written, and where its name is that of a folder, a device or a pipe.
    """
    staged: list[_Staged] = []
    path: str | os.PathLike[str] = ""
    try:
        for path, content in contents.items():
            staged.append(_Staged(path))
            staged[-1].write(content)
        for each in staged[:-1]:
            path = each.path
            each.keep()
        for each in staged:
            path = each.path
            each.place()
    except BaseException as error:
        if staged and all(each.placed for each in staged):
            raise  # interrupted after the last of them: all are new
        lost = [each for each in reversed(staged) if not each.undo()]
        if not isinstance(error, OSError):
            raise
        kept = "".join(
            f"; what '{each.path}' held before is kept as '{each.former}'" for each in lost
        )
        raise InputError(f"cannot write '{path}' ({error.strerror or error}){kept}") from error
    finally:
        for each in staged:
            each.clear()
    return [each.path for each in staged]


class _Staged:
    """One file on its way: its new content beside it, and what it held before."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.new: str | None = None
        self.former: str | None = None
        self.mode: int | None = None
        self.lost = False
        with suppress(FileNotFoundError):
            kind = os.stat(path).st_mode
            if not stat.S_ISREG(kind):
                what = "a folder" if stat.S_ISDIR(kind) else "a device or a pipe"
                raise InputError(f"cannot write '{path}': it is {what}, no regular file")
            self.mode = stat.S_IMODE(kind) & 0o777
        # Where a link leads: the link itself stays.
        self.target = Path(os.path.realpath(path))

    def write(self, content: str | bytes) -> None:
        """Lay the content down beside its place."""
        # A name that is no text in any encoding (a byte of a path) is written as in JSON.
        data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
        self.target.parent.mkdir(parents=True, exist_ok=True)
        handle, self.new = self._beside()
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp makes private files; a result is as readable as any file the user makes.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(self.new, 0o666 & ~umask if self.mode is None else self.mode)

    def _beside(self) -> tuple[int, str]:
        import tempfile

        # Not the name of the file with something added: that could be too long for a name.
        return tempfile.mkstemp(dir=self.target.parent, prefix=".writing-")

    def keep(self) -> None:
        """A copy of what the file holds, to bring back."""
        if self.mode is not None:
            handle, self.former = self._beside()
            os.close(handle)
            shutil.copy2(self.target, self.former)

    @property
    def placed(self) -> bool:
        """Whether the new content has left for its place."""
        return self.new is not None and not os.path.lexists(self.new)

    def place(self) -> None:
        """The new content takes its place."""
        assert self.new is not None
        os.replace(self.new, self.target)

    def undo(self) -> bool:
        """Bring back what was there before; False where that fails too."""
        if not self.placed:
            return True
        try:
            if self.former is None:
                self.target.unlink()
            else:
                os.replace(self.former, self.target)
        except OSError:
            self.lost = self.former is not None
        return not self.lost

    def clear(self) -> None:
        """Remove what is left beside the file, but what alone holds its former content."""
        for name in (self.new, None if self.lost else self.former):
            if name is not None:
                Path(name).unlink(missing_ok=True)


def json_number(value: float | None) -> float | str | None:
    """A number as this project writes it in JSON: unknown is null, infinite is "inf" or "-inf"."""
    if value is None or math.isnan(value):
        return None
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return float(value)


def json_value(value: Any) -> Any:
    """A field of an answer in JSON: `json_number`, a complex number as [real, imaginary], tuples
    as lists, dataclasses by their fields; all else as it is."""
    if isinstance(value, complex):
        return [value.real, value.imag]
    if isinstance(value, tuple):
        return [json_value(x) for x in value]
    if is_dataclass(value):
        return {name: json_value(x) for name, x in vars(value).items()}
    return json_number(value) if isinstance(value, float) else value


def json_row(row: Mapping[Any, Any]) -> dict[str, Any]:
    """The row of a table as this project writes it in JSON, by `json_number`."""
    return {str(k): json_number(x) if isinstance(x, float) else x for k, x in row.items()}


def json_rows(table: Any) -> list[dict[str, Any]]:
    """The rows of a table of pandas, each as `json_row`."""
    return [json_row(row) for row in table.to_dict("records")]


def to_json(value: Any) -> str:
    """Strict JSON (no NaN, no Infinity), indented, with a final newline."""
    return json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def file_size(path: str | os.PathLike[str]) -> int:
    """Bytes of a regular file, which is looked at and not opened: a pipe without a writer would
    wait for ever, and a device may never end.

    Raises `InputError` for what is none, and for what is not there.
    """
    try:
        info = os.stat(path)
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror or error}") from error
    if stat.S_ISDIR(info.st_mode):
        raise InputError(f"cannot read '{path}': it is a folder")
    if not stat.S_ISREG(info.st_mode):
        raise InputError(f"'{path}' is no regular file: write what it gives into one")
    return info.st_size


def read_bytes(path: str | os.PathLike[str], most: int | None = None) -> bytes:
    """What a regular file of at most `most` bytes (default `BYTES`) holds; of "-", standard input.

    Raises `InputError` with the cause where it cannot be read.
    """
    limit = BYTES if most is None else most
    too_large = f"'{path}' is larger than {limit // 2**20} MiB, the most that is read"
    if str(path) == "-":
        held = sys.stdin.buffer.read(limit + 1)
        if len(held) > limit:
            raise InputError(too_large)
        return held
    if file_size(path) > limit:
        raise InputError(too_large)
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror or error}") from error


def read_text(path: str | os.PathLike[str]) -> str:
    """The UTF-8 text of a regular file of at most `BYTES`, with its line ends as they are.

    Raises `InputError` with the cause where it cannot be read.
    """
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"'{path}' is not UTF-8 text: {error.reason} at byte {error.start}"
        ) from error
