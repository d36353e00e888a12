"""The sign of the gain of attention's norm, flipped layer by layer: `sign_flips(model, inputs)`.

The effect is the change of log HFC/LFC over the attention sublayer, over the layer, and up to the
model's end, with the flip less without, on the same stream. gamma -> -gamma alone ('gain'), or
(gamma, beta) -> -(gamma, beta) ('gain and shift'). Predicted of a Pre-LN layer:

    no effect          0: what T8d proves of a Post-LN attention sublayer for 'gain and shift'
    spectral gap       T8e: log(rho_Q/rho_C) of -H_eff less that of H_eff, H_eff = W^T diag(gamma)
                       C/s with the mean attention and one scale s for all tokens, the root
                       mean square of theirs
    frozen attention   the sublayer with the attention that was measured without the flip, each
                       token's own scale, and for the layer its own FFN behind

The flip acts on the norm's output in the model's own forward pass, so that it is right however the
norm stores its gain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.inspection.attention import attention_output
from oversmoothing.experiments.inspection.extract import batches, check_inputs, extract, prepared
from oversmoothing.experiments.ladder.operators import token_scales
from oversmoothing.experiments.ladder.recording import log_ratio
from oversmoothing.experiments.models.model import Layer, Model, Norm, Trace, evaluating
from oversmoothing.experiments.repeated.blocks import BlockMap, recorded
from oversmoothing.experiments.repeated.flip_result import FROZEN, GAP, NONE, Flips
from oversmoothing.experiments.threads import one_thread
from oversmoothing.simulations.progress import steps
from oversmoothing.theory.spectra.layer_discs import radii
from oversmoothing.theory.support.errors import InputError

Flip = Literal["gain", "gain and shift"]
FLIPS: tuple[Flip, ...] = ("gain", "gain and shift")
BATCH = 20


@one_thread()
def sign_flips(model: Model, inputs: Iterable[Any], *, seed: int = 0) -> Flips:
    """Flip, measure and predict every layer of a Pre-LN or Post-LN model on every input.

    Half of the inputs, by the seed, calibrate what is fitted; the others are scored. Raises
    `InputError` for layers without a norm at attention, parallel layers and norms behind sublayers,
    inputs of different lengths, and fewer than 4 inputs.
    """
    check_model(model)
    check_inputs(inputs)
    effects: dict[tuple[str, str], list[np.ndarray]] = {}
    predictions: dict[tuple[str, str, str], list[np.ndarray]] = {}
    plain: list[np.ndarray] = []
    verdicts: list[np.ndarray] = []
    for one in batches(inputs, 1 if model.modality == "text" else BATCH):
        batch = prepared(model, one)
        run = recorded(model, batch)
        traces = extract(model, batch, verify=False, dtype=model.dtype).traces
        with torch.no_grad(), evaluating(model.module):
            end = _end(model, batch)
            for flip in steps(FLIPS, len(FLIPS), "flip"):
                rows: dict[str, list[Tensor]] = {}
                for f, X, trace in zip(run.blocks, run.states, traces, strict=False):
                    for name, values in _measured(model, f, X, batch, flip, end).items():
                        rows.setdefault(name, []).append(values)
                    for name, values in _predicted(model, f.layer, trace, flip).items():
                        rows.setdefault(name, []).append(values)
                for name, columns in rows.items():
                    joined = torch.stack(columns, dim=1).double().numpy()
                    target, _, predictor = name.partition("|")
                    if predictor:
                        predictions.setdefault((flip, target, predictor), []).append(joined)
                    else:
                        effects.setdefault((flip, target), []).append(joined)
            if model.layers[0].placement == "pre":
                gaps = [_gaps(layer, t) for layer, t in zip(model.layers, traces, strict=True)]
                verdicts.append(torch.stack(gaps, dim=1).numpy())
        logs = torch.stack([log_ratio(X) for X in run.states], dim=1)
        plain.append(logs.diff(dim=1).numpy())
    if not plain:
        raise InputError("there are no inputs: give at least one image or text")
    total = sum(len(each) for each in plain)
    if total < 4:
        raise InputError(
            f"{total} inputs: half of them calibrate and half are scored, so give at least 4"
        )
    return Flips(
        model.name,
        model.layers[0].placement,
        {key: np.concatenate(each) for key, each in effects.items()},
        {key: np.concatenate(each) for key, each in predictions.items()},
        np.concatenate(plain),
        np.concatenate(verdicts) if verdicts else None,
        seed,
    )


def check_model(model: Model) -> None:
    """Raises `InputError` for a model whose layers have no sign to flip or stand otherwise."""
    for number, layer in enumerate(model.layers, 1):
        if layer.norm_attention.kind == "none" or layer.norm_attention.module is None:
            raise InputError(f"layer {number} of '{model.name}' has no norm at its attention")
        behind = {layer.output_norm_attention.kind, layer.output_norm_ffn.kind}
        if layer.placement == "parallel" or behind != {"none"}:
            raise InputError(
                f"layer {number} of '{model.name}' has a parallel FFN or norms behind its "
                "sublayers: T8e is about Pre-LN, T8d about Pre-LN and Post-LN"
            )


@contextmanager
def flipped(norm: Norm, flip: Flip) -> Iterator[None]:
    """The norm's module gives -gamma z + beta within, or -gamma z - beta."""
    assert norm.module is not None

    def hook(_: Any, __: Any, out: Tensor) -> Tensor:
        if flip == "gain and shift" or norm.shift is None:
            return -out
        # gamma z = out - beta
        return 2 * norm.shift.to(out) - out

    handle = norm.module.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def _end(model: Model, batch: Any) -> Tensor:
    """log HFC/LFC behind the last layer, [b]; the batch as the model reads it."""
    return log_ratio(extract(model, batch, attention=False, verify=False).traces[-1].after_ffn)


