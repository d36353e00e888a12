"""`oversmoothing reproduce`: the main job, from data to pictures and the page."""

from oversmoothing.commands import options as opt


def reproduce(out: opt.Out = opt.RESULTS, seed: opt.Seed = 0, device: opt.Device = "auto") -> int:
    """The main job: train, simulate, check, draw, and the page.

    Exit status 1: a check failed.
    """
    from oversmoothing.paper_figures import reproduce as main_job
    from oversmoothing.paper_figures.figure_base import Context

    context = Context.checked(out, seed, device)
    return main_job.reproduce(context)
