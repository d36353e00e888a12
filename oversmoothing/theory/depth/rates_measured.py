"""X_L at hundreds of digits, and what is measured on it: the yardstick of the rates (T4, T5).

X_L = (I + H (x) A)^L X_0 by repeated squaring in balls; singular values, angles and effective rank
from it without subtracting what is nearly equal. float64 sees none of this beyond 1e-16.
"""

from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations
from typing import Protocol

import flint
import mpmath as mp
import numpy as np

from oversmoothing.theory.depth.recurrence import Powers
from oversmoothing.theory.numbers.exact import (
    Matrix,
    kronecker,
    normalised_rows,
    plus_identity,
    to_flint,
)
from oversmoothing.theory.numbers.rounding import at_precision, doublings, to_ball
from oversmoothing.theory.support.errors import InputError

# 1200 digits: sigma_2^2 of a state that shrinks by 0.5 a layer is 1e-600 after a thousand layers.
BITS = 4096
_MOST_BITS = 2**18
_GOOD_BITS = 48


def layer_rows(A: Matrix, H: Matrix, residual: bool = True) -> Matrix:
    """I + A (x) H [n d, n d], the layer on the rows of X one after the other (A (x) H alone without
    the residual connection)."""
    rows = kronecker(A, H)
    return plus_identity(rows) if residual else rows


def states(
    A: Matrix, H: Matrix, X0: Matrix, depths: Iterable[int], bits: int = BITS, residual: bool = True
) -> dict[int, flint.arb_mat]:
    """X_L [n, d] in balls at each depth, for A [n, n], H [d, d], X0 [n, d] in fractions."""
    return powers(layer_rows(A, H, residual), X0, depths, bits)


def powers(
    rows: Matrix, X0: Matrix, depths: Iterable[int], bits: int = BITS
) -> dict[int, flint.arb_mat]:
    """The same for any linear layer [n d, n d] on the rows of X one after the other."""
    with at_precision(bits):
        power = Powers(flint.arb_mat(to_flint(rows)), [to_ball(x) for row in X0 for x in row])
        return {L: flint.arb_mat(len(X0), len(X0[0]), power.at(L)) for L in depths}


def singular_values(X: flint.arb_mat, bits: int = BITS) -> list[flint.arb]:
    """Singular values of X [n, d], largest first, through the smaller Gram matrix.

    Balls where the eigenvalues of the Gram matrix isolate; midpoints of the same precision by
    mpmath where they do not (repeated singular values).
    """
    with at_precision(bits):
        gram = X * X.transpose() if X.nrows() <= X.ncols() else X.transpose() * X
        try:
            values = [v.real for v in flint.acb_mat(gram).eig()]
        except ValueError:
            values = []
        if not values or not all(v > 0 and v.rel_accuracy_bits() > 64 for v in values):
            values = _by_mpmath(gram, bits)
        return sorted((_root(v) for v in values), key=lambda s: s.mid(), reverse=True)


