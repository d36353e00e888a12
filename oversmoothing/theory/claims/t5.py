"""What the claims of t5.md execute."""

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import partial

import flint
import numpy as np
import sympy as sp
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.lemmas import angle as angle, with_state
from oversmoothing.theory.claims.t4 import radii
from oversmoothing.theory.depth import recurrence as measured
from oversmoothing.theory.depth.bounds import (
    certified_depth_in_balls,
    effective_rank_excess,
    power_depth,
    rank_rate,
    ratio_floor,
)
from oversmoothing.theory.depth.ratios import ball_ratios
from oversmoothing.theory.numbers.exact import to_float
from oversmoothing.theory.numbers.rounding import at_precision, to_ball
from oversmoothing.theory.proofs.kit import (
    Matrix,
    by,
    draw,
    exact,
    given,
    is_zero,
    search,
    spectra,
    verdict,
)
from oversmoothing.theory.spectra.layer_discs import attention_spectrum
from oversmoothing.theory.verdict.by_fractions import exact_dominance

# T5a
_FAR = 20_000
# a = 1/2 twice (A = I/2 + 1 pi^T/2, not doubly stochastic) and a non-normal complex pair of h.
_DOUBLE = exact.matrix("3/4 1/8 1/8; 1/4 5/8 1/8; 1/4 1/8 5/8")
_SPIRAL = exact.matrix("-1/2 -1; 1/4 -1/2")
_START = exact.matrix("1 2; 3 5; -2 1")


def repeated_real_a_oscillates() -> None:
    # mu = 3/4 +- i/4, mu^2/|mu|^2 = (4 + 3i)/5, no root of unity: the ratio never settles.
    mu = sp.Rational(3, 4) + sp.I / 4
    assert sp.expand(mu**2 / (sp.Rational(5, 8)) - sp.Rational(4, 5) - 3 * sp.I / 5) == 0
    answer = verdict(A=_DOUBLE, H=_SPIRAL, X0=_START)
    assert (answer.verdict, answer.tends_to) == ("NON_SMOOTHING", "oscillates")
    ratios = ball_ratios(_DOUBLE, _SPIRAL, _START, spectra.stationary(_DOUBLE), range(9000, 9020))
    present = [r.log for r in ratios.values() if r.log is not None]
    assert max(present) - min(present) > 0.1


def one_real_a_does_not() -> None:
    # A3 with a complex pair of h: every real mode is v g_L^T, the ratio is that of v alone.
    H = exact.matrix("-1/2 -1; 1/16 -1/2")
    answer = verdict(A=exact.A3, H=H, X0=_START)
    assert (answer.verdict, answer.tends_to) == ("NON_SMOOTHING", "constant")
    assert answer.limit is not None and abs(answer.limit - 8 * math.sqrt(2) / 5) < 1e-9


def floor(effort: by.Effort) -> by.Settled:
    """A complex dominant a: over 2000 layers the ratio never falls below the floor, and swings."""
    pi = spectra.stationary(exact.ROTATING)
    floor = 1 / math.sqrt(3 * float(spectra.squared_deviation(pi)))
    ratios = ball_ratios(
        exact.ROTATING, exact.matrix("-9/10"), exact.matrix("1; 2; 4"), pi, range(60, 2060)
    )
    values = [r.value for r in ratios.values() if r.value is not None]
    if min(values) < floor:
        yield f"ROTATING, h = -9/10: ratio {min(values)} below the floor {floor}"
    yield max(values) > 10 * min(values)


@search(draw.exact_cases(3, 2), at="A H X0")
def law_a(A: Matrix, H: Matrix, X0: Matrix) -> None:
    assume(len(A) > 1)
    dominance = exact_dominance(A, H)
    assume(dominance.comparison == 1 and given.contains_both_radii(A, H, X0))
    rho_c, rho_q = radii(dominance)
    assume(rho_q > 0)
    ratio = ball_ratios(A, H, X0, spectra.stationary(A), [_FAR])[_FAR]
    assume(ratio.log is not None)
    assert ratio.log is not None
    # Jordan blocks and phases leave a factor L^m: log(L)/L = 5e-4 a layer each.
    assert abs(ratio.log / _FAR - math.log(rho_q / rho_c)) < 4e-3, "the rate is not rho_Q/rho_C"


