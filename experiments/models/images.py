"""A folder of image files as input of a model: greys of the size that the model expects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from oversmoothing.experiments.digits.images import scaled
from oversmoothing.theory.support.errors import InputError

WHITE = 255.0


def load_images(folder: Path, size: int) -> Tensor:
    """Every image file of a folder, in the order of the names, as pixels [m, size, size] float32.

    Colours become grey; bright is ink (255 -> 1, 0 -> -1), as on the digits' own black ground.
    Hidden files and subfolders are passed over. Nothing is resized: `InputError` names a file of
    another size, one that is not an image, a depth of more than 8 bits, and an empty folder.
    """
    if not folder.is_dir():
        raise InputError(f"'{folder}' is not a folder: give a folder of image files to --images")
    files = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
    if not files:
        raise InputError(f"the folder '{folder}' holds no files: put image files (PNG, JPEG) in it")
    return torch.stack([_load(path, size) for path in files])


def _load(path: Path, size: int) -> Tensor:
    try:
        with Image.open(path) as image:
            if image.mode.startswith(("I", "F")):
                raise InputError(
                    f"'{path}' has more than 8 bits a channel ({image.mode}): save it as 8-bit grey"
                )
            if image.size != (size, size):
                raise InputError(
                    f"'{path}' is {image.size[0]} x {image.size[1]} pixels, the model reads "
                    f"{size} x {size}: resize or crop it first"
                )
            grey = np.asarray(image.convert("L"), dtype=np.float64)
    except UnidentifiedImageError as error:
        raise InputError(f"'{path}' is not an image: take it out of the folder") from error
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        # Pillow raises SyntaxError for broken PNG chunks.
        raise InputError(f"the image '{path}' cannot be read ({error}): replace it") from error
    return scaled(grey / WHITE)
