"""Hypothesis strategies: the spectrum is drawn first and the matrix built from it, sizes from 1.

Exact strategies yield nested Fractions; conjugation is by integer matrices of determinant 1, so the
spectrum (and the Jordan structure) of what they build is known without any computation.

>>> import hypothesis, oversmoothing
>>> matrices = oversmoothing.draw.with_spectrum(oversmoothing.draw.fractions(-1, 0), 2, 2)
>>> M, values = hypothesis.find(matrices, lambda drawn: True)
>>> len(M), all(-1 <= x <= 0 for x in values)
(2, True)
"""

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from oversmoothing.theory.numbers.exact import Matrix, product
from oversmoothing.theory.proofs.instances import from_integers
from oversmoothing.theory.support.sizes import Array

# A matrix, and its eigenvalues or those that count.
Known = tuple[Matrix, list[Fraction]]


def lists(
    elements: SearchStrategy[Any], low: int, high: int | None = None
) -> SearchStrategy[list[Any]]:
    """From low to high of these, or exactly low."""
    return st.lists(elements, min_size=low, max_size=low if high is None else high)


# Where an interval of length 1 is cut: more finely the nearer its ends.
_NEAR = [Fraction(1, k) for k in (500, 100, 30, 10, 6, 4, 3)]
_CUTS = [Fraction(0), *_NEAR, Fraction(1, 2), *(1 - t for t in reversed(_NEAR)), Fraction(1)]


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """The fraction of the smallest denominator strictly between, by continued fractions."""
    whole = math.floor(low)
    if whole + 1 < high:
        return Fraction(whole + 1)
    if low == whole:
        return whole + Fraction(1, math.floor(1 / (high - whole)) + 1)
    return whole + 1 / _simplest(1 / (high - whole), 1 / (low - whole))