# T5b
def from_eigenvectors(values: str, vectors: str) -> Matrix:
    """sum_i a_i v_i v_i^T/||v_i||^2 over orthogonal v_i, the rows of `vectors`."""
    V = exact.matrix(vectors)
    sizes = [a / exact.dot(v, v) for a, v in zip(map(Fraction, values.split()), V, strict=True)]
    return exact.product(exact.transposed(V), exact.diagonal(sizes), V)


def minor_coefficient() -> None:
    # In a 2 x 2 minor of C_L with Jordan couplings, c_11 c_22 keeps the coefficient (mu_11 mu_22)^L
    # exactly: the couplings bring in entries from below and from the right only.
    c = sp.Matrix(2, 2, sp.symbols("c0:4"))
    m = sp.symbols("m0:4")
    x, y, z, u, v = sp.symbols("x y z u v")
    first = m[0] * c[0, 0] + x * c[0, 1] + y * c[1, 0] + z * c[1, 1]
    second = [m[2] * c[1, 0] + v * c[1, 1], m[3] * c[1, 1]]
    G = sp.Matrix([[first, m[1] * c[0, 1] + u * c[1, 1]], second])
    multiple = sp.Poly(sp.expand(G.det()), *c).coeff_monomial(c[0, 0] * c[1, 1])
    assert is_zero(multiple - m[0] * m[3])


_PAIRWISE = from_eigenvectors("1 1/2 1/10", "1 1 1; 1 -2 1; 1 0 -1")
_SPACED = _PAIRWISE, exact.diagonal("1/2 3/10"), exact.matrix("1 2; 3 -1; -2 7")
_ZERO_ENTRIES = from_eigenvectors("1 -1/4 -1/8 1/2", "1 1 1 1; 1 -1 0 0; 0 0 1 -1; 1 1 -1 -1")


def exceptions() -> None:
    # Both matrices are positive and row-stochastic, and r_sigma = 11/12 for the second.
    for A in (_PAIRWISE, _ZERO_ENTRIES):
        assert given.is_positive(A)
    a, h = [-0.25, -0.125, 0.5], [-0.5, -0.25]
    assert abs(rank_rate(a, h) - 11 / 12) < 1e-15


def _slope(
    what: str,
    predicted: float,
    measure: measured.Measure,
    case: tuple[Matrix, Matrix, Matrix],
    depths: tuple[int, int] = (400, 800),
    tolerance: float = 1e-6,
) -> by.Measurement:
    return by.Measurement(what, predicted, measured.slope(measure, *case, depths), tolerance)


def measure_b(effort: by.Effort) -> by.Measurements:
    sigma, worst = measured.sigma_ratio, measured.worst_angle_gap
    gap = partial(measured.angle_gap, first=0)
    zeros = _ZERO_ENTRIES, exact.diagonal("-1/2 -1/4"), exact.matrix("1 2; 3 -1; -2 7; 5 1")
    two, three = ([0.5, 0.1], [0.5, 0.3]), ([-0.25, -0.125, 0.5], [-0.5, -0.25])
    # Tokens 1 and 3 see (1, 0, -1) alone: (1.05 * 1.3/1.5 ... )/1.5, computed from mu.
    faster = max(1.03 / 1.5, 1.05 * 1.3 / 1.5**2) ** 2
    only, every = "over tokens with v_k != 0: (7/9)^2", "over all tokens: (33/34)^2"
    yield from [
        _slope("sigma_2/sigma_1, eigenvectors (1,-2,1), (1,0,-1)", rank_rate(*two), sigma, _SPACED),
        _slope("worst 1 - |cos| there", rank_rate(*two) ** 2, worst, _SPACED),
        _slope("1 - |cos| of tokens 1 and 3, faster", faster, partial(gap, second=2), _SPACED),
        # Dominant v = (1, -1, 0, 0): among tokens 1, 2 only v = 1 and (1, 1, -1, -1) turn x.
        _slope("sigma_2/sigma_1, v = (1,-1,0,0)", rank_rate(*three), sigma, zeros),
        _slope(f"1 - |cos| {only}, not r_sigma^2", (7 / 9) ** 2, partial(gap, second=1), zeros),
        _slope(
            f"1 - |cos| {every}, not r_sigma^2", (33 / 34) ** 2, worst, zeros, (1600, 3200), 1e-4
        ),
    ]
    for seed, n, d in ((1, 4, 3), (3, 3, 3), (5, 2, 2)):
        A, H, X0 = measured.random_case(seed, n, d, Fraction(1, 2))
        spectra = attention_spectrum(to_float(A)), np.linalg.eigvals(to_float(H))
        for what, power, measure in (("sigma_2/sigma_1", 1, sigma), ("1 - |cos|", 2, worst)):
            name = f"random case {seed}, n = {n}, d = {d}: {what}"
            rate = rank_rate(*spectra) ** power
            yield _slope(name, rate, measure, (A, H, X0), tolerance=5e-3)


