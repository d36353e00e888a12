"""A layer with 11^T/n subtracted from its attention: HFC as before, consensus held still."""

from oversmoothing.theory.layer.quotient import rational_quotient
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact, given


def removed(A: Matrix) -> Matrix:
    """A - 11^T/n."""
    return exact.plus(A, exact.uniform(len(A)), -1)


def _law(A: Matrix, H: Matrix, X: Matrix) -> None:
    """HFC over three layers, and the spectrum of the whole layer."""
    Y, Z = X, X
    for _ in range(3):
        Y, Z = exact.layer(A, H, Y), exact.layer(removed(A), H, Z)
        equal(exact.centred(Y), exact.centred(Z))
    whole = exact.characteristic(exact.plus_identity(exact.kronecker(H, removed(A))))
    expected = exact.characteristic(exact.identity(len(H)))
    B = rational_quotient(A)
    if B:
        expected *= exact.characteristic(exact.plus_identity(exact.kronecker(H, B)))
    equal(whole, expected)


CLAIM = Claim(
    name="N-2410.07799-removal",
    clauses=(
        "X' = X + (A - J) X W, J = 11^T/n, A row-stochastic (also changing by layer): HFC obeys "
        "exactly the same recursion as with A, and equal tokens stay as they are. The spectrum is "
        "that with A, the 1 + h_j of consensus replaced by 1: rho_C becomes 1 whatever H is, "
        "rho_Q stays.",
        "One A > 0 and H in all layers, rho_Q < 1: HFC -> 0 geometrically, the mean converges, "
        "and HFC/LFC -> 0 for X_0 outside a proper subspace.",
        "rho_Q > 1: liminf HFC/LFC > 0 for X_0 outside a proper subspace.",
        "So for n >= 2 and eigenvalues 0 < a_i < 1, i < n: all h > 0 smooth with A and do not "
        "without J; all h in [-1, 0) do not smooth with A and do without J: exchanged. "
        "(Outlier removal as a remedy of rank collapse: abstract; a layer with residual is our "
        "reading.)",
    ),
    latex=r"\rho_C\mapsto1,\quad\rho_Q\mapsto\rho_Q",
    source="ours, for the outlier removal of arXiv 2410.07799 (abstract)",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC,),
    evidence=(
        by.written(
            "block triangular",
            "[1] P (A - J) = P A and (A - J) 1 = 0: HFC' = HFC + P A HFC W (T1c), and in the "
            "blocks (consensus, quotient) the layer is triangular with I and I + H (x) B'.",
            "[2] HFC_L is of order L^q rho_Q^L at most. The mean changes by (1^T/n) A HFC_l W per "
            "layer, a convergent sum: its limit is linear in X_0 and the identity on equal "
            "tokens, so 0 on a proper subspace alone.",
            "[3] All eigenvalues of modulus rho_Q > 1 belong to the quotient: X_L is of the order "
            "of HFC_L for X_0 outside a proper subspace, so HFC/LFC >= HFC/||X|| is bounded below.",
            "[4] With A: T14d (n >= 2). Without J: |1 + h a_i| against 1, the query; then clauses "
            "2 and 3.",
        ),
        by.for_all(
            "h and 0 < a < 1: against 1",
            given="0 < a; a < 1; -1 <= h",
            then="Iff((1+h*a)**2 > 1, h > 0) and Iff((1+h*a)**2 < 1, h < 0)",
            at="a=1/2, h=-1/2",
            covers=(4,),
        ).unless("a of either sign", without="0 < a", given="-1 < a"),
        by.law(_law, draw.exact_cases(4, 2), title="HFC and spectra in fractions"),
    ),
    further="rho_Q = 1 is a tie.",
)