@cache
def _fractions(
    low: int | Fraction, high: int | Fraction, denominator: int | None
) -> list[Fraction]:
    """Those in [low, high], the simplest first; without a denominator up to 12, with the ends and
    one in each piece of the interval, and those near its ends again, half of all."""
    # Sorted as integers: fractions compare a hundred times slower, and one claim has 300,000.
    values = [
        Fraction(k, q)
        for q in range(1, (denominator or 12) + 1)
        for k in sorted(
            range(math.ceil(low * q), math.floor(high * q) + 1), key=lambda k: (abs(k), k < 0)
        )
        if math.gcd(k, q) == 1
    ]
    if denominator is not None or low == high:
        return values
    cuts = [low + (high - low) * t for t in _CUTS]
    pieces = [Fraction(low), *map(_simplest, cuts, cuts[1:]), Fraction(high)]
    more = sorted({*pieces} - {*values}, key=lambda x: (x.denominator, abs(x), x < 0))
    ends = [*pieces[:5], *pieces[-5:]]
    return [*values, *more, *ends * (len(values) // 10)]


@cache
def fractions(
    low: int | Fraction, high: int | Fraction, denominator: int | None = None
) -> SearchStrategy[Fraction]:
    """Fractions in [low, high], simple ones, both ends and others close to them, however short the
    interval; or those alone whose denominators are not larger. Shrinks to the simplest.

    Drawn from the finite list of them: one choice, many times cheaper than numerator after
    denominator.
    """
    return st.sampled_from(_fractions(low, high, denominator))


@cache
def inside(
    low: int | Fraction, high: int | Fraction, denominator: int | None = None
) -> SearchStrategy[Fraction]:
    """The same in the open interval (low, high)."""
    return st.sampled_from([x for x in _fractions(low, high, denominator) if low < x < high])


def below_one(denominator: int | None = None) -> SearchStrategy[Fraction]:
    """The same in [0, 1)."""
    return fractions(0, 1, denominator).filter(lambda x: x < 1)


# ------------------------------------------------------------------------------------- spectra


def attention_spectra(min_size: int = 1, max_size: int = 4) -> SearchStrategy[list[Fraction]]:
    """Real eigenvalues of A other than 1, in the open interval (-1, 1)."""
    return lists(inside(-1, 1), min_size, max_size)


# ------------------------------------------------------------------------------------ matrices


@cache
@st.composite
def unimodular(draw: st.DrawFn, size: int) -> tuple[Matrix, Matrix]:
    """(S, S^-1) of integers, S a product of elementary matrices."""
    eye: list[list[Any]] = [[int(i == j) for j in range(size)] for i in range(size)]
    S, inverse = eye, [[*row] for row in eye]
    if size > 1:
        for _ in range(draw(st.integers(0, 2 * size))):
            i = draw(st.integers(0, size - 1))
            j = draw(st.sampled_from([k for k in range(size) if k != i]))
            k = draw(st.integers(-2, 2))
            # S <- S E, S^-1 <- E^-1 S^-1 with E = I + k e_i e_j^T.
            for row in S:
                row[j] += k * row[i]
            inverse[i] = [x - k * y for x, y in zip(inverse[i], inverse[j], strict=True)]
    return S, inverse


@st.composite
def with_jordan_blocks(draw: st.DrawFn, blocks: list[tuple[Fraction, int]]) -> Matrix:
    """A matrix with exactly these Jordan blocks (eigenvalue, size)."""
    size = sum(k for _, k in blocks)
    J = [[Fraction(0)] * size for _ in range(size)]
    start = 0
    for value, k in blocks:
        for i in range(start, start + k):
            J[i][i] = value
            if i + 1 < start + k:
                J[i][i + 1] = Fraction(1)
        start += k
    S, inverse = draw(unimodular(size))
    return product(S, J, inverse)


@st.composite
def with_complex_pair(draw: st.DrawFn) -> tuple[Matrix, complex]:
    """A 2 x 2 matrix with eigenvalues x +- iy, and x + iy."""
    x, y = draw(fractions(-3, 2)), draw(fractions(Fraction(1, 12), 3))
    S, inverse = draw(unimodular(2))
    return product(S, [[x, -y], [y, x]], inverse), complex(x, y)


@st.composite
def with_spectrum(
    draw: st.DrawFn, values: SearchStrategy[Fraction], low: int, high: int, *always: Fraction
) -> tuple[Matrix, list[Fraction]]:
    """A diagonalisable matrix with low to high of these eigenvalues, `always` beside them, and the
    list of all."""
    spectrum = [*always, *draw(lists(values, low, high))]
    return draw(with_jordan_blocks([(value, 1) for value in spectrum])), spectrum


def value_projections(max_size: int = 4) -> SearchStrategy[tuple[Matrix, list[Fraction]]]:
    """H with a real, diagonalisable, rational spectrum, and that spectrum."""
    return with_spectrum(fractions(-4, 3), 1, max_size)


# Strategies are built once for each size: building them costs more than drawing from them.


@cache
def matrices(entries: SearchStrategy[Any], rows: int, columns: int) -> SearchStrategy[Any]:
    """Matrices of such entries, as lists of rows."""
    return lists(lists(entries, columns), rows)


@cache
def _row_weights(n: int, lowest: int) -> SearchStrategy[list[list[int]]]:
    row = lists(st.integers(lowest, 9), n)
    # A filter is prepared anew for every draw.
    return lists(row if lowest else row.filter(any), n)


def shares(weights: list[int]) -> list[Fraction]:
    """Each over the sum of all."""
    return [Fraction(weight, sum(weights)) for weight in weights]


# What is added to entry first + step i of row i, and first and step: A comes close to the identity,
# the reversal or a rotation of the tokens, its eigenvalues to 1, -1 or others on the circle.
_CLOSE = [*[(0, 0, 1)] * 5, (50, 0, 1), *[(300, 0, 1)] * 3, (50, -1, -1), (50, 1, 1)]


@st.composite
def attention(draw: st.DrawFn, min_size: int = 1, max_size: int = 5, zeros: bool = False) -> Matrix:
    """A rational row-stochastic A, entrywise positive unless zeros are asked for; some are close to
    a permutation."""
    n = draw(st.integers(min_size, max_size))
    weight, first, step = draw(st.sampled_from(_CLOSE))
    rows = [[*row] for row in draw(_row_weights(n, 0 if zeros else 1))]
    for i, row in enumerate(rows):
        row[(first + step * i) % n] += weight
    return [shares(row) for row in rows]


@st.composite
def causal_attention(draw: st.DrawFn, max_size: int = 5, min_size: int = 2) -> Matrix:
    """Row i of integer weights over the tokens up to i."""
    n = draw(st.integers(min_size, max_size))
    rows = [draw(lists(st.integers(1, 9), i)) for i in range(1, n + 1)]
    return [shares([*row, *[0] * (n - len(row))]) for row in rows]


def heads(A: SearchStrategy[Matrix], d: int, most: int) -> SearchStrategy[list[Any]]:
    """One to `most` heads (A, W), W [d, d] with small entries."""
    return lists(st.tuples(A, matrices(fractions(-2, 2, 4), d, d)), 1, most)


@st.composite
def two_token_attention(draw: st.DrawFn) -> tuple[Matrix, Fraction]:
    """A positive 2 x 2 A and its eigenvalue a in (-1, 1), chosen first."""
    a = draw(inside(-1, 1))
    # A = [[1-p, p], [q, 1-q]] has a = 1 - p - q; p, q in (0, 1).
    total = 1 - a
    low, high = max(Fraction(0), total - 1), min(Fraction(1), total)
    share = draw(fractions(Fraction(1, 10), Fraction(9, 10), 10))
    p = low + (high - low) * share
    q = total - p
    return [[1 - p, p], [q, 1 - q]], a


_SMALL = st.integers(-9, 9)


@cache
def states(n: int, d: int) -> SearchStrategy[Matrix]:
    """X_0 in small integers, possibly zero."""
    return matrices(_SMALL, n, d).map(from_integers)


@st.composite
def cases(
    draw: st.DrawFn, A: SearchStrategy[Any] | None = None, H: SearchStrategy[Any] | None = None
) -> tuple[Matrix, Matrix, Matrix]:
    """(A, H, X0) in fractions from a strategy of A and one of H, each of matrices or of matrices
    with what is known of them; any positive A and any H with small entries where none is given."""
    # A after H: with nothing but X0 behind them, tokens are what shrinks first.
    h, a = draw(_projections(3) if H is None else H), draw(attention(1, 4) if A is None else A)
    a, h = (M[0] if isinstance(M, tuple) else M for M in (a, h))
    return a, h, draw(states(len(a), len(h)))


@cache
def _projections(max_d: int) -> SearchStrategy[Matrix]:
    return st.integers(1, max_d).flatmap(lambda d: matrices(fractions(-3, 2, 6), d, d))


def exact_cases(max_n: int = 4, max_d: int = 3) -> SearchStrategy[tuple[Matrix, Matrix, Matrix]]:
    """(A, H, X0) in fractions: positive A, any H with small entries."""
    return cases(attention(1, max_n), _projections(max_d))


# ------------------------------------------------------------------------------ float states

# What a seed determines is drawn from it: seeds and exponents shrink quickly.
SEEDS = st.integers(min_value=0, max_value=2**32 - 1)


def general_state(seed: int, n: int, d: int, size: int = 10**9) -> Matrix:
    """X_0 in integers of nine digits: in general position, as good as certainly."""
    return from_integers(np.random.default_rng(seed).integers(-size, size, (n, d)))


@st.composite
def token_states(
    draw: st.DrawFn, *, spreads: tuple[int, int] = (-15, 1), scales: tuple[int, int] = (-300, 300)
) -> Array:
    """X = scale (1 m + spread G) [n, d], spread and scale powers of ten, m and G Gaussian."""
    n, d = draw(st.integers(1, 5), label="n"), draw(st.integers(1, 4), label="d")
    spread = 10.0 ** draw(st.integers(*spreads), label="log10 spread")
    scale = 10.0 ** draw(st.integers(*scales), label="log10 scale")
    rng = np.random.default_rng(draw(SEEDS, label="seed"))
    X: Array = rng.standard_normal(d) + spread * rng.standard_normal((n, d))
    scaled: Array = X * scale
    return scaled


# ------------------------------------------- attention whose whole spectrum is rational, by choice


def _weights(size: int) -> SearchStrategy[list[Fraction]]:
    """A positive probability vector in small fractions."""
    return lists(st.integers(1, 12), size).map(shares)


def walsh(p: list[Fraction]) -> tuple[Matrix, list[Fraction]]:
    """A_gh = p(g xor h) on 2, 4 or 8 tokens, and its eigenvalues other than one copy of 1: the
    Walsh transform of p, real and rational."""
    size = range(len(p))
    values = [
        sum(((-1) ** (g & k).bit_count() * p[k] for k in size), Fraction(0)) for g in size[1:]
    ]
    return [[p[g ^ h] for h in size] for g in size], values


def walsh_attention() -> SearchStrategy[tuple[Matrix, list[Fraction]]]:
    """The same of drawn weights p."""
    return st.sampled_from([2, 4, 8]).flatmap(_weights).map(walsh)


@st.composite
def circulant_attention(draw: st.DrawFn) -> tuple[Matrix, list[tuple[Fraction, Fraction]]]:
    """A circulant on 4 tokens, A_gh = p(h - g), and its eigenvalues (Re, Im) other than 1:
    p0 - p2 +- i(p1 - p3) and p0 - p1 + p2 - p3."""
    p = draw(_weights(4))
    u, v, w = p[0] - p[2], p[1] - p[3], p[0] - p[1] + p[2] - p[3]
    A = [[p[(h - g) % 4] for h in range(4)] for g in range(4)]
    return A, [(u, v), (u, -v), (w, Fraction(0))]


@st.composite
def gaussian_points(draw: st.DrawFn, bound: int = 4) -> tuple[Fraction, Fraction]:
    """A complex number in fractions, (Re, Im)."""
    return draw(fractions(-bound, bound, 8)), draw(fractions(-bound, bound, 8))


def gaussian_disc() -> SearchStrategy[tuple[Fraction, Fraction]]:
    """A complex number in fractions, (Re, Im), in the open unit disc."""
    return gaussian_points(1).filter(lambda a: a[0] ** 2 + a[1] ** 2 < 1)