@search(
    with_state(draw.attention(2, 3), draw.with_spectrum(draw.fractions(-2, 2, 4), 2, 3), 10**9),
    at="A H",
)
def slope_law(A: Matrix, H: Matrix, values: list[Fraction], X0: Matrix) -> None:
    """limsup over a window of (log sigma_2/sigma_1)/L, in balls, against r_sigma."""
    predicted = rank_rate(attention_spectrum(to_float(A)), [float(v) for v in values])
    # Balls hold the square of a ratio down to some 2^-3686: r_sigma = 1/11 at 600 layers is below.
    depth, tolerance = (600, 0.05) if predicted > 0.2 else (200, 0.15)
    if predicted <= 0.05:
        depth, tolerance = 20, 1.2
    depths = range(depth, depth + 6)
    ratios = [measured.sigma_ratio(X) for X in measured.states(A, H, X0, depths).values()]
    logs = [measured.log(s) / L for s, L in zip(ratios, depths, strict=True) if s > 0]
    if predicted < 1e-6:
        assert all(x < -5 for x in logs), "sigma_2/sigma_1 should vanish at once"
        return
    assert abs(max(logs) - np.log(predicted)) < tolerance, f"{np.exp(max(logs))} is not {predicted}"


# T5c
def third_order() -> sp.Expr:
    # l = log(1/eps) held as a symbol: nothing is of order eps^2 l or eps^2.
    eps, ell = sp.symbols("epsilon ell", positive=True)
    erank = (1 + eps) * sp.exp(eps * ell / (1 + eps))
    second = 1 + eps * (1 + ell) + eps**2 * ell**2 / 2
    third = eps**3 * (ell**3 / 6 - ell**2 / 2)
    return sp.expand(sp.series(erank, eps, 0, 4).removeO() - second - third)


def exponential_series() -> None:
    S, E, t = sp.symbols("S E t", positive=True)
    series = sp.series(sp.exp(t), t, 0, 5).removeO().subs(t, E / (1 + S))
    expected = 1 + S + sum(E**k / (sp.factorial(k) * (1 + S) ** (k - 1)) for k in range(1, 5))
    assert is_zero(sp.together((1 + S) * series - expected))


def third_value_matters() -> None:
    # sigma_3 = eps^(3/2): its own first-order term exceeds (1/2) eps^2 log^2 eps by far.
    for exponent in (8, 16, 32):
        eps = 10.0**-exponent
        third = eps**1.5
        own = third * (1 - np.log(third))
        assert own > 10 * 0.5 * eps**2 * np.log(eps) ** 2


@search(draw.lists(draw.fractions(0, 1, 997).filter(lambda x: x > 0), 1, 5))
def law_c(values: list[Fraction]) -> None:
    with at_precision(400):
        s = [to_ball(v) for v in values]
        S, E = sum(s, flint.arb(0)), -sum((x * x.log() for x in s), flint.arb(0))
        # erank - 1 of singular values in the ratios 1 : s, from the definition.
        p = [x / (1 + S) for x in (flint.arb(1), *s)]
        excess = (-sum((x * x.log() for x in p), flint.arb(0))).exp() - 1
        slack = flint.arb(2) ** -300
        assert excess + slack > S + E + E * E / (2 * (1 + S)), "below the lower bound"
        assert excess - slack < S + E + E * E / 2 * E.exp(), "above the upper bound"
    floats = effective_rank_excess([float(v) for v in values])
    assert abs(floats / float(excess.mid()) - 1) < 1e-12


