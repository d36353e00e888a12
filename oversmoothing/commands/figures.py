"""`oversmoothing figures`: from data to pictures, each with its data."""

import sys
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
    from oversmoothing.paper_figures import FIGURES, RENAMED, figure

    wanted: list[str] = []
    for name in only or FIGURES:
        new = name
        if name in RENAMED:
            new, where = RENAMED[name]
            said = f"figure '{name}' is gone: {where}"
            if new:
                said = f"figure '{name}' is now '{new}': {where}"
            print(said, file=sys.stderr)
        elif name not in FIGURES:
            todo = f"'oversmoothing figures --list' shows all {len(FIGURES)}."
            raise unknown("figure", name, FIGURES, todo)
        if new and new not in wanted:
            wanted.append(new)
    if names:
        for name in wanted:
            print(f"{name:24s} {figure(name).title}")
        return
    from oversmoothing.paper_figures.figure_base import Context

    context = Context.checked(out, seed, device)
    for name in wanted:
        print(f"drawing {name}", file=sys.stderr, flush=True)
        for path in figure(name).make_kinds(context, out / "figures", format or KINDS[:2], width):
            print(path)
