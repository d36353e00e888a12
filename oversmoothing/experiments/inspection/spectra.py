"""What the spectra of attention say on the inputs whose spectra are taken, layer by layer.

With learned sinks the rows of A sum to less than 1. 1 + h a are the eigenvalues of I + H (x) A for
any square A and H (T1a). But A 1 is not 1 there, so that consensus is no mode, and the verdicts of
the theory, which are of row-stochastic A, do not apply: numbers alone, no verdict. A is the mean
over heads, H whole, as in reading E2.

`certified_attention` certifies every layer, head and image: one attention matrix against its head's
H = (W_V W_proj)^T, through the r x r core; the d - r zero eigenvalues make a TIE by structure where
nothing exceeds modulus 1.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.inspection.heads_and_why import (
    ORDERS,
    dobrushin,
    principal,
    tilt,
    value_projection,
)
from oversmoothing.experiments.models.model import Extraction, Model
from oversmoothing.experiments.threads import one_thread
from oversmoothing.simulations.spectra.batch_verdicts import CLASSES
from oversmoothing.simulations.spectra.layer_dominance import layer_dominance
from oversmoothing.theory.layer.attention import closed_classes
from oversmoothing.theory.spectra.discs import Discs
from oversmoothing.theory.spectra.layer_discs import attention_discs_all, head_discs
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.stages import certify_spectra

# Work of the spectra that are taken unless asked otherwise: ten images of a ViT on 224 x 224.
BUDGET = 10 * 12 * 197**3
TILT_SEED = 0


def affordable(model: Model, tokens: int) -> int:
    """How many inputs fit in BUDGET, at least one: layers n^3 each; none where attention has sinks,
    since then it is not row-stochastic."""
    if any(layer.sinks is not None for layer in model.layers):
        return 0
    return max(1, BUDGET // (model.depth * tokens**3))


def spectral_columns(model: Model, batches: Sequence[Extraction]) -> list[dict[str, float]]:
    """One dictionary a layer over the inputs of the batches, which carry attention.

    <class>_share of reading E2, rho_consensus, rho_quotient_median, predicted_log_rate_median,
    safe_interval_median, safe_interval_min, outside_share; dobrushin_mean, subdominant_mean (of the
    mean over heads); tilt_<order>, tilt_<order>_random, principal_<order>_real, _imag.
    """
    return [_of_layer(model, batches, number) for number in range(model.depth)]


def _of_layer(model: Model, batches: Sequence[Extraction], number: int) -> dict[str, float]:
    H = value_projection(model.layers[number].heads)
    attention = [each for batch in batches for each in matrices(batch, number)]
    lengths = sorted({A.shape[-1] for A in attention})
    # Inputs of one length together, [m, heads, k, k].
    found = [
        layer_dominance(np.stack([A for A in attention if A.shape[-1] == k]), H) for k in lengths
    ]
    classes, quotient, safe, outside = (
        np.concatenate([getattr(each, name) for each in found])
        for name in ("classes", "rho_quotient", "safe", "outside")
    )
    consensus = found[0].rho_consensus
    with np.errstate(divide="ignore"):
        rates = np.log(quotient) - np.log(consensus)
    means = [A.astype(np.float64).mean(axis=0) for A in attention]
    return {
        **{f"{name}_share": float((classes == name).mean()) for name in CLASSES},
        "rho_consensus": consensus,
        "rho_quotient_median": float(np.median(quotient)),
        "predicted_log_rate_median": float(np.median(rates)),
        "safe_interval_median": float(np.median(safe)),
        "safe_interval_min": float(safe.min()),
        "outside_share": float(outside.mean()),
        "dobrushin_mean": float(np.mean([float(dobrushin(torch.from_numpy(A))) for A in means])),
        "subdominant_mean": float(np.mean([_subdominant(A) for A in means])),
        **_tilts(model, batches, number),
    }


def matrices(batch: Extraction, number: int) -> list[NDArray[np.floating]]:
    """Attention [heads, k, k] of each input over its k kept tokens."""
    attention = batch.traces[number].attention
    assert attention is not None
    answer = []
    for A, keep in zip(attention, batch.keep, strict=True):
        kept = A if bool(keep.all()) else A[:, keep][:, :, keep]
        answer.append((kept if kept.dtype == torch.float64 else kept.float()).cpu().numpy())
    return answer


def _subdominant(A: Array) -> float:
    """The second largest modulus of spec(A), 0 for one token."""
    if len(A) == 1:
        return 0.0
    return float(np.sort(np.abs(np.linalg.eigvals(A)))[-2])


def _tilts(model: Model, batches: Sequence[Extraction], number: int) -> dict[str, float]:
    columns: dict[str, float] = {}
    for order in ORDERS:
        found = principal(model.layers[number].heads, order)
        pairs = []
        for batch in batches:
            trace, generator = batch.traces[number], torch.Generator().manual_seed(TILT_SEED)
            pairs.append(tilt(trace.before, trace.after_ffn, found, generator, batch.keep))
        gain, random = (float(torch.cat(each).mean()) for each in zip(*pairs, strict=True))
        columns |= {
            f"tilt_{order}": gain,
            f"tilt_{order}_random": random,
            f"principal_{order}_real": found.value.real,
            f"principal_{order}_imag": found.value.imag,
        }
    return columns


# Of one layer and input: the mean sum of A's rows, and the eigenvalues of A.
Seen = tuple[float, NDArray[np.complex128]]


def seen_attention(model: Model, batch: Extraction) -> list[list[Seen]]:
    """Of every layer, of every input of a batch that carries attention."""
    found = []
    for number in range(model.depth):
        means = [A.astype(np.float64).mean(axis=0) for A in matrices(batch, number)]
        found.append([(float(A.sum(axis=1).mean()), _eigenvalues(A, model.causal)) for A in means])
    return found


def _eigenvalues(A: Array, causal: bool) -> NDArray[np.complex128]:
    return (np.diagonal(A) if causal else np.linalg.eigvals(A)).astype(np.complex128)


def sink_attention(model: Model, batches: Sequence[list[list[Seen]]]) -> dict[str, Array]:
    """By name [layers + 1, inputs], NaN in front of the first layer: row_sum, the mean over rows;
    attention_radius, the largest |a|; operator_radius, the largest |1 + h a|."""
    rows: dict[str, list[list[float]]] = {}
    for number, layer in enumerate(model.layers):
        h = np.linalg.eigvals(value_projection(layer.heads))
        each = [seen for batch in batches for seen in batch[number]]
        columns = {
            "row_sum": [total for total, _ in each],
            "attention_radius": [float(np.abs(a).max()) for _, a in each],
            "operator_radius": [float(np.abs(1 + np.outer(h, a)).max()) for _, a in each],
        }
        for name, values in columns.items():
            rows.setdefault(name, [[np.nan] * len(values)]).append(values)
    return {name: np.array(values) for name, values in rows.items()}


@one_thread()
def certified_attention(model: Model, inputs: Sequence[Any]) -> pd.DataFrame:
    """One row a case: layer, head, image, verdict, reason, margin, largest radius, seconds.

    model: of images, opened in float64. The certified matrix is the model's attention with each row
    divided by its sum, exactly. Raises `InputError` for a model that reads text.
    """
    if model.modality != "vision":
        raise InputError(f"'{model.name}' reads text: give a model of images")
    rows = []
    traces = extract(model, inputs).traces
    for number, (layer, trace) in enumerate(zip(model.layers, traces, strict=True), 1):
        assert trace.attention is not None
        for head, maps in enumerate(trace.attention.numpy().swapaxes(0, 1)):
            W_V, W_O = layer.heads.value_projection(head)
            value = head_discs(W_V.numpy(), W_O.numpy())
            start = time.perf_counter()
            spectra = attention_discs_all(maps)
            seconds = (time.perf_counter() - start) / len(maps)
            for image, (A, spectrum) in enumerate(zip(maps, spectra, strict=True)):
                found = certify_spectra(spectrum, value, len(closed_classes(A)) - 1)
                low, high = found.margin or (np.nan, np.nan)
                rows.append(
                    {
                        "layer": number,
                        "head": head,
                        "image": image,
                        "verdict": found.verdict,
                        "margin_low": low,
                        "margin_high": high,
                        "largest_radius": spectrum.radii.max()
                        if isinstance(spectrum, Discs)
                        else np.nan,
                        "seconds": seconds,
                        "reason": found.reason,
                    }
                )
    return pd.DataFrame(rows)


def summary(table: pd.DataFrame) -> str:
    """The share certified, what came out, and why the rest is undecided."""
    undecided = table[table["verdict"] == Outcome.UNDECIDED]
    share = 100 * (1 - len(undecided) / len(table))
    counts = ", ".join(f"{count} {name}" for name, count in table["verdict"].value_counts().items())
    lines = [
        f"{len(table)} cases: {share:.1f} % certified ({counts}); largest disc radius median "
        f"{table['largest_radius'].median():.1e}, worst {table['largest_radius'].max():.1e}; "
        f"{1000 * table['seconds'].median():.0f} ms a spectrum (median)"
    ]
    lines += [
        f"undecided: layer {row.layer}, head {row.head}, image {row.image}: {row.reason}"
        for row in undecided.itertuples()
    ]
    return "\n".join(lines)
