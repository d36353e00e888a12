"""What a command is: a name, its arguments and what it does."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Command:
    """One subcommand of `oversmoothing`.

    `run` returns the exit status; it raises `theory.support.errors.InputError` for input that
    cannot be used.
    """

    name: str
    summary: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]


def lazy_command(name: str, summary: str, module: str) -> Command:
    """A command whose `add_arguments` and `run` live in a module that loads on first use."""
    return Command(
        name,
        summary,
        lambda parser: import_module(module).add_arguments(parser),
        lambda arguments: int(import_module(module).run(arguments)),
    )
