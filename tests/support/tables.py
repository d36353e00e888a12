"""Cases as rows of a table: matrices as text, fields of the public answer, and why they are so."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest

from oversmoothing.theory.verdict.verdict import Verdict, verdict

Rows = list[list[Fraction]]
# Spectra beside 1: AA 1/2; FLAT 0; TURNED -1/2; A3 1/2, 1/5; C3 a complex pair; LOST 1/2, 1/4.
NAMED = {
    "AA": "3/4 1/4; 1/4 3/4",
    "FLAT": "1/2 1/2; 1/2 1/2",
    "TURNED": "1/4 3/4; 3/4 1/4",
    "A3": "4/5 1/10 1/10; 3/10 3/5 1/10; 1/2 1/5 3/10",
    "C3": "1/10 4/5 1/10; 1/10 1/10 4/5; 4/5 1/10 1/10",
    "LOST": "1 0 0; 1/2 1/2 0; 1/4 1/2 1/4",
    "CYCLE": "0 1 0; 0 0 1; 1 0 0",
    "APART": "1/2 1/2 0; 1/2 1/2 0; 0 0 1",
}


def matrix(text: Any) -> Rows:
    """Fractions from a name, "diag a b c", or rows of numbers between semicolons; or from rows."""
    if not isinstance(text, str):
        return [[Fraction(x) for x in row] for row in text]
    text = NAMED.get(text, text)
    if text.startswith("diag "):
        values = text.split()[1:]
        return [[Fraction(x) * (i == j) for j in range(len(values))] for i, x in enumerate(values)]
    return [[Fraction(x) for x in row.split()] for row in text.split(";")]


def floats(text: Any) -> list[list[float]]:
    """The same numbers, each rounded to binary64."""
    return [[float(x) for x in row] for row in matrix(text)]


# Of an array of floats, or of integers, the fractions that they are.
fractions_of = np.vectorize(Fraction, otypes=[object])


def rational(text: Any) -> flint.fmpq_mat:
    return flint.fmpq_mat(
        [[flint.fmpq(x.numerator, x.denominator) for x in row] for row in matrix(text)]
    )


def identity(n: int) -> Rows:
    return [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]


def row(why: str, A: Any, H: Any, X0: Any = None, by: str = "both", **said: Any) -> Any:
    """A case and what is true of its verdict: by "exact", "floats" or "both" kinds of numbers.

    said: fields of the verdict; `says` and `never` are parts of its reason, `squared`, `log` and
    `ratio` tables of HFC/LFC by depth.
    """
    return pytest.param(A, H, X0, by, said, id=why)


def table(*rows: Any) -> Any:
    return pytest.mark.parametrize(("A", "H", "X0", "by", "said"), rows)


def holds(A: Any, H: Any, X0: Any, by: str, said: dict[str, Any]) -> None:
    """Assert a row."""
    ways = {"both": (matrix, floats), "exact": (matrix,), "floats": (floats,)}[by]
    depths = sorted({L for name in ("squared", "log", "ratio") for L in said.get(name, ())})
    for read in ways:
        X = None if X0 is None else read(X0)
        found = verdict(A=read(A), H=read(H), X0=X, depth=depths)
        for name, value in said.items():
            compared(found, name, value)


def compared(found: Verdict, name: str, value: Any) -> None:
    if name in ("says", "never"):
        for words in (value,) if isinstance(value, str) else value:
            assert (words in found.reason) == (name == "says"), (words, found.reason)
        return
    if name in ("squared", "log", "ratio"):
        attribute = {"ratio": "value"}.get(name, name)
        seen = {L: getattr(found.hfc_lfc[L], attribute) for L in value}
    else:
        seen = getattr(found, name)
    assert seen == near(value), (name, seen, value, found.reason)


def near(value: Any) -> Any:
    """A number up to rounding; anything else, 0 and infinities as they are."""
    if isinstance(value, dict):
        return {key: near(x) for key, x in value.items()}
    exact = isinstance(value, bool | int | Fraction) or not isinstance(value, float)
    return value if exact or value == 0 or math.isinf(value) else pytest.approx(value, rel=1e-11)
