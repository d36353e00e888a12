"""The smoothing metrics of a state X [..., n, d]: HFC/LFC, token cosines and effective rank (T4).

Pure functions of a tensor of any float dtype and device, or of a `SplitState`; computed in float64
whatever the dtype of X. HFC = X - 1 m and LFC = 1 m with m the mean over the tokens; Frobenius
norms. Cosines run over pairs of distinct non-zero tokens (no diagonal; slice X to leave out CLS).
Everything is centred first and rescaled by powers of two: right from 1e-300 to 1e+300, at any
spread, and multiplying X by a power of two changes no bit of a result.

Undefined is NaN: every metric of X = 0 or of a non-finite X, a cosine with fewer than two non-zero
tokens. LFC = 0 with HFC != 0 gives a ratio of +inf; one token gives the ratio 0.
"""

import math
from typing import Any

import torch
from jaxtyping import Float64
from torch import Tensor

from oversmoothing.simulations.metrics.cosine import cosines
from oversmoothing.simulations.metrics.singular_values import log_excess_of, singular_value_ratios
from oversmoothing.simulations.states.scaled import log_of_two_to, scale
from oversmoothing.simulations.states.split_state import SplitState, split


def log_hfc_lfc_ratio(X: Any) -> Float64[Tensor, "*batch"]:
    """Natural logarithm of ||HFC||_F / ||LFC||_F, [...]; O(n d). -inf, +inf and NaN are kept."""
    hfc, lfc, exponent = _norms(X)
    return torch.log(hfc / lfc) + log_of_two_to(exponent)


def _norms(X: Any) -> tuple[Tensor, Tensor, Tensor]:
    state = X if isinstance(X, SplitState) else split(X)
    hfc = torch.linalg.vector_norm(state.hfc, dim=(-2, -1))
    lfc = math.sqrt(state.n) * torch.linalg.vector_norm(state.mean, dim=-1)
    return hfc, lfc, state.hfc_exponent - state.mean_exponent


def metrics(X: Any) -> dict[str, Float64[Tensor, "*batch"]]:
    """Every metric of X [..., n, d], each a float64 tensor [...].

    X: a tensor, an array of numpy, nested lists, or a `SplitState`.
    hfc_lfc, log_hfc_lfc: the ratio of Frobenius norms and its natural logarithm.
    cos_mean, cos_min, cos_abs_mean, cos_abs_min: signed and absolute cosine over pairs.
    effective_rank: exp of the entropy of the normalised singular values. sigma2_sigma1.
    log_one_minus_cos_mean, log_one_minus_cos_min, log_one_minus_cos_abs_min (the maximum over pairs
    of 1 - |cos|), log_effective_rank_excess (of effective rank - 1), log_sigma2_sigma1: natural
    logarithms, finite where the number itself underflows.

    Raises `InputError` for X without two dimensions or not floating.
    """
    state = X if isinstance(X, SplitState) else split(X)
    hfc, lfc, between = _norms(state)
    cosine = cosines(state)
    logs = {name: value for name, value in cosine.items() if name.startswith("log")}
    ratio, exponent = singular_value_ratios(state)
    log_excess = log_excess_of(ratio, exponent)
    # The order of the columns of every table.
    return {
        "hfc_lfc": scale(hfc / lfc, between, 0),
        "log_hfc_lfc": torch.log(hfc / lfc) + log_of_two_to(between),
        **{name: value for name, value in cosine.items() if name not in logs},
        "effective_rank": 1.0 + torch.exp(log_excess),
        "sigma2_sigma1": scale(ratio[..., 0], exponent, 0),
        **logs,
        "log_effective_rank_excess": log_excess,
        "log_sigma2_sigma1": torch.log(ratio[..., 0]) + log_of_two_to(exponent),
    }
