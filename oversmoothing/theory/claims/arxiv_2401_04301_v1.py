"""What the claims of arxiv_2401_04301_v1.md execute; one room: the chapter."""

import math
from fractions import Fraction
from functools import partial
from typing import Any

import sympy as sp
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.arxiv_2312_06182 import t_falls
from oversmoothing.theory.claims.t7 import R, conserved, frame, states, weights
from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.proofs.checks import L, around, induction, ratio_is, symbolic
from oversmoothing.theory.proofs.kit import (
    Chapter,
    Matrix,
    draw,
    equal,
    exact,
    given,
    search,
    spectra,
    vanishes,
    verdict,
)
from oversmoothing.theory.verdict.by_fractions import exact_dominance

PAPER = Chapter(__file__)

# -------------------------------------------------------------------- P-2401.04301v1-control

# Smallest possible: with d = 1 the closed interval is safe; integers in H and X_0.
_A, _H, _X0 = PAPER.case("a_jordan_block_at")
_STATE = sp.Matrix([[L, 0], [L, 2]])


def linear() -> None:
    induction(_A, _H, _X0, _STATE)
    ratio_is(_STATE, 1 / (L**2 + 1))
    equal(sp.limit(1 / (L**2 + 1), L, sp.oo), 0)


def both_eigenvalues_of_h() -> None:
    equal(spectra.values(_H), [0, 0])


# ---------------------------------------------------------------------- P-2401.04301v1-heads

Heads = list[tuple[Matrix, Matrix]]


@st.composite
def _heads(pick: st.DrawFn) -> Heads:
    """One to three heads (A, W) of the same sizes."""
    n, d = pick(st.integers(2, 3)), pick(st.integers(1, 2))
    return pick(draw.heads(draw.attention(n, n, zeros=True), d, 3))


@search(_heads().map(tuple), at=lambda *heads: given.of_attention(heads[0][0]))
def law_heads(*heads: tuple[Matrix, Matrix]) -> None:
    """The characteristic polynomial of the layer is that of consensus times the quotient's."""
    n, d = len(heads[0][0]), len(heads[0][1])
    consensus, quotient, whole = map(exact.identity, (d, (n - 1) * d, n * d))
    for A, W in heads:
        H = exact.transposed(W)
        consensus = exact.plus(consensus, H)
        quotient = exact.plus(quotient, exact.kronecker(H, rational_quotient(A)))
        whole = exact.plus(whole, exact.kronecker(H, A))
    expected = exact.characteristic(consensus) * exact.characteristic(quotient)
    equal(exact.characteristic(whole), expected)


# ----------------------------------------------------------------- P-2401.04301v1-heads-each

_A_EACH, _H_EACH, _X0_EACH = PAPER.case("two_heads_of_3")


def two_heads() -> None:
    head = exact.product(_A_EACH, _X0_EACH, _H_EACH)
    both = exact.plus(exact.plus(_X0_EACH, head), head)
    equal(both, exact.layer(_A_EACH, exact.matrix("-3/2"), _X0_EACH))


def smooth() -> None:
    half = sp.Rational(1, 2)
    state = around(3 * half * (-half) ** L, half * sp.Rational(1, 4) ** L)
    induction(_A_EACH, exact.matrix("-3/2"), _X0_EACH, state)
    ratio_is(state, sp.Rational(1, 4) ** L / 9)


# ----------------------------------------------------------------- P-2401.04301v1-heads-mean

_A1, _H1, _X0_HEADS_MEAN = PAPER.case("two_heads_that_pull_1")
_A2, _H2, _ = PAPER.case("two_heads_that_pull_2")


def by_the_mean() -> None:
    mean = exact.scaled("1/2", exact.plus(_A1, _A2))
    assert verdict(A=mean, H=exact.plus(_H1, _H2)).verdict == "SMOOTHING"


def as_they_are() -> None:
    moved = exact.layer(_A1, _H1, _X0_HEADS_MEAN)
    moved = exact.plus(moved, exact.product(_A2, _X0_HEADS_MEAN, _H2))
    half = sp.Rational(1, 2)
    state = around(3 * half * (3 * half) ** L, half * sp.Rational(7, 4) ** L)
    vanishes(state.subs(L, 0) - symbolic(_X0_HEADS_MEAN))
    vanishes(state.subs(L, 1) - symbolic(moved))
    step = sp.eye(2) + symbolic(_A1) - symbolic(_A2) / 2
    vanishes(state.subs(L, L + 1) - step * state)


# --------------------------------------------------------------------- P-2401.04301v1-layers


