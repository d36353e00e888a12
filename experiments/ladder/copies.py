"""Altered copies of calibration images: more observations from the same images.

The first copy is the mirror image, the others are square crops of 3/4 to all of the side, mirrored
half of the time. The model is run on the copies; they belong to calibration and cost nothing for
a held-out image.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from PIL import Image

SMALLEST = 0.75


def altered(images: Sequence[Image.Image], number: int, seed: int) -> Iterator[Image.Image]:
    """`number` copies of every image, copy by copy: all mirrors first."""
    random = np.random.default_rng(seed)
    for copy in range(number):
        for image in images:
            if copy == 0:
                yield image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
                continue
            width, height = image.size
            share = random.uniform(SMALLEST, 1.0)
            w, h = share * width, share * height
            x, y = random.uniform(0, width - w), random.uniform(0, height - h)
            crop = image.transform(
                (width, height),
                Image.Transform.EXTENT,
                (x, y, x + w, y + h),
                Image.Resampling.BICUBIC,
            )
            mirror = random.random() < 0.5
            yield crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirror else crop
