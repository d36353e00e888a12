"""Two ways for queries and keys to lose their gradient: equal tokens, and a saturated row."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.claims.binary_softmax import binary_softmax
from oversmoothing.theory.claims.t7 import dobrushin, oscillation, squared_diameter
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact


def _law(L: list[list[int]], X: Matrix, change: list[Fraction]) -> None:
    """Logits in integers times ln 2: e^s is then 2^s, tanh(s/2) = (2^s - 1)/(2^s + 1)."""
    A, change = binary_softmax(exact.from_integers(L)), change[: len(X)]
    span = 2 ** max(max(row) - min(row) for row in L)
    assert dobrushin(A) * (span + 1) <= span - 1
    for a, logits in zip(A, L, strict=True):
        mean = exact.dot(a, change)
        moved = exact.product([[p * (c - mean) for p, c in zip(a, change, strict=True)]], X)[0]
        left = 1 - max(a)
        size = left * oscillation(change)
        assert exact.dot(moved, moved) <= size**2 * squared_diameter(X)
        lead = sorted(logits)[-1] - sorted(logits)[-2]
        assert left * 2**lead <= len(X) - 1


@st.composite
def _rows(pick: st.DrawFn) -> tuple[list[list[int]], Matrix, list[Fraction]]:
    n = pick(st.integers(2, 4))
    L = pick(draw.lists(draw.lists(st.integers(-4, 4), n), n))
    return L, pick(draw.states(n, 2)), pick(draw.lists(draw.fractions(-3, 3, 4), 4))


CLAIM = Claim(
    name="N-2505.24333-two-ends",
    clauses=(
        "One row of attention a = softmax(l), y = sum_j a_j x_j, D the diameter of the tokens: a "
        "change dl of the logits moves y by ||dy|| <= (1 - max a) D osc(dl), osc = max - min. So "
        "what queries and keys can change vanishes at equal tokens (D = 0) and at a saturated "
        "row (max a = 1).",
        "Entropy collapse: if the largest logit leads by g, 1 - max a <= (n-1) e^-g.",
        "Rank collapse: if the logits of each row spread by s at most, diam(A X W) <= tanh(s/2) "
        "||W|| D: without a residual and with ||W|| <= w, w tanh(s/2) < 1, tokens become equal "
        "geometrically. (Two failure modes, one at small and one at large variance of the "
        "logits: abstract, our reading.)",
    ),
    latex=r"\|\mathrm dy\|\le(1-\max_ja_j)\,\operatorname{diam}(X)\,\operatorname{osc}(\mathrm dl)",
    source="arXiv 2505.24333, two failure modes (abstract), our reading; the bounds are ours",
    on_record=by.WRITTEN,
    evidence=(
        by.written(
            "sums without the leading token",
            "[1] dy = sum_j a_j (x_j - y) dl_j, and sum_j a_j (x_j - y) = 0: subtract dl_t of the "
            "token t with a_t = max a. The other terms are at most a_j D osc(dl), since y is a "
            "mean of tokens.",
            "[2] a_j/a_t <= e^-g for the n - 1 others.",
            "[3] Two rows of logits then differ by what spreads over 2 s at most, so their odds "
            "by e^(2s): total variation at most tanh(s/2), as in N-2103.03404-doubly-exponential, "
            "and A contracts diameters by that.",
        ),
        by.searched("rows with integer logits times ln 2, in fractions", _law, _rows()),
    ),
    further="Where random logits of one variance fall: N-2505.24333-threshold.",
)
