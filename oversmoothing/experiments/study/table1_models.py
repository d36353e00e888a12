"""Table 1 of arXiv 2401.04301 on the digits models, and its first column: a ViT before training.

Reading E2 of `readings`, with what `simulations.spectra.head_values` says of H besides, and
intervals that are not empty at 0 or 100 %. Two lines are theorems and are demanded of every run:
ViT+ has 100 % consensus (T2d, all h_j > 0), and no case is won by consensus in a layer whose h_j
all lie in [-1, 0) (T3d).
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from oversmoothing.experiments.digits.vit import ViT, dominance_by_layer
from oversmoothing.experiments.intervals import named, share_interval
from oversmoothing.experiments.models.library import TimmViT
from oversmoothing.experiments.threads import one_thread
from oversmoothing.simulations.spectra.batch_verdicts import CLASSES
from oversmoothing.simulations.spectra.head_values import LayerDominance
from oversmoothing.theory.support.errors import RequirementError


@one_thread()
def dominance_table(models: Mapping[str, ViT], pixels: Tensor) -> pd.DataFrame:
    """One row a model and class: counts, shares and where the spectrum of H lies.

    pixels [m, 8, 8] on the CPU. Columns: model, reading, class, count; percent, percent_low,
    percent_high (95 %, `share_interval`); cases, images, layers; and, the same for each class of a
    model: h_real_min, h_real_max, h_abs_max over its layers; safe_interval_min over cases;
    outside_percent, of all (image, layer, j) with h_j outside the safe interval (for complex h:
    where consensus does not lose); layers_within_unit, layers with all h_j in [-1, 0);
    consensus_within_unit, cases of those layers that consensus wins; layers_beyond_one, layers
    with some h_j < -1.
    """
    rows = []
    for name, model in models.items():
        device = next(model.parameters()).device
        rows += _rows(name, dominance_by_layer(model, pixels.to(device)))
    return pd.DataFrame(rows)


def _rows(name: str, layers: list[LayerDominance]) -> list[dict[str, object]]:
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
        low, high = share_interval(count / classes.size, images)
        percents = (100 * count / classes.size, 100 * low, 100 * high)
        rows.append(
            {"model": name, "reading": "E2", "class": each, "count": count,
             **named("percent", percents), **common}
        )  # fmt: skip
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


STD = 0.02


def untrained_vit(
    seed: int,
    *,
    width: int = 768,
    depth: int = 12,
    heads: int = 12,
    patch: int = 16,
    side: int = 224,
) -> TimmViT:
    """A ViT-B/16 in evaluation mode, drawn from a generator of its own; without a classifier.

    Of timm's shapes and initialisation: linear weights and positions from a normal of standard
    deviation .02 cut at two, biases 0, gains 1. What the paper's own was drawn from is not stated.
    """
    model = TimmViT(
        width=width, depth=depth, heads=heads, patch=patch, image_size=side, hidden=4 * width,
        classes=0,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            _draw(module.weight, generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    for token in (model.pos_embed, model.cls_token):
        _draw(token, generator)
    return model.eval()


def _draw(weight: Tensor, generator: torch.Generator) -> None:
    nn.init.trunc_normal_(weight, std=STD, a=-2 * STD, b=2 * STD, generator=generator)
