"""`oversmoothing figures` and `oversmoothing reproduce`: from data to pictures and the page."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from importlib import import_module
from typing import TYPE_CHECKING

from paper_figures import FIGURES
from theory.command import Command
from theory.errors import InputError
from theory.files import output_folder

if TYPE_CHECKING:
    from pathlib import Path

    from paper_figures.base import Context
    from paper_figures.page import DrawnFigure


def _common(parser: ArgumentParser) -> None:
    parser.add_argument("--out", default="results", metavar="DIR", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default %(default)s)")


def _add_figures_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--only", action="append", metavar="NAME", help="this figure (repeatable)")
    parser.add_argument("--list", action="store_true", help="name the figures and stop")
    _common(parser)


def _context(arguments: Namespace) -> tuple[Path, Context]:
    from paper_figures.base import Context
    from simulations.inputs import choose_device

    choose_device(arguments.device)
    if arguments.seed < 0:
        raise InputError(f"the seed must be >= 0, not {arguments.seed}")
    folder = output_folder(arguments.out)
    return folder, Context(results=folder, seed=arguments.seed, device=arguments.device)


def draw_figure(name: str, context: Context, folder: Path) -> DrawnFigure:
    """Draw one figure by name into folder/figures."""
    from paper_figures.base import make_figure
    from paper_figures.page import DrawnFigure

    module = import_module(FIGURES[name])
    print(f"drawing {name}", file=sys.stderr, flush=True)
    return DrawnFigure(name, module.TITLE, make_figure(module, context, folder / "figures"))


def _figures(arguments: Namespace) -> int:
    wanted = arguments.only or list(FIGURES)
    for name in wanted:
        if name not in FIGURES:
            raise InputError(f"no figure '{name}'; there are {', '.join(FIGURES)}")
    if arguments.list:
        for name in wanted:
            print(f"{name:24s} {import_module(FIGURES[name]).TITLE}")
        return 0
    folder, context = _context(arguments)
    for name in wanted:
        files = draw_figure(name, context, folder).files
        print(f"{files.pdf}\n{files.png}\n{files.csv}\n{files.txt}")
    return 0


def _reproduce(arguments: Namespace) -> int:
    from paper_figures.reproduce import reproduce

    folder, context = _context(arguments)
    return reproduce(folder, context)


COMMANDS = [
    Command(
        "figures",
        "draw the figures and tables, each with its data",
        _add_figures_arguments,
        _figures,
    ),
    Command(
        "reproduce", "the main job: train, simulate, check, draw, and the page", _common, _reproduce
    ),
]
