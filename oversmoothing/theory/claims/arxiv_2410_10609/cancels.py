"""The lower bound of lambda-skip connections, read without further conditions, fails."""

from fractions import Fraction

from oversmoothing.theory.proofs.kit import AA, by, equal, exact, given

_H = exact.diagonal("0 -2")
_X0 = exact.matrix("3/5 4/5; 3/5 -4/5")


def _condition() -> None:
    """lambda = 1. The value weights have norm S = 2 (Frobenius and spectral), A has the Frobenius
    norm C_M = sqrt(5)/2 and the spectral norm 1. (S C_M + 1)^2 = 6 + 2 sqrt(5) < 11 (20 < 25), so
    a = 1/11 > 0 satisfies 1 - a (S C_M + 1)^2 > 0, with either norm."""
    equal(sum(x * x for row in _H for x in row), 4)
    equal(sum(x * x for row in AA for x in row), Fraction(5, 4))
    # S C_M = sqrt(5): (sqrt(5) + 1)^2 = 6 + 2 sqrt(5), and 2 sqrt(5) < 5.
    assert 4 * 4 * Fraction(5, 4) < 5**2
    assert 6 + 5 <= 11


def _cancelled() -> None:
    """Tokens (3/5, 4/5) and (3/5, -4/5), of length 1. A halves their difference, and -2 times a
    half cancels the skip: both become (3/5, 0), and (1, 0) when divided by their lengths. HFC is 0
    after one layer, below a/1 times what it was."""
    moved = exact.layer(AA, _H, _X0)
    equal(moved, exact.matrix("3/5 0; 3/5 0"))
    before, after = (exact.squared_norms(X)[0] for X in (_X0, exact.scaled("5/3", moved)))
    equal((before, after), (Fraction(32, 25), 0))
    assert after < before / 11


CLAIM = by.refuted(
    name="N-2410.10609-cancels",
    statement="Y' = lambda Y + A Y W, rows then divided by their lengths, ||W|| <= S, ||A|| <= "
    "C_M: if lambda^2 - a (S C_M + |lambda|)^2 > 0 then mu(Y_K)^2 >= a^K mu(Y_0)^2, mu = ||HFC||_F "
    "(our reading: the condition and the bound as public reviews have them; whether the theorem "
    "asks more of W, A or Y_0 was not at hand).",
    latex=r"\lambda^2-a(SC_M+|\lambda|)^2>0\implies\mu(Y_K)^2\ge a^K\mu(Y_0)^2",
    source="arXiv 2410.10609 (public reviews), our reading without further conditions",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.BOTH_PARTS),
    title="attention that cancels the skip",
    at=((AA, _H, _X0),),
    steps=(_condition, _cancelled),
    repaired_by="N-2410.10609-bound",
    further="The norms of W and A alone cannot tell whether the branch adds to the skip or takes "
    "it away.",
)
