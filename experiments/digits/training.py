"""Training the digits models, deterministically: ViT, ViT+ and ViT- of arXiv 2401.04301.

AdamW with a cosine schedule, light augmentation, every random number from a generator seeded by
(seed, purpose). The validation images choose the epoch; the test images are scored once, at the
end. The log follows the spectrum of H and the share of (image, layer) cases that consensus
dominates while the model learns.
"""

import copy
import math
import sys
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

from oversmoothing.experiments.digits.config import TrainConfig
from oversmoothing.experiments.digits.images import Digits, Images, augmented, digits
from oversmoothing.experiments.digits.probes import dominance_by_layer, refresh_intervals
from oversmoothing.experiments.digits.store import StoredRun, load_run, save_run
from oversmoothing.experiments.digits.vit import ViT
from oversmoothing.experiments.threads import one_thread
from oversmoothing.theory.support.errors import InputError, RequirementError

# What a default configuration must reach on the test images.
REQUIRED_TEST_ACCURACY = 0.97


@dataclass(frozen=True)
class TrainedModel:
    """A model in evaluation mode, its configuration and the run it was read from."""

    model: ViT
    config: TrainConfig
    run: StoredRun


def generator(seed: int, purpose: str) -> torch.Generator:
    """An independent CPU generator for one purpose of one run."""
    state = np.random.SeedSequence([seed, zlib.crc32(purpose.encode())]).generate_state(2)
    return torch.Generator().manual_seed(int(state[0]) << 31 | int(state[1]) >> 1)


def new_model(config: TrainConfig) -> ViT:
    """The model of a configuration before training, on the CPU."""
    return ViT(config, generator(config.seed, "weights"))


def trained(
    config: TrainConfig, results: Path, *, device: torch.device | str = "cpu", progress: bool = True
) -> TrainedModel:
    """The trained model of a configuration: from the cache if it is there, else trained now.

    Raises `InputError` for a damaged cached run, an unwritable folder, or a training that
    diverges.
    """
    folder = results / config.folder_name()
    if not folder.exists():
        model, log, metrics = train(config, device=device, progress=progress)
        save_run(
            folder, config=config.model_dump(), weights=model.state_dict(), log=log, metrics=metrics
        )
    # A fresh run is read back too, so that a cached and a fresh model cannot differ.
    found = load_model(folder, device=device)
    if found.config != config:
        asked, held = config.model_dump(), found.config.model_dump()
        other = [f"{x} {held[x]}, not {asked[x]}" for x in asked if held[x] != asked[x]]
        raise InputError(
            f"'{folder}' bears the name of another run than it holds ({', '.join(other)}): give it "
            "its own name back, or delete it and train again"
        )
    return found


def load_model(folder: Path, *, device: torch.device | str = "cpu") -> TrainedModel:
    """The model stored in a run folder. Raises `InputError` where it is missing or damaged."""
    run = load_run(folder)
    config = TrainConfig.from_json_object(run.config, str(folder / "config.json"))
    sizes = {size for value in run.weights.values() for size in value.shape}
    # Looked at before a model of the stated size is made.
    if (
        config.depth > len(run.weights)
        or not {config.width, config.ffn_ratio * config.width} <= sizes
    ):
        raise _other_weights(folder, "they are not of the width and depth that it states")
    model = new_model(config)
    wanted = {name: value.shape for name, value in model.state_dict().items()}
    held = {name: value.shape for name, value in run.weights.items()}
    odd = sorted(name for name, _ in wanted.items() ^ held.items())
    if odd:
        few = ", ".join(dict.fromkeys(odd))
        raise _other_weights(folder, f"missing, surplus or of another shape: {few[:200]}")
    model.load_state_dict(run.weights)
    return TrainedModel(model.to(device).eval(), config, run)


def _other_weights(folder: Path, what: str) -> InputError:
    return InputError(
        f"the weights in '{folder}' are not those of its config.json ({what}): delete that folder "
        "and train again"
    )


@one_thread()
def train(
    config: TrainConfig, *, device: torch.device | str = "cpu", progress: bool = True
) -> tuple[ViT, pd.DataFrame, dict[str, Any]]:
    """Train one model. Returns it, the log (a row an epoch logged and layer) and its metrics.

    The same configuration gives the same weights on the same kind of machine, whatever its number
    of cores. Raises `InputError` when the loss stops being finite.
    """
    start = time.perf_counter()
    data = digits()
    on_device = Digits(data.train.to(device), data.validation.to(device), data.test.to(device))
    model = new_model(config).to(device)
    rows = _log_rows(model, config, on_device, 0, math.nan)
    # The lowest validation loss keeps its epoch: 360 images tell losses apart better than
    # accuracies. The untrained model is no candidate.
    lowest, selected = math.inf, 0
    weights: Any = None if config.epochs else model.state_dict()
    for epoch, loss in _epochs(model, config, on_device, progress):
        if not math.isfinite(loss):
            raise InputError(
                f"training diverged in epoch {epoch} (loss {loss}): lower learning_rate or "
                "value_scale in the configuration"
            )
        if epoch % config.log_every == 0 or epoch == config.epochs:
            new = _log_rows(model, config, on_device, epoch, loss)
            if new[0]["validation_loss"] < lowest:
                lowest, selected = new[0]["validation_loss"], epoch
                weights = copy.deepcopy(model.state_dict())
            rows += new
    model.load_state_dict(weights)
    model.eval()
    _, validation_correct = score(model, on_device.validation)
    _, correct = score(model, on_device.test)
    accuracy = correct / len(data.test)
    metrics = {
        "variant": config.variant,
        "selected_epoch": selected,
        "validation_accuracy": validation_correct / len(data.validation),
        "validation_count": len(data.validation),
        "test_accuracy": accuracy,
        "test_correct": correct,
        "test_count": len(data.test),
        "required_test_accuracy": REQUIRED_TEST_ACCURACY if config.epochs else None,
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": round(time.perf_counter() - start, 2),
        "device": str(device),
    }
    return model, pd.DataFrame(rows), metrics


