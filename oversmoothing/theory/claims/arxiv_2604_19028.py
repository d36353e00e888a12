"""What the claims of arxiv_2604_19028.md execute."""

from fractions import Fraction
from math import comb

from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import draw, search


def _shares(
    sizes: list[int], inside: list[Fraction], between: list[list[Fraction]]
) -> list[Fraction]:
    """Expected edges within and between the blocks of these sizes."""
    within = sum((p * comb(n, 2) for p, n in zip(inside, sizes, strict=True)), Fraction(0))
    pairs = [(i, j) for i in range(len(sizes)) for j in range(i)]
    return [within, sum((between[i][j] * sizes[i] * sizes[j] for i, j in pairs), Fraction(0))]


@search(
    draw.lists(st.integers(1, 9), 2, 5),
    draw.fractions(Fraction(1, 100), Fraction(1, 10), 100),
    draw.fractions(Fraction(1, 10), Fraction(9, 10)),
    draw.lists(draw.fractions(0, 1), 30),
)
def law_prior(sizes: list[int], p_in: Fraction, homophily: Fraction, u: list[Fraction]) -> None:
    k = len(sizes)
    p_out = p_in * (1 - homophily)
    inside = [p_out + g * (p_in - p_out) for g in u[:k]]
    drawn = [[p_out * u[(5 * i + 3 * j) % len(u)] for j in range(k)] for i in range(k)]
    between = [[(drawn[i][j] + drawn[j][i]) / 2 for j in range(k)] for i in range(k)]
    within, across = _shares(sizes, inside, between)
    same = sum(comb(n, 2) for n in sizes)
    assert within * comb(sum(sizes), 2) >= same * (within + across)
