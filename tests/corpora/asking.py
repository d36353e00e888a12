"""How a command is asked within this process, and which of its words belong to an answer."""

import contextlib
import csv
import io
import json
from pathlib import Path
from typing import Any
from unittest import mock

import oversmoothing

# Of a machine, a day or a checkout, not of the answer; words, which may be written better; and how
# a result is read back.
LEFT_OUT = {
    "conventions", "note", "notes", "words", "reason", "statement", "python", "platform", "commit",
    "versions", "device", "seconds", "form",
}  # fmt: skip


def printed(*words: str, codes: tuple[int, ...] = (0,)) -> str:
    """Standard output of a command. Pictures are not drawn: none is part of an answer."""
    out, err = io.StringIO(), io.StringIO()
    undrawn = mock.patch("matplotlib.figure.Figure.savefig", lambda *_, **__: None)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), undrawn:
        code = oversmoothing.main(list(words))
    if code not in codes:
        raise RuntimeError(f"{' '.join(words)}: exit status {code}: {err.getvalue()}")
    return out.getvalue()


def printed_json(*words: str, codes: tuple[int, ...] = (0,)) -> Any:
    """What a command prints with --json."""
    return answer_of(json.loads(printed(*words, "--json", codes=codes)))


def written_json(path: Path) -> Any:
    return answer_of(json.loads(path.read_text("utf-8")))


def written_csv(path: Path) -> list[dict[str, Any]]:
    """The rows of a table, its numbers as numbers, what is empty as None."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            answer_of({name: _cell(x) for name, x in row.items()}) for row in csv.DictReader(file)
        ]


def _cell(text: str) -> Any:
    try:
        number = float(text)
    except ValueError:
        return text or None
    return int(number) if text.lstrip("-").isdigit() else json_number(number)


def json_number(number: float) -> float | str | None:
    """JSON has no NaN and no infinity: null, "inf", "-inf"."""
    if number != number:
        return None
    return number if abs(number) != float("inf") else "inf" if number > 0 else "-inf"


def answer_of(value: Any) -> Any:
    """A JSON value without what `LEFT_OUT` names and without sentences (four words or more)."""
    if isinstance(value, dict):
        return {key: answer_of(x) for key, x in value.items()
                if key not in LEFT_OUT and not _is_sentence(x)}  # fmt: skip
    if isinstance(value, list):
        return [answer_of(x) for x in value if not _is_sentence(x)]
    return value


def _is_sentence(value: Any) -> bool:
    return isinstance(value, str) and value.count(" ") >= 3


# Commands are asked in a folder: names of files in an answer are short and the same anywhere.
inside = contextlib.chdir