def require_accuracy(trained_model: TrainedModel) -> None:
    """Raise `RequirementError` unless a trained model reached the required test accuracy."""
    metrics = trained_model.run.metrics
    required = metrics["required_test_accuracy"]
    if required is not None and metrics["test_accuracy"] < required:
        raise RequirementError(
            f"{metrics['variant']} (seed {trained_model.config.seed}) classifies "
            f"{metrics['test_correct']} of {metrics['test_count']} test images, "
            f"{100 * metrics['test_accuracy']:.2f} %: below the required {100 * required:.0f} %"
        )


def learning_rate(config: TrainConfig, step: int, steps: int) -> float:
    """Rate at `step` = 0, 1, ...: linear warm-up, times a cosine that reaches 0 at `steps`."""
    warm = min(1.0, (step + 1) / max(1.0, config.warmup * steps))
    return config.learning_rate * warm * 0.5 * (1 + math.cos(math.pi * step / steps))


@torch.no_grad()
def score(model: ViT, images: Images) -> tuple[float, int]:
    """Mean cross-entropy and number of correct classes over images on the model's device."""
    scores = model(images.pixels)
    loss = functional.cross_entropy(scores, images.labels)
    return float(loss), int((scores.argmax(1) == images.labels).sum())


def _epochs(model: ViT, config: TrainConfig, data: Digits, progress: bool) -> Any:
    """Train epoch by epoch; yields (epoch from 1, mean training loss of the epoch).

    Measured intervals (T3b) are refreshed on the probe images in front of each epoch and after it,
    so that what is logged is the model that the guarantee is of.
    """
    images = data.train
    order = generator(config.seed, "order")
    reach = config.model_dump(include={"shift", "rotation", "zoom"})
    augmentation = generator(config.seed, "augmentation")
    optimizer = _optimizer(model, config)
    per_epoch = len(images) // config.batch_size
    steps = config.epochs * per_epoch
    quiet = None if progress else True
    with tqdm(total=steps, desc=config.variant, unit="step", file=sys.stderr, disable=quiet) as bar:
        refresh_intervals(model, data.validation.pixels[: config.probe_images])
        for epoch in range(1, config.epochs + 1):
            model.train()
            total = torch.zeros((), device=images.pixels.device)
            chosen = torch.randperm(len(images), generator=order)[: per_epoch * config.batch_size]
            for step, batch in enumerate(chosen.view(per_epoch, -1), (epoch - 1) * per_epoch):
                for group in optimizer.param_groups:
                    group["lr"] = learning_rate(config, step, steps)
                batch = batch.to(images.pixels.device)
                pixels = augmented(images.pixels[batch], augmentation, **reach)
                total += _step(model, optimizer, pixels, images.labels[batch], config)
                bar.update()
            refresh_intervals(model, data.validation.pixels[: config.probe_images])
            yield epoch, float(total) / per_epoch


def _step(
    model: ViT,
    optimizer: torch.optim.Optimizer,
    pixels: Tensor,
    labels: Tensor,
    config: TrainConfig,
) -> Tensor:
    loss = functional.cross_entropy(model(pixels), labels, label_smoothing=config.label_smoothing)
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    optimizer.step()
    return loss.detach()


def _optimizer(model: ViT, config: TrainConfig) -> torch.optim.Optimizer:
    decayed: list[Tensor] = []
    free: list[Tensor] = []
    for name, parameter in model.named_parameters():
        # Decay would only shrink Theta, whose length Q does not see, and pull positions together
        # and the K of T3c's disc to 0.
        is_weight = parameter.ndim == 2 and not name.endswith((".theta", ".core", "position"))
        (decayed if is_weight else free).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.learning_rate, fused=True)


def _log_rows(
    model: ViT, config: TrainConfig, data: Digits, epoch: int, training_loss: float
) -> list[dict[str, Any]]:
    """One row a layer: loss, accuracy, the spectrum of H, dominance on the probe images, and
    whether H lies in its form's region."""
    model.eval()
    loss, correct = score(model, data.validation)
    rows = []
    probes = data.validation.pixels[: config.probe_images]
    found = zip(dominance_by_layer(model, probes), model.stack(), strict=True)
    for number, (layer, own) in enumerate(found, 1):
        region = own.value_projection.inside()
        rows.append(
            {
                "epoch": epoch,
                "layer": number,
                "training_loss": training_loss,
                "validation_loss": loss,
                "validation_accuracy": correct / len(data.validation),
                "h_real_min": layer.h.real.min(),
                "h_real_max": layer.h.real.max(),
                "h_abs_max": np.abs(layer.h).max(),
                "safe_interval_min": layer.safe.min(),
                "outside_share": layer.outside.mean(),
                "consensus_share": layer.share("consensus"),
                "tie_share": layer.share("tie"),
                "region": region.status,
                "region_excess": region.excess,
            }
        )
    return rows
