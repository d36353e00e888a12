"""Why a layer does what it does: the spectrum of its H, its attention, the tilt; head by head.

All of H = sum_h (W_V,h W_O,h)^T is float64. Regions of an eigenvalue h: 'zero' (exact, from the
rank of the heads), 'universal_disc' |h + 1/2| <= 1/2, h != 0, where consensus loses for every
positive A (T3c), 'positive' Re h > 0, and 'other' (Re h <= 0 outside the disc, where A decides).

The spectral columns of a head are of its A_h and H_h alone (T1, T2). What a head does to the tokens
is measured by leaving it out: the others stay, so the heads' numbers do not sum to the sublayer's.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from oversmoothing.experiments.inspection.account import log_ratio
from oversmoothing.experiments.inspection.attention import projected
from oversmoothing.experiments.intervals import mean_interval
from oversmoothing.experiments.models.model import Extraction, Heads, Layer, Model, Trace
from oversmoothing.simulations.spectra.head_values import asymmetry
from oversmoothing.simulations.spectra.layer_dominance import mean_attention
from oversmoothing.theory.spectra.layer_discs import attention_spectrum, largest_modulus
from oversmoothing.theory.support.sizes import Array, Complex
from oversmoothing.theory.verdict.formulas import dominance, in_universal_disc

REGIONS = ("zero", "universal_disc", "positive", "other")
ORDERS = ("modulus", "residual")
RANDOM_DIRECTIONS = 32


@dataclass(frozen=True)
class Principal:
    """The principal direction of the tokens under X -> X W: span [d, 1 or 2] orthonormal.

    An eigenvector v of H = W^T turns the rows of X toward v; a complex pair spans a plane. value:
    the eigenvalue.
    """

    value: complex
    span: Array


def value_projection(heads: Heads) -> Array:
    """H = sum_h (W_V,h W_O,h)^T [d, d] in float64."""
    return np.ascontiguousarray(heads.total().detach().numpy().T)


def regions(h: NDArray[np.complex128], zeros: int = 0) -> dict[str, float]:
    """Share of eigenvalues in each of REGIONS; `zeros` exact ones are added to h [k]."""
    disc = np.array([in_universal_disc(complex(value)) for value in h], dtype=bool)
    found = np.select([h == 0, disc, h.real > 0], REGIONS[:3], REGIONS[3])
    counts = Counter(["zero"] * zeros + found.tolist())
    return {name: counts[name] / counts.total() for name in REGIONS}


def weights_why(heads: Heads) -> dict[str, float]:
    """What the weights of one layer say, without any input.

    h_<region>, head_h_<region>: shares of eigenvalues, of H whole and of the heads' own H_h (each
    with its d - r zeros); h_real_min, h_real_max, h_abs_max; asymmetry
    ||H - H^T||_F / ||H + H^T||_F, 0 symmetric and inf skew; condition_V_H of its eigenvectors
    (2-norm, inf where singular); departure_from_normality sqrt(||H||_F^2 - sum |h|^2) /
    ||H||_F (Henrici).
    """
    H = value_projection(heads)
    d, norm = len(H), float(np.linalg.norm(H))
    h, V = np.linalg.eig(H)
    # Each head's r x r core W_O W_V has its eigenvalues but for d - r exact zeros (r <= d).
    core = heads.W_O.double() @ heads.W_V.double()
    own = np.linalg.eigvals(core.detach().cpu().numpy()).astype(np.complex128)
    zeros = max(0, d - own.shape[1]) * len(own)
    excess = max(0.0, norm**2 - float((np.abs(h) ** 2).sum()))
    return {
        **{f"h_{name}": share for name, share in regions(h).items()},
        **{f"head_h_{name}": share for name, share in regions(own.ravel(), zeros).items()},
        "h_real_min": float(h.real.min()),
        "h_real_max": float(h.real.max()),
        "h_abs_max": float(np.abs(h).max()),
        "asymmetry": asymmetry(H),
        "condition_V_H": float(np.linalg.cond(V)),
        "departure_from_normality": excess**0.5 / norm if norm else 0.0,
    }


def dobrushin(A: Tensor) -> Tensor:
    """tau(A) = max over pairs of rows of half their l1 distance, [...] for A [..., n, n] (T5c)."""
    n = A.shape[-1]
    flat = A.reshape(-1, n, n).double()
    return torch.stack([torch.pdist(each, p=1).max() / 2 if n > 1 else each.new_zeros(())
                        for each in flat]).reshape(A.shape[:-2])  # fmt: skip


def principal(heads: Heads, order: str) -> Principal:
    """The eigenvector of H with the largest |h| ('modulus', arXiv 2605.25619, no residual) or the
    largest |1 + h| ('residual': what a residual layer turns tokens to at consensus)."""
    h, V = np.linalg.eig(value_projection(heads))
    best = int(np.argmax(np.abs(h))) if order == "modulus" else largest_modulus(np.ones(1), h)[2]
    v = V[:, best]
    parts = np.stack([v.real, v.imag], axis=1) if h[best].imag != 0 else v.real[:, None]
    span, _ = np.linalg.qr(parts)
    return Principal(complex(h[best]), span)


def alignment(X: Tensor, span: Tensor, keep: Tensor | None = None) -> Tensor:
    """Mean over tokens of |projection of x_i on the span| / |x_i|, [b]: 1 within it, for X [b, n,
    d] and an orthonormal span [d, k]."""
    return _mean(torch.linalg.vector_norm(_unit(X) @ span.unsqueeze(0), dim=-1), keep)


def tilt(
    before: Tensor, after: Tensor, found: Principal, generator: torch.Generator,
    keep: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(tilt [b], baseline [b]): the gain in alignment with a principal direction over a layer, and
    the mean gain for RANDOM_DIRECTIONS random spans of the same dimension."""
    d, k = found.span.shape
    X, Y = before.double(), after.double()
    own = torch.from_numpy(found.span).to(X)
    draw = torch.randn((RANDOM_DIRECTIONS, d, k), generator=generator, dtype=torch.float64)
    # All random spans in one product: [b, n, directions, k].
    every = torch.linalg.qr(draw).Q.to(X).permute(1, 0, 2).reshape(d, -1)
    start, end = (
        torch.linalg.vector_norm((_unit(Z) @ every).unflatten(-1, (-1, k)), dim=-1).mean(-1)
        for Z in (X, Y)
    )
    return alignment(Y, own, keep) - alignment(X, own, keep), _mean(end - start, keep)


