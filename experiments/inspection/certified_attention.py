"""Certified verdicts on the attention of a trained model: every layer, head and image.

Each case is one attention matrix against its head's H = (W_V W_proj)^T, through the r x r core; the
d - r zero eigenvalues make a TIE by structure where nothing exceeds modulus 1.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from torch import Tensor

from oversmoothing.experiments.models.pretrained import PretrainedViT
from oversmoothing.experiments.models.threads import one_thread
from oversmoothing.theory.certificates.certified_radii import (
    attention_discs_all,
    certify_spectra,
    head_discs,
)
from oversmoothing.theory.certificates.enclosure import Discs
from oversmoothing.theory.layer.perron import closed_classes


@one_thread()
def certified_attention(vit: PretrainedViT, pixels: Tensor) -> pd.DataFrame:
    """One row a case: layer, head, image, verdict, reason, margin, largest radius, seconds.

    pixels [m, 3, s, s]. The certified matrix is the model's attention with each row divided by
    its sum, exactly.
    """
    rows = []
    for number, ((W_V, W_proj), attention) in enumerate(
        zip(vit.layers(), vit.attention(pixels), strict=True), 1
    ):
        width = len(W_V) // vit.heads
        for head in range(vit.heads):
            part = slice(head * width, (head + 1) * width)
            value = head_discs(W_V[:, part], W_proj[part, :])
            maps = attention[:, head]
            start = time.perf_counter()
            spectra = attention_discs_all(maps)
            seconds = (time.perf_counter() - start) / len(maps)
            for image, (A, spectrum) in enumerate(zip(maps, spectra, strict=True)):
                found = certify_spectra(spectrum, value, len(closed_classes(A)) - 1)
                margin = found.margin
                largest = spectrum.radii.max() if isinstance(spectrum, Discs) else np.nan
                rows.append(
                    {
                        "layer": number,
                        "head": head,
                        "image": image,
                        "verdict": found.verdict,
                        "margin_low": np.nan if margin is None else margin[0],
                        "margin_high": np.nan if margin is None else margin[1],
                        "largest_radius": largest,
                        "seconds": seconds,
                        "reason": found.reason,
                    }
                )
    return pd.DataFrame(rows)


def summary(table: pd.DataFrame) -> str:
    """The share certified, what came out, and why the rest is undecided."""
    undecided = table[table["verdict"] == "UNDECIDED"]
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
