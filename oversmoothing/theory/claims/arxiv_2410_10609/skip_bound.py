"""A lower bound on HFC for a skip of weight lambda, with the condition that it needs."""

from fractions import Fraction

from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.t7 import rotations
from oversmoothing.theory.proofs.kit import AA, Claim, Matrix, by, draw, equal, exact, given


def _skipped(A: Matrix, W: Matrix, Y: Matrix, skip: Fraction) -> Matrix:
    return exact.plus(exact.product(A, Y, W), Y, skip)


def _law(attention: draw.Known, turn: Matrix, w: Fraction, skip: Fraction, x: list[int]) -> None:
    """Symmetric A with rational eigenvalues and W = w times a rotation: k = max |a_i|, s = |w|."""
    A, values = attention
    Y = exact.from_integers([x[2 * i : 2 * i + 2] for i in range(len(A))])
    factor = abs(skip) - max(map(abs, values)) * abs(w)
    assume(factor > 0)
    W = exact.scaled(w, turn)
    for _ in range(3):
        moved = _skipped(A, W, Y, skip)
        assert exact.squared_norms(moved)[0] >= factor**2 * exact.squared_norms(Y)[0]
        Y = moved


def _attained() -> None:
    """[3; general] A with the rows (3, 1)/4 and (1, 3)/4 has k = 1/2. With lambda = 1 the state (1,
    -1) is multiplied by 1/2 = |lambda| - k s for W = -1, and by 0 for W = -2, k s = 1."""
    Y = exact.column("1 -1")
    for w in map(Fraction, (-1, -2)):
        equal(_skipped(AA, [[w]], Y, Fraction(1)), exact.scaled(1 + w / 2, Y))


CLAIM = Claim(
    name="N-2410.10609-bound",
    clauses=(
        "Y' = lambda Y + A Y W, A row-stochastic and W any, changing with layer and state, mu(Y) = "
        "||HFC(Y)||_F, k >= ||P A P||_2 and s >= ||W||_2 in all layers: mu(Y_L) >= (|lambda| - k "
        "s)^L mu(Y_0) if |lambda| > k s.",
        "|lambda| >= 1 + k s: mu never falls. (The paper gives a bound of this kind with a "
        "parameter and norms [abstract, reviews]; form and condition are ours.)",
        "The factor is attained, and without |lambda| > k s one layer can end at mu = 0.",
    ),
    latex=r"\mu(Y_L)\ge(|\lambda|-ks)^L\,\mu(Y_0),\qquad k\ge\|PAP\|_2,\ s\ge\|W\|_2,\ "
    r"|\lambda|>ks",
    source="ours, for the lambda-skip connections of arXiv 2410.10609",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC, given.TWO_TOKENS),
    setting="no norm; mu alone says nothing of HFC/LFC, as LFC may grow faster",
    evidence=(
        by.written(
            "the triangle inequality",
            "[1] A 1 = 1: P A = P A P, so P Y' = lambda P Y + (P A P)(P Y) W, and ||(P A P)(P Y) "
            "W||_F <= k s ||P Y||_F. Then induction.",
            "[2] The factor is at least 1.",
            _attained,
        ),
        by.searched(
            "symmetric A, rotations times w, three layers",
            _law,
            draw.walsh_attention().filter(lambda known: len(known[0]) < 8),
            rotations(),
            draw.fractions(-2, 2, 4),
            draw.fractions(-4, 4, 4),
            draw.lists(st.integers(-9, 9), 8),
            at=lambda attention, *_: given.of_attention(attention[0]),
        ),
    ),
    further="k <= 1 for doubly stochastic A; in general k <= sqrt(n). Rows divided by their "
    "lengths afterwards: N-2410.10609-cancels.",
)
