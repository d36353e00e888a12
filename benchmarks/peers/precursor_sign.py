"""W = -S S^T in the gradient flow of 2023, at its own start: do its tokens stay apart?

With sign = -1 every eigenvalue of H = -S S^T is at most 0, which we read as meant to sharpen (the
repository has no such sentence). One tied layer X + A X W sharpens for h in (-2/(1 + a_1), 0), a_1
the least eigenvalue of A (T2b), and below it smooths: nothing bounds S S^T. Its option weight_norm
divides W by its Frobenius norm, so that h lies in [-1, 0] (T3d). Its layer also has a norm and
attention that changes, of which those two statements say nothing: the runs are the answer.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from oversmoothing.simulations.state_metrics import log_hfc_lfc_ratio

WIDTH, SIDE, LAYERS = 128, 16, 64


@dataclass(frozen=True)
class Runs:
    """Of each seed: log HFC/LFC of the input and behind the last layer, the largest |h|."""

    start: np.ndarray
    end: np.ndarray
    largest: np.ndarray

    def smoothed(self, by: float = 5.0) -> int:
        """How many runs lost e^by of their HFC/LFC."""
        return int((self.end < self.start - by).sum())


@torch.no_grad()
def runs(parts: dict[str, Any], sign: int, weight_norm: bool, seeds: range) -> Runs:
    """64 tied layers of 128 features and one head on 256 Gaussian tokens, as `diffuse` has them."""
    start, end, largest = [], [], []
    for seed in seeds:
        with torch.random.fork_rng():
            torch.manual_seed(seed)  # it draws its weights from torch's own state
            model = parts["SimpleTransformer"](
                (WIDTH, SIDE, SIDE), 1, LAYERS, dim=WIDTH, heads=1, sign=sign, embed=False,
                weight_norm=weight_norm,
            ).double()  # fmt: skip
            image = torch.randn(1, WIDTH, SIDE, SIDE, dtype=torch.float64)
        model.pos_embedding.zero_()
        states = [torch.from_numpy(each[0]) for each in model.diffuse(image)[0]]
        S = (model.WVs[0] + model.WVs[0].T) / 2
        H = S @ S.T
        values = torch.linalg.eigvalsh(H / torch.linalg.norm(H) if weight_norm else H)
        start.append(float(log_hfc_lfc_ratio(states[0])))
        end.append(float(log_hfc_lfc_ratio(states[-1])))
        largest.append(float(values.abs().max()))
    return Runs(*map(np.array, (start, end, largest)))
