"""What the claims of t6.md execute."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import flint
import sympy as sp
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.t4 import radii
from oversmoothing.theory.depth.ratios import ball_ratios
from oversmoothing.theory.proofs.kit import Matrix, by, draw, exact, search, spectra, verdict
from oversmoothing.theory.spectra.algebraic import factors
from oversmoothing.theory.verdict.by_fractions import exact_dominance, jordan_size


# T6a
def character() -> None:
    P, Q, t = sp.symbols("P Q t", positive=True)
    unit = t - 1 / t
    left = (P - 1 / P) * (Q - 1 / Q) / unit**2
    right = (P * Q / t - t / (P * Q)) / unit + (P / t - t / P) * (Q / t - t / Q) / unit**2
    assert sp.simplify(sp.together(left - right)) == 0


def exponential() -> None:
    h, a = sp.symbols("h a", nonzero=True)
    N, M = (sp.Matrix(k, k, lambda i, j: int(j == i + 1)) for k in (3, 2))
    log_h = N / h - (N / h) ** 2 / 2
    log_a = M / a
    Z = sp.kronecker_product(log_h, sp.eye(2)) + sp.kronecker_product(sp.eye(3), log_a)
    series, power = sp.eye(6), sp.eye(6)
    for k in range(1, 6):
        power = power * Z
        series += power / sp.factorial(k)
    target = sp.kronecker_product(sp.eye(3) + N / h, sp.eye(2) + M / a)
    assert (series - target).applyfunc(sp.simplify) == sp.zeros(6, 6)


def nilpotent_ranks() -> None:
    p, q, k = sp.symbols("p q k")
    assert sp.expand((p - k + 1) * (q - k + 1) - (p - k) * (q - k) - (p + q - 2 * k + 1)) == 0
    assert sp.expand((p + q - 2 * k + 1) - (p + q - 2 * (k + 1) + 1)) == 2


def growth() -> None:
    # The corner of J_s(mu)^L is C(L, s-1) mu^(L-s+1), the largest entry in L: s = 3, L = 1..12.
    mu = Fraction(3, 2)
    for L in range(1, 13):
        corner = exact.power(exact.matrix("3/2 1 0; 0 3/2 1; 0 0 3/2"), L)[0][2]
        assert corner == (Fraction(L * (L - 1), 2) * mu ** (L - 2) if L >= 2 else 0)


_VALUES = st.sampled_from([Fraction(x) for x in ("0", "1", "-1", "1/2", "-2")])
_BLOCKS = draw.lists(st.tuples(_VALUES, st.integers(1, 3)), 1, 2)
_DEFECTIVE_A = _BLOCKS.flatmap(draw.with_jordan_blocks)


def block_sizes(p: int, h_is_zero: bool, q: int, a_is_zero: bool) -> list[int]:
    """Sizes of the Jordan blocks of J_p(h) (x) J_q(a), largest first."""
    small, large = min(p, q), max(p, q)
    if h_is_zero and a_is_zero:
        return [small] * (large - small + 1) + [k for k in range(small - 1, 0, -1) for _ in "ha"]
    if h_is_zero or a_is_zero:
        return [q] * p if a_is_zero else [p] * q
    return [p + q - 1 - 2 * k for k in range(small)]


def _blocks(M: Matrix) -> list[tuple[flint.fmpq, int]]:
    """(eigenvalue, size) of each Jordan block of a matrix with a rational spectrum."""
    return [(factor.rational_root, k) for factor in factors(M) for k in factor.jordan]


@search(_DEFECTIVE_A, _DEFECTIVE_A)
def law_a(A: Matrix, H: Matrix) -> None:
    predicted = Counter(
        (1 + h * a, size)
        for (h, p), (a, q) in product(_blocks(H), _blocks(A))
        for size in block_sizes(p, h == 0, q, a == 0)
    )
    counts = Counter(_blocks(exact.plus_identity(exact.kronecker(H, A))))
    assert counts == predicted, f"{dict(counts)} is not {dict(predicted)}"


# T6b
def linear_in_l() -> None:
    # H = [[0, 1], [0, 0]], A = J2: HFC constant, c_L = c_0 + L (second, 0): ratio^2 = 13/(...).
    X = exact.matrix("1 2; 3 5")
    for L in range(1, 30):
        X = exact.layer(exact.J2, exact.matrix("0 1; 0 0"), X)
        hfc, lfc = exact.squared_norms(X)
        mean = Fraction(2) + L * Fraction(7, 2), Fraction(7, 2)
        assert hfc == Fraction(13, 2) and lfc == 2 * (mean[0] ** 2 + mean[1] ** 2)


def _sizes(A: Matrix, H: Matrix) -> tuple[int | None, int, int]:
    """The comparison of rho_C with rho_Q, and the largest blocks s_C, s_Q there."""
    modes = exact_dominance(A, H)
    consensus, quotient = (max(map(jordan_size, m)) for m in (modes.consensus, modes.quotient))
    return modes.comparison, consensus, quotient


def minus_one_zero() -> None:
    # h = -1/2 in a block of size 3, A diagonalisable: the moduli decide, the blocks do not.
    H = exact.matrix("-1/2 1 0; 0 -1/2 1; 0 0 -1/2")
    assert exact_dominance(exact.AA, H).comparison == -1
    answer = verdict(A=exact.AA, H=H)
    assert (answer.verdict, answer.tends_to) == ("NON_SMOOTHING", "infinity")


@st.composite
def _ties(draw_: st.DrawFn) -> tuple[Matrix, Matrix, Matrix]:
    """A diagonal tie h = -2/(1+a), or h = 0, with Jordan blocks of H drawn; two tokens."""
    A, a = draw_(draw.two_token_attention())
    if draw_(st.booleans()):  # a = 0: there the blocks of H are longer than those of the quotient
        A, a = [A[0], A[0]], Fraction(0)
    tied = draw_(st.sampled_from([Fraction(0), -2 / (1 + a)]))
    blocks = [(tied, draw_(st.integers(1, 3)))]
    if draw_(st.booleans()):
        blocks.append((Fraction(-1, 2), 1))
    H = draw_(draw.with_jordan_blocks(blocks))
    return A, H, draw.general_state(draw_(draw.SEEDS), 2, len(H))


def log_growth(A: Matrix, H: Matrix, X0: Matrix, near: int, far: int) -> float:
    """log HFC/LFC at the far depth less that at the near one, in balls; NaN unless both are
    finite."""
    ratios = ball_ratios(A, H, X0, spectra.stationary(A), [near, far])
    first, last = ratios[near].log, ratios[far].log
    return math.nan if first is None or last is None else last - first


def measure_b(effort: by.Effort) -> by.Measurements:
    h, start = exact.matrix("-5/3"), exact.column("1 2 5")
    two, three = exact.matrix("1 2; 3 5"), exact.matrix("1 2; 3 5; -2 7")
    J3, both = exact.matrix("0 1 0; 0 0 1; 0 0 0"), exact.matrix("-5/3 1; 0 -5/3")
    for name, A, H, X0, order in (
        ("H = [[0,1],[0,0]], A = exact.J2", exact.J2, exact.matrix("0 1; 0 0"), two, -1),
        ("H = J_3(0), A = exact.J2", exact.J2, J3, exact.matrix("1 2 1; 3 5 -2"), -2),
        ("H = J_2(-4/3), a = 1/2: sizes 2 and 2", exact.AA, exact.matrix("-4/3 1; 0 -4/3"), two, 0),
        ("A defective, doubly stochastic, h = -5/3", exact.DEFECTIVE, h, start, 1),
        ("A and H defective: sizes 2 and 3", exact.DEFECTIVE, both, three, 1),
        ("A defective, not doubly stochastic: saturates", exact.SKEW_DEFECTIVE, h, start, 0),
    ):
        _, consensus, quotient = _sizes(A, H)
        if A is not exact.SKEW_DEFECTIVE:
            yield by.Measurement(f"{name}: s_Q - s_C", order, quotient - consensus, 0)
        power = log_growth(A, H, X0, 10**5, 10**7) / math.log(100)
        yield by.Measurement(f"{name}: power of L", order, power, 1e-3)


@search(_ties(), at="A H X0")
def law_b(A: Matrix, H: Matrix, X0: Matrix) -> None:
    """d log t / d log L between 10^8 and 10^10 layers is s_Q - s_C (t from HFC and c, in balls).

    That deep, because a small leading coefficient of X_0 delays the power of L by its inverse.
    """
    comparison, consensus, quotient = _sizes(A, H)
    assume(comparison == 0 and radii(exact_dominance(A, H))[0] > 1e-3)
    predicted = quotient - consensus
    order = log_growth(A, H, X0, 10**8, 10**10) / math.log(100)
    assume(not math.isnan(order))
    if predicted < 0 or A[0][1] == A[1][0]:
        assert abs(order - predicted) < 0.05, f"order {order:.4f}, predicted {predicted}"
    else:
        assert order > -0.05, f"HFC/LFC decays like L^{order:.4f}"
