"""A layer at consensus, where all tokens are equal: its Jacobians (T8c), and what loops do (T12).

J acts on a feature vector u as J u, so that a map of tokens takes a perturbation D [n, d] (rows =
tokens) to D J^T. At X = 1 c^T the derivative of softmax attention drops out (T8a), and a layer is

    D -> (D + (sum_h A_h D inner^T W_h) behind^T) outer^T tail^T + D side^T

with A_h = A_h(1 c^T), W_h = W_V,h W_O,h and d x d matrices of the norms and the FFN.

A looped block sends equal tokens 1 c^T to 1 g(c)^T. Along that path c_t, gamma = log(|c_{t+1}|/
|c_t|) and log|lambda| of the derivative across consensus (T8c) say whether HFC/LFC of a small
perturbation falls. Where |c_t| grows linearly, as of a Pre-LN block whose branch is homogeneous of
degree 0 far out, gamma ~ 1/t and log|lambda| ~ kappa/(c t), and HFC/LFC goes like t^(kappa/c - 1):
the exponent is log|lambda|/gamma - 1 (T12c, at first order; at these `loops`: the direction of the
equal tokens may still turn, see `settled`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator, eigs

from oversmoothing.theory.layer.attention import complement_basis
from oversmoothing.theory.layer.layer import check_attention, check_square, check_states
from oversmoothing.theory.spectra.layer_discs import largest_modulus
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
        return self.gain * z + self.shift

    def jacobian(self, x: Array) -> Array:
        """diag(gain) (C - z z^T/d)/s [d, d], C = I - 11^T/d (RMSNorm: C = I) (T8c).

        Raises `InputError` where s = 0: N has no derivative there.
        """
        d = len(x)
        if self.kind == "none":
            return np.eye(d)
        z, s = self._scaled(x)
        C = np.eye(d) - (1 / d if self.kind == "layer" else 0.0)
        return self.gain[:, None] * (C - np.outer(z, z) / d) / s

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
        """[d, d], what a mode does on which head h acts as the number weights[h], 1 on 1 u^T."""
        W = np.einsum("h,hde->de", weights, self.W)
        mixed = np.eye(len(self.image)) + self.behind @ W.T @ self.inner
        block: Array = self.tail @ self.outer @ mixed + self.side
        return block

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
    before, after = (none, norm) if placement == "post" else (norm, none)
    before_ffn, after_ffn = (none, norm_ffn) if placement == "post" else (norm_ffn, none)
    added = W.sum(0).T @ before(c) + bias
    inner, back, middle = before.jacobian(c), behind.jacobian(added), c + behind(added)
    outer, image = after.jacobian(middle), after(middle)
    tail, side = np.eye(len(c)), np.zeros((len(c), len(c)))
    if ffn is not None:
        base = c if placement == "parallel" else image
        given = before_ffn(base)
        value = ffn.value(given)
        branch = behind_ffn.jacobian(value) @ (ffn.jacobian(given) @ before_ffn.jacobian(base))
        if placement == "parallel":
            side = branch
        else:
            tail = tail + branch
        image = image + behind_ffn(value)
        tail, image = after_ffn.jacobian(image) @ tail, after_ffn(image)
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
        return _largest([each.block(np.zeros(len(each.A))) for each in layers])
    if all(each.causal for each in layers):
        blocks = ([each.block(each.A[:, i, i]) for each in layers] for i in range(1, n))
        return max(map(_largest, blocks), key=abs)
    Q = complement_basis(n)

    def across(y: Array) -> Array:
        D = Q @ y.reshape(n - 1, d)
        for each in layers:
            D = each(D)
        return (Q.T @ D).ravel()

    size = (n - 1) * d
    if size < 8:
        return _largest([np.stack([across(e) for e in np.eye(size)], axis=1)])
    start = np.random.default_rng(0).standard_normal(size)
    if not across(start).any():  # one feature behind RMSNorm: Arnoldi's method takes no zero
        return 0j
    operator = LinearOperator((size, size), matvec=across, dtype=np.float64)
    return complex(max(eigs(operator, k=2, v0=start, return_eigenvectors=False), key=abs))


def _largest(blocks: Sequence[Array]) -> complex:
    """The eigenvalue of largest modulus of the product, the last of the blocks leftmost."""
    values = np.linalg.eigvals(reduce(lambda product, each: each @ product, blocks))
    return complex(values[np.argmax(np.abs(values))])


# log|c_2T/c_T| in units of log 2 between which |c_t| is said to grow like a power of t.
POWER = (0.5, 1.5)


@dataclass(frozen=True)
class LoopLaw:
    """Local stability of consensus under a looped block, at its loop number `loops`.

    along: gamma, the log of the growth of |c| in one loop; across: log|lambda|, the largest of the
    derivative across consensus; power: log|c_T/c_{T/2}| / log 2, 1 where |c_t| grows linearly, 0
    where it is bounded; turning: the angle between c_T and g(c_T), radians.
    """

    loops: int
    along: float
    across: float
    power: float
    turning: float

    @property
    def rate(self) -> float:
        """The slope of log HFC/LFC a loop, at that loop."""
        return self.across - self.along

    @property
    def polynomial(self) -> bool:
        """Whether |c_t| grows like a power of t about 1, so that HFC/LFC moves like a power too;
        not where it shrinks in that very loop."""
        return self.along > 0 and POWER[0] <= self.power <= POWER[1]

    @property
    def exponent(self) -> float:
        """kappa/c - 1 of HFC/LFC ~ t^exponent; NaN where |c| does not grow."""
        return self.across / self.along - 1 if self.along > 0 else math.nan

    @property
    def settled(self) -> bool:
        """Whether the path of equal tokens turns by less in a loop than it grows: needed for a
        direction that it converges to, which the law assumes, and not enough."""
        return self.turning <= max(abs(self.along), 1e-6)

    @property
    def attracts(self) -> bool:
        """Whether small differences between tokens fall behind consensus."""
        return self.rate < 0

    def loops_to(self, now: float, wanted: float) -> float:
        """Loops from HFC/LFC = `now` near consensus down to `wanted`; inf where it does not fall.

        A power law counts from where |c_t| extrapolates to 0: (t + t_0)^exponent, t_0 = 1/along -
        loops. Raises `InputError` unless both are positive.
        """
        if not (now > 0 and wanted > 0):
            raise InputError(f"HFC/LFC from {now} to {wanted}: give positive numbers")
        if wanted >= now:
            return 0.0
        if not self.attracts:
            return math.inf
        if not self.polynomial:
            return math.log(wanted / now) / self.rate
        start = max(1.0, 1 / self.along - self.loops)
        log_factor = math.log(wanted / now) / self.exponent
        return start * math.expm1(log_factor) if log_factor < 700 else math.inf


@dataclass(frozen=True)
class RecallLimit:
    """X' = X + A X W + beta X_0: its fixed point X* [n, d] (T12a).

    attracts: whether every start converges to it, radius = max |1 + h_j a_i| < 1. The fixed point
    is unique, since A and W are invertible; its tokens are all equal iff those of X_0 are.
    """

    state: Array
    radius: float

    @property
    def attracts(self) -> bool:
        return self.radius < 1


def recall_limit(A: ArrayLike, H: ArrayLike, X0: ArrayLike, beta: float) -> RecallLimit:
    """X* = -beta A^-1 X_0 W^-1 with W = H^T, for A [n, n], H [d, d], X0 [n, d] (T12a).

    Raises `InputError` on illegal input, for beta = 0 (no recall) and where A or H is singular.
    """
    attention, value = check_attention(A), check_square(H)
    start = check_states(X0, len(attention), len(value))
    if beta == 0:
        raise InputError("beta = 0 recalls nothing: ask the layer without recall")
    for name, M in (("A", attention), ("H", value)):
        if np.linalg.matrix_rank(M) < len(M):
            raise InputError(
                f"{name} is singular in float64: X + A X W + beta X_0 has no fixed point for most "
                "X_0, and never a unique one"
            )
    state: Array = -beta * np.linalg.solve(attention, np.linalg.solve(value, start.T).T)
    a, h = (np.linalg.eigvals(M).astype(np.complex128) for M in (attention, value))
    return RecallLimit(state, largest_modulus(a, h)[0])
