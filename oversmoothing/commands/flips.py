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
    from oversmoothing.commands.tables import table_text
    from oversmoothing.experiments.models.sources import cut_texts, named_inputs, named_model
    from oversmoothing.experiments.sign_flips.flip_plot import draw
    from oversmoothing.experiments.sign_flips.flips import sign_flips
    from oversmoothing.simulations.drawing.picture import figure_contents
    from oversmoothing.simulations.provenance import provenance
    from oversmoothing.theory.support.files import output_folder, to_json, write_together

    opened = named_model(model, out, seed=seed, device="cpu", data_dir=data_dir, part=part)
    opened = opened.renamed(Path(opened.name).name)
    cut_texts([opened], tokens)
    inputs = named_inputs(
        opened, images=images, text=text, count=count, data_dir=data_dir, quiet=as_json
    )
    folder = output_folder(opt.beside(out / "flips" / opened.name))
    found = sign_flips(opened, inputs, seed=seed)
    record = found.to_json_object() | {"provenance": provenance()}
    title = f"{found.model}: the sign of the gain flipped"
    stem = folder / "flips"
    contents = figure_contents(draw(found), found.by_layer(), found.words(), stem, title)
    contents[folder / "scores.csv"] = found.score_table().to_csv(index=False)
    contents[folder / "flips.json"] = to_json(record)
    written = write_together(contents)
    if as_json:
        print(to_json(record), end="")
        return
    shown = found.by_layer().filter(regex="^(?!.*_(low|high)$)")
    print(f"{table_text(shown, '{:+.3f}'.format)}\n")
    print(f"{table_text(found.short_scores(), '{:.2f}'.format)}\n\n{found.words()}")
    print(f"wrote {written[-1]} (and {', '.join(path.name for path in written[:-1])} beside it)")
