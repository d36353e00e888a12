"""The models beside the paper's: untrained, trained on digits, on CIFAR-100, on ImageNet.

The untrained ViT-B/16 and the digits models are always there. DeiT-Ti is there where the folder of
real inputs (OVERSMOOTHING_DATA) holds it. Runs of CIFAR-100 are those in the folder of results, of
each variant the one that was trained longest among the largest; where there is none, what was
recorded of the study's is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from oversmoothing.experiments.digits.config import TRAINED, TrainConfig
from oversmoothing.experiments.digits.data import digits
from oversmoothing.experiments.digits.training import TrainedModel, load_model
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.models.pictures import (
    named_pictures,
    photographs,
    real_inputs,
    within,
)
from oversmoothing.experiments.models.sources import open_model
from oversmoothing.experiments.study.protocol import DATA_EFFICIENCY
from oversmoothing.experiments.study.table1_models import untrained_vit
from oversmoothing.paper_figures import study_results
from oversmoothing.paper_figures.digits_models import LABEL, digits_models
from oversmoothing.paper_figures.figure_base import Context

CIFAR = "CIFAR-100"
DEIT = "deit-tiny-patch16-224"
# The test errors of the paper's three models with all images of CIFAR-100, in per cent.
PAPER_ERROR = {variant: 100 - row[1.0][0] for variant, row in DATA_EFFICIENCY.items()}
# The column of the paper's table that a variant stands beside.
COLUMN = {"vit": "ViT-Ti", "vit+": "ViT-Ti+", "vit-": "ViT-Ti\u2212"}
UNTRAINED = "random ViT-B/16"


@dataclass(frozen=True)
class Shown:
    """label: in a legend. column: of the paper's models, the one that it stands beside. data: what
    it was trained on ('' for none). model, inputs: as `inspect` takes them; images: how many.
    trained: of a run of this project, its size and training in words; test_error: in per cent."""

    label: str
    column: str
    variant: str
    data: str
    model: Model
    inputs: Any
    images: int
    trained: str = ""
    test_error: float = float("nan")


def untrained(context: Context) -> Shown:
    """A ViT-B/16 before training, on scikit-learn's two photographs."""
    model = open_model(untrained_vit(context.seed)).renamed(UNTRAINED)
    return Shown(UNTRAINED, UNTRAINED, "vit-random", "", model, photographs(2), 2)


def trained_here(context: Context, images: int) -> Iterator[Shown]:
    """The shared-value ViT, ViT+ and ViT- on `images` validation images of the digits, then runs of
    CIFAR-100."""
    found = digits_models(context)
    pixels = digits().validation.pixels[:images]
    for variant in TRAINED:
        label = f"{LABEL[variant]}, digits"
        model = open_model(found[variant].model).renamed(label)
        yield Shown(
            label, COLUMN[variant], variant, "digits", model, pixels, len(pixels),
            in_words(found[variant].config), test_error(found[variant]),
        )  # fmt: skip
    if real_inputs() is None:
        return
    for variant, run in cifar_runs(context.results).items():
        label = f"{LABEL[variant]}, {CIFAR}"
        pictures = named_pictures("cifar100", images, None)
        model = open_model(run.run.folder).renamed(label)
        yield Shown(
            label, COLUMN[variant], variant, CIFAR, model, pictures, len(pictures),
            in_words(run.config), test_error(run),
        )  # fmt: skip


def test_error(run: TrainedModel) -> float:
    """In per cent of the test images."""
    return 100 * (1 - float(run.run.metrics["test_accuracy"]))


def in_words(config: TrainConfig) -> str:
    """'depth 8, width 96, 8 epochs, seed 0'."""
    return (
        f"depth {config.depth}, width {config.width}, {config.epochs} epochs"
        f"{'' if config.fraction == 1 else f' of {config.fraction:g} of the images'}"
        f", seed {config.seed}"
    )


def cifar_runs(results: Path) -> dict[str, TrainedModel]:
    """By variant, the run of CIFAR-100 in a folder of results with the most parameters, then the
    most training images seen, the largest share of them, the least seed; {} where there is none."""
    best: dict[str, tuple[tuple[float, ...], TrainedModel]] = {}
    for folder in sorted(results.glob("cifar100-vit*")):
        if not (folder / "manifest.json").exists():
            continue
        found = load_model(folder)
        config = found.config
        seen = config.epochs * config.fraction
        rank = (found.run.metrics["parameters"], seen, config.fraction, -config.seed)
        if config.variant in TRAINED and (
            config.variant not in best or rank > best[config.variant][0]
        ):
            best[config.variant] = rank, found
    return {variant: best[variant][1] for variant in TRAINED if variant in best}


def recorded_cifar(part: str, results: Path) -> tuple[pd.DataFrame, str]:
    """Of CIFAR-100, rows of the recorded study's first seed, 'streams' or 'watched', and its
    models in words; no rows where the folder of results holds runs of its own. test_error: of the
    run, in per cent."""
    if cifar_runs(results) or (found := study_results.recorded_runs("cifar100")) is None:
        return pd.DataFrame(), ""
    rows: pd.DataFrame = getattr(found, part)
    seed = min(found.chosen.seeds)
    words = f"{in_words(found.chosen.run({}, seed).config)}, recorded {found.made['date']}"
    if len(rows):
        rows = rows[rows["seed"] == seed]
        errors = found.runs.set_index("run")["test_error"]
        rows = rows.assign(test_error=rows["run"].map(errors))
    return rows, words


def on_imagenet(images: int) -> Shown | None:
    """DeiT-Ti on photographs of ImageNet's kind, where both are there."""
    if not (Path(within(DEIT, None)).exists() and Path(within("photographs", None)).exists()):
        return None
    pictures = named_pictures("photographs", images, None)
    label = "DeiT-Ti, ImageNet"
    model = open_model(Path(within(DEIT, None))).renamed(label)
    return Shown(label, "DeiT-B/16", "vit", "ImageNet", model, pictures, len(pictures))
