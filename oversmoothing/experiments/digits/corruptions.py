"""Corrupted test images at severity 0 to 5, as CIFAR-100-C makes them (arXiv 1903.12261).

The definitions and constants are those of the generator of its CIFAR files for the kinds that need
no further pictures, on scipy and Pillow: what comes out is "in the style of" CIFAR-C and never the
benchmark. (The libraries that have the set at hand bind to torchvision or hold ImageNet's constants
alone.) Where a kind is made otherwise than there, its line says so. Digits take the same constants
on 8 x 8 pixels, and `saturate` not at all: they have no colour.

The published files, in the folder `CIFAR-10-C` or `CIFAR-100-C` of real inputs, go before these.
"""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.colors import hsv_to_rgb, rgb_to_hsv
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from oversmoothing.experiments.digits.data import LabelledImages
from oversmoothing.theory.support.errors import InputError

Pictures = NDArray[np.float64]  # [m, s, s, c], values in [0, 1]
Rng = np.random.Generator
SEVERITIES = (0, 1, 2, 3, 4, 5)
# Of all that is drawn: every model is scored on the same corrupted images.
SEED = 1903
PUBLISHED = {"cifar10": "CIFAR-10-C", "cifar100": "CIFAR-100-C"}
TEST_IMAGES = 10_000


def _impulse_noise(x: Pictures, c: Any, rng: Rng) -> Pictures:
    drawn = rng.random(x.shape)
    return np.where(drawn < c / 2, 0.0, np.where(drawn < c, 1.0, x))


def _defocus_blur(x: Pictures, c: Any, rng: Rng) -> Pictures:
    radius, alias = c
    side = np.arange(-8, 9)
    disk = (side[:, None] ** 2 + side**2 <= radius**2).astype(np.float64)
    smooth = np.exp(-(np.arange(-1, 2) ** 2) / (2 * alias**2))
    smooth = np.outer(smooth, smooth) / smooth.sum() ** 2
    kernel = ndimage.convolve(disk / disk.sum(), smooth, mode="constant")
    return np.asarray(ndimage.convolve(x, kernel[None, :, :, None], mode="mirror"))


def _motion_blur(x: Pictures, c: Any, rng: Rng) -> Pictures:
    """A one-sided Gaussian along a direction within 45 degrees; there ImageMagick does it."""
    radius, sigma = c
    weights = np.exp(-(np.arange(2 * radius + 1) ** 2) / (2 * sigma**2))
    angles = np.radians(rng.uniform(-45, 45, len(x)))
    blurred = np.empty_like(x)
    for k, angle in enumerate(angles):
        blurred[k] = sum(
            w * ndimage.shift(x[k], (i * np.sin(angle), i * np.cos(angle), 0), order=1,
                              mode="nearest")
            for i, w in enumerate(weights / weights.sum())
        )  # fmt: skip
    return blurred


def _zoom_blur(x: Pictures, c: Any, rng: Rng) -> Pictures:
    """The mean of the picture and its enlargements about the centre, bilinear."""
    steps = np.arange(1, c, 0.01)
    middle, total = (x.shape[1] - 1) / 2, x.copy()
    for z in steps:
        total += ndimage.affine_transform(
            x, [1, 1 / z, 1 / z, 1], offset=[0, middle * (1 - 1 / z), middle * (1 - 1 / z), 0],
            order=1, mode="nearest",
        )  # fmt: skip
    return total / (len(steps) + 1)


def _fog(x: Pictures, c: Any, rng: Rng) -> Pictures:
    size, amount = x.shape[1], c[0]
    fogs = np.stack([_plasma(32, c[1], rng)[:size, :size] for _ in x])[..., None]
    most = x.max((1, 2, 3), keepdims=True)
    return np.asarray((x + amount * fogs) * most / (most + amount))


def _plasma(size: int, decay: float, rng: Rng) -> NDArray[np.float64]:
    """A fractal [size, size] in [0, 1] by diamonds and squares on a torus; size a power of 2."""
    heights = np.zeros((size, size))
    step, wibble = size, 100.0
    while step > 1:
        half = step // 2

        def drawn(mean: NDArray[np.float64], reach: float = wibble) -> NDArray[np.float64]:
            return mean / 4 + reach * rng.uniform(-1, 1, mean.shape)

        corners = heights[::step, ::step]
        across = corners + np.roll(corners, -1, 0)
        heights[half::step, half::step] = drawn(across + np.roll(across, -1, 1))
        centres = heights[half::step, half::step]
        right = centres + np.roll(centres, 1, 0) + corners + np.roll(corners, -1, 1)
        below = centres + np.roll(centres, 1, 1) + corners + np.roll(corners, -1, 0)
        heights[::step, half::step], heights[half::step, ::step] = drawn(right), drawn(below)
        step, wibble = half, wibble / decay
    heights -= heights.min()
    heights /= heights.max()
    return heights


def _brightness(x: Pictures, c: Any, rng: Rng) -> Pictures:
    if x.shape[-1] == 1:
        return np.asarray(x + c)
    hsv = rgb_to_hsv(x)
    hsv[..., 2] = np.clip(hsv[..., 2] + c, 0, 1)
    return hsv_to_rgb(hsv)


def _contrast(x: Pictures, c: Any, rng: Rng) -> Pictures:
    mean: Pictures = x.mean((1, 2), keepdims=True)
    return np.asarray((x - mean) * c + mean)


