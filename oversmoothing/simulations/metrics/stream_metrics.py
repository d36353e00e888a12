"""The smoothing metrics of a model's residual stream, at a fraction of its forward pass.

`simulations.metrics.metrics` is right at any spread and scale and costs half a forward pass a
layer. The streams of trained models are neither collapsed nor huge: there plain float64 sums, one
Gram matrix of unit tokens and the eigenvalues of X^T X do. Inputs near collapse go to the careful
form.
"""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from oversmoothing.simulations.metrics.metrics import log_hfc_lfc_ratio, metrics

NAMES = (
    "hfc_lfc",
    "log_hfc_lfc",
    "cos_mean",
    "cos_min",
    "cos_abs_mean",
    "cos_abs_min",
    "effective_rank",
    "sigma2_sigma1",
)
# 1 - cos loses eps / (1 - cos), a singular value sqrt(eps) sigma_1 by the Gram matrix: within this
# spread and scale of the tokens every metric keeps 1e-6 of itself.
SPREAD = 1e-2
SCALE = 1e100


def stream_metrics(
    X: Float[Tensor, "b n d"], *, without_first: bool = False
) -> dict[str, Float64[Tensor, " b"]]:
    """The metrics NAMES of X [b, n, d] (n >= 1), float64 [b] each; conventions of
    `simulations.metrics.metrics`.

    without_first adds the same of X[:, 1:] (CLS left out) under the names *_without_cls.
    """
    X = X.detach().to(torch.float64)
    without_first = without_first and X.shape[1] > 1
    size = torch.linalg.vector_norm(X, dim=-1)
    plain = (size.amin(-1) > 1 / SCALE) & (size.amax(-1) < SCALE)
    found = _metrics(X[plain], without_first)
    fine = _harmless(found, without_first)
    plain[plain.clone()] = fine
    found = {name: value[fine] for name, value in found.items()}
    if bool(plain.all()):
        return found
    careful = _careful(X[~plain], without_first)
    merged = {}
    for name, value in found.items():
        merged[name] = torch.empty(len(X), dtype=torch.float64, device=X.device)
        merged[name][plain], merged[name][~plain] = value, careful[name]
    return merged


def stream_log_ratio(X: Float[Tensor, "b n d"]) -> Float64[Tensor, " b"]:
    """log HFC/LFC [b] of X [b, n, d], float64.

    ||HFC||^2 = sum |x_i|^2 - n |m|^2 in float64, which keeps 1e-11 at a spread of 1e-2; inputs
    outside the plain range go to `simulations.metrics.metrics`.
    """
    Y = X.detach()
    n = Y.shape[1]
    square = torch.linalg.vector_norm(Y, dim=(1, 2), dtype=torch.float64).square()
    lfc = n * Y.mean(1, dtype=torch.float64).square().sum(-1)
    ratio = (square - lfc) / lfc
    plain = (square > 1 / SCALE) & (square < SCALE) & (ratio > SPREAD**2) & (ratio < SPREAD**-2)
    found: Tensor = ratio.clamp_min(0.0).log() / 2
    if not bool(plain.all()):
        found[~plain] = log_hfc_lfc_ratio(Y[~plain])
    return found


def _careful(X: Tensor, without_first: bool) -> dict[str, Tensor]:
    whole = metrics(X)
    found = {name: whole[name] for name in NAMES}
    if without_first:
        patches = metrics(X[:, 1:])
        found |= {f"{name}_without_cls": patches[name] for name in NAMES}
    return found


def _harmless(found: dict[str, Tensor], without_first: bool) -> Tensor:
    """Which inputs the plain form measures to 1e-6."""
    good = torch.ones_like(found["hfc_lfc"], dtype=torch.bool)
    for suffix in ("", "_without_cls") if without_first else ("",):
        good &= found[f"hfc_lfc{suffix}"] > SPREAD
        good &= found[f"hfc_lfc{suffix}"] < 1 / SPREAD
        good &= found[f"cos_mean{suffix}"] < 1 - SPREAD**2
        good &= found[f"sigma2_sigma1{suffix}"] > SPREAD
    return good


def _metrics(X: Tensor, without_first: bool) -> dict[str, Tensor]:
    size = torch.linalg.vector_norm(X, dim=-1, keepdim=True)
    unit = X / size
    cosine = (unit @ unit.mT).clamp(-1.0, 1.0)
    square = X.mT @ X if X.shape[1] >= X.shape[2] else None
    found = _of(X, cosine, square)
    if without_first:
        first = X[:, :1]
        rest = None if square is None else square - first.mT @ first
        patches = _of(X[:, 1:], cosine[:, 1:, 1:], rest)
        found |= {f"{name}_without_cls": value for name, value in patches.items()}
    return found


def _of(X: Tensor, cosine: Tensor, square: Tensor | None) -> dict[str, Tensor]:
    n = X.shape[1]
    mean = X.mean(1, keepdim=True)
    hfc = torch.linalg.vector_norm(X - mean, dim=(1, 2))
    ratio = hfc / (n**0.5 * torch.linalg.vector_norm(mean, dim=(1, 2)))
    size = cosine.abs()
    pairs = n * (n - 1)
    trace = cosine.diagonal(dim1=-2, dim2=-1).sum(-1)
    sigma = torch.linalg.eigvalsh(X @ X.mT if square is None else square)
    sigma = sigma.clamp_min(0.0).sqrt().flip(-1)
    share = sigma / sigma.sum(-1, keepdim=True)
    second = sigma[:, 1] / sigma[:, 0] if sigma.shape[-1] > 1 else torch.zeros_like(ratio)
    return {
        "hfc_lfc": ratio,
        "log_hfc_lfc": ratio.log(),
        "cos_mean": (cosine.sum((1, 2)) - trace) / pairs,
        # A token's cosine with itself is least only where all are 1: `_harmless` excludes it.
        "cos_min": cosine.amin((1, 2)),
        "cos_abs_mean": (size.sum((1, 2)) - trace) / pairs,
        "cos_abs_min": size.amin((1, 2)),
        "effective_rank": torch.special.entr(share).sum(-1).exp(),
        "sigma2_sigma1": second,
    }
