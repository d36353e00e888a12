"""What the ladder keeps of a model's runs, what they cost, and P1 to P5 from the image's own run.

Kept are X_0, the logs of HFC and LFC, and calibration streams; costs are multiply-adds for one
input, weights times tokens.

P1: log rho_Q - log rho_C of one layer's own operator, with A the mean over heads of the measured
attention and H the sum over heads of (W_V W_O)^T: the theory gives log(rho_Q / rho_C) as the rate
of log HFC/LFC (T5a) when the same layer is repeated for ever and has neither norm nor FFN. `folded`
puts the norm in front into H with one scale for all tokens: C diag(gain) W / s (T8e). A prediction
in the sign and the order of layers and images, not a fit.

P2, P3: X + sum_h A_h X W_V,h W_O,h, the measured attention alone (T1, T7a). P4: the norm in front
with its measured token scales s_i, N(x_i) = (x_i C) diag(gain) / s_i + shift (T8e without its
common-scale assumption), and the biases. P5: P4 and the FFN as one affine map of the normalised
tokens, by its Jacobian at the calibration tokens' mean (T8c) or by least squares over calibration
tokens. One step: from the measured state in front of the layer; trajectory: from X_0.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.inspection.extract import stream
from oversmoothing.experiments.models.model import Extraction, Heads, Layer, Model, Norm, Trace
from oversmoothing.theory.spectra.layer_discs import attention_spectrum, radii
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array


@dataclass(frozen=True)
class Recording:
    """start: X_0 [m, n, d] float32; logs [m, layers + 1, 2]: natural logs of ||HFC||_F and
    ||LFC||_F in front of layer 1 and after every layer; states [layers + 1, m, n, d] or None."""

    start: Tensor
    logs: Array
    states: Tensor | None = None

    @property
    def change(self) -> Array:
        """The change of log HFC/LFC over every layer, [m, layers]."""
        return np.diff(self.logs[..., 0] - self.logs[..., 1], axis=1)

    def __len__(self) -> int:
        return len(self.start)

    def first(self, count: int) -> "Recording":
        """The first inputs alone."""
        states = None if self.states is None else self.states[:, :count]
        return Recording(self.start[:count], self.logs[:count], states)


def log_energies(X: Tensor) -> Tensor:
    """(log ||HFC||_F, log ||LFC||_F) of X [..., n, d]: [..., 2] float64; centred first."""
    X = X.double()
    mean = X.mean(-2, keepdim=True)
    hfc = torch.linalg.vector_norm(X - mean, dim=(-2, -1))
    lfc = X.shape[-2] ** 0.5 * torch.linalg.vector_norm(mean, dim=(-2, -1))
    return torch.stack([hfc, lfc], dim=-1).log()


def log_ratio(X: Tensor) -> Tensor:
    """log HFC/LFC [...] of X [..., n, d], float64."""
    logs = log_energies(X)
    return logs[..., 0] - logs[..., 1]


def record(
    model: Model, inputs: Iterable[Any], *, states: bool = False,
    watch: Callable[[Extraction], None] | None = None, batch_size: int = 25,
) -> Recording:  # fmt: skip
    """Run the model on the inputs; watch: sees every batch, with its attention."""
    starts, logs, kept = [], [], []
    for batch in stream(model, inputs, batch_size=batch_size, attention=watch is not None):
        if not bool(batch.keep.all()):  # the ladder's operators act on n tokens that all exist
            raise InputError(
                "the inputs have different lengths: give texts of one number of tokens, or cut them"
            )
        streams = [batch.traces[0].before, *(trace.after_ffn for trace in batch.traces)]
        starts.append(streams[0].float().cpu())
        logs.append(torch.stack([log_energies(X) for X in streams], dim=1).cpu())
        if states:
            kept.append(torch.stack([X.float().cpu() for X in streams]))
        if watch is not None:
            watch(batch)
    if len({X.shape[1] for X in starts}) > 1:
        raise InputError("the inputs have different lengths: give inputs of one number of tokens")
    return Recording(
        torch.cat(starts), torch.cat(logs).numpy(), torch.cat(kept, dim=1) if states else None
    )


def _projections(heads: Heads) -> int:
    return 2 * heads.W_Q.numel() + heads.W_V.numel() + heads.W_O.numel()


def token_cost(layer: Layer) -> int:
    """Multiply-adds of one token through the layer's projections and FFN, without attention."""
    return _projections(layer.heads) + ffn_cost(layer)


