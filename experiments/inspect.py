"""Does a trained model smooth, where, and by which sublayer: observation beside the spectra.

Observed: the metrics of the residual stream after each layer, and what each sublayer does to
log HFC/LFC, as means over images with 95 % intervals. Predicted: which eigenvalue dominates the
attention sublayer in reading E2, with log(rho_Q / rho_C), the change of log HFC/LFC per layer that
the linear model of T5a would settle to. The linear model knows neither LN nor FFN; the two stand
side by side and neither is inferred from the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from experiments.intervals import mean_interval
from experiments.layer_dominance import CLASSES, layer_dominance
from experiments.threads import one_thread
from experiments.vit import LayerTrace, ViT
from simulations.metrics import log_hfc_lfc_ratio, metrics
from theory.errors import InputError
from theory.files import json_number

SCHEMA_VERSION = 1
METRICS = (
    "hfc_lfc",
    "log_hfc_lfc",
    "cos_mean",
    "cos_min",
    "cos_abs_mean",
    "cos_abs_min",
    "effective_rank",
    "sigma2_sigma1",
)
BATCH = 128

CONVENTIONS = {
    "residual_stream": "X after each layer, before the LN of the next; layer 0: in front of all",
    "tokens": "all tokens with CLS; columns *_without_cls leave CLS out",
    "hfc_lfc": "Frobenius norms of X - 1 m and 1 m, m the mean over the tokens; natural log",
    "cosines": "over pairs of distinct tokens; cos signed, cos_abs absolute",
    "effective_rank": "exp of the entropy of the singular values over their sum",
    "intervals": "_low and _high: 95 % interval of the mean over images (mean +- 1.96 s.e.)",
    "bands": "_p05 and _p95: 5th and 95th percentile of the images",
    "dominance": "reading E2: a case is an (image, layer); A the mean over heads, H whole, the "
    "maximum over all pairs (j, i); LN and FFN are not in it",
    "predicted_log_rate": "log(rho_quotient / rho_consensus), median over images",
    "outside_share": "share of h_j, counted alone, at which consensus does not lose; for real h "
    "those outside (-safe_interval, 0)",
}


@dataclass(frozen=True)
class Report:
    """What `inspect` found. `table` has one row a layer, row 0 the input in front of layer 1.

    change [images]: of log HFC/LFC over the whole stack; by_attention, by_ffn [layers, images]:
    its parts. All tokens with CLS.
    """

    model: str
    tokens: int
    images: int
    table: pd.DataFrame
    change: NDArray[np.float64]
    by_attention: NDArray[np.float64]
    by_ffn: NDArray[np.float64]

    def to_frame(self) -> pd.DataFrame:
        """One row a layer, from layer 0 (the input); the columns of `CONVENTIONS`."""
        return self.table.copy()

    def summary(self) -> str:
        """Two sentences: does the model smooth, where, by which sublayer, on what evidence."""
        mean, low, high = mean_interval(self.change)
        if high < 0:
            verb = "smooths its tokens"
        elif low > 0:
            verb = "sharpens its tokens"
        else:
            verb = "neither smooths nor sharpens its tokens measurably"
        depth = len(self.by_attention)
        by_layer = (self.by_attention + self.by_ffn).mean(axis=1)
        sign = -1.0 if mean < 0 else 1.0
        where = int(np.argmax(sign * by_layer)) + 1
        attention, ffn = float(self.by_attention.sum(0).mean()), float(self.by_ffn.sum(0).mean())
        mover = "attention" if sign * attention > sign * ffn else "FFN"
        ends = np.exp(self.table["log_hfc_lfc"].iloc[[0, -1]])
        won = float(self.table["consensus_share"].iloc[1:].mean())
        return (
            f"{self.model} {verb}: HFC/LFC goes from {ends.iloc[0]:.3g} to {ends.iloc[1]:.3g} over "
            f"{depth} layers (geometric means), most in layer {where}, and mainly by the {mover} "
            f"sublayers (change of log HFC/LFC: attention {attention:+.2f}, FFN {ffn:+.2f}). "
            f"Evidence: the residual stream of {self.images} "
            f"{'image' if self.images == 1 else 'images'}, all {self.tokens} tokens with CLS "
            f"({_change(mean, low, high)}), while in the spectra of attention and H alone, "
            f"reading E2, consensus dominates {100 * won:.1f} % of the (image, layer) cases."
        )

    def to_json_object(self) -> dict[str, Any]:
        """{schema_version, model, tokens, images, conventions, input, layers, summary}.

        `layers` has one object a layer; `input` holds the metrics in front of the first. Unknown
        is null, infinite is "inf" or "-inf".
        """
        records = [
            {str(key): _json_value(str(key), value) for key, value in record.items()}
            for record in self.table.to_dict("records")
        ]
        given = [name for name in records[0] if name.startswith(METRICS)]
        return {
            "schema_version": SCHEMA_VERSION,
            "model": self.model,
            "tokens": self.tokens,
            "images": self.images,
            "conventions": CONVENTIONS,
            "input": {name: records[0][name] for name in given},
            "layers": records[1:],
            "summary": self.summary(),
        }


@one_thread()
def inspect(model: ViT, pixels: Tensor, *, name: str = "model") -> Report:
    """Measure one model of the project on pixels [m, s, s] float32, m >= 1.

    Raises `InputError` for pixels of another shape.
    """
    if not isinstance(model, ViT):
        raise InputError(
            f"inspect reads models of the class experiments.vit.ViT, not {type(model).__name__}"
        )
    size = model.shape.image_size
    if pixels.ndim != 3 or len(pixels) == 0 or pixels.shape[1:] != (size, size):
        raise InputError(
            f"pixels have the shape {tuple(pixels.shape)}: the model reads (m, {size}, {size}) "
            "with m >= 1"
        )
    record = _record(model, pixels)
    observed = [_observe(x) for x in (record[0].before, *(trace.after_ffn for trace in record))]
    rows = [{"layer": number, **_statistics(each)} for number, each in enumerate(observed)]
    attention, ffn = [], []
    projections = model.value_projections().numpy()
    logs = [each["log_hfc_lfc"] for each in observed]
    for row, trace, H, layer in zip(rows[1:], record, projections, model.stack(), strict=True):
        start, end = logs[row["layer"] - 1], logs[row["layer"]]
        middle = log_hfc_lfc_ratio(trace.after_attention).numpy()
        attention.append(middle - start)
        ffn.append(end - middle)
        row |= _named("log_change_attention", middle - start)
        row |= _named("log_change_ffn", end - middle)
        row |= _spectral(trace.attention.numpy(), H)
        gain = layer.norm_attention.weight.detach()
        row["negative_layernorm_weights"] = float((gain < 0).double().mean())
    by_attention, by_ffn = np.stack(attention), np.stack(ffn)
    return Report(
        model=name,
        tokens=model.shape.tokens,
        images=len(pixels),
        table=pd.DataFrame(rows),
        change=(by_attention + by_ffn).sum(axis=0),
        by_attention=by_attention,
        by_ffn=by_ffn,
    )


@torch.no_grad()
def _record(model: ViT, pixels: Tensor) -> list[LayerTrace]:
    """The traces of all images, on the CPU; batches bound the memory of the forward pass."""
    device = next(model.parameters()).device
    parts = []
    for batch in torch.split(pixels, BATCH):
        record: list[LayerTrace] = []
        model(batch.to(device), record)
        parts.append(record)
    names = ("attention", "before", "after_attention", "after_ffn")
    return [
        LayerTrace(*(torch.cat([getattr(t, name).cpu() for t in layer]) for name in names))
        for layer in zip(*parts, strict=True)
    ]


def _observe(x: Tensor) -> dict[str, NDArray[np.float64]]:
    """Each metric over images [m]: of all tokens, and without CLS (the first)."""
    whole, patches = metrics(x), metrics(x[:, 1:])
    found = {name: whole[name].numpy() for name in METRICS}
    return found | {f"{name}_without_cls": patches[name].numpy() for name in METRICS}


def _statistics(observed: dict[str, NDArray[np.float64]]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name, values in observed.items():
        columns |= _named(name, values)
        columns[f"{name}_p05"], columns[f"{name}_p95"] = np.quantile(values, [0.05, 0.95])
    return columns


def _named(name: str, values: NDArray[np.float64]) -> dict[str, float]:
    return dict(_columns(name, mean_interval(values)))


def _columns(name: str, triple: tuple[float, float, float]) -> Iterator[tuple[str, float]]:
    yield from zip((name, f"{name}_low", f"{name}_high"), triple, strict=True)


def _spectral(attention: NDArray[np.floating], H: NDArray[np.float64]) -> dict[str, float]:
    layer = layer_dominance(attention, H)
    with np.errstate(divide="ignore"):
        rates = np.log(layer.rho_quotient) - np.log(layer.rho_consensus)
    return {
        **{f"{name}_share": layer.share(name) for name in CLASSES},
        "rho_consensus": layer.rho_consensus,
        "rho_quotient_median": float(np.median(layer.rho_quotient)),
        "predicted_log_rate_median": float(np.median(rates)),
        "h_real_min": float(layer.h.real.min()),
        "h_real_max": float(layer.h.real.max()),
        "h_abs_max": float(np.abs(layer.h).max()),
        "safe_interval_median": float(np.median(layer.safe)),
        "safe_interval_min": float(layer.safe.min()),
        "outside_share": float(layer.outside.mean()),
    }


def _change(mean: float, low: float, high: float) -> str:
    if np.isnan(low):
        return f"total change of log HFC/LFC {mean:+.2f}, a single image, hence no interval"
    return f"total change of log HFC/LFC {mean:+.2f}, 95 % interval {low:+.2f} to {high:+.2f}"


def _json_value(key: str, value: float) -> int | float | str | None:
    return int(value) if key == "layer" else json_number(value)