def _unit(X: Tensor) -> Tensor:
    unit: Tensor = X / torch.linalg.vector_norm(X, dim=-1, keepdim=True)
    return unit


def _mean(values: Tensor, keep: Tensor | None) -> Tensor:
    """Over the kept tokens, [b, n] -> [b]."""
    if keep is None:
        return values.mean(-1)
    return torch.where(keep, values, 0.0).sum(-1) / keep.sum(-1)


# Consensus dominates where its radius is larger by more than the rounding of both.
_ROUNDING = 1e-9

Measured = dict[str, Array]


def head_measures(model: Model, batch: Extraction, spectra: int) -> Measured:
    """By name [layers, heads, inputs] of a batch that carries attention; NaN where not measured.

    log_change: of ln HFC/LFC after the attention sublayer, by the head's being there. dobrushin:
    tau(A_h). entropy: of the rows of A_h over the logarithm of the tokens they may see, mean.
    sink_mass: of the token that is attended to most, mean over queries; sink_token: its position.
    Of the first `spectra` inputs: consensus (0 or 1), radius rho_Q, rho_consensus, margin rho_C -
    rho_Q. All over the kept tokens.
    """
    layers = [
        _layer(layer, trace, batch.keep, model.causal, spectra)
        for layer, trace in zip(model.layers, batch.traces, strict=True)
    ]
    return {name: np.stack([each[name] for each in layers]) for name in layers[0]}


def head_table(measured: Measured) -> pd.DataFrame:
    """One row a head: layer (from 1), head (from 0), share (of the inputs in which consensus
    dominates), and the rest of `head_measures` as means (radius, rho_consensus, margin: medians),
    log_change with its 95 % interval."""
    depth, heads, _ = measured["log_change"].shape
    rows = []
    for layer in range(depth):
        for head in range(heads):
            own = {name: values[layer, head] for name, values in measured.items()}
            taken = {name: values[~np.isnan(values)] for name, values in own.items()}
            change, low, high = mean_interval(own["log_change"])
            positions, counts = np.unique(own["sink_token"], return_counts=True)
            rows.append(
                {
                    "layer": layer + 1,
                    "head": head,
                    "log_change": change,
                    "log_change_low": low,
                    "log_change_high": high,
                    "share": _of(taken["consensus"], np.mean),
                    **{
                        name: _of(taken[name], np.median)
                        for name in ("radius", "rho_consensus", "margin")
                    },
                    **{
                        name: _of(taken[name], np.mean)
                        for name in ("dobrushin", "entropy", "sink_mass")
                    },
                    "sink_token": int(positions[counts.argmax()]),
                }
            )
    return pd.DataFrame(rows)


