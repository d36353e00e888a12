"""Numerical rank 1 in the limit, and tokens that move apart."""

import sympy as sp

from oversmoothing.theory.proofs.all_depths import L, induction, squared_ratio
from oversmoothing.theory.proofs.kit import AA, by, exact, given

_H, _X0 = exact.diagonal("-1/4 -1/2"), exact.matrix("0 -1; 2 3")


def _state(a: sp.Expr, b: sp.Expr, c: sp.Expr) -> sp.Matrix:
    """m - d and m + d, m = (a, b), d = (c, 2 a)."""
    mean, half = sp.Matrix([[a, b]]), sp.Matrix([[c, 2 * a]])
    return sp.Matrix.vstack(mean - half, mean + half)


_BASES = [sp.Rational(base) for base in ("3/4", "1/2", "7/8")]
_ANY = sp.symbols("a b c", positive=True)


def _closed() -> None:
    """The tokens are m - d and m + d with m = ((3/4)^L, (1/2)^L), d = ((7/8)^L, 2 (3/4)^L)."""
    induction(AA, _H, _X0, _state(*(base**L for base in _BASES)))


def _rank() -> sp.Matrix:
    """With a, b, c = (3/4)^L, (1/2)^L, (7/8)^L: det X_L = 4 a^2 - 2 b c, between 0 and 4 a^2, and
    ||X_L||_F^2 = 10 a^2 + 2 b^2 + 2 c^2. The numerical rank is 1 + (sigma_2/sigma_1)^2 <= 1 + 4
    det^2/||X||_F^4 <= 1 + 16 (a/c)^4, and a/c = (6/7)^L: it tends to 1."""
    (a, b, c), (p, q, r) = _ANY, _BASES
    X = _state(a, b, c)
    assert p / r == sp.Rational(6, 7) and q * r < p * p
    squares = sum(entry**2 for entry in X) - (10 * a**2 + 2 * b**2 + 2 * c**2)
    return sp.Matrix([X.det() - (4 * a**2 - 2 * b * c), squares])


def _apart() -> sp.Expr:
    """(HFC/LFC)^2 = (c^2 + 4 a^2)/(a^2 + b^2), at least (c/a)^2/2 = (7/6)^(2L)/2: it tends to
    infinity."""
    a, b, c = _ANY
    return squared_ratio(_state(a, b, c)) - (c**2 + 4 * a**2) / (a**2 + b**2)


CLAIM = by.refuted(
    name="N-2502.04591-rank-alone",
    statement="The numerical rank of the tokens tends to 1 only where they oversmooth in the sense "
    "of HFC/LFC -> 0 (our reading of the abstract, which proposes the rank as the measure).",
    latex=r"\|X_L\|_F^2/\|X_L\|_2^2\to1\implies\mathrm{HFC}/\mathrm{LFC}\to0",
    source="arXiv 2502.04591, numerical rank as the measure (abstract), our reading",
    wording="our reading of the abstract; whether the paper states this implication, and of which "
    "layers, was not at hand",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A, given.REAL_H, given.NON_SMOOTHING),
    title="a sharpening layer of rank 1",
    at=((AA, _H, _X0),),
    steps=(_closed, _rank, _apart),
    repaired_by="N-2502.04591-rank",
    further="What generic states do is T4c: rank 1 is common on both sides of the verdict.",
)
