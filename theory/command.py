"""What a package offers to the command line: a name, its arguments and what it does.

The front door `oversmoothing.py` composes the commands of all packages; no package knows of it.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """One subcommand of `oversmoothing`.

    `run` returns the exit status; it raises `theory.errors.InputError` for input that cannot be
    used.
    """

    name: str
    summary: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
