"""What the trainer costs: its steps against a plain loop of torch, and what its instruments add.

The paper's ViT-Ti on random images of CIFAR's size, and the digits model of the figures, whose
steps are so short that instruments weigh most there.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch.nn import functional

from benchmarks.benchmark import Row, measurement
from oversmoothing.experiments.digits.data import DataParts, LabelledImages, digits
from oversmoothing.experiments.digits.training import new_model
from oversmoothing.experiments.digits.training_config import TrainConfig, recipe
from oversmoothing.experiments.digits.training_loop import Loop, accelerator_of
from oversmoothing.experiments.inspection.watcher import Watcher
from oversmoothing.experiments.intervals import interleaved_medians

BATCH = {"cpu": 8, "cuda": 512}


def trainer(config: TrainConfig, data: DataParts, device: str) -> Loop:
    """A run that is stepped by hand."""
    model = new_model(config).to(device).train()
    return Loop(model, config, data.to(device), accelerator_of(config, device))


def one_step(loop: Loop) -> None:
    """On the first images, outside of any epoch."""
    loop.one(torch.arange(min(loop.config.batch_size, len(loop.data.train))), 10**6)


def pictures(count: int) -> DataParts:
    """Random images of CIFAR's size and classes."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (count, 3, 32, 32), generator=generator, dtype=torch.uint8)
    images = LabelledImages(pixels, torch.randint(0, 100, (count,), generator=generator))
    return DataParts(images, images, images)


def plain_step(config: TrainConfig, data: DataParts, device: str) -> Callable[[], None]:
    """The same model, batch and loss in a loop as anyone writes it, nothing augmented."""
    model = new_model(config).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, fused=True)
    images, generator = data.train.to(device), torch.Generator().manual_seed(0)

    def step() -> None:
        chosen = torch.randperm(len(images), generator=generator)[: config.batch_size].to(device)
        optimizer.zero_grad()
        scores = model(images.inputs(chosen))
        loss = functional.cross_entropy(
            scores, images.labels[chosen], label_smoothing=config.label_smoothing
        )
        torch.autograd.backward(loss)
        optimizer.step()

    return step


@measurement("trainer/throughput", "a plain loop of torch over the trainer's steps", cuda=True)
def throughput(device: str) -> list[Row]:
    """The paper's ViT-Ti in float32, without augmentation in either, then with DeiT's."""
    fields = {**recipe("cifar100-vit-ti"), "precision": "float32", "batch_size": BATCH[device]}
    bare = {"augmentation": "affine", "shift": 0.0, "rotation": 0.0, "zoom": 0.0, "drop_path": 0.0}
    data = pictures(4 * BATCH[device])
    config = TrainConfig(**{**fields, **bare})
    loops = [trainer(each, data, device) for each in (config, TrainConfig(**fields))]
    wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    plain, ours, deit = interleaved_medians(
        [plain_step(config, data, device), *(partial(one_step, each) for each in loops)], 5, wait
    )
    note = f"ViT-Ti of the paper, 65 tokens, batch {BATCH[device]}, float32"
    return [
        Row("trainer: its throughput / that of a plain loop", plain / ours, {"plain": plain}, note,
            at_least=0.9),
        Row("trainer: the same with the augmentations of DeiT", plain / deit, {"deit": deit}),
    ]  # fmt: skip


@measurement("trainer/instruments", "what instruments add to a training of the digits")
def instruments() -> list[Row]:
    """A step that is watched and one that is not, at the default's steps between two looks."""
    config = TrainConfig()
    loops = [trainer(config, digits(), "cpu") for _ in range(2)]
    loops[1].instruments = Watcher(loops[1].model, every=1, budget=None)
    plain, watched = interleaved_medians([partial(one_step, each) for each in loops], 15)
    share = (watched / plain - 1) / config.watch_every
    return [
        Row(f"trainer: instruments at every {config.watch_every}th step / the steps", share,
            {"plain": plain, "watched": watched},
            "digits ViT, 6 layers, batch 32; metrics and H", at_most=0.05),
    ]  # fmt: skip