@search(
    draw.two_token_attention(),
    draw.lists(draw.fractions(-3, 3), 1, 5),
    at=lambda attention, values: (attention[0], [[values[0]]]),
)
def law_layers(attention: tuple[Matrix, Fraction], values: list[Fraction]) -> None:
    """One feature, one A, an h for each layer: each layer multiplies t by |1 + h a|/|1 + h|."""
    A, a = attention
    assume(-1 not in values)
    X = exact.column("1 3")
    for h in values:
        t_falls(A, X, partial(exact.layer, A, [[h]]), 1 + h * a, 1 + h, 1)
        X = exact.layer(A, [[h]], X)


# --------------------------------------------------------- P-2401.04301v1-no-residual-always

_A_NO_RESIDUAL, _H_NO_RESIDUAL, _X0_NO_RESIDUAL = PAPER.case("an_eigenvector_of_a")


def forever() -> None:
    state = sp.Rational(1, 4) ** L * sp.Matrix([2, -1])
    equal(state.subs(L, 0), symbolic(_X0_NO_RESIDUAL))
    vanishes(state.subs(L, L + 1) - symbolic(_A_NO_RESIDUAL) * state * symbolic(_H_NO_RESIDUAL).T)
    ratio_is(state, 9)


# ------------------------------------------------------------------------ P-2401.04301v1-psi

NEGATIVE = given.Hypothesis(
    "H = V diag(-psi^2) V^T: symmetric with eigenvalues <= 0",
    lambda case: exact.transposed(case.H) == case.H and spectra.within(case.H, lambda h: h <= 0),
    (given.case(H="1"), given.case(H="0 1; 0 0")),
)
# The smallest integer psi that does it: psi = 1 is safe for every A (T2b).
_A_PSI, _H_PSI, _X0_PSI = PAPER.case("psi_2")
_STATE_PSI = sp.Matrix([(-3) ** L - 1, (-3) ** L + 1])


def smooths() -> None:
    induction(_A_PSI, _H_PSI, _X0_PSI, _STATE_PSI)
    ratio_is(_STATE_PSI, sp.Rational(1, 9) ** L)
    equal(sp.limit(sp.Rational(1, 9) ** L, L, sp.oo), 0)


# ----------------------------------------------------------------------- P-2401.04301v1-rank

# All integers and quarters; n = 3 and d = 2 are the least at which A and H have complex pairs.
_A_RANK, _H_RANK, _X0_RANK = PAPER.case("a_triangle_of_tokens")


def _norm(p: Fraction, q: Fraction) -> Fraction:
    """|p + q w|^2 = p^2 - pq + q^2, w = e^(2 pi i / 3)."""
    return p * p - p * q + q * q


def moduli() -> None:
    assert spectra.simple(_A_RANK) and spectra.simple(_H_RANK), "an eigenvalue repeats"
    # H^2 + H + I = 0 and A = (I + C + 2 C^2)/4 with C a cyclic shift.
    vanishes(exact.plus_identity(exact.plus(_H_RANK, exact.product(_H_RANK, _H_RANK))))
    C = exact.matrix("0 1 0; 0 0 1; 1 0 0")
    equal(exact.scaled("1/4", exact.plus_identity(exact.plus(C, exact.product(C, C), 2))), _A_RANK)
    quarter, zero, one = Fraction(1, 4), Fraction(0), Fraction(1)
    # h = w; a = w^2/4 gives 1 + w^3/4 = 5/4; a = w/4 gives 1 + w^2/4 = 3/4 - w/4; a = 1: 1 + w.
    equal(_norm(1 + quarter, zero), Fraction(25, 16))
    equal(_norm(1 - quarter, -quarter), Fraction(13, 16))
    equal(_norm(one, one), Fraction(1))


def forever_rank() -> None:
    state = sp.Rational(5, 4) ** L * symbolic(_X0_RANK)
    induction(_A_RANK, _H_RANK, _X0_RANK, state)
    equal(symbolic(_X0_RANK).rank(), 2)


def neighbours() -> None:
    generic = verdict(A=_A_RANK, H=_H_RANK)
    equal((generic.verdict, generic.limit_rank), ("NON_SMOOTHING", 2))
    for e in (Fraction(1, 50), Fraction(-1, 70)):
        A = exact.plus(_A_RANK, exact.matrix("1 0 -1; 0 0 0; -1 0 1"), e)
        H = exact.plus(_H_RANK, exact.matrix("1 -2; 3 5"), e)
        assert spectra.diagonalisable(A) and all(sum(row) == 1 for row in A), "not a neighbour"
        near = verdict(A=A, H=H)
        equal((near.verdict, near.limit_rank), ("NON_SMOOTHING", 2))


