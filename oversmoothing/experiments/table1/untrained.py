"""A ViT-B/16 before training, the first column of Table 1 of arXiv 2401.04301.

Of timm's shapes and initialisation: linear weights and positions from a normal of standard
deviation .02 cut at two, biases 0, gains 1. What the paper's own was drawn from is not stated.
"""

import torch
from torch import Tensor, nn

from oversmoothing.experiments.models.adapters import TimmViT

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
    """The model in evaluation mode, drawn from a generator of its own; without a classifier."""
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
