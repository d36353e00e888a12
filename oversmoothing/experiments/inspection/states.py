"""What is asked of one state of the stream: its metrics, what a sink hides of it, its clusters.

Sinks (T4g): in trained streams most of a "rank collapse" can be a single direction, the sink of the
attention: erank(X) = e^eta(p) erank(X')^(1-p), exactly, X' the state without its largest direction
and p the share that it has of the singular values. A rank that grows with the number of tokens
counts tokens, not directions.

Everything of a state comes from one Gram matrix of its features and one of its unit tokens. Without
the largest direction the singular values are the same but for the first; near collapse, where the
Gram matrix has no digits of them, they are taken of what is left of X.

Two tokens are joined where their signed cosine is TOGETHER or more; a cluster is what is connected
so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Float64
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from oversmoothing.experiments.inspection.extract import prepared
from oversmoothing.experiments.models.inputs import Texts
from oversmoothing.experiments.models.model import Model
from oversmoothing.simulations.state import fetched
from oversmoothing.simulations.state_metrics import stream_state

# Tokens of more than this many times the median norm count as sinks, registers among them.
LARGE = 4.0
# The rank of all tokens over that of every second one: above, it still grows with the tokens.
CONVERGED = 1.1
# Of sigma_2 / sigma_1: below, what is behind sigma_1 is lost in the Gram matrix.
_NEAR = 0.05
RANKS = ("effective_rank", "sigma2_sigma1")

Columns = dict[str, Tensor]


def state_numbers(
    X: Float[Tensor, "b n d"], *, cls: bool, registers: int, ranks: int, closely: int
) -> tuple[Columns, list[Columns], list[NDArray[np.int64]]]:
    """(metrics by name [b], RANKS [ranks]; input by input of the first `closely` its sinks, growth
    and shares of clusters by name [1]; the cluster of each of their tokens)."""
    state = stream_state(X, without_first=cls, ranks=ranks)
    metrics = {
        name: value[:ranks] if name.startswith(RANKS) else value
        for name, value in state.values.items()
        if ranks or not name.startswith(RANKS)
    }
    close: list[Columns] = []
    labels = []
    for k in range(min(closely, len(X))):
        known = {
            suffix: Raw(metrics[f"cos_mean{suffix}"][k], state.gram[suffix][k], sigma[k])
            for suffix, sigma in state.sigma.items()
            if bool(state.plain[k])
        }
        numbers: dict[str, Any] = sinks(X[k], cls=cls, registers=registers, known=known)
        growth = metrics["effective_rank"][k] / numbers["effective_rank_half"]
        labels.append(clusters(X[k], state.cosine[k] if known else None))
        numbers |= {"rank_growth": growth} | shares(labels[-1])
        wide = {name: torch.as_tensor(x, dtype=torch.float64) for name, x in numbers.items()}
        close.append({name: x.reshape(1) for name, x in wide.items()})
    return metrics, close, labels


class Raw(NamedTuple):
    """Mean cosine, smaller Gram matrix and singular values, largest first, of some tokens."""

    cosine: Tensor
    gram: Tensor
    sigma: Tensor


def sinks(
    X: Float[Tensor, "n d"],
    *,
    cls: bool = False,
    registers: int = 0,
    known: dict[str, Raw] | None = None,
) -> dict[str, Float64[Tensor, ""]]:
    """By name, of one state whose tokens are CLS, where there is one, the registers, and the rest:

    cos_mean_desunk, effective_rank_desunk: without the largest direction, X - sigma_1 u_1 v_1^T;
    sink_share: sigma_1 over the sum of the singular values. effective_rank_half: of every second
    token. cos_mean_without_large, effective_rank_without_large: without the tokens of more than
    LARGE times the median norm, large_tokens of them. The first three, cos_mean and effective_rank
    once more under names that end in
        _without_first       without position 0 (CLS, where there is one)
        _without_registers   without the registers, where there are any
        _patches             without either, where there are registers

    known: of all tokens ('') and of those behind the first ('_without_cls') what is known already.
    NaN where nothing is left to measure: one token, a state of rank 1, a token that is 0.
    """
    X, known = X.detach().double(), known or {}
    size = torch.linalg.vector_norm(X, dim=-1)
    large = size > LARGE * size.median()
    whole = known[""] if "" in known else _raw(X)
    small = _raw(X[~large]) if bool(large.any()) else whole
    numbers = _behind(X, whole) | {
        "cos_mean_without_large": small.cosine,
        "effective_rank_without_large": _effective_rank(small.sigma),
        "large_tokens": large.sum().double(),
        "effective_rank_half": _effective_rank(_singular_values(_gram(X[::2]))),
    }
    first, end = int(cls), int(cls) + registers
    without = {"without_first": X[1:]}
    if registers:
        without |= {"without_registers": torch.cat([X[:first], X[end:]]), "patches": X[end:]}
    for name, part in without.items():
        used = name == "without_first" and "_without_cls" in known
        raw = known["_without_cls"] if used else _raw(part)
        own = {"cos_mean": raw.cosine, "effective_rank": _effective_rank(raw.sigma)}
        own |= _behind(part, raw)
        numbers |= {f"{each}_{name}": value for each, value in own.items()}
    return numbers


def _raw(X: Tensor) -> Raw:
    gram = _gram(X)
    return Raw(_cosine(X), gram, _singular_values(gram))


def _behind(X: Tensor, raw: Raw) -> Columns:
    """What is behind the largest direction of X."""
    undefined, sigma = X.new_full((), torch.nan), raw.sigma
    if not len(X) or not float(sigma[0]) > 0:
        names = ("cos_mean_desunk", "effective_rank_desunk", "sink_share")
        return dict.fromkeys(names, undefined)
    v = _along(X, _first_vector(raw.gram, sigma[0].square()))
    rest, behind, left = X - (X @ v).unsqueeze(-1) * v, sigma[1:], True
    if len(sigma) < 2 or float(sigma[1] / sigma[0]) < _NEAR:
        # The rounding of X is no rank: what is left of a state of rank 1 is undefined.
        behind = _singular_values(_gram(rest))
        left = float(behind[0]) > 1e-12 * float(sigma[0])
    return {
        "cos_mean_desunk": _cosine(rest) if left else undefined,
        "effective_rank_desunk": _effective_rank(behind) if left else undefined,
        "sink_share": sigma[0] / (sigma[0] + behind.sum()),
    }


def _first_vector(gram: Tensor, top: Tensor) -> Tensor:
    """The eigenvector of the largest eigenvalue, which is known, by inverse iteration: each step
    leaves of the others what rounding has of their distance."""
    # Just beyond it, and a pivot that rounding leaves at 0 is as small as rounding, not 0.
    eye, small = torch.eye(len(gram)).to(gram), torch.finfo(gram.dtype).eps * top
    factors, pivots, _ = torch.linalg.lu_factor_ex(gram - top * eye - 4 * small * eye)
    diagonal = factors.diagonal()
    diagonal.copy_(torch.where(diagonal == 0, small, diagonal))
    v = gram[gram.diagonal().argmax()]
    for _ in range(2):
        v = torch.linalg.lu_solve(factors, pivots, v.unsqueeze(-1)).squeeze(-1)
        v = v / torch.linalg.vector_norm(v)
    return v


def _along(X: Tensor, v: Tensor) -> Tensor:
    """An eigenvector of the smaller Gram matrix as one of features, of length 1."""
    v = v if len(v) == X.shape[1] else X.mT @ v
    size = torch.linalg.vector_norm(v)
    return v / torch.where(size > 0, size, 1.0)


def _gram(X: Tensor) -> Tensor:
    """The smaller of X X^T and X^T X."""
    return X @ X.mT if X.shape[0] < X.shape[1] else X.mT @ X


def _singular_values(gram: Tensor) -> Tensor:
    """Largest first; [0.] of no token."""
    if not len(gram):
        return gram.new_zeros(1)
    numbers: Tensor = torch.linalg.eigvalsh(gram).clamp_min(0.0).sqrt().flip(-1)
    return numbers


def _effective_rank(sigma: Tensor) -> Tensor:
    """exp of the entropy of the singular values over their sum; NaN where all are 0."""
    numbers: Tensor = torch.special.entr(sigma / sigma.sum()).sum().exp()
    return numbers


def _cosine(X: Tensor) -> Tensor:
    """The mean signed cosine over pairs of distinct tokens; NaN for fewer than two."""
    n = len(X)
    unit = X / torch.linalg.vector_norm(X, dim=-1, keepdim=True)
    if n < 2:
        return X.new_full((), torch.nan)
    numbers: Tensor = (unit.sum(0).square().sum() - unit.square().sum()) / (n * (n - 1))
    return numbers


TOGETHER = 0.95
ALONE = -1
# The largest clusters have these colours (of `PALETTE`), all others grey.
CLUSTER_COLOURS = ("vermillion", "blue", "green", "orange", "purple", "sky")
# More tokens than these in front of the patches are no CLS and registers.
_SPECIAL = 8


def clusters(X: Tensor, cosine: Tensor | None = None) -> NDArray[np.int64]:
    """The cluster of each token of X [n, d], [n]: 0 the largest, ALONE for a token by itself;
    cosine [n, n]: of every pair, where it is known."""
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
        layer, token = (place.ravel() for place in np.indices(each.shape))
        columns = {"input": number, "layer": layer, "token": token, "cluster": each.ravel()}
        rows.append(pd.DataFrame(columns))
        if words is not None:
            rows[-1]["word"] = list(words[number]) * len(each)
    return pd.concat(rows, ignore_index=True)


def merged_words(tokens: pd.DataFrame) -> pd.DataFrame:
    """One row a cluster of two tokens or more, of a table with words: input, layer, cluster,
    tokens (how many), words ('the x3, of'), those most often in it first."""
    joined = tokens[tokens["cluster"] != ALONE]
    groups = joined.groupby(["input", "layer", "cluster"], sort=True)["word"]
    numbers = groups.agg(tokens="size", words=_counted)
    return numbers.reset_index()


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
    mask = whole.get("attention_mask", torch.ones_like(whole["input_ids"]))
    texts = zip(*fetched([whole["input_ids"], mask.bool()]), strict=True)
    words = [model.prepare.words(ids[kept].tolist()) for ids, kept in texts]
    return None if None in words else words  # type: ignore[return-value]


def _first_inputs(model: Model, inputs: Any) -> Any:
    """A batch of the first DRAWN inputs, None where they are of an iterator."""
    if isinstance(inputs, Mapping):
        return {name: value[:DRAWN] for name, value in inputs.items()}
    if not isinstance(inputs, Tensor | Sequence) or not len(inputs):
        return None
    return prepared(model, inputs[:DRAWN])
