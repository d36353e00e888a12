"""`oversmoothing inspect`: does a trained model smooth, where, by which sublayer, and why?"""

from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated

from typer import Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support import sizes


def inspect(
    model: opt.Model,
    images: opt.Images = None,
    text: opt.Text = None,
    count: opt.Count = None,
    spectra: Annotated[
        int | None,
        Option(
            metavar="N", min=0, max=sizes.SEED, help="Take attention spectra of N inputs (0: none)."
        ),
    ] = None,
    batch_size: Annotated[
        int, Option(metavar="N", min=1, max=sizes.POINTS, help="Inputs at once.")
    ] = 32,
    wide: Annotated[
        bool, Option("--wide", help="Every column of the table, not only the first six.")
    ] = False,
    data_dir: opt.DataDir = None,
    as_json: opt.Json = False,
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
    out: opt.Out = opt.RESULTS,
) -> None:
    """Does a trained model smooth, where, by which sublayer, and why.

    Writes a page, tables and a picture into inspect/MODEL of the folder of results, where runs of
    the digits models are looked for too.
    """
    from oversmoothing.commands.tables import table_text
    from oversmoothing.experiments.inspection.inspect import inspect as ask
    from oversmoothing.experiments.models.named import named_inputs, named_model
    from oversmoothing.theory.support.files import output_folder, to_json

    found = named_model(model, out, seed=seed, device=device, data_dir=data_dir)
    inputs = named_inputs(
        found, images=images, text=text, count=count, data_dir=data_dir, quiet=as_json
    )
    folder = output_folder(out / "inspect" / Path(found.name).name)
    report = ask(found, inputs, spectra=spectra, batch_size=batch_size, progress=not as_json)
    files = report.save(folder)
    if as_json:
        print(to_json(report.to_json_object()), end="")
    else:
        table = table_text(report.short_table(wide=wide), "{:.3f}".format)
        print(f"{table}\n\n{report.words(get_terminal_size((100, 24)).columns)}")
        print(f"wrote {files['html']} (and .json, .csv, .png beside it)")
