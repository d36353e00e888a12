"""What one large direction hides: rank and cosines without it, and without single tokens (T4g).

In trained streams most of a "rank collapse" can be a single direction, the sink of the attention:
erank(X) = e^eta(p) erank(X')^(1-p), exactly, X' the state without its largest direction and p the
share that it has of the singular values. Beside that, whether the effective rank has converged in
the number of tokens: a rank that grows with the tokens counts tokens, not directions.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from oversmoothing.experiments.models.model import Extraction
from oversmoothing.theory.support.sizes import Array

# Tokens of more than this many times the median norm count as sinks, registers among them.
LARGE = 4.0
# The rank of all tokens over that of every second one: above, it still grows with the tokens.
CONVERGED = 1.1


def sinks(
    X: Float[Tensor, "n d"], *, cls: bool = False, registers: int = 0
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

    NaN where nothing is left to measure: one token, a state of rank 1, a token that is 0.
    """
    X = X.detach().double()
    size = torch.linalg.vector_norm(X, dim=-1)
    large = size > LARGE * size.median()
    found, sigma = _behind(X)
    found |= {
        "cos_mean_without_large": _cosine(X[~large]),
        "effective_rank_without_large": _effective_rank(
            _singular_values(X[~large]) if bool(large.any()) else sigma
        ),
        "large_tokens": large.sum().double(),
        "effective_rank_half": _effective_rank(_singular_values(X[::2])),
    }
    first, end = int(cls), int(cls) + registers
    without = {"without_first": X[1:]}
    if registers:
        without |= {"without_registers": torch.cat([X[:first], X[end:]]), "patches": X[end:]}
    for name, part in without.items():
        behind, sigma = _behind(part)
        own = {"cos_mean": _cosine(part), "effective_rank": _effective_rank(sigma)}
        found |= {f"{each}_{name}": value for each, value in (own | behind).items()}
    return found


def _behind(X: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """What is behind the largest direction of X, and the singular values of X."""
    undefined = X.new_full((), torch.nan)
    if not len(X):
        names = ("cos_mean_desunk", "effective_rank_desunk", "sink_share")
        return dict.fromkeys(names, undefined), X.new_zeros(1)
    sigma, v = _largest(X)
    rest = X - (X @ v).unsqueeze(-1) * v
    # The rounding of X is no rank: what is left of a state of rank 1 is undefined.
    behind = _singular_values(rest)
    left = float(behind[0]) > 1e-12 * float(sigma[0])
    return {
        "cos_mean_desunk": _cosine(rest) if left else undefined,
        "effective_rank_desunk": _effective_rank(behind) if left else undefined,
        "sink_share": sigma[0] / (sigma[0] + behind.sum()),
    }, sigma


def sink_columns(
    batches: Sequence[Extraction], *, cls: bool = False, registers: int = 0
) -> dict[str, Array]:
    """`sinks` of every stream of the batches, by name [layers + 1, inputs]; padding left out."""
    found: list[dict[str, Tensor]] = []
    for batch in batches:
        streams = [batch.traces[0].before, *(trace.after_ffn for trace in batch.traces)]
        for number, keep in enumerate(batch.keep):
            each = [sinks(X[number][keep], cls=cls, registers=registers) for X in streams]
            found.append({name: torch.stack([one[name] for one in each]) for name in each[0]})
    return {name: torch.stack([one[name] for one in found], -1).numpy() for name in found[0]}


def _largest(X: Tensor) -> tuple[Tensor, Tensor]:
    """(sigma [k], largest first, v_1 [d]) through the smaller Gram matrix."""
    tall = X.shape[0] >= X.shape[1]
    values, vectors = torch.linalg.eigh(X.mT @ X if tall else X @ X.mT)
    v = vectors[:, -1] if tall else X.mT @ vectors[:, -1]
    size = torch.linalg.vector_norm(v)
    return values.clamp_min(0.0).sqrt().flip(-1), v / torch.where(size > 0, size, 1.0)


def _singular_values(X: Tensor) -> Tensor:
    """Largest first, [min(n, d)], through the smaller Gram matrix; [0.] of no token."""
    if not len(X):
        return X.new_zeros(1)
    gram = X @ X.mT if X.shape[0] < X.shape[1] else X.mT @ X
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
