"""The loop: Accelerate's devices, precision and processes around it, exact to resume.

Every random number comes from a generator that a checkpoint keeps; what is drawn in a step is drawn
in the same way whether the run was interrupted or not. Ctrl-C (and SIGTERM) ends a run behind the
step in work, not in it; a second one at once.

A training batch becomes slight affine moves of itself, or goes through the recipe of DeiT (Touvron
et al. 2021, arXiv 2012.12877, Table 9) with the operations of kornia: RandAugment at 9 of 10 (27 of
kornia's 30; each operation with probability 1/2, as there), random crops and flips, erasing with
probability 1/4, then for each batch mixup (Beta(.8, .8)) or CutMix (Beta(1, 1)), one or the other.
As usual at 32 x 32 pixels a crop is one of the image with a margin of 4 pixels, not a resized part.
kornia draws one pair of operations for a batch: so that images differ, a batch is augmented in
groups. Its operations are not those of timm one by one (its colours only gain contrast, solarising
is weaker); shears and translations reach as far as timm's.
"""

import math
import os
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm

from oversmoothing.experiments.digits.data import DataParts, LabelledImages, augmented
from oversmoothing.experiments.digits.training_config import TrainConfig
from oversmoothing.experiments.digits.training_state import keep, kept
from oversmoothing.experiments.digits.vit import StudyNet, generator
from oversmoothing.experiments.inspection.watcher import Watcher
from oversmoothing.theory.support.errors import InputError, required

# Of the recipe, and of the images of one pair of operations.
MAGNITUDE, ERASING, MIXUP, MARGIN, GROUP = 27, 0.25, 0.8, 4, 64
# timm shears by 0.3 and kornia counts half turns: arctan(0.3) / pi; timm translates by 0.45.
SHEAR, TRANSLATE = 0.093, 0.45
_POLICY = [
    ("auto_contrast", 0, 1), ("equalize", 0, 1), ("invert", 0, 1), ("rotate", -30.0, 30.0),
    ("posterize", 4.0, 8.0), ("solarize", 0.0, 1.0), ("solarize_add", 0.0, 0.43),
    ("color", 0.1, 1.9), ("contrast", 0.1, 1.9), ("brightness", 0.1, 1.9), ("sharpness", 0.1, 1.9),
    ("shear_x", -SHEAR, SHEAR), ("shear_y", -SHEAR, SHEAR),
    ("translate_x", -TRANSLATE, TRANSLATE), ("translate_y", -TRANSLATE, TRANSLATE),
]  # fmt: skip
# Seconds between two checkpoints, at most that much work is lost in a kill.
CHECKPOINT_SECONDS = 30.0


def learning_rate(peak: float, warmup: float, step: int, steps: int) -> float:
    """At step 0, 1, ...: linear warm-up over a share of the steps, times a cosine to 0."""
    warm = min(1.0, (step + 1) / max(1.0, warmup * steps))
    return peak * warm * 0.5 * (1 + math.cos(math.pi * step / steps))


