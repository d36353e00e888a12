"""A layer of many heads, X' = [X +] sum_h A_h X W_h, and its two operators (T7).

On consensus, which is invariant, the operator is [I +] sum_h H_h with H_h = W_h^T, radius rho_C. On
the quotient it is Y -> [Y +] sum_h B_h Y W_h with the B_h = Q^T A_h Q (T1c), radius rho_Q.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.layer.attention import quotient
from oversmoothing.theory.layer.layer import (
    Entries,
    Layer,
    check_attention,
    check_square,
    check_states,
    read_entries,
    real_array,
)
from oversmoothing.theory.numbers import exact
from oversmoothing.theory.numbers.exact import Heads, Matrix, identity
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

# In fractions the operator of several heads is decided up to this n d: seconds, at times minutes.
EXACT_OPERATOR = 128


@dataclass(frozen=True)
class ManyHeads(Layer):
    """A layer of several heads, A [heads, n, n] and H [heads, d, d], or of one without residual.

    singly: each head by itself, all of them exact or none; `rational_A` and `rational_H` are those
    of the first. residual: whether the layer adds X.
    """

    singly: tuple[Layer, ...]
    residual: bool

    @staticmethod
    def of_heads(singly: Sequence[Layer], residual: bool = True) -> Layer:
        """One head with residual as it is."""
        if len(singly) == 1 and residual:
            return singly[0]
        given = {
            name: Entries(np.stack([head.given[name].floats for head in singly]), None)
            for name in singly[0].given
        }
        return ManyHeads(np.stack([head.A for head in singly]), given, tuple(singly), residual)

    @cached_property
    def others(self) -> Heads:
        """With (I, -I) where there is no residual."""
        heads = [(head.rational_A, head.rational_H) for head in self.singly[1:]]
        return heads if self.residual else [*heads, (identity(self.n), identity(self.d, -1))]

    @property
    def numbers(self) -> str:
        return self.singly[0].numbers

    @property
    def decidable(self) -> bool:
        return self.exact and self.n * self.d <= EXACT_OPERATOR

    @cached_property
    def positive(self) -> NDArray[np.bool_]:
        """Where some head attends."""
        every: NDArray[np.bool_] = np.any([head.positive for head in self.singly], axis=0)
        return every

    @cached_property
    def rational_A(self) -> Matrix:
        return self.singly[0].rational_A

    @cached_property
    def rational_H(self) -> Matrix:
        return self.singly[0].rational_H

    def as_fractions(self) -> Layer | None:
        heads = [head.as_fractions() for head in self.singly]
        known = [head for head in heads if head is not None]
        return ManyHeads.of_heads(known, self.residual) if len(known) == len(heads) else None

    def taken_exactly(self) -> Layer:
        """The binary64 numbers as the fractions that they are."""
        heads = [Layer.of(head.rational_A, head.rational_H) for head in self.singly]
        return ManyHeads.of_heads(heads, self.residual)


def consensus_block(W: Any, residual: bool = True) -> Array:
    """[I +] sum_h H_h [d, d], what a layer does to tokens that are all alike.

    W: a layer, or as in `head_weights`.
    """
    weights = head_weights(W)
    if weights.into is None:
        total: Array = weights.Q.sum(axis=0)
    else:
        total = weights.into @ weights.Q.reshape(-1, weights.d)
    return np.eye(weights.d) + total.T if residual else total.T


def quotient_products(
    layer: Layer, residual: bool = True, dtype: Any = np.float64
) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """Y -> [Y +] sum_h B_h Y W_h on [..., n-1, d], and its transpose.

    2 heads n d (n + d) operations a product with W [heads, d, d], 2 heads n r (n + 2 d) with
    factors.
    """
    given, B = head_weights(layer), quotient(stacked(layer.A)).astype(dtype)
    P = None if given.P is None else given.P.astype(dtype)
    weights = HeadWeights(P, given.Q.astype(dtype))

    def product(B: Array, weights: HeadWeights, y: Array) -> Array:
        moved: Array = through_heads(y, B, weights)
        return y + moved if residual else moved

    return partial(product, B, weights), partial(product, _turned(B), weights.transposed)


def read_heads(A: Any, W: Any, X0: Any, residual: bool) -> tuple[Layer, Entries | None]:
    """`layer_of_heads` and X_0 [n, d], in fractions where every entry is given exactly."""
    start = None if X0 is None else read_entries(X0, "X0")
    pair = isinstance(W, tuple) and len(W) == 2
    weights = {"W_V": W[0], "W_O": W[1]} if pair else {"W": W}
    values = [exact.plain(value, name) for name, value in ({"A": A} | weights).items()]
    given = [None if "float" in str(getattr(x, "dtype", "")) else _listed(x) for x in values]
    fractions = all(_depth(x) in (2, 3) and _is_exact(x) for x in given)
    if fractions and (start is None or start.written is not None):
        layer = _heads_in_fractions(*([x] if _depth(x) == 2 else x for x in given))
    else:
        values = [x if y is None else _without_text(y) for x, y in zip(values, given, strict=True)]
        one = W if isinstance(W, tuple) else values[1]
        layer = layer_of_heads(values[0], tuple(values[1:]) if pair else one)
        start = start and Entries(start.floats, None)
    if start is not None:
        check_states(start.floats, layer.n, layer.d)
    if not residual:
        singly = layer.singly if isinstance(layer, ManyHeads) else (layer,)
        layer = ManyHeads.of_heads(singly, residual)
    return layer, start


def _listed(value: Any) -> Any:
    """As nested lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return [_listed(x) for x in value] if isinstance(value, list | tuple) else value


