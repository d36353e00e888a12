"""`oversmoothing stability`: do small differences between tokens grow or die, layer by layer?"""

from pathlib import Path
from typing import Annotated

from typer import Option

from oversmoothing.commands import options as opt


def stability(
    model: opt.Model,
    images: opt.Images = None,
    text: opt.Text = None,
    count: opt.FewInputs = 8,
    tokens: opt.CutTexts = None,
    size: Annotated[
        float, Option(metavar="NUMBER", help="Of the real perturbations, relative to the stream.")
    ] = 0.01,
    part: opt.Part = None,
    data_dir: opt.DataDir = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> None:
    """Do small differences between tokens grow or die, layer by layer.

    Derivatives of the model's own blocks (torch.func.jvp, float64) along and across consensus, near
    it and on the inputs' streams; the closed form of T8c and real perturbations beside them; and
    what the stack would do if it were looped, against the depth that it has. Writes stability.json,
    a table, and a picture into stability/MODEL of the folder of results.
    """
    import torch

    from oversmoothing.commands.tables import finish
    from oversmoothing.experiments.models.sources import cut_texts, named_inputs, named_model
    from oversmoothing.experiments.repeated.stability import stability as measure
    from oversmoothing.theory.support.files import output_folder

    opened = named_model(
        model, out, seed=seed, device="cpu", data_dir=data_dir, dtype=torch.float64, part=part
    )
    opened = opened.renamed(Path(opened.name).name)
    cut_texts([opened], tokens)
    inputs = named_inputs(
        opened, images=images, text=text, count=count, data_dir=data_dir, quiet=as_json
    )
    folder = output_folder(opt.beside(out / "stability" / opened.name))
    finish(measure(opened, inputs, count=count, size=size, seed=seed), folder, as_json)
