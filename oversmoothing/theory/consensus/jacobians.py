"""Jacobians at consensus in closed form: norms, and a layer of many heads with its FFN (T8c).

J acts on a feature vector u as J u, so that a map of tokens takes a perturbation D [n, d] (rows =
tokens) to D J^T. At X = 1 c^T the derivative of softmax attention drops out (T8a), and a layer is

    D -> (D + (sum_h A_h D inner^T W_h) behind^T) outer^T tail^T + D side^T

with A_h = A_h(1 c^T), W_h = W_V,h W_O,h and d x d matrices of the norms and the FFN. Only attention
tells perturbations along consensus (A_h 1 = 1) from those across it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigs

from oversmoothing.theory.layer.attention import complement_basis
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

Map = Callable[[Array], Array]

# Rounding of a row of attention, to one side.
_ROUNDING = 64 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class TokenNorm:
    """N(x) = gain * z + shift, z = centred x / s, s = sqrt(mean(centred^2) + eps).

    kind 'layer' takes the mean off, 'rms' does not, 'none' leaves x as it is. gain, shift [d].
    """

    kind: Literal["layer", "rms", "none"]
    gain: Array
    shift: Array
    eps: float = 0.0

    def __call__(self, x: Array) -> Array:
        """N of a token [d]."""
        if self.kind == "none":
            return x
        z, _ = self._scaled(x)
        moved: Array = self.gain * z + self.shift
        return moved

    def jacobian(self, x: Array) -> Array:
        """diag(gain) (C - z z^T/d)/s [d, d], C = I - 11^T/d (RMSNorm: C = I) (T8c).

        Raises `InputError` where s = 0: N has no derivative there.
        """
        d = len(x)
        if self.kind == "none":
            return np.eye(d)
        z, s = self._scaled(x)
        C = np.eye(d) - (1 / d if self.kind == "layer" else 0.0)
        found: Array = self.gain[:, None] * (C - np.outer(z, z) / d) / s
        return found

    def _scaled(self, x: Array) -> tuple[Array, float]:
        centred = x - x.mean() if self.kind == "layer" else x
        s = float(np.sqrt(np.mean(centred**2) + self.eps))
        if s == 0:
            raise InputError("the norm of a token without spread and eps = 0 has no derivative")
        return centred / s, s


@dataclass(frozen=True)
class TokenMap:
    """A map of tokens [d] -> [d] and its Jacobian [d, d] at a token, as of an FFN."""

    value: Map
    jacobian: Map


@dataclass(frozen=True)
class AtConsensus:
    """The derivative of a layer at X = 1 c^T; image [d]: the layer sends 1 c^T to 1 image^T.

    A [heads, n, n] row-stochastic, W [heads, d, d]; the other matrices [d, d] as in the formula at
    the head of the module.
    """

    image: Array
    A: Array
    W: Array
    inner: Array
    behind: Array
    outer: Array
    tail: Array
    side: Array

    def __call__(self, D: Array) -> Array:
        """The derivative in the direction D [n, d]: [n, d]."""
        mixed = np.einsum("hij,jd,hde->ie", self.A, D @ self.inner.T, self.W, optimize=True)
        moved: Array = (D + mixed @ self.behind.T) @ self.outer.T @ self.tail.T + D @ self.side.T
        return moved

    def block(self, weights: Array) -> Array:
        """[d, d], what a mode does on which head h acts as the number weights[h]."""
        W = np.einsum("h,hde->de", weights, self.W)
        mixed = np.eye(len(self.image)) + self.behind @ W.T @ self.inner
        found: Array = self.tail @ self.outer @ mixed + self.side
        return found

    @property
    def longitudinal(self) -> Array:
        """[d, d], on perturbations 1 u^T: every head acts as 1."""
        return self.block(np.ones(len(self.A)))

    @property
    def uniform(self) -> bool:
        """Whether every A_h is 11^T/n, as for logits from content alone: then P A_h = 0, and every
        perturbation across consensus is multiplied by `block(0)`."""
        n = self.A.shape[-1]
        return bool(np.abs(self.A - 1 / n).max() <= _ROUNDING)

    @property
    def causal(self) -> bool:
        """Whether every A_h is lower triangular: token i then has the block of A_h,ii (T7e)."""
        return not np.triu(self.A, 1).any()


def layer_at_consensus(
    c: Array,
    A: Array,
    W: Array,
    bias: Array,
    *,
    placement: Literal["pre", "post", "parallel"],
    norm: TokenNorm,
    norm_ffn: TokenNorm,
    ffn: TokenMap | None = None,
    behind: TokenNorm | None = None,
    behind_ffn: TokenNorm | None = None,
) -> AtConsensus:
    """The derivative at X = 1 c^T (T8c), c [d], A [heads, n, n] = A(1 c^T), W [heads, d, d], bias
    [d]: what attention adds to every token beside sum_h A_h N(X) W_h.

    'pre': X + N_b(attention(N X)), then X + N_b'(FFN(N' X)); 'post': N(X + N_b(attention X)), then
    N'(X + N_b'(FFN X)); 'parallel': both of X. behind, behind_ffn: N_b, N_b', norms of what a
    sublayer gives. Raises `InputError` for attention whose rows do not sum to 1: consensus is not
    invariant then.
    """
    n = A.shape[-1]
    off = float(np.abs(A.sum(-1) - 1).max())
    if off > n * _ROUNDING:
        raise InputError(
            f"rows of attention sum to 1 only within {off:.1e}: equal tokens do not stay equal, "
            "and there is no consensus to linearise at"
        )
    none = TokenNorm("none", np.ones(len(c)), np.zeros(len(c)))
    behind, behind_ffn = behind or none, behind_ffn or none
    eye, zero = np.eye(len(c)), np.zeros((len(c), len(c)))
    inner = outer = eye
    seen = c
    if placement != "post":
        inner, seen = norm.jacobian(c), norm(c)
    added = W.sum(0).T @ seen + bias
    middle = c + behind(added)
    back = behind.jacobian(added)
    if placement == "post":
        outer, middle = norm.jacobian(middle), norm(middle)
    tail, side, image = eye, zero, middle
    if ffn is not None:
        base = c if placement == "parallel" else middle
        given = middle if placement == "post" else norm_ffn(base)
        branch = ffn.jacobian(given)
        if placement != "post":
            branch = branch @ norm_ffn.jacobian(base)
        value = ffn.value(given)
        branch = behind_ffn.jacobian(value) @ branch
        image = middle + behind_ffn(value)
        if placement == "parallel":
            side = branch
        else:
            tail = eye + branch
        if placement == "post":
            tail, image = norm_ffn.jacobian(image) @ tail, norm_ffn(image)
    return AtConsensus(image, A, W, inner, back, outer, tail, side)


def transverse_eigenvalue(layers: Sequence[AtConsensus]) -> complex:
    """The eigenvalue of largest modulus of the product of layers across consensus.

    Exact blocks where every attention is uniform (one block) or lower triangular (a block a token
    but the first, T7e); else Arnoldi's method on the (n - 1) d directions. 0 for a single token.
    """
    n, d = layers[0].A.shape[-1], len(layers[0].image)
    if n == 1:
        return 0j
    if all(each.uniform for each in layers):
        return _largest(_product([each.block(np.zeros(len(each.A))) for each in layers]))
    if all(each.causal for each in layers):
        found = [
            _largest(_product([each.block(each.A[:, i, i]) for each in layers]))
            for i in range(1, n)
        ]
        return max(found, key=abs)
    Q = complement_basis(n)

    def across(y: Array) -> Array:
        D = Q @ y.reshape(n - 1, d)
        for each in layers:
            D = each(D)
        return (Q.T @ D).ravel()

    size = (n - 1) * d
    if size < 8:
        return _largest(np.stack([across(e) for e in np.eye(size)], axis=1))
    start = np.random.default_rng(0).standard_normal(size)
    operator = LinearOperator((size, size), matvec=across, dtype=np.float64)
    values = eigs(operator, k=2, v0=start, return_eigenvectors=False)
    return complex(max(values, key=abs))


def _product(blocks: Sequence[Array]) -> Array:
    """The last of them leftmost."""
    found = blocks[0]
    for each in blocks[1:]:
        found = each @ found
    return found


def _largest(M: Array) -> complex:
    values = np.linalg.eigvals(M)
    return complex(values[np.argmax(np.abs(values))])
