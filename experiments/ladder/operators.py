"""P2 to P5: each layer as an affine operator built from what was measured on the image itself.

P2, P3: X + sum_h A_h X W_V,h W_O,h, the measured attention alone (T1, T7a). P4: the norm in front
with its measured token scales s_i, N(x_i) = (x_i C) diag(gain) / s_i + shift (T8e without its
common-scale assumption), and the biases. P5: P4 and the FFN as one affine map of the normalised
tokens, by its Jacobian at the calibration tokens' mean (T8c) or by least squares over calibration
tokens. One step: from the measured state in front of the layer; trajectory: from X_0.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from oversmoothing.experiments.inspection.watch import attention_output
from oversmoothing.experiments.ladder.recording import log_ratio
from oversmoothing.experiments.models.model import Heads, Layer, Model, Norm, Trace
from oversmoothing.theory.support.errors import InputError


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


class LeastSquares:
    """The affine map of least squares, its sums gathered batch by batch."""

    def __init__(self, d: int, e: int) -> None:
        self._gram = torch.zeros(d + 1, d + 1, dtype=torch.float64)
        self._cross = torch.zeros(d + 1, e, dtype=torch.float64)

    def update(self, X: Tensor, Y: Tensor) -> None:
        """Take in inputs X [..., d] and outputs Y [..., e]."""
        rows = X.flatten(0, -2).double()
        rows = torch.cat([rows, torch.ones(len(rows), 1, dtype=rows.dtype)], dim=1)
        self._gram += rows.T @ rows
        self._cross += rows.T @ Y.flatten(0, -2).double()

    def solve(self) -> Affine:
        """The map; of the smallest norm where the inputs do not span everything."""
        found = torch.linalg.pinv(self._gram, hermitian=True) @ self._cross
        return Affine(found[:-1], found[-1])


def token_scales(norm: Norm, X: Tensor) -> Tensor:
    """What the norm divides each token of X [b, n, d] by, [b, n, 1]."""
    return norm.square(norm.centred(X)).sqrt()


def frozen_norm(norm: Norm, X: Tensor, scales: Tensor) -> Tensor:
    """The norm as an affine map of X, its token scales [b, n, 1] given from elsewhere."""
    if norm.kind == "none":
        return X
    Y = norm.centred(X) / scales * norm.gain.to(X)
    return Y if norm.shift is None else Y + norm.shift.to(Y)


def without_bias(heads: Heads) -> Heads:
    """The same heads, linear: no value or output bias."""
    return Heads(heads.W_Q, heads.W_K, heads.W_V, heads.W_O)


NAMES = (
    "P2 own attention",
    "P4 norm scales, one step",
    "P5 FFN by Jacobian, one step",
    "P5 FFN by least squares, one step",
    "P3 trajectory from X_0",
    "P4 norm scales, trajectory",
    "P5 FFN by Jacobian, trajectory",
    "P5 FFN by least squares, trajectory",
)


def check_pre_norm(model: Model) -> None:
    """Raise `InputError` for a Post-LN model: its norms act on the sum, and P4, P5 are not these
    operators."""
    if any(layer.placement != "pre" for layer in model.layers):
        raise InputError(
            f"the model '{model.name}' is Post-LN: the ladder's operators are written for Pre-LN "
            "models (X + f(N(X))) only"
        )


def operator_changes(
    model: Model,
    traces: tuple[Trace, ...],
    touching: list[Affine | None],
    fitted: list[Affine | None],
) -> dict[str, Tensor]:
    """The changes [b, layers] that P2 to P5 predict for one traced batch, by NAMES.

    touching, fitted: each layer's affine FFN by its Jacobian and by least squares (None: no FFN).
    float64 throughout, since the raw trajectory of P3 grows without a norm.
    """
    columns: dict[str, list[Tensor]] = {name: [] for name in NAMES}
    start = traces[0].before.double()
    raw, folded = start, start
    linear = {"Jacobian": start, "least squares": start}
    affine = {"Jacobian": touching, "least squares": fitted}
    for number, (layer, trace) in enumerate(zip(model.layers, traces, strict=True)):
        if trace.attention is None:
            raise InputError("P2 to P5 need the measured attention: extract with attention=True")
        A, X, Y = trace.attention.double(), trace.before.double(), trace.after_attention.double()
        s, t = token_scales(layer.norm_attention, X), token_scales(layer.norm_ffn, Y)
        before = log_ratio(X)
        columns[NAMES[0]].append(log_ratio(_raw(layer, A, X)) - before)
        columns[NAMES[1]].append(log_ratio(_attention(layer, A, X, s)) - before)
        stepped = _raw(layer, A, raw)
        columns[NAMES[4]].append(log_ratio(stepped) - log_ratio(raw))
        # The ratio knows no common scale: rescaled, P3 cannot overflow.
        raw = stepped / stepped.abs().amax((-2, -1), keepdim=True).clamp_min(1e-300)
        stepped = _attention(layer, A, folded, s)
        columns[NAMES[5]].append(log_ratio(stepped) - log_ratio(folded))
        folded = stepped
        for name, maps in affine.items():
            own = _ffn(layer, maps[number], _attention(layer, A, X, s), t)
            columns[f"P5 FFN by {name}, one step"].append(log_ratio(own) - before)
            moved = _ffn(layer, maps[number], _attention(layer, A, linear[name], s), t)
            change = log_ratio(moved) - log_ratio(linear[name])
            columns[f"P5 FFN by {name}, trajectory"].append(change)
            linear[name] = moved
    return {name: torch.stack(found, dim=1) for name, found in columns.items()}


def _raw(layer: Layer, A: Tensor, X: Tensor) -> Tensor:
    return X + attention_output(A, X, without_bias(layer.heads).to("cpu", X.dtype))


def _attention(layer: Layer, A: Tensor, X: Tensor, scales: Tensor) -> Tensor:
    N = frozen_norm(layer.norm_attention, X, scales)
    return X + attention_output(A, N, layer.heads.to("cpu", X.dtype))


def _ffn(layer: Layer, affine: Affine | None, X: Tensor, scales: Tensor) -> Tensor:
    return X if affine is None else X + affine(frozen_norm(layer.norm_ffn, X, scales))


class FfnSums:
    """Gathers, batch by batch, what the affine stand-ins of the FFNs need."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._fits = [LeastSquares(model.width, model.width) for _ in model.layers]
        self._sums = [torch.zeros(model.width, dtype=torch.float64) for _ in model.layers]
        self._tokens = 0

    def update(self, traces: tuple[Trace, ...]) -> None:
        """Take in one batch of traces."""
        for layer, trace, fit, total in zip(
            self.model.layers, traces, self._fits, self._sums, strict=True
        ):
            if layer.ffn is None:
                continue
            N = layer.norm_ffn(trace.after_attention)
            fit.update(N, trace.after_ffn - trace.after_attention)
            total += N.double().sum((0, 1))
        self._tokens += traces[0].before.shape[0] * traces[0].before.shape[1]

    def solve(self) -> tuple[list[Affine | None], list[Affine | None]]:
        """(Jacobians at the mean normalised token, least-squares maps), None without an FFN."""
        touching: list[Affine | None] = []
        fitted: list[Affine | None] = []
        for layer, fit, total in zip(self.model.layers, self._fits, self._sums, strict=True):
            if layer.ffn is None:
                touching.append(None)
                fitted.append(None)
                continue
            point = (total / max(self._tokens, 1)).to(self.model.dtype)
            touching.append(jacobian(layer.ffn, point))
            fitted.append(fit.solve())
        return touching, fitted
