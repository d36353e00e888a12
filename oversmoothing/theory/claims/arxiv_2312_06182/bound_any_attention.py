"""The bound by |lambda_2| needs symmetry: a softmax can lower similarity on average."""

from fractions import Fraction

from oversmoothing.theory.proofs.kit import by, equal, exact, given, spectra

_A, _X0 = exact.matrix("1/2 1/2; 1/4 3/4"), exact.column("5 -3")


def _gap() -> None:
    """lambda_2 = 1/4."""
    equal(spectra.values(_A), [Fraction(1, 4), 1])


def _on_average() -> None:
    """X = (5, -3): ||J X||^2 = 2 of 34, t_sim = 1/17. A X = (1, -1), so W = 1 and W = -1 give Y =
    (6, -4) and (4, -2): ||J Y||^2 = 2 in both, ||Y||^2 = 52 and 20, 36 on average. t_sim falls to
    2/36 = 1/18: r = 17/18 < 1."""
    hfc, lfc = exact.squared_norms(_X0)
    equal(lfc / (hfc + lfc), Fraction(1, 17))
    pairs = [exact.squared_norms(exact.layer(_A, exact.matrix(w), _X0)) for w in ("1", "-1")]
    equal([low for _, low in pairs], [2, 2])
    total = sum(high + low for high, low in pairs)
    equal(sum(low for _, low in pairs) / total, Fraction(1, 18))


CLAIM = by.refuted(
    name="N-2312.06182-bound-any-attention",
    statement="For every softmax A with |lambda_2(A)| < 1 and W random of mean 0, similarity does "
    "not fall on average: E ||J Y||^2/E ||Y||^2 >= t_sim(X) for Y = X + A X W (our reading of the "
    "lower bound on the rate, its form and its assumptions on A not being at hand).",
    latex=r"\frac{E\|JY\|^2}{E\|Y\|^2}\ge\frac{\|JX\|^2}{\|X\|^2}",
    source="arXiv 2312.06182 v2, lower bound on the escalation rate (a summary), our reading",
    wording="our reading of a summary; the form of the paper's lower bound and its hypotheses were "
    "not at hand",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A, given.BOTH_PARTS),
    title="an A that takes the mean away",
    at=((_A, exact.matrix("1"), _X0), (_A, exact.matrix("-1"), _X0)),
    steps=(_gap, _on_average),
    repaired_by="N-2312.06182-bound",
)
