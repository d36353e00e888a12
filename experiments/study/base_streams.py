"""Of a study's ViT, ViT+ and ViT- at its base: the stream by layer, and H while they train.

It is what the figures of the paper draw of trained models, kept beside the runs so that they can be
drawn without the weights.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from oversmoothing.experiments.digits.config import TRAINED
from oversmoothing.experiments.digits.training import TrainedModel, load_model, parts_of
from oversmoothing.experiments.inspection.inspect import inspect
from oversmoothing.experiments.inspection.intervals import mean_interval
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.models.sources import open_model
from oversmoothing.experiments.study.protocol import Protocol

IMAGES = 50
STREAM = ("log_hfc_lfc", "cos_mean", "effective_rank")
_ENDS = ("", "_low", "_high", "_p05", "_p95")


def layer_metrics(model: Model, inputs: Any) -> pd.DataFrame:
    """The paper's three metrics of the residual stream, a row a layer (0 is the input).

    Columns: layer; each of STREAM as its mean over images, with _low and _high of its 95 % interval
    and the percentiles _p05, _p95; rank_share, the effective rank over the largest possible `most`;
    change, change_low, change_high: of log_hfc_lfc from input to output, in every row.
    """
    report = inspect(model, inputs, spectra=0, account=0, closer=0)
    frame = report.to_frame()
    width = model.layers[0].heads.W_V.shape[1]
    most = min(int(report.tokens or width), width)
    frame = frame[["layer", *(f"{name}{end}" for name in STREAM for end in _ENDS)]]
    frame = frame.assign(rank_share=frame["effective_rank"] / most, most=most)
    names = ("change", "change_low", "change_high")
    return frame.assign(**dict(zip(names, mean_interval(report.change), strict=True)))


def base_streams(chosen: Protocol, results: Path, data_dir: Path | None = None) -> pd.DataFrame:
    """`layer_metrics` of every base run that is finished, of IMAGES validation images of digits or
    test images of CIFAR; behind the columns run, variant, seed, images. Empty where there is none.

    Raises `InputError` for damaged runs and data that are not there.
    """
    frames = []
    for name, found in _base_runs(chosen, results):
        data = parts_of(found.config, data_dir, progress=False)
        inputs = (data.validation if chosen.data == "digits" else data.test).inputs(slice(IMAGES))
        own = {**_head(name, found), "images": len(inputs)}
        frame = layer_metrics(open_model(found.run.folder), inputs)
        frames.append(pd.concat([pd.DataFrame([own] * len(frame)), frame], axis=1))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def base_watched(chosen: Protocol, results: Path) -> pd.DataFrame:
    """Asymmetry of every H at every watched step of the base runs that are finished: run, variant,
    seed, step, epoch, layer, asymmetry. Empty where none was watched."""
    frames = []
    for name, found in _base_runs(chosen, results):
        watched = found.run.watched
        if "asymmetry" not in watched:
            continue
        own = watched.loc[watched["asymmetry"].notna(), ["step", "layer", "asymmetry"]]
        own.insert(1, "epoch", own["step"] / found.config.per_epoch)
        frames.append(own.assign(**_head(name, found))[[*_head(name, found), *own.columns]])
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _base_runs(chosen: Protocol, results: Path) -> Iterator[tuple[str, TrainedModel]]:
    for seed in chosen.seeds:
        for variant in TRAINED:
            name = chosen.run({"variant": variant}, seed).name
            if (results / name / "manifest.json").exists():
                yield name, load_model(results / name)


def _head(name: str, found: TrainedModel) -> dict[str, Any]:
    return {"run": name, "variant": found.config.variant, "seed": found.config.seed}
