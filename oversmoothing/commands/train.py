"""`oversmoothing train`: the digits models, ordinary, smoothing and sharpening."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from oversmoothing.theory.support.errors import InputError

if TYPE_CHECKING:
    from oversmoothing.experiments.digits.training import TrainedModel

TRAINABLE = ("vit", "vit+", "vit-")


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("config", nargs="?", metavar="CONFIG.json", help="an object of configuration fields")
    add("--variant", choices=[*TRAINABLE, "all"], help="form of H (default: CONFIG's, or all)")
    add("--seed", type=int, help="of weights, order and augmentation (default: CONFIG's, or 0)")
    _add_common_arguments(parser)


def _add_common_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--device", default="auto", help="auto, cpu or cuda (default %(default)s)")
    add("--out", default="results", metavar="DIR", help="folder of the runs (default %(default)s)")


def run(arguments: Namespace) -> int:
    from oversmoothing.experiments.digits.training import trained
    from oversmoothing.simulations.engine.inputs import choose_device
    from oversmoothing.theory.support.files import output_folder

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
    from oversmoothing.theory.support.files import read_text

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
    from oversmoothing.experiments.digits.config import TrainConfig

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
