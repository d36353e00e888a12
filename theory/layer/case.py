"""A CASE: X' = X + A X H^T and optionally X_0, as read from JSON or passed by a user.

Attention is given as A or as the "logits" whose softmax over each row it is ("-inf" masks); the
value projection as H or as the factors "W_V" and "W_proj" of a head, H = (W_V W_proj)^T. Numbers
are binary64 (A then means A_ij / sum_k A_ik); strings ("3/4"), integers and Fractions are exact,
and then the rows of A must sum to 1 exactly. One float anywhere makes the case numerical.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.layer.checks import check_attention, check_square, check_states
from oversmoothing.theory.numbers.rational import (
    Matrix,
    from_flint,
    is_exact_entry,
    normalised_rows,
    rows_of,
    to_flint,
    to_float,
    to_fraction,
    to_fractions,
)
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import read_text

Array = NDArray[np.float64]

_KEYS = {"A", "logits", "H", "W_V", "W_proj", "X0", "schema_version", "comment"}
# Weights that exist and underflow stay the smallest number, so that only masks are zeros.
_TINY = 5e-324


@dataclass(frozen=True)
class Case:
    """A [n, n], H [d, d], X0 [n, d] or None. exact: every entry was given exactly, A among them.

    logits: [n, n] with -inf where masked, where A was given so; factors: (W_V [d, r],
    W_proj [r, d]), where H was. numbers: "fractions" where every entry was given exactly (logits
    too), else "binary64". The fractions (`rational_*`) are exact in both: those of binary64 input
    are its binary values, with the rows of A divided by their sums. For logits `rational_A` is a
    matrix near A, not A.
    """

    A: Array
    H: Array
    X0: Array | None
    exact: bool
    numbers: str
    raw: dict[str, list[list[Any]]]
    logits: Array | None = None
    factors: tuple[Array, Array] | None = None

    @property
    def n(self) -> int:
        return len(self.A)

    @property
    def d(self) -> int:
        return len(self.H)

    @property
    def given_A(self) -> Array:
        """A as it was given in binary64, its rows not yet divided by their sums."""
        return self.A if self.logits is not None else _floating(self.raw["A"], "A")

    @property
    def rational_A(self) -> Matrix:
        if self.logits is not None:
            return normalised_rows(to_fractions(self.A.tolist(), "A"))
        A = to_fractions(self.raw["A"], "A")
        return A if self.exact else normalised_rows(A)

    @property
    def rational_H(self) -> Matrix:
        if self.factors is None:
            return to_fractions(self.raw["H"], "H")
        W_V, W_proj = (to_flint(factor) for factor in self.rational_factors)
        return from_flint((W_V * W_proj).transpose())

    @property
    def rational_factors(self) -> tuple[Matrix, Matrix]:
        """W_V and W_proj, where H was given so."""
        return to_fractions(self.raw["W_V"], "W_V"), to_fractions(self.raw["W_proj"], "W_proj")

    @property
    def rational_X0(self) -> Matrix | None:
        return to_fractions(self.raw["X0"], "X0") if "X0" in self.raw else None


def is_masked(entry: Any) -> bool:
    """Whether a logit is -inf, as a float or as the string "-inf"."""
    return entry == "-inf" or (isinstance(entry, float | np.floating) and entry == -np.inf)


def _is_exact(raw: dict[str, list[list[Any]]]) -> bool:
    return all(
        is_masked(entry) or is_exact_entry(entry)
        for matrix in raw.values()
        for row in matrix
        for entry in row
    )


def make_case(
    A: Any = None,
    H: Any = None,
    X0: Any = None,
    *,
    logits: Any = None,
    factors: tuple[Any, Any] | None = None,
    tolerance: float | None = None,
) -> Case:
    """Validate one case. Raises `InputError` saying what is wrong with which matrix.

    Exactly one of A and logits, and one of H and factors = (W_V, W_proj). tolerance: how far a row
    sum of a numerical A may be from 1 (n eps unless given).
    """
    if (A is None) == (logits is None):
        raise InputError('give exactly one of "A" and "logits" (A is the softmax of their rows)')
    if (H is None) == (factors is None):
        raise InputError('give exactly one of "H" and the pair "W_V", "W_proj"')
    given = {"A": A, "logits": logits, "H": H, "X0": X0}
    given = {name: value for name, value in given.items() if value is not None}
    if factors is not None:
        given |= {"W_V": factors[0], "W_proj": factors[1]}
    raw = {name: rows_of(value, name) for name, value in given.items()}
    table = _logits(raw["logits"]) if "logits" in raw else None
    numbers = "fractions" if _is_exact(raw) else "binary64"
    if numbers == "binary64":
        # What is computed with and what a certificate says must be the same numbers.
        raw = {
            name: (_floating(rows, name) if table is None or name != "logits" else table).tolist()
            for name, rows in raw.items()
        }
    exact = "A" in raw and numbers == "fractions"
    if table is not None:
        floating_A = check_attention(softmax(table))
    elif exact:
        rational_A = to_fractions(raw["A"], "A")
        _check_exact_attention(rational_A)
        floating_A = check_attention(to_float(rational_A), tolerance=1e-6)
    else:
        floating_A = check_attention(_floating(raw["A"], "A"), tolerance=tolerance)
    pair = None
    if factors is None:
        floating_H = check_square(_floating(raw["H"], "H"))
    else:
        pair = _floating(raw["W_V"], "W_V"), _floating(raw["W_proj"], "W_proj")
        if pair[1].shape != pair[0].shape[::-1]:
            raise InputError(
                f"W = (W_V, W_proj) has shapes {list(pair[0].shape)} and {list(pair[1].shape)}; a "
                "head needs [d, r] and [r, d]"
            )
        floating_H = check_square((pair[0] @ pair[1]).T, name="(W_V W_proj)^T")
    n, d = len(floating_A), len(floating_H)
    states = None if X0 is None else check_states(_floating(raw["X0"], "X0"), n, d)
    return Case(floating_A, floating_H, states, exact, numbers, raw, table, pair)


def _floating(rows: list[list[Any]], name: str) -> Array:
    """Floats as they are (NaN included, for the checks to name), anything exact rounded once."""
    values = [
        [
            float(entry)
            if isinstance(entry, float | np.floating)
            else float(to_fraction(entry, f"{name}[{i}, {j}]"))
            for j, entry in enumerate(row)
        ]
        for i, row in enumerate(rows)
    ]
    return np.array(values, dtype=np.float64)


def _logits(rows: list[list[Any]]) -> Array:
    """The logits in binary64, -inf where masked. Raises `InputError` where they are none."""
    masked = np.array([[is_masked(entry) for entry in row] for row in rows])
    rest = [[0 if is_masked(entry) else entry for entry in row] for row in rows]
    table = check_square(_floating(rest, "logits"), name="logits")
    empty = np.flatnonzero(masked.all(axis=1))
    if len(empty):
        raise InputError(f"row {empty[0]} of the logits is all -inf: nothing is left to attend to")
    table[masked] = -np.inf
    return table


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


def read_case(path: str) -> Case:
    """Read CASE.json. Raises `InputError` on anything that is not a legal case."""
    text = read_text(path)
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"'{path}' is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from error
    except RecursionError as error:
        raise InputError(f"'{path}' is nested too deeply to be a case") from error
    factored = {"W_V", "W_proj"}
    if (
        not isinstance(data, dict)
        or not {"A", "logits"} & data.keys()
        or not ("H" in data or factored <= data.keys())
    ):
        raise InputError(
            f'\'{path}\' must hold an object with "A" and "H" ("logits" for A and "W_V", "W_proj" '
            'for H will do, and "X0" is optional), nested lists of numbers or of strings like "3/4"'
        )
    unknown = sorted(data.keys() - _KEYS)
    if unknown:
        raise InputError(
            f"'{path}' has unknown keys {unknown}; known are A, logits, H, W_V, W_proj and X0"
        )
    factors = (data.get("W_V"), data.get("W_proj")) if factored & data.keys() else None
    return make_case(
        data.get("A"), data.get("H"), data.get("X0"), logits=data.get("logits"), factors=factors
    )