def _depth(value: Any) -> int:
    return 1 + _depth(value[0]) if isinstance(value, list) and value else 0


def _is_exact(value: Any) -> bool:
    return all(map(_is_exact, value)) if isinstance(value, list) else not isinstance(value, float)


def _without_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_text(x) for x in value]
    return exact.to_fraction(value, "an entry") if isinstance(value, str) else value


def _heads_in_fractions(A: Any, *weights: Any) -> Layer:
    if len({len(value) for value in (A, *weights)}) > 1:
        raise InputError(
            f"A has {len(A)} heads but the weights have {len(weights[0])}: one W_h for each A_h"
        )
    parts = []
    for i, (a, *w) in enumerate(zip(A, *weights, strict=True)):
        try:
            H = None if len(w) == 2 else exact.transposed(exact.rows_of(w[0], "W"))
            parts.append(Layer.of(a, H, factors=None if H else tuple(w)))
        except InputError as error:
            raise InputError(f"head {i}: {error}") from error
    shapes = [[M.floats.shape for M in head.given.values()] for head in parts]
    if any(shape != shapes[0] for shape in shapes):
        raise InputError("the heads have matrices of different sizes")
    return ManyHeads.of_heads(parts)


def layer_of_heads(A: Any, W: Any) -> Layer:
    """One layer of all heads in float64, of A [heads, n, n] (or [n, n]) and weights as
    `head_weights` takes them. Raises `InputError` unless they fit."""
    checked, weights = stacked(check_attention(A)), head_weights(W)
    P, Q = weights.P, weights.Q
    if checked.ndim != 3 or len(checked) != weights.heads:
        raise InputError(
            f"A has shape {list(checked.shape)} but the weights have {weights.heads} heads: A must "
            f"be [{weights.heads}, n, n]"
        )
    parts = {"H": _turned(Q)} if P is None else {"W_V": P, "W_proj": Q}
    matrices = {"A": stacked(np.array(real_array(A, "A")))} | parts
    return ManyHeads.of_heads(
        [
            Layer(checked[h], {name: Entries(M[h], None) for name, M in matrices.items()})
            for h in range(weights.heads)
        ]
    )


@dataclass(frozen=True)
class HeadWeights:
    """W_h = P_h Q_h for each head: P [heads, d, r] and Q [heads, r, d]; P None: W_h = Q_h dense."""

    P: Array | None
    Q: Array

    @property
    def heads(self) -> int:
        return len(self.Q)

    @property
    def d(self) -> int:
        return int(self.Q.shape[-1])

    def dense(self) -> Array:
        """W_h [heads, d, d]."""
        return self.Q if self.P is None else self.P @ self.Q

    @cached_property
    def transposed(self) -> "HeadWeights":
        """W_h^T."""
        Q = _turned(self.Q)
        return HeadWeights(None, Q) if self.P is None else HeadWeights(Q, _turned(self.P))

    @cached_property
    def into(self) -> Array | None:
        """[P_1 ... P_H]; None without factors."""
        return None if self.P is None else side_by_side(self.P)


def through_heads(X: Any, A: Array, weights: HeadWeights) -> Any:
    """sum_h A_h X W_h [..., n, d] of states X [..., n, d], A [heads, n, n]."""
    if weights.into is None:
        mixed = A @ X[..., None, :, :]
    else:
        inner = (X @ weights.into).reshape(*X.shape[:-1], weights.heads, weights.Q.shape[1])
        mixed = A @ inner.swapaxes(-3, -2)
    beside = mixed.swapaxes(-3, -2).reshape(*X.shape[:-1], mixed.shape[-3] * mixed.shape[-1])
    return beside @ weights.Q.reshape(-1, weights.d)


def head_weights(value: Any) -> HeadWeights:
    """The weights of a `Layer`, of W [heads, d, d] or [d, d], or of the pair (W_V, W_O).

    W_V [heads, d, r] and W_O [heads, r, d] (W_proj cut into heads), or [d, r] and [r, d].
    Raises `InputError` on other shapes, NaN or infinite entries.
    """
    if isinstance(value, HeadWeights):
        return value
    if isinstance(value, Layer):
        if value.factors is None:
            return HeadWeights(None, np.swapaxes(stacked(value.H), -1, -2))
        return HeadWeights(*map(stacked, value.factors))
    if isinstance(value, tuple):
        if len(value) != 2:
            raise InputError(f"weights as factors are a pair (W_V, W_O), not {len(value)} arrays")
        P, Q = (stacked(real_array(x, f"W_{s}")) for x, s in zip(value, "VO", strict=True))
        if P.ndim != 3 or Q.shape != (P.shape[0], P.shape[2], P.shape[1]) or 0 in P.shape:
            raise InputError(
                f"W_V {list(P.shape)} and W_O {list(Q.shape)} do not belong together: they must "
                "be [heads, d, r] and [heads, r, d]"
            )
        return HeadWeights(P, Q)
    W = stacked(check_square(value, name="W"))
    if W.ndim != 3 or W.shape[0] == 0:
        raise InputError(f"W has shape {list(W.shape)}; it must be [d, d] or [heads, d, d]")
    return HeadWeights(None, W)


def _turned(M: Array) -> Array:
    """Each of a stack transposed."""
    return np.ascontiguousarray(M.swapaxes(1, 2))


def stacked(x: Array) -> Array:
    """A single head as a stack of one."""
    return x[None] if x.ndim == 2 else x


def side_by_side(P: Array) -> Array:
    """[P_1 ... P_H] [d, heads r] for P [heads, d, r]."""
    return P.swapaxes(0, 1).reshape(P.shape[1], -1)
