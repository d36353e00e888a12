"""What is asked of one state of the stream: its metrics, what a sink hides of it, its clusters.

Sinks (T4g): in trained streams most of a "rank collapse" can be a single direction, the sink of the
attention: erank(X) = e^eta(p) erank(X')^(1-p), exactly, X' the state without its largest direction
and p the share that it has of the singular values. Beside that, whether the effective rank has
converged in the number of tokens: a rank that grows with the tokens counts tokens, not directions.

Everything of a state comes from one Gram matrix of its features and one of its unit tokens. Without
the largest direction the singular values are the same but for the first, whose vector is found by
powers; near collapse, where the Gram matrix has no digits of them, X itself is decomposed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float64
from numpy.typing import NDArray
from torch import Tensor

from oversmoothing.experiments.inspection.tokens import clusters, shares
from oversmoothing.simulations.state_metrics import stream_state

# Tokens of more than this many times the median norm count as sinks, registers among them.
LARGE = 4.0
# The rank of all tokens over that of every second one: above, it still grows with the tokens.
CONVERGED = 1.1
# Of sigma_2 / sigma_1: below, what is behind sigma_1 is lost in the Gram matrix; above, powers are
# slower than an eigenproblem.
_NEAR, _FAR = 0.05, 0.9
RANKS = ("effective_rank", "sigma2_sigma1")

Columns = dict[str, Tensor]


class StateNumbers(NamedTuple):
    """Of a batch: `metrics` by name [b] (RANKS [ranks]), `close` by name [c] and `labels`, c of
    [n], of its first inputs."""

    metrics: Columns
    close: Columns
    labels: list[NDArray[np.int64]]


def state_numbers(
    X: Float[Tensor, "b n d"], *, cls: bool, registers: int, ranks: int, closely: int
) -> StateNumbers:
    """Metrics of every input, RANKS of so many of them; of the first `closely` (at most `ranks`)
    `sinks`, `rank_growth` and clusters."""
    state = stream_state(X, without_first=cls, ranks=ranks)
    metrics = {
        name: value[:ranks] if name.startswith(RANKS) else value
        for name, value in state.values.items()
        if ranks or not name.startswith(RANKS)
    }
    close: list[Columns] = []
    labels = []
    for k in range(min(closely, len(X))):
        known: dict[str, Raw] = {}
        if bool(state.plain[k]):
            known = {
                suffix: Raw(metrics[f"cos_mean{suffix}"][k], state.gram[suffix][k], sigma[k])
                for suffix, sigma in state.sigma.items()
            }
        close.append(sinks(X[k], cls=cls, registers=registers, known=known))
        half = close[-1]["effective_rank_half"]
        close[-1]["rank_growth"] = metrics["effective_rank"][k] / half
        labels.append(clusters(X[k], state.cosine[k] if known else None))
        close[-1] |= {
            name: torch.tensor(share, dtype=torch.float64)
            for name, share in shares(labels[-1]).items()
        }
    names = close[0] if close else ()
    joined = {name: torch.stack([one[name].reshape(()) for one in close]) for name in names}
    return StateNumbers(metrics, joined, labels)


class Raw(NamedTuple):
    """Of some tokens: their mean cosine, the smaller Gram matrix and the singular values, largest
    first."""

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
    found = _behind(X, whole) | {
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
        found |= {f"{each}_{name}": value for each, value in own.items()}
    return found


def _raw(X: Tensor) -> Raw:
    gram = _gram(X)
    return Raw(_cosine(X), gram, _singular_values(gram))


def _behind(X: Tensor, raw: Raw) -> Columns:
    """What is behind the largest direction of X."""
    undefined, sigma = X.new_full((), torch.nan), raw.sigma
    if not len(X):
        names = ("cos_mean_desunk", "effective_rank_desunk", "sink_share")
        return dict.fromkeys(names, undefined)
    v, left = _by_powers(X, raw), True
    if v is not None:
        rest, behind = X - (X @ v).unsqueeze(-1) * v, sigma[1:]
    else:
        v = _along(X, torch.linalg.eigh(raw.gram)[1][:, -1])
        rest = X - (X @ v).unsqueeze(-1) * v
        # The rounding of X is no rank: what is left of a state of rank 1 is undefined.
        behind = _singular_values(_gram(rest))
        left = float(behind[0]) > 1e-12 * float(sigma[0])
    return {
        "cos_mean_desunk": _cosine(rest) if left else undefined,
        "effective_rank_desunk": _effective_rank(behind) if left else undefined,
        "sink_share": sigma[0] / (sigma[0] + behind.sum()),
    }


def _by_powers(X: Tensor, raw: Raw) -> Tensor | None:
    """v_1 [d]; None where powers of the Gram matrix do not find it soon, to 1e-11, or where it does
    not tell what is behind."""
    gram, sigma = raw.gram, raw.sigma
    ratio = float(sigma[1] / sigma[0]) if len(sigma) > 1 else 0.0
    if not _NEAR < ratio < _FAR:
        return None
    top, second = float(sigma[0]) ** 2, float(sigma[1]) ** 2
    # Chebyshev polynomials of the Gram matrix, small on [0, sigma_2^2], which grow by e^reach a
    # step at sigma_1^2.
    reach = math.acosh(2 * top / second - 1)
    before, v = torch.zeros_like(gram[0]), gram[gram.diagonal().argmax()]
    v = v / torch.linalg.vector_norm(v)
    shift, scale = -2 * math.exp(-reach), 4 / second * math.exp(-reach)
    for _ in range(math.ceil(30 / reach) + 2):
        v, before = scale * (gram @ v) + shift * v - math.exp(-2 * reach) * before, v
    v = v / torch.linalg.vector_norm(v)
    error = torch.linalg.vector_norm(gram @ v - v * top) / top
    return _along(X, v) if float(error) < 1e-11 else None


def _along(X: Tensor, v: Tensor) -> Tensor:
    """An eigenvector of the smaller Gram matrix as one of features, of length 1."""
    v = v if X.shape[0] >= X.shape[1] else X.mT @ v
    size = torch.linalg.vector_norm(v)
    return v / torch.where(size > 0, size, 1.0)


def _gram(X: Tensor) -> Tensor:
    """The smaller of X X^T and X^T X."""
    return X @ X.mT if X.shape[0] < X.shape[1] else X.mT @ X


def _singular_values(gram: Tensor) -> Tensor:
    """Largest first; [0.] of no token."""
    if not len(gram):
        return gram.new_zeros(1)
    found: Tensor = torch.linalg.eigvalsh(gram).clamp_min(0.0).sqrt().flip(-1)
    return found


def _effective_rank(sigma: Tensor) -> Tensor:
    """exp of the entropy of the singular values over their sum; NaN where all are 0."""
    found: Tensor = torch.special.entr(sigma / sigma.sum()).sum().exp()
    return found


def _cosine(X: Tensor) -> Tensor:
    """The mean signed cosine over pairs of distinct tokens; NaN for fewer than two."""
    n = len(X)
    unit = X / torch.linalg.vector_norm(X, dim=-1, keepdim=True)
    if n < 2:
        return X.new_full((), torch.nan)
    found: Tensor = (unit.sum(0).square().sum() - unit.square().sum()) / (n * (n - 1))
    return found
