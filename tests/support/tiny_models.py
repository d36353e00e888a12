"""Small models and data that the tests of `experiments` share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from oversmoothing.experiments.digits.training import new_model, parts_of, train_on
from oversmoothing.experiments.digits.training_config import TrainConfig
from oversmoothing.experiments.digits.vit import StudyNet
from oversmoothing.experiments.study.protocol import Cell

TINY = {
    "depth": 2, "width": 16, "heads": 2, "epochs": 2, "batch_size": 128, "log_every": 1,
    "probe_images": 2, "std": 0.1,
}  # fmt: skip


def tiny_config(variant: str = "vit", **changes: object) -> TrainConfig:
    """A configuration that trains in about a second."""
    fields = {**TINY, "variant": variant, **changes}
    if variant == "vit-random":
        fields["epochs"] = 0
    return TrainConfig.from_json_object(fields, "a test")


def tiny_model(variant: str = "vit", **changes: object) -> StudyNet:
    return new_model(tiny_config(variant, **changes)).eval()


def train(config: TrainConfig) -> tuple[StudyNet, pd.DataFrame, dict[str, Any]]:
    """A model trained without keeping anything: it, the log, its metrics."""
    return train_on(parts_of(config), config, progress=False)[:3]


def random_pixels(count: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.rand(count, 8, 8, generator=generator) - 1


def softmax_attention(seed: int, n: int, scale: float = 3.0) -> NDArray[np.float64]:
    """A random positive row-stochastic matrix [n, n]; its spectrum is complex in general."""
    logits = scale * np.random.default_rng(seed).standard_normal((n, n))
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    result: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return result


def study_row(cell: Cell, seed: int, error: float, **more: Any) -> dict[str, Any]:
    """A run of that error; its weights left their start."""
    watched = {name: [[0.0], [0.1]] for name in (
        "alignment", "negative", "disc", "head_negative", "head_disc", "folded_alignment", "norm",
        "cos_free", "hfc_lfc")} | {"step": [0, cell.steps], "loss": [None, 1.0],
                                   "cos": [[1.0], [0.2]]}  # fmt: skip
    return {
        "cell": cell.name, "seed": seed, "digest": cell.digest, "diverged": None,
        "score": {"error": error, "loss": error}, "trajectory": watched, "seconds_in_all": 1.0,
        "lever": {"changes": ["shift", "shift", "into disc"], "doses": [-0.1, 0.1, 0.5],
                  "effect": [0.1, -0.1, 0.0], "control": [0.0] * 3, "predicted": [0.1, -0.1, 0.0],
                  "kl": [0.2, 0.1, 0.1]},
        "start": {"gradient": error, "change": 0.0},
        "made": {"date": "2026-01-01", "commit": "c"}, **more,
    }  # fmt: skip
