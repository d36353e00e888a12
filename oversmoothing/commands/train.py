"""`oversmoothing train`: the digits models, ordinary, smoothing and sharpening."""

from typing import Annotated, Literal

from typer import Argument, Option

from oversmoothing.commands import options as opt


def train(
    config: Annotated[
        str | None, Argument(metavar="CONFIG.json", help="An object of configuration fields.")
    ] = None,
    variant: Annotated[
        Literal[
            "vit",
            "vit+",
            "vit-",
            "vit-clip-minus",
            "vit-clip-plus",
            "vit-sigmoid-minus",
            "vit-sigmoid-plus",
            "vit-disc",
            "vit-interval",
            "vit-band",
            "all",
        ]
        | None,
        Option(
            metavar="NAME",
            help="Form of H: vit (free), vit+, vit-, or vit-FORM with FORM one of clip-minus, "
            "clip-plus, sigmoid-minus, sigmoid-plus, disc, interval, band (default: CONFIG's, or "
            "all: the first three).",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        Option(metavar="N", help="Of weights, order, augmentation (default: CONFIG's, or 0)."),
    ] = None,
    device: opt.Device = "auto",
    out: opt.Out = opt.RESULTS,
) -> None:
    """Train the digits models: ordinary, smoothing, sharpening, or with H in a region.

    A model that was trained before with the same configuration is read back.
    """
    from oversmoothing.commands.tables import table_text
    from oversmoothing.experiments.digits.config import configurations
    from oversmoothing.experiments.digits.training import trained
    from oversmoothing.experiments.digits.training_table import training_table
    from oversmoothing.simulations.engine.inputs import choose_device
    from oversmoothing.theory.support.files import output_folder

    configs = configurations(config, variant, seed)
    chosen = choose_device(device)
    # Three models, their logs and what stands beside them while they are written.
    results = output_folder(out, room=2**24)
    models = []
    for each in configs:
        stored = (results / each.folder_name()).exists()
        models.append((trained(each, results, device=chosen), stored))
    print(table_text(training_table(models)))
