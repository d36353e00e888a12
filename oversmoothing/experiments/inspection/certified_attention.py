"""Certified verdicts on the attention of a trained model: every layer, head and image.

Each case is one attention matrix against its head's H = (W_V W_proj)^T, through the r x r core; the
d - r zero eigenvalues make a TIE by structure where nothing exceeds modulus 1.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.threads import one_thread
from oversmoothing.theory.layer.attention import closed_classes
from oversmoothing.theory.spectra.discs import Discs
from oversmoothing.theory.spectra.layer_discs import attention_discs_all, head_discs
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.stages import certify_spectra


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
