"""`oversmoothing loop`: a trained model's block applied again and again; do its tokens collapse?"""

import re
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support import sizes
from oversmoothing.theory.support.errors import InputError


def loop(
    model: opt.Model,
    images: opt.Images = None,
    text: opt.Text = None,
    count: opt.FewInputs = 20,
    every: Annotated[
        int, Option(metavar="N", min=1, max=sizes.SEED, help="Of the inputs, each N-th alone.")
    ] = 1,
    tokens: opt.CutTexts = None,
    loops: Annotated[
        int, Option(metavar="N", min=20, max=sizes.POINTS * 1000, help="Loops.")
    ] = 200,
    group: Annotated[
        list[str] | None,
        Option(metavar="A-B", help="Loop layers A to B in turn (several; default each block)."),
    ] = None,
    recall: Annotated[
        float | None,
        Option(metavar="B", help="X <- f(X) + B X_0: look for fixed points, and predict nothing."),
    ] = None,
    part: opt.Part = None,
    data_dir: opt.DataDir = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> None:
    """A trained model's block applied again and again; do its tokens collapse.

    Attention is recomputed in every loop. Each block (or --group) is predicted before its tokens
    are looped; a predictor is chosen on half of the blocks and inputs and scored on the others.
    Writes loop.json, tables and a picture into loop/MODEL of the folder of results.
    """
    from oversmoothing.commands.tables import finish
    from oversmoothing.experiments.models.sources import cut_texts, named_inputs, named_model
    from oversmoothing.experiments.repeated.loop import loop as run
    from oversmoothing.experiments.repeated.recall import recalled
    from oversmoothing.theory.support.files import output_folder

    opened = named_model(model, out, seed=seed, device="cpu", data_dir=data_dir, part=part)
    opened = opened.renamed(Path(opened.name).name)
    cut_texts([opened], tokens)
    groups = None if group is None else [_layers(each) for each in group]
    inputs = named_inputs(
        opened, images=images, text=text, count=count * every, data_dir=data_dir, quiet=as_json
    )[::every]
    folder = output_folder(opt.beside(out / "loop" / opened.name))
    chosen: dict[str, Any] = {"groups": groups, "loops": loops, "seed": seed}
    if recall is None:
        finish(run(opened, inputs, **chosen), folder, as_json)
    else:
        finish(recalled(opened, inputs, recall, **chosen), folder, as_json)


def _layers(word: str) -> tuple[int, ...]:
    # No model has a million layers, and a longer number would be a list without end.
    named = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", word)
    first, last = (0, -1) if named is None else (int(named[1]), int(named[2] or named[1]))
    if first <= last:
        return tuple(range(first, last + 1))
    raise InputError(
        f"--group {word[:40]} names no layers: write 3, or 1-12 for layers 1 to 12 in turn"
    )
