"""T10-float64: how far a rounded inner product may be off: what the certificates' discs rest on."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from oversmoothing.theory.certificates.rounding import TINY, UNIT, gamma
from oversmoothing.theory.proofs.kit import Claim, by, draw


def _smallest_numbers() -> None:
    """[1; instance] In binary64 u = 2^-53, and a product that underflows is off by at most half the
    smallest number, eta = 2^-1075: 2 eta = 2^-1074. Sums that underflow are exact."""
    assert Fraction(TINY) == 2 * Fraction(2) ** -1075 and Fraction(UNIT) == Fraction(2) ** -53
    small = 2.0**-1074
    assert small * 0.5 == 0.0 and Fraction(small + small) == 2 * Fraction(small)


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


def _law(x: list[float], y: list[float], kind: int) -> None:
    n, a, b = len(x), np.array(x), np.array(y)
    if kind == 0:
        found = float(a @ b)
    elif kind == 1:
        found = float(np.add.reduce((a * b)[::-1]))
    elif kind == 2:
        found = 0.0
        for k in range(n):
            found = found + x[k] * y[k]
    else:
        found = float(np.einsum("i,i->", a, b))
    terms = [Fraction(p) * Fraction(q) for p, q in zip(x, y, strict=True)]
    bound = Fraction(gamma(n)) * sum(map(abs, terms)) + n * Fraction(TINY)
    assert abs(Fraction(found) - sum(terms)) <= bound


CLAIM = Claim(
    name="T10-float64",
    clauses=(
        "In the standard model of rounding with gradual underflow (an operation is off by a factor "
        "1 + d, |d| <= u, a product by |e| <= eta besides), an inner product of length k summed in "
        "any order, with or without fused multiply-add, is off by at most gamma_k |x|^T |y| + k (2 "
        "eta) for k u <= 1/2, gamma_k = k u/(1 - k u).",
    ),
    latex=r"|\mathrm{fl}(x^\top y) - x^\top y| \le \frac{ku}{1-ku}\,|x|^\top|y| + 2k\eta",
    source="Higham, Accuracy and Stability of Numerical Algorithms, section 3.1",
    on_record=by.MACHINE,
    setting="the model of an operation is assumed; IEEE 754 binary64 obeys it with u = 2^-53, eta "
    "= 2^-1075 where nothing overflows",
    evidence=(
        by.Formal("Float64.inner_product", (1,)),
        by.written(
            "each product passes at most k roundings",
            "[1] By induction over the order of summation: with P_k = (1 + u)^k the sum of k "
            "products is off by at most (P_k - 1) |x|^T |y| + k P_k eta. A sum of two, of "
            "lengths k and l, multiplies both bounds by 1 + u and adds u times the sizes; (1 + u) "
            "P_k <= P_(k+l) as l >= 1.",
            "[1] (1 + u)^k (1 - k u) <= 1 by induction, so P_k - 1 <= gamma_k, and P_k <= 2 for k u"
            " <= 1/2.",
            _smallest_numbers,
        ),
        by.searched("inner products in floats against fractions", _law, _pairs()),
    ),
    further="Overflow, division and the square root are not in the model; what is computed from "
    "the bound in floats is inflated (theory/certificates/rounding.py)",
)