# T5d
def left_eigenvector_bound() -> None:
    a, h = sp.symbols("a h", real=True)
    p, q = sp.symbols("p q", real=True)
    # A = S diag(1, a) S^-1 with S = [[1, p], [1, p - 1]]: rows of S^-1 are left eigenvectors.
    S, U = sp.Matrix([[1, p], [1, p - 1]]), sp.Matrix([[1, q], [0, 1]])
    A, H = S * sp.diag(1, a) * S.inv(), U * sp.diag(h, 3 * h) * U.inv()
    X = sp.Matrix(2, 2, sp.symbols("x0:4", real=True))
    w, z = S.inv()[1, :], U.inv()[0, :]
    assert is_zero(w * sp.ones(2, 1))
    assert is_zero(w * (X + A * X * H.T) * z.T - (1 + h * a) * (w * X * z.T))
    assert is_zero(sp.ones(1, 2).T - S[:, 0])


def kappa_multiplies() -> None:
    # The 2-norm of a Kronecker product is the product: (V (x) U)* (V (x) U) = V*V (x) U*U.
    V, U = (sp.Matrix(2, 2, sp.symbols(f"{name}0:4", real=True)) for name in "vu")
    left = sp.kronecker_product(V, U)
    assert is_zero((left.T * left - sp.kronecker_product(V.T * V, U.T * U)).applyfunc(sp.expand))


@st.composite
def _drawn(draw_: st.DrawFn) -> tuple[Matrix, Matrix, Matrix, Fraction]:
    A = draw_(draw.attention(2, 4))
    values = draw_(st.lists(draw.fractions(-3, 2, 6), min_size=1, max_size=3, unique=True))
    H = draw_(draw.with_jordan_blocks([(v, 1) for v in values]))
    eps = draw_(st.sampled_from([Fraction(1, k) for k in (2, 20, 1000, 10**9)]))
    return A, H, draw_(draw.states(len(A), len(H))), eps


def _above(A: Matrix, H: Matrix, X0: Matrix, eps: float, depths: Iterable[int]) -> list[int]:
    """The depths at which HFC/LFC, in balls, is not at most eps."""
    ratios = ball_ratios(A, H, X0, spectra.stationary(A), depths)
    return [L for L, r in ratios.items() if r.value is None or r.value > eps]


def defective(effort: by.Effort) -> by.Settled:
    """A defective H: no kappa, but powers certify; the transient is real."""
    H = exact.matrix("1/2 2; 0 1/2")
    floats = to_float(exact.A3), to_float(H), to_float(_START)
    if certified_depth_in_balls(exact.A3, H, _START, Fraction(1, 1000)) is not None:
        yield "a defective H was given a condition number"
    bound = power_depth(*floats, 1e-3)
    if bound is None:
        yield False
        return
    bad = _above(exact.A3, H, _START, 1e-3, range(bound.depth, bound.depth + 40))
    yield f"HFC/LFC > 1/1000 at layer {bad[0]} >= {bound.depth}" if bad else True


@search(_drawn(), at="A H X0")
def law_d(A: Matrix, H: Matrix, X0: Matrix, eps: Fraction) -> None:
    bound = certified_depth_in_balls(A, H, X0, eps)
    assume(bound is not None and bound.depth < 5000)
    assert bound is not None
    depths = [bound.depth + k for k in (0, 1, 2, 7, 40)]
    assert not _above(A, H, X0, float(eps) * (1 + 1e-12), depths), "not smoothed"


@search(_drawn())
def floor_law(A: Matrix, H: Matrix, X0: Matrix, _: Fraction) -> None:
    assume(not given.consensus(X0))
    depths = [0, 1, 2, 5, 20, 60]
    bounds = ratio_floor(to_float(A), to_float(H), to_float(X0), depths)
    ratios = ball_ratios(A, H, X0, spectra.stationary(A), depths)
    for (depth, ratio), bound in zip(ratios.items(), bounds, strict=True):
        assume(ratio.value is not None)
        assert ratio.value is not None
        assert ratio.value >= bound * (1 - 1e-6) - 1e-13, f"below the floor at layer {depth}"
