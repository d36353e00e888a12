"""`oversmoothing inspect`: does a trained model smooth, where, by which sublayer, and why?"""

from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated

from typer import Argument, Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support import sizes


def inspect(
    model: opt.Model,
    other: Annotated[
        str | None, Argument(metavar="[OTHER]", help="A second model: the two are compared.")
    ] = None,
    images: opt.Images = None,
    text: opt.Text = None,
    count: opt.Count = None,
    tokens: Annotated[
        int | None,
        Option(
            metavar="N",
            min=1,
            max=sizes.SEED,
            help="Cut texts to N tokens (default: to what the model reads).",
        ),
    ] = None,
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
    part: Annotated[
        str | None,
        Option(metavar="NAME", help="Of a model with several stacks, the one: vision_model."),
    ] = None,
    data_dir: opt.DataDir = None,
    as_json: opt.Json = False,
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
    out: opt.Out = opt.RESULTS,
) -> None:
    """Does a trained model smooth, where, by which sublayer, and why.

    Writes a page, tables and a picture into inspect/MODEL of the folder of results (MODEL-2 and so
    on beside an earlier one), where runs of
    the digits models are looked for too. With a second model (another one, a checkpoint, the same
    after a remedy) both run on the same inputs, and their differences by layer are written.
    """
    from oversmoothing.commands.tables import table_text
    from oversmoothing.experiments.inspection.compare import Comparison, compare
    from oversmoothing.experiments.inspection.inspect import inspect as ask
    from oversmoothing.experiments.inspection.report import Report
    from oversmoothing.experiments.models.named import cut_texts, named_inputs, named_model
    from oversmoothing.theory.support.files import output_folder, to_json

    names = [model] if other is None else [model, other]
    models = [
        named_model(name, out, seed=seed, device=device, data_dir=data_dir, part=part)
        for name in names
    ]
    cut_texts(models, tokens)
    inputs = named_inputs(
        models[0], images=images, text=text, count=count, data_dir=data_dir, quiet=as_json
    )
    name = ", ".join(Path(each.name).name for each in models)
    folder = output_folder(opt.beside(out / "inspect" / name))
    reports = [
        ask(each, inputs, spectra=spectra, batch_size=batch_size, progress=not as_json)
        for each in models
    ]
    found: Report | Comparison = reports[0] if other is None else compare(*reports)
    files = found.save(folder)
    if as_json:
        print(to_json(found.to_json_object()), end="")
        return
    width = get_terminal_size((100, 24)).columns
    print(f"{table_text(found.short_table(wide=wide), '{:.3f}'.format)}\n\n{found.words(width)}")
    first, *more = files.values()
    print(f"wrote {first} (and {', '.join(path.name for path in more)} beside it)")
