"""The models that figures show: untrained, of digits, of CIFAR-100, of ImageNet; and records.

The untrained ViT-B/16 and the four digits models, trained once and cached, are always there.
DeiT-Ti is there where the folder of real inputs (OVERSMOOTHING_DATA) holds it. Runs of CIFAR-100
are those in the folder of results, of each variant the one that was trained longest among the
largest. A recorded run is the file that a command of minutes to hours wrote, with its provenance: a
figure that draws one names it.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from oversmoothing.experiments.digits.data import digits
from oversmoothing.experiments.digits.training import (
    TrainedModel,
    load_model,
    require_accuracy,
    trained,
)
from oversmoothing.experiments.digits.training_config import (
    TRAINED,
    VARIANTS,
    TrainConfig,
    default_config,
)
from oversmoothing.experiments.models.library import TimmViT
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.models.pictures import (
    named_pictures,
    photographs,
    real_inputs,
    within,
)
from oversmoothing.experiments.models.sources import open_model
from oversmoothing.paper_figures.figure_base import Context
from oversmoothing.simulations.drawing.picture import PALETTE
from oversmoothing.simulations.state import choose_device
from oversmoothing.theory.support.files import parse_json

LABEL = {"vit-random": "untrained", "vit": "ViT", "vit+": "ViT+", "vit-": "ViT\u2212"}
COLOUR = {
    "vit-random": PALETTE["green"],
    "vit": PALETTE["black"],
    "vit+": PALETTE["blue"],
    "vit-": PALETTE["vermillion"],
}
assert set(LABEL) == set(VARIANTS)
# What arXiv 2401.04301 (first version) reports of CIFAR-100, per cent correct, mean and sd: ViT-Ti,
# ViT-Ti+ and ViT-Ti- over runs whose number it does not state; as printed on its poster. Other data
# at another size than the digits: a comparison, never a reproduction.
# Table 2: by the share of the training images.
DATA_EFFICIENCY = {
    "vit": {1.0: (66.78, 0.1), 0.5: (56.38, 0.5), 0.1: (32.47, 0.9)},
    "vit+": {1.0: (64.34, 0.3), 0.5: (55.21, 0.5), 0.1: (28.67, 0.5)},
    "vit-": {1.0: (66.62, 0.3), 0.5: (56.58, 0.3), 0.1: (33.99, 0.4)},
}
# Table 3: by the intensity of the corruption, 0 to 5.
CORRUPTION = {
    "vit": (66.78, 61.59, 57.75, 53.12, 49.32, 39.17),
    "vit+": (64.34, 58.36, 53.83, 49.03, 45.15, 35.86),
    "vit-": (66.62, 61.62, 58.00, 53.56, 49.70, 40.07),
}
CIFAR = "CIFAR-100"
DEIT = "deit-tiny-patch16-224"
# The test errors of the paper's three models with all images of CIFAR-100, in per cent.
PAPER_ERROR = {variant: 100 - row[1.0][0] for variant, row in DATA_EFFICIENCY.items()}
# The column of the paper's table that a variant stands beside.
COLUMN = {"vit": "ViT-Ti", "vit+": "ViT-Ti+", "vit-": "ViT-Ti\u2212"}
UNTRAINED = "random ViT-B/16"
# Of its weights.
STD = 0.02


def recorded_run(experiment: str, name: str) -> dict[str, Any]:
    """The JSON of `experiments/EXPERIMENT/results/NAME`, a recorded run of a command."""
    file = resources.files(f"oversmoothing.experiments.{experiment}") / "results" / name
    run: dict[str, Any] = parse_json(file.read_text("utf-8"), name)
    return run


def digits_models(context: Context) -> dict[str, TrainedModel]:
    """Every model at the context's seed, from `context.results` or trained into it.

    Raises `RequirementError` where a trained one misses the required test accuracy, and
    `InputError` for a damaged cached run.
    """
    folders = (context.results / default_config(name, context.seed).folder_name() for name in LABEL)
    missing = sum(not folder.exists() for folder in folders)
    if missing:
        said = f"first trains small models of digits, {missing} of {len(LABEL)}, into"
        took = "about 2 minutes of CPU time for all; the next run takes them from there"
        print(f"{said} {context.results}: {took}", file=sys.stderr, flush=True)
    models = {name: digits_model(name, context) for name in LABEL}
    for each in models.values():
        require_accuracy(each)
    return models


def digits_model(name: str, context: Context) -> TrainedModel:
    """One of them, however accurate."""
    config, device = default_config(name, context.seed), choose_device(context.device)
    return trained(config, context.results, device=device, progress=context.progress)


@dataclass(frozen=True)
class Shown:
    """label: in a legend. column: of the paper's models, the one that it stands beside. data: what
    it was trained on ('' for none). model, inputs: as `inspect` takes them. trained: of a run of
    this project, its size and training in words; test_error: in per cent."""

    label: str
    column: str
    variant: str
    data: str
    model: Model
    inputs: Any
    trained: str = ""
    test_error: float = float("nan")


def untrained_vit(
    seed: int, *, width: int = 768, depth: int = 12, heads: int = 12, patch: int = 16,
    side: int = 224,
) -> TimmViT:  # fmt: skip
    """A ViT-B/16 in evaluation mode, drawn from a generator of its own; without a classifier.

    Of timm's shapes and initialisation: linear weights and positions from a normal of standard
    deviation .02 cut at two, biases 0, gains 1. What the paper's own was drawn from is not stated.
    """
    model = TimmViT(
        width=width, depth=depth, heads=heads, patch=patch, image_size=side, hidden=4 * width,
        classes=0,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            _cut_normal(module.weight, generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    for token in (model.pos_embed, model.cls_token):
        _cut_normal(token, generator)
    return model.eval()


def _cut_normal(weight: Tensor, generator: torch.Generator) -> None:
    nn.init.trunc_normal_(weight, std=STD, a=-2 * STD, b=2 * STD, generator=generator)


def untrained(context: Context) -> Shown:
    """A ViT-B/16 before training, on scikit-learn's two photographs."""
    model = open_model(untrained_vit(context.seed)).renamed(UNTRAINED)
    return Shown(UNTRAINED, UNTRAINED, "vit-random", "", model, photographs(2))


