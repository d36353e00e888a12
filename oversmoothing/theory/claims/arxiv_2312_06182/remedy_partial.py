"""A partial removal that is too small leaves escalation in place."""

from fractions import Fraction

from oversmoothing.theory.claims.arxiv_2312_06182.escalating import AFTER, BEFORE, step
from oversmoothing.theory.proofs.kit import AA, by, equal, exact, given

_H, _X0, _TAU = exact.matrix("2"), exact.column("0 2"), Fraction(1, 6)


def _modes() -> None:
    """With the removal, before or after, one layer multiplies (1, 1) by 3 (1 - 1/6) = 5/2 and (-1,
    1) by 2. X_0 is their sum, so HFC/LFC = (2 / (5/2))^L = (4/5)^L."""
    for place in (AFTER, BEFORE):
        equal(
            step(AA, _H, exact.column("1 1"), _TAU, place),
            exact.scaled(Fraction(5, 2), exact.column("1 1")),
        )
        equal(
            step(AA, _H, exact.column("-1 1"), _TAU, place),
            exact.scaled(Fraction(2), exact.column("-1 1")),
        )


CLAIM = by.refuted(
    name="N-2312.06182-remedy-partial",
    statement="Any partial removal, 0 < tau < 1, stops similarity escalation (our reading; the "
    "paper usually takes tau = 1).",
    latex=r"0 < \tau < 1 \implies \mathrm{HFC}/\mathrm{LFC} \not\to 0",
    source="arXiv 2312.06182 v2, surgical removal (a summary), our reading",
    wording="our reading of a summary; for which tau the paper claims it was not at hand, and it "
    "usually takes tau = 1, where the removal acts",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A),
    title="tau below 1 - r",
    at=((AA, _H, _X0),),
    steps=(
        _modes,
        by.Step(
            "X_0 = (1, 1) + (-1, 1), HFC/LFC = 1.",
            lambda: equal(
                _X0,
                [
                    [x[0] + y[0]]
                    for x, y in zip(exact.column("1 1"), exact.column("-1 1"), strict=True)
                ],
            ),
        ),
    ),
    repaired_by="N-2312.06182-remedy",
    further="Here r = 2/3: the removal acts for 1/3 < tau < 5/3.",
    formal=by.Formal("Refutations.N_remedy_partial", (1,)),
)
