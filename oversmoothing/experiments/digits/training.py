"""Training vision Transformers on digits or CIFAR, deterministically: ViT, ViT+, ViT-, and others.

The loop and its state: `training_loop.py`, `training_state.py`. The validation images choose the
epoch; the test images are scored once, at the end. The log follows the spectrum of H and the share
of (image, layer) cases that consensus dominates while the model learns.
"""

import copy
import itertools
import math
import shutil
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional

from oversmoothing.experiments.digits import training_config, training_state
from oversmoothing.experiments.digits.data import DataParts, LabelledImages, cifar, digits
from oversmoothing.experiments.digits.training_config import TrainConfig
from oversmoothing.experiments.digits.training_loop import Loop, accelerator_of
from oversmoothing.experiments.digits.vit import HeadedAttention, StudyNet
from oversmoothing.experiments.forms.regions import MeasuredInterval
from oversmoothing.experiments.models.model import evaluating, start_spread
from oversmoothing.simulations.spectra.head_values import (
    LayerDominance,
    layer_dominance,
    mean_attention,
)
from oversmoothing.simulations.state import one_thread
from oversmoothing.theory.support.errors import InputError, RequirementError, required
from oversmoothing.theory.support.sizes import Array

SCORED = 1000  # images of one pass where a model is scored
# For the table of `models.sources`, as are `stored` and `made`.
NAMES, USUAL = tuple(training_config.FORM_OF), tuple(training_config.VARIANTS)
REQUIRED_TEST_ACCURACY = 0.97  # of a default configuration on the test images


@dataclass(frozen=True)
class TrainedModel:
    """A model in evaluation mode, its configuration and the run it was read from."""

    model: StudyNet
    config: TrainConfig
    run: training_state.StoredRun


def new_model(config: TrainConfig) -> StudyNet:
    """The model of a configuration before training, on the CPU."""
    return StudyNet(config.design, config.reads, config.seed)


def parts_of(
    config: TrainConfig, data_dir: Path | None = None, *, hub: bool = False, progress: bool = True
) -> DataParts:
    """The images of a configuration, its fraction of the training images; data_dir: the folder of
    real inputs, hub: fetch what it does not hold. Raises `InputError` where CIFAR is not there or
    not whole."""
    own = config.data == "digits"
    whole = digits() if own else cifar(config.data, data_dir, hub=hub, progress=progress)
    return whole.with_fraction(config.fraction)


def trained(
    config: TrainConfig, results: Path, *, device: torch.device | str = "cpu",
    progress: bool = True, data_dir: Path | None = None, hub: bool = False,
    every: int | None = None,
) -> TrainedModel:  # fmt: skip
    """The trained model of a configuration: from the cache if it is there, else trained now, from
    the checkpoint of an interrupted run where there is one.
    every: steps between two checkpoints (None: some seconds).
    Raises `InputError` for a damaged cached run or checkpoint, an unwritable folder, data that are
    not there, or a training that diverges.
    """
    folder = results / config.folder_name()
    if not folder.exists():
        data = parts_of(config, data_dir, hub=hub, progress=progress)
        partial = training_state.unfinished(folder)
        model, log, metrics, watched = train_on(
            data, config, device=device, progress=progress, folder=partial, every=every
        )
        processes = required("accelerate").PartialState()
        if processes.is_main_process:
            training_state.save_run(
                folder, config=config.model_dump(), weights=model.state_dict(), log=log,
                metrics=metrics, watched=watched,
            )  # fmt: skip
            shutil.rmtree(partial, ignore_errors=True)
        processes.wait_for_everyone()
    # A fresh run is read back too, so that a cached and a fresh model cannot differ.
    read = load_model(folder, device=device)
    if read.config != config:
        asked, held = config.model_dump(), read.config.model_dump()
        other = [f"{x} {held[x]}, not {asked[x]}" for x in asked if held[x] != asked[x]]
        raise InputError(
            f"'{folder}' bears the name of another run than it holds ({', '.join(other)}): give it "
            "its own name back, or delete it and train again"
        )
    return read


