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

    Writes graphs.csv, of GAT graphs-gat.csv, and the phase picture (PNG, PDF) with its caption.
    Exit status 1: a run that is no near tie is not as the spectrum predicts, or a classifier not
    above the majority.
    """
    from oversmoothing.experiments.graphs.classifier import FORM, fitted, score
    from oversmoothing.experiments.graphs.phase import phase_table, words
    from oversmoothing.experiments.graphs.picture import phase_picture
    from oversmoothing.simulations.drawing.picture import figure_contents
    from oversmoothing.theory.support.files import output_folder, to_json, write_together

    folder = output_folder(out)
    table = phase_table(count, seed, attention)
    said = words(table)
    clear = table[table["clear"]]
    held = bool((clear["predicted"] == clear["observed"]).all())
    if classifier:
        scores = [score(fitted(each, steps=steps, seed=seed), seed=seed) for each in FORM]
        said += "\n" + "\n".join(each.words() for each in scores)
        held = held and all(each.gain()[1] > 0 for each in scores)
    name = "graphs" if attention == "walk" else f"graphs-{attention}"
    title = f"Smoothing on {count} graphs"
    paths = write_together(
        figure_contents(phase_picture(table, attention), table, said, folder / name, title)
    )
    if as_json:
        print(to_json({"graphs": table.to_dict("records"), "words": said.splitlines()}), end="")
    else:
        print(said)
        print(f"wrote {', '.join(str(path) for path in paths)}")
    return int(not held)
