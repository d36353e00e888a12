"""Table 1 of arXiv 2401.04301 on the digits models: which eigenvalue dominates, and how often.

What one case is and how complex spectra count is not stated in the paper; reading E2 is in
`experiments.table1.layer_dominance`, with what this table says of H besides. The other readings
(one case a head; the exact many-head operator; one case an eigenvalue of H), for these models and
any described one, are `experiments.table1`.
Two lines are theorems and are demanded of every run: ViT+ has 100 % consensus (T2d, all h_j > 0),
and no case is won by consensus in a layer whose h_j all lie in [-1, 0) (T3d).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from oversmoothing.experiments.digits.vit import LayerTrace, ViT
from oversmoothing.experiments.inspection.intervals import share_interval
from oversmoothing.experiments.models.threads import one_thread
from oversmoothing.experiments.table1.layer_dominance import (
    CLASSES,
    LayerDominance,
    layer_dominance,
)
from oversmoothing.theory.support.errors import RequirementError

# (model, the trace of each layer) -> the decisions of each layer.
Reading = Callable[[ViT, list[LayerTrace]], list[LayerDominance]]


def reading_e2(model: ViT, traces: list[LayerTrace]) -> list[LayerDominance]:
    """E2: a case is an (image, layer), A the mean over heads, H whole, the maximum over (j, i)."""
    return [
        layer_dominance(trace.attention.cpu().numpy(), H.numpy())
        for trace, H in zip(traces, model.value_projections(), strict=True)
    ]


READINGS: dict[str, Reading] = {"E2": reading_e2}


@one_thread()
def dominance_table(models: Mapping[str, ViT], pixels: Tensor, reading: str = "E2") -> pd.DataFrame:
    """One row a model and class: counts, shares and where the spectrum of H lies.

    pixels [m, 8, 8] on the CPU. Columns: model, reading, class, count, cases, images, layers;
    percent, percent_low, percent_high (95 %, `share_interval`); and, the same for each class of a
    model: h_real_min, h_real_max, h_abs_max over its layers; safe_interval_min over cases;
    outside_percent, of all (image, layer, j) with h_j outside the safe interval (for complex h:
    where consensus does not lose); layers_within_unit, layers with all h_j in [-1, 0);
    consensus_within_unit, cases of those layers that consensus wins; layers_beyond_one, layers
    with some h_j < -1.
    """
    rows = []
    for name, model in models.items():
        record: list[LayerTrace] = []
        with torch.no_grad():
            model(pixels.to(next(model.parameters()).device), record)
        rows += _rows(name, reading, READINGS[reading](model, record))
    return pd.DataFrame(rows)


def _rows(name: str, reading: str, layers: list[LayerDominance]) -> list[dict[str, object]]:
    classes = np.stack([layer.classes for layer in layers])
    depth, images = classes.shape
    within = np.array([layer.within_unit for layer in layers])
    h = np.stack([layer.h for layer in layers])
    common = {
        "cases": classes.size,
        "images": images,
        "layers": depth,
        "h_real_min": h.real.min(),
        "h_real_max": h.real.max(),
        "h_abs_max": np.abs(h).max(),
        "safe_interval_min": min(layer.safe.min() for layer in layers),
        "outside_percent": 100 * np.mean([layer.outside.mean() for layer in layers]),
        "layers_within_unit": int(within.sum()),
        "consensus_within_unit": int((classes[within] == "consensus").sum()),
        "layers_beyond_one": int((h.real < -1).any(axis=1).sum()),
    }
    rows = []
    for each in CLASSES:
        count = int((classes == each).sum())
        share = count / classes.size
        low, high = share_interval(share, images)
        rows.append(
            {
                "model": name,
                "reading": reading,
                "class": each,
                "count": count,
                "percent": 100 * share,
                "percent_low": 100 * low,
                "percent_high": 100 * high,
                **common,
            }
        )
    return rows


def require_theorems(table: pd.DataFrame) -> None:
    """Raise `RequirementError` where the table contradicts T2d (ViT+) or T3d (h_j in [-1, 0))."""
    for _, row in table[table["class"] == "consensus"].iterrows():
        if row["model"] == "vit+" and row["count"] != row["cases"]:
            raise RequirementError(
                f"vit+: consensus dominates {row['count']} of {row['cases']} cases in reading "
                f"{row['reading']}, but every h_j > 0 demands all of them (T2d)"
            )
        if row["consensus_within_unit"] > 0:
            raise RequirementError(
                f"{row['model']}: consensus dominates {row['consensus_within_unit']} cases in "
                f"layers with every h_j in [-1, 0), in reading {row['reading']}; T3d allows none"
            )
