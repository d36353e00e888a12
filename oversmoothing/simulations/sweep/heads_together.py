"""Points of several heads in the same batched products: the powers of a layer give rho_Q and X_L.

A layer takes differences y = vec(Y) to M y, with M = I + sum_h B_h (x) H_h (T7a), and c = pi^T X to
N c + K y, with N = I + sum_h H_h (`points`). The layers 1, 2, 4, ... are squares, each of the three
with a power of two of its own.

rho_Q: of S = M^k, an orthonormal V that nearly spans its leading eigenvectors, and Z = V^T S V, let
r = |(I - V V^T) S| and a = |S V - V Z|. In a basis that begins with V an eigenvalue mu of S,
|mu| > r, is one of Z + C (mu - T)^-1 R with |C| <= |S|, |T| <= r and |R| <= a. Beyond t > r the
discs of all matrices within |S| a / (t - r) of Z hold these, and a component of discs as many as it
has discs: rho_Q is the k-th root of the largest modulus. What S lost to rounding is estimated.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.depth.ratios import couplings
from oversmoothing.theory.layer.attention import complement_basis, quotient
from oversmoothing.theory.numbers.rounding import ScaledState
from oversmoothing.theory.spectra.discs import Discs, enclose_all
from oversmoothing.theory.spectra.heads_radius import modulus_interval
from oversmoothing.theory.spectra.layer_discs import EPS, Interval
from oversmoothing.theory.support.sizes import Array

# (x, e): a stack x of matrices, each times 2^e.
Scaled = tuple[Array, NDArray[Any]]

# Columns of V, the squarings after which rho_Q is looked for, and how well it is to be known.
_COLUMNS, _LOOKED, _WIDTH = 8, range(8, 16, 2), 5e-10
# The scale of 0, and one below which nothing is left.
_NONE, _NOTHING = -(2**40), -1074.0


class Powers:
    """The powers of the layers of a stack, A [p, heads, n, n] and H [p, heads, d, d]."""

    def __init__(self, A: Array, H: Array) -> None:
        (p, _, n), d = A.shape[:3], H.shape[-1]
        self._Q, self._no_scale = complement_basis(n), np.zeros(p, dtype=np.intp)
        M = np.einsum("phij,phkl->pikjl", quotient(A), H).reshape(p, (n - 1) * d, -1)
        self._pi, weights = couplings(A)
        K = np.einsum("phj,phkl->pkjl", weights, H).reshape(p, d, -1)
        self._N = np.eye(d) + H.sum(axis=1)
        parts = np.eye(M.shape[-1]) + M, self._N.copy(), K
        self._squares = [[_normalised(x, self._no_scale) for x in parts]]

    def _square(self, k: int) -> list[Scaled]:
        """(M, N, K) of 2^k layers."""
        while len(self._squares) <= k:
            M, N, K = self._squares[-1]
            feeding = scaled_sum(_product(N, K), _product(K, M))
            self._squares.append([_product(M, M), _product(N, N), feeding])
        return self._squares[k]

    def states(self, X0: Array, depths: Sequence[int]) -> Iterator[ScaledState]:
        """The states of the stack at increasing depths."""
        p, n, d = X0.shape
        to_mean = (1.0 / n - self._pi) @ self._Q
        y = _normalised((self._Q.T @ X0).reshape(p, -1, 1), self._no_scale)
        c = _normalised((self._pi[:, None] @ X0).reshape(p, d, 1), self._no_scale)
        past = 0
        for depth in depths:
            for k in range((depth - past).bit_length()):
                if (depth - past) >> k & 1:
                    M, N, K = self._square(k)
                    c, y = scaled_sum(_product(N, c), _product(K, y)), _product(M, y)
            past = depth
            Y = y[0].reshape(p, n - 1, d)
            mean, scale = scaled_sum((c[0].reshape(p, 1, d), c[1]), (to_mean[:, None] @ Y, y[1]))
            yield ScaledState(depth, self._Q @ Y, mean[:, 0], y[1], scale)

    def consensus_radii(self) -> list[Interval | None]:
        """rho_C of each; None where no discs were proved."""
        off = 4 * EPS * self._N.shape[-1] ** -0.5 * _sizes(self._N)
        return _enclosed(self._N, np.where(self._N == 0, 0.0, off[:, None, None]))

    def radii(self) -> list[Interval | None]:
        """rho_Q of each; None where the leading eigenvalues are not told from the others."""
        rho: list[Interval | None] = [None] * len(self._no_scale)
        places, (S, e) = np.arange(len(rho)), self._square(_LOOKED[0])[0]
        for k in _LOOKED:
            for i, power, bounds in zip(places, e.tolist(), _radii(S, 2**k * EPS), strict=True):
                rho[i] = bounds and _root(bounds, power, k)
            left = [rho[i] is None for i in places]
            places, power = places[left], (S[left], e[left])
            for _ in range(_LOOKED.step):
                power = _product(power, power)
            S, e = power
        return rho


def _normalised(x: Array, e: NDArray[Any]) -> Scaled:
    """In place, the largest entry of each in [1/2, 1) unless it is 0."""
    shift = np.frexp(np.maximum(x.max(axis=(-2, -1)), -x.min(axis=(-2, -1))))[1]
    x *= np.ldexp(1.0, -shift)[..., None, None]
    return x, e + shift


def _product(x: Scaled, y: Scaled) -> Scaled:
    return _normalised(x[0] @ y[0], x[1] + y[1])


def scaled_sum(x: Scaled, y: Scaled) -> Scaled:
    """On the larger of the scales of what is not 0."""
    scales = [np.where(part.any(axis=(-2, -1)), e, _NONE) for part, e in (x, y)]
    top = np.maximum(*scales)
    one, other = (
        part * np.exp2(np.clip(e - top, _NOTHING, 0.0))[..., None, None] for part, e in (x, y)
    )
    return _normalised(one + other, top)


def _sizes(x: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("pij,pij->p", x, x)))


def _radii(S: Array, rounding: float) -> list[Interval | None]:
    """The spectral radius of each of a stack, which is known up to some of its size."""
    rows = S.shape[-1]
    V = np.random.default_rng(0).standard_normal((rows, min(_COLUMNS, rows)))
    for _ in range(4):
        V = np.linalg.qr(S @ V)[0]
    SV, turned = S @ V, V.swapaxes(1, 2)
    Z, size = turned @ SV, _sizes(S)
    lost = rounding * size
    rest, apart = _sizes(S - V @ (turned @ S)) + lost, _sizes(SV - V @ Z) + lost
    least = np.abs(np.linalg.eigvals(Z)).max(axis=-1) / 2
    good = rest < least / 2
    error = lost + np.where(good, size * apart / np.where(good, least - rest, 1.0), 0.0)
    bounds = _enclosed(Z, np.broadcast_to(error[:, None, None], Z.shape))
    return [
        each if each is not None and fine and each.low > t else None
        for each, fine, t in zip(bounds, good.tolist(), least.tolist(), strict=True)
    ]


def _enclosed(M: Array, error: Array) -> list[Interval | None]:
    return [
        modulus_interval(each, 0.0) if isinstance(each, Discs) else None
        for each in enclose_all(M, error)
    ]


def _root(power: Interval, e: int, k: int) -> Interval | None:
    """(power 2^e)^(1 / 2^k), where that is known well enough."""
    values = np.array([power.low, power.high, power.shown])
    for _ in range(k):
        values, e = np.sqrt(np.ldexp(values, e & 1)), e >> 1
    low, high, shown = np.ldexp(values, e).tolist()
    return Interval(low, high, None, shown) if high - low <= _WIDTH * high else None
