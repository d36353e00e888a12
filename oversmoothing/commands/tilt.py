"""`oversmoothing tilt`: do a trained model's tokens tilt as in the power method?"""

from pathlib import Path
from typing import Annotated

from typer import Option

from oversmoothing.commands import options as opt


def tilt(
    model: opt.Model,
    images: opt.Images = None,
    text: opt.Text = None,
    count: opt.Count = None,
    steer: Annotated[
        bool, Option("--steer", help="Steer the model towards drawn directions too.")
    ] = False,
    data_dir: opt.DataDir = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> None:
    """Do a trained model's tokens tilt as in the power method, and can they be steered.

    Principal by |lambda| and by |1 + lambda|, where the two theories part. Writes tilt.csv, and
    with --steer steered.csv.
    """
    from oversmoothing.commands.tables import finish
    from oversmoothing.experiments.models.sources import named_inputs, named_model
    from oversmoothing.experiments.power_method.tilt import tilts
    from oversmoothing.theory.support.files import output_folder

    opened = named_model(model, out, seed=seed, device="cpu", data_dir=data_dir)
    opened = opened.renamed(Path(opened.name).name)
    inputs = named_inputs(
        opened, images=images, text=text, count=count, data_dir=data_dir, quiet=as_json
    )
    finish(tilts(opened, inputs, seed=seed, steer=steer), output_folder(out), as_json)
