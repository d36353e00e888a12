"""`oversmoothing tilt`: do a trained model's tokens tilt as in the power method?"""

import os
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
    with --steer steer.csv.
    """
    from oversmoothing.commands.tables import table_text
    from oversmoothing.experiments.models.sources import named_inputs, named_model
    from oversmoothing.experiments.power_method.tilt import tilts
    from oversmoothing.theory.support.files import json_row, output_folder, to_json, write_together

    opened = named_model(model, out, seed=seed, device="cpu", data_dir=data_dir)
    opened = opened.renamed(Path(opened.name).name)
    inputs = named_inputs(
        opened, images=images, text=text, count=count, data_dir=data_dir, quiet=as_json
    )
    folder = output_folder(out)
    found = tilts(opened, inputs, seed=seed)
    table = found.to_frame()
    said = [found.words()]
    contents: dict[str | os.PathLike[str], str | bytes] = {
        folder / "tilt.csv": table.to_csv(index=False)
    }
    if steer:
        from oversmoothing.experiments.power_method.steered_model import steered_tilts, words

        steered = steered_tilts(opened, list(inputs), seed=seed)
        contents[folder / "steer.csv"] = steered.to_csv(index=False)
        said.append(words(steered, opened.name, len(inputs)))
    paths = write_together(contents)
    if as_json:
        rows = {"layers": [json_row(row) for row in table.to_dict("records")], "words": said}
        if steer:
            rows["steered"] = [json_row(row) for row in steered.to_dict("records")]
        print(to_json(rows), end="")
        return
    print(table_text(table, "{:.3f}".format))
    if steer:
        print(f"\n{table_text(steered, '{:.3f}'.format)}")
    print("\n" + "\n".join(said))
    print(f"wrote {' and '.join(str(path) for path in paths)}")
