"""Escalation layer by layer: one attention layer can remove all similarity."""

from oversmoothing.theory.proofs.kit import by, equal, exact, given

_A, _H, _X0 = exact.matrix("1/2 1/2; 1/4 3/4"), exact.matrix("1"), exact.column("5 -3")


def _once() -> None:
    """X = (5, -3) has HFC^2 = 32, LFC^2 = 2, so LFC/||X|| = 1/sqrt(17). A X = (1, -1) has no mean:
    similarity 0, HFC/LFC infinite after one layer."""
    equal(exact.squared_norms(_X0), (32, 2))
    once = exact.product(exact.product(_A, _X0), _H)
    equal(once, exact.column("1 -1"))
    equal(exact.squared_norms(once), (2, 0))


CLAIM = by.refuted(
    name="N-2312.06182-every-layer",
    statement="Every self-attention layer increases token similarity, LFC/||X|| (our reading of "
    "'escalates'; the paper's bound is on an expectation).",
    latex=r"\frac{\|J A X\|}{\|A X\|} \ge \frac{\|J X\|}{\|X\|}\quad \forall X",
    source="arXiv 2312.06182 v2, token similarity escalation, our reading layer by layer",
    wording="our reading, without the expectation that the paper's bound is on (a summary): one "
    "choice of weights does not touch it",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A, given.BOTH_PARTS),
    title="a mean that attention cancels",
    at=((_A, _H, _X0),),
    steps=(_once,),
    repaired_by="T9a",
    further="Monotone layer by layer for symmetric A and W = 1; in t = ||HFC|| / (sqrt(n) ||pi^T "
    "X||) it is, for two tokens and one feature, exactly |lambda_2| (N-2312.06182-escalation).",
    formal=by.Formal("Refutations.N_every_layer", (1,)),
)
