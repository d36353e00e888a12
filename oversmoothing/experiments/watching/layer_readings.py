"""What is read of one layer while training: the stream after it, and the spectrum of its H."""

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.inspection.why import regions, value_projection
from oversmoothing.experiments.models.model import Heads
from oversmoothing.simulations.spectra.head_values import asymmetry
from oversmoothing.simulations.state_metrics import stream_metrics

METRICS = ("log_hfc_lfc", "cos_mean", "effective_rank")
# Beyond, the eigenvalues of one H take minutes.
LARGEST = 1024


def stream_readings(X: Tensor, keep: Tensor | None, *, cls: bool) -> dict[str, float]:
    """METRICS of X [m, n, d] over the kept tokens, means over the m inputs; hfc_lfc: the geometric
    mean. cls: the same without token 0 as well, under *_without_cls."""
    parts = [X] if keep is None else [x[k][None] for x, k in zip(X, keep, strict=True)]
    each = [stream_metrics(part, without_first=cls) for part in parts]
    found: dict[str, float] = {}
    for suffix in ("", "_without_cls") if "cos_mean_without_cls" in each[0] else ("",):
        for name in METRICS:
            values = torch.cat([one[name + suffix] for one in each])
            found[name + suffix] = float(values.mean())
        found[f"hfc_lfc{suffix}"] = float(np.exp(found[f"log_hfc_lfc{suffix}"]))
    return found


def spectral_readings(heads: Heads) -> dict[str, float]:
    """Shares of the eigenvalues h of H = sum_h (W_V,h W_O,h)^T by region (`why.REGIONS`),
    h_real_min, h_real_max, h_abs_max, asymmetry ||H - H^T||_F / ||H + H^T||_F and condition_V_H,
    that of its eigenvectors; {} for more than LARGEST features."""
    if heads.W_V.shape[1] > LARGEST:
        return {}
    H = value_projection(heads)
    h, V = np.linalg.eig(H)
    return {
        **{f"h_{name}": share for name, share in regions(h).items()},
        "h_real_min": float(h.real.min()),
        "h_real_max": float(h.real.max()),
        "h_abs_max": float(np.abs(h).max()),
        "asymmetry": asymmetry(H),
        "condition_V_H": float(np.linalg.cond(V)),
    }