def worst_heads(table: pd.DataFrame, number: int = 3) -> pd.DataFrame:
    """The heads that smooth most by being there, whose 95 % interval lies below 0."""
    smoothing = table[table["log_change_high"] < 0]
    return smoothing.nsmallest(number, "log_change")


def _of(values: Array, mean: Callable[[Array], np.floating]) -> float:
    return float(mean(values)) if len(values) else float("nan")


def _layer(layer: Layer, trace: Trace, keep: Tensor, causal: bool, spectra: int) -> Measured:
    assert trace.attention is not None
    heads = layer.heads.number
    found = {"log_change": _left_out(layer, trace, keep)}
    names = ("dobrushin", "entropy", "sink_mass", "sink_token")
    spectral = ("consensus", "radius", "rho_consensus", "margin")
    found |= {name: np.full((heads, len(keep)), np.nan) for name in (*names, *spectral)}
    h = [_eigenvalues(layer.heads, head) for head in range(heads)] if spectra else []
    for k, (whole, kept) in enumerate(zip(trace.attention, keep, strict=True)):
        A = whole[:, kept][:, :, kept].double()
        mass, token = A.mean(-2).max(-1)
        found["sink_mass"][:, k], found["sink_token"][:, k] = mass, token
        if layer.sinks is not None:
            continue  # rows sum to less than 1: what follows is of stochastic matrices
        found["dobrushin"][:, k] = dobrushin(A)
        found["entropy"][:, k] = _entropy(A, causal)
        if k < spectra:
            # Row sums are 1 to the model's rounding; one head at a time is a mean of one.
            maps = mean_attention(whole[:, None, kept][:, :, :, kept].float().numpy())
            for head in range(heads):
                radii = dominance(attention_spectrum(maps[head]).values, h[head])
                found["radius"][head, k] = radii.rho_quotient
                found["rho_consensus"][head, k] = radii.rho_consensus
                found["margin"][head, k] = radii.margin
                larger = radii.margin > _ROUNDING * radii.rho_consensus
                found["consensus"][head, k] = float(larger)
    return found


def _eigenvalues(heads: Heads, head: int) -> Complex:
    """spec(H_h): that of the r x r core, and 0 where r < d."""
    W_V, W_O = heads.value_projection(head)
    core = np.linalg.eigvals((W_O @ W_V).numpy()).astype(np.complex128)
    return np.append(core, 0.0) if W_V.shape[0] > W_V.shape[1] else core


def _entropy(A: Tensor, causal: bool) -> Tensor:
    """[heads], of rows that may see two tokens or more; NaN where there is none."""
    n = A.shape[-1]
    seen = torch.arange(1, n + 1) if causal else torch.full((n,), n)
    rows = torch.special.entr(A).sum(-1)[:, seen > 1] / seen[seen > 1].double().log()
    found: Tensor = rows.mean(-1)
    return found


def _left_out(layer: Layer, trace: Trace, keep: Tensor) -> Array:
    """[heads, inputs]: ln HFC/LFC after the sublayer less that without the head."""
    assert trace.attention is not None
    X, A = trace.before, trace.attention.to(trace.before.dtype)
    weights = layer.heads.to(X.device, X.dtype)
    seen = X if layer.placement == "post" else layer.norm_attention(X)
    values = A @ projected(seen, weights.W_V, weights.b_V)
    outputs = [values[:, head] @ weights.W_O[head] for head in range(weights.number)]
    whole = torch.stack(outputs).sum(0)
    if weights.b_O is not None:
        whole = whole + weights.b_O
    mask = None if bool(keep.all()) else keep
    there = log_ratio(layer.after_attention(X, whole), mask)
    found = [there - log_ratio(layer.after_attention(X, whole - out), mask) for out in outputs]
    return torch.stack(found).numpy()
