"""How a command ends: what cannot be written is said, and no failure looks like an answer.

Exit status 70 is a fault of the program or of the machine's memory, 74 a standard output that took
not all of the text (as in sysexits.h). 1 is an answer: a check failed, a certificate is refused.
"""

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oversmoothing.theory.support.errors import RequirementError, explained

FAILED, UNWRITTEN = 70, 74
RESUMABLE = ("sweep", "study")
# Set to anything, it shows the traceback of a fault.
TRACEBACK = "OVERSMOOTHING_TRACEBACK"
_LONGEST = 300


class _Output:
    """Standard output that may stop taking text: the work goes on, and what was lost is known.

    A reader that went away (head, less) has what it wanted: that is no loss.
    """

    def __init__(self, stream: Any, closed: bool) -> None:
        self._stream, self._closed = stream, closed
        self.lost = ""

    def write(self, text: str) -> int:
        if self._closed:
            self.lost = "it is closed"
        self._try(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def _try(self, step: Callable[..., Any], *given: str) -> None:
        try:
            step(*given)
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                self.lost = error.strerror or str(error)
            # Nothing more must be tried, now or at exit.
            _to_nowhere(self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _to_nowhere(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    if null != descriptor:
        os.dup2(null, descriptor)
        os.close(null)


def ended(run: Callable[[], int], command: str) -> int:
    """The exit status of `run`, whatever happens in it; what went wrong is one line on stderr."""
    stream: Any = sys.stdout
    closed, own = stream is None, stream is sys.__stdout__
    if sys.stderr is None:
        _to_nowhere(2)
        sys.stderr = os.fdopen(2, "w", closefd=False)
    if closed:
        # Taken, or the next file that is opened becomes the standard output.
        _to_nowhere(1)
        stream = os.fdopen(1, "w", closefd=False)
    elif own and hasattr(stream, "reconfigure"):
        # A name that the terminal cannot show is no reason to fail.
        stream.reconfigure(errors="backslashreplace")
    output: Any = _Output(stream, closed)
    sys.stdout = output
    try:
        status = run()
    except SystemExit:
        raise
    except BaseException as error:
        status = _status_of(error, command)
    finally:
        output.flush()
        sys.stdout = stream
    if output.lost:
        say(command, f"standard output did not take the text ({output.lost})")
        return UNWRITTEN
    return status


def _status_of(error: BaseException, command: str) -> int:
    if isinstance(error, KeyboardInterrupt):
        return interrupted(command, error)
    reason = explained(error) if isinstance(error, ModuleNotFoundError) else error
    if isinstance(reason, RequirementError):
        say("", reason)
        return 1
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    # torch has a RuntimeError for it, on the CPU without a name of its own.
    named = type(error).__name__ == "OutOfMemoryError" or "allocate memory" in str(error)
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and named):
        say(command, "there is not enough memory for this: choose a smaller one")
        return FAILED
    place = traceback.extract_tb(error.__traceback__)[-1]
    words = " ".join(f"{type(error).__name__}: {error}".split())
    if len(words) > _LONGEST:
        words = words[:_LONGEST] + "..."
    say(
        command,
        f"a fault of the program, not an answer: {words} "
        f"({Path(place.filename).name}, line {place.lineno}). Please report it with the command; "
        f"{TRACEBACK}=1 shows more",
    )
    return FAILED


def interrupted(command: str, error: KeyboardInterrupt) -> int:
    """Say it on stderr; the exit status 130."""
    kept = "; finished parts are kept: the same command goes on" * (command in RESUMABLE)
    say(command, str(error) or f"interrupted{kept}")
    # An interrupt that passed through `exec` of a text (every dataclass is made by one) leaves a
    # mark in CPython by which it dies of SIGINT at its end, handled or not; the next text that is
    # run takes it away.
    exec("")
    return 130


def say(command: str, message: object) -> None:
    """One line on stderr, named by the command."""
    print(f"oversmoothing {command}".rstrip() + f": {message}", file=sys.stderr)
