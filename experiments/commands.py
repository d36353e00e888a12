"""What `experiments` offers to the command line: train, inspect, certify and measure."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theory.command import Command, lazy_command
from theory.errors import InputError

if TYPE_CHECKING:
    from experiments.train import TrainedModel

TRAINABLE = ("vit", "vit+", "vit-")


def _add_train_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("config", nargs="?", metavar="CONFIG.json", help="an object of configuration fields")
    add("--variant", choices=[*TRAINABLE, "all"], help="form of H (default: CONFIG's, or all)")
    add("--seed", type=int, help="of weights, order and augmentation (default: CONFIG's, or 0)")
    _add_common_arguments(parser)


def _add_common_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--device", default="auto", help="auto, cpu or cuda (default %(default)s)")
    add("--out", default="results", metavar="DIR", help="folder of the runs (default %(default)s)")


def _train(arguments: Namespace) -> int:
    from experiments.train import trained
    from simulations.inputs import choose_device
    from theory.files import output_folder

    fields = _read_config(arguments.config)
    configs = _configs(fields, arguments)
    device = choose_device(arguments.device)
    results = output_folder(arguments.out)
    models = []
    for config in configs:
        stored = (results / config.folder_name()).exists()
        models.append((trained(config, results, device=device), stored))
    print(_training_table(models))
    return 0


def _read_config(path: str | None) -> dict[str, Any]:
    from theory.files import read_text

    if path is None:
        return {}
    try:
        value = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"'{path}' is not JSON ({error}): mend it there") from error
    if not isinstance(value, dict):
        raise InputError(f"'{path}' must hold a JSON object, {{...}}, of configuration fields")
    return value


def _configs(fields: dict[str, Any], arguments: Namespace) -> list[Any]:
    from experiments.config import TrainConfig

    if arguments.variant == "all" or (arguments.variant is None and "variant" not in fields):
        variants = list(TRAINABLE)
    else:
        variants = [arguments.variant or fields["variant"]]
    given = {} if arguments.seed is None else {"seed": arguments.seed}
    source = arguments.config or "the command line"
    return [
        TrainConfig.from_json_object({**fields, **given, "variant": variant}, str(source))
        for variant in variants
    ]


def _training_table(models: list[tuple[TrainedModel, bool]]) -> str:
    import pandas as pd

    rows = []
    for model, stored in models:
        log, metrics = model.run.log, model.run.metrics
        kept = log[log["epoch"] == metrics["selected_epoch"]]
        rows.append(
            {
                "model": metrics["variant"],
                "seed": model.config.seed,
                "test accuracy": f"{metrics['test_correct']}/{metrics['test_count']} = "
                f"{100 * metrics['test_accuracy']:.2f} %",
                "epoch kept": metrics["selected_epoch"],
                "Re h": f"{kept['h_real_min'].min():.3f} to {kept['h_real_max'].max():.3f}",
                "seconds": "cached" if stored else f"{metrics['seconds']:.1f}",
                "folder": str(model.run.folder),
            }
        )
    return pd.DataFrame(rows).to_string(index=False)


def _add_certify_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="MODEL", help="a vision model: folder, checkpoint or hub name")
    add("--images", metavar="DIR", help="image files, or cifar100: its test images in --data-dir "
        "(default: scikit-learn's photographs)")  # fmt: skip
    add("--count", type=int, default=5, help="images (default %(default)s)")
    add("--data-dir", metavar="DIR", help="external models and data (or $OVERSMOOTHING_DATA)")
    add("--out", metavar="DIR", help="write certified_attention.csv there")


def _certify_model(arguments: Namespace) -> int:
    from experiments.certified_attention import certified_attention, summary
    from experiments.pictures import named_pictures
    from experiments.pretrained import load_vit, photographs
    from theory.files import write_atomically

    if arguments.count < 1:
        raise InputError(f"--count is {arguments.count}: it must be at least 1")
    vit = load_vit(arguments.model)
    if arguments.images is None:
        images = photographs(arguments.count)
    else:
        images = list(named_pictures(arguments.images, arguments.count, arguments.data_dir))
    table = certified_attention(vit, vit.prepare(images))
    print(summary(table))
    if arguments.out is not None:
        path = Path(arguments.out) / "certified_attention.csv"
        print(f"wrote {write_atomically(path, table.to_csv(index=False))}")
    return 0


COMMANDS = [
    Command(
        "train",
        "train the digits models: ordinary, smoothing, sharpening",
        _add_train_arguments,
        _train,
    ),
    lazy_command(
        "inspect",
        "does a trained model smooth, where, by which sublayer, and why",
        "experiments.inspect_command",
    ),
    Command(
        "certify-model",
        "certified verdicts on the attention of a trained vision model",
        _add_certify_arguments,
        _certify_model,
    ),
    lazy_command(
        "readings",
        "which eigenvalue dominates a trained model's layers, in every reading of Table 1",
        "experiments.readings_command",
    ),
    lazy_command(
        "ladder",
        "which cheap theory predicts the smoothing of a trained model, scored",
        "experiments.bridge.predict.ladder_command",
    ),
    lazy_command(
        "bench",
        "speed and accuracy against their targets, as ratios in one run",
        "experiments.bench_command",
    ),
]