def load_model(folder: Path, *, device: torch.device | str = "cpu") -> TrainedModel:
    """The model stored in a run folder. Raises `InputError` where it is missing or damaged."""
    run = training_state.load_run(folder)
    if "ffn_ratio" in run.config:
        raise InputError(
            f"'{folder}' is a run of an earlier release, whose network this one does not read (its "
            "heads shared their values): train it again, as vit-shared where that is meant"
        )
    config = TrainConfig.from_json_object(run.config, str(folder / "config.json"))
    sizes = {size for value in run.weights.values() for size in value.shape}
    # Looked at before a model of the stated size is made.
    if config.depth > len(run.weights) or not {config.width, config.ratio * config.width} <= sizes:
        raise _other_weights(folder, "they are not of the width and depth that it states")
    model = new_model(config)
    wanted = {name: value.shape for name, value in model.state_dict().items()}
    held = {name: value.shape for name, value in run.weights.items()}
    odd = sorted(name for name, _ in wanted.items() ^ held.items())
    if odd:
        few = ", ".join(dict.fromkeys(odd))
        raise _other_weights(folder, f"missing, surplus or of another shape: {few[:200]}")
    start = model.value_projections()
    model.load_state_dict(run.weights)
    # Where a run does not record it, its start was drawn again.
    kept = run.metrics.get("cos_start")
    model.cos_start = kept or cos_start(start, model.value_projections())
    return TrainedModel(model.to(device).eval(), config, run)


def stored(folder: Path) -> StudyNet:
    """The ViT of a run folder; see `load_model`."""
    return load_model(folder).model


def made(name: str, results: Path, seed: int, device: torch.device) -> StudyNet:
    """The ViT of a variant's default configuration as it was trained in `results`."""
    config = training_config.default_config(name, seed)
    if name != "vit-random" and not (results / config.folder_name()).exists():
        raise InputError(
            f"'{name}' (seed {config.seed}) has not been trained in '{results}': run "
            f"`oversmoothing train --variant {name} --seed {config.seed} --out {results}` first"
        )
    return trained(config, results, device=device).model


def _other_weights(folder: Path, what: str) -> InputError:
    return InputError(
        f"the weights in '{folder}' are not those of its config.json ({what}): delete that folder "
        "and train again"
    )


def cos_start(start: Tensor, end: Tensor) -> list[float]:
    """<H_start, H_end>_F / (||H_start||_F ||H_end||_F) by layer, of two stacks [depth, d, d].

    How far training has turned H: 1 is not at all; of an independent start 0 with a standard
    deviation of 1/d; NaN for an H of 0. A spectrum says what training made of H only where H left
    its start, which is drawn again from the seed and not stored.
    """
    norms = start.double().flatten(1).norm(dim=1) * end.double().flatten(1).norm(dim=1)
    products = (start.double() * end.double()).flatten(1).sum(1)
    return [float(value) for value in products / norms]


def train_on(
    data: DataParts, config: TrainConfig, *, device: torch.device | str = "cpu",
    progress: bool = True, folder: Path | None = None, every: int | None = None,
) -> tuple[StudyNet, pd.DataFrame, dict[str, Any], pd.DataFrame]:  # fmt: skip
    """Train one model on these images: it, the log, its metrics and what was watched.

    folder, every: of the unfinished run, as of `Loop`. The same configuration gives the same
    weights on the same kind of machine; digits are trained on one thread, so that the number of
    cores does not matter. Raises `InputError` when the loss stops being finite.
    """
    with one_thread() if config.data == "digits" else nullcontext():
        accelerator = accelerator_of(config, device)
        on_device = data.to(accelerator.device)
        model = new_model(config)
        start = model.value_projections()
        model.to(accelerator.device)
        loop = Loop(model, config, on_device, accelerator, folder, every, progress)
        state = loop.state
        if not loop.resume():
            state.rows = _log_rows(model, config, on_device, 0, math.nan)
        # Measured intervals (T3b) are refreshed in front of the first epoch and after each, so that
        # what is logged is the model that the guarantee is of.
        probes = on_device.validation.inputs(slice(config.probe_images))
        if state.step == 0:
            refresh_intervals(model, probes)
        # The lowest validation loss keeps its epoch: 360 images tell losses apart better than
        # accuracies. The untrained model is no candidate.
        for epoch, loss in loop.epochs():
            refresh_intervals(model, probes)
            if epoch % config.log_every == 0 or epoch == config.epochs:
                new = _log_rows(model, config, on_device, epoch, loss)
                if new[0]["validation_loss"] < state.lowest:
                    state.lowest, state.selected = new[0]["validation_loss"], epoch
                    state.best = copy.deepcopy(model.state_dict())
                state.rows += new
        if state.best is not None:
            model.load_state_dict(state.best)
        model.eval()
        _, validation_correct = score(model, on_device.validation)
        _, correct = score(model, on_device.test)
        judged = config.epochs and config.data == "digits"
        metrics = {
            "variant": config.variant,
            "selected_epoch": state.selected,
            "validation_accuracy": validation_correct / len(data.validation),
            "validation_count": len(data.validation),
            "test_accuracy": correct / len(data.test),
            "test_correct": correct,
            "test_count": len(data.test),
            "required_test_accuracy": REQUIRED_TEST_ACCURACY if judged else None,
            "cos_start": cos_start(start, model.value_projections()),
            "parameters": sum(p.numel() for p in model.parameters()),
            "seconds": round(loop.seconds, 2),
            "device": str(device),
        }
        return model, pd.DataFrame(state.rows), metrics, pd.DataFrame(state.watched)


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


