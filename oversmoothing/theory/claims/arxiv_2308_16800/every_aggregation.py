"""Rank need not collapse where eigenvalues tie in modulus."""

from oversmoothing.theory.proofs.kit import by, equal, exact, given

_A, _H, _X0 = exact.matrix("0 1; 1 0"), exact.identity(2), exact.identity(2)


def _turns() -> None:
    """The walk on one edge exchanges the two nodes: X_(L+2) = X_L, so X_L is X_0 or its rows
    exchanged, of rank 2 with two equal singular values, for every L."""
    twice = exact.product(_A, exact.product(_A, _X0, _H), _H)
    equal(twice, _X0)
    for X in (_X0, exact.product(_A, _X0)):
        equal(exact.product(exact.transposed(X), X), exact.identity(2))


CLAIM = by.refuted(
    name="N-2308.16800-every",
    statement="For all aggregations A the rank of the node representations collapses (abstract), "
    "X' = A X W with every W and from every X_0 (our reading: the conditions on both were not at "
    "hand).",
    latex=r"X_L=A^LX_0W^L\implies \sigma_2(X_L)/\sigma_1(X_L)\to0",
    source="arXiv 2308.16800, abstract, our reading without conditions",
    wording="our reading of the abstract; the paper's hypotheses on A, W and X_0 were not at hand "
    "(one eigenvalue of A in front of the others may be among them, which the walk on one edge has "
    "not)",
    hypotheses=(given.ROW_STOCHASTIC, given.TWO_TOKENS, given.IRREDUCIBLE),
    title="the walk on one edge, W = I",
    at=((_A, _H, _X0),),
    steps=(_turns,),
    repaired_by="N-2407.11876-power",
    further="A alone does not decide: with one simple eigenvalue of H in front of all others the "
    "same walk collapses to rank one.",
)
