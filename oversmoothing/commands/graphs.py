"""`oversmoothing graphs`: smoothing on drawn graphs by homophily and h, predicted and run."""

from typing import Annotated, Literal

from typer import Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support import sizes


def graphs(
    count: Annotated[
        int, Option(metavar="N", min=1, max=sizes.POINTS, help="How many graphs are drawn.")
    ] = 2000,
    attention: Annotated[
        Literal["walk", "gat"], Option(help="A: the graph's random walk, or GAT on its features.")
    ] = "walk",
    classifier: Annotated[
        bool,
        Option(
            "--classifier",
            help="Train the node classifier with either sign of H; test it. Minutes.",
        ),
    ] = False,
    steps: Annotated[
        int, Option(metavar="N", min=1, max=sizes.POINTS, help="Steps of its training.")
    ] = 600,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> int:
    """Smoothing on graphs by homophily and h, and a node classifier either way.

    Writes graphs.csv, of GAT graphs_gat.csv, and the phase picture (PNG, PDF) with its caption.
    Exit status 1: a run that is no near tie is not as the spectrum predicts, or a classifier not
    above the majority.
    """
    from oversmoothing.commands.tables import finish
    from oversmoothing.experiments.graphs.classifier import FORM, fitted, score
    from oversmoothing.experiments.graphs.phase import phase
    from oversmoothing.theory.support.files import output_folder

    folder = output_folder(out)
    scores = [score(fitted(each, steps=steps, seed=seed), seed=seed) for each in FORM if classifier]
    result = phase(count, seed, attention, [each.sentence() for each in scores])
    clear = result.table[result.table["clear"]]
    held = bool((clear["predicted"] == clear["observed"]).all())
    finish(result, folder, as_json)
    return int(not (held and all(each.gain()[1] > 0 for each in scores)))
