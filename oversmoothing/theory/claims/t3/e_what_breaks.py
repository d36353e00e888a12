"""T3e: real-spectrum rules that fail for complex spectra, each with exact numbers."""

from fractions import Fraction

import sympy as sp

from oversmoothing.theory.proofs.all_depths import symbolic
from oversmoothing.theory.proofs.kit import C3, Claim, by, exact, spectra, verdict
from oversmoothing.theory.verdict.dominance import real_verdict

_GT8 = exact.matrix("-1/2 -2; 2 -1/2")
# Circulant of order 4: eigenvalues 1, 0, 1/10 +- 2i/5.
C4 = exact.scaled("1/20", exact.matrix("6 9 4 1; 1 6 9 4; 4 1 6 9; 9 4 1 6"))
_C4_OTHERS = [(Fraction(1, 10), Fraction(2, 5)), (Fraction(1, 10), Fraction(-2, 5))]


def _negative_real_part() -> None:
    """[1; general] GT8: H = [[-1/2, -2], [2, -1/2]], A = 11^T/2: |1+h|^2 = 1/4 + 4, the quotient
    has a = 0 and modulus 1."""
    values = [(Fraction(-1, 2), Fraction(s * 2)) for s in (1, -1)]
    assert spectra.squared_modulus(values[0], 1) == Fraction(17, 4)
    assert spectra.by_moduli(values, [0]) == "SMOOTHING"
    assert verdict(A=exact.uniform(2), H=_GT8).verdict == "SMOOTHING"


def _mildest() -> None:
    """[1; instance] Any real part in (-1, 0) fails: h = -1/2 + 9i/16 lies just outside the disc."""
    x, y = Fraction(-1, 2), Fraction(9, 16)
    a = -x / (x * x + y * y)
    assert verdict(A=exact.flat(a, 2), H=[[x, -y], [y, x]]).verdict == "SMOOTHING"


def _positive_real_part() -> None:
    """[2; general] C3 = circ(1/10, 4/5, 1/10) has the eigenvalues -7/20 +- 7 sqrt3 i/20. With h =
    1/5 + 3i/2 and the conjugate a: |1+ha|^2 > |1+h|^2."""
    a = sp.Rational(-7, 20) - 7 * sp.sqrt(3) / 20 * sp.I
    shift = sp.Matrix(3, 3, lambda i, j: int(j == (i + 1) % 3))
    A = symbolic(C3)
    assert sp.eye(3) / 10 + shift * sp.Rational(4, 5) + shift**2 / 10 == A
    x = sp.symbols("x")
    assert sp.expand(A.charpoly(x).as_expr() - (x - 1) * (x - a) * (x - sp.conjugate(a))) == 0
    h = sp.Rational(1, 5) + sp.Rational(3, 2) * sp.I
    quotient = sp.expand((1 + h * a) * sp.conjugate(1 + h * a))
    consensus = sp.expand((1 + h) * sp.conjugate(1 + h))
    assert consensus == sp.Rational(369, 100)
    assert quotient == sp.Rational(19821, 10000) + 21 * sp.sqrt(3) / 20
    assert quotient > consensus
    assert abs(sp.N(quotient, 20) - sp.Float("3.800753", 20)) < sp.Float("5e-7")
    assert verdict(A=C3, H=exact.matrix("1/5 -3/2; 3/2 1/5")).verdict == "NON_SMOOTHING"


def _not_the_smallest() -> None:
    """[3; general] C4 = circ(3/10, 9/20, 1/5, 1/20) has the eigenvalues 1, 0, 1/10 +- 2i/5. h =
    -21/10: |1+0|^2 = 1 < |1+h|^2 = 121/100 < |1+ha|^2 = 13297/10000."""
    # h = -21/10 with C4: by a_1 = 0, of smallest real part, consensus would win.
    h = Fraction(-21, 10)
    assert real_verdict(h, h, Fraction(0)) == spectra.by_moduli([h], [0]) == "SMOOTHING"
    assert {spectra.squared_modulus(h, a) for a in _C4_OTHERS} == {Fraction(13297, 10000)}
    assert [spectra.squared_modulus(h, a) for a in (0, 1)] == [1, Fraction(121, 100)]
    assert verdict(A=C4, H=[[h]]).verdict == "NON_SMOOTHING"


CLAIM = Claim(
    name="T3e",
    clauses=(
        "For complex spectra: Re h in [-1, 0] does not exclude smoothing (h = -1/2 +- 2i, A = "
        "11^T/2: rho_C^2 = 17/4 > rho_Q^2 = 1).",
        "Re h > 0 does not force smoothing (h = 1/5 +- 3i/2 and a positive circulant of order 3:"
        " rho_C^2 = 369/100 < rho_Q^2 = 19821/10000 + 21 sqrt3/20 = 3.800753...).",
        "The eigenvalue of A with the smallest real part is not the competitor of consensus: for"
        " h = -21/10 and a circulant of order 4 it would give SMOOTHING, the vertex 1/10 +- 2i/5"
        " of the hull gives NON_SMOOTHING.",
    ),
    latex=r"\operatorname{Re}h\in[-1,0]\not\Rightarrow\rho_Q\ge\rho_C,\qquad "
    r"\operatorname{Re}h>0\not\Rightarrow\rho_C\ge\rho_Q",
    source="ours",
    on_record=by.WRITTEN,
    evidence=(
        by.written(
            "three counterexamples",
            _negative_real_part,
            _mildest,
            _positive_real_part,
            _not_the_smallest,
        ),
    ),
)
