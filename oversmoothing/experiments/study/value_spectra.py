"""The H of a layer in each reading, from the described weights, with the exact zeros that it has.

Norm 'unfolded' takes W_V as it is, as the paper does. 'folded' puts the norm in front of the
attention into it (`Heads.folded`); the centring of a LayerNorm makes one eigenvalue of H exactly 0.
"""

from typing import Literal, get_args

import numpy as np
import pandas as pd

from oversmoothing.experiments.inspection.heads_and_why import asymmetry
from oversmoothing.experiments.models.model import Layer, Model, start_spread
from oversmoothing.experiments.study import RECORDED
from oversmoothing.simulations.spectra.head_values import (
    HeadValues,
    asymmetry_at_random,
    dense_values,
    head_values,
)
from oversmoothing.theory.layer.attention import complement_basis
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.formulas import in_universal_disc

Folding = Literal["unfolded", "folded"]


def factors(layer: Layer, folding: Folding) -> tuple[Array, Array]:
    """(W_V [heads, d, r], W_O [heads, r, d]) in float64, the norm folded in where asked."""
    own = layer.heads
    own = own.folded(layer.norm_attention) if folding == "folded" else own.double()
    return own.W_V.detach().numpy(), own.W_O.detach().numpy()


def own_values(layer: Layer, folding: Folding) -> list[HeadValues]:
    """spec(H_h) of every head, through its r x r core where r < d."""
    return [
        head_values(first, second)
        if first.shape[1] < len(first)
        else _whole(first @ second, layer, folding)
        for first, second in zip(*factors(layer, folding), strict=True)
    ]


def whole_values(layer: Layer, folding: Folding) -> HeadValues:
    """spec(H), H = sum_h H_h, through a core where the heads together have rank below d."""
    W_V, W_O = factors(layer, folding)
    heads, d, r = W_V.shape
    if heads * r < d:
        return head_values(W_V.transpose(1, 0, 2).reshape(d, heads * r), W_O.reshape(heads * r, d))
    return _whole(np.einsum("hdr,hre->de", W_V, W_O), layer, folding)


def _whole(W: Array, layer: Layer, folding: Folding) -> HeadValues:
    """spec of a W [d, d] of full rank, but for the zero that the centring of a LayerNorm makes."""
    if folding == "folded" and layer.norm_attention.kind == "layer" and len(W) > 1:
        Q = complement_basis(len(W))
        return head_values(Q, Q.T @ W)
    return dense_values(W.T)


OF = ("whole", "heads")


def value_spectra_table(model: Model) -> pd.DataFrame:
    """A row a norm, OF (the whole layer, its heads) and layer: where the eigenvalues of H lie.

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
    parts = [whole_values(layer, folding)] if of == "whole" else own_values(layer, folding)
    h = np.concatenate([each.discs.centres for each in parts])
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
    """That of the trained DeiT-Ti, as `probe deit-tiny-patch16-224 readings` wrote it."""
    return pd.read_csv(RECORDED / "value_spectra_deit_tiny.csv")


def in_all(table: pd.DataFrame) -> pd.DataFrame:
    """Over the layers, a row a norm and OF: shares of all eigenvalues in per cent, the mean
    asymmetry, in how many layers it is below that of independent entries, and cos(H_start, H_end)
    or 'start unknown'."""
    rows = []
    for (norm, of), part in table.groupby(["norm", "of"], sort=False):
        count = part["eigenvalues"]
        own, random = part["asymmetry"], part["asymmetry_at_random"]
        words = {
            "asymmetry": f"{own.mean():.3f} (random {random.mean():.3f})",
            "below random": f"{int((own < random).sum())} of {len(part)} layers",
            "cos(H_start, H_end)": start_spread(part["cos_start"].tolist()),
        }
        row = {
            "norm": norm,
            "H of": of,
            "eigenvalues": int(count.sum()),
            "Re h < 0, %": 100 * float((part["negative"] * count).sum() / count.sum()),
            "in the disc, %": 100 * float((part["universal_disc"] * count).sum() / count.sum()),
        }
        rows.append(row | (words if of == "whole" else dict.fromkeys(words, "-")))
    return pd.DataFrame(rows)
