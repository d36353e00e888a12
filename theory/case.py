"""A CASE: A, H and optionally X_0 for X' = X + A X H^T, as read from JSON or passed by a user.

Numbers are binary64 (A then means A_ij / sum_k A_ik); strings ("3/4"), integers and Fractions are
exact, and then the rows of A must sum to 1 exactly. One float anywhere makes the case numerical.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theory.checks import check_attention, check_square, check_states
from theory.errors import InputError
from theory.files import read_text
from theory.rational import (
    Matrix,
    is_exact_entry,
    normalised_rows,
    rows_of,
    to_float,
    to_fractions,
)

_KEYS = {"A", "H", "X0", "schema_version", "comment"}


@dataclass(frozen=True)
class Case:
    """A [n, n], H [d, d], X0 [n, d] or None. exact: every entry was given exactly.

    The fractions (`rational_*`) are exact in both cases: those of binary64 input are its binary
    values, with the rows of A divided by their sums.
    """

    A: NDArray[np.float64]
    H: NDArray[np.float64]
    X0: NDArray[np.float64] | None
    exact: bool
    _raw: tuple[list[list[Any]], list[list[Any]], list[list[Any]] | None]

    @property
    def n(self) -> int:
        return len(self.A)

    @property
    def d(self) -> int:
        return len(self.H)

    @property
    def given_A(self) -> NDArray[np.float64]:
        """A as it was given in binary64, its rows not yet divided by their sums."""
        return _floating(self._raw[0], "A")

    @property
    def rational_A(self) -> Matrix:
        A = to_fractions(self._raw[0], "A")
        return A if self.exact else normalised_rows(A)

    @property
    def rational_H(self) -> Matrix:
        return to_fractions(self._raw[1], "H")

    @property
    def rational_X0(self) -> Matrix | None:
        return None if self._raw[2] is None else to_fractions(self._raw[2], "X0")


def _is_exact(*matrices: list[list[Any]] | None) -> bool:
    return all(
        is_exact_entry(entry) for matrix in matrices if matrix for row in matrix for entry in row
    )


def make_case(A: Any, H: Any, X0: Any = None, *, tolerance: float | None = None) -> Case:
    """Validate one case. Raises `InputError` saying what is wrong with which matrix.

    tolerance: how far a row sum of a numerical A may be from 1 (n eps unless given).
    """
    raw_A, raw_H = rows_of(A, "A"), rows_of(H, "H")
    raw_X0 = None if X0 is None else rows_of(X0, "X0")
    exact = _is_exact(raw_A, raw_H, raw_X0)
    rational_A = None
    if exact:
        rational_A = to_fractions(raw_A, "A")
        _check_exact_attention(rational_A)
        floating_A = check_attention(to_float(rational_A), tolerance=1e-6)
    else:
        floating_A = check_attention(_floating(raw_A, "A"), tolerance=tolerance)
    floating_H = check_square(_floating(raw_H, "H"))
    n, d = len(floating_A), len(floating_H)
    states = None if raw_X0 is None else check_states(_floating(raw_X0, "X0"), n, d)
    return Case(floating_A, floating_H, states, exact, (raw_A, raw_H, raw_X0))


def _floating(rows: list[list[Any]], name: str) -> NDArray[np.float64]:
    """Floats as they are (NaN included, for the checks to name), anything exact rounded once."""
    values = [
        [
            float(entry)
            if isinstance(entry, float | np.floating)
            else float(to_fractions([[entry]], name)[0][0])
            for entry in row
        ]
        for row in rows
    ]
    return np.array(values, dtype=np.float64)


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
    if not isinstance(data, dict) or not {"A", "H"} <= data.keys():
        raise InputError(
            f'\'{path}\' must hold an object with "A" and "H" (and optionally "X0"), nested '
            'lists of numbers or of strings like "3/4"'
        )
    unknown = sorted(data.keys() - _KEYS)
    if unknown:
        raise InputError(f"'{path}' has unknown keys {unknown}; known are A, H and X0")
    return make_case(data["A"], data["H"], data.get("X0"))
