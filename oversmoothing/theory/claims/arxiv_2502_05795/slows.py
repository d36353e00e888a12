"""LayerNorm-scaling slows smoothing from exp(-c L) to exp(-c sqrt L), and does not stop it."""

from fractions import Fraction
from functools import partial

from oversmoothing.theory.claims.arxiv_2312_06182.escalating import t_falls
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given


def _law(attention: tuple[Matrix, Fraction], h: Fraction, scales: list[Fraction]) -> None:
    """Two tokens: layer by layer the share of differences is multiplied by the factor."""
    A, a = attention
    X = exact.column("1 4")
    for s in scales:
        t_falls(A, X, partial(exact.layer, A, [[s * h]]), 1 + s * h * a, 1 + s * h, 1)
        factor = (1 + s * h * a) / (1 + s * h)
        assert 1 - h * (1 - a) * s <= factor <= 1 - h * (1 - a) * s / (1 + h)
        X = exact.layer(A, [[s * h]], X)


CLAIM = Claim(
    name="N-2502.05795-slows",
    clauses=(
        "The linear layer with the scales of LayerNorm-scaling, X' = X + s_l A X W, 0 < s_l <= 1, "
        "one feature, h > 0, and an eigenvalue 0 <= a < 1 of A: against the mean its mode is "
        "multiplied by f_l = (1 + s_l h a)/(1 + s_l h), and 1 - h (1 - a) s_l <= f_l <= 1 - h (1 - "
        "a) s_l/(1 + h).",
        "So f_1 ... f_L -> 0 iff s_1 + s_2 + ... diverges. With s = 1 it is geometric; with s_l = "
        "1/sqrt(l) it still tends to 0, between exp(-2 h (1 - a) sqrt(L)) and exp(-2 h (1 - a) "
        "(sqrt(L + 1) - 1)/(1 + h)): slowed, not stopped.",
    ),
    latex=r"e^{-2h(1-a)\sqrt L}\le\prod_{l\le L}\frac{1+ha/\sqrt l}{1+h/\sqrt l}\le "
    r"e^{-\frac{2h(1-a)}{1+h}(\sqrt{L+1}-1)}",
    source="ours, for the LayerNorm-scaling of arXiv 2502.05795",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS),
    setting="frozen attention and norms: the scale of the branch alone",
    evidence=(
        by.for_all(
            "both bounds of a factor",
            given="0 < s; s <= 1; h > 0; 0 <= a; a < 1; f*(1 + s*h) == 1 + s*h*a; g*(1 + h) == 1",
            then="1 - h*(1-a)*s <= f and f <= 1 - h*(1-a)*s*g",
            at="s=1, h=1, a=1/2, f=3/4, g=1/2",
            covers=(1,),
        ).unless("a scale above 1", without="s <= 1", at="s=2, h=1, a=1/2, f=2/3, g=1/2"),
        by.written(
            "logarithms and a sum",
            "[1] pi^T X is multiplied by 1 + s_l h and the mode by 1 + s_l h a (T1d, T1c).",
            "[2] Above: ln f <= -h (1 - a) s/(1 + h). Below: -ln f = ln(1 + s h (1 - a)/(1 + s h "
            "a)) <= h (1 - a) s. Add up; the sum of 1/sqrt(l) lies between 2 sqrt(L + 1) - 2 and 2 "
            "sqrt(L) (an integral).",
        ),
        by.searched(
            "two tokens, layer by layer, exactly",
            _law,
            draw.two_token_attention().filter(lambda known: known[1] >= 0),
            draw.inside(0, 3),
            draw.lists(draw.inside(0, 1), 1, 4),
            at=lambda attention, h, scales: (attention[0], [[h]]),
        ),
    ),
    further="Under Pre-LN itself the lengths of tokens scale the branch as well: T8f.",
)
