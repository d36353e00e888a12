"""How weights are moved: AdamW, its rate by step, and the generators of what is drawn."""

import math
import zlib

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.digits.config import TrainConfig
from oversmoothing.experiments.digits.vit import ViT


def generator(seed: int, purpose: str) -> torch.Generator:
    """An independent CPU generator for one purpose of one run."""
    state = np.random.SeedSequence([seed, zlib.crc32(purpose.encode())]).generate_state(2)
    return torch.Generator().manual_seed(int(state[0]) << 31 | int(state[1]) >> 1)


def learning_rate(config: TrainConfig, step: int, steps: int) -> float:
    """Rate at `step` = 0, 1, ...: linear warm-up, times a cosine that reaches 0 at `steps`."""
    warm = min(1.0, (step + 1) / max(1.0, config.warmup * steps))
    return config.learning_rate * warm * 0.5 * (1 + math.cos(math.pi * step / steps))


def optimizer_of(model: ViT, config: TrainConfig) -> torch.optim.Optimizer:
    """AdamW that decays weight matrices alone."""
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
