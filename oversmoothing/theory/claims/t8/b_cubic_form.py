"""T8b: content-only attention near consensus moves the differences at third order."""

from fractions import Fraction
from typing import Any

import flint
from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given

# The expansion is checked up to the power before this one.
_ORDER = 5


@st.composite
def _cases(pick: st.DrawFn) -> tuple[Matrix, Matrix, Matrix]:
    """(c, E, M): a mean [1, d], differences [n, d] that sum to 0, logits x M x^T."""
    n, d = pick(st.integers(2, 4)), pick(st.integers(1, 2))
    c, X = pick(draw.states(1, d)), pick(draw.states(n, d))
    means = [sum(column, Fraction(0)) / n for column in exact.transposed(X)]
    return (
        c,
        [[x - m for x, m in zip(row, means, strict=True)] for row in X],
        pick(draw.states(d, d)),
    )


def _series(linear: Fraction, square: Fraction) -> Any:
    """exp(linear s + square s^2)."""
    exponents = [flint.fmpq(x.numerator, x.denominator) for x in (linear, square)]
    return flint.fmpq_series([0, *exponents], prec=_ORDER + 1).exp()


def _law(c: Matrix, E: Matrix, M: Matrix) -> None:
    """Differences s E: the rows of A X, less their mean, are s E M Sig_a up to s^4, exactly."""
    n, d = len(E), len(c[0])
    near, far = (
        exact.product(c, M, exact.transposed(E))[0],
        exact.product(E, M, exact.transposed(E)),
    )
    entries = [[flint.fmpq(x.numerator, x.denominator) for x in row] for row in E]
    s = flint.fmpq_series([0, 1], prec=_ORDER + 1)

    def means(weights: list[Any]) -> list[Any]:
        """sum_j a_j s e_j for a proportional to the weights."""
        total = sum(weights[1:], weights[0])
        return [
            sum((w * e[k] for w, e in zip(weights, entries, strict=True)), 0 * s) * s / total
            for k in range(d)
        ]

    plain = [_series(x, Fraction(0)) for x in near]
    moved = [means([_series(x, y) for x, y in zip(near, row, strict=True)]) for row in far]
    total = sum(plain[1:], plain[0])
    mean = means(plain)
    for i in range(n):
        for k in range(d):
            predicted = 0 * s
            for m in range(d):
                form = sum((E[i][j] * M[j][m] for j in range(d)), Fraction(0))
                second = (
                    sum((w * e[m] * e[k] for w, e in zip(plain, entries, strict=True)), 0 * s)
                    * s
                    * s
                    / total
                )
                tilt = flint.fmpq(form.numerator, form.denominator)
                predicted = predicted + (second - mean[m] * mean[k]) * s * tilt
            centred = moved[i][k] - sum((row[k] for row in moved), 0 * s) / n
            left = (centred - predicted).coeffs()
            assert not any(left[:_ORDER]), f"token {i}, feature {k}: {left}"


CLAIM = Claim(
    name="T8b",
    clauses=(
        "Logits x_i M x_j^T/sqrt k, no position. With the mean c and E = HFC, a = softmax over j"
        " of c M e_j^T/sqrt k and Sig_a the covariance of the rows e_j under a: E' = E + E M "
        "Sig_a W/sqrt k + R with ||R|| <= C ||M||^2 ||W|| ||E||^5/k, C depending on n alone. So "
        "near consensus the differences move at third order, whatever c.",
    ),
    latex=r"E'=E+\tfrac1{\sqrt k}\,E\,M\,\Sigma_a\,W+O(\|E\|^5),\qquad "
    r"a=\operatorname{softmax}\big(cME^\top/\sqrt k\big)",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(given.TWO_TOKENS,),
    setting="A = softmax(X M X^T/sqrt k), computed from X",
    evidence=(
        by.written(
            "tilting a softmax",
            "[1] x_i M x_j = (c + e_i) M c + c M e_j + e_i M e_j, and softmax over j drops what "
            "does not depend on j: row i of A has weights a_j exp(theta_i e_j)/norm, theta_i = e_i"
            " M/sqrt k, a tilt of a.",
            "[1] The mean of e_j under the tilt is mu + theta Sig_a + r(theta): its derivatives in"
            " theta are the cumulants, the first at theta = 0 is Sig_a, and the second is bounded "
            "by 8 max ||e_j||^3 at every theta. So ||r_i|| <= 4 ||theta_i||^2 max ||e_j||^3 <= 4 "
            "||M||^2 ||E||^5/k.",
            "[1] A X = 1 c + A E has rows c + mu + theta_i Sig_a + r_i; P removes c + mu and "
            "leaves E M Sig_a/sqrt k, whose columns sum to 0 as those of E do: E' = E + E M Sig_a "
            "W/sqrt k + (P r) W. Sig_a is of second order in E.",
        ),
        by.searched("power series in fractions: all terms up to the fourth power", _law, _cases()),
    ),
    further="Depth: for M = I, W = wI the leading order gives HFC ~ sqrt(n min(n-1, d) sqrt d/(2 "
    "|w| L)) for -2 < w < 0 and a constant HFC for w > 0 (observed); beyond leading order it is "
    "not proved.",
)