# ------------------------------------------------------------------ P-2401.04301v1-rank-real


@search(
    draw.two_token_attention(),
    st.lists(draw.fractions(-4, 3), min_size=2, max_size=3, unique=True),
    draw.lists(draw.fractions(-1, 1), 3),
    at=lambda attention, h_values, _: (attention[0], exact.diagonal(h_values)),
)
def law_rank_real(attention: Any, h_values: Any, above: Any) -> None:
    A, a = attention
    size = range(len(h_values))
    H = [[h_values[i] if i == j else above[i] * (j > i) for j in size] for i in size]
    moduli = {(i, j): abs(1 + h_values[j] * (a, 1)[i]) for i in (0, 1) for j in size}
    dominant = [pair for pair, modulus in moduli.items() if modulus == max(moduli.values())]
    assume(not any(i != k and j != m for i, j in dominant for k, m in dominant))
    assert verdict(A=A, H=H).limit_rank == 1


THE_EIGENVALUES_OF_A = given.Hypothesis(
    "the eigenvalues of A, and those of H, are simple",
    lambda case: spectra.simple(case.A) and spectra.simple(case.H),
    (given.case("2/3 1/6 1/6; 1/6 2/3 1/6; 1/6 1/6 2/3"), given.case(H="1 0; 0 1")),
)

# -------------------------------------------------------------- P-2401.04301v1-real-spectrum

# Smallest denominators over all n = 3 with rows in thirds to sixths (exhaustive search).
# The statement is about A alone.
_COMPLEX, _ = PAPER.case("three_tokens_that_look_1")
_DEFECTIVE_REAL_SPECTRUM, _ = PAPER.case("three_tokens_that_look_2")


def complex() -> None:
    B = rational_quotient(_COMPLEX)
    equal(B, exact.matrix("0 -1/4; 1/4 -1/4"))
    equal((B[0][0] + B[1][1]) ** 2 - 4 * exact.determinant(B), Fraction(-3, 16))
    assert not spectra.is_real(_COMPLEX), "the spectrum is real"


def defective() -> None:
    B = rational_quotient(_DEFECTIVE_REAL_SPECTRUM)
    equal(B, exact.matrix("1/4 -1/4; 1/4 -1/4"))
    vanishes(exact.product(B, B))
    assert not spectra.diagonalisable(_DEFECTIVE_REAL_SPECTRUM), "A is diagonalisable"


# --------------------------------------------------------------------- P-2401.04301v1-table1

# Per cent of the family of lambda_n^A: ViT-B/16, DeiT-B/16 (12 layers of 12 heads), and ViT-Ti on
# CIFAR100 (12 layers of 3 heads, d = 192); the other family's entries are the rest to 100.
_BASE, _TINY = (Fraction("70.27"), Fraction("57.82")), (Fraction("98.92"),)
_UNIT = Fraction(1, 100)


def _fits(value: Fraction, cases: int, above: Fraction = _UNIT) -> bool:
    """Whether some k/cases is printed so: rounded (at most half a unit below) or cut off."""
    first = math.ceil((value - _UNIT / 2) * cases / 100)
    return Fraction(100 * first, cases) < value + above


def not_layers_and_heads() -> None:
    for values, counts in ((_BASE, (144, 12)), (_TINY, (36, 12))):
        for value in values:
            assert not any(_fits(value, count) for count in counts)


def smallest() -> None:
    for value, expected in zip(_BASE + _TINY, (37, 147, 93), strict=True):
        assert not any(_fits(value, count, _UNIT / 2) for count in range(1, expected))
        assert _fits(value, expected, _UNIT / 2)


def eigenvalues() -> None:
    assert all(_fits(value, 12 * 768) for value in _BASE)
    assert not _fits(_TINY[0], 12 * 192)


# --------------------------------------------------------------- P-2401.04301v1-thm1-complex

# Smallest over positive circulants of 4 tokens (denominators 4..10) and h = x + iy in halves, by
# exhaustive search; three tokens cannot do it (both non-consensus eigenvalues share a real part).
_A_THM1_COMPLEX, _H_THM1_COMPLEX = PAPER.case("another_high_frequency_mode")


