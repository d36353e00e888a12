"""What the claims of arxiv_2401_04301_v3.md execute."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import sympy as sp
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.lemmas import squared_frobenius, with_state
from oversmoothing.theory.proofs.checks import L, around, induction, symbolic
from oversmoothing.theory.proofs.kit import Matrix, draw, equal, exact, given, search, spectra
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.by_fractions import exact_dominance


# P-2401.04301v3-clip-gradient
def inside() -> sp.Matrix:
    a, b, c, d, p, q = sp.symbols("a b c d p q")
    V = sp.Matrix([[a, b], [c, d]])
    H = V * sp.diag(p, q) * V.inv()
    return H.diff(p) - V[:, 0] * V.inv()[0, :]


# P-2401.04301v3-clip-smoothing
CLIPPED = given.Hypothesis(
    "every eigenvalue of H lies in [0, 1]",
    lambda case: spectra.within(case.H, lambda h: h >= 0 and h <= 1),
    (given.case(H="-1/9"), given.case(H="10/9")),
)


def constant(A: Matrix, H: Matrix, X0: Matrix) -> None:
    induction(A, H, X0, sp.Matrix([1, 3]), sp.Rational(1, 4))


# P-2401.04301v3-clip-tied
def _norm(X: Matrix) -> float:
    return math.sqrt(float(squared_frobenius(X)))


@search(
    with_state(draw.attention(2, 3), draw.with_spectrum(draw.fractions(-1, 0), 0, 2, Fraction(0))),
    at="A H",
)
def law_clip_tied(A: Matrix, H: Matrix, kinds: list[Fraction], X: Matrix) -> None:
    n = len(A)
    Pi = exact.transposed(spectra.projector(H, Fraction(0)))
    frozen = exact.product(exact.centred(X), Pi)
    assume(any(map(any, frozen)))
    pi = spectra.stationary(A)
    c = [exact.weighted_mean(pi, X)]
    bound = sum(_norm(spectra.projector(H, h)) for h in {*kinds}) * _norm(c)
    k = math.sqrt(n * float(spectra.squared_deviation(pi)))
    inverse_t = math.sqrt(n) * bound * _norm(Pi) / _norm(frozen)
    assume(k + inverse_t > 0)
    for _ in range(12):
        X = exact.layer(A, H, X)
        equal(exact.product(exact.centred(X), Pi), frozen)
        hfc, lfc = exact.squared_norms(X)
        assert lfc == 0 or math.sqrt(float(hfc / lfc)) * (k + inverse_t) >= 1 - 1e-12


# P-2401.04301v3-clip-untied
# The smallest period, n and d; with [-1, 0] closed, I + W of (1, 2; 0, 0), (0, 0; 1, 1) also do.


def two_layers(A_1: Matrix, H_1: Matrix, H_2: Matrix) -> None:
    for x, y in exact.identity(2):
        state = [[x, y], [x, y]]
        once = exact.layer(A_1, H_1, state)
        equal(once, [[x / 2, 2 * x]] * 2)
        equal(exact.layer(A_1, H_2, once), [[4 * x, x]] * 2)


def differences(A_1: Matrix, H_1: Matrix, H_2: Matrix) -> None:
    for H in (H_1, H_2):
        for difference in exact.identity(2):
            state = [difference, [-x for x in difference]]
            equal(exact.layer(A_1, H, state), state)


def ratios(A_1: Matrix, H_1: Matrix, X0_1: Matrix, H_2: Matrix) -> None:
    X = X0_1
    for k in range(1, 13):
        X = exact.layer(A_1, H_2, exact.layer(A_1, H_1, X))
        power = 4 ** (k - 1)
        equal(X, [[4 * power + 1, power], [4 * power - 1, power]])
        equal(exact.squared_norms(X), (2, 2 * 17 * power**2))


# P-2401.04301v3-control-every-state
def smooths(A: Matrix, H: Matrix, X0: Matrix) -> None:
    # d = 1 cannot do it (T7b); all in quarters, X_0 of ones.
    low, high = sp.Rational(3, 4) ** L, sp.Rational(1, 2) ** L
    induction(A, H, X0, sp.Matrix([[low, high], [low, -high]]), sp.Rational(4, 9) ** L)


# P-2401.04301v3-control-negative
# Equal values are joined into one Jordan block.
_JORDAN = (
    draw.lists(draw.fractions(-1, 0).filter(bool), 1, 3)
    .map(lambda values: sorted(Counter(values).items()))
    .flatmap(draw.with_jordan_blocks)
)


@search(draw.attention(2, 4), _JORDAN, at="A H")
def law_control_negative(A: Matrix, H: Matrix) -> None:
    assert exact_dominance(A, H).comparison == -1


# P-2401.04301v3-control-positive
ALL_POSITIVE = given.Hypothesis(
    "every eigenvalue of H is real and > 0",
    lambda case: spectra.within(case.H, lambda h: h > 0),
    (given.case(H="0"), given.case(H="1 0; 0 -1")),
)


@search(draw.attention(2, 4), draw.with_spectrum(draw.fractions(0, 4).filter(bool), 1, 3), at="A H")
def law_control_positive(A: Matrix, H: Matrix, values: list[Fraction]) -> None:
    assert exact_dominance(A, H).comparison == 1


# P-2401.04301v3-control-some-positive
SOME = given.Hypothesis(
    "some eigenvalue of H is > 0",
    lambda case: spectra.has_value(case.H, lambda h: h > 0),
    (given.case(H="0"), given.case(H="-1")),
)
# The smallest integers with quarters in A; [[1/3, 2/3], [2/3, 1/3]] with diag(1/2, -2) also does.


def grows(A: Matrix, H: Matrix, X0: Matrix) -> None:
    high = sp.Rational(5, 2) ** L
    state = sp.Matrix([[2**L, (-2) ** L - high], [2**L, (-2) ** L + high]])
    induction(A, H, X0, state, sp.Rational(25, 16) ** L / 2)


# P-2401.04301v3-input-strictest
VANISH = given.Hypothesis(
    "input convergence, x_i - x_k -> 0 for generic X_0: |1 + h a| < 1 for every a != 1",
    lambda case: all(
        abs(1 + h * a) < 1 for a in spectra.values(case.A)[:-1] for h in spectra.values(case.H)
    ),
    (given.case(),),
)
# Three tokens: A = I/2 + 11^T/6 keeps every X_0 without a mean, up to a factor 1/2 a layer.


def angle(A_1: Matrix, H_1: Matrix, X0_1: Matrix) -> None:
    state = sp.Rational(1, 2) ** L * sp.Matrix([1, -1])
    induction(A_1, H_1, X0_1, state)
    equal(sp.limit(state[0] - state[1], L, sp.oo), 0)
    equal(sp.simplify(state[0] * state[1] / sp.Rational(1, 4) ** L), -1)


def rank(A_2: Matrix, H_2: Matrix, X0_2: Matrix) -> None:
    state = sp.Rational(1, 2) ** L * symbolic(X0_2)
    induction(A_2, H_2, X0_2, state)
    equal([sp.limit(x, L, sp.oo) for x in state], [0] * 6)
    equal((state * 2**L).applyfunc(sp.simplify).rank(), 2)


# P-2401.04301v3-layernorm-always
def _smooths(A: Matrix, H: Matrix, X0: Matrix, squared: sp.Expr) -> None:
    h = symbolic(H)[0]
    state = around(sp.Rational(3, 2) * (1 + h) ** L, (1 + h / 2) ** L / 2)
    induction(A, H, X0, state, squared)


def as_it_was(A_1: Matrix, H_1: Matrix, X0_1: Matrix) -> None:
    _smooths(A_1, H_1, X0_1, sp.Rational(25, 64) ** L / 9)


def negated(A_2: Matrix, H_2: Matrix, X0_2: Matrix) -> None:
    _smooths(A_2, H_2, X0_2, sp.Rational(1, 16) ** L / 9)


# P-2401.04301v3-layernorm-mixed
def _negative(M: Matrix) -> int:
    """How many eigenvalues are real and negative, with multiplicity."""
    return sum(
        value.factor.multiplicity
        for value in spectra.spectrum(M)
        if value.is_real and not value.is_zero and value.ball(256).real < 0
    )


def _centred(W: Matrix, gamma: str) -> Matrix:
    """W diag(gamma) C, C = I - 11^T/3."""
    C = exact.plus(exact.identity(3), exact.uniform(3), -1)
    return exact.product(W, exact.diagonal(gamma), C)


def not_real() -> None:
    W = exact.matrix("4 2 2; 2 3 0; 2 0 2")
    assert _positive_definite(W)
    assert not spectra.is_real(_centred(W, "1 -1 1"))


def sign_lost() -> None:
    W = exact.matrix("2 1 3; 1 6 4; 3 4 6")
    assert _positive_definite(W)
    assert _negative(_centred(W, "3 2 1")) == 1


def _positive_definite(W: Matrix) -> bool:
    return exact.transposed(W) == W and all(
        exact.determinant([row[:k] for row in W[:k]]) > 0 for k in range(1, len(W) + 1)
    )


@search(st.integers(1, 4).flatmap(draw.unimodular), draw.lists(st.integers(-5, 5).filter(bool), 4))
def law_layernorm_mixed(S: Matrix, inverse: Matrix, gamma: list[int]) -> None:
    """W = S S^T is positive definite."""
    gamma = gamma[: len(S)]
    weighted = exact.product(exact.diagonal(gamma), S, exact.transposed(S))
    assert spectra.is_real(weighted)
    assert _negative(weighted) == sum(g < 0 for g in gamma)


# P-2401.04301v3-not-inevitable
def no_input_convergence() -> None:
    difference = sp.Rational(3, 2) ** L
    state = around(3 * 2**L / sp.Integer(2), difference / 2)
    induction(exact.AA, exact.matrix("1"), exact.column("1 2"), state)
    equal(sp.limit(difference, L, sp.oo), sp.oo)
    equal(sp.limit(difference / 2**L, L, sp.oo), 0)


def rank_kept() -> None:
    A = exact.matrix("1/4 1/4 1/2; 1/2 1/4 1/4; 1/4 1/2 1/4")
    X0 = exact.matrix("1 0; 0 1; -1 -1")
    induction(A, exact.matrix("0 -1; 1 -1"), X0, sp.Rational(5, 4) ** L * symbolic(X0))
    assert symbolic(X0).rank() == 2, "rank 1"


# P-2401.04301v3-notions
def angle_without_smoothing() -> None:
    mean, half = 3 * sp.Rational(-1, 3) ** L / 2, sp.Rational(1, 3) ** L / 2
    state = around(mean, half)
    induction(exact.AA, exact.matrix("-4/3"), exact.column("1 2"), state, sp.Rational(1, 9))
    for depth in range(6):
        assert state[0].subs(L, depth) * state[1].subs(L, depth) > 0, "opposite signs"


def rank_without_angle() -> None:
    mean, half = 3 * sp.Rational(1, 2) ** L / 2, sp.Rational(3, 4) ** L / 2
    state = around(mean, half)
    induction(exact.AA, exact.matrix("-1/2"), exact.column("1 2"), state)
    equal(sp.limit(half / mean, L, sp.oo), sp.oo)
    assert state[0].subs(L, 3) * state[1].subs(L, 3) < 0, "equal signs"


@search(draw.token_states())
def law_notions(X: Array) -> None:
    scale = np.abs(X).max()
    if scale == 0 or not np.isfinite(scale):
        return
    X = X / scale
    mean = X.mean(axis=0)
    lfc, hfc = math.sqrt(len(X)) * float(np.linalg.norm(mean)), float(np.linalg.norm(X - mean))
    if lfc == 0:
        return
    ratio = hfc / lfc
    sigma = np.linalg.svd(X, compute_uv=False)
    if len(sigma) > 1:
        assert sigma[1] <= ratio * sigma[0] * (1 + 1e-9) + 1e-14
    if len(X) * ratio**2 <= 1:
        unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        assert (unit @ unit.T).min() >= 1 - 2 * len(X) * ratio**2 - 1e-12