def ffn_cost(layer: Layer) -> int:
    """Multiply-adds of one token through the FFN (0: none): the block's matrices that are not
    attention's, or where attention is the block itself what its own projections leave."""
    if layer.ffn is None:
        return 0
    if layer.attention is layer.block:
        entries = sum(p.numel() for p in layer.block.parameters() if p.ndim == 2)
        return max(entries - _projections(layer.heads), 0)
    inner = {id(p) for p in layer.attention.parameters()}
    if layer.out is not None:
        inner |= {id(p) for p in layer.out.parameters()}
    return sum(p.numel() for p in layer.block.parameters() if p.ndim == 2 and id(p) not in inner)


def attention_cost(layer: Layer, queries: int, keys: int) -> int:
    """Multiply-adds of q k^T and A v."""
    heads = layer.heads
    return queries * keys * heads.number * (heads.W_Q.shape[-1] + heads.width)


def model_cost(model: Model, tokens: int) -> int:
    """Multiply-adds of all layers on one input of `tokens` tokens (no embedding, no final head)."""
    return sum(tokens * token_cost(x) + attention_cost(x, tokens, tokens) for x in model.layers)


NAMES = (
    "P2 own attention", "P4 norm scales, one step",
    "P5 FFN by Jacobian, one step", "P5 FFN by least squares, one step",
    "P3 trajectory from X_0", "P4 norm scales, trajectory",
    "P5 FFN by Jacobian, trajectory", "P5 FFN by least squares, trajectory",
)  # fmt: skip
STEPS = len(NAMES) // 2
GAP_NAMES = ("P1 spectral gap, raw weights", "P1 spectral gap, norm folded")


@dataclass(frozen=True)
class Affine:
    """x -> x M + b; M [d, e], b [e]."""

    M: Tensor
    b: Tensor

    def __call__(self, X: Tensor) -> Tensor:
        return X @ self.M.to(X) + self.b.to(X)


def jacobian(f: Callable[[Tensor], Tensor], point: Tensor) -> Affine:
    """The affine map that touches f [..., d] -> [..., e] at `point` [d], by central differences.

    Their error is of order eps^(2/3) of f's scale; f is called on 2 d + 1 points.
    """
    d = len(point)
    step = torch.finfo(point.dtype).eps ** (1 / 3) * max(float(point.abs().mean()), 1e-3)
    shifts = step * torch.eye(d, dtype=point.dtype)
    values = f(torch.cat([point + shifts, point - shifts, point[None]]))
    M = (values[:d] - values[d : 2 * d]) / (2 * step)
    return Affine(M, values[-1] - point @ M)


AffineFfns = list[tuple[Affine, Affine] | None]


def affine_ffns(model: Model, batches: Iterable[tuple[Trace, ...]]) -> AffineFfns:
    """Each layer's affine stand-ins of its FFN from the traces of calibration inputs: its Jacobian
    at their mean normalised token, and least squares over them, of the smallest norm where the
    tokens do not span everything. None without an FFN."""
    d = model.width
    # Of the tokens with a 1 behind them, and of these with what the FFN makes of them.
    grams = torch.zeros(model.depth, d + 1, d + 1, dtype=torch.float64)
    crosses = torch.zeros(model.depth, d + 1, d, dtype=torch.float64)
    for traces in batches:
        for k, (layer, trace) in enumerate(zip(model.layers, traces, strict=True)):
            if layer.ffn is not None:
                N = layer.norm_ffn(trace.after_attention).flatten(0, -2).double()
                rows = torch.cat([N, torch.ones(len(N), 1, dtype=N.dtype)], dim=1)
                Y = trace.after_ffn - trace.after_attention
                grams[k] += rows.T @ rows
                crosses[k] += rows.T @ Y.flatten(0, -2).double()
    stand_ins: AffineFfns = []
    for layer, gram, cross in zip(model.layers, grams, crosses, strict=True):
        if layer.ffn is None:
            stand_ins.append(None)
            continue
        mean = (gram[-1, :-1] / gram[-1, -1]).to(model.dtype)
        solved = torch.linalg.pinv(gram, hermitian=True) @ cross
        stand_ins.append((jacobian(layer.ffn, mean), Affine(solved[:-1], solved[-1])))
    return stand_ins


def token_scales(norm: Norm, X: Tensor) -> Tensor:
    """What the norm divides each token of X [b, n, d] by, [b, n, 1]."""
    return norm.square(norm.centred(X)).sqrt()


def frozen_norm(norm: Norm, X: Tensor, scales: Tensor) -> Tensor:
    """The norm as an affine map of X, its token scales [b, n, 1] given from elsewhere."""
    if norm.kind == "none":
        return X
    Y = norm.centred(X) / scales * norm.gain.to(X)
    return Y if norm.shift is None else Y + norm.shift.to(Y)