def _by_mpmath(gram: flint.arb_mat, bits: int) -> list[flint.arb]:
    size, digits = gram.nrows(), bits // 3
    with mp.workprec(bits):
        dense = mp.matrix(size, size)
        for i in range(size):
            for j in range(size):
                dense[i, j] = mp.mpf(gram[i, j].mid().str(digits, radius=False))
        moduli = [flint.arb(mp.nstr(abs(v), digits)) for v in mp.eigsy(dense, eigvals_only=True)]
    # What is lost in rounding is anything from 0 to that size, never a number.
    lost = max(moduli, key=lambda v: v.mid()) * flint.arb(2) ** (-bits * 9 // 10)
    return [v if v > lost else flint.arb(0).union(lost) for v in moduli]


def sigma_ratio(X: flint.arb_mat, index: int = 2, bits: int = BITS) -> flint.arb:
    """sigma_index / sigma_1."""
    sigma = singular_values(X, bits)
    with at_precision(bits):
        return sigma[index - 1] / sigma[0]


def hfc_norm(X: flint.arb_mat, bits: int = BITS) -> flint.arb:
    """||HFC||_F."""
    return _norms(X, bits)[0]


def hfc_lfc(X: flint.arb_mat, bits: int = BITS) -> flint.arb:
    """||HFC||_F / ||LFC||_F straight from X: its cancellation costs digits, of which there are
    enough."""
    hfc, lfc = _norms(X, bits)
    with at_precision(bits):
        return hfc / lfc


def _norms(X: flint.arb_mat, bits: int) -> tuple[flint.arb, flint.arb]:
    n, d = X.nrows(), X.ncols()
    with at_precision(bits):
        hfc, lfc = flint.arb(0), flint.arb(0)
        for j in range(d):
            column = [X[i, j] for i in range(n)]
            mean = sum(column, flint.arb(0)) / n
            hfc += sum(((x - mean) * (x - mean) for x in column), flint.arb(0))
            lfc += n * mean * mean
        return _root(hfc), _root(lfc)


def cosine(X: flint.arb_mat, first: int, second: int, bits: int = BITS) -> flint.arb:
    """cos of the angle between two tokens."""
    with at_precision(bits):
        x, y = _row(X, first), _row(X, second)
        return _dot(x, y) / (_dot(x, x) * _dot(y, y)).sqrt()


def angle_gap(X: flint.arb_mat, first: int, second: int, bits: int = BITS) -> flint.arb:
    """1 - |cos| of two tokens as sin^2 / (1 + |cos|), sin^2 from the 2 x 2 minors."""
    with at_precision(bits):
        x, y = _row(X, first), _row(X, second)
        minors = (x[i] * y[j] - x[j] * y[i] for i, j in combinations(range(len(x)), 2))
        wedge = sum((m * m for m in minors), flint.arb(0))
        size = _dot(x, x) * _dot(y, y)
        return wedge / size / (1 + abs(_dot(x, y)) / size.sqrt())


def worst_angle_gap(X: flint.arb_mat, bits: int = BITS) -> flint.arb:
    """The largest 1 - |cos| over pairs of tokens."""
    gaps = [angle_gap(X, i, j, bits) for i, j in combinations(range(X.nrows()), 2)]
    return max(gaps, key=lambda g: g.mid())


def effective_rank_excess(X: flint.arb_mat, bits: int = BITS) -> flint.arb:
    """erank - 1 from its definition: the exponential of the entropy of sigma / sum(sigma)."""
    sigma = [s for s in singular_values(X, bits) if s > 0]
    with at_precision(bits):
        total = sum(sigma, flint.arb(0))
        entropy = -sum((s / total * (s / total).log() for s in sigma), flint.arb(0))
        return entropy.exp() - 1


def log(value: flint.arb) -> float:
    """Natural logarithm of a positive ball as a float: sizes that no float holds are fine."""
    with at_precision(128):
        return float((+value).log().mid())


class Measure(Protocol):
    """What is measured on a state, with so many bits."""

    def __call__(self, X: flint.arb_mat, /, *, bits: int) -> flint.arb: ...


def slope(
    measure: Measure,
    A: Matrix,
    H: Matrix,
    X0: Matrix,
    depths: tuple[int, int],
    bits: int = BITS,
    residual: bool = True,
) -> float:
    """The factor per layer of a measured quantity between two depths.

    Where these bits leave it indistinguishable from 0, twice as many are taken.
    Raises `InputError` where _MOST_BITS are too few: it is 0.
    """
    for enough in doublings(bits, _MOST_BITS):
        sizes = [
            measure(X, bits=enough) for X in states(A, H, X0, depths, enough, residual).values()
        ]
        if all(x > 0 and x.rel_accuracy_bits() >= _GOOD_BITS for x in sizes):
            near, far = map(log, sizes)
            return float(np.exp((far - near) / (depths[1] - depths[0])))
    raise InputError(f"what is measured at the depths {depths} cannot be told from 0")


def random_case(seed: int, n: int, d: int, shift: Fraction) -> tuple[Matrix, Matrix, Matrix]:
    """(A, H, X0) in fractions from a seed: A > 0, H = shift I + noise, X0 Gaussian, rounded."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 40, size=(n, n))
    noise = rng.integers(-5, 6, size=(d, d))
    start = np.rint(1000 * rng.standard_normal((n, d))).astype(int)
    A = normalised_rows([[Fraction(int(x)) for x in row] for row in weights])
    H = [
        [Fraction(int(x), 10) + shift * int(i == j) for j, x in enumerate(row)]
        for i, row in enumerate(noise)
    ]
    return A, H, [[Fraction(int(x), 1000) for x in row] for row in start]


def _root(x: flint.arb) -> flint.arb:
    """Square root of what is known to be >= 0, though its ball may reach below."""
    return x.sqrt() if x.lower() >= 0 else flint.arb(0).union(x.upper().sqrt())


def _row(X: flint.arb_mat, i: int) -> list[flint.arb]:
    return [X[i, j] for j in range(X.ncols())]


def _dot(x: list[flint.arb], y: list[flint.arb]) -> flint.arb:
    return sum((a * b for a, b in zip(x, y, strict=True)), flint.arb(0))
