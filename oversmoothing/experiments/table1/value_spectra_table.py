"""Where the eigenvalues of a trained model's H lie, layer by layer, and how far H has turned.

In each reading of `value_spectra`: norm unfolded or folded; H of the whole layer or of its heads,
each with its exact zeros left out.
"""

from importlib import resources
from typing import get_args

import numpy as np
import pandas as pd

from oversmoothing.experiments.models.model import Layer, Model, start_spread
from oversmoothing.experiments.table1.value_spectra import (
    Folding,
    factors,
    own_values,
    whole_values,
)
from oversmoothing.simulations.spectra.head_values import asymmetry, asymmetry_at_random
from oversmoothing.theory.verdict.formulas import in_universal_disc

OF = ("whole", "heads")


def value_spectra_table(model: Model) -> pd.DataFrame:
    """A row a norm, OF and layer of a described model.

    eigenvalues: how many, without exact zeros; negative, universal_disc: the shares with Re h < 0
    and with |h + 1/2| <= 1/2; of the whole H asymmetry ||H - H^T||_F / ||H + H^T||_F and
    asymmetry_at_random, of independent entries (`asymmetry_at_random`); cos_start, cos(H_start,
    H_end) of the unfolded H, NaN where the start is unknown.
    """
    rows = [
        {"norm": folding, "of": of, "layer": number, **_row(layer, folding, of)}
        for folding in get_args(Folding)
        for of in OF
        for number, layer in enumerate(model.layers, 1)
    ]
    return pd.DataFrame(rows)


def _row(layer: Layer, folding: Folding, of: str) -> dict[str, float]:
    found = [whole_values(layer, folding)] if of == "whole" else own_values(layer, folding)
    h = np.concatenate([each.discs.centres for each in found])
    h = h[h != 0]
    disc = [in_universal_disc(complex(value)) for value in h]
    row = {
        "eigenvalues": len(h),
        "negative": float((h.real < 0).mean()),
        "universal_disc": float(np.mean(disc)),
        "asymmetry": np.nan,
        "asymmetry_at_random": np.nan,
        "cos_start": np.nan if layer.cos_start is None else layer.cos_start,
    }
    if of == "whole":
        H = np.einsum("hdr,hre->ed", *factors(layer, folding))
        row |= {"asymmetry": asymmetry(H), "asymmetry_at_random": asymmetry_at_random(len(H))}
    return row


def recorded_deit() -> pd.DataFrame:
    """That of the trained DeiT-Ti, as `oversmoothing readings deit-tiny-patch16-224` wrote it."""
    file = resources.files("oversmoothing.experiments.table1")
    with resources.as_file(file / "results/value_spectra_deit_tiny.csv") as path:
        return pd.read_csv(path)


def in_all(table: pd.DataFrame) -> pd.DataFrame:
    """Over the layers, a row a norm and OF: shares of all eigenvalues in per cent, the mean
    asymmetry, in how many layers it is below that of independent entries, and cos(H_start, H_end)
    or 'start unknown'."""
    rows = []
    for (norm, of), part in table.groupby(["norm", "of"], sort=False):
        count = part["eigenvalues"]
        row = {
            "norm": norm,
            "H of": of,
            "eigenvalues": int(count.sum()),
            "Re h < 0, %": 100 * float((part["negative"] * count).sum() / count.sum()),
            "in the disc, %": 100 * float((part["universal_disc"] * count).sum() / count.sum()),
            "asymmetry": "-",
            "below random": "-",
            "cos(H_start, H_end)": start_spread(part["cos_start"].tolist())
            if of == "whole"
            else "-",
        }
        if of == "whole":
            below = int((part["asymmetry"] < part["asymmetry_at_random"]).sum())
            random = part["asymmetry_at_random"].mean()
            row["asymmetry"] = f"{part['asymmetry'].mean():.3f} (random {random:.3f})"
            row["below random"] = f"{below} of {len(part)} layers"
        rows.append(row)
    return pd.DataFrame(rows)
