"""What the diameter does contract by, and in which norm the spectral gap is the factor."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.claims.clustering_2026.averaging import averaged, gap
from oversmoothing.theory.claims.t7 import dobrushin, oscillation
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given


def _law(A: Matrix, eps: Fraction, x: list[int]) -> None:
    """One layer, one feature."""
    X = exact.from_integers([[k] for k in x[: len(A)]])
    moved = averaged(A, X, eps)
    before, after = (oscillation([row[0] for row in Y]) for Y in (X, moved))
    assert after <= (1 - eps * (1 - dobrushin(A))) * before


def _symmetric(walsh: draw.Known, eps: Fraction, x: list[int], d: int) -> None:
    """Several features and up to five layers of a symmetric A with rational eigenvalues."""
    A, _ = walsh
    n = len(A)
    X = exact.from_integers([x[i * d : (i + 1) * d] for i in range(n)])
    factor, start, squared = 1 - eps * gap(A), X, Fraction(1)
    for _ in range(5):
        moved = averaged(A, X, eps)
        squared *= factor**2
        assert exact.squared_norms(moved)[0] <= factor**2 * exact.squared_norms(X)[0]
        assert _diameter(moved) <= (n - 1) * squared * _diameter(start)
        X = moved


def _diameter(X: Matrix) -> Fraction:
    """Its square."""
    return max(
        sum(((p - q) ** 2 for p, q in zip(x, y, strict=True)), Fraction(0)) for x in X for y in X
    )


CLAIM = Claim(
    name="N-clustering2026-norms",
    clauses=(
        "X' = (1 - eps) X + eps A X, 0 <= eps <= 1, A row-stochastic: in any norm the diameter of "
        "the tokens becomes at most 1 - eps (1 - tau(A)) times itself, tau(A) = max over i, k of "
        "(1/2) sum_j |A_ij - A_kj|.",
        "A symmetric besides, g = 1 - max |a_i| over i < n: ||HFC(X')||_F <= (1 - eps g) "
        "||HFC(X)||_F.",
        "Then d(X_L) <= sqrt(n - 1) (1 - eps g)^L d(X_0) for the Euclidean diameter: the gap is "
        "the rate, with a constant in front.",
    ),
    latex=r"d(X')\le\bigl(1-\varepsilon(1-\tau(A))\bigr)d(X),\qquad "
    r"\|\mathrm{HFC}(X')\|_F\le(1-\varepsilon g)\|\mathrm{HFC}(X)\|_F\quad(A=A^\top)",
    source="ours, repairing N-clustering2026-diameter; Dobrushin's coefficient",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC, given.TWO_TOKENS),
    evidence=(
        by.written(
            "two coefficients",
            "[1] B = (1 - eps) I + eps A is row-stochastic, and d(B X) <= tau(B) d(X) "
            "(T7b-certificate, step 1). For rows i, k of B the sum of differences is at most (1 - "
            "eps) 2 + eps 2 tau(A), halved: tau(B) <= 1 - eps + eps tau(A).",
            "[2] A symmetric, A 1 = 1: P = I - 11^T/n commutes with A, and P X' = ((1 - eps) I + "
            "eps A) P X, on the complement of 1 with eigenvalues 1 - eps + eps a_i, of modulus at "
            "most 1 - eps + eps (1 - g).",
            "[3] ||HFC||_F^2 is 1/n times the sum of the squared distances over pairs, at most "
            "(n - 1) d^2/2; and d^2 <= 2 ||HFC||_F^2, as |y_i - y_k|^2 <= 2 |y_i|^2 + 2 |y_k|^2. "
            "With (2): d(X_L)^2 <= 2 (1 - eps g)^(2L) (n - 1)/2 d(X_0)^2.",
        ),
        by.searched(
            "the diameter, any row-stochastic A",
            _law,
            draw.attention(2, 4, zeros=True),
            draw.fractions(0, 1),
            draw.lists(st.integers(-9, 9), 4),
            at=lambda A, *_: given.of_attention(A),
        ),
        by.searched(
            "symmetric A with rational eigenvalues, five layers",
            _symmetric,
            draw.walsh_attention(),
            draw.fractions(0, 1),
            draw.lists(st.integers(-9, 9), 16),
            st.integers(1, 2),
            at=lambda walsh, *_: given.of_attention(walsh[0]),
        ),
    ),
    further="The constant cannot be 1: N-clustering2026-diameter. Doubly stochastic A that are "
    "not symmetric have the second singular value in the place of max |a_i|.",
)
