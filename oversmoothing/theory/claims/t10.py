"""What the claims of t10.md execute."""

from fractions import Fraction
from functools import reduce
from operator import add

import numpy as np
import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.numbers.exact import to_float
from oversmoothing.theory.numbers.rounding import TINY, gamma
from oversmoothing.theory.proofs.kit import Matrix, draw, exact, search, verdict


# T10
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


# T10-float64
# Floats that cancel, are far apart, or underflow in products.
_FLOATS = st.builds(
    lambda m, e: float(np.ldexp(m, e)),
    st.floats(-1, 1, allow_subnormal=False),
    st.sampled_from([-540, -537, -300, -3, 0, 0, 1, 40]),
)


@search(draw.lists(st.tuples(_FLOATS, _FLOATS), 1, 12), st.integers(0, 3))
def law_float64(terms: list[tuple[float, float]], kind: int) -> None:
    """kind: how the products are summed."""
    n, (a, b) = len(terms), map(np.array, zip(*terms, strict=True))
    total = (
        lambda: float(a @ b),
        lambda: float(np.add.reduce((a * b)[::-1])),
        lambda: reduce(add, (x * y for x, y in terms), 0.0),  # `sum` would be more exact
        lambda: float(np.einsum("i,i->", a, b)),
    )[kind]()
    products = [Fraction(x) * Fraction(y) for x, y in terms]
    bound = Fraction(gamma(n)) * sum(map(abs, products)) + n * Fraction(TINY)
    assert abs(Fraction(total) - sum(products)) <= bound
