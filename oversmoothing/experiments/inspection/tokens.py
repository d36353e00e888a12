"""Which tokens come together: clusters of a state by the cosines of its pairs, layer by layer.

Two tokens are joined where their signed cosine is TOGETHER or more, and a cluster is what is
connected so: of two of its tokens that are not joined themselves, others lie between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isqrt
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from oversmoothing.experiments.inspection.extract import prepared
from oversmoothing.experiments.models.inputs import Texts
from oversmoothing.experiments.models.model import Model

TOGETHER = 0.95
ALONE = -1
# The largest clusters have these colours (of `PALETTE`), all others grey.
CLUSTER_COLOURS = ("vermillion", "blue", "green", "orange", "purple", "sky")
# More tokens than these in front of the patches are no CLS and registers.
_SPECIAL = 8


def clusters(X: Tensor, cosine: Tensor | None = None) -> NDArray[np.int64]:
    """The cluster of each token of X [n, d], [n]: 0 the largest, ALONE for a token by itself.

    cosine [n, n]: of every pair, where it is known.
    """
    if cosine is None:
        X = X.detach().double()
        unit = X / torch.linalg.vector_norm(X, dim=-1, keepdim=True)
        cosine = unit @ unit.mT
    joined = (cosine >= TOGETHER).cpu().numpy()  # NaN, of a token that is 0, joins nothing
    if joined.sum() == joined.trace():
        return np.full(len(joined), ALONE)
    labels = np.arange(len(joined))
    near = np.flatnonzero(joined.sum(1) > 1)  # the others are alone
    labels[near] = near[connected_components(joined[np.ix_(near, near)], directed=False)[1]]
    sizes = np.bincount(labels)
    order = np.argsort(-sizes, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return np.where(sizes[labels] > 1, rank[labels], ALONE)


def shares(labels: NDArray[np.int64]) -> dict[str, float]:
    """merged_share, of the tokens of a state in a cluster of two or more; largest_cluster, the
    share of the tokens in the largest (1 / n where all are alone)."""
    largest = max(float((labels == 0).mean()), 1 / len(labels))
    return {"merged_share": float((labels != ALONE).mean()), "largest_cluster": largest}


def token_table(
    labels: Sequence[NDArray[np.int64]], words: Sequence[Sequence[str]] | None = None
) -> pd.DataFrame:
    """One row a token of an input after a layer: input, layer, token, cluster (ALONE: none), and
    its word where the words of every input are given."""
    rows = []
    for number, each in enumerate(labels):
        layer, token = np.indices(each.shape)
        columns: dict[str, Any] = {"layer": layer, "token": token, "cluster": each}
        if words is not None:
            columns["word"] = np.tile(np.array(words[number], dtype=object), (len(each), 1))
        flat = {name: values.ravel() for name, values in columns.items()}
        rows.append(pd.DataFrame({"input": number} | flat))
    return pd.concat(rows, ignore_index=True)


def merged_words(tokens: pd.DataFrame) -> pd.DataFrame:
    """One row a cluster of two tokens or more, of a table with words: input, layer, cluster,
    tokens (how many), words ('the x3, of'), those most often in it first."""
    joined = tokens[tokens["cluster"] != ALONE]
    groups = joined.groupby(["input", "layer", "cluster"], sort=True)["word"]
    found = groups.agg(tokens="size", words=_counted)
    return found.reset_index()


def _counted(words: pd.Series) -> str:
    counts = Counter(words)
    return ", ".join(word if k == 1 else f"{word} x{k}" for word, k in counts.most_common())


def shortened(words: str, letters: int) -> str:
    """The first of a list of words, of so many letters at most and an ellipsis."""
    if len(words) <= letters:
        return words
    whole = words[: letters + 2].rpartition(", ")[0]
    return f"{whole or words[:letters]} ..."


def patch_side(tokens: int, pixels: tuple[int, ...]) -> int | None:
    """The side of the square of patches of images of shape pixels [k, H, W, 3], of which so many
    tokens are: the last side^2, behind CLS and registers. None where they are no such square."""
    side, (height, width) = isqrt(tokens), pixels[1:3]
    square = height == width and height % side == 0 and tokens - side * side <= _SPECIAL
    return side if square else None


# Inputs whose tokens are listed and drawn.
DRAWN = 3


def shown_pixels(model: Model, inputs: Any) -> NDArray[np.float64] | None:
    """The first DRAWN inputs [k, H, W, 3] in [0, 1] as the model sees them, each stretched to its
    own range; None where they are no images or come from an iterator, which is read but once."""
    batch = _first_inputs(model, inputs) if model.modality == "vision" else None
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
    batch = _first_inputs(model, inputs)
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


def _first_inputs(model: Model, inputs: Any) -> Any:
    """A batch of the first DRAWN inputs, None where they are of an iterator."""
    if isinstance(inputs, Mapping):
        return {name: value[:DRAWN] for name, value in inputs.items()}
    if not isinstance(inputs, Tensor | Sequence) or not len(inputs):
        return None
    return prepared(model, inputs[:DRAWN])
