"""The first inputs as the model is given them, to be shown: pixels, or their tokens' words."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from oversmoothing.experiments.inspection.extract import prepared
from oversmoothing.experiments.models.inputs import Texts
from oversmoothing.experiments.models.model import Model

# Inputs whose tokens are listed and drawn.
DRAWN = 3


def shown_pixels(model: Model, inputs: Any) -> NDArray[np.float64] | None:
    """The first DRAWN inputs [k, H, W, 3] in [0, 1] as the model sees them, each stretched to its
    own range; None where they are no images or come from an iterator, which is read but once."""
    batch = _first(model, inputs) if model.modality == "vision" else None
    pixels = batch.get("pixel_values") if isinstance(batch, Mapping) else batch
    if not isinstance(pixels, Tensor) or pixels.ndim not in (3, 4):
        return None
    if pixels.ndim == 3:
        pixels = pixels.unsqueeze(1)
    if pixels.shape[1] not in (1, 3):
        return None
    values = pixels.detach().cpu().double().permute(0, 2, 3, 1).expand(-1, -1, -1, 3)
    low, high = (getattr(values, f"a{end}")((1, 2, 3), keepdim=True) for end in ("min", "max"))
    scaled: NDArray[np.float64] = ((values - low) / (high - low).clamp_min(1e-12)).numpy()
    return scaled


def shown_words(model: Model, inputs: Any) -> list[list[str]] | None:
    """The words of the tokenizer, token by token without padding, of the first DRAWN inputs; None
    without a tokenizer, and where the inputs come from an iterator, which is read but once."""
    if not isinstance(model.prepare, Texts):
        return None
    batch = _first(model, inputs)
    if batch is None:
        return None
    whole = batch if isinstance(batch, Mapping) else {"input_ids": batch}
    words = []
    for number, ids in enumerate(whole["input_ids"]):
        mask = whole.get("attention_mask")
        said = model.prepare.words((ids if mask is None else ids[mask[number].bool()]).tolist())
        if said is None:
            return None
        words.append(said)
    return words


def _first(model: Model, inputs: Any) -> Any:
    """A batch of the first DRAWN inputs, None where they are of an iterator."""
    if isinstance(inputs, Mapping):
        return {name: value[:DRAWN] for name, value in inputs.items()}
    if not isinstance(inputs, Tensor | Sequence) or not len(inputs):
        return None
    return prepared(model, inputs[:DRAWN])
