"""`oversmoothing figures`: from data to pictures, each with its data."""

import sys
from importlib import import_module
from typing import Annotated

from typer import Argument, Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support.errors import unknown

# Of `simulations.drawing.picture`, which imports matplotlib.
KINDS = ("pdf", "png", "svg")
PAGES = ("one-column", "two-column")


def figures(
    only: Annotated[
        list[str] | None, Argument(metavar="NAME", help="These figures alone (default: all).")
    ] = None,
    format: Annotated[
        list[str] | None, opt.one_of(KINDS, "The pictures (several; default pdf png)")
    ] = None,
    width: Annotated[str, opt.one_of(PAGES, "The page that they are to fit")] = "two-column",
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
            todo = f"'oversmoothing figures --list' shows all {len(FIGURES)}."
            raise unknown("figure", name, FIGURES, todo)
    if names:
        for name in wanted:
            print(f"{name:24s} {import_module(FIGURES[name]).TITLE}")
        return
    from oversmoothing.paper_figures.figure_base import Context, make_kinds

    context = Context.checked(out, seed, device)
    for name in wanted:
        print(f"drawing {name}", file=sys.stderr, flush=True)
        module = import_module(FIGURES[name])
        for path in make_kinds(module, context, out / "figures", format or KINDS[:2], width):
            print(path)
