"""T7e: causal layers of any number of heads decouple into one small product for each token."""

from fractions import Fraction

import flint
from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import CAUSAL, Claim, Matrix, by, draw, exact, given, verdict

Heads = list[tuple[Matrix, Matrix]]


@st.composite
def _layers(pick: st.DrawFn) -> list[Heads]:
    """One to three layers of one or two causal heads (A, W)."""
    n, d = pick(st.integers(1, 3)), pick(st.integers(1, 2))
    return pick(draw.lists(draw.heads(draw.causal_attention(n, n), d, 2), 1, 3))


def _law(layers: list[Heads]) -> None:
    """det(x - product of the layers) is the product over the tokens of det(x - G_i)."""
    n, d = len(layers[0][0][0]), len(layers[0][0][1])
    whole, blocks = exact.identity(n * d), [exact.identity(d)] * n
    for heads in layers:
        M, factors = exact.identity(n * d), [exact.identity(d)] * n
        for A, W in heads:
            M = exact.plus(M, exact.kronecker(exact.transposed(W), A))
            factors = [exact.plus(g, exact.transposed(W), A[i][i]) for i, g in enumerate(factors)]
        whole = exact.product(M, whole)
        blocks = [exact.product(g, block) for g, block in zip(factors, blocks, strict=True)]
    expected = flint.fmpq_poly([1])
    for block in blocks:
        expected = expected * exact.characteristic(block)
    assert exact.characteristic(whole) == expected


def _threshold() -> None:
    """[3; instance] Fixed weights: G_i = (I + A_ii H)^L, so token i grows like max_j |1 + h_j
    A_ii|; a_1 = min A_ii > 0 is the smallest eigenvalue of A, and for one h the threshold of T2b is
    -2/(1 + min A_ii)."""
    # min A_ii = 1/4: the threshold is -8/5, and consensus wins again below it.
    for h, found in ((-2, "SMOOTHING"), (Fraction(-8, 5), "TIE"), (-1, "NON_SMOOTHING")):
        assert verdict(A=CAUSAL, H=exact.diagonal([h])).verdict == found


CLAIM = Claim(
    name="T7e",
    clauses=(
        "If every A_(l,h) is lower triangular, the product of the layers X' = X + sum_h A_(l,h) "
        "X W_(l,h) is block triangular over the tokens, with the diagonal blocks G_i = prod_l (I"
        " + sum_h A^(l,h)_ii W_(l,h)^T): its spectrum is the union of theirs, at a cost of O(L n"
        " d^3) for n tokens.",
        "The block of token 1 is consensus.",
        "For fixed weights token i is decided by 1 + h_j A_ii; a_1 = min A_ii > 0, and a single "
        "h smooths below -2/(1 + min A_ii).",
    ),
    latex=r"A_{ij}=0\ (j>i)\implies\operatorname{spec}\Big(\prod_l M_l\Big)=\bigcup_i"
    r"\operatorname{spec}\prod_l\Big(I+\sum_h A^{(l,h)}_{ii}W_{l,h}^\top\Big)",
    source="ours: decoders, which the hypothesis A > 0 of arXiv 2401.04301 excludes",
    on_record=by.WRITTEN,
    hypotheses=(given.CAUSAL_MASK,),
    evidence=(
        by.written(
            "token by token",
            "[1] Row i of A X W is sum_(j <= i) A_ij x_j W: token i hears no later token. Ordered "
            "by tokens a layer is block lower triangular with diagonal blocks I + sum_h A_ii W^T; "
            "products multiply them, and the characteristic polynomial is the product of theirs.",
            "[2] A_11 = 1 in every head: the block of the first token is prod (I + sum_h W^T), "
            "which is consensus (T1h).",
            _threshold,
        ),
        by.searched(
            "characteristic polynomials of products, exactly",
            _law,
            _layers(),
            at=lambda layers: given.of_attention(layers[0][0][0]),
        ),
    ),
)
