"""What a training batch becomes: slight affine moves, or the recipe of DeiT.

The recipe of DeiT (Touvron et al. 2021, arXiv 2012.12877, Table 9) with the operations of kornia:
RandAugment at 9 of 10 (27 of kornia's 30; each operation with probability 1/2, as there), random
crops and flips, erasing with probability 1/4, then for each batch mixup (Beta(.8, .8)) or CutMix
(Beta(1, 1)), one or the other. As usual at 32 x 32 pixels a crop is one of the image with a margin
of 4 pixels, not a resized part. kornia draws one pair of operations for a batch: so that images
differ, a batch is augmented in groups. Its operations are not those of timm one by one (its colours
only gain contrast, solarising is weaker); shears and translations reach as far as timm's.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from oversmoothing.experiments.digits.config import TrainConfig
from oversmoothing.experiments.digits.images import Images, augmented
from oversmoothing.theory.support.errors import required

# Of the recipe, and of the images of one pair of operations.
MAGNITUDE, ERASING, MIXUP, MARGIN, GROUP = 27, 0.25, 0.8, 4, 64
# timm shears by 0.3 and kornia counts half turns: arctan(0.3) / pi; timm translates by 0.45.
SHEAR, TRANSLATE = 0.093, 0.45
_POLICY = [
    ("auto_contrast", 0, 1), ("equalize", 0, 1), ("invert", 0, 1), ("rotate", -30.0, 30.0),
    ("posterize", 4.0, 8.0), ("solarize", 0.0, 1.0), ("solarize_add", 0.0, 0.43),
    ("color", 0.1, 1.9), ("contrast", 0.1, 1.9), ("brightness", 0.1, 1.9), ("sharpness", 0.1, 1.9),
    ("shear_x", -SHEAR, SHEAR), ("shear_y", -SHEAR, SHEAR),
    ("translate_x", -TRANSLATE, TRANSLATE), ("translate_y", -TRANSLATE, TRANSLATE),
]  # fmt: skip


@contextmanager
def drawn_from(generator: torch.Generator, device: torch.device) -> Iterator[None]:
    """The global generators, which dropout and kornia use, seeded by a draw; as before after."""
    seed = int(torch.randint(2**62, (), generator=generator))
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def training_batch(
    images: Images, chosen: Tensor, config: TrainConfig, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """(pixels that the model reads, targets): classes [b], or where images are mixed their shares
    [b, classes]. All that is drawn comes from `generator`."""
    pixels, labels = images.inputs(chosen), images.labels[chosen]
    if config.augmentation == "affine":
        reach = config.model_dump(include={"shift", "rotation", "zoom"})
        return augmented(pixels, generator, **reach), labels
    with drawn_from(generator, pixels.device):
        return _deit(pixels, labels, config.sizes.classes)


def _deit(pixels: Tensor, labels: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    shares = functional.one_hot(labels, classes).to(pixels)
    colours = (pixels + 1) / 2
    colours = torch.cat([_picture_operations()(part) for part in torch.split(colours, GROUP)])
    if torch.rand(()) < 0.5:
        share = float(torch.distributions.Beta(MIXUP, MIXUP).sample())
        mixed = share * colours + (1 - share) * colours.flip(0)
        return 2 * mixed - 1, share * shares + (1 - share) * shares.flip(0)
    mixed, found = _cutmix()(colours, labels)
    # [1, b, 3]: the label, that of the image pasted in, the share that is left of the image.
    pasted = functional.one_hot(found[0, :, 1].long(), classes).to(pixels)
    left = found[0, :, 2:].to(pixels)
    return 2 * mixed - 1, left * shares + (1 - left) * pasted


@cache
def _picture_operations() -> Any:
    kornia = required("kornia.augmentation")
    automatic = required("kornia.augmentation.auto")
    return torch.nn.Sequential(
        kornia.RandomCrop((32, 32), padding=MARGIN, p=1.0),
        kornia.RandomHorizontalFlip(p=0.5),
        automatic.RandAugment(n=2, m=MAGNITUDE, policy=[[each] for each in _POLICY]),
        kornia.RandomErasing(p=ERASING),
    )


@cache
def _cutmix() -> Any:
    return required("kornia.augmentation").RandomCutMixV2(
        beta=1.0, data_keys=["input", "class"], use_correct_lambda=True
    )
