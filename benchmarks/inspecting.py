"""What inspecting a model costs, against a plain forward pass on the same inputs."""

import time
from functools import partial
from typing import Any

import torch

from benchmarks.benchmark import Row, measurement
from oversmoothing.experiments.inspection.budget import Plan
from oversmoothing.experiments.inspection.extract import stream
from oversmoothing.experiments.inspection.inspect import inspect
from oversmoothing.experiments.intervals import interleaved_medians
from oversmoothing.experiments.models.describe import describe
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.models.sources import open_model

IMAGES, BATCH = 192, 32


def vit(width: int = 192, heads: int = 3, depth: int = 12) -> Model:
    """A randomly initialised ViT of the shape of DeiT-Ti: 197 tokens, 12 layers."""
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(
        hidden_size=width,
        num_attention_heads=heads,
        num_hidden_layers=depth,
        intermediate_size=4 * width,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return open_model(ViTModel(config)).renamed("random DeiT-Ti")


@measurement("bridge/inspect", "inspecting a model against its forward pass")
def cost() -> list[Row]:
    """Extraction, and inspecting without spectra, against a forward pass; spectra per image."""
    model = vit()
    pixels = torch.randn((IMAGES, 3, 224, 224), generator=torch.Generator().manual_seed(0))

    @torch.no_grad()
    def forward() -> Any:
        for part in torch.split(pixels, BATCH):
            model.run(part)

    def extraction() -> None:
        for _ in stream(model, pixels, batch_size=BATCH):
            pass

    def whole() -> object:
        return inspect(model, pixels, batch_size=BATCH)

    plain, extracted, inspected = interleaved_medians([forward, extraction, whole], 3)
    one = pixels[:4]
    without, spectra = interleaved_medians(
        [
            lambda: inspect(model, one, budget=Plan(4, 4, 4, 0, 1), batch_size=4),
            lambda: inspect(model, one, budget=Plan(4, 4, 4, 4), batch_size=4),
        ],
        1,
    )
    an_image = plain / IMAGES
    note = f"{IMAGES} images, DeiT-Ti shape, float32, one thread"
    both = {"forward": plain, "extraction": extracted}
    whole_pass = {"forward": plain, "inspect": inspected}
    an_input = (spectra - without) / 4
    return [
        Row("bridge: extraction with A V check / forward pass", extracted / plain, both, note),
        Row("bridge: inspect without spectra / forward pass", inspected / plain, whole_pass, note,
            at_most=5.0),
        Row("bridge: spectra (E2, tilt) of an image / its forward pass", an_input / an_image,
            {"spectra of an image": an_input}, "n = 197, 12 layers"),
    ]  # fmt: skip


@measurement("bridge/reading", "reading a model once against its forward pass")
def reading() -> list[Row]:
    """In processor time: two passes, one of them watched, and what is tried on pieces of it."""
    rows = []
    for shape, width, heads, most in (("DeiT-Ti", 192, 3, 8.0), ("ViT-B", 768, 12, 5.0)):
        module = vit(width, heads).module
        pixels = torch.randn((2, 3, 224, 224), generator=torch.Generator().manual_seed(0))
        runs = [torch.no_grad()(partial(module, pixels)), partial(describe, module)]
        plain, once = interleaved_medians(runs, 5, clock=time.process_time)
        rows.append(
            Row(f"bridge: reading once / forward pass, {shape}", once / plain,
                {"forward": plain, "reading": once}, "2 images, 12 layers, float32, one thread",
                at_most=most)
        )  # fmt: skip
    return rows
