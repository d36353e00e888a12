"""The naive predictor of the dominance theory: log rho_Q - log rho_C of one layer's own operator.

A is the mean over heads of the measured attention, H the sum over heads of (W_V W_O)^T: the theory
gives log(rho_Q / rho_C) as the rate of log HFC/LFC (T5a) when the same layer is repeated for ever
and has neither norm nor FFN. `folded` puts the norm in front into H with one scale for all tokens:
C diag(gain) W / s (T8e). A prediction in the sign and the order of layers and images, not a fit.
"""

import torch
from torch import Tensor

from oversmoothing.experiments.ladder.operators import token_scales
from oversmoothing.experiments.models.model import Layer, Trace
from oversmoothing.theory.spectra.layer_discs import radii

NAMES = ("P1 spectral gap, raw weights", "P1 spectral gap, norm folded")


def spectral_gaps(layers: tuple[Layer, ...], traces: tuple[Trace, ...]) -> dict[str, Tensor]:
    """log(rho_Q / rho_C) [b, layers] of one traced batch, by NAMES. 0 for one token."""
    found: dict[str, list[Tensor]] = {name: [] for name in NAMES}
    for layer, trace in zip(layers, traces, strict=True):
        assert trace.attention is not None
        A = trace.attention.double().mean(1)
        a = torch.linalg.eigvals(A[:, :-1, :-1] - A[:, -1:, :-1])  # of the quotient (T1c)
        W = layer.heads.total()
        found[NAMES[0]].append(_gap(a, torch.linalg.eigvals(W).expand(len(a), -1)))
        norm = layer.norm_attention
        X = trace.before.double()
        if norm.kind == "none":
            found[NAMES[1]].append(found[NAMES[0]][-1])
            continue
        inner = norm.gain.cpu().double()[:, None] * W
        if norm.kind == "layer":
            inner = inner - inner.mean(0, keepdim=True)
        scale = token_scales(norm, X).square().mean((-2, -1)).sqrt()
        h = torch.linalg.eigvals(inner) / scale[:, None]
        found[NAMES[1]].append(_gap(a, h))
    return {name: torch.stack(columns, dim=1) for name, columns in found.items()}


def _gap(a: Tensor, h: Tensor) -> Tensor:
    """log(rho_Q / rho_C) [b] of spectra a [b, n - 1] and h [b, d]."""
    if a.shape[-1] == 0:
        return torch.zeros(len(a), dtype=torch.float64)
    found = [radii(*each) for each in zip(a.numpy(), h.numpy(), strict=True)]
    consensus, quotient = torch.tensor(found, dtype=torch.float64).clamp_min(1e-300).T
    rate: Tensor = (quotient / consensus).log()
    return rate
