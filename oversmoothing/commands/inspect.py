"""`oversmoothing inspect`: does a trained model smooth, where, by which sublayer, and why?"""

from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any

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
    tokens: opt.CutTexts = None,
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
    part: opt.Part = None,
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
    after a remedy) both run on the same inputs, and their differences by layer are written. Of a
    model in stages (Swin) every stage has its report, in a folder of its own.
    """
    from oversmoothing.commands.tables import table_text
    from oversmoothing.experiments.inspection.compare import (
        Comparison,
        Stages,
        compare,
        inspect_stages,
    )
    from oversmoothing.experiments.inspection.inspect import inspect as ask
    from oversmoothing.experiments.inspection.report import Report
    from oversmoothing.experiments.models.adapters import SeveralStacksError
    from oversmoothing.experiments.models.model import Model
    from oversmoothing.experiments.models.sources import cut_texts, named_inputs, named_model
    from oversmoothing.theory.support.files import output_folder, to_json

    def opened(name: str, part: str | None) -> Model:
        return named_model(name, out, seed=seed, device=device, data_dir=data_dir, part=part)

    staged = False
    try:
        models = [opened(name, part) for name in ([model] if other is None else [model, other])]
    except SeveralStacksError as several:
        staged = several.stages and other is None
        if not staged:
            raise
        models = [opened(model, each) for each in several.parts]
    cut_texts(models, tokens)
    inputs = named_inputs(
        models[0], images=images, text=text, count=count, data_dir=data_dir, quiet=as_json
    )
    name = ", ".join(Path(each.name).name for each in (models[:1] if staged else models))
    folder = output_folder(opt.beside(out / "inspect" / name))
    how: dict[str, Any] = {
        "spectra": spectra, "batch_size": batch_size, "progress": not as_json
    }  # fmt: skip
    found: Report | Comparison | Stages
    if staged:
        found = inspect_stages(models, inputs, **how)
    else:
        reports = [ask(each, inputs, **how) for each in models]
        found = reports[0] if other is None else compare(*reports)
    files = found.save(folder)
    if as_json:
        print(to_json(found.to_json_object()), end="")
        return
    width = get_terminal_size((100, 24)).columns
    print(f"{table_text(found.short_table(wide=wide), '{:.3f}'.format)}\n\n{found.words(width)}")
    first, *more = files.values()
    beside = ", ".join(str(path.relative_to(first.parent)) for path in more)
    print(f"wrote {first} (and {beside} beside it)")
