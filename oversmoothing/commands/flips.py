"""`oversmoothing flips`: a norm's gain with the other sign, layer by layer: said, measured."""

from pathlib import Path
from typing import Annotated

from typer import Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support import sizes


def flips(
    model: opt.Model,
    images: opt.Images = None,
    text: opt.Text = None,
    count: Annotated[
        int, Option(metavar="N", min=4, max=sizes.SEED, help="The first N inputs.")
    ] = 40,
    tokens: opt.CutTexts = None,
    part: opt.Part = None,
    data_dir: opt.DataDir = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> None:
    """The sign of a norm's gain flipped in every layer, predicted and measured.

    Flips the gain of attention's norm (with and without its shift) in one layer at a time, measures
    the effect on HFC/LFC over the layer and at the end, and holds it against T8d and T8e, scored on
    half of the inputs as the ladder is. Writes flips.json, tables and a picture into flips/MODEL.
    """
    from oversmoothing.commands.tables import finish
    from oversmoothing.experiments.models.sources import cut_texts, named_inputs, named_model
    from oversmoothing.experiments.repeated.flips import sign_flips
    from oversmoothing.theory.support.files import output_folder

    opened = named_model(model, out, seed=seed, device="cpu", data_dir=data_dir, part=part)
    opened = opened.renamed(Path(opened.name).name)
    cut_texts([opened], tokens)
    inputs = named_inputs(
        opened, images=images, text=text, count=count, data_dir=data_dir, quiet=as_json
    )
    folder = output_folder(opt.beside(out / "flips" / opened.name))
    finish(sign_flips(opened, inputs, seed=seed), folder, as_json)
