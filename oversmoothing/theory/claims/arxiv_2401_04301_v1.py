"""What the claims of arxiv_2401_04301_v1.md execute; one room: the chapter."""

import math
from fractions import Fraction

import sympy as sp
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.lemmas import Heads, layer_operator, networks, of_first_head
from oversmoothing.theory.claims.t7 import (
    R,
    frame,
    mode_quadratic as mode_quadratic,
    states,
    weights,
)
from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.proofs.checks import L, around, induction, squared_ratio, symbolic
from oversmoothing.theory.proofs.kit import (
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


# P-2401.04301v1-control
def linear(A: Matrix, H: Matrix, X0: Matrix) -> None:
    # Smallest possible: with d = 1 the closed interval is safe; integers in H and X_0.
    induction(A, H, X0, sp.Matrix([[L, 0], [L, 2]]), 1 / (L**2 + 1))
    equal(sp.limit(1 / (L**2 + 1), L, sp.oo), 0)


# P-2401.04301v1-heads
@search(networks(2, 1, 3), at=of_first_head)
def law_heads(layers: list[Heads], _: Matrix) -> None:
    (heads,) = layers
    whole = layer_operator(heads)
    consensus = layer_operator(heads, lambda _: exact.identity(1))
    quotient = layer_operator(heads, rational_quotient)
    expected = exact.characteristic(consensus) * exact.characteristic(quotient)
    equal(exact.characteristic(whole), expected)


# P-2401.04301v1-heads-each
def smooth(A: Matrix, X0: Matrix) -> None:
    half = sp.Rational(1, 2)
    state = around(3 * half * (-half) ** L, half * sp.Rational(1, 4) ** L)
    induction(A, exact.matrix("-3/2"), X0, state, sp.Rational(1, 4) ** L / 9)


# P-2401.04301v1-heads-mean
def as_they_are(A_1: Matrix, H_1: Matrix, X0_1: Matrix, A_2: Matrix, H_2: Matrix) -> None:
    moved = exact.layer(A_1, H_1, X0_1)
    moved = exact.plus(moved, exact.product(A_2, X0_1, H_2))
    half = sp.Rational(1, 2)
    state = around(3 * half * (3 * half) ** L, half * sp.Rational(7, 4) ** L)
    vanishes(state.subs(L, 0) - symbolic(X0_1))
    vanishes(state.subs(L, 1) - symbolic(moved))
    step = sp.eye(2) + symbolic(A_1) - symbolic(A_2) / 2
    vanishes(state.subs(L, L + 1) - step * state)


# P-2401.04301v1-no-residual-always
def forever(A: Matrix, H: Matrix, X0: Matrix) -> None:
    state = sp.Rational(1, 4) ** L * sp.Matrix([2, -1])
    equal(state.subs(L, 0), symbolic(X0))
    vanishes(state.subs(L, L + 1) - symbolic(A) * state * symbolic(H).T)
    vanishes(squared_ratio(state) - 9)


# P-2401.04301v1-psi
NEGATIVE = given.Hypothesis(
    "H = V diag(-psi^2) V^T: symmetric with eigenvalues <= 0",
    lambda case: exact.transposed(case.H) == case.H and spectra.within(case.H, lambda h: h <= 0),
    (given.case(H="1"), given.case(H="0 1; 0 0")),
)


def smooths(A: Matrix, H: Matrix, X0: Matrix) -> None:
    # The smallest integer psi that does it: psi = 1 is safe for every A (T2b).
    induction(A, H, X0, around((-3) ** L, 1), sp.Rational(1, 9) ** L)
    equal(sp.limit(sp.Rational(1, 9) ** L, L, sp.oo), 0)


# P-2401.04301v1-rank
# All integers and quarters; n = 3 and d = 2 are the least at which A and H have complex pairs.


def _norm(p: Fraction, q: Fraction) -> Fraction:
    """|p + q w|^2 = p^2 - pq + q^2, w = e^(2 pi i / 3)."""
    return p * p - p * q + q * q


def moduli(A: Matrix, H: Matrix) -> None:
    assert spectra.simple(A) and spectra.simple(H), "an eigenvalue repeats"
    # H^2 + H + I = 0 and A = (I + C + 2 C^2)/4 with C a cyclic shift.
    vanishes(exact.plus_identity(exact.plus(H, exact.product(H, H))))
    C = exact.matrix("0 1 0; 0 0 1; 1 0 0")
    equal(exact.scaled("1/4", exact.plus_identity(exact.plus(C, exact.product(C, C), 2))), A)
    quarter, zero, one = Fraction(1, 4), Fraction(0), Fraction(1)
    # h = w; a = w^2/4 gives 1 + w^3/4 = 5/4; a = w/4 gives 1 + w^2/4 = 3/4 - w/4; a = 1: 1 + w.
    equal(_norm(1 + quarter, zero), Fraction(25, 16))
    equal(_norm(1 - quarter, -quarter), Fraction(13, 16))
    equal(_norm(one, one), Fraction(1))


def forever_rank(A: Matrix, H: Matrix, X0: Matrix) -> None:
    state = sp.Rational(5, 4) ** L * symbolic(X0)
    induction(A, H, X0, state)
    equal(symbolic(X0).rank(), 2)


def neighbours(A: Matrix, H: Matrix) -> None:
    generic = verdict(A=A, H=H)
    equal((generic.verdict, generic.limit_rank), ("NON_SMOOTHING", 2))
    for e in (Fraction(1, 50), Fraction(-1, 70)):
        other = exact.plus(A, exact.matrix("1 0 -1; 0 0 0; -1 0 1"), e)
        assert spectra.diagonalisable(other) and all(sum(row) == 1 for row in other)
        near = verdict(A=other, H=exact.plus(H, exact.matrix("1 -2; 3 5"), e))
        equal((near.verdict, near.limit_rank), ("NON_SMOOTHING", 2))


# P-2401.04301v1-rank-real
@search(
    draw.two_token_attention(),
    st.lists(draw.fractions(-4, 3), min_size=2, max_size=3, unique=True),
    draw.lists(draw.fractions(-1, 1), 3),
    at=lambda A, a, h_values, _: (A, exact.diagonal(h_values)),
)
def law_rank_real(A: Matrix, a: Fraction, h_values: list[Fraction], above: list[Fraction]) -> None:
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

# P-2401.04301v1-real-spectrum
# Smallest denominators over all n = 3 with rows in thirds to sixths (exhaustive search).
# The statement is about A alone.


# P-2401.04301v1-table1
# Per cent of the family of lambda_n^A: ViT-B/16, DeiT-B/16 (12 layers of 12 heads), and ViT-Ti on
# CIFAR100 (12 layers of 3 heads, d = 192); the other family's entries are the rest to 100.
_BASE, _TINY = (Fraction("70.27"), Fraction("57.82")), (Fraction("98.92"),)
_UNIT = Fraction(1, 100)


def _fits(value: Fraction, cases: int, above: Fraction = _UNIT) -> bool:
    """Whether some k/cases is printed so: rounded (at most half a unit below) or cut off."""
    first = math.ceil((value - _UNIT / 2) * cases / 100)
    return Fraction(100 * first, cases) < value + above


def smallest() -> None:
    for value, expected in zip(_BASE + _TINY, (37, 147, 93), strict=True):
        assert not any(_fits(value, count, _UNIT / 2) for count in range(1, expected))
        assert _fits(value, expected, _UNIT / 2)


# P-2401.04301v1-thm1-complex
# Smallest over positive circulants of 4 tokens (denominators 4..10) and h = x + iy in halves, by
# exhaustive search; three tokens cannot do it (both non-consensus eigenvalues share a real part).


def spectrum_thm1_complex(A: Matrix, H: Matrix) -> None:
    # H = -1/2 + i as a real matrix: (H + 1/2)^2 = -1.
    shifted = exact.plus(H, exact.identity(2, "1/2"))
    equal(exact.product(shifted, shifted), exact.identity(2, -1))
    for value, vector in (("-1/5", exact.column("1 -1 1 -1")), ("1", exact.column("1 1 1 1"))):
        equal(exact.product(A, vector), exact.scaled(value, vector))
    # v = p + iq = (1, i, -1, -i): A v = -i v/5 = q/5 - i p/5.
    p, q = exact.column("1 0 -1 0"), exact.column("0 1 0 -1")
    equal(exact.product(A, p), exact.scaled("1/5", q))
    equal(exact.product(A, q), exact.scaled("-1/5", p))


def decided(A: Matrix, H: Matrix) -> None:
    modes = exact_dominance(A, H)
    equal(modes.comparison, -1)
    with at_precision(128):
        for mode in modes.quotient:
            assert mode.attention is not None
            assert not mode.attention.is_real, "the dominant a is real"
            assert mode.attention.ball(128).real > -0.1, "a = -1/5"


# P-2401.04301v1-thm2-any-weights
def diverges(A: Matrix, H: Matrix, X0: Matrix) -> None:
    # The smallest possible: d = 2 for a Jordan block, integers in H and X_0.
    state = 2**L * sp.Matrix([[L / 2, 1], [L / 2, 1]])
    induction(A, H, X0, state)
    equal(sp.limit((state / 2**L)[0, 0], L, sp.oo), sp.oo)
    assert (state / 2**L)[0, 1] == 1, "the second feature"


# P-2401.04301v1-thm2-difference
def diverges_thm2_difference(A: Matrix, H: Matrix, X0: Matrix) -> None:
    # The error of 2^L 1 is -+ half.
    half = sp.Rational(3, 2) ** L
    induction(A, H, X0, around(2**L, half))
    equal(sp.limit(half, L, sp.oo), sp.oo)
    equal(sp.limit(half / 2**L, L, sp.oo), 0)


# P-2401.04301v1-thm3
@search(draw.attention(2, 3), draw.value_projections(2), at="A H")
def law_thm3(A: Matrix, H: Matrix, values: list[Fraction]) -> None:
    answer = verdict(A=A, H=H)
    assume(answer.verdict in ("SMOOTHING", "NON_SMOOTHING"))
    assume(answer.tends_to is not None)
    assert (answer.tends_to == "zero") == (answer.verdict == "SMOOTHING")


# P-2401.04301v1-thm3-every-state
# Denominators 2 and 4; with a symmetric A only X_0 with LFC = 0 can do this.


def forever_thm3_every_state(A: Matrix, H: Matrix, X0: Matrix) -> None:
    equal(exact.product(A, X0), exact.scaled("1/4", X0))
    state = sp.Rational(5, 4) ** L * sp.Matrix([2, -1])
    induction(A, H, X0, state, 9)


# P-2401.04301v1-untied
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


def _frame(a: str) -> Matrix:
    """diag(1 - a, 1) R: one layer on a mode a, in coordinates that turn along."""
    return frame(_VALUES, Fraction(a))


def turning(A_1: Matrix, H_1: Matrix, X0_1: Matrix, H_2: Matrix, H_3: Matrix) -> None:
    equal([A_1, H_1, H_2, H_3], [exact.AA, *weights(_VALUES, 3)])
    # X_L R^L has mean (0, 1) K(1)^L and half-difference (0, 1) K(1/2)^L.
    start = exact.matrix("0 1")
    for depth, X in enumerate(states(_VALUES, 12, X0_1)):
        mean, high = (exact.product(start, exact.power(_frame(a), depth)) for a in ("1", "1/2"))
        sides = exact.product(exact.matrix("1/2 1/2; 1/2 -1/2"), X, exact.power(R, depth))
        equal(sides, [*mean, *high])


def consensus_untied() -> None:
    equal(_frame("1"), exact.matrix("0 0; 3/5 4/5"))
    once = exact.product(exact.matrix("0 1"), _frame("1"))
    equal(exact.product(once, _frame("1")), exact.scaled("4/5", once))
    equal(exact.dot(once[0], once[0]), 1)
