"""What attention and the tokens say on the inputs whose spectra are taken, layer by layer."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from oversmoothing.experiments.inspection.why import (
    ORDERS,
    dobrushin,
    principal,
    tilt,
    value_projection,
)
from oversmoothing.experiments.models.model import Extraction, Model
from oversmoothing.simulations.spectra.batch_verdicts import CLASSES
from oversmoothing.simulations.spectra.layer_dominance import layer_dominance
from oversmoothing.theory.support.sizes import Array

# Work of the spectra that are taken unless asked otherwise: ten images of a ViT on 224 x 224.
BUDGET = 10 * 12 * 197**3
TILT_SEED = 0


def affordable(model: Model, tokens: int) -> int:
    """How many inputs fit in BUDGET, at least one: layers n^3 each; none where attention has sinks,
    since then it is not row-stochastic."""
    if any(layer.sinks is not None for layer in model.layers):
        return 0
    return max(1, BUDGET // (model.depth * tokens**3))


def spectral_columns(model: Model, batches: Sequence[Extraction]) -> list[dict[str, float]]:
    """One dictionary a layer over the inputs of the batches, which carry attention.

    <class>_share of reading E2, rho_consensus, rho_quotient_median, predicted_log_rate_median,
    safe_interval_median, safe_interval_min, outside_share; dobrushin_mean, subdominant_mean (of the
    mean over heads); tilt_<order>, tilt_<order>_random, principal_<order>_real, _imag.
    """
    return [_layer(model, batches, number) for number in range(model.depth)]


def _layer(model: Model, batches: Sequence[Extraction], number: int) -> dict[str, float]:
    H = value_projection(model.layers[number].heads)
    attention = [each for batch in batches for each in matrices(batch, number)]
    lengths = sorted({A.shape[-1] for A in attention})
    # Inputs of one length together, [m, heads, k, k].
    found = [
        layer_dominance(np.stack([A for A in attention if A.shape[-1] == k]), H) for k in lengths
    ]
    classes, quotient, safe, outside = (
        np.concatenate([getattr(each, name) for each in found])
        for name in ("classes", "rho_quotient", "safe", "outside")
    )
    consensus = found[0].rho_consensus
    with np.errstate(divide="ignore"):
        rates = np.log(quotient) - np.log(consensus)
    means = [A.astype(np.float64).mean(axis=0) for A in attention]
    return {
        **{f"{name}_share": float((classes == name).mean()) for name in CLASSES},
        "rho_consensus": consensus,
        "rho_quotient_median": float(np.median(quotient)),
        "predicted_log_rate_median": float(np.median(rates)),
        "safe_interval_median": float(np.median(safe)),
        "safe_interval_min": float(safe.min()),
        "outside_share": float(outside.mean()),
        "dobrushin_mean": float(np.mean([float(dobrushin(torch.from_numpy(A))) for A in means])),
        "subdominant_mean": float(np.mean([_subdominant(A) for A in means])),
        **_tilts(model, batches, number),
    }


def matrices(batch: Extraction, number: int) -> list[NDArray[np.floating]]:
    """Attention [heads, k, k] of each input over its k kept tokens."""
    attention = batch.traces[number].attention
    assert attention is not None
    answer = []
    for A, keep in zip(attention, batch.keep, strict=True):
        kept = A if bool(keep.all()) else A[:, keep][:, :, keep]
        answer.append((kept if kept.dtype == torch.float64 else kept.float()).cpu().numpy())
    return answer


def _subdominant(A: Array) -> float:
    """The second largest modulus of spec(A), 0 for one token."""
    if len(A) == 1:
        return 0.0
    return float(np.sort(np.abs(np.linalg.eigvals(A)))[-2])


def _tilts(model: Model, batches: Sequence[Extraction], number: int) -> dict[str, float]:
    columns: dict[str, float] = {}
    for order in ORDERS:
        found = principal(model.layers[number].heads, order)
        pairs = []
        for batch in batches:
            trace, generator = batch.traces[number], torch.Generator().manual_seed(TILT_SEED)
            pairs.append(tilt(trace.before, trace.after_ffn, found, generator, batch.keep))
        gain, random = (float(torch.cat(each).mean()) for each in zip(*pairs, strict=True))
        columns |= {
            f"tilt_{order}": gain,
            f"tilt_{order}_random": random,
            f"principal_{order}_real": found.value.real,
            f"principal_{order}_imag": found.value.imag,
        }
    return columns
