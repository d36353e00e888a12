"""What is measured of one trained model of the study: errors, corruption, stream, spectra.

Errors are in per cent of the test images. The stream is that of the first 360 validation images (of
digits: all) behind the last layer, CLS in, means over images. Spectra are of H at the kept epoch,
means over layers.
"""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from oversmoothing.experiments.digits.config import TrainConfig
from oversmoothing.experiments.digits.corruptions import SEVERITIES, corrupted, kinds_for, published
from oversmoothing.experiments.digits.data import SIZES, Images
from oversmoothing.experiments.digits.training import TrainedModel, parts_of, score
from oversmoothing.experiments.digits.vit import LayerTrace
from oversmoothing.experiments.inspection.heads_and_why import regions
from oversmoothing.experiments.parameterisations.lasting_bound import lasting_bound
from oversmoothing.simulations.spectra.head_values import asymmetry
from oversmoothing.simulations.spectra.layer_dominance import mean_attention
from oversmoothing.simulations.state_metrics import stream_metrics

# Another number is another set of measures: what was stored before is measured anew.
VERSION = 2
# Measure -> its name in words, in the order of the tables.
MEASURES = {
    "test_error": "test error, %",
    "validation_error": "validation error, %",
    "log_hfc_lfc": "ln HFC/LFC",
    "cos_mean": "mean cosine",
    "effective_rank": "effective rank",
    "h_universal_disc": "h in the disc |h + 1/2| < 1/2",
    "h_positive": "h with Re h > 0",
    "cos_start": "cos(H_start, H_end)",
    "asymmetry": "asymmetry of H",
    "condition_V_H": "log10 condition of V_H",
    "outside_share": "h outside the safe interval",
    "inside_share": "logged H inside their region",
    "void_share": "images on which T7b is void",
    "corrupted_error": "error at severities 1 to 5, %",
    "cost_of_corruption": "the same less that at 0",
    **{f"error_at_{s}": f"error at severity {s}, %" for s in SEVERITIES},
}
# Validation images whose stream is measured: as many as digits have.
PROBED = SIZES["digits"].validation
# Validation images on which T7b's recursion is iterated.
BOUNDED = 16


def measures(
    found: TrainedModel, *, with_corruptions: bool, images: int | None = None,
    data_dir: Path | None = None,
) -> dict[str, float]:  # fmt: skip
    """MEASURES of a trained model on the CPU; with_corruptions: those of corrupted test images too,
    the first `images` of them (None: all). data_dir: the folder of real inputs."""
    own = found.run.metrics
    log, data = found.run.log, parts_of(found.config, data_dir, progress=False)
    kept = log[log["epoch"] == own["selected_epoch"]]
    result = {
        "test_error": 100 * (1 - own["test_accuracy"]),
        "validation_error": 100 * (1 - own["validation_accuracy"]),
        "outside_share": float(kept["outside_share"].mean()),
        "inside_share": float((log["region"] == "inside").mean()),
        **_stream_and_bound(found, data.validation),
        **_spectra(found),
    }
    return {**result, **(_corruption(found, images, data_dir) if with_corruptions else {})}


@torch.no_grad()
def _stream_and_bound(found: TrainedModel, images: Images) -> dict[str, float]:
    record: list[LayerTrace] = []
    found.model(images.inputs(slice(PROBED)), record)
    behind = stream_metrics(record[-1].after_ffn)
    result = {
        name: float(behind[name].mean()) for name in ("log_hfc_lfc", "cos_mean", "effective_rank")
    }
    if found.config.form == "band":
        result["void_share"] = _void_share(found, record)
    return result


def _void_share(found: TrainedModel, record: list[LayerTrace]) -> float:
    """The share of images on which T7b's recursion, iterated beside the network on its own A and H
    without norms and FFN, meets a layer whose factor is not below 1: tau reached p/q there."""
    products = [H.numpy().T for H in found.model.value_projections()]
    void = []
    for k in range(BOUNDED):
        attention = []
        for trace in record:
            A = mean_attention(trace.attention[k : k + 1].cpu().numpy())[0].astype(np.float64)
            attention.append(A / A.sum(-1, keepdims=True))
        start = record[0].before[k].double().cpu().numpy()
        void.append(lasting_bound(attention, products, start).void_at is not None)
    return float(np.mean(void))


def _spectra(found: TrainedModel) -> dict[str, float]:
    rows = []
    for H in found.model.value_projections().numpy():
        h, V = np.linalg.eig(H)
        shares = regions(h.astype(np.complex128))
        rows.append(
            {
                "h_universal_disc": shares["universal_disc"],
                "h_positive": float((h.real > 0).mean()),
                "asymmetry": asymmetry(H),
                # Its logarithm: of a defective H the condition is anything up to infinity.
                "condition_V_H": float(np.log10(min(np.linalg.cond(V), 1 / np.finfo(float).eps))),
            }
        )
    means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    return {**means, "cos_start": float(np.mean(found.model.cos_start or [np.nan]))}


def _corruption(found: TrainedModel, count: int | None, data_dir: Path | None) -> dict[str, float]:
    """Mean error over the kinds of corruption, at each severity."""
    errors: dict[str, Any] = {}
    name = found.config.data
    kinds = kinds_for(_test(name, count, data_dir))
    for severity in SEVERITIES:
        of_kind = [
            100 * (1 - score(found.model, images)[1] / len(images))
            for kind in (kinds if severity else kinds[:1])
            for images in [_corrupted(name, count, data_dir, kind, severity)]
        ]
        errors[f"error_at_{severity}"] = float(np.mean(of_kind))
    errors["corrupted_error"] = float(np.mean([errors[f"error_at_{s}"] for s in SEVERITIES[1:]]))
    errors["cost_of_corruption"] = errors["corrupted_error"] - errors["error_at_0"]
    return errors


@cache
def _test(name: str, count: int | None, data_dir: Path | None) -> Images:
    """The first `count` test images of a data set."""
    whole = parts_of(TrainConfig(data=name), data_dir, progress=False).test
    return Images(whole.pixels[:count], whole.labels[:count])


@cache
def _corrupted(
    name: str, count: int | None, data_dir: Path | None, kind: str, severity: int
) -> Images:
    """Of the published files where there are any, else made here."""
    found = published(name, data_dir, kind, severity) if severity else None
    if found is None:
        return corrupted(_test(name, count, data_dir), kind, severity)
    return Images(found.pixels[:count], found.labels[:count])
