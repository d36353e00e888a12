"""A pretrained vision transformer from a Hugging Face folder: attention by head, and each head's
W_V and W_proj.

Modules are found by what they can do (query, key, value and output projections), not by the name
of a library version. Needs the extra `models`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from theory.errors import InputError

Array = NDArray[np.float64]

# (query, key, value, output) under the names of several generations of the library.
_NAMES = (
    ("q_proj", "k_proj", "v_proj", "o_proj"),
    ("attention.query", "attention.key", "attention.value", "output.dense"),
)


@dataclass(frozen=True)
class PretrainedViT:
    """A loaded model in float64 and evaluation mode, and how its images are prepared."""

    model: nn.Module
    heads: int
    size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def layers(self) -> Iterator[tuple[Array, Array]]:
        """(W_V [d, d], W_proj [d, d]) of each layer in X W form (rows = tokens), float64.

        Head h uses columns h r ... (h + 1) r of W_V and the same rows of W_proj.
        """
        for module in self.model.modules():
            found = _projections(module)
            if found is not None:
                value, output = found
                yield _weight(value), _weight(output)

    @torch.no_grad()
    def attention(self, pixels: Tensor) -> list[Array]:
        """Per layer the attention [images, heads, n, n] of pixels [images, 3, s, s].

        float64 numbers; the library rounds the softmax itself to float32, so that rows sum to 1
        within that only.
        """
        answer = self.model(pixels.double(), output_attentions=True)
        attentions = answer.attentions
        if attentions is None or any(a is None for a in attentions):
            raise InputError(
                "the model returned no attention (a fused implementation hides it): load it with "
                "attn_implementation='eager'"
            )
        return [a.double().numpy() for a in attentions]

    def prepare(self, images: list[Image.Image]) -> Tensor:
        """Images as pixels [m, 3, s, s]: RGB, resized (bicubic), normalised for the model."""
        mean, std = np.array(self.mean), np.array(self.std)
        arrays = []
        for image in images:
            scaled = image.convert("RGB").resize((self.size, self.size), Image.Resampling.BICUBIC)
            arrays.append((np.asarray(scaled, dtype=np.float64) / 255 - mean) / std)
        return torch.from_numpy(np.stack(arrays)).permute(0, 3, 1, 2)


def _projections(module: nn.Module) -> tuple[nn.Linear, nn.Linear] | None:
    for names in _NAMES:
        try:
            parts = [module.get_submodule(name) for name in names]
        except AttributeError:
            continue
        if all(isinstance(part, nn.Linear) for part in parts):
            value, output = parts[2], parts[3]
            assert isinstance(value, nn.Linear) and isinstance(output, nn.Linear)
            return value, output
    return None


def _weight(linear: nn.Linear) -> Array:
    return np.ascontiguousarray(linear.weight.detach().double().numpy().T)


def load_vit(folder: str | Path) -> PretrainedViT:
    """Load a Hugging Face image model from a local folder with safetensors weights.

    Raises `InputError` where the library, the folder or a file of it is missing or unusable.
    """
    place = Path(folder)
    try:
        import transformers
    except ImportError as error:
        raise InputError(
            "reading pretrained models needs the extra: pip install 'oversmoothing[models]'"
        ) from error
    if not (place / "config.json").is_file():
        raise InputError(f"'{place}' is no model folder: it holds no config.json")
    if not list(place.glob("*.safetensors")):
        raise InputError(
            f"'{place}' holds no .safetensors weights; pickled checkpoints are refused: convert "
            "them to safetensors first"
        )
    # Missing pooling and unused classifier weights are expected here and no news to the user.
    logging: Any = transformers.utils.logging
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        model: Any = transformers.AutoModel.from_pretrained(
            place, attn_implementation="eager", use_safetensors=True
        )
    except Exception as error:  # the library raises many kinds
        raise InputError(f"'{place}' cannot be loaded ({type(error).__name__}: {error})") from error
    if not any(_projections(module) for module in model.modules()):
        raise InputError(f"no attention with q, k, v and output projections found in '{place}'")
    config = model.config
    settings = _preprocessing(place)
    return PretrainedViT(
        model.double().eval(),
        int(config.num_attention_heads),
        int(getattr(config, "image_size", 224)),
        tuple(settings.get("image_mean", (0.5, 0.5, 0.5))),
        tuple(settings.get("image_std", (0.5, 0.5, 0.5))),
    )


def _preprocessing(place: Path) -> dict[str, Any]:
    path = place / "preprocessor_config.json"
    return dict(json.loads(path.read_text("utf-8"))) if path.is_file() else {}


def photographs(folder: str | Path | None, count: int) -> list[Image.Image]:
    """`count` images: of a folder in order of name, or scikit-learn's two photographs and crops.

    Raises `InputError` for an empty folder or a file that is no image.
    """
    if folder is None:
        from sklearn.datasets import load_sample_images

        whole = [Image.fromarray(array) for array in load_sample_images().images]
        width, height = whole[0].size
        side = min(width, height)
        found = [*whole]
        # Squares of decreasing size along the diagonal of both photographs, alternately.
        step = 0
        while len(found) < count:
            part, shift = int(side * 0.8 ** (step // 2 + 1)), 24 * (step // 2)
            box = (shift, shift, shift + part, shift + part)
            found.append(whole[step % 2].crop(box))
            step += 1
        return found[:count]
    paths = sorted(path for path in Path(folder).iterdir() if path.is_file())[:count]
    if not paths:
        raise InputError(f"'{folder}' holds no files: give a folder of images")
    images = []
    for path in paths:
        try:
            with Image.open(path) as image:
                images.append(image.convert("RGB"))
        except OSError as error:
            raise InputError(f"'{path}' is not an image that can be read ({error})") from error
    return images
