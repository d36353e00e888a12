"""Trained models put into T7b's band: do they train on, stay inside, and what does a step cost?

Label-free: each model learns back what it said before it was changed. DeiT-Ti: its class
probabilities on 8 photographs at 96 x 96 pixels (37 tokens), 2 a step. stories260K (4 groups of 8
heads share keys and values): texts of 32 tokens that it had written itself, 4 a step.
"""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrize

from benchmarks.benchmark import Row, measurement
from benchmarks.inspecting import vit
from oversmoothing.experiments.forms.reparameterise import Reparameterised, reparameterise
from oversmoothing.experiments.intervals import interleaved_medians
from oversmoothing.experiments.models.pictures import photographs, real_inputs
from oversmoothing.experiments.models.sources import open_model
from oversmoothing.theory.support.errors import InputError

STEPS, PICTURES, BATCH = 200, 8, 8
Loss = Callable[[int], Tensor]


def train_on(name: str, changed: Reparameterised, loss: Loss, rate: float) -> list[Row]:
    """STEPS of AdamW; whether the loss falls, and in how many every H was inside after the step."""
    optimizer = torch.optim.AdamW(changed.module.parameters(), lr=rate)
    losses, inside = [], 0
    for step in range(STEPS):
        optimizer.zero_grad()
        with parametrize.cached():
            value = loss(step)
            torch.autograd.backward(value)
        optimizer.step()
        losses.append(float(value.detach()))
        inside += bool((changed.check()["region"] == "inside").all())
    first, last = sum(losses[:8]) / 8, sum(losses[-8:]) / 8
    return [
        Row(f"{name} in the band: loss of the last 8 of {STEPS} steps / of the first 8",
            last / first, note=f"{first:.3g} to {last:.3g}", at_most=0.5),
        Row(f"{name} in the band: steps after which every H is inside", inside / STEPS,
            at_least=1.0),
    ]  # fmt: skip


def deit(folder: Path) -> list[Row]:
    """DeiT-Ti on photographs, held to its own class probabilities."""
    model = open_model(folder / "deit-tiny-patch16-224")
    batch = model.prepare(photographs(PICTURES))
    pixels = functional.interpolate(batch, size=96, mode="bilinear")

    def said(at: slice) -> Tensor:
        output: Any = model.module(pixel_values=pixels[at], interpolate_pos_encoding=True)
        scores: Tensor = output.logits
        return scores.log_softmax(-1)

    with torch.no_grad():
        goal = said(slice(None))

    def loss(step: int) -> Tensor:
        at = slice(2 * step % PICTURES, 2 * step % PICTURES + 2)
        return functional.kl_div(said(at), goal[at], log_target=True, reduction="batchmean")

    return train_on("DeiT-Ti", reparameterise(model.module, "band"), loss, 3e-4)


def stories(folder: Path) -> list[Row]:
    """The small decoder on texts that it wrote itself."""
    model = open_model(folder / "stories260K")
    module: Any = model.module
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        start = torch.full((16, 1), module.config.bos_token_id)
        texts = module.generate(start, do_sample=True, max_new_tokens=31, min_new_tokens=31)

    def loss(step: int) -> Tensor:
        part = texts[4 * step % 16 :][:4]
        value: Tensor = module(input_ids=part, labels=part, use_cache=False).loss
        return value

    return train_on("stories260K", reparameterise(module, "band"), loss, 3e-3)


@measurement("reparameterised/training", "trained models put into the band train on", data=True)
def training() -> list[Row]:
    """Both models; some minutes."""
    folder = real_inputs()
    if folder is None:
        raise InputError("real inputs are needed: set OVERSMOOTHING_DATA to their folder")
    return stories(folder) + deit(folder)


def training_step(module: nn.Module, pixels: Tensor) -> Callable[[], None]:
    """One step of AdamW on a loss of its own."""
    optimizer = torch.optim.AdamW(module.parameters())

    def step() -> None:
        with parametrize.cached():
            torch.autograd.backward(module(pixels).last_hidden_state.square().mean())
        optimizer.step()
        optimizer.zero_grad()

    return step


@measurement("reparameterised/overhead", "a training step with H in a region to one without")
def overhead() -> list[Row]:
    """A random ViT of DeiT-Ti's shape, every layer reparameterised."""
    pixels = torch.randn((BATCH, 3, 224, 224), generator=torch.Generator().manual_seed(0))
    modules = [deepcopy(vit().module).train() for _ in range(3)]
    for module, form in zip(modules[1:], ("band", "disc"), strict=True):
        reparameterise(module, form)
    plain, band, disc = interleaved_medians([training_step(each, pixels) for each in modules], 3)
    note = f"DeiT-Ti shape, 12 layers, batch {BATCH}, 197 tokens, float32, one thread"
    return [
        Row("a training step in the band / without", band / plain, {"plain": plain}, note),
        Row("a training step in the disc / without", disc / plain, {"plain": plain}, note),
    ]
