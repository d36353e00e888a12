"""The shift of (rho_C, rho_Q) by each remedy: predicted, measured, and what a deep run then does.

Drawn layers X' = X + A X W: A softmax attention of random tokens, H = W^T Gaussian of a drawn size.
Predicted: from the eigenvalues of A and from H, by `Remedy.mode`. Measured: the derivative of the
module itself at a consensus state (the map itself where it is linear), cut into its two blocks.
Observed: the slope of log HFC/LFC in a run of the module through many layers with the same weights.
"""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.remedies.on_output import FormOfH
from oversmoothing.experiments.remedies.remedy import FORCED, LINEAR, Plain, Remedy, norm_of
from oversmoothing.experiments.remedies.streams import HyperConnections
from oversmoothing.simulations.generators.attention import Softmax
from oversmoothing.theory.support.errors import whole_number

TOKENS, WIDTH = 8, 6
# |log rho_C/rho_Q| below which a run of DEPTH layers does not show which of them is larger.
NEAR_TIE = 0.03
DEPTH = 1200


@dataclass(frozen=True)
class Drawn:
    """Layers [count]: A [count, n, n], H [count, d, d], consensus x [count, d], X0 [count, n, d],
    all float64, and the eigenvalues of A but its 1, complex [count, n - 1]."""

    A: Tensor
    H: Tensor
    x: Tensor
    X0: Tensor
    a: Tensor


def drawn(count: int, seed: int, n: int = TOKENS, d: int = WIDTH) -> Drawn:
    """`count` layers; spectral radii of H up to about 3, so that both verdicts occur."""
    whole_number("the number of drawn layers", count, 1)
    rng = np.random.default_rng([seed, 17])
    A = Softmax(temperature=0.5).draw(n, rng=rng, batch=(count,))
    size = rng.uniform(0.3, 3.0, (count, 1, 1)) / sqrt(d)
    H = torch.from_numpy(rng.standard_normal((count, d, d)) * size)
    x = norm_of(torch.from_numpy(rng.standard_normal((count, d))))
    X0 = torch.from_numpy(rng.standard_normal((count, n, d)))
    values = np.linalg.eigvals(A)
    order = np.argsort(np.abs(values - 1), axis=-1)
    a = np.take_along_axis(values, order[:, 1:], axis=-1)
    return Drawn(torch.from_numpy(A), H, x, X0, torch.from_numpy(a))


def predicted(remedy: Remedy, layers: Drawn) -> Tensor:
    """(rho_C, rho_Q) [count, 2] from the modes."""
    found = []
    for a, H, x in zip(layers.a, layers.H, layers.x, strict=True):
        rest = torch.stack([remedy.mode(complex(each), H, x) for each in a])
        found.append([radius(remedy.mode(None, H, x)), radius(rest)])
    return torch.tensor(found, dtype=torch.float64)


def measured(remedy: Remedy, layers: Drawn) -> Tensor:
    """(rho_C, rho_Q) [count, 2] of the derivative of `remedy.layer` at 1 x^T."""
    return torch.tensor(
        [blocks(remedy, A, H.mT, x) for A, H, x in zip(layers.A, layers.H, layers.x, strict=True)],
        dtype=torch.float64,
    )


def blocks(remedy: Remedy, A: Tensor, W: Tensor, x: Tensor) -> tuple[float, float]:
    """(rho_C, rho_Q) of the module at 1 x^T; tokens' consensus is kept, which is checked."""
    n, d = len(A), len(W)
    X = x.expand(n, d)
    if isinstance(remedy, HyperConnections):
        X = remedy.spread(X)
    first = remedy.own_values(X, W).detach()
    J = torch.func.jacrev(lambda state: remedy.layer(state, A, W, first))(X).detach()
    # Streams or one of them, then tokens and features: [s, n, d, s, n, d].
    s = X.numel() // (n * d)
    J = J.reshape(s, n, d, s, n, d)
    common = J.sum(4)  # what 1 v^T goes to, [s, n, d, s, d]
    spread = float((common - common.mean(1, keepdim=True)).abs().max())
    if not spread <= 1e-9 * (1 + float(common.abs().max())):
        raise AssertionError(f"{remedy.title}: equal tokens become different by {spread:.1e}")
    basis = torch.linalg.svd(torch.ones(1, n, dtype=A.dtype))[2][1:]
    rest = torch.einsum("in,snatmb,jm->siatjb", basis, J, basis)
    side = s * (n - 1) * d
    return radius(common.mean(1).reshape(s * d, s * d)), radius(rest.reshape(side, side))


def radius(matrices: Tensor) -> float:
    """The largest modulus of an eigenvalue of matrices [..., d, d]."""
    return float(torch.linalg.eigvals(matrices).abs().max())


