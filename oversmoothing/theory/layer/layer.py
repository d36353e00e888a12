"""A layer X' = X + A X H^T and a start X_0 beside it, as read from JSON or passed by a user.

Attention is given as A or as the "logits" whose softmax over each row it is ("-inf" masks); the
value projection as H or as the factors "W_V" and "W_proj" of a head, H = (W_V W_proj)^T. Numbers
are binary64 (A then means A_ij / sum_k A_ik); strings ("3/4"), integers and Fractions are exact,
and then the rows of A must sum to 1 exactly. One float anywhere, in X_0 too, makes all of it
numerical. Every entry is read once, here.

A declared property is verified here, never believed. Every refusal names the place and the remedy.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oversmoothing.theory.layer.attention import closed_classes
from oversmoothing.theory.numbers.exact import (
    Heads,
    Matrix,
    exact_stationary,
    from_flint,
    normalised_rows,
    plain,
    rows_of,
    to_flint,
    to_fraction,
    to_fractions,
)
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import read_json
from oversmoothing.theory.support.sizes import Array

_KEYS = {"A", "logits", "H", "W_V", "W_proj", "X0", "schema_version", "comment"}
# Fractions are decided exactly up to this n and d; larger ones are rounded to binary64.
EXACT_SIZE = 48
# Weights that exist and underflow stay the smallest number, so that only masks are zeros.
_TINY = 5e-324
# Binary64 numbers of at most so many significant bits, in matrices up to this size, are taken at
# their word where rounding would decide: nobody gets -2 or 0.75 by rounding.
_SHORT_BITS, _SHORT_SIZE = 26, 8
_BEYOND = "has an entry beyond the range of binary64 (1.8e308): scale the matrix"


@dataclass(frozen=True)
class Entries:
    """The entries of one matrix, read once.

    floats: in binary64, -inf where a logit is masked. written: in fractions, None where masked, if
    all that it was read with was given so.
    """

    floats: Array
    written: list[list[Fraction | None]] | None

    @cached_property
    def masked(self) -> list[list[Fraction | None]]:
        """The entries exactly, those of binary64 by their binary values; None where masked."""
        if self.written is not None:
            return self.written
        rows: list[list[float]] = self.floats.tolist()
        return [[None if x == -np.inf else Fraction(x) for x in row] for row in rows]

    @property
    def fractions(self) -> Matrix:
        """The entries exactly, of a matrix without masks."""
        return [[x for x in row if x is not None] for row in self.masked]

    @property
    def is_zero(self) -> bool:
        return not (self.floats.any() if self.written is None else any(map(any, self.fractions)))

    @property
    def means_itself(self) -> bool:
        """Whether nobody gets these entries by rounding: they are fractions, or short."""
        return self.written is not None or all(_is_short(x) for row in self.fractions for x in row)


def read_entries(value: Any, name: str, *, masks: bool = False) -> Entries:
    """The entries of a matrix-like value; -inf and "-inf" are masks where `masks` is set.

    Raises `InputError` where an entry is no number; NaN and infinite floats are left to the checks.
    """
    value = plain(value, name)
    ready = isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim == 2
    if ready and value.size:
        return Entries(np.array(value, order="C"), None)

    def entry(x: Any, where: str) -> Any:
        if masks and _is_mask(x):
            return None
        return float(x) if isinstance(x, float | np.floating) else to_fraction(x, where)

    rows = [
        [entry(x, f"{name}[{i}, {j}]") for j, x in enumerate(row)]
        for i, row in enumerate(rows_of(value, name))
    ]
    try:
        floats = np.array([[-np.inf if x is None else float(x) for x in row] for row in rows])
    except OverflowError as error:
        raise InputError(f"{name} {_BEYOND}") from error
    some = any(isinstance(x, float) for row in rows for x in row)
    return Entries(floats, None if some else rows)


def _is_mask(entry: Any) -> bool:
    return entry == "-inf" or (isinstance(entry, float | np.floating) and entry == -np.inf)


@dataclass(frozen=True)
class Layer:
    """A [n, n] in binary64, each row divided by its sum, and H [d, d]; of several heads
    (`spectra.heads.layer_of_heads`) A [heads, n, n] and H [heads, d, d].

    given: the matrices as they were given, by name: "A" or "logits", "H" or "W_V" and "W_proj".
    numbers: "fractions" where every entry was given exactly (logits too), else "binary64". The
    fractions (`rational_*`) of binary64 input are its binary values, with the rows of A divided by
    their sums; for logits `rational_A` is a matrix near A.
    """

    A: Array
    given: dict[str, Entries]

    @cached_property
    def H(self) -> Array:
        if self.factors is None:
            return self.given["H"].floats
        W_V, W_proj = self.factors
        # What overflows is refused by name.
        with np.errstate(over="ignore", invalid="ignore"):
            return np.swapaxes(W_V @ W_proj, -1, -2)

    @property
    def heads(self) -> int:
        return 1 if self.A.ndim == 2 else len(self.A)

    @property
    def others(self) -> Heads:
        """(A_h, H_h) of the heads after the first, exactly."""
        return ()

    @property
    def n(self) -> int:
        return int(self.A.shape[-1])

    @property
    def d(self) -> int:
        """Of H [d, d] and of W_V [d, r]."""
        return int(self.given["H" if "H" in self.given else "W_V"].floats.shape[-2])

    @property
    def numbers(self) -> str:
        return "binary64" if next(iter(self.given.values())).written is None else "fractions"

    @property
    def exact(self) -> bool:
        """Whether every entry was given exactly, A among them."""
        return "A" in self.given and self.numbers == "fractions"

    @property
    def decidable(self) -> bool:
        """Whether exact arithmetic decides the layer: fractions, and not too many of them."""
        return self.exact and max(self.n, self.d) <= EXACT_SIZE

    @property
    def logits(self) -> Array | None:
        """[n, n] with -inf where masked, where A was given so."""
        return self.given["logits"].floats if "logits" in self.given else None

    @property
    def factors(self) -> tuple[Array, Array] | None:
        """(W_V [*heads, d, r], W_proj [*heads, r, d]), where H was given so."""
        given = self.given
        return None if "H" in given else (given["W_V"].floats, given["W_proj"].floats)

    @cached_property
    def positive(self) -> NDArray[np.bool_]:
        """Where A_ij > 0, by the input, since rounding can lose what is small."""
        if self.logits is not None:
            return np.isfinite(self.logits)
        if not self.exact:
            return self.given["A"].floats > 0
        return np.array([[x > 0 for x in row] for row in self.rational_A])

    @cached_property
    def classes(self) -> list[list[int]]:
        """The closed classes of tokens: as many as A has eigenvalues 1."""
        return [members.tolist() for members in closed_classes(self.positive.astype(np.float64))]

    @cached_property
    def may_balance(self) -> bool:
        """Whether columns of A that sum to 1 within rounding are meant to: of logits only where all
        rows hold the same ones, and all columns, so that A is doubly stochastic for certain."""
        if self.logits is None:
            return True
        rows, columns = np.sort(self.logits, axis=1), np.sort(self.logits, axis=0)
        return bool((rows == rows[0]).all() and (columns == columns[:, :1]).all())

    @cached_property
    def rational_A(self) -> Matrix:
        if "A" not in self.given:
            return normalised_rows(to_fractions(self.A.tolist(), "A"))
        A = self.given["A"].fractions
        return A if self.exact else normalised_rows(A)

    @cached_property
    def rational_H(self) -> Matrix:
        if "H" in self.given:
            return self.given["H"].fractions
        W_V, W_proj = (to_flint(factor) for factor in self.rational_factors)
        return from_flint((W_V * W_proj).transpose())

    @property
    def rational_factors(self) -> tuple[Matrix, Matrix]:
        """W_V and W_proj, where H was given so."""
        return self.given["W_V"].fractions, self.given["W_proj"].fractions

    def as_fractions(self) -> "Layer | None":
        """The same layer in fractions, where its binary64 numbers mean what they say; else None.

        They do where A, with rows that sum to 1 exactly, and H (or its factors) have short entries.
        """
        if self.exact or "A" not in self.given or max(self.n, self.d) > _SHORT_SIZE:
            return None
        fractions = {name: entries.fractions for name, entries in self.given.items()}
        short = all(entries.means_itself for entries in self.given.values())
        if any(sum(row) != 1 for row in fractions["A"]) or not short:
            return None
        factors = None if "H" in fractions else (fractions["W_V"], fractions["W_proj"])
        return Layer.of(fractions["A"], fractions.get("H"), factors=factors)

    @cached_property
    def rational_pi(self) -> list[Fraction]:
        """The stationary distribution of `rational_A`, the mean over the closed classes (T1d)."""
        return exact_stationary(self.rational_A, self.classes)

    @staticmethod
    def of(
        A: Any = None, H: Any = None, *, logits: Any = None, factors: tuple[Any, Any] | None = None
    ) -> "Layer":
        """A layer without a start, read by `read_layer`."""
        return read_layer(A, H, logits=logits, factors=factors)[0]


def _is_short(x: Fraction) -> bool:
    odd = abs(x.numerator)
    return (odd // (odd & -odd) if odd else 0).bit_length() <= _SHORT_BITS


def read_layer(
    A: Any = None, H: Any = None, X0: Any = None, *, logits: Any = None, factors: Any = None
) -> tuple[Layer, Entries | None]:
    """A validated layer, and its start X_0 [n, d] where there is one.

    Exactly one of A and logits, and one of H and factors = (W_V, W_proj). Raises
    `InputError` saying what is wrong with which matrix.
    """
    if (A is None) == (logits is None):
        raise InputError('give exactly one of "A" and "logits" (A is the softmax of their rows)')
    if (H is None) == (factors is None):
        raise InputError('give exactly one of "H" and the pair "W_V", "W_proj"')
    if factors is not None and any(factor is None for factor in factors):
        raise InputError("a head needs both of W_V and W_proj: one of them is missing")
    matrices = {"A": A, "logits": logits, "H": H, "X0": X0}
    if factors is not None:
        matrices |= {"W_V": factors[0], "W_proj": factors[1]}
    given = {
        name: read_entries(value, name, masks=name == "logits")
        for name, value in matrices.items()
        if value is not None
    }
    if any(entries.written is None for entries in given.values()):
        # What is computed with and what a certificate says must be the same numbers.
        given = {name: Entries(entries.floats, None) for name, entries in given.items()}
    if "logits" in given:
        logits = given["logits"].floats
        masked = np.isneginf(logits)
        check_square(np.where(masked, 0.0, logits), name="logits")
        empty = np.flatnonzero(masked.all(axis=1))
        if len(empty):
            raise InputError(
                f"row {empty[0]} of the logits is all -inf: nothing is left to attend to"
            )
        attention = check_attention(softmax(logits))
    elif given["A"].written is not None:
        _check_exact_attention(given["A"].fractions)
        attention = check_attention(given["A"].floats, tolerance=1e-6)
    else:
        attention = check_attention(given["A"].floats)
    if factors is None:
        check_square(given["H"].floats)
    else:
        W_V, W_proj = given["W_V"].floats, given["W_proj"].floats
        if W_proj.shape != W_V.shape[::-1]:
            raise InputError(
                f"W = (W_V, W_proj) has shapes {list(W_V.shape)} and {list(W_proj.shape)}; a "
                "head needs [d, r] and [r, d]"
            )
    start = given.pop("X0", None)
    layer = Layer(attention, given)
    if factors is not None:
        check_square(layer.H, name="(W_V W_proj)^T")
    if start is not None:
        check_states(start.floats, layer.n, layer.d)
    return layer, start


def softmax(logits: Array) -> Array:
    """exp(l_ij) / sum_k exp(l_ik), zero exactly where the logit is -inf."""
    with np.errstate(over="ignore"):
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    weights = np.where(np.isneginf(logits), 0.0, np.maximum(weights, _TINY))
    A: Array = weights / weights.sum(axis=1, keepdims=True)
    return A


def _check_exact_attention(A: Matrix) -> None:
    if len(A) != len(A[0]):
        raise InputError(f"A has shape [{len(A)}, {len(A[0])}]; it must be square, n x n")
    for i, row in enumerate(A):
        for j, entry in enumerate(row):
            if entry < 0:
                raise InputError(
                    f"A[{i}, {j}] = {entry} is negative: attention is row-stochastic, so entries "
                    "are >= 0"
                )
        if sum(row) != 1:
            raise InputError(
                f"A is not row-stochastic: row {i} sums to {sum(row)} and exact input must sum to "
                "1 exactly (write the entries as fractions, or as decimals without quotes for "
                "binary64)"
            )


def load_layer(path: str, data: Any = None) -> tuple[Layer, Entries | None]:
    """CASE.json, or the data that it holds, by `read_layer`. Raises `InputError` if not legal."""
    data = read_json(path) if data is None else data
    factored = {"W_V", "W_proj"}
    unknown = sorted(data.keys() - _KEYS) if isinstance(data, dict) else []
    if unknown:
        raise InputError(
            f"'{path}' has unknown keys {unknown}; known are A, logits, H (the transpose of W), "
            "W_V, W_proj and X0"
        )
    if (
        not isinstance(data, dict)
        or not {"A", "logits"} & data.keys()
        or not ("H" in data or factored <= data.keys())
    ):
        raise InputError(
            f'\'{path}\' must hold an object with "A" and "H" ("logits" for A and "W_V", "W_proj" '
            'for H will do, and "X0" is optional), nested lists of numbers or of strings like "3/4"'
        )
    factors = (data.get("W_V"), data.get("W_proj")) if factored & data.keys() else None
    return read_layer(
        data.get("A"), data.get("H"), data.get("X0"), logits=data.get("logits"), factors=factors
    )


def real_array(value: ArrayLike, name: str) -> Array:
    value = plain(value, name)
    try:
        raw = np.asarray(value)
    except ValueError as error:
        raise InputError(f"{name} is ragged: every row must have the same length") from error
    if raw.dtype.kind == "c":
        raise InputError(f"{name} is complex; the theory is about real matrices")
    if raw.dtype.kind in "iu" and raw.size and max(-int(raw.min()), int(raw.max())) > 2**53:
        raise InputError(f"{name} has whole numbers beyond 2^53: give them as floats")
    try:
        array = raw.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} holds something that is not a number: {error}") from error
    except OverflowError as error:
        raise InputError(f"{name} {_BEYOND}") from error
    if array.size and not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InputError(f"{name}{list(place)} is {array[place]}: replace NaN and infinite entries")
    return array


def check_square(H: ArrayLike, *, name: str = "H") -> Array:
    """H as float64 [..., d, d], d >= 1. Raises `InputError` on other shapes, NaN or infinity."""
    array = real_array(H, name)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or array.shape[-1] == 0:
        raise InputError(
            f"{name} has shape {list(array.shape)}; it must be square, [..., d, d] with d >= 1"
        )
    return array


def row_sum_tolerance(n: int) -> float:
    """n eps: what rounding the n entries of a row to binary64 can do to its sum."""
    return n * 2.0**-52


def check_attention(A: ArrayLike, *, tolerance: float | None = None) -> Array:
    """A as float64 [..., n, n] with every row divided by its sum.

    Entries must be >= 0 and each row must sum to 1 within `tolerance` (n eps unless given, the
    rounding of binary64; give more for an A computed in float32). Zero entries are legal (causal
    masks). Raises `InputError` naming the first offending row.
    """
    array = check_square(A, name="A")
    n = array.shape[-1]
    if (array < 0).any():
        place = tuple(int(i) for i in np.argwhere(array < 0)[0])
        raise InputError(
            f"A{list(place)} = {array[place]:.6g} is negative: attention is row-stochastic, "
            "so entries are >= 0 (did you pass logits? apply softmax over the last axis first)"
        )
    sums = array.sum(axis=-1)
    allowed = row_sum_tolerance(n) if tolerance is None else tolerance
    wrong = np.abs(sums - 1) > allowed
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise InputError(
            f"A is not row-stochastic: row {list(place)} sums to {sums[place]:.17g}, "
            f"more than {allowed:.1e} from 1 (divide each row by its sum, or, if the columns "
            "sum to 1, pass the transpose)"
        )
    normalised: Array = array / sums[..., None]
    return normalised


def check_states(X0: ArrayLike, n: int, d: int, *, name: str = "X0") -> Array:
    """X_0 as float64 [..., n, d] (rows = tokens). Raises `InputError` on any other shape."""
    array = real_array(X0, name)
    if array.ndim < 2 or array.shape[-2:] != (n, d):
        hint = " (it looks transposed)" if array.shape[-2:] == (d, n) else ""
        raise InputError(
            f"{name} has shape {list(array.shape)}; A is {n} x {n} and H is {d} x {d}, so it must "
            f"be [..., {n}, {d}]: one row a token{hint}"
        )
    return array


def one_of(H: Any, W: Any) -> str:
    """Which of H and W = H^T was given. Raises `InputError` unless exactly one was."""
    if (H is None) == (W is None):
        raise InputError(
            "give exactly one of H and W: X' = X + A X W with W = W_V W_proj, and H = W^T"
        )
    return "H" if W is None else "W"