def adamw(
    decayed: list[Tensor], free: list[Tensor], rate: float, decay: float
) -> torch.optim.Optimizer:
    """AdamW that decays the first tensors alone."""
    groups = [{"params": decayed, "weight_decay": decay}, {"params": free, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate, fused=True)


@contextmanager
def drawn_from(generator: torch.Generator, device: torch.device) -> Iterator[None]:
    """The global generators, which dropout and kornia use, seeded by a draw; as before after."""
    seed = int(torch.randint(2**62, (), generator=generator))
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def training_batch(
    images: LabelledImages, chosen: Tensor, config: TrainConfig, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """(pixels that the model reads, targets): classes [b], or where images are mixed their shares
    [b, classes]. All that is drawn comes from `generator`."""
    pixels, labels = images.inputs(chosen), images.labels[chosen]
    if config.augmentation == "affine":
        reach = config.model_dump(include={"shift", "rotation", "zoom"})
        return augmented(pixels, generator, **reach), labels
    with drawn_from(generator, pixels.device):
        return _deit(pixels, labels, config.sizes.classes)


def _deit(pixels: Tensor, labels: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    shares = functional.one_hot(labels, classes).to(pixels)
    colours = (pixels + 1) / 2
    colours = torch.cat([_picture_operations()(part) for part in torch.split(colours, GROUP)])
    if torch.rand(()) < 0.5:
        share = float(torch.distributions.Beta(MIXUP, MIXUP).sample())
        mixed = share * colours + (1 - share) * colours.flip(0)
        return 2 * mixed - 1, share * shares + (1 - share) * shares.flip(0)
    mixed, drawn = _cutmix()(colours, labels)
    # [1, b, 3]: the label, that of the image pasted in, the share that is left of the image.
    pasted = functional.one_hot(drawn[0, :, 1].long(), classes).to(pixels)
    left = drawn[0, :, 2:].to(pixels)
    return 2 * mixed - 1, left * shares + (1 - left) * pasted


@cache
def _picture_operations() -> Any:
    kornia = required("kornia.augmentation")
    automatic = required("kornia.augmentation.auto")
    return torch.nn.Sequential(
        kornia.RandomCrop((32, 32), padding=MARGIN, p=1.0),
        kornia.RandomHorizontalFlip(p=0.5),
        automatic.RandAugment(n=2, m=MAGNITUDE, policy=[[each] for each in _POLICY]),
        kornia.RandomErasing(p=ERASING),
    )


@cache
def _cutmix() -> Any:
    return required("kornia.augmentation").RandomCutMixV2(
        beta=1.0, data_keys=["input", "class"], use_correct_lambda=True
    )


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """A list that holds the signal once Ctrl-C or SIGTERM came; the second one raises."""
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, _: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before = {each: signal.signal(each, ask) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class Objective(nn.Module):
    """The training pass: the loss of a batch. Precision and processes are put around it, so that
    the model within it stays what it is."""

    def __init__(self, model: StudyNet, label_smoothing: float) -> None:
        super().__init__()
        self.model, self.label_smoothing = model, label_smoothing

    def forward(self, pixels: Tensor, targets: Tensor) -> Tensor:
        """The mean cross-entropy of a batch; targets: classes [b], or shares [b, classes]."""
        scores = self.model(pixels)
        return functional.cross_entropy(scores, targets, label_smoothing=self.label_smoothing)


@dataclass
class TrainingState:
    """What changes while a run goes on, beside the weights and the optimiser.

    step: steps done; an epoch's end is done with its last step. order: the generator of the order
    as it was in front of the epoch; augmentation: as it is now, one row a process. total: the sum
    of the losses of the epoch so far. lowest, selected, best: of the epoch that is kept. rows: the
    log; watched: what instruments saw.
    """

    order: torch.Generator
    augmentation: torch.Generator
    total: Tensor
    step: int = 0
    lowest: float = math.inf
    selected: int = 0
    best: dict[str, Tensor] | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    watched: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    # In front of the epoch that runs.
    epoch_order: Tensor | None = None


# Of these a checkpoint says the value, of the rest it has the tensors.
_SAID = ("step", "lowest", "selected", "rows", "watched", "seconds")
_MODEL, _BEST, _OPTIMIZER = "model.", "best.", "optimizer."


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


class Loop:
    """The training of a model, epoch by epoch (`epochs`); `state` is what a checkpoint keeps.
    folder: where the unfinished run is kept (None: nowhere). every: steps between two checkpoints
    (None: `CHECKPOINT_SECONDS`)."""

    def __init__(
        self, model: StudyNet, config: TrainConfig, data: DataParts, accelerator: Any,
        folder: Path | None = None, every: int | None = None, progress: bool = True,
    ) -> None:  # fmt: skip
        self.model, self.config, self.data, self.accelerator = model, config, data, accelerator
        self.folder, self.every, self.progress = folder, every, progress
        self.instruments: Watcher | None = None
        process = accelerator.process_index
        # The first process draws what a single one would.
        purpose = "augmentation" if process == 0 else f"augmentation {process}"
        self.state = TrainingState(
            order=generator(config.seed, "order"),
            augmentation=generator(config.seed, purpose),
            total=torch.zeros((), device=data.train.labels.device),
        )
        self.objective, self.optimizer = accelerator.prepare(
            Objective(model, config.label_smoothing),
            adamw(*model.decayed(), config.learning_rate, config.weight_decay),
        )
        self._saved, self._began = time.monotonic(), time.monotonic()

    def resume(self) -> bool:
        """Go on from the checkpoint, if there is one."""
        there = None if self.folder is None else kept(self.folder)
        if there is None:
            return False
        path, tensors, said = there
        if said["config"] != self.config.model_dump():
            raise InputError(f"'{path}' is of another configuration: delete that folder")
        generators, processes = tensors["augmentation"], self.accelerator.num_processes
        if len(generators) != processes:
            raise InputError(
                f"'{path}' is of a run on {len(generators)} processes, these are {processes}: go "
                "on with as many, or delete that folder"
            )
        self.model.load_state_dict(_part(tensors, _MODEL))
        own: dict[int, dict[str, Tensor]] = defaultdict(dict)
        for name, value in _part(tensors, _OPTIMIZER).items():
            index, key = name.split(".", 1)
            own[int(index)][key] = value
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": own, "param_groups": groups})
        state, device = self.state, self.state.total.device
        for name in _SAID:
            setattr(state, name, said[name])
        state.order.set_state(tensors["order"])
        state.augmentation.set_state(generators[self.accelerator.process_index])
        state.total.copy_(tensors["total"])
        state.best = {k: v.to(device) for k, v in _part(tensors, _BEST).items()} or None
        self._began -= state.seconds
        return True

    @property
    def seconds(self) -> float:
        """Of training, over all of its pieces."""
        return time.monotonic() - self._began

    def epochs(self) -> Iterator[tuple[int, float]]:
        """(epoch from 1, mean training loss of the epoch), from where the run stands.

        What the caller does with an epoch is done when it asks for the next.
        """
        config, state, per_epoch = self.config, self.state, self.config.per_epoch
        steps = config.epochs * per_epoch
        # Not before the caller has seen that the model gives numbers: others are not read.
        writes = self.accelerator.is_main_process
        if config.watch_every and writes:
            # Without a limit of its own: what is recorded must not depend on the machine.
            self.instruments = Watcher(self.model, every=config.watch_every, budget=None)
            self.instruments.resume(state.watched)
        bar = tqdm(
            total=steps, initial=state.step, desc=config.variant, unit="step", file=sys.stderr,
            disable=None if self.progress and writes else True,
        )  # fmt: skip
        with bar, interruptible() as asked:
            try:
                while state.step < steps:
                    self._epoch(asked, bar, steps)
                    check_finite_loss(self, float(state.total))
                    yield state.step // per_epoch, float(state.total) / per_epoch
                    state.total.zero_()
                    self._perhaps_save(asked, bar)
            finally:
                if self.instruments is not None:
                    self.instruments.close()
                    state.watched = list(self.instruments.rows)

    def _epoch(self, asked: list[int], bar: tqdm, steps: int) -> None:
        """The rest of the epoch that the run stands in."""
        state, per_epoch = self.state, self.config.per_epoch
        self.model.train()
        state.epoch_order = state.order.get_state()
        order = torch.randperm(len(self.data.train), generator=state.order)
        batches = order[: per_epoch * self.config.batch_size].view(per_epoch, -1)
        process, processes = self.accelerator.process_index, self.accelerator.num_processes
        for number in range(state.step % per_epoch, per_epoch):
            self.one(batches[number][process::processes], steps)
            bar.update()
            if number + 1 < per_epoch:
                self._perhaps_save(asked, bar)
        state.epoch_order = None

    def one(self, chosen: Tensor, steps: int) -> None:
        """A step of so many, on the chosen images."""
        config, state = self.config, self.state
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(config.learning_rate, config.warmup, state.step, steps)
        if self.instruments is not None:
            if state.step % config.watch_every == 0:
                check_finite_loss(self, float(state.total))
            self.instruments.arm(state.step)
        chosen = chosen.to(state.total.device)
        pixels, targets = training_batch(self.data.train, chosen, config, state.augmentation)
        state.total += self.step(pixels, targets)
        state.step += 1

    def step(self, pixels: Tensor, targets: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        noise = drawn_from(self.state.augmentation, pixels.device)
        with noise if self.config.drop_path else nullcontext():
            loss: Tensor = self.objective(pixels, targets)
        self.accelerator.backward(loss)
        self.optimizer.step()
        return loss.detach()

    def _perhaps_save(self, asked: list[int], bar: tqdm) -> None:
        """A checkpoint where it is time for one, or where the run is to end here."""
        if self.folder is None:
            if asked:
                raise KeyboardInterrupt
            return
        late = time.monotonic() - self._saved > CHECKPOINT_SECONDS
        due = late if self.every is None else self.state.step % self.every == 0
        ends = self._any(bool(asked))
        if ends or self._any(due):
            self.save()
        if ends:
            raise KeyboardInterrupt(
                f"stopped behind step {self.state.step} of {bar.total}, which is kept in "
                f"'{self.folder}': the same command goes on from there"
            )

    def _any(self, here: bool) -> bool:
        """Whether it is so in any process: clocks and signals differ, what is done must not."""
        if self.accelerator.num_processes == 1:
            return here
        told = torch.tensor([int(here)], device=self.state.total.device)
        return bool(self.accelerator.gather(told).any())

    def save(self) -> None:
        """Write a checkpoint; never one of a training that diverged."""
        assert self.folder is not None
        state = self.state
        own = state.augmentation.get_state()[None].to(state.total.device)
        # Of every process, a row each.
        augmentation = self.accelerator.gather(own)
        check_finite_loss(self, float(state.total))
        if self.accelerator.is_main_process:
            state.seconds = self.seconds
            if self.instruments is not None:
                state.watched = list(self.instruments.rows)
            order = state.order.get_state() if state.epoch_order is None else state.epoch_order
            tensors = {"total": state.total, "augmentation": augmentation, "order": order}
            tensors |= {_MODEL + name: value for name, value in self.model.state_dict().items()}
            tensors |= {_BEST + name: value for name, value in (state.best or {}).items()}
            for index, each in self.optimizer.state_dict()["state"].items():
                tensors |= {f"{_OPTIMIZER}{index}.{name}": value for name, value in each.items()}
            said = {name: getattr(state, name) for name in _SAID}
            keep(self.folder, tensors, {"config": self.config.model_dump(), **said})
        self._saved = time.monotonic()


def check_finite_loss(loop: Loop, loss: float) -> None:
    """Raise `InputError` where the loss is no number any more."""
    if not math.isfinite(loss):
        there = loop.folder is not None and loop.folder.exists()
        kept = f"; the last good checkpoint is kept in '{loop.folder}'" * there
        raise InputError(
            f"training diverged in epoch {1 + (loop.state.step - 1) // loop.config.per_epoch} "
            f"(loss {loss}): lower learning_rate or std in the configuration{kept}"
        )


def accelerator_of(config: TrainConfig, device: torch.device | str) -> Any:
    """Accelerate's processes, device and precision for one run."""
    accelerate, states = required("accelerate"), required("accelerate.state")
    # One process may train several models: what the last run asked for is not this one's.
    states.AcceleratorState._reset_state(int(os.environ.get("WORLD_SIZE", "1")) == 1)
    return accelerate.Accelerator(
        cpu=torch.device(device).type == "cpu",
        mixed_precision="bf16" if config.precision == "bfloat16" else "no",
    )
