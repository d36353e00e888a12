"""Every head by itself: what its spectrum says, how it mixes, where it looks, what it does.

The spectral columns are of one head's A_h and H_h alone (T1, T2). What a head does to the tokens is
measured by leaving it out: the others stay, so the heads' numbers do not sum to the sublayer's.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from oversmoothing.experiments.inspection.attention import projected
from oversmoothing.experiments.inspection.observe import log_ratio
from oversmoothing.experiments.inspection.why import dobrushin
from oversmoothing.experiments.intervals import mean_interval
from oversmoothing.experiments.models.model import Extraction, Heads, Layer, Model, Trace
from oversmoothing.simulations.spectra.layer_dominance import mean_attention
from oversmoothing.theory.spectra.layer_discs import attention_spectrum
from oversmoothing.theory.support.sizes import Array, Complex
from oversmoothing.theory.verdict.formulas import dominance

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