def spectrum_thm1_complex() -> None:
    # H = -1/2 + i as a real matrix: (H + 1/2)^2 = -1.
    shifted = exact.plus(_H_THM1_COMPLEX, exact.identity(2, "1/2"))
    equal(exact.product(shifted, shifted), exact.identity(2, -1))
    for value, vector in (("-1/5", exact.column("1 -1 1 -1")), ("1", exact.column("1 1 1 1"))):
        equal(exact.product(_A_THM1_COMPLEX, vector), exact.scaled(value, vector))
    # v = p + iq = (1, i, -1, -i): A v = -i v/5 = q/5 - i p/5.
    p, q = exact.column("1 0 -1 0"), exact.column("0 1 0 -1")
    equal(exact.product(_A_THM1_COMPLEX, p), exact.scaled("1/5", q))
    equal(exact.product(_A_THM1_COMPLEX, q), exact.scaled("-1/5", p))


def moduli_thm1_complex() -> None:
    h, fifth, zero = (Fraction(-1, 2), Fraction(1)), Fraction(1, 5), Fraction(0)
    equal(spectra.squared_modulus(h, 1), Fraction(5, 4))
    equal(spectra.squared_modulus(h, -fifth), Fraction(5, 4))
    equal(spectra.squared_modulus(h, (zero, -fifth)), Fraction(29, 20))
    equal(spectra.squared_modulus(h, (zero, fifth)), Fraction(13, 20))


def decided() -> None:
    modes = exact_dominance(_A_THM1_COMPLEX, _H_THM1_COMPLEX)
    equal(modes.comparison, -1)
    with at_precision(128):
        for mode in modes.quotient:
            assert mode.attention is not None
            assert not mode.attention.is_real, "the dominant a is real"
            assert mode.attention.ball(128).real > -0.1, "a = -1/5"


# ----------------------------------------------------------------------- P-2401.04301v1-thm2


@search(
    draw.two_token_attention(),
    draw.value_projections(3),
    draw.lists(st.integers(-9, 9), 8),
    at=lambda attention, value, _: (attention[0], value[0]),
)
def law_thm2(attention: Any, value: Any, numbers: Any) -> None:
    (A, a), (H, h_values) = attention, value
    X0 = exact.from_integers(numbers[i : i + len(H)] for i in (0, 4))
    total = exact.zeros(2, len(H))
    for x in (Fraction(1), a):
        for h in {*h_values}:
            total = exact.plus(total, spectra.block(A, x, X0, H, h), (1 + h * x) ** 5)
    equal(total, exact.layer(A, H, X0, 5))


# ----------------------------------------------------------- P-2401.04301v1-thm2-any-weights

# The smallest possible: d = 2 for a Jordan block, integers in H and X_0.
_A_ANY_WEIGHTS, _H_ANY_WEIGHTS, _X0_ANY_WEIGHTS = PAPER.case("a_jordan_block_of")
_STATE_ANY_WEIGHTS = 2**L * sp.Matrix([[L / 2, 1], [L / 2, 1]])


def single() -> None:
    h_values, a_values = spectra.values(_H_ANY_WEIGHTS), spectra.values(_A_ANY_WEIGHTS)
    equal({1 + h * a for h in h_values for a in a_values}, {1, 2})


def diverges() -> None:
    induction(_A_ANY_WEIGHTS, _H_ANY_WEIGHTS, _X0_ANY_WEIGHTS, _STATE_ANY_WEIGHTS)
    equal(sp.limit((_STATE_ANY_WEIGHTS / 2**L)[0, 0], L, sp.oo), sp.oo)
    assert (_STATE_ANY_WEIGHTS / 2**L)[0, 1] == 1, "the second feature"


# ------------------------------------------------------------ P-2401.04301v1-thm2-difference

_A_DIFFERENCE, _H_DIFFERENCE, _X0_DIFFERENCE = PAPER.case("the_second_eigenvalue_exceeds")
_ERROR = sp.Rational(3, 2) ** L
_STATE_THM2_DIFFERENCE = sp.Matrix([[2**L - _ERROR], [2**L + _ERROR]])


def diverges_thm2_difference() -> None:
    induction(_A_DIFFERENCE, _H_DIFFERENCE, _X0_DIFFERENCE, _STATE_THM2_DIFFERENCE)
    equal(_STATE_THM2_DIFFERENCE - sp.Matrix([2**L, 2**L]), sp.Matrix([-_ERROR, _ERROR]))
    equal(sp.limit(_ERROR, L, sp.oo), sp.oo)
    equal(sp.limit(_ERROR / 2**L, L, sp.oo), 0)


# ----------------------------------------------------------------------- P-2401.04301v1-thm3