def check_pre_norm(model: Model) -> None:
    """Raise `InputError` for a model whose norms act on the sum or on what is added to it, or whose
    FFN does not see what attention added: P4, P5 are not these operators."""
    for layer in model.layers:
        behind = {layer.output_norm_attention.kind, layer.output_norm_ffn.kind}
        if layer.placement != "pre" or behind != {"none"}:
            named = {"post": "is Post-LN", "pre": "has norms behind its sublayers"}
            raise InputError(
                f"the model '{model.name}' "
                f"{named.get(layer.placement, 'runs attention and FFN in parallel')}: the ladder's "
                "operators are written for Pre-LN models (X + f(N(X))) only"
            )


def operator_changes(
    model: Model, traces: tuple[Trace, ...], affine: AffineFfns
) -> dict[str, Tensor]:
    """The changes [b, layers] that P2 to P5 predict for one traced batch, by NAMES; in float64,
    since the raw trajectory of P3 grows without a norm."""
    columns: dict[str, list[Tensor]] = {name: [] for name in NAMES}
    states = [traces[0].before.double()] * STEPS
    for layer, trace, ffns in zip(model.layers, traces, affine, strict=True):
        if trace.attention is None:
            raise InputError("P2 to P5 need the measured attention: extract with attention=True")
        before = log_ratio(trace.before)
        for k, step in enumerate(_steps(layer, trace, trace.attention.double(), ffns)):
            columns[NAMES[k]].append(log_ratio(step(trace.before.double())) - before)
            moved = step(states[k])
            columns[NAMES[k + STEPS]].append(log_ratio(moved) - log_ratio(states[k]))
            states[k] = moved
        # The ratio knows no common scale: rescaled, P3 cannot overflow.
        states[0] = states[0] / states[0].abs().amax((-2, -1), keepdim=True).clamp_min(1e-300)
    return {name: torch.stack(parts, dim=1) for name, parts in columns.items()}


def _steps(
    layer: Layer, trace: Trace, A: Tensor, ffns: tuple[Affine, Affine] | None
) -> list[Callable[[Tensor], Tensor]]:
    """The layer as four maps of the state: attention alone, with the norm, with either FFN."""
    heads = layer.heads.double()
    bare = Heads(heads.W_Q, heads.W_K, heads.W_V, heads.W_O)
    s = token_scales(layer.norm_attention, trace.before.double())
    t = token_scales(layer.norm_ffn, trace.after_attention.double())

    def attention(X: Tensor) -> Tensor:
        return X + heads.attended(A, frozen_norm(layer.norm_attention, X, s))

    def whole(affine: Affine, X: Tensor) -> Tensor:
        Y = attention(X)
        return Y + affine(frozen_norm(layer.norm_ffn, Y, t))

    with_ffn = [partial(whole, each) for each in ffns] if ffns else [attention, attention]
    return [lambda X: X + bare.attended(A, X), attention, *with_ffn]


def spectral_gaps(layers: tuple[Layer, ...], traces: tuple[Trace, ...]) -> dict[str, Tensor]:
    """log(rho_Q / rho_C) [b, layers] of one traced batch, by GAP_NAMES. 0 for one token."""
    raw, folded = [], []
    for layer, trace in zip(layers, traces, strict=True):
        a, h = folded_spectra(layer, trace)
        raw.append(spectral_gap(a, torch.linalg.eigvals(layer.heads.total()).expand(len(a), -1)))
        folded.append(raw[-1] if layer.norm_attention.kind == "none" else spectral_gap(a, h))
    return dict(zip(GAP_NAMES, (torch.stack(each, 1) for each in (raw, folded)), strict=True))


def folded_spectra(layer: Layer, trace: Trace) -> tuple[Tensor, Tensor]:
    """Eigenvalues of the mean attention but one 1 (T1c, T1h) [b, n - 1], and of H with the norm in
    front folded in [b, d]: its gain, its centring and the root mean square of the tokens' scales.
    """
    assert trace.attention is not None
    A, norm = trace.attention.double().mean(1), layer.norm_attention
    a = torch.from_numpy(np.stack([attention_spectrum(each) for each in A.cpu().numpy()]))
    h = torch.linalg.eigvals(layer.heads.folded(norm).total())
    if norm.kind == "none":
        return a, h.expand(len(a), -1)
    scale = token_scales(norm, trace.before.double()).square().mean((-2, -1)).sqrt()
    return a, h / scale[:, None]


def spectral_gap(a: Tensor, h: Tensor) -> Tensor:
    """log(rho_Q / rho_C) [b] of spectra a [b, n - 1] and h [b, d]."""
    if a.shape[-1] == 0:
        return torch.zeros(len(a), dtype=torch.float64)
    pairs = [radii(*each) for each in zip(a.numpy(), h.numpy(), strict=True)]
    consensus, quotient = torch.tensor(pairs, dtype=torch.float64).clamp_min(1e-300).T
    rate: Tensor = (quotient / consensus).log()
    return rate