@torch.no_grad()
def score(model: StudyNet, images: LabelledImages) -> tuple[float, int]:
    """Mean cross-entropy and number of correct classes over images on the model's device."""
    loss, correct = 0.0, 0
    for first in range(0, len(images), SCORED):
        part = slice(first, first + SCORED)
        scores, labels = model(images.inputs(part)), images.labels[part]
        loss += float(functional.cross_entropy(scores, labels)) * len(labels)
        correct += int((scores.argmax(1) == labels).sum())
    return loss / len(images), correct


def _log_rows(
    model: StudyNet, config: TrainConfig, data: DataParts, epoch: int, training_loss: float
) -> list[dict[str, Any]]:
    """One row a layer: losses, spectrum of H, dominance on the probe images, H's region."""
    model.eval()
    loss, correct = score(model, data.validation)
    if not math.isfinite(loss):
        raise InputError(
            f"the model gives a loss of {loss} on the validation images after epoch {epoch}: lower "
            "learning_rate, or std where its eigenvalues were drawn too large"
        )
    layers = dominance_by_layer(model, data.validation.inputs(slice(config.probe_images)))
    regions = [block.attention.inside() for block in model.blocks()]
    return [
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
        for number, (layer, region) in enumerate(zip(layers, regions, strict=True), 1)
    ]


def training_table(models: list[tuple[TrainedModel, bool]]) -> pd.DataFrame:
    """A row for each model; the flag says that it was trained before. "h safe": the share of
    eigenvalues of H at which consensus loses under the attention of the probe images (T3b), over
    layers and images. "cos(H_start, H_end)": see `cos_start`, smallest to largest over the layers.
    """
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
                "cos(H_start, H_end)": start_spread(model.model.cos_start),
                "h safe": f"{100 * (1 - kept['outside_share'].mean()):.0f} %",
                "seconds": "cached" if stored else f"{metrics['seconds']:.1f}",
                # A byte of a path that is no text in any encoding is written as in JSON.
                "folder": str(model.run.folder).encode("utf-8", "backslashreplace").decode("utf-8"),
            }
        )
    return pd.DataFrame(rows)


# How often a tied H whose attention moves with it is measured before s = 1 is taken.
MEASURED_AGAIN = 8


@torch.no_grad()
def attention_by_layer(net: StudyNet, pixels: Tensor) -> list[Array]:
    """Attention [m, heads, n, n] of every layer on images on the network's device."""
    stream: list[Tensor] = []
    net(pixels, stream)
    layers = zip(net.blocks(), stream[:-1], strict=True)
    return [block.heads_of(x).cpu().numpy() for block, x in layers]


def dominance_by_layer(net: StudyNet, pixels: Tensor) -> list[LayerDominance]:
    """Reading E2 of every layer, the mean A of its heads against its whole H."""
    both = zip(attention_by_layer(net, pixels), net.value_projections(), strict=True)
    return [layer_dominance(A, H.numpy()) for A, H in both]


def refresh_intervals(net: StudyNet, pixels: Tensor) -> None:
    """Set every measured interval (-s, 0) to the smallest s of its layers over these images.

    H moves with s, and the attention of later layers with H: layers are taken in turn, each behind
    those already set. Where H is tied, s sinks until the attention that it makes allows it, or to 1
    (safe under every attention).
    """
    for own in dict.fromkeys(block.attention.owner for block in net.blocks()):
        form = None if own.projection is None else own.projection.form
        if isinstance(form, MeasuredInterval):
            for _ in range(MEASURED_AGAIN):
                held = form.refresh(*_attention_of(net, own, pixels))
                if form.measured(*_attention_of(net, own, pixels)) >= held:
                    break
            else:
                form.set_interval(1.0)


def _attention_of(net: StudyNet, own: HeadedAttention, pixels: Tensor) -> list[Array]:
    """Attention [n, n] of every image in every layer that has this H, mean over heads."""
    with evaluating(net):  # no branch is left out by chance
        both = zip(net.blocks(), attention_by_layer(net, pixels), strict=True)
    meant = (mean_attention(A) for block, A in both if block.attention.owner is own)
    return list(itertools.chain(*meant))
