"""Exact numbers: fractions in, fractions or bounds out, and the bridge to FLINT's matrices.

Strings ("3/4", "0.75"), integers, `Fraction`s and binary64 numbers are exact. A matrix is nested
lists of `Fraction`; products go through FLINT. Text as matrices: `theory.proofs.instances`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_05UP, Context, Decimal
from fractions import Fraction
from numbers import Rational
from operator import add, sub
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.numbers import flint
from oversmoothing.theory.support.errors import InputError, refuse_endless

Matrix = list[list[Fraction]]
# The heads (A_h, H_h) of a layer beside its first one.
Heads = Sequence[tuple[Matrix, Matrix]]


# Types of a tensor that numpy has too, and its letters for what is no number.
_PLAIN = re.compile(r"bool|u?int(8|16|32|64)|b?float(16|32|64)|complex(64|128)")
_NO_NUMBERS = {"b": "truth values", "M": "dates", "m": "times", "V": "records"}


def refuse_odd_tensor(value: Any, name: str) -> None:
    """Raise `InputError` for a tensor that is meta, sparse, nested or quantised, or of fp8."""
    kind = str(value.dtype).removeprefix("torch.")
    marks = {
        "meta": value.is_meta, "nested": value.is_nested, "quantised": value.is_quantized,
        "sparse": "sparse" in str(value.layout), kind: not _PLAIN.fullmatch(kind),
    }  # fmt: skip
    odd = [mark for mark, is_so in marks.items() if is_so]
    if odd:
        raise InputError(
            f"{name} is a tensor that holds no plain numbers ({', '.join(odd)}): give a dense one "
            "of float32 or float64"
        )


def plain(value: Any, name: str) -> Any:
    """An array of any library (numpy, torch, pandas) as numpy's, in this machine's byte order; what
    is none, as nested lists, as it is.

    No number changes: bfloat16 becomes float32, longdouble float64. Raises `InputError` where that
    has no room for a number, for masked entries, and for what holds no plain numbers.
    """
    if hasattr(value, "detach"):
        refuse_odd_tensor(value, name)
        value = value.detach().cpu().resolve_conj().resolve_neg()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
    # Nothing is masked before numpy.ma is loaded, which takes time.
    if "numpy.ma" in sys.modules and np.ma.is_masked(value):
        raise InputError(f"{name} has masked entries: fill them, or leave their tokens out")
    if not hasattr(value, "__array__"):
        return value
    array = np.asarray(value)
    kind = array.dtype.kind
    if kind in _NO_NUMBERS:
        raise InputError(f"{name} holds {_NO_NUMBERS[kind]} ({array.dtype}), not numbers")
    if kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore", under="ignore"):
            narrow = array.astype(np.float64)
        if ((narrow != array) & ~np.isnan(array)).any():
            raise InputError(
                f"{name} is {array.dtype}, with digits that float64 has no room for: round it, "
                "or give fractions as strings"
            )
        return narrow
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def rows_of(value: Any, name: str) -> list[list[Any]]:
    """Nested lists of equal length from a matrix-like value. Raises `InputError` otherwise."""
    value = plain(value, name)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or len(value) == 0:
        raise InputError(f"{name} must be a matrix: a list of rows, each a list of numbers")
    for i, row in enumerate(value):
        if not isinstance(row, Sequence) or isinstance(row, str | bytes):
            raise InputError(
                f"{name}[{i}] must be a row, a list of numbers; write a column vector as [[1], [2]]"
            )
    lengths = set(map(len, value))
    if len(lengths) != 1 or 0 in lengths:
        raise InputError(f"{name} is ragged or empty: its rows have lengths {sorted(lengths)}")
    return [list(row) for row in value]


def has_symbols(value: Any) -> bool:
    """Whether a matrix-like value, or a pair of them, holds free symbols of sympy."""
    if getattr(value, "free_symbols", None):
        return True
    if isinstance(value, tuple):
        return any(map(has_symbols, value))
    if getattr(value, "dtype", None) is not None:
        return bool(value.dtype == object) and has_symbols(value.tolist())
    rows = value if isinstance(value, list) else ()
    entries = (x for row in rows if isinstance(row, list | tuple) for x in row)
    return any(getattr(x, "free_symbols", None) for x in entries)


def to_fraction(entry: Any, where: str) -> Fraction:
    """One entry as a Fraction, floats by their exact binary value.

    Raises `InputError` for what is none, or has more digits than are read.
    """
    if isinstance(entry, bool | np.bool_):
        raise InputError(f"{where} is {entry}: a truth value is not a number")
    if isinstance(entry, np.generic):
        entry = entry.item()
    # Of sympy.
    if getattr(entry, "is_Rational", False):
        return Fraction(int(entry.p), int(entry.q))
    if isinstance(entry, str):
        refuse_endless(entry, where)
    try:
        if isinstance(entry, str | float | Rational):
            return Fraction(entry)
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        named = "[" in where and re.search("[A-Za-z_]", str(entry))
        raise InputError(
            f'{where} = {entry!r} is not a finite number: write 0.75, 3 or "3/4"'
            + ".\n'oversmoothing regions' takes a case with names." * bool(named)
        ) from error
    raise InputError(f'{where} = {entry!r} is not a number: write 0.75, 3 or "3/4"')


def to_fractions(rows: Sequence[Sequence[Any]], name: str) -> Matrix:
    """Every entry as a Fraction. Raises `InputError` naming the first that is none."""
    return [
        [to_fraction(entry, f"{name}[{i}, {j}]") for j, entry in enumerate(row)]
        for i, row in enumerate(rows)
    ]


def to_float(matrix: Matrix) -> NDArray[np.float64]:
    """The nearest binary64 matrix."""
    return np.array([[float(entry) for entry in row] for row in matrix], dtype=np.float64)


def to_flint(matrix: Sequence[Sequence[Fraction]]) -> flint.fmpq_mat:
    """The same matrix as FLINT's fmpq_mat."""
    return flint.fmpq_mat([[flint.fmpq(x.numerator, x.denominator) for x in row] for row in matrix])


