"""What the spectra of attention say on the inputs whose spectra are taken, layer by layer.

With learned sinks the rows of A sum to less than 1. 1 + h a are the eigenvalues of I + H (x) A for
any square A and H (T1a). But A 1 is not 1 there, so that consensus is no mode, and the verdicts of
the theory, which are of row-stochastic A, do not apply: numbers alone, no verdict. A is the mean
over heads, H whole, as in reading E2.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from oversmoothing.experiments.inspection import heads_and_why
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.inspection.heads_and_why import SPECTRAL, ValueModes, matrices
from oversmoothing.experiments.models.model import Heads, Model, Trace, check_stochastic
from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured
from oversmoothing.simulations.running import steps
from oversmoothing.simulations.spectra import head_values
from oversmoothing.simulations.state import one_thread
from oversmoothing.theory.layer.attention import closed_classes
from oversmoothing.theory.spectra import layer_discs
from oversmoothing.theory.spectra.discs import Discs
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array, Complex
from oversmoothing.theory.verdict.formulas import Outcome, dominance

TILT_SEED = 0
ORDERS = ("modulus", "residual")
RANDOM_DIRECTIONS = 32
# Consensus dominates where its radius is larger by more than the rounding of both in float64: of
# the eigenvalues, which |h| multiplies, and of 1 + h a.
_ROUNDING, _OF_SUMS = 1e-9, 4 * float(np.finfo(np.float64).eps)
# Columns of a certified case.
CASES = ("layer", "head", "image", "verdict", "margin_low", "margin_high", "largest_radius",
         "seconds", "reason")  # fmt: skip
MEANS = {"largest radius": "of the discs that hold the eigenvalues of A, over heads and images"}


@dataclass(frozen=True)
class Direction:
    """An eigenvalue of H = W^T and an orthonormal basis [d, k] of what its eigenvectors span, a
    line or, of a complex pair, a plane: X -> X W turns the rows of X toward it."""

    value: complex
    basis: Array

    @classmethod
    def of(cls, value: complex, vector: Complex) -> Direction:
        parts = [vector.real] if value.imag == 0 else [vector.real, vector.imag]
        return cls(complex(value), np.linalg.qr(np.stack(parts, axis=1))[0])


class Spectra:
    """What is taken of the spectra of attention, layer by layer while it is there."""

    def __init__(self, model: Model) -> None:
        self.inputs = 0
        self._columns: list[list[dict[str, Array]]] = [[] for _ in model.layers]
        self._values: dict[int, Discs] = {}

    def see(self, number: int, trace: Trace, keep: Tensor, value: ValueModes, heads: Heads) -> None:
        """A layer of a batch, all of whose inputs are taken; value: of its H, of its `heads`."""
        self.inputs += 0 if number else len(keep)
        if number not in self._values:
            H = heads_and_why.value_projection(heads)
            both = (W.detach().double().numpy() for W in (heads.W_V, heads.W_O))
            L, R = heads_and_why.joined(*both)
            low = L.shape[1] < len(H)
            own = layer_discs.head_discs(L, R) if low else layer_discs.value_discs(H)
            self._values[number] = head_values.known_values(own, H)
        attention = matrices(trace, keep)
        lengths = sorted({A.shape[-1] for A in attention})
        # Inputs of one length together, [m, heads, k, k].
        taken = [
            head_values.layer_dominance(
                np.stack([A for A in attention if A.shape[-1] == k]), self._values[number]
            )
            for k in lengths
        ]
        columns = {
            name: np.concatenate([getattr(each, name) for each in taken])
            for name in ("classes", "rho_quotient", "safe", "outside", "subdominant")
        }
        columns["rho_consensus"] = np.array([taken[0].rho_consensus])
        means = (torch.from_numpy(A.astype(np.float64).mean(axis=0)) for A in attention)
        columns["dobrushin"] = np.array([float(heads_and_why.dobrushin(A)) for A in means])
        self._columns[number].append(columns | _tilts(trace, keep, value))

    def columns(self) -> list[dict[str, float]]:
        """One dictionary a layer over the inputs that were seen; empty for none.

        <class>_share of reading E2, rho_consensus, rho_quotient_median, predicted_log_rate_median,
        safe_interval_median, safe_interval_min, outside_share; dobrushin_mean, subdominant_mean (of
        the mean over heads); tilt_<order>, tilt_<order>_random, principal_<order>_real, _imag.
        """
        return [_of_layer(taken) if taken else {} for taken in self._columns]


def _of_layer(taken: list[dict[str, Array]]) -> dict[str, float]:
    by = {name: np.concatenate([each[name] for each in taken]) for name in taken[0]}
    consensus = float(by["rho_consensus"][0])
    with np.errstate(divide="ignore"):
        rates = np.log(by["rho_quotient"]) - np.log(consensus)
    columns = {f"{name}_share": (by["classes"] == name).mean() for name in head_values.CLASSES} | {
        "rho_consensus": consensus,
        "rho_quotient_median": np.median(by["rho_quotient"]),
        "predicted_log_rate_median": np.median(rates),
        "safe_interval_median": np.median(by["safe"]),
        "safe_interval_min": by["safe"].min(),
        "outside_share": by["outside"].mean(),
        "dobrushin_mean": by["dobrushin"].mean(),
        "subdominant_mean": by["subdominant"].mean(),
    }
    columns |= {name: v.mean() for name, v in by.items() if name.startswith("tilt")}
    columns |= {name: v[0] for name, v in by.items() if name.startswith("principal")}
    return {name: float(value) for name, value in columns.items()}


def _tilts(trace: Trace, keep: Tensor, value: ValueModes) -> dict[str, Array]:
    columns: dict[str, Array] = {}
    for order in ORDERS:
        taken, generator = principal(value, order), torch.Generator().manual_seed(TILT_SEED)
        gain, random = tilt(trace.before, trace.after_ffn, taken, generator, keep)
        columns |= {
            f"tilt_{order}": gain.numpy(),
            f"tilt_{order}_random": random.numpy(),
            f"principal_{order}_real": np.array([taken.value.real]),
            f"principal_{order}_imag": np.array([taken.value.imag]),
        }
    return columns


def principal(value: ValueModes, order: str) -> Direction:
    """The eigenvector of H with the largest |h| ('modulus', arXiv 2605.25619, no residual) or the
    largest |1 + h| ('residual': what a residual layer turns tokens to at consensus)."""
    return Direction.of(*value.largest[order])


def alignment(X: Tensor, span: Tensor, keep: Tensor | None = None) -> Tensor:
    """Mean over tokens of |projection of x_i on the span [d, k]| / |x_i|, [b], of X [b, n, d]."""
    return _mean(torch.linalg.vector_norm(_unit(X) @ span.unsqueeze(0), dim=-1), keep)


def tilt(
    before: Tensor, after: Tensor, taken: Direction, generator: torch.Generator,
    keep: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(tilt [b], baseline [b]): the gain in alignment with a principal direction over a layer, and
    the mean gain for RANDOM_DIRECTIONS random spans of the same dimension."""
    d, k = taken.basis.shape
    X, Y = before.double(), after.double()
    own = torch.from_numpy(taken.basis).to(X)
    draw = torch.randn((RANDOM_DIRECTIONS, d, k), generator=generator, dtype=torch.float64)
    # All random spans in one product: [b, n, directions, k].
    every = torch.linalg.qr(draw).Q.to(X).permute(1, 0, 2).reshape(d, -1)
    start, end = (
        torch.linalg.vector_norm((_unit(Z) @ every).unflatten(-1, (-1, k)), dim=-1).mean(-1)
        for Z in (X, Y)
    )
    return alignment(Y, own, keep) - alignment(X, own, keep), _mean(end - start, keep)


