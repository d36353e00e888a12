"""One object for a layer, and its operator: what the functions take as loose arguments it carries.

`Layer` is a thin front of the core's layer (`theory.layer`): numbers are read there, symbols by
`theory.verdict.symbolic.symbolic_layer`, and each question goes to the function of its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from oversmoothing.theory.layer.layer import Layer as Core, one_of, read_entries
from oversmoothing.theory.numbers.exact import has_symbols, to_fraction
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import MatrixLike, WeightLike
from oversmoothing.theory.verdict.verdict import (
    BY_NAME,
    NO_DEPTH,
    check_depths,
    given_layer,
    heads_verdict,
    rounded_layer,
    verdict,
)

if TYPE_CHECKING:
    from fractions import Fraction

    from torch import Tensor

    from oversmoothing.simulations.engine.trajectory import Trajectory
    from oversmoothing.simulations.operator import Operator
    from oversmoothing.theory.certificate import Certificate
    from oversmoothing.theory.operator import Eigenpairs
    from oversmoothing.theory.verdict.symbolic.region import Region
    from oversmoothing.theory.verdict.symbolic.symbols import SymbolicOperator
else:
    Tensor = Any  # torch is not loaded here, and `typing.get_type_hints` asks for the name

_ONE_BY_ONE = "of a batch each layer is asked by itself: layer[i]"
_NUMBERS = "it needs numbers, and the layer holds parameters: layer.subs(name=value) sets them"
_PARAMETERS = 'the layer has no parameters: give A or H with sympy symbols, or text such as "h"'


class Layer:
    """The layer X' = X + A X W, or X + sum_h A_h X W_h of several heads.

    Exactly one of A [n, n] (row-stochastic) and logits [n, n] (A is the softmax of their rows), and
    one of H [d, d] and W = H^T (or the factors W = (W_V [d, r], W_proj [r, d])); or heads, a list
    of pairs (A, W). Entries that are all strings, integers or Fractions are exact, floats and torch
    tensors are numbers in floating point, and with sympy symbols, or names in text ("(1 + a)/2"),
    the layer has parameters. batch: A [*batch, n, n] and W or H [*batch, d, d] are a stack of
    layers, `layer[i]` each of them. Raises `InputError` on illegal input and `TypeError` for
    matrices by position (T1a).

    >>> import oversmoothing
    >>> layer = oversmoothing.Layer(A=[["3/4", "1/4"], ["1/4", "3/4"]], H=[["-3/2"]])
    >>> layer
    Layer(2 tokens, 1 feature, fractions)
    >>> str(layer.verdict().verdict), layer.eigenpairs().dominant
    ('SMOOTHING', (<h = -1.5, a = 1: 1 + h a = -0.5, 1 times, consensus>,))
    """

    def __init__(
        self,
        *by_position: Never,
        A: MatrixLike | Tensor | None = None,
        H: MatrixLike | Tensor | None = None,
        W: WeightLike | Tensor | None = None,
        heads: Sequence[tuple[MatrixLike | Tensor, WeightLike | Tensor]] | None = None,
        logits: MatrixLike | Tensor | None = None,
        batch: bool = False,
    ) -> None:
        if by_position:
            raise TypeError(BY_NAME)
        self._given: dict[str, Any] = {"H": H, "W": W, "A": A, "logits": logits}
        self._heads: Sequence[tuple[Any, Any]] | None = heads
        self._batch: tuple[int, ...] | None = None
        if self._heads is not None:
            if any(M is not None for M in self._given.values()) or batch:
                raise InputError("heads are pairs (A, W): leave A, logits, H, W and batch out")
            pairs = heads if isinstance(heads, tuple | list) else ()
            if not pairs or not all(isinstance(x, tuple | list) and len(x) == 2 for x in pairs):
                raise InputError("heads must be a list of pairs (A, W), one for each head")
        elif batch:
            self._read_batch()
        elif not self.has_parameters:
            _ = self.core  # refused at once, not when it is asked

    def _read_batch(self) -> None:
        _ = one_of(self._given["H"], self._given["W"])
        arrays = {name: M for name, M in self._given.items() if M is not None}
        if any(isinstance(M, tuple) for M in arrays.values()):
            raise InputError("a batch takes W [*batch, d, d], not its factors")
        try:
            shapes = {name: tuple(np.shape(M)) for name, M in arrays.items()}
            self._batch = np.broadcast_shapes(*(shape[:-2] for shape in shapes.values()))
        except ValueError as error:
            names = ", ".join(arrays)
            raise InputError(f"{names} are no stacks [*batch, rows, columns] that fit") from error
        if not self._batch:
            raise InputError("batch is set, and no matrix has more than two dimensions")

    # ---------------------------------------------------------------------------- what it is

    @cached_property
    def has_parameters(self) -> bool:
        """Whether A or H holds symbols, or text with names."""
        return self._batch is None and any(map(_has_parameters, self._given.values()))

    @property
    def batch(self) -> tuple[int, ...]:
        """The shape of the stack of layers, () of one layer."""
        return self._batch or ()

    @cached_property
    def core(self) -> Core:
        """The layer of the theory: checked numbers. Raises `InputError` for others."""
        if self._batch is not None:
            raise InputError(_ONE_BY_ONE)
        if self.has_parameters:
            raise InputError(_NUMBERS)
        if self._heads is not None:
            from oversmoothing.theory.spectra.heads import layer_of_heads

            return layer_of_heads(*self._stacked_heads())
        return rounded_layer(**self._given, X0=None, exact=False)[0][0]

    def _stacked_heads(self) -> tuple[Any, Any]:
        assert self._heads is not None
        A, weights = (list(each) for each in zip(*self._heads, strict=True))
        factors = {len(W) if isinstance(W, tuple) else 0 for W in weights}
        if factors not in ({0}, {2}):
            raise InputError("give W of all heads as matrices, or of all as factors (W_V, W_O)")
        if factors == {2}:
            W_V, W_O = (_stacked(each, "W") for each in zip(*weights, strict=True))
            return _stacked(A, "A"), (W_V, W_O)
        return _stacked(A, "A"), _stacked(weights, "W")

    @cached_property
    def _symbols(self) -> SymbolicOperator:
        from oversmoothing.theory.verdict.symbolic.symbols import symbolic

        if not self.has_parameters:
            raise InputError(_PARAMETERS)
        g = self._given
        if g["logits"] is not None:
            raise InputError("logits with parameters have no rational softmax: give A")
        if isinstance(g["W"], tuple):
            raise InputError("with parameters give H or W as one matrix, not its factors")
        return symbolic(g["A"], g["H"], W=g["W"])

    @property
    def n(self) -> int:
        """Tokens."""
        return self._size("n", "A", "logits")

    @property
    def d(self) -> int:
        """Features."""
        return self._size("d", "H", "W")

    def _size(self, name: str, *given: str) -> int:
        if self._batch is None:
            return int(getattr(self._symbols.layer if self.has_parameters else self.core, name))
        return next(int(np.shape(M)[-1]) for M in map(self._given.get, given) if M is not None)

    @property
    def numbers(self) -> str:
        """What its entries are: "fractions", "binary64" or "symbols"."""
        if self._batch is not None:
            return "binary64"
        return "symbols" if self.has_parameters else self.core.numbers

    def __getitem__(self, place: Any) -> Layer:
        """The layer at a place of a batch."""
        if self._batch is None:
            raise TypeError("the layer is no batch")
        layers = {}
        for name, M in self._given.items():
            if M is not None:
                M = _floats(M, name, many=True)
                layers[name] = np.broadcast_to(M, (*self._batch, *M.shape[-2:]))[place]
        return Layer(**layers)

    def __len__(self) -> int:
        if self._batch is None:
            raise TypeError("the layer is no batch")
        return self._batch[0]

    def __repr__(self) -> str:
        parts = [f"{list(self._batch)} of them"] if self._batch is not None else []
        parts += [_counted(self.n, "token"), _counted(self.d, "feature")]
        if self._heads is not None:
            parts.append(_counted(len(self._heads), "head"))
        if self.has_parameters:
            return f"Layer({', '.join(parts)}, in {', '.join(map(str, self._symbols.parameters))})"
        return f"Layer({', '.join(parts)}, {self.numbers})"

    # ---------------------------------------------------------------------- what it is asked

    def verdict(
        self,
        X0: MatrixLike | Tensor | None = None,
        *,
        depth: int | Iterable[int] = (),
        exact_binary: bool = False,
        thorough: bool = False,
    ) -> Any:
        """Does it oversmooth? A `Verdict`; of parameters a `SymbolicVerdict`, of a batch a list.

        X0 [n, d] and the options as in `oversmoothing.verdict` (of several heads `heads_verdict`),
        which says what is raised.
        """
        options: Any = {"depth": depth, "exact_binary": exact_binary, "thorough": thorough}
        if self._batch is not None:
            return [self[i].verdict(X0, **options) for i in np.ndindex(self._batch)]
        if self.has_parameters or (self._heads is None and _has_parameters(X0)):
            if check_depths(depth):
                raise InputError(NO_DEPTH)
            return self.symbolic().verdict(X0, thorough)
        if self._heads is None:
            return verdict(**self._given, X0=X0, **options)
        A, W = self._stacked_heads()
        return heads_verdict(A=A, W=W, X0=X0, **options)

    def evolve(
        self, X0: MatrixLike | Tensor, depth: int | Sequence[int], **options: Any
    ) -> Trajectory:
        """Run it from X0 [*batch, n, d] and keep the asked depths.

        Options as in `evolve`, and of several heads as in `evolve_heads`.
        """
        from oversmoothing.simulations.engine.evolve import evolve
        from oversmoothing.simulations.engine.evolve_heads import evolve_heads

        if self.has_parameters:
            raise InputError(_NUMBERS)
        if self._heads is not None:
            A, W = self._stacked_heads()
            return evolve_heads(X0=X0, attention=A, weights=W, depth=depth, **options)
        g = self._given
        plain = g["logits"] is None and (self._batch is not None or self.core.numbers == "binary64")
        if plain:
            return evolve(X0=X0, A=g["A"], H=g["H"], W=g["W"], depth=depth, **options)
        if not hasattr(X0, "dtype"):
            X0 = read_entries(X0, "X0").floats
        return evolve(X0=X0, A=self.core.A, H=self.core.H, depth=depth, **options)

    def certify(
        self, X0: MatrixLike | Tensor | None = None, *, eps: Fraction | float | str = "1/1000"
    ) -> Certificate:
        """A certificate of the verdict, accepted by the independent checker.

        With X0 [n, d] also a depth from which HFC/LFC stays below eps. Raises `InputError` for
        several heads.
        """
        from oversmoothing.theory.certificate import make_certificate

        if self._heads is not None:
            raise InputError("a certificate is of one head")
        core, start = self.core, None
        if X0 is not None:
            core, start = given_layer(**self._given, X0=X0)
        return make_certificate(core, start, to_fraction(eps, "eps"))

    @cached_property
    def operator(self) -> Operator:
        """I + H (x) A, or I + sum_h H_h (x) A_h, a scipy `LinearOperator` that is never built."""
        from oversmoothing.simulations.operator import Operator

        return Operator(self.core)

    def eigenpairs(self) -> Eigenpairs:
        """All (h, a) with 1 + h a and vectors, of one head; exact where the layer is."""
        return self.operator.eigenpairs()

    def symbolic(self) -> SymbolicOperator:
        """The operator with its parameters: polynomial, determinant, inverse, eigenpairs.

        A layer in fractions has it too, without parameters. Raises `InputError` for floats.
        """
        if self.has_parameters:
            return self._symbols
        from oversmoothing.theory.verdict.symbolic.symbols import symbolic

        if not self.core.exact:
            raise InputError('it needs exact entries: write them as fractions ("3/4")')
        return symbolic(*([[str(x) for x in row] for row in M]
                          for M in (self.core.rational_A, self.core.rational_H)))  # fmt: skip

    def subs(self, **values: Any) -> Layer:
        """The layer with some parameters set: fractions or numbers by name."""
        A, H = self._symbols.at(values)
        return Layer(A=A, H=H)

    def region(self, X0: MatrixLike | None = None, **ranges: tuple[Any, Any]) -> Region:
        """Where it smooths, over a range of each parameter, as h=(-3, 1), a=(-1, 1).

        From generic X_0, or this one [n, d], which may hold parameters.
        Two are drawn, one as a line, of a third slices. Raises `InputError` for other names.
        """
        from oversmoothing.theory.verdict.symbolic.region import Region

        symbols = self.symbolic() if _has_parameters(X0) else self._symbols
        return Region(symbols.verdict(X0), ranges)


def _floats(M: Any, name: str, many: bool = False) -> Any:
    """A matrix in floats from arrays, tensors, lists or text."""
    if hasattr(M, "detach"):
        M = M.detach().cpu().double().numpy()
    if many or (isinstance(M, np.ndarray) and M.dtype.kind == "f"):
        return np.asarray(M, dtype=np.float64)
    return read_entries(M, name).floats


def _stacked(matrices: Sequence[Any], name: str) -> Any:
    arrays = [_floats(M, name) for M in matrices]
    if len(shapes := {M.shape for M in arrays}) > 1:
        raise InputError(f"{name} of the heads has the shapes {sorted(shapes)}: one is needed")
    return np.stack(arrays)


# Text of a matrix that is a number: "3/4", "1e-3", "-inf"; any other holds names.
_NUMBER = re.compile(r"\s*[+-]?([\d._]*(e[+-]?\d+)?(/\d+)?|inf|infinity|nan)\s*", re.IGNORECASE)


def _has_parameters(M: Any) -> bool:
    """Whether a matrix holds symbols, or text that is no number, as "(1 + a)/2" is none."""
    if has_symbols(M):
        return True
    rows = M if isinstance(M, list | tuple) else ()
    entries = (x for row in rows if isinstance(row, list | tuple) for x in row)
    return any(isinstance(x, str) and not _NUMBER.fullmatch(x) for x in entries)


def operator(
    *by_position: Never,
    A: MatrixLike | Tensor | None = None,
    H: MatrixLike | Tensor | None = None,
    W: WeightLike | Tensor | None = None,
    heads: Sequence[tuple[MatrixLike | Tensor, WeightLike | Tensor]] | None = None,
    logits: MatrixLike | Tensor | None = None,
) -> Operator:
    """I + H (x) A, or I + sum_h H_h (x) A_h of several heads, as a scipy `LinearOperator`.

    The matrices as in `Layer`. op @ x is the layer on x = vec(X), columns stacked; the matrix
    [n d, n d] is never built unless `op.matrix()` asks for it. `op.eigenpairs()` has all
    multipliers 1 + h a with their vectors, `op.torch()` is the operator on a device. Raises
    `InputError` on illegal input and `TypeError` for matrices by position (T1a).

    >>> import numpy as np, oversmoothing
    >>> op = oversmoothing.operator(A=np.full((3, 3), 1 / 3), W=-0.5 * np.eye(2))
    >>> op.shape, op.eigenpairs().dominant[0].multiplier
    ((6, 6), (1+0j))
    """
    return Layer(*by_position, A=A, H=H, W=W, heads=heads, logits=logits).operator


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