def from_flint(matrix: flint.fmpq_mat) -> Matrix:
    """FLINT's fmpq_mat as nested Fractions."""
    return [[Fraction(int(x.p), int(x.q)) for x in row] for row in matrix.tolist()]


def fraction_text(value: Fraction) -> str:
    """ "p/q" (or "p"), of any length: Python itself refuses to print more than 4300 digits."""
    return str(flint.fmpq(value.numerator, value.denominator))


def normalised_rows(matrix: Matrix) -> Matrix:
    """A_ij / sum_k A_ik, exactly."""
    return [[entry / total for entry in row] for row in matrix for total in [sum(row)]]


def exact_stationary(A: Matrix, closed: Sequence[Sequence[int]]) -> list[Fraction]:
    """pi with pi^T A = pi^T, pi^T 1 = 1, exactly; the mean over the given closed classes."""
    pi = [Fraction(0)] * len(A)
    for members in closed:
        k = len(members)
        # (A^T - I) pi = 0 with its last equation replaced by sum(pi) = 1.
        system = [[A[j][i] - int(i == j) for j in members] for i in members[:-1]]
        system.append([Fraction(1)] * k)
        solution = to_flint(system).solve(flint.fmpq_mat(k, 1, [0] * (k - 1) + [1]))
        for i, (share,) in zip(members, from_flint(solution), strict=True):
            pi[int(i)] = share / len(closed)
    return pi


def identity(size: int, scale: Fraction | int | str = 1) -> Matrix:
    """scale I."""
    on, off = Fraction(scale), Fraction(0)
    return [[on if i == j else off for j in range(size)] for i in range(size)]


def transposed(X: Matrix) -> Matrix:
    return [list(column) for column in zip(*X, strict=True)]


def uniform(n: int) -> Matrix:
    """11^T/n."""
    return [[Fraction(1, n)] * n for _ in range(n)]


def product(*factors: Matrix) -> Matrix:
    whole = to_flint(factors[0])
    for factor in factors[1:]:
        whole = whole * to_flint(factor)
    return from_flint(whole)


def plus(X: Matrix, Y: Matrix, scale: Fraction | int = 1) -> Matrix:
    """X + scale Y."""
    if scale in (1, -1):
        join = add if scale == 1 else sub
        return [[join(x, y) for x, y in zip(p, q, strict=True)] for p, q in zip(X, Y, strict=True)]
    return [[x + scale * y for x, y in zip(p, q, strict=True)] for p, q in zip(X, Y, strict=True)]


def plus_identity(M: Matrix, factor: Fraction | int = 1) -> Matrix:
    """I + factor M."""
    return plus(identity(len(M)), M, factor)


def kronecker(X: Matrix, Y: Matrix) -> Matrix:
    return [[x * y for x in p for y in q] for p in X for q in Y]


def on_vectors(A: Matrix, H: Matrix, X: Matrix, others: Heads) -> tuple[Matrix, Matrix, Matrix]:
    """(sum_h A_h (x) H_h, [[1]], vec X), vec row by row: a layer of several heads as one head."""
    operator = kronecker(A, H)
    for a, h in others:
        operator = plus(operator, kronecker(a, h))
    return operator, identity(1), [[x] for row in X for x in row]


def weighted_mean(weights: Iterable[Fraction], X: Matrix) -> list[Fraction]:
    """pi^T X: with pi uniform the mean over the tokens, with pi^T A = pi^T the pi-mean."""
    return product([list(weights)], X)[0]


def centred(X: Matrix) -> Matrix:
    """P X: the tokens without their mean."""
    return plus(X, product(uniform(len(X)), X), -1)


def squared_norms(X: Matrix) -> tuple[Fraction, Fraction]:
    """(||HFC||_F^2, ||LFC||_F^2) of a state in fractions."""
    x, unit = to_flint(X).numer_denom()
    totals = flint.fmpz_mat(1, len(X), [1] * len(X)) * x
    S, T = (sum((e * e for e in M.entries()), flint.fmpz(0)) for M in (x, totals))
    # n HFC^2 = n S - T and n LFC^2 = T.
    scale = int(len(X) * unit**2)
    return Fraction(int(len(X) * S - T), scale), Fraction(int(T), scale)


