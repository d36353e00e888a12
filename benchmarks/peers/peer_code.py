"""What is run of others' public code, and how: named classes of named files, only when allowed.

The files lie in the folder of real inputs, under `peers/<owner>-<repository>/`, by the paths that
they have in their repository; nothing is fetched, and nothing of them is part of the project. Of a
file only the named classes and functions are executed, on torch and numpy as they are and on the
stand-ins of `stand_ins.py` for what they import else. To load Python is to execute it, with all
rights of the user: `load` refuses unless it happens within `running_peers_code()`.
"""

import ast
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.peers import stand_ins
from oversmoothing.theory.support.errors import InputError, RequirementError
from oversmoothing.theory.support.files import read_text

OPTION = "--run-peers-code"
_ALLOWED: ContextVar[bool] = ContextVar("peers_code_allowed", default=False)
# What their files import under these names.
_GIVEN: dict[str, Any] = {"torch": torch, "nn": nn, "init": nn.init, "np": np}
_STAND_INS: dict[str, Any] = {
    name: getattr(stand_ins, name) for name in ("Mlp", "rearrange", "Rearrange")
}


@dataclass(frozen=True)
class Source:
    """A file of a public repository: its path there, the commit it was read at, what is run of it.

    digest: the first 12 hexadecimal digits of the SHA-256 of the lines of `names`, as recorded.
    folder: where it lies under `peers/`, `<owner>-<repository>` and what tells two commits apart.
    """

    repository: str
    path: str
    commit: str
    names: tuple[str, ...]
    digest: str
    apart: str = ""

    @property
    def folder(self) -> str:
        return self.repository.replace("/", "-") + self.apart

    def place(self, data: Path | None) -> Path:
        """Where the file is looked for; data: the folder of real inputs."""
        return (data or Path("DATA-DIR")) / "peers" / self.folder / self.path

    def wanted(self, data: Path | None) -> str:
        """How to have it run, in words."""
        return f"put {self.path} of {self.repository} at {self.commit[:12]} into {self.place(data)}"


@dataclass(frozen=True)
class Loaded:
    """parts: the classes and functions by name. digest: of their text. stand_ins: which of ours
    they refer to in the place of a library's."""

    parts: dict[str, Any]
    digest: str
    stand_ins: tuple[str, ...]


@contextmanager
def running_peers_code(allowed: bool = True) -> Iterator[None]:
    """Within this, `load` may execute what lies in the folder of peers, where allowed is True."""
    token = _ALLOWED.set(allowed)
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def is_allowed() -> bool:
    """Whether others' code may be executed here."""
    return _ALLOWED.get()


def load(source: Source, data: Path, given: Mapping[str, Any] | None = None) -> Loaded:
    """The classes and functions `source.names`, executed from the file in the folder `data`.

    given: further names that they refer to. Raises `RequirementError` outside of
    `running_peers_code()`, `InputError` for a file that is not there, is no Python or lacks a name.
    """
    if not is_allowed():
        raise RequirementError(f"{source.path} is other people's Python: give {OPTION} to run it")
    text = read_text(source.place(data))
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise InputError(f"'{source.place(data)}' is no Python ({error}): replace it") from error
    definitions = {node.name: node for node in tree.body
             if isinstance(node, ast.ClassDef | ast.FunctionDef)}  # fmt: skip
    missing = [name for name in source.names if name not in definitions]
    if missing:
        raise InputError(f"'{source.place(data)}' has no {', '.join(missing)}: another commit?")
    nodes = [definitions[name] for name in source.names]
    namespace: dict[str, Any] = {"__name__": "a_peer", **_GIVEN, **_STAND_INS, **(given or {})}
    exec(compile(ast.Module(list(nodes), []), str(source.place(data)), "exec"), namespace)
    used = {each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name)}
    return Loaded(
        {name: namespace[name] for name in source.names},
        _digest(text, nodes),
        tuple(name for name in _STAND_INS if name in used),
    )


def _digest(text: str, nodes: list[ast.ClassDef | ast.FunctionDef]) -> str:
    lines = text.splitlines()
    # Blanks at the ends of lines do not count: editors take them away.
    kept = [line.rstrip() for node in nodes for line in lines[node.lineno - 1 : node.end_lineno]]
    return sha256("\n".join(kept).encode()).hexdigest()[:12]