def _saturate(x: Pictures, c: Any, rng: Rng) -> Pictures:
    hsv = rgb_to_hsv(x)
    hsv[..., 1] = np.clip(hsv[..., 1] * c[0] + c[1], 0, 1)
    return hsv_to_rgb(hsv)


def _jpeg(x: Pictures, c: Any, rng: Rng) -> Pictures:
    def stored(picture: Image.Image) -> Image.Image:
        stream = io.BytesIO()
        picture.save(stream, "JPEG", quality=c)
        return Image.open(stream)

    return _each(x, stored)


def _pixelate(x: Pictures, c: Any, rng: Rng) -> Pictures:
    size = x.shape[1]
    small, box = max(1, int(size * c)), Image.Resampling.BOX
    return _each(x, lambda one: one.resize((small, small), box).resize((size, size), box))


def _each(x: Pictures, change: Callable[[Image.Image], Image.Image]) -> Pictures:
    """Through Pillow's pictures of 8 bits."""
    made = np.empty_like(x)
    for k, one in enumerate(np.rint(x * 255).astype(np.uint8)):
        changed = change(Image.fromarray(one[..., 0] if one.shape[-1] == 1 else one))
        made[k] = np.asarray(changed).reshape(one.shape) / 255
    return made


# name -> (what it does, its constant at severity 1 to 5).
KINDS: dict[str, tuple[Callable[[Pictures, Any, Rng], Pictures], tuple[Any, ...]]] = {
    "gaussian_noise": (lambda x, c, rng: x + rng.normal(size=x.shape, scale=c),
                       (0.04, 0.06, 0.08, 0.09, 0.10)),
    "shot_noise": (lambda x, c, rng: rng.poisson(x * c) / c, (500, 250, 100, 75, 50)),
    "impulse_noise": (_impulse_noise, (0.01, 0.02, 0.03, 0.05, 0.07)),
    "speckle_noise": (lambda x, c, rng: x + x * rng.normal(size=x.shape, scale=c),
                      (0.06, 0.1, 0.12, 0.16, 0.2)),
    "gaussian_blur": (lambda x, c, rng: ndimage.gaussian_filter(x, (0, c, c, 0), mode="nearest"),
                      (0.4, 0.6, 0.7, 0.8, 1)),
    "defocus_blur": (_defocus_blur, ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1))),
    "motion_blur": (_motion_blur, ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5))),
    "zoom_blur": (_zoom_blur, (1.06, 1.11, 1.16, 1.21, 1.26)),
    "fog": (_fog, ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75))),
    "brightness": (_brightness, (0.05, 0.1, 0.15, 0.2, 0.3)),
    "contrast": (_contrast, (0.75, 0.5, 0.4, 0.3, 0.15)),
    "saturate": (_saturate, ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2))),
    "jpeg_compression": (_jpeg, (80, 65, 58, 50, 40)),
    "pixelate": (_pixelate, (0.95, 0.9, 0.85, 0.75, 0.65)),
}  # fmt: skip


def kinds_for(images: LabelledImages) -> list[str]:
    """The kinds that these images take."""
    colour = images.pixels.dtype == torch.uint8
    return [name for name in KINDS if colour or name != "saturate"]


def corrupted(images: LabelledImages, kind: str, severity: int) -> LabelledImages:
    """The images with one kind of corruption at severity 0 (none) to 5, the same on every call.

    Colours come back as uint8, as CIFAR-C stores them, greys as floats in [-1, 1].
    """
    if kind not in kinds_for(images):
        raise InputError(f"no corruption '{kind}' of these images: {', '.join(kinds_for(images))}")
    if severity not in SEVERITIES:
        raise InputError(f"severity {severity}: give a whole number from 0 to 5")
    if severity == 0:
        return images
    change, constants = KINDS[kind]
    rng = np.random.default_rng([SEED, list(KINDS).index(kind), severity])
    pixels = images.pixels.cpu().numpy()
    colour = pixels.dtype == np.uint8
    x = pixels.transpose(0, 2, 3, 1) / 255 if colour else (pixels[..., None] + 1.0) / 2
    changed = np.clip(change(x, constants[severity - 1], rng), 0, 1)
    if colour:
        stored = np.rint(changed * 255).astype(np.uint8).transpose(0, 3, 1, 2)
    else:
        stored = (2 * changed[..., 0] - 1).astype(np.float32)
    made = torch.from_numpy(np.ascontiguousarray(stored)).to(images.pixels.device)
    return LabelledImages(made, images.labels)


def published(name: str, data: Path | None, kind: str, severity: int) -> LabelledImages | None:
    """The published CIFAR-C images of a kind, where the folder of real inputs holds them."""
    folder = None if data is None or name not in PUBLISHED else data / PUBLISHED[name]
    if folder is None or not folder.is_dir():
        return None
    part = slice((severity - 1) * TEST_IMAGES, severity * TEST_IMAGES)
    try:
        pixels = np.load(folder / f"{kind}.npy", mmap_mode="r", allow_pickle=False)
        labels = np.load(folder / "labels.npy", allow_pickle=False)
        if pixels.shape != (5 * TEST_IMAGES, 32, 32, 3) or len(labels) != len(pixels):
            raise ValueError(f"the shape is {pixels.shape}")
        own = np.ascontiguousarray(pixels[part].transpose(0, 3, 1, 2))
    except (OSError, ValueError) as error:
        raise InputError(
            f"'{folder / kind}.npy' cannot be read as {PUBLISHED[name]} ({error}): replace it"
        ) from error
    return LabelledImages(torch.from_numpy(own), torch.from_numpy(labels[part].astype(np.int64)))
