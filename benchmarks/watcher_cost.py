"""What watching a training costs: steps of a ViT of DeiT-Ti's shape, watched and not."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial

import torch

from benchmarks.benchmark import Row, measurement
from benchmarks.inspecting import vit
from oversmoothing.experiments.inspection.watcher import Watcher
from oversmoothing.experiments.intervals import interleaved_medians

EVERY = 50
BATCH = {"cpu": 8, "cuda": 128}
# But for the first step, which warms up.
NEVER = 10**9


def training_step(device: str, every: int | None) -> Callable[[], None]:
    """One step of AdamW on a random ViT of its own and random pixels; every=None: not watched."""
    model = deepcopy(vit().module).to(device).train()
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randn((BATCH[device], 3, 224, 224), generator=generator).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    watcher = None if every is None else Watcher(model, every=every, budget=None)

    def step() -> None:
        torch.autograd.backward(model(pixels).last_hidden_state.square().mean())
        optimizer.step()
        optimizer.zero_grad()
        if watcher is not None:
            watcher.step()

    return step


@measurement("watcher/overhead", "a training with a Watcher against one without", cuda=True)
def overhead(device: str) -> list[Row]:
    """A step that is watched, one at which the hooks are idle, and their share of the training."""
    steps = list(map(partial(training_step, device), (None, NEVER, 1)))
    wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    plain, idle, watched = interleaved_medians(steps, 3, wait)
    note = f"DeiT-Ti shape, batch {BATCH[device]}, float32; metrics and H of 12 layers"
    every = {"plain": plain, "idle": idle, "watched": watched}
    share = (watched / plain - 1) / EVERY
    return [
        Row(f"watcher: what is added at every {EVERY}th step / the steps", share, every, note,
            at_most=0.05),
        Row("watcher: a step that is watched / one that is not", watched / plain),
        Row("watcher: a step with idle hooks / one without", idle / plain),
    ]  # fmt: skip
