"""T11.6: states shrink below the range of floats, but I + H (x) A is never nilpotent for n >= 2."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from oversmoothing.theory.claims.t11.overflow import naive_layers, scaled_row
from oversmoothing.theory.proofs.instances import AA
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, is_zero, verdict


def _naive() -> None:
    """[1; instance] Scaling by powers of two is exact (T11.5). Executed: h = -1/2."""
    # (3/4)^L leaves the normal range before layer 2500; the logarithm of the ratio goes on.
    states = naive_layers(np.array([[0.75, 0.25], [0.25, 0.75]]), -0.5, np.array([1.0, 2.0]), 2500)
    assert np.abs(states[-1]).max() < np.finfo(np.float64).tiny
    found = verdict(A=AA, H=exact.matrix("-1/2"), X0=exact.matrix("1; 2"), depth=[10**6])
    expected = 10**6 * math.log(1.5) - math.log(3)
    log = found.hfc_lfc[10**6].log
    # math.log rounds once, 10^6 times it once more.
    assert log is not None and abs(log - expected) <= 4 * 2.0**-52 * expected


def _identity_is_the_exception() -> None:
    """[3; instance] A row-stochastic A has bounded powers, so its eigenvalue 1 is semisimple: all
    a_i = 1 means A = I, and M = I + H (x) I."""
    # A = I (or n = 1) and H = -I + nilpotent: M is nilpotent.
    H = exact.matrix("-1 1; 0 -1")
    M = exact.plus_identity(exact.kronecker(H, exact.diagonal("1 1")))
    assert not is_zero(M) and is_zero(exact.power(M, 2))


def _special() -> None:
    """[2; instance] M^L != 0, so {X_0 : X_L = 0} is a proper subspace. Executed: h = -2, a =
    1/2."""
    # X_0 = (1, -1), h = -2, a = 1/2: X_1 = 0, and only multiples of X_0 do that.
    M = exact.plus_identity(exact.kronecker(exact.matrix("-2"), AA))
    assert exact.matrix("-1/2 -1/2; -1/2 -1/2") == M
    found = verdict(A=AA, H=exact.matrix("-2"), X0=exact.matrix("1; -1"), depth=[1])
    assert found.verdict_x0 == "UNDEFINED" and found.hfc_lfc[1].value is None


@st.composite
def _cases(pick: st.DrawFn) -> tuple[Matrix, Matrix]:
    A = pick(draw.attention(2, 3))
    values = st.sampled_from([Fraction(-1), Fraction(-2), Fraction(-3, 2)])
    blocks = pick(draw.lists(st.tuples(values, st.integers(1, 2)), 1, 2))
    return A, pick(draw.with_jordan_blocks(blocks))


def _law(A: Matrix, H: Matrix) -> None:
    assert not is_zero(exact.power(exact.plus_identity(exact.kronecker(H, A)), len(A) * len(H)))


CLAIM = Claim(
    name="T11.6",
    clauses=(
        "Where all |mu| < 1 the state underflows, and the same scaling keeps the ratio.",
        "For A > 0 and n >= 2, M = I + H (x) A is never nilpotent, so X_L = 0 only for X_0 in a "
        "proper subspace (Lebesgue-null).",
        "Among row-stochastic A with n >= 2 the only exception is A = I with H + I nilpotent.",
    ),
    latex=r"A>0,\ n\ge 2\implies (I+H\otimes A)^L\ne 0\quad\text{for all }L",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS),
    evidence=(
        by.written(
            "two multipliers cannot both vanish",
            "[2] M is nilpotent iff every 1 + h_j a_i = 0 (T1a). a = 1 is an eigenvalue of A, so "
            "h_j = -1 for all j; then 1 - a_i = 0, so every a_i is 1. For A > 0 the eigenvalue 1 "
            "is simple, which leaves n = 1.",
            _identity_is_the_exception,
            _special,
            _naive,
        ),
        by.for_all(
            "1 + h = 0 and 1 + h a = 0 only for a = 1 (h, a complex: h = p + iq, a = x + iy)",
            given="1 + p == 0; q == 0; 1 + p*x - q*y == 0; p*y + q*x == 0",
            then="x == 1 and y == 0",
            at="p=-1, q=0, x=1, y=0",
            covers=(2, 3),
        ).unless("without 1 + h = 0", without="1 + p == 0", at="p=-2, q=0, x=1/2, y=0"),
        by.searched(
            "M^{nd} != 0 in fractions, H with blocks at -1 and -2",
            _law,
            _cases(),
            at=lambda *case: case,
        ),
        by.Simulated(
            "scaled iteration in float64",
            lambda effort: [scaled_row(-0.5, 20000 * math.log(1.5) - math.log(3))],
        ),
    ),
)