@torch.no_grad()
def observed(remedy: Remedy, layers: Drawn, depth: int = DEPTH) -> Tensor | None:
    """The slope of log HFC/LFC over the second half of `depth` equal layers, [count].

    None where the layer is no linear map of the state, whose rates depend on the state's size.
    Infinite where the mean is exactly 0 at the end, as HFC/LFC is: a remedy that takes the mean
    away (rho_C = 0) leaves the rounding of it, which may be 0.
    HFC is run on its own beside the state: modulo consensus it goes its own way (T1), and in the
    state itself it would be lost in rounding.
    """
    if remedy.scope not in (LINEAR, FORCED):
        return None
    A, W, X = layers.A, layers.H.mT, layers.X0
    acting = remedy
    if isinstance(remedy, FormOfH):
        W, acting = remedy.product(W), Plain()  # the same W' in every layer
    if isinstance(remedy, HyperConnections):
        X = remedy.spread(X) + 0.1 * _other(X, len(remedy.p))
    first = acting.own_values(X, W)
    runs = [_Run(X, first), _Run(_centred(X), _centred(first))]
    logs = []
    for layer in range(1, depth + 1):
        for run in runs:
            run.step(acting, A, W)
        runs[1].X = _centred(runs[1].X)
        if layer in (depth // 2, depth):
            low, high = (_size(part) for part in (_mean(runs[0].X), runs[1].X))
            logs.append(high.log() + runs[1].log - low.log() - runs[0].log)
    slope: Tensor = (logs[1] - logs[0]) / (depth - depth // 2)
    return slope.where(~logs[1].isposinf(), torch.inf)


class _Run:
    """A state with the factor taken out of it; what the first layer left is scaled with it."""

    def __init__(self, X: Tensor, first: Tensor) -> None:
        self.X, self.first = X, first
        self.log = torch.zeros(len(X), dtype=X.dtype)

    def step(self, remedy: Remedy, A: Tensor, W: Tensor) -> None:
        self.X = remedy.layer(self.X, A, W, self.first)
        # With the first layer's values in it: both belong to one linear system.
        size = torch.maximum(_size(self.X), _size(self.first)).clamp(min=1e-300)
        self.X = self.X / size.view(-1, *[1] * (self.X.ndim - 1))
        self.first = self.first / size.view(-1, *[1] * (self.first.ndim - 1))
        self.log = self.log + size.log()


def _centred(X: Tensor) -> Tensor:
    return X - X.mean(-2, keepdim=True)


def _mean(X: Tensor) -> Tensor:
    return X.mean(-2, keepdim=True).expand_as(X)


def _size(X: Tensor) -> Tensor:
    size: Tensor = torch.linalg.vector_norm(X.flatten(1), dim=1)
    return size


def _other(X: Tensor, streams: int) -> Tensor:
    """Differences between the streams, so that no mode is missing from the start."""
    draw = torch.Generator().manual_seed(1)
    shape = (len(X), streams, *X.shape[1:])
    return torch.randn(shape, generator=draw, dtype=X.dtype)


def verdicts_agree(remedy: Remedy, radii: Tensor, slopes: Tensor) -> tuple[int, int]:
    """(runs that smooth or not as predicted, runs that are no near tie).

    SMOOTHING iff rho_C > rho_Q, generically; with the first layer's values in every layer both are
    at least 1.
    """
    floor = 1.0 if remedy.scope == FORCED else 0.0
    C, Q = radii.clamp(min=floor).unbind(1)
    gap = C.log() - Q.log()
    clear = gap.abs() > NEAR_TIE
    # Smoothing falls by the gap a layer; else the slope is 0 or more, up to turning modes.
    right = torch.where(gap > 0, slopes < -gap / 2, slopes > -NEAR_TIE / 2)
    return int((right & clear).sum()), int(clear.sum())


def as_claimed(claim: str, before: Tensor, after: Tensor) -> int | None:
    """In how many layers the radii [count, 2] do what the claim says; None for no claim."""
    if claim == "raises rho_Q/rho_C":
        ratio = [each[:, 1].log() - each[:, 0].log() for each in (before, after)]
        return int((ratio[1] > ratio[0] + 1e-9).sum())
    if claim == "brings rho_C and rho_Q towards 1":
        return int(((after - 1).abs() < (before - 1).abs()).all(1).sum())
    if claim == "rho_Q > rho_C under every attention":
        return int((after[:, 1] > after[:, 0]).sum())
    return None


def log_shift(before: Tensor, after: Tensor) -> tuple[float, float]:
    """The means of log rho_C'/rho_C and log rho_Q'/rho_Q; -inf where a radius is 0 throughout."""
    change = [
        log(mean) if (mean := float(part.log().mean().exp())) else -np.inf
        for part in (after / before).unbind(1)
    ]
    return change[0], change[1]
