"""T11.10: masked logits and causal rows are legal; a row with nothing left is not."""

import math
from fractions import Fraction

import numpy as np

from oversmoothing.theory.layer.perron import closed_classes
from oversmoothing.theory.numbers.rational import to_float
from oversmoothing.theory.proofs.kit import CAUSAL, Claim, Matrix, by, draw, exact, given, verdict
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict.dominance import real_verdict


def _softmax(logits: list[list[float]]) -> list[list[float]]:
    z = np.array(logits)
    with np.errstate(invalid="ignore"):
        weights = np.exp(z - z.max(axis=1, keepdims=True))
        rows: list[list[float]] = (weights / weights.sum(axis=1, keepdims=True)).tolist()
    return rows


def _masked() -> None:
    """[1; instance] Each row is shifted by its largest logit, which is finite if the row keeps an
    entry: exp(-infinity) = 0 exactly, and the sum is at least 1."""
    A = _softmax([[0.0, -math.inf], [1.0, 2.0]])
    assert A[0] == [1.0, 0.0]
    assert verdict(A=A, H=[[0.5]]).verdict == "SMOOTHING"
    assert verdict(A=A, H=[[-0.5]]).verdict == "NON_SMOOTHING"


def _nothing_left() -> None:
    """[2; instance] All entries masked: -infinity + infinity, not a number."""
    A = _softmax([[-math.inf, -math.inf], [1.0, 2.0]])
    refused = 0
    for bad in (A, [[0, 0], ["1/2", "1/2"]]):
        try:
            verdict(A=bad, H=[[1]])
        except InputError:
            refused += 1
    assert refused == 2, "a row without weights passed as attention"


def _threshold() -> None:
    """[3; instance] Causal: eigenvalues A_ii in (0, 1], 1 simple (T1h). |1 + h a| is convex in a,
    so its maximum over i > 1 is at an end of [min A_ii, 1), and T2b applies to the smallest: where
    it does not win strictly, no a_i in between does."""
    # min A_ii = 1/4: tie at -2/(1 + 1/4) = -8/5 and at 0.
    names = {h: verdict(A=CAUSAL, H=[[h]]).verdict for h in ("-2", "-8/5", "-1", "0", "1")}
    assert list(names.values()) == ["SMOOTHING", "TIE", "NON_SMOOTHING", "TIE", "SMOOTHING"]


def _two_groups() -> None:
    """[4; instance] Each closed class has its own stationary distribution, so the left eigenspace
    for 1 has dimension k; with k > 1 the pairs (h_j, 1) occur in the quotient too, so rho_Q >=
    rho_C."""
    A = exact.matrix("1/2 1/2 0 0; 1/4 3/4 0 0; 0 0 1/3 2/3; 0 0 1/2 1/2")
    assert len(closed_classes(to_float(A))) == 2
    for h in ("-3", "-1/2", "1/2"):
        assert verdict(A=A, H=[[h]]).verdict in ("TIE", "NON_SMOOTHING")


def _law(A: Matrix, h: Fraction) -> None:
    smallest = min(A[i][i] for i in range(1, len(A)))
    assert verdict(A=A, H=[[h]]).verdict == real_verdict(h, h, smallest)


def _masks_law(A: Matrix) -> None:
    """Any mask that leaves each row an entry: k closed classes, k - 1 further eigenvalues 1."""
    classes = len(closed_classes(to_float(A)))
    found = verdict(A=A, H=[["1/2"]])
    assert found.attention is not None
    ones = int(np.count_nonzero(found.attention.exact & (found.attention.values == 1)))
    assert ones == classes - 1 or len(A) == 1
    if classes > 1:
        assert found.verdict != "SMOOTHING"


CLAIM = Claim(
    name="T11.10",
    clauses=(
        "A logit of -infinity is a weight of exactly 0, so masked attention is row-stochastic "
        "and legal as long as every row keeps an entry;",
        "a row that is masked completely is 0/0 and is refused.",
        "Causal rows: spec(A) is the diagonal (T1h), and for a single real h consensus loses iff"
        " -2/(1 + min A_ii) < h < 0.",
        "If a mask splits the tokens into k > 1 closed classes the eigenvalue 1 has multiplicity"
        " k and no layer is SMOOTHING.",
    ),
    latex=r"e^{-\infty}=0;\qquad \text{causal: } |1+h|<\max_i|1+hA_{ii}| \iff "
    r"-\tfrac{2}{1+\min_i A_{ii}}<h<0",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC,),
    evidence=(
        by.written("zeros in A", _masked, _nothing_left, _threshold, _two_groups),
        by.searched(
            "random causal A against the closed form, exactly",
            _law,
            draw.causal_attention(),
            draw.fractions(-4, 2),
            at=lambda A, h: (A, [[h]]),
        ),
        by.searched(
            "random masks", _masks_law, draw.attention(1, 4, zeros=True), at=given.of_attention
        ),
    ),
)