def _unit(X: Tensor) -> Tensor:
    unit: Tensor = X / torch.linalg.vector_norm(X, dim=-1, keepdim=True)
    return unit


def _mean(values: Tensor, keep: Tensor | None) -> Tensor:
    """Over the kept tokens, [b, n] -> [b]."""
    if keep is None:
        return values.mean(-1)
    return torch.where(keep, values, 0.0).sum(-1) / keep.sum(-1)


def head_dominance(trace: Trace, keep: Tensor, value: ValueModes) -> dict[str, Array]:
    """SPECTRAL by name [heads, inputs]: consensus, 1 where it dominates, else 0; radius rho_Q;
    rho_consensus; margin rho_C - rho_Q; of each A_h with its own H_h."""
    own = [
        [list(own_dominance(one, value.of_head(head)).values()) for head, one in enumerate(A)]
        for A in matrices(trace, keep)
    ]
    return dict(zip(SPECTRAL, np.array(own).transpose(2, 1, 0), strict=True))


def own_dominance(A: NDArray[np.floating], h: Complex) -> dict[str, float]:
    """SPECTRAL by name, of one head's A [n, n] with the eigenvalues h of its own H."""
    # Row sums are 1 to the model's rounding; one head is a mean of one.
    (one,) = head_values.mean_attention(A[None, None].astype(np.float32))
    radii = dominance(layer_discs.attention_spectrum(one), h)
    reach = _ROUNDING * float(np.abs(h).max()) + _OF_SUMS * radii.rho_consensus
    larger = float(radii.margin > reach)
    numbers = (larger, radii.rho_quotient, radii.rho_consensus, radii.margin)
    return dict(zip(SPECTRAL, numbers, strict=True))