def layer(A: Matrix, H: Matrix, X: Matrix, depth: int = 1) -> Matrix:
    """X_L for X' = X + A X W, W = H^T: one layer, or the same one `depth` times."""
    # In integers, over one denominator: fractions would be reduced in every layer.
    (a, s), (h, t), (x, u) = (to_flint(M).numer_denom() for M in (A, H, X))
    w, scale = h.transpose(), s * t
    for _ in range(depth):
        x = x * scale + a * x * w
    return from_flint(flint.fmpq_mat(x) / (u * scale**depth))


def dot(x: Iterable[Fraction], y: Iterable[Fraction]) -> Fraction:
    """x^T y."""
    return sum((p * q for p, q in zip(x, y, strict=True)), Fraction(0))


def zeros(rows: int, columns: int) -> Matrix:
    return [[Fraction(0)] * columns for _ in range(rows)]


def applied(A: Matrix, x: Iterable[Fraction]) -> list[Fraction]:
    """A x for a vector x."""
    return [row[0] for row in product(A, [[entry] for entry in x])]


def characteristic(M: Matrix) -> flint.fmpq_poly:
    """det(x I - M)."""
    return to_flint(M).charpoly()


def polynomial_at(f: Any, M: flint.fmpq_mat) -> flint.fmpq_mat:
    """f(M) for a polynomial of FLINT's."""
    unit, value = to_flint(identity(M.nrows())), M * 0
    for k in range(f.degree(), -1, -1):
        value = value * M + unit * f[k]
    return value


# The last digit says whether anything was cut off: what is then rounded to fewer is rounded once.
_CONTEXT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=ROUND_05UP)
# Digits of a number that is written out: as many as tell two floats apart.
_DIGITS = 17
# The smallest float that has all its digits.
_NORMAL = 2.0**-1022


class Number(float):
    """The float nearest to a real number that lies in [low, high] for certain.

    0.0 or inf where the number is beyond binary64; formatted it then has an exponent beyond it,
    too. low, high: fractions. exact: the fraction where low = high, else None.
    """

    low: Fraction
    high: Fraction

    def __new__(cls, low: Fraction, high: Fraction) -> Number:
        middle = (low + high) / 2
        try:
            number = super().__new__(cls, float(middle))
        except OverflowError:
            number = super().__new__(cls, "inf" if middle > 0 else "-inf")
        number.low, number.high = low, high
        return number

    def __getnewargs__(self) -> Any:
        return self.low, self.high

    @staticmethod
    def of(x: Fraction | flint.arb) -> Number:
        """From a fraction, or from the ends of a ball."""
        if isinstance(x, Fraction):
            return Number(x, x)
        # Not `lower()`, which rounds to the precision of the context.
        middle, radius = _dyadic(x.mid()), _dyadic(x.rad())
        return Number(middle - radius, middle + radius)

    @property
    def exact(self) -> Fraction | None:
        return self.low if self.low == self.high else None

    def size(self) -> Number:
        """The absolute value of a number whose sign is known."""
        return Number(-self.high, -self.low) if self.high < 0 else self

    def minus(self, other: Number) -> Number:
        return Number(self.low - other.high, self.high - other.low)

    def over(self, other: Number) -> Number:
        """Both >= 0, other > 0. Raises `ZeroDivisionError` where it may be 0."""
        return Number(self.low / other.high, self.high / other.low)

    def text(self) -> str:
        """The fraction, or as many digits as hold, up to 17: "3/4", "4.2857142857142857E-101"."""
        if self.exact is not None:
            return fraction_text(self.exact)
        for digits in range(_DIGITS, 0, -1):
            low, high = (_decimal(x, digits) for x in (self.low, self.high))
            if low == high:
                return low
        return f"{_decimal(self.low, 2)} to {_decimal(self.high, 2)}"

    def __format__(self, form: str) -> str:
        middle = (self.low + self.high) / 2
        if middle and not _NORMAL <= abs(float(self)) < float("inf"):
            return format(_quotient(middle), form)
        digits = re.search(r"\.(\d+)([eg])$", form)
        if digits is None or int(digits[1]) > sys.float_info.dig:
            return super().__format__(form)
        # Rounded once, in decimals: by way of binary64 the last digit could be another.
        places = max(int(digits[1]) - (digits[2] == "g"), 0)
        return format(float(format(_quotient(middle), f".{places}e")), form)


def _dyadic(x: flint.arb) -> Fraction:
    mantissa, exponent = x.man_exp()
    m, e = int(mantissa), int(exponent)
    return Fraction(m * 2**e) if e >= 0 else Fraction(m, 2**-e)


def _quotient(x: Fraction) -> Decimal:
    return _CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))


def _decimal(x: Fraction, digits: int) -> str:
    return format(_quotient(x), f".{digits}g")
