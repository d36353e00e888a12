"""Why a layer does what it does: the spectrum of its H, its attention, its gains, and the tilt.

All of H = sum_h (W_V,h W_O,h)^T is float64. Regions of an eigenvalue h: 'zero' (exact, from the
rank of the heads), 'universal_disc' |h + 1/2| <= 1/2, h != 0, where consensus loses for every
positive A (T3c), 'positive' Re h > 0, and 'other' (Re h <= 0 outside the disc, where A decides).
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oversmoothing.experiments.models.model import Heads
from oversmoothing.simulations.spectra.head_values import asymmetry
from oversmoothing.theory.spectra.layer_discs import largest_modulus
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.formulas import in_universal_disc

REGIONS = ("zero", "universal_disc", "positive", "other")
ORDERS = ("modulus", "residual")
RANDOM_DIRECTIONS = 32


@dataclass(frozen=True)
class Principal:
    """The principal direction of the tokens under X -> X W: span [d, 1 or 2] orthonormal.

    An eigenvector v of H = W^T turns the rows of X toward v; a complex pair spans a plane. value:
    the eigenvalue.
    """

    value: complex
    span: Array


def value_projection(heads: Heads) -> Array:
    """H = sum_h (W_V,h W_O,h)^T [d, d] in float64."""
    return np.ascontiguousarray(heads.total().detach().numpy().T)


def regions(h: NDArray[np.complex128], zeros: int = 0) -> dict[str, float]:
    """Share of eigenvalues in each of REGIONS; `zeros` exact ones are added to h [k]."""
    disc = np.array([in_universal_disc(complex(value)) for value in h], dtype=bool)
    found = np.select([h == 0, disc, h.real > 0], REGIONS[:3], REGIONS[3])
    counts = Counter(["zero"] * zeros + found.tolist())
    return {name: counts[name] / counts.total() for name in REGIONS}


def weights_why(heads: Heads) -> dict[str, float]:
    """What the weights of one layer say, without any input.

    h_<region>, head_h_<region>: shares of eigenvalues, of H whole and of the heads' own H_h (each
    with its d - r zeros); h_real_min, h_real_max, h_abs_max; asymmetry
    ||H - H^T||_F / ||H + H^T||_F, 0 symmetric and inf skew; condition_V_H of its eigenvectors
    (2-norm, inf where singular); departure_from_normality sqrt(||H||_F^2 - sum |h|^2) /
    ||H||_F (Henrici).
    """
    H = value_projection(heads)
    d, norm = len(H), float(np.linalg.norm(H))
    h, V = np.linalg.eig(H)
    # Each head's r x r core W_O W_V has its eigenvalues but for d - r exact zeros (r <= d).
    core = heads.W_O.double() @ heads.W_V.double()
    own = np.linalg.eigvals(core.detach().cpu().numpy()).astype(np.complex128)
    zeros = max(0, d - own.shape[1]) * len(own)
    excess = max(0.0, norm**2 - float((np.abs(h) ** 2).sum()))
    return {
        **{f"h_{name}": share for name, share in regions(h).items()},
        **{f"head_h_{name}": share for name, share in regions(own.ravel(), zeros).items()},
        "h_real_min": float(h.real.min()),
        "h_real_max": float(h.real.max()),
        "h_abs_max": float(np.abs(h).max()),
        "asymmetry": asymmetry(H),
        "condition_V_H": float(np.linalg.cond(V)),
        "departure_from_normality": excess**0.5 / norm if norm else 0.0,
    }


def dobrushin(A: Tensor) -> Tensor:
    """tau(A) = max over pairs of rows of half their l1 distance, [...] for A [..., n, n] (T5c)."""
    n = A.shape[-1]
    flat = A.reshape(-1, n, n).double()
    return torch.stack([torch.pdist(each, p=1).max() / 2 if n > 1 else each.new_zeros(())
                        for each in flat]).reshape(A.shape[:-2])  # fmt: skip


def principal(heads: Heads, order: str) -> Principal:
    """The eigenvector of H with the largest |h| ('modulus', arXiv 2605.25619, no residual) or the
    largest |1 + h| ('residual': what a residual layer turns tokens to at consensus)."""
    h, V = np.linalg.eig(value_projection(heads))
    best = int(np.argmax(np.abs(h))) if order == "modulus" else largest_modulus(np.ones(1), h)[2]
    v = V[:, best]
    parts = np.stack([v.real, v.imag], axis=1) if h[best].imag != 0 else v.real[:, None]
    span, _ = np.linalg.qr(parts)
    return Principal(complex(h[best]), span)


def alignment(X: Tensor, span: Tensor, keep: Tensor | None = None) -> Tensor:
    """Mean over tokens of |projection of x_i on the span| / |x_i|, [b]: 1 within it, for X [b, n,
    d] and an orthonormal span [d, k]."""
    return _mean(torch.linalg.vector_norm(_unit(X) @ span.unsqueeze(0), dim=-1), keep)


def tilt(
    before: Tensor, after: Tensor, found: Principal, generator: torch.Generator,
    keep: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(tilt [b], baseline [b]): the gain in alignment with a principal direction over a layer, and
    the mean gain for RANDOM_DIRECTIONS random spans of the same dimension."""
    d, k = found.span.shape
    X, Y = before.double(), after.double()
    own = torch.from_numpy(found.span).to(X)
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
