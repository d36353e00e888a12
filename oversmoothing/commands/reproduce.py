"""`oversmoothing reproduce`: the main job, from data to pictures and the page."""

from typing import Annotated

from typer import Option

from oversmoothing.commands import options as opt


def reproduce(
    out: opt.Out = opt.RESULTS,
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
    full: Annotated[
        bool, Option("--full", help="Train every model of the study first: hours, resumable.")
    ] = False,
    workers: Annotated[
        int, Option(metavar="N", min=1, max=64, help="Of --full: trainings at the same time.")
    ] = 1,
) -> int:
    """The main job: train, simulate, check, draw, and the page.

    Without --full a reduced preset, which the page names. Exit status 1: a check failed.
    """
    from oversmoothing.paper_figures import reproduce as main_job
    from oversmoothing.paper_figures.figure_base import Context

    context = Context.checked(out, seed, device)
    return main_job.reproduce(context, full=full, workers=workers)
