"""`oversmoothing readings`: Table 1 of arXiv 2401.04301 for any model, in every reading."""

from typing import Annotated

from typer import Option

from oversmoothing.commands import options as opt

NAMES = ("E1", "E2", "E3", "E4", "E4 heads")


def readings(
    model: opt.Model,
    readings: Annotated[
        list[str] | None, opt.one_of(NAMES, "Which (several; default E1 E2)")
    ] = None,
    folded: Annotated[
        bool, Option("--folded", help="Fold the gains of the norm into W_V first.")
    ] = False,
    images: opt.Images = None,
    text: opt.Text = None,
    count: opt.Count = None,
    costly: Annotated[int, Option(metavar="N", min=1, help="Inputs of E3.")] = 8,
    data_dir: opt.DataDir = None,
    seed: opt.Seed = 0,
    device: opt.Device = "cpu",
    out: opt.Out = opt.RESULTS,
) -> None:
    """Which eigenvalue dominates a trained model's layers, in every reading of Table 1.

    Then where the eigenvalues of its H lie, and how far H has turned from its start. For inputs of
    one length. Writes readings.csv and value_spectra.csv.
    """
    from oversmoothing.commands.tables import finish
    from oversmoothing.experiments.models.sources import named_inputs, named_model
    from oversmoothing.experiments.study.readings import readings as read
    from oversmoothing.theory.support.files import output_folder

    opened = named_model(model, out, seed=seed, device=device, data_dir=data_dir)
    # No remark on which pictures stand in: the table says how many.
    inputs = named_inputs(
        opened, images=images, text=text, count=count, data_dir=data_dir, quiet=True
    )
    names = list(readings or ("E1", "E2"))
    folder = output_folder(out)
    finish(read(opened, inputs, names, "folded" if folded else "unfolded", costly), folder, False)
