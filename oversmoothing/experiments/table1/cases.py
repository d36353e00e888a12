"""One row a case and reading: which class dominates (see the package for the readings).

Classes: 'consensus' (a = 1 wins), 'smallest' (the a of smallest real part, the paper's lambda_1),
'other' (another a; in E3, where no single A is left, whatever is not consensus), 'tie' (equal, by
exact zeros of H or to rounding) and, in E3 alone, 'undecided' (Arnoldi's method did not converge).
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversmoothing.experiments.models.model import Layer, Model
from oversmoothing.experiments.table1.value_spectra import (
    Folding,
    factors,
    own_values,
    whole_values,
)
from oversmoothing.simulations.spectra.batch_verdicts import (
    CLASSES as LAYER_CLASSES,
    normalised,
    quotient_values,
    spectral_verdicts,
    values_error,
)
from oversmoothing.simulations.spectra.head_values import SAFETY, HeadValues
from oversmoothing.simulations.spectra.layer_dominance import mean_attention
from oversmoothing.theory.spectra.heads import (
    consensus_block,
    dense_radius,
    layer_of_heads,
    quotient_radius,
)
from oversmoothing.theory.spectra.layer_discs import multipliers
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

Attention = NDArray[np.floating]

CLASSES = (*LAYER_CLASSES, "undecided")


# (layer, attention [m, heads, n, n], folding) -> [m, cases of one image], each one of CLASSES.
Reading = Callable[[Layer, Attention, Folding], NDArray[np.str_]]


def reading_e1(layer: Layer, attention: Attention, folding: Folding) -> NDArray[np.str_]:
    """E1: each head's own A and H_h, the maximum over all pairs of eigenvalues."""
    m, heads, n, _ = attention.shape
    found = spectral_verdicts(
        _plain(attention).reshape(m * heads, n, n),
        own_values(layer, folding),
        np.tile(np.arange(heads), m),
        dominant=True,
    )
    return found.dominant.reshape(m, heads)


def reading_e2(layer: Layer, attention: Attention, folding: Folding) -> NDArray[np.str_]:
    """E2: the mean over heads of A and the whole H, the maximum over all pairs."""
    mean = mean_attention(attention)
    index = np.zeros(len(mean), dtype=np.intp)
    found = spectral_verdicts(mean, [whole_values(layer, folding)], index, dominant=True)
    return found.dominant[:, None]


def reading_e3(layer: Layer, attention: Attention, folding: Folding) -> NDArray[np.str_]:
    """E3: rho(I + sum_h H_h) against the radius of Y -> Y + sum_h B_h Y W_h on the quotient."""
    W = factors(layer, folding)
    consensus = dense_radius(consensus_block(W), "dense")
    rho_c, error = consensus.value or 0.0, consensus.error

    def won(A: Array) -> str:
        if A.shape[-1] == 1:
            return "consensus"
        found = quotient_radius(layer_of_heads(A, W), beside=consensus)
        if found.value is None:
            return "undecided"
        if abs(rho_c - found.value) <= SAFETY * (error + found.error):
            return "tie"
        return "consensus" if rho_c > found.value else "other"

    return np.array([[won(normalised(A))] for A in attention])


def reading_e4(layer: Layer, attention: Attention, folding: Folding) -> NDArray[np.str_]:
    """E4: for each h_j of the whole H alone, the largest |1 + h_j a| over spec of the mean A."""
    head = whole_values(layer, folding)
    return np.stack([_alone(A, head) for A in mean_attention(attention)])


def reading_e4_heads(layer: Layer, attention: Attention, folding: Folding) -> NDArray[np.str_]:
    """E4 for each h_j of each H_h, d - r zeros included, against the head's own A."""
    heads = own_values(layer, folding)
    return np.stack(
        [
            np.concatenate([_alone(normalised(A), H) for A, H in zip(image, heads, strict=True)])
            for image in _plain(attention)
        ]
    )


READINGS: dict[str, Reading] = {
    "E1": reading_e1,
    "E2": reading_e2,
    "E3": reading_e3,
    "E4": reading_e4,
    "E4 heads": reading_e4_heads,
}


def dominance_cases(
    model: Model,
    attention: Sequence[Attention],
    readings: Sequence[str] = tuple(READINGS),
    folding: Folding = "unfolded",
    first_image: int = 0,
) -> pd.DataFrame:
    """How many cases of each image, layer and reading fall in each class.

    attention: one array [m, heads, n, n] a layer, float32 or float64, row-stochastic to that
    precision. Columns: reading, image (from first_image), layer (from 1) and each of CLASSES.
    Raises `InputError` for an unknown reading, and where attention does not fit the model.
    """
    unknown = [name for name in readings if name not in READINGS]
    if unknown:
        raise InputError(f"no reading {unknown[0]}: choose from {', '.join(READINGS)}")
    if len(attention) != len(model.layers):
        raise InputError(
            f"attention of {len(attention)} layers for a model of {len(model.layers)}: give one "
            "array [m, heads, n, n] a layer"
        )
    rows = []
    for number, (layer, A) in enumerate(zip(model.layers, attention, strict=True), 1):
        heads = len(layer.heads.W_V)
        if A.ndim != 4 or A.shape[1] != heads or A.shape[2] != A.shape[3]:
            raise InputError(
                f"attention of layer {number} has shape {list(A.shape)}; give [m, {heads}, n, n]"
            )
        for reading in readings:
            for image, found in enumerate(READINGS[reading](layer, A, folding), first_image):
                counts = {name: np.count_nonzero(found == name) for name in CLASSES}
                rows.append({"reading": reading, "image": image, "layer": number, **counts})
    return pd.DataFrame(rows, columns=["reading", "image", "layer", *CLASSES])


def _plain(attention: Attention) -> Attention:
    """float32 and float64 as they are, anything narrower in float32."""
    return attention if attention.dtype == np.float64 else attention.astype(np.float32, copy=False)


def _alone(A: Array, head: HeadValues) -> NDArray[np.str_]:
    """The class of every h_j alone, [d], A [n, n] with rows summing to 1; h_j = 0 is a tie."""
    h, errors = head.discs.centres, head.discs.radii
    if len(A) == 1:
        return np.full(len(h), "consensus")
    a, error = quotient_values(A), values_error(A)
    moduli = np.abs(multipliers(a, h))
    place = moduli.argmax(axis=0)
    margin = np.abs(1 + h) - moduli.max(axis=0)
    doubt = SAFETY * (np.abs(h) * error + 2 * errors + 4 * np.finfo(np.float64).eps * (1 + abs(h)))
    smallest = a[place].real <= a.real.min() + 2 * error
    wins = [np.abs(margin) <= doubt, margin > 0, smallest]
    return np.select(wins, ["tie", "consensus", "smallest"], "other")
