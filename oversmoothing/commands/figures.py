"""`oversmoothing figures`: from data to pictures, each with its data."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib import import_module
from typing import TYPE_CHECKING

from oversmoothing.paper_figures import FIGURES
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import output_folder

if TYPE_CHECKING:
    from pathlib import Path

    from oversmoothing.paper_figures.figure_base import Context


def common_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--out", default="results", metavar="DIR", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default %(default)s)")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--only", action="append", metavar="NAME", help="this figure (repeatable)")
    parser.add_argument("--list", action="store_true", help="name the figures and stop")
    common_arguments(parser)


def context_of(arguments: Namespace) -> tuple[Path, Context]:
    from oversmoothing.paper_figures.figure_base import Context
    from oversmoothing.simulations.engine.inputs import choose_device

    choose_device(arguments.device)
    if arguments.seed < 0:
        raise InputError(f"the seed must be >= 0, not {arguments.seed}")
    folder = output_folder(arguments.out)
    return folder, Context(results=folder, seed=arguments.seed, device=arguments.device)


def run(arguments: Namespace) -> int:
    wanted = arguments.only or list(FIGURES)
    for name in wanted:
        if name not in FIGURES:
            raise InputError(f"no figure '{name}'; there are {', '.join(FIGURES)}")
    if arguments.list:
        for name in wanted:
            print(f"{name:24s} {import_module(FIGURES[name]).TITLE}")
        return 0
    from oversmoothing.paper_figures.page import draw_figure

    folder, context = context_of(arguments)
    for name in wanted:
        files = draw_figure(name, context, folder).files
        print(f"{files.pdf}\n{files.png}\n{files.csv}\n{files.txt}")
    return 0