def _measured(
    model: Model, f: BlockMap, X: Tensor, batch: Any, flip: Flip, end: Tensor
) -> dict[str, Tensor]:
    """The effects of the flip in one layer, by target: [b]."""
    middle, after = _run(f, X)
    with flipped(f.layer.norm_attention, flip):
        middle_flipped, after_flipped = _run(f, X)
        moved = _end(model, batch)
    return {
        "attention": log_ratio(middle_flipped) - log_ratio(middle),
        "layer": log_ratio(after_flipped) - log_ratio(after),
        "end": moved - end,
    }


def _run(f: BlockMap, X: Tensor) -> tuple[Tensor, Tensor]:
    """(stream between the sublayers, stream behind the layer) by the model's own block."""
    seen: list[Tensor] = []
    layer = f.layer
    with ExitStack() as hooks:
        if layer.ffn is not None:
            if layer.placement == "post":
                module, taken = layer.norm_attention.module, "output"
            else:
                module, taken = layer.norm_ffn.module, "input"
            assert module is not None

            def see(_: Any, args: Any, out: Tensor) -> None:
                seen.append((out if taken == "output" else args[0]).detach().clone())

            # Behind the hook that flips, which was registered before.
            hooks.callback(module.register_forward_hook(see).remove)
        after = f(X)
    return (seen[0].view_as(after) if seen else after), after


def _predicted(model: Model, layer: Layer, trace: Trace, flip: Flip) -> dict[str, Tensor]:
    """What is predicted of the effects, 'target|predictor': [b]."""
    zero = torch.zeros(len(trace.before), dtype=torch.float64)
    said = {f"{target}|{NONE}": zero for target in ("attention", "layer", "end")}
    if layer.placement == "post":
        return said
    gaps = _gaps(layer, trace)
    said |= {f"{t}|{GAP}": gaps[:, 1] - gaps[:, 0] for t in ("attention", "layer", "end")}
    plain, other = _frozen(layer, trace, None), _frozen(layer, trace, flip)
    said[f"attention|{FROZEN}"] = log_ratio(other[0]) - log_ratio(plain[0])
    said[f"layer|{FROZEN}"] = log_ratio(other[1]) - log_ratio(plain[1])
    return said


def _gaps(layer: Layer, trace: Trace) -> Tensor:
    """log(rho_Q/rho_C) [b, 2] of H_eff and of -H_eff, with the mean attention of each input."""
    assert trace.attention is not None
    norm, X = layer.norm_attention, trace.before.double()
    inner = norm.gain.cpu().double()[:, None] * layer.heads.total()
    if norm.kind == "layer":
        inner = inner - inner.mean(0, keepdim=True)
    scale = token_scales(norm, X).square().mean((-2, -1)).sqrt()
    h = (torch.linalg.eigvals(inner) / scale[:, None]).numpy()
    A = trace.attention.double().mean(1)
    a = torch.linalg.eigvals(A[:, :-1, :-1] - A[:, -1:, :-1]).numpy()
    return torch.tensor([[_gap(x, y), _gap(x, -y)] for x, y in zip(a, h, strict=True)])


def _gap(a: Any, h: Any) -> float:
    consensus, quotient = radii(a, h)
    return float(np.log(max(quotient, 1e-300)) - np.log(max(consensus, 1e-300)))


def _frozen(layer: Layer, trace: Trace, flip: Flip | None) -> tuple[Tensor, Tensor]:
    """(stream between the sublayers, behind the layer) with the attention that was measured."""
    assert trace.attention is not None
    X, norm = trace.before, layer.norm_attention
    N = norm(X)
    if flip is not None:
        keep = flip == "gain and shift" or norm.shift is None
        N = -N if keep or norm.shift is None else 2 * norm.shift.to(N) - N
    output = attention_output(trace.attention.to(X), N, layer.heads.to(X.device, X.dtype))
    middle = layer.after_attention(X, output)
    return middle, layer.after_ffn(X, middle)