@one_thread()
def certified_attention(model: Model, inputs: Sequence[Any]) -> Result:
    """Tables `layers` (how often each verdict in each) and `cases` (a row a case: layer, head,
    image, verdict, reason, margin, largest radius, seconds); why which are undecided.

    A case is an attention matrix against its head's H = (W_V W_proj)^T, through the r x r core; the
    d - r zero eigenvalues make a TIE by structure where nothing exceeds modulus 1.
    model: of images, opened in float64. The certified matrix is the model's attention with each row
    divided by its sum, exactly. Raises `InputError` for a model that reads text.
    """
    if model.modality != "vision":
        raise InputError(f"'{model.name}' reads text: give a model of images")
    check_stochastic(model)
    from oversmoothing.theory.verdict.stages import certify_spectra  # not loaded by `inspect`

    rows = []
    traces = extract(model, inputs).traces
    layers = steps(zip(model.layers, traces, strict=True), model.depth, "layer")
    for number, (layer, trace) in enumerate(layers, 1):
        assert trace.attention is not None
        own = layer.heads.double()
        for head, maps in enumerate(trace.attention.numpy().swapaxes(0, 1)):
            value = layer_discs.head_discs(own.W_V[head].numpy(), own.W_O[head].numpy())
            start = time.perf_counter()
            spectra = layer_discs.attention_discs_all(maps)
            seconds = (time.perf_counter() - start) / len(maps)
            for image, (A, spectrum) in enumerate(zip(maps, spectra, strict=True)):
                taken = certify_spectra(spectrum, value, len(closed_classes(A)) - 1)
                margin = taken.margin or (np.nan, np.nan)
                largest = spectrum.radii.max() if isinstance(spectrum, Discs) else np.nan
                said = str(taken.verdict), *margin, largest, seconds, str(taken.reason)
                rows.append((number, head, image, *said))
    table = pd.DataFrame(rows, columns=CASES)
    undecided = table[table["verdict"] == Outcome.UNDECIDED]
    share = 100 * (1 - len(undecided) / len(table))
    counts = ", ".join(f"{count} {name}" for name, count in table["verdict"].value_counts().items())
    by_layer = pd.crosstab(table["layer"], table["verdict"]).reset_index().rename_axis(columns=None)
    by_layer["largest radius"] = table.groupby("layer")["largest_radius"].max().to_numpy()
    says = [
        f"{share:.1f} % of {len(table)} cases are certified: {counts}. A case is a head's "
        "attention on one image with that head's H, as a layer of its own that is repeated.",
        f"Radii of the discs that hold the eigenvalues of A: the largest has a median of "
        f"{table['largest_radius'].median():.1e} and is {table['largest_radius'].max():.1e} at "
        f"worst; {table['seconds'].median():.2g} s a spectrum (median).",
    ]
    says += [
        f"Undecided, {len(own)} of the cases (layer {', '.join(map(str, own['layer'].unique()))}): "
        f"{reason}."
        for reason, own in undecided.groupby("reason")
    ]
    images = int(table["image"].nunique())
    return Result(
        "certified_attention",
        f"Certified verdicts on the attention of {model.name}",
        {"layers": Table(by_layer, means=MEANS), "cases": Table(table, {"seconds": "s"})},
        [Sentence(each, measured(images, of="image")) for each in says],
        {"model": model.name, "images": images},
    )