def trained_here(context: Context, images: int, untrained: bool = False) -> Iterator[Shown]:
    """ViT, ViT+ and ViT- on `images` validation images of the digits, then runs of CIFAR-100.
    untrained: the digits' model that is not trained, first."""
    models = digits_models(context)
    pixels = digits().validation.pixels[:images]
    for variant, run in models.items():
        if variant in TRAINED or untrained:
            yield _shown(variant, "digits", run, open_model(run.model), pixels)
    if real_inputs() is None:
        return
    for variant, run in cifar_runs(context.results).items():
        pictures = named_pictures("cifar100", images, None)
        yield _shown(variant, CIFAR, run, open_model(run.run.folder), pictures)


def _shown(variant: str, data: str, run: TrainedModel, model: Model, inputs: Any) -> Shown:
    label = f"{LABEL[variant]}, {data}"
    return Shown(
        label, COLUMN.get(variant, ""), variant, data, model.renamed(label), inputs,
        in_words(run.config) if variant in TRAINED else "", test_error(run),
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

    def rank(run: TrainedModel) -> tuple[float, ...]:
        config = run.config
        seen = config.epochs * config.fraction
        return run.run.metrics["parameters"], seen, config.fraction, -config.seed

    folders = sorted(results.glob("cifar100-vit*"))
    runs = [load_model(each) for each in folders if (each / "manifest.json").exists()]
    own = {name: [run for run in runs if run.config.variant == name] for name in TRAINED}
    return {name: max(each, key=rank) for name, each in own.items() if each}


def on_imagenet(images: int) -> Shown | None:
    """DeiT-Ti on photographs of ImageNet's kind, where both are there."""
    folder, label = Path(within(DEIT, None)), "DeiT-Ti, ImageNet"
    if not (folder.exists() and Path(within("photographs", None)).exists()):
        return None
    pictures = named_pictures("photographs", images, None)
    return Shown(label, "DeiT-B/16", "vit", "ImageNet", open_model(folder).renamed(label), pictures)
