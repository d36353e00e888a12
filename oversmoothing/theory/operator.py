"""The operator of a layer, I + sum_h H_h (x) A_h, never built, and its eigenpairs (T1a).

On x = vec(X), the columns of X [n, d] one under the other, op @ vec(X) is vec(X + sum_h A_h X W_h)
with W_h = H_h^T. Of one head the eigenvectors are v u^T with A v = a v and H u = h u, kept as pairs
(u, v); Jordan chains are sums of such pairs (`spectra.chains`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
from scipy.linalg import eig
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator

from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers.exact import transposed
from oversmoothing.theory.spectra.algebraic import Eigenvalue, eigenvalues, factors
from oversmoothing.theory.spectra.blocks import ordered_schur
from oversmoothing.theory.spectra.chains import Chain, jordan_chains, product_chains
from oversmoothing.theory.spectra.heads import HeadWeights, head_weights, stacked, through_heads
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array, Complex
from oversmoothing.theory.verdict.by_fractions import Mode, exact_dominance, jordan_size

# Rows of a matrix that is written out: half a gigabyte.
DENSE = 8192
_EPS = float(np.finfo(np.float64).eps)
_MANY = (
    "I + sum_h H_h (x) A_h of several heads is no Kronecker product, and its eigenvectors are no "
    "pairs: scipy.sparse.linalg.eigs(operator) finds the largest"
)


class KroneckerOperator(LinearOperator):
    """I + sum_h H_h (x) A_h as a `scipy.sparse.linalg.LinearOperator`, [n d, n d] in float64.

    op @ x with x = vec(X), columns stacked, costs 2 n d (n + d) operations a head (with factors
    2 n r (n + 2 d)) and never builds the matrix; `op.T`, `op.H`, matmat and complex x work too,
    and so do `scipy.sparse.linalg.eigs(op)` and `expm_multiply(op, x, traceA=op.trace())`.

    >>> import numpy as np, oversmoothing
    >>> op = oversmoothing.operator(A=[[0.75, 0.25], [0.25, 0.75]], W=[[-0.5, 0.0], [1.0, 0.5]])
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> (op @ X.ravel(order="F")).reshape(2, 2, order="F")
    array([[2.75, 3.25],
           [5.25, 5.75]])
    """

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.n, self.d = layer.n, layer.d
        self._attention, self._weights = stacked(layer.A), head_weights(layer)
        super().__init__(np.dtype(np.float64), (self.n * self.d, self.n * self.d))

    @property
    def heads(self) -> int:
        """How many heads it adds up."""
        return len(self._attention)

    def _matmat(self, x: Any) -> Any:
        """[n d, k]: each column is the vec of a state."""
        return self._applied(np.asarray(x), self._attention, self._weights)

    def _rmatmat(self, x: Any) -> Any:
        """The transpose: X + sum_h A_h^T X W_h^T."""
        turned = self._attention.swapaxes(1, 2)
        return self._applied(np.asarray(x), turned, self._weights.transposed)

    def _rmatvec(self, x: Any) -> Any:
        return self._rmatmat(np.reshape(x, (-1, 1))).reshape(np.shape(x))

    def _applied(self, x: Any, A: Array, weights: HeadWeights) -> Any:
        # Columns of x are stacked columns of X: as an array [k, d, n] it holds each X transposed.
        k, n, d = x.shape[1], self.n, self.d
        states = x.T.reshape(k, d, n).swapaxes(1, 2)  # [k, n, d]
        return (states + through_heads(states, A, weights)).swapaxes(1, 2).reshape(k, n * d).T

    def trace(self) -> float:
        """n d + sum_h tr(H_h) tr(A_h), for methods that ask for the trace."""
        A = np.trace(self._attention, axis1=1, axis2=2)
        P, Q = self._weights.P, self._weights.Q
        H = np.einsum("hii->h", Q) if P is None else np.einsum("hij,hji->h", P, Q)
        return float(self.n * self.d + A @ H)

    def matrix(self) -> Array:
        """The matrix itself, [n d, n d] in float64.

        Raises `InputError` for more than 8192 rows.
        """
        if self.n * self.d > DENSE:
            raise InputError(
                f"the matrix has {self.n * self.d:,} rows, more than the {DENSE:,} that are "
                "written out: use the operator itself, op @ x"
            )
        dense: Array = self.matmat(np.eye(self.n * self.d))
        return dense

    def eigenpairs(self) -> Eigenpairs:
        """All pairs (h, a) with their vectors; see `Eigenpairs`. Raises `InputError` for heads."""
        return Eigenpairs(self.layer)

    def __repr__(self) -> str:
        heads = "" if self.heads == 1 else f", {self.heads} heads"
        return f"<I + H (x) A: {self.n} tokens, {self.d} features{heads}, float64>"


@dataclass(frozen=True, eq=False)
class Eigenpair:
    """The multiplier 1 + h a of one eigenvalue h of H and one a of A, with vectors.

    h, a, multiplier: to the nearest complex128. consensus: a = 1, so that 1 u^T is among the
    vectors. multiplicity: how often the pair occurs in I + H (x) A (other pairs may have the same
    multiplier). index: the size of its largest Jordan block, None where floats do not tell.
    residual: at most so large is ||op x - multiplier x|| / ||x|| for every vector x, 0 where exact.

    right, left: tuples of chains, a chain a tuple of vectors x_1, x_2 ... with op x_1 =
    multiplier x_1 and op x_(t+1) = multiplier x_(t+1) + x_t (op^T for the left ones), and a vector
    a tuple of pairs (u, v), meaning the matrix sum of the v u^T [n, d]. Exact u and v are
    `ExactVector`s, others complex arrays in chains of length 1.
    """

    h: complex
    a: complex
    multiplier: complex
    consensus: bool
    multiplicity: int
    index: int | None
    residual: float
    # What tells its pair of eigenvalues, and its chains: those of the transpose for True.
    _key: tuple[Any, Any]
    _chains: Callable[[bool], tuple[tuple[Any, ...], ...]]

    @cached_property
    def right(self) -> tuple[tuple[Any, ...], ...]:
        """Chains of vectors of the operator."""
        return self._chains(False)

    @cached_property
    def left(self) -> tuple[tuple[Any, ...], ...]:
        """Chains of vectors of its transpose."""
        return self._chains(True)

    def state(self, chain: int = 0, place: int = 0) -> Complex:
        """A right vector as a state X [n, d], complex128: op @ vec(X) = multiplier vec(X)."""
        pairs = self.right[chain][place]
        return sum(np.outer(_numpy(v), _numpy(u)) for u, v in pairs)  # type: ignore[return-value]

    def __repr__(self) -> str:
        block = "" if self.index in (None, 1) else f", Jordan block of {self.index}"
        return (
            f"<h = {_short(self.h)}, a = {_short(self.a)}: 1 + h a = {_short(self.multiplier)}, "
            f"{self.multiplicity} times{block}{', consensus' if self.consensus else ''}>"
        )


def _numpy(vector: Any) -> Complex:
    array: Complex = vector.numpy() if hasattr(vector, "numpy") else vector
    return array


def _short(z: complex) -> str:
    return f"{z.real:.6g}" if abs(z.imag) <= 1e-15 * max(1.0, abs(z)) else f"{z:.6g}"


@dataclass(frozen=True, eq=False)
class InvariantSubspace:
    """What floats know of eigenvalues too close to part.

    op maps the v u^T with v in the span of V [n, k] and u in that of U [d, l] (orthonormal columns)
    into one another, by I + T_h (x) T_a.

    a, h: the eigenvalues in question, [k] and [l]. residual: max of ||A V - V T_a|| / ||A|| and the
    same of H.
    """

    a: Complex
    h: Complex
    V: Complex
    U: Complex
    T_a: Complex
    T_h: Complex
    residual: float


class Eigenpairs(Sequence[Eigenpair]):
    """The pairs (h, a) of a layer of one head, each with its vectors, computed when asked.

    Exact where the layer is exact and n, d <= 48: one `Eigenpair` for each pair of distinct
    eigenvalues, with full Jordan chains. In floats one for each of the n d products, with
    residuals, and `subspaces` for eigenvalues too close to part. dominant: the pairs of largest
    modulus, consensus first; several in a tie, conjugates, and where rounding does not part them.

    >>> import oversmoothing
    >>> op = oversmoothing.operator(A=[["3/4", "1/4"], ["1/4", "3/4"]], H=[["-3/2"]])
    >>> op.eigenpairs().dominant
    (<h = -1.5, a = 1: 1 + h a = -0.5, 1 times, consensus>,)
    >>> op.eigenpairs().dominant[0].right
    (((((1), (1, 1)),),),)
    """

    def __init__(self, layer: Layer) -> None:
        """Raises `InputError` for several heads."""
        if layer.heads > 1:
            raise InputError(_MANY)
        self._source = _Exact(layer) if layer.decidable else _Floats(layer)
        self._pairs = list(self._source.pairs())

    @property
    def exact(self) -> bool:
        """Whether vectors are fractions."""
        return isinstance(self._source, _Exact)

    @property
    def dominant(self) -> tuple[Eigenpair, ...]:
        """The pairs of largest modulus."""
        return tuple(pair for pair in self._pairs if pair._key in self._source.dominant)

    @property
    def subspaces(self) -> tuple[InvariantSubspace, ...]:
        """In floats, where eigenvalues of A or of H are too close to part; none where exact."""
        return () if isinstance(self._source, _Exact) else tuple(self._source.subspaces())

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, place: Any) -> Any:
        return self._pairs[place]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self._pairs[:6]))
        return f"[{shown}, ... {len(self)} in all]" if len(self) > 6 else f"[{shown}]"


class _Exact:
    """Fractions: eigenvalues by Galois classes, vectors by Jordan chains."""

    def __init__(self, layer: Layer) -> None:
        self.matrices = layer.rational_H, layer.rational_A
        self._known: dict[bool, tuple[list[Chain], ...]] = {}

    def pairs(self) -> Iterator[Eigenpair]:
        h_values, a_values = (eigenvalues(factors(M)) for M in self.matrices)
        for h, a in product(h_values, sorted(a_values, key=lambda a: not a.is_one)):
            mode = Mode(a, h)
            value, attention, multiplier = (complex(x.ball(128).mid()) for x in (h, a, mode))
            yield Eigenpair(
                value, attention, multiplier, a.is_one,
                h.factor.multiplicity * a.factor.multiplicity, jordan_size(mode), 0.0,
                (h.key, a.key), partial(self._chains, h, a),
            )  # fmt: skip

    @cached_property
    def dominant(self) -> set[tuple[Any, Any]]:
        """The modes of the verdict."""
        H, A = self.matrices
        one = next(a.key for a in eigenvalues(factors(A)) if a.is_one)
        return {
            (mode.value.key, one if mode.attention is None else mode.attention.key)
            for mode in exact_dominance(A, H).dominant()
        }

    def _chains(self, h: Eigenvalue, a: Eigenvalue, left: bool) -> tuple[tuple[Any, ...], ...]:
        if left not in self._known:
            turned = map(transposed, self.matrices) if left else self.matrices
            self._known[left] = tuple(map(jordan_chains, turned))
        of_h, of_a = (
            [c for c in chains if c.factor.polynomial == value.factor.polynomial]
            for value, chains in zip((h, a), self._known[left], strict=True)
        )
        return tuple(product_chains(h, of_h, a, of_a))


class _Side:
    """The eigenvalues of one float matrix with vectors, conditions and clusters."""

    def __init__(self, M: Array, one: bool) -> None:
        self.M = M
        values, left, right = eig(M, left=True, right=True)
        self.values: Complex = values.astype(np.complex128)
        self.right, self.left = right / np.linalg.norm(right, axis=0), left.conj()
        self.left = self.left / np.linalg.norm(self.left, axis=0)
        self.size = float(np.linalg.norm(M))
        cosines = np.abs(np.sum(self.left * self.right, axis=0))
        # By so much a backward stable method may have moved each eigenvalue, to first order.
        with np.errstate(divide="ignore"):
            self.moved = len(M) * _EPS * self.size / cosines
        self.consensus = -1
        if one:
            # Rows sum to 1: the eigenvalue 1 with the vector 1, first.
            self.consensus = int(np.argmin(np.abs(self.values - 1)))
            self.values[self.consensus] = 1.0
            self.right[:, self.consensus] = len(M) ** -0.5
        sides = (M, self.right), (M.T, self.left)
        residuals = [np.linalg.norm(N @ x - x * self.values, axis=0) for N, x in sides]
        # The second term is what rounding may hide in the first.
        self.errors = np.maximum(*residuals) + (len(M) + 4) * _EPS * self.size

    def clusters(self) -> list[list[int]]:
        """Places of eigenvalues that rounding may have mixed up, those of one alone at the end."""
        reach = self.moved[:, None] + self.moved
        near = np.abs(self.values[:, None] - self.values) <= np.minimum(reach, self.size)
        count, label = connected_components(near, directed=False)
        groups = [np.flatnonzero(label == k).tolist() for k in range(count)]
        return sorted(groups, key=lambda members: len(members) == 1)

    def subspace(self, members: list[int]) -> tuple[Complex, Complex, Complex, float]:
        """(eigenvalues, V, T, residual) of an invariant subspace with orthonormal columns."""
        V, T = ordered_schur(self.M, self.values, members)
        residual = float(np.linalg.norm(self.M @ V - V @ T)) / max(self.size, 1e-300)
        return self.values[members], V, T, residual


class _Floats:
    """Floats: LAPACK's vectors with residuals."""

    def __init__(self, layer: Layer) -> None:
        # Near 1 no square overflows or is lost: H is 2^power times what `of_h` is of.
        self.power = int(np.frexp(np.abs(layer.H).max())[1])
        self.of_h = _Side(np.ldexp(layer.H, -self.power), one=False)
        self.of_a, self.h = _Side(layer.A, one=True), self.sized(self.of_h.values)
        if not np.isfinite(self.h).all():
            raise InputError("H has an eigenvalue beyond the range of binary64 (1.8e308): scale it")
        self.multipliers: Complex = 1 + np.outer(self.h, self.of_a.values)

    def sized(self, x: Any) -> Any:
        """2^power x, where 2^power alone may be no float."""
        half = self.power // 2
        with np.errstate(over="ignore"):
            return x * 2.0**half * 2.0 ** (self.power - half)

    def pairs(self) -> Iterator[Eigenpair]:
        h_values, a_values, one = self.h, self.of_a.values, self.of_a.consensus
        h_errors, a_errors = self.sized(self.of_h.errors), self.of_a.errors
        # ||(A v)(H u)^T - h a v u^T|| <= ||r_v|| ||H u|| + |a| ||r_u||, and as much for rounding.
        sizes = np.abs(h_values) + h_errors
        bound = np.outer(sizes, a_errors) + np.outer(h_errors, np.abs(a_values))
        bound = bound + 4 * _EPS * (1 + np.abs(self.multipliers))
        order = sorted(range(len(a_values)), key=lambda i: i != one)
        for j, i in product(range(len(h_values)), order):
            yield Eigenpair(
                complex(h_values[j]), complex(a_values[i]), complex(self.multipliers[j, i]),
                i == one, 1, None, float(bound[j, i]), (j, i), partial(self._vectors, j, i),
            )  # fmt: skip

    @cached_property
    def dominant(self) -> set[tuple[Any, Any]]:
        moduli = np.abs(self.multipliers)
        with np.errstate(over="ignore", invalid="ignore"):
            moved = np.abs(self.h)[:, None] * self.of_a.moved + 4 * _EPS * moduli
            moved = moved + self.sized(self.of_h.moved)[:, None] * np.abs(self.of_a.values)
        # Where nothing is known of a defective eigenvalue, its modulus still counts.
        moved = np.where(np.isfinite(moved), moved, 0.0)
        return {(int(j), int(i)) for j, i in np.argwhere(moduli + moved >= np.max(moduli - moved))}

    def _vectors(self, j: int, i: int, left: bool) -> tuple[tuple[Any, ...], ...]:
        u, v = (side.left if left else side.right for side in (self.of_h, self.of_a))
        return ((((u[:, j], v[:, i]),),),)

    def subspaces(self) -> Iterator[InvariantSubspace]:
        sides = self.of_h, self.of_a
        if all(len(c) == 1 for side in sides for c in side.clusters()):
            return
        of_h, of_a = ([(len(c), *side.subspace(c)) for c in side.clusters()] for side in sides)
        for (d, h, U, T_h, error_h), (n, a, V, T_a, error_a) in product(of_h, of_a):
            if max(d, n) > 1:
                yield InvariantSubspace(
                    a, self.sized(h), V, U, T_a, self.sized(T_h), max(error_a, error_h)
                )
