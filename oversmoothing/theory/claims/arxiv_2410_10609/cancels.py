"""The lower bound of lambda-skip connections needs its condition on the input."""

from fractions import Fraction

import sympy as sp

from oversmoothing.theory.proofs.kit import AA, Claim, by, equal, exact, given

_H = exact.diagonal("0 -2")
_X0 = exact.matrix("3/5 4/5; 3/5 -4/5")


def _least_input(lam: int, n: int, d: int, sc: sp.Expr, a: sp.Rational, depth: int) -> sp.Expr:
    """b of Theorem 4.1 as public reviews quote it, sc = S C_M."""
    return 2 * lam * n * d * sc / (a**depth * (lam**2 - a * (sc + abs(lam)) ** 2))


def _condition() -> None:
    """[1; general] lambda = 1, W = diag(0, -2), A with the rows (3, 1)/4 and (1, 3)/4. W has norm
    S = 2 (Frobenius and spectral), A the Frobenius norm C_M = sqrt(5)/2 and the spectral norm 1.
    (S C_M + 1)^2 = 6 + 2 sqrt(5) < 11 (20 < 25), so a = 1/11 > 0 satisfies 1 - a (S C_M + 1)^2 > 0,
    with either norm."""
    equal(sum(x * x for row in _H for x in row), 4)
    equal(sum(x * x for row in AA for x in row), Fraction(5, 4))
    # S C_M = sqrt(5): (sqrt(5) + 1)^2 = 6 + 2 sqrt(5), and 2 sqrt(5) < 5.
    assert 4 * 4 * Fraction(5, 4) < 5**2
    assert 6 + 5 <= 11


def _cancelled() -> None:
    """[1; general] Tokens (3/5, 4/5) and (3/5, -4/5), of length 1. A halves their difference, and
    -2 times a half cancels the skip: both become (3/5, 0), and (1, 0) when divided by their
    lengths. mu^2 falls from 32/25 to 0, below 1/11 of what it was."""
    equal([sum(x * x for x in row) for row in _X0], [1, 1])
    moved = exact.layer(AA, _H, _X0)
    equal(moved, exact.matrix("3/5 0; 3/5 0"))
    before, after = (exact.squared_norms(X)[0] for X in (_X0, exact.scaled("5/3", moved)))
    equal((before, after), (Fraction(32, 25), 0))
    assert after < before / 11


def _input() -> sp.Matrix:
    """[2; general] One layer, N = d = 2: b is 121 times 8 S C_M/(11 - (S C_M + 1)^2), 968 for S C_M
    = 2 and 968 (2 + sqrt(5)), some 4,100, for S C_M = sqrt(5). Both are above 32/25."""
    least = [_least_input(1, 2, 2, sc, sp.Rational(1, 11), 1) for sc in (sp.Integer(2), sp.sqrt(5))]
    assert all(b > sp.Rational(32, 25) for b in least)
    return sp.Matrix([least[0] - 968, sp.radsimp(least[1]) - 968 * (2 + sp.sqrt(5))])


CLAIM = Claim(
    name="N-2410.10609-cancels",
    clauses=(
        "Y' = lambda Y + A Y W, rows then divided by their lengths, ||W|| <= S, ||A|| <= C_M, mu = "
        "||HFC||_F: lambda^2 - a (S C_M + |lambda|)^2 > 0 alone does not give mu(Y_K)^2 >= a^K "
        "mu(Y_0)^2. Two tokens can become equal in one layer.",
        "Theorem 4.1 of the paper asks for more, mu(Y_0)^2 >= b = a^-K 2 lambda N d S C_M/"
        "(lambda^2 - a (S C_M + |lambda|)^2) (as public reviews quote it), and is not touched: in "
        "the example mu(Y_0)^2 = 32/25, and b is 968 with spectral norms, 968 (2 + sqrt(5)) with "
        "Frobenius norms. Rows of length 1 have mu^2 <= N = 2: at this a the theorem says nothing "
        "of any start of this layer.",
    ),
    latex=r"\lambda^2-a(SC_M+|\lambda|)^2>0\ \not\Rightarrow\ \mu(Y_K)^2\ge a^K\mu(Y_0)^2,"
    r"\qquad b=\frac{2\lambda NdSC_M}{a^K(\lambda^2-a(SC_M+|\lambda|)^2)}",
    source="ours, on the condition on the input of Theorem 4.1 of arXiv 2410.10609 (public "
    "reviews)",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.BOTH_PARTS),
    evidence=(
        by.written(
            "attention that cancels the skip",
            _condition,
            _cancelled,
            _input,
            "[2] mu(Y)^2 = ||Y||^2 - ||LFC||^2 <= ||Y||^2 = N for rows of length 1, and "
            "968 > 2; more layers make b larger, as a < 1.",
        ),
    ),
    further="The norms of W and A alone cannot tell whether the branch adds to the skip or takes "
    "it away; what they do give is N-2410.10609-bound.",
)
