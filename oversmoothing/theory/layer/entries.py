"""The entries of one matrix of a case, read once: in binary64, and exactly where written so."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from oversmoothing.theory.numbers.rational import Matrix, rows_of, to_fraction
from oversmoothing.theory.support.arrays import Array
from oversmoothing.theory.support.errors import InputError


@dataclass(frozen=True)
class Entries:
    """The entries of one matrix, read once.

    floats: in binary64, -inf where a logit is masked. written: in fractions, None where masked, if
    the whole case was given so.
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


def read_entries(value: Any, name: str, *, masks: bool = False) -> Entries:
    """The entries of a matrix-like value; -inf and "-inf" are masks where `masks` is set.

    Raises `InputError` where an entry is no number; NaN and infinite floats are left to the checks.
    """
    plain = isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim == 2
    if plain and value.size:
        return Entries(np.array(value, order="C"), None)
    rows = [
        [
            None
            if masks and _is_mask(x)
            else float(x)
            if isinstance(x, float | np.floating)
            else to_fraction(x, f"{name}[{i}, {j}]")
            for j, x in enumerate(row)
        ]
        for i, row in enumerate(rows_of(value, name))
    ]
    try:
        floats = np.array([[-np.inf if x is None else float(x) for x in row] for row in rows])
    except OverflowError as error:
        raise InputError(
            f"{name} has an entry beyond the range of binary64 (1.8e308): scale the matrix"
        ) from error
    if any(isinstance(x, float) for row in rows for x in row):
        return Entries(floats, None)
    return Entries(floats, [[x if isinstance(x, Fraction) else None for x in row] for row in rows])


def _is_mask(entry: Any) -> bool:
    return entry == "-inf" or (isinstance(entry, float | np.floating) and entry == -np.inf)
