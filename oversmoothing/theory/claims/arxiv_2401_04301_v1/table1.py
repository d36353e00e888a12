"""Table 1's arithmetic: its percentages are no counts of layers, nor of layers and heads."""

import math
from fractions import Fraction

from oversmoothing.theory.proofs.kit import Claim, by

# Per cent of the family of lambda_n^A: ViT-B/16, DeiT-B/16 (12 layers of 12 heads), and ViT-Ti on
# CIFAR100 (12 layers of 3 heads, d = 192); the other family's entries are the rest to 100.
_BASE, _TINY = (Fraction("70.27"), Fraction("57.82")), (Fraction("98.92"),)
_UNIT = Fraction(1, 100)


def _fits(value: Fraction, cases: int, above: Fraction = _UNIT) -> bool:
    """Whether some k/cases is printed so: rounded (at most half a unit below) or cut off."""
    first = math.ceil((value - _UNIT / 2) * cases / 100)
    return Fraction(100 * first, cases) < value + above


def _not_layers_and_heads() -> None:
    """[1; general] No k/144 and no k/12 lies in [v - .005, v + .01) for v = 70.27 or 57.82, no k/36
    and no k/12 for v = 98.92: neither rounded nor cut off do they give the table."""
    for values, counts in ((_BASE, (144, 12)), (_TINY, (36, 12))):
        for value in values:
            assert not any(_fits(value, count) for count in counts)


def _smallest() -> None:
    """[2; general] The first N of which some k/N rounds to the entry, by trying all up to it."""
    for value, expected in zip(_BASE + _TINY, (37, 147, 93), strict=True):
        assert not any(_fits(value, count, _UNIT / 2) for count in range(1, expected))
        assert _fits(value, expected, _UNIT / 2)


def _eigenvalues() -> None:
    """[3; general] 12 layers of 768 eigenvalues: some k/9216 gives each entry of the larger models.
    12 layers of 192: no k/2304 gives 98.92 (2279/2304 is 98.9149 %)."""
    assert all(_fits(value, 12 * 768) for value in _BASE)
    assert not _fits(_TINY[0], 12 * 192)


CLAIM = Claim(
    name="P-2401.04301v1-table1",
    clauses=(
        "Table 1 (v1, poster) gives 70.27 and 57.82 % for models of 12 layers with 12 heads, 98.92"
        " % for one of 12 layers with 3 heads (ViT-Ti, our reading), as shares of 'cases' that it "
        "does not name. No k/144 and no k/12 is 70.27 or 57.82 %, no k/36 and no k/12 is 98.92 %, "
        "rounded or cut off: a case is neither a layer nor a head of a layer, decided once.",
        "The smallest numbers of cases that round to them are 37, 147 and 93.",
        "Counting eigenvalues of H, layer by layer, is excluded by arithmetic for the small model, "
        "not for the two larger ones.",
    ),
    latex=r"\tfrac{70.27}{100},\tfrac{57.82}{100}\notin\tfrac{1}{144}\mathbb Z,\qquad "
    r"\tfrac{98.92}{100}\notin\tfrac1{36}\mathbb Z\quad(\pm 10^{-4})",
    source="arXiv 2401.04301 v1, Table 1 (poster)",
    on_record=by.WRITTEN,
    evidence=(by.written("fractions", _not_layers_and_heads, _smallest, _eigenvalues),),
    further="So cases run over images too. `oversmoothing readings` counts in every way that fits.",
)