@search(draw.attention(2, 3), draw.value_projections(2), at=lambda A, value: (A, value[0]))
def law_thm3(A: Any, value: Any) -> None:
    H, _ = value
    answer = verdict(A=A, H=H)
    assume(answer.verdict in ("SMOOTHING", "NON_SMOOTHING"))
    assume(answer.tends_to is not None)
    assert (answer.tends_to == "zero") == (answer.verdict == "SMOOTHING")


# ----------------------------------------------------------- P-2401.04301v1-thm3-every-state

# Denominators 2 and 4; with a symmetric A only X_0 with LFC = 0 can do this.
_A_EVERY_STATE, _H_EVERY_STATE, _X0_EVERY_STATE = PAPER.case("x_0_without_its")


def dominance() -> None:
    equal(spectra.values(_A_EVERY_STATE), [Fraction(1, 4), Fraction(1)])
    equal([1 + a for a in spectra.values(_A_EVERY_STATE)], [Fraction(5, 4), Fraction(2)])


def forever_thm3_every_state() -> None:
    equal(exact.product(_A_EVERY_STATE, _X0_EVERY_STATE), exact.scaled("1/4", _X0_EVERY_STATE))
    state = sp.Rational(5, 4) ** L * sp.Matrix([2, -1])
    induction(_A_EVERY_STATE, _H_EVERY_STATE, _X0_EVERY_STATE, state)
    ratio_is(state, 9)


# --------------------------------------------------------------------- P-2401.04301v1-untied

SYMMETRIC = given.Hypothesis(
    "the H of each layer is symmetric with eigenvalues in [-1, 0]",
    lambda case: exact.transposed(case.H) == case.H and given.CLOSED.holds(case),
    (*given.CLOSED.violated, given.case(H="0 1; 0 0")),
)
# The smallest rational turn that does it at a = 1/2, where cos^2 > 1 - a is needed: 3-4-5. Two
# directions in turn never do, whatever a and their angle: consensus has radius cos^2 over the two
# layers, and the characteristic polynomial of the difference there is a positive multiple of
# (1 - cos^2) (1 - a - (1 + a) cos^2), so that cos^2 never exceeds both of its roots.
_VALUES = (Fraction(-1), Fraction(0))
_CASES_UNTIED = [PAPER.case(f"a_direction_that_turns_{k}") for k in (1, 2, 3)]
_X0_UNTIED = _CASES_UNTIED[0][2]
_DEPTH = 12


def _frame(a: str) -> Matrix:
    """diag(1 - a, 1) R: one layer on a mode a, in coordinates that turn along."""
    return frame(_VALUES, Fraction(a))


def turning() -> None:
    equal(_CASES_UNTIED, [(exact.AA, H, _X0_UNTIED) for H in weights(_VALUES, 3)])
    # X_L R^L has mean (0, 1) K(1)^L and half-difference (0, 1) K(1/2)^L.
    start = exact.matrix("0 1")
    for depth, X in enumerate(states(_VALUES, _DEPTH, _X0_UNTIED)):
        mean, high = (exact.product(start, exact.power(_frame(a), depth)) for a in ("1", "1/2"))
        sides = exact.product(exact.matrix("1/2 1/2; 1/2 -1/2"), X, exact.power(R, depth))
        equal(sides, [*mean, *high])


def consensus_untied() -> None:
    equal(_frame("1"), exact.matrix("0 0; 3/5 4/5"))
    once = exact.product(exact.matrix("0 1"), _frame("1"))
    equal(exact.product(once, _frame("1")), exact.scaled("4/5", once))
    equal(exact.dot(once[0], once[0]), 1)


def quotient() -> None:
    K = _frame("1/2")
    trace, half = K[0][0] + K[1][1], exact.determinant(K)
    equal((trace, half), (Fraction(6, 5), Fraction(1, 2)))
    assert trace**2 < 4 * half, "real eigenvalues"
    # q(y) = y S y^T with K S K^T = S/2, S positive definite: ||y_L||^2 <= const 2^-L.
    S = conserved(K)
    equal(exact.product(K, S, exact.transposed(K)), exact.scaled(half, S))
    assert S[0][0] > 0 and exact.determinant(S) > 0, "S is not positive definite"


def measured() -> None:
    ratios = [exact.squared_ratio(X) for X in states(_VALUES, _DEPTH, _X0_UNTIED)]
    equal(ratios[1], Fraction(1))
    assert ratios[12] < Fraction(1, 10), f"(HFC/LFC)^2 = {float(ratios[12])} after 12 layers"
