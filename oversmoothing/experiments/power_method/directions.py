"""The eigenvectors of H as directions that tokens may tilt towards: a line each, or a plane.

The tokens x of X' = X + A X H^T at consensus go x -> (I + H) x, so that their directions are right
eigenvectors of H = (W_V W_proj)^T. A complex pair spans a real plane, within which they turn.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oversmoothing.experiments.inspection.extract import stream
from oversmoothing.experiments.inspection.spectra import Direction
from oversmoothing.experiments.models.model import Layer, Model
from oversmoothing.experiments.study.value_spectra import factors

Matrix = NDArray[np.float64]
Rule = Literal["power", "residual"]


def eigendirections(H: Matrix) -> list[Direction]:
    """One for each real eigenvalue and each complex pair of H [d, d]."""
    values, vectors = np.linalg.eig(H)
    pairs = zip(values, vectors.T, strict=True)
    return [Direction.of(value, vector) for value, vector in pairs if value.imag >= 0]


def principal(directions: list[Direction], rule: Rule) -> int:
    """Which of them dominates: 'power' by |lambda|, as without a residual; 'residual' by
    |1 + lambda| (N-2605.25619-direction)."""
    shift = 1.0 if rule == "residual" else 0.0
    return int(np.argmax([abs(shift + each.value) for each in directions]))


def shares(X: Matrix, bases: Matrix) -> Matrix:
    """Mean over tokens of |B^T x|^2 / |x|^2 times d/k: 1 is what a random B has on average.

    X [..., n, d] with zero rows left out of the mean; bases [m, d, k]; the result is [..., m].
    """
    m, d, k = bases.shape
    length = np.sqrt(np.square(X).sum(-1, keepdims=True))
    kept = length[..., 0] > 0
    unit = np.divide(X, length, out=np.zeros_like(X), where=length > 0)
    flat = bases.transpose(1, 0, 2).reshape(d, m * k)
    squares = np.square(unit @ flat).reshape(*X.shape[:-1], m, k).sum(-1)
    counted = squares.sum(-2) / kept.sum(-1)[..., None]
    return np.asarray(counted * (d / k))


def random_bases(count: int, d: int, k: int, rng: np.random.Generator) -> Matrix:
    """Orthonormal bases [count, d, k] of uniformly drawn subspaces."""
    return np.linalg.qr(rng.standard_normal((count, d, k)))[0]


def product(layer: Layer, scale: float) -> Matrix:
    """H [d, d] of a layer: (scale sum_h W_V,h W_O,h)^T, the norm's gain folded in."""
    W_V, W_O = factors(layer, "unfolded" if layer.placement == "post" else "folded")
    H: Matrix = scale * np.einsum("hdr,hre->de", W_V, W_O).T
    return H


def scales(model: Model, inputs: Any) -> list[float]:
    """The mean over tokens of what the norm in front of each attention multiplies a token by."""
    sums = np.zeros(len(model.layers))
    count = 0
    for batch in stream(model, inputs, attention=False):
        count += int(batch.keep.sum())
        for number, (layer, trace) in enumerate(zip(model.layers, batch.traces, strict=True)):
            norm = layer.norm_attention
            if layer.placement == "post" or norm.kind == "none":
                sums[number] += int(batch.keep.sum())
                continue
            X = trace.before[batch.keep].double()
            sums[number] += float(norm.square(norm.centred(X)).rsqrt().sum())
    return [float(each) for each in sums / count]
