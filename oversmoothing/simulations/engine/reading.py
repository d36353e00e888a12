"""HFC, the mean and the tokens from what a method kept, and how exact each of them is (T1d)."""

from dataclasses import replace

import torch
from jaxtyping import Float64
from torch import Tensor

from oversmoothing.simulations.engine.kept_states import Errors, Rows, States
from oversmoothing.simulations.state import (
    SplitState,
    add,
    from_differences,
    join,
    log_of_two_to,
    normalise,
)

# States are read together as long as they hold at most this many numbers.
TOGETHER = 1 << 20
# What forming HFC, mean, norms and cosines from the parts may cost, in units of eps.
_READING = 8.0
_EPS = torch.finfo(torch.float64).eps
# e^700 is the end of the range.
_FAR = 700.0
# A part that is 0 is so exactly where its error says that it is known.
_KNOWN = 1e-3


def split_states(kept: States, offset: Float64[Tensor, "N n"], which: slice) -> SplitState:
    """The split states of a range of depths, batch [depths, N]; offset: 1/n - pi."""
    Z = kept.states[which].to(torch.float64)
    hfc_exponent, c_exponent = kept.exponents[which].unbind(-1)
    hfc = from_differences(Z[..., :-1, :])
    coupling = (offset.unsqueeze(-2) @ hfc).squeeze(-2)
    mean, mean_exponent = add((Z[..., -1, :], c_exponent), (coupling, hfc_exponent), trailing=1)
    found = join(hfc, mean, hfc_exponent, mean_exponent)
    if kept.rows is None:
        return found
    rows = normalise(kept.rows.values[which], 1, kept.rows.exponents[which])
    return SplitState(found.hfc, found.mean, found.hfc_exponent, found.mean_exponent, *rows)


def errors_of(
    kept: States, offset: Float64[Tensor, "N n"]
) -> tuple[Float64[Tensor, "depths N"], Float64[Tensor, "depths N"], Float64[Tensor, "depths N n"]]:
    """Estimated relative errors of HFC, of the mean and of the tokens."""
    errors = kept.errors()
    step = max(1, TOGETHER // max(1, kept.states[0].numel()))
    found = [
        _errors_of(kept, errors, offset, slice(first, first + step))
        for first in range(0, len(kept.states), step)
    ]
    hfc, mean, tokens = (torch.cat(parts) for parts in zip(*found, strict=True))
    return hfc, mean, tokens


def _errors_of(
    kept: States, errors: Errors, offset: Float64[Tensor, "N n"], which: slice
) -> tuple[Tensor, Tensor, Tensor]:
    of_y, of_c = errors.parts[which].to(torch.float64).unbind(-1)
    Z = kept.states[which].to(torch.float64).cpu()
    y_exponent, c_exponent = kept.exponents[which].cpu().unbind(-1)
    state = split_states(kept, offset, which)
    n = Z.shape[-2]
    rounding = _READING * n * _EPS

    def log_size(x: Tensor, exponent: Tensor, trailing: int) -> Tensor:
        size = torch.linalg.vector_norm(x.cpu(), dim=tuple(range(-trailing, 0)))
        return torch.log(size) + log_of_two_to(exponent.cpu())

    log_y = log_size(Z[..., :-1, :], y_exponent, 2)
    log_c = log_size(Z[..., -1, :], c_exponent, 1)
    log_hfc = log_size(state.hfc, state.hfc_exponent, 2)
    log_mean = log_size(state.mean, state.mean_exponent, 1)
    offset = offset.cpu()
    coupling = torch.log(torch.linalg.vector_norm(offset, dim=-1))
    # pi is known to some eps, and 1/n - pi no better: unless it is 0, as for doubly stochastic A.
    of_offset = torch.linalg.vector_norm(1.0 / n - offset, dim=-1) * offset.any(-1)

    # Logarithms of absolute errors, then relative ones.
    of_hfc = torch.log(of_y + rounding) + log_y
    of_mean = torch.logaddexp(
        torch.log(of_c + rounding) + log_c, torch.log(of_y + rounding) + coupling + log_y
    )
    of_mean = torch.logaddexp(of_mean, torch.log(rounding * of_offset) + log_hfc)
    hfc = _relative(of_hfc, log_hfc, of_y)
    mean = _relative(
        of_mean, log_mean, torch.maximum(of_c, torch.where(offset.cpu().any(-1), of_y, 0.0))
    )
    if errors.rows is not None:
        tokens = errors.rows[which].to(torch.float64) + rounding
    else:
        whole = torch.logaddexp(of_hfc, of_mean).unsqueeze(-1)
        log_rows = log_size(state.rows, state.row_exponent, 1)
        tokens = _relative(whole, log_rows, torch.maximum(of_y, of_c).unsqueeze(-1))
    return hfc, mean, tokens


def _relative(log_error: Tensor, log_size: Tensor, own: Tensor) -> Tensor:
    """error / size from logarithms; of what is 0, inf unless the parts that it comes from are 0 and
    known to be."""
    relative = torch.exp((log_error - log_size).clamp_max(_FAR)).nan_to_num(nan=torch.inf)
    relative = torch.where(log_error - log_size >= _FAR, torch.inf, relative)
    known = torch.isneginf(log_error) & (own < _KNOWN)
    return torch.where(torch.isneginf(log_size), torch.where(known, own, torch.inf), relative)


def put_in(
    found: States, exact: States, places: list[int], offset: Float64[Tensor, "N n"]
) -> States:
    """`found` with the elements `places` of the batch replaced by those of `exact`, in order.

    `exact` knows its tokens and its offset; offset [N, n] is that of `found`.
    """
    assert exact.rows is not None and exact.offset is not None
    if len(places) == found.states.shape[1]:
        return exact
    state = split_states(found, offset, slice(None))
    rows = Rows(state.rows.clone(), state.row_exponent.clone())
    rows.values[:, places], rows.exponents[:, places] = exact.rows.values, exact.rows.exponents
    before, better = found.errors(), exact.errors()
    tokens = errors_of(found, offset)[2]
    parts = before.parts.clone()
    parts[:, places] = better.parts
    assert better.rows is not None
    tokens[:, places] = better.rows
    states, exponents, offset = found.states.clone(), found.exponents.clone(), offset.clone()
    states[:, places], exponents[:, places] = exact.states, exact.exponents
    offset[places] = exact.offset
    errors = Errors(parts, tokens)
    return replace(
        found, states=states, exponents=exponents, errors=lambda: errors, rows=rows, offset=offset
    )
