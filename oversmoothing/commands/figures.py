"""`oversmoothing figures`: from data to pictures, each with its data."""

from importlib import import_module
from typing import Annotated

from typer import Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support.errors import InputError


def figures(
    only: Annotated[
        list[str] | None, Option(metavar="NAME", help="These figures alone (several).")
    ] = None,
    names: Annotated[bool, Option("--list", help="Name the figures and stop.")] = False,
    out: opt.Out = opt.RESULTS,
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
) -> None:
    """Draw the figures and tables, each with its data."""
    from oversmoothing.paper_figures import FIGURES

    wanted = only or list(FIGURES)
    for name in wanted:
        if name not in FIGURES:
            raise InputError(f"no figure '{name}'; there are {', '.join(FIGURES)}")
    if names:
        for name in wanted:
            print(f"{name:24s} {import_module(FIGURES[name]).TITLE}")
        return
    from oversmoothing.paper_figures.figure_base import Context
    from oversmoothing.paper_figures.page import draw_figure

    context = Context.checked(out, seed, device)
    for name in wanted:
        files = draw_figure(name, context)
        print(f"{files.pdf}\n{files.png}\n{files.csv}\n{files.txt}")
