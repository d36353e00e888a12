"""`oversmoothing reproduce`: the main job, from data to pictures and the page."""

from __future__ import annotations

from argparse import Namespace

from oversmoothing.commands.figures import common_arguments as add_arguments
from oversmoothing.commands.figures import context_of

__all__ = ["add_arguments", "run"]


def run(arguments: Namespace) -> int:
    from oversmoothing.paper_figures.reproduce import reproduce

    folder, context = context_of(arguments)
    return reproduce(folder, context)
