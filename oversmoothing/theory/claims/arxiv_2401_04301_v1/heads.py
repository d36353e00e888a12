"""Many heads together: the exact verdict of a fixed multi-head layer compares two matrices."""

from hypothesis import strategies as st

from oversmoothing.theory.layer.quotient import rational_quotient
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact, given

Heads = list[tuple[Matrix, Matrix]]


@st.composite
def _heads(pick: st.DrawFn) -> Heads:
    """One to three heads (A, W) of the same sizes."""
    n, d = pick(st.integers(2, 3)), pick(st.integers(1, 2))
    return pick(draw.heads(draw.attention(n, n, zeros=True), d, 3))


def _law(*heads: tuple[Matrix, Matrix]) -> None:
    """The characteristic polynomial of the layer is that of consensus times the quotient's."""
    n, d = len(heads[0][0]), len(heads[0][1])
    consensus, quotient, whole = map(exact.identity, (d, (n - 1) * d, n * d))
    for A, W in heads:
        H = exact.transposed(W)
        consensus = exact.plus(consensus, H)
        quotient = exact.plus(quotient, exact.kronecker(H, rational_quotient(A)))
        whole = exact.plus(whole, exact.kronecker(H, A))
    equal(
        exact.characteristic(whole),
        exact.characteristic(consensus) * exact.characteristic(quotient),
    )


CLAIM = Claim(
    name="P-2401.04301v1-heads",
    clauses=(
        "The paper analyses one head; with several, X' = X + sum_h A_h X W_h, row-stochastic A_h "
        "(our form). Consensus is invariant, with the matrix C = I + sum_h W_h^T, and the quotient "
        "has T = I + sum_h W_h^T (x) B_h, B_h = Q^T A_h Q. The spectrum of the layer is that of C "
        "and that of T together, with multiplicity; it is not a list of 1 + h_j a_i.",
        "The same heads in every layer, rho_C = rho(C) > rho(T) = rho_Q: HFC/LFC -> 0 for X_0 "
        "outside a proper subspace.",
        "rho_C < rho_Q: liminf HFC/LFC > 0 for X_0 outside a proper subspace.",
    ),
    latex=r"\rho\Big(I+\sum_hW_h^\top\Big)\ \text{against}\ "
    r"\rho\Big(I+\sum_hW_h^\top\otimes Q^\top A_hQ\Big)",
    source="ours, for the networks of many heads of arXiv 2401.04301 v1 (Table 1)",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC, given.TWO_TOKENS),
    evidence=(
        by.written(
            "the dominant subspace lies in consensus or meets it in 0",
            "[1] By T7a the layer is block triangular in the basis [1/sqrt n, Q], with C and T on "
            "the diagonal.",
            "[2, 3] Let V be the sum of the generalised eigenspaces of the largest modulus rho. "
            "For X_0 whose part in V is not 0, outside a proper subspace, X_L/||X_L|| approaches "
            "V: the other parts grow slower.",
            "[2] rho_C > rho_Q: no eigenvalue of modulus rho is one of T, so V becomes 0 in the "
            "quotient: V lies in consensus, and HFC/||X_L|| -> 0, hence LFC/||X_L|| -> 1.",
            "[3] rho_C < rho_Q: no eigenvalue of modulus rho is one of C, so V meets consensus in "
            "0 alone. ||HFC|| is a norm on V, so at least e ||X|| there with e > 0: liminf "
            "HFC/||X_L|| >= e, and LFC <= ||X_L||.",
        ),
        by.searched(
            "the characteristic polynomial of one to three heads, exactly",
            _law,
            _heads().map(tuple),
            at=lambda *heads: given.of_attention(heads[0][0]),
        ),
    ),
    further="Neither a head alone nor the mean of the heads decides: "
    "P-2401.04301v1-heads-each, P-2401.04301v1-heads-mean. The tie rho_C = rho_Q is open here.",
)
