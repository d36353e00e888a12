"""`oversmoothing certify-model`: certified verdicts on the attention of a vision model."""

from typing import Annotated

from typer import Option

from oversmoothing.commands import options as opt


def certify_model(
    model: opt.Model,
    images: opt.Images = None,
    count: Annotated[int, Option(metavar="N", min=1, help="Images.")] = 5,
    data_dir: opt.DataDir = None,
    out: opt.Out = opt.RESULTS,
) -> None:
    """Certified verdicts on the attention of a trained vision model.

    Writes certified_attention.csv.
    """
    import torch

    from oversmoothing.experiments.inspection.spectra import certified_attention, summary
    from oversmoothing.experiments.models.pictures import named_pictures, photographs
    from oversmoothing.experiments.models.sources import named_model
    from oversmoothing.theory.support.files import output_folder, write_atomically

    opened = named_model(model, out, data_dir=data_dir, dtype=torch.float64)
    given = None if images is None else named_pictures(images, count, data_dir)
    folder = output_folder(out)
    table = certified_attention(opened, given or photographs(count))
    path = write_atomically(folder / "certified_attention.csv", table.to_csv(index=False))
    print(f"{summary(table)}\nwrote {path}")
