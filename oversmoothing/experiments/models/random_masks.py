"""Models that hide a random part of their input from themselves (masked autoencoders), shown whole.

A random mask would be another one in every pass, and a quarter of the patches is no image.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

SHOWN = "the random mask of its training is off: every patch is shown, in its place"


def hides_at_random(module: nn.Module) -> bool:
    """Whether the module draws which patches it sees."""
    config = getattr(module, "config", None)
    return "noise" in inspect.signature(module.forward).parameters and bool(
        getattr(config, "mask_ratio", 0)
    )


def shown_whole(module: nn.Module, run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`run`, with every patch shown; the module's config is as it was after each call."""
    config: Any = module.config

    def show(batch: Any) -> Any:
        given = dict(batch) if isinstance(batch, Mapping) else {"pixel_values": batch}
        pixels = given["pixel_values"]
        patches = (pixels.shape[-1] // config.patch_size) ** 2
        # Patches are kept in the order of their noise.
        order = torch.arange(float(patches), device=pixels.device).expand(len(pixels), -1)
        ratio, config.mask_ratio = config.mask_ratio, 0.0
        try:
            return run({"noise": order, **given})
        finally:
            config.mask_ratio = ratio

    return show
