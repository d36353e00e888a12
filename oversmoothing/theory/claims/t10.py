"""What the claims of t10.md execute."""

from fractions import Fraction

import numpy as np
import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.numbers.exact import to_float
from oversmoothing.theory.numbers.rounding import TINY, gamma
from oversmoothing.theory.proofs.kit import Matrix, draw, exact, search, verdict

# --------------------------------------------------------------------------------------- T10


def isolated() -> sp.Expr:
    x, y, p, q, u, v, e = sp.symbols("x y p q u v e", real=True)
    gap = (1 + x + e) ** 2 + y**2 - (1 + (p + e) * u - q * v) ** 2 - ((p + e) * v + q * u) ** 2
    return sp.Poly(sp.expand(gap), e).coeff_monomial(e**2) - (1 - u**2 - v**2)


def rounded() -> None:
    assert verdict(A=exact.AA, H=[[Fraction(-4, 3)]]).verdict == "TIE"
    assert Fraction(-4 / 3) > Fraction(-4, 3)
    answer = verdict(A=to_float(exact.AA), H=[[-4 / 3]], exact_binary=True)
    assert (answer.verdict, answer.status) == ("NON_SMOOTHING", "certified")


@search(draw.two_token_attention(), draw.fractions(-1, 1).filter(bool), at="A e")
def law_ball_certificates(A: Matrix, a: Fraction, e: Fraction) -> None:
    h = -2 / (1 + a)
    assert verdict(A=A, H=[[h]]).verdict == "TIE" != verdict(A=A, H=[[h + e]]).verdict


# ------------------------------------------------------------------------------- T10-float64


@st.composite
def _pairs(pick: st.DrawFn) -> tuple[list[float], list[float], int]:
    """Floats that cancel, are far apart, or underflow in products; how they are summed."""
    n = pick(st.integers(1, 12))
    one = st.builds(
        lambda m, e: float(np.ldexp(m, e)),
        st.floats(-1, 1, allow_subnormal=False),
        st.sampled_from([-540, -537, -300, -3, 0, 0, 1, 40]),
    )
    return pick(draw.lists(one, n)), pick(draw.lists(one, n)), pick(st.integers(0, 3))


@search(_pairs())
def law_float64(x: list[float], y: list[float], kind: int) -> None:
    n, a, b = len(x), np.array(x), np.array(y)
    if kind == 0:
        total = float(a @ b)
    elif kind == 1:
        total = float(np.add.reduce((a * b)[::-1]))
    elif kind == 2:
        total = 0.0
        for k in range(n):
            total = total + x[k] * y[k]
    else:
        total = float(np.einsum("i,i->", a, b))
    terms = [Fraction(p) * Fraction(q) for p, q in zip(x, y, strict=True)]
    bound = Fraction(gamma(n)) * sum(map(abs, terms)) + n * Fraction(TINY)
    assert abs(Fraction(total) - sum(terms)) <= bound
