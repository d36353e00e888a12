"""`oversmoothing train`: a shared-value ViT, H free, of one sign or in a region."""

from typing import Annotated, Literal

from typer import Argument, Option

from oversmoothing.commands import options as opt


def train(
    config: Annotated[
        str | None,
        Argument(
            metavar="CONFIG.toml", help="Configuration fields, as TOML (or .json; - is JSON)."
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="One that comes with the package: cifar100-vit-ti (the paper's size), "
            "cifar10-vit-ti, cifar100-small.",
        ),
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
    data_dir: opt.DataDir = None,
    hub: Annotated[
        bool, Option("--hub", help="Fetch CIFAR from the Hugging Face hub where it is not there.")
    ] = False,
    device: opt.Device = "auto",
    out: opt.Out = opt.RESULTS,
) -> None:
    """Train a shared-value ViT on digits or CIFAR: H free, of one sign or in a region.

    Every head mixes the same values, heads.mean(1) @ (y @ H^T); none has values of its own.

    A model that was trained before with the same configuration is read back; one that was
    interrupted, be it by Ctrl-C or a kill, goes on from its last checkpoint. On several GPUs:
    accelerate launch -m oversmoothing train ...
    """
    from oversmoothing.commands.tables import table_text
    from oversmoothing.experiments.digits.config import configurations
    from oversmoothing.experiments.digits.training import trained, training_table
    from oversmoothing.experiments.digits.training_loop import Keeping
    from oversmoothing.experiments.inspection.watcher import Watcher
    from oversmoothing.experiments.models.pictures import real_inputs
    from oversmoothing.simulations.engine.problem import choose_device
    from oversmoothing.theory.support.files import output_folder

    configs = configurations(config, variant, seed, recipe)
    chosen = choose_device(device)
    # Without a limit of its own: what is recorded must not depend on the machine.
    keeping = Keeping(watch=lambda model, every: Watcher(model, every=every, budget=None))
    data = real_inputs(data_dir)
    # Three models, their logs and what stands beside them while they are written.
    results = output_folder(out, room=2**24)
    models = []
    for each in configs:
        stored = (results / each.folder_name()).exists()
        found = trained(each, results, device=chosen, data_dir=data, hub=hub, keeping=keeping)
        models.append((found, stored))
    print(table_text(training_table(models)))
