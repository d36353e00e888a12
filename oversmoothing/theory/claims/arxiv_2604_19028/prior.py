"""The code's block probabilities never favour edges between different labels."""

from fractions import Fraction
from math import comb

from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import Claim, by, draw, equal


def _shares(
    sizes: list[int], inside: list[Fraction], between: list[list[Fraction]]
) -> list[Fraction]:
    """Expected edges within and between the blocks of these sizes."""
    within = sum((p * comb(n, 2) for p, n in zip(inside, sizes, strict=True)), Fraction(0))
    pairs = [(i, j) for i in range(len(sizes)) for j in range(i)]
    return [within, sum((between[i][j] * sizes[i] * sizes[j] for i, j in pairs), Fraction(0))]


def _law(sizes: list[int], p_in: Fraction, homophily: Fraction, u: list[Fraction]) -> None:
    k = len(sizes)
    p_out = p_in * (1 - homophily)
    inside = [p_out + g * (p_in - p_out) for g in u[:k]]
    drawn = [[p_out * u[(5 * i + 3 * j) % len(u)] for j in range(k)] for i in range(k)]
    between = [[(drawn[i][j] + drawn[j][i]) / 2 for j in range(k)] for i in range(k)]
    within, across = _shares(sizes, inside, between)
    same = sum(comb(n, 2) for n in sizes)
    assert within * comb(sum(sizes), 2) >= same * (within + across)


def _many_labels() -> None:
    """[3; instance] 20 labels of 5 nodes each, homophily 1/10, draws at their ends: p_diag and
    p_off are 9/10 p_in, and 200 of 4950 pairs have one label: 4/99 of the edges."""
    p = Fraction(9, 100)
    within, across = _shares([5] * 20, [p] * 20, [[p] * 20] * 20)
    equal(within / (within + across), Fraction(4, 99))


CLAIM = Claim(
    name="N-2604.19028-prior",
    clauses=(
        "In the code's graphs with blocks, p_out = p_in (1 - homophily), a block has p_out + g "
        "(p_in - p_out) inside, two blocks have the mean of k p_out and l p_out, with 0 <= g, k, l"
        " <= 1 drawn and homophily in [0.1, 0.9]: p_diag >= p_out >= p_off always. No draw is "
        "heterophilous in its block probabilities.",
        "Whatever the numbers of nodes of each label, the expected edges within labels are at "
        "least the share of all expected edges that pairs of one label are of all pairs.",
        "The share of edges within labels can still be small where there are many labels: that is "
        "chance, not preference.",
    ),
    latex=r"p_{\mathrm{diag}}\ge p_{\mathrm{out}}\ge p_{\mathrm{off}}",
    source="arXiv 2604.19028, the code's nodepfn/priors/network_utils.py",
    on_record=by.WRITTEN,
    setting="blocks are labels; the code's other half of graphs has one probability for all pairs",
    evidence=(
        by.for_all(
            "inside, the common value, between: in this order",
            given="p >= 0; 0 <= t; t <= 1; 0 <= g; g <= 1; 0 <= k; k <= 1; 0 <= l; l <= 1",
            then="p*(1-t) + g*(p - p*(1-t)) >= p*(1-t) and p*(1-t) >= (k*p*(1-t) + l*p*(1-t))/2",
            at="p=1/10, t=1/2, g=1/2, k=1/2, l=1/4",
            covers=(1,),
        ).unless("a negative homophily", without="0 <= t", at="p=1, t=-1, g=1, k=1, l=1"),
        by.for_all(
            "the share of edges within is at least that of pairs within",
            given="o >= 0; s >= 0; r >= 0; x >= o*s; 0 <= y; y <= o*r",
            then="x*(s + r) >= s*(x + y)",
            at="o=1, s=1, r=1, x=1, y=1",
            covers=(2,),
        ).unless("edges between at will", without="y <= o*r"),
        by.written(
            "sums over blocks",
            "[2] By (1) the expected edges within, x, are at least p_out times the pairs within, "
            "s, those between, y, at most p_out times the pairs between, r; then the query.",
            _many_labels,
        ),
        by.searched(
            "counts of labels and draws, exactly",
            _law,
            draw.lists(st.integers(1, 9), 2, 5),
            draw.fractions(Fraction(1, 100), Fraction(1, 10), 100),
            draw.fractions(Fraction(1, 10), Fraction(9, 10)),
            draw.lists(draw.fractions(0, 1), 30),
        ),
    ),
    further="A prior with heterophily would need p_out > p_in in some draws.",
)
