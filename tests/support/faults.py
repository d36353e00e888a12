"""A disk that fails at one step: the call of the file system of a given number raises."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

# Every call by which results reach the disk, or leave it.
STEPS: dict[Any, tuple[str, ...]] = {
    os: ("stat", "open", "fdopen", "fsync", "chmod", "replace", "rename"),
    tempfile: ("mkstemp", "mkdtemp", "TemporaryFile"),
    shutil: ("copy2",),
    Path: ("mkdir", "chmod"),
}
STREAM = ("write", "flush", "close")


@dataclass
class Disk:
    """What was called of the disk, in order, and which call failed."""

    fault: BaseException
    step: int
    after: bool = False
    calls: list[str] = field(default_factory=list)
    failed: str = ""

    def call(self, name: str, genuine: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """The genuine call, but for the one that fails."""
        self.calls.append(name)
        if len(self.calls) == self.step + 1:
            self.failed = name
            if self.after:
                genuine(*given, **named)
            raise self.fault
        return genuine(*given, **named)


class Stream:
    """A stream of which `Disk` can fail to write, flush and close; a failed close lets go of it."""

    def __init__(self, disk: Disk, genuine: Any) -> None:
        self._disk, self._genuine = disk, genuine

    def write(self, data: Any) -> Any:
        return self._disk.call("write", self._genuine.write, data)

    def flush(self) -> None:
        self._disk.call("flush", self._genuine.flush)

    def close(self) -> None:
        try:
            self._disk.call("close", lambda: None)
        finally:
            self._genuine.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._genuine, name)


@contextmanager
def failing(step: int, fault: BaseException, within: Path, after: bool = False) -> Iterator[Disk]:
    """Raise `fault` in the place of the call of that number that names something in `within`, or
    that writes into a stream opened there, or right after it."""
    disk = Disk(fault, step, after)
    ours: set[int] = set()

    def concerns(name: str, given: tuple[Any, ...], named: dict[str, Any]) -> bool:
        if name in ("fdopen", "fsync"):
            return given[0] in ours
        words = [*given, *named.values()]
        return any(isinstance(w, str | Path) and str(w).startswith(str(within)) for w in words)

    def watched(name: str, genuine: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            if not concerns(name, given, named):
                return genuine(*given, **named)
            found = disk.call(name, genuine, *given, **named)
            if name == "mkstemp":
                ours.add(found[0])
            if name in ("fdopen", "TemporaryFile"):
                ours.add(found.fileno())
                return Stream(disk, found)
            return found

        return call

    with pytest.MonkeyPatch.context() as patch:
        for owner, names in STEPS.items():
            for name in names:
                patch.setattr(owner, name, watched(name, getattr(owner, name)))
        yield disk
