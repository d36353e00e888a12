"""Rank collapse 'except for extremely rare ties': on an open set of weights there is none."""

from fractions import Fraction

import sympy as sp

from oversmoothing.theory.ask import verdict
from oversmoothing.theory.numbers.exact_matrix import matrix, plus, plus_identity, product, scaled
from oversmoothing.theory.proofs.all_depths import L, induction, symbolic
from oversmoothing.theory.proofs.kit import by, equal, given, spectra, vanishes

# All integers and quarters; n = 3 and d = 2 are the least at which A and H have complex pairs.
_A = matrix("1/4 1/4 1/2; 1/2 1/4 1/4; 1/4 1/2 1/4")
_H = matrix("0 -1; 1 -1")
_X0 = matrix("1 0; 0 1; -1 -1")


def _norm(p: Fraction, q: Fraction) -> Fraction:
    """|p + q w|^2 = p^2 - pq + q^2, w = e^(2 pi i / 3)."""
    return p * p - p * q + q * q


def _moduli() -> None:
    """With w = e^(2 pi i/3) the eigenvalues of H are w, w^2, of A 1, w/4, w^2/4, all simple. |1 + h
    a|^2 is 25/16 for (w, w^2/4) and its conjugate, 13/16 for (w, w/4) and its conjugate, 1 for
    consensus. The dominant two differ in both indices."""
    assert spectra.simple(_A) and spectra.simple(_H), "an eigenvalue repeats"
    # H^2 + H + I = 0 and A = (I + C + 2 C^2)/4 with C a cyclic shift.
    vanishes(plus_identity(plus(_H, product(_H, _H))))
    C = matrix("0 1 0; 0 0 1; 1 0 0")
    equal(scaled("1/4", plus_identity(plus(C, product(C, C), 2))), _A)
    quarter, zero, one = Fraction(1, 4), Fraction(0), Fraction(1)
    # h = w; a = w^2/4 gives 1 + w^3/4 = 5/4; a = w/4 gives 1 + w^2/4 = 3/4 - w/4; a = 1: 1 + w.
    equal(_norm(1 + quarter, zero), Fraction(25, 16))
    equal(_norm(1 - quarter, -quarter), Fraction(13, 16))
    equal(_norm(one, one), Fraction(1))


def _forever() -> None:
    """One layer multiplies X_0 by 5/4: X_L = (5/4)^L X_0 has rank 2."""
    state = sp.Rational(5, 4) ** L * symbolic(_X0)
    induction(_A, _H, _X0, state)
    equal(symbolic(_X0).rank(), 2)


def _neighbours() -> None:
    """The two tie because they are conjugate, as they do for every real A, H nearby, and the strict
    inequalities persist nearby too: an open set of weights, on which generic states keep rank 2.
    Two neighbours, decided exactly."""
    generic = verdict(A=_A, H=_H)
    equal((generic.verdict, generic.limit_rank), ("NON_SMOOTHING", 2))
    for e in (Fraction(1, 50), Fraction(-1, 70)):
        A = [[x + e * (i - 1) * (j - 1) for j, x in enumerate(row)] for i, row in enumerate(_A)]
        H = [[_H[0][0] + e, _H[0][1] - 2 * e], [_H[1][0] + 3 * e, _H[1][1] + 5 * e]]
        assert spectra.diagonalisable(A) and all(sum(row) == 1 for row in A), "not a neighbour"
        near = verdict(A=A, H=H)
        equal((near.verdict, near.limit_rank), ("NON_SMOOTHING", 2))


CLAIM = by.refuted(
    name="P-2401.04301v1-rank",
    statement="The rank collapses to 1 except where eigenvalues balance exactly, which is "
    "'extremely rare' (v1, public reviews; our reading: for all A, H outside a null set).",
    latex=r"\sigma_2(X_L)/\sigma_1(X_L) \to 0 \quad \text{for almost all } (A, H, X_0)",
    source="arXiv 2401.04301 v1, remark on rank (public reviews), our reading of 'rare'",
    wording="our reading, without the real, sorted eigenvalues that the paper takes (poster) and "
    "the counterexample has not: for real ones P-2401.04301v1-rank-real holds",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS),
    title="a triangle of tokens that only grows",
    at=((_A, _H, _X0),),
    steps=(_forever, _moduli, _neighbours),
    repaired_by="T4c",
)
