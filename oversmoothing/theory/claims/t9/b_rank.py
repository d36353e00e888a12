"""T9b: without a residual connection sigma_2/sigma_1 falls like (|lambda_2| |h_2/h_1|)^L."""

import math
from fractions import Fraction
from itertools import combinations

import sympy as sp
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.t9 import systems
from oversmoothing.theory.depth import rates_measured as measured
from oversmoothing.theory.layer.symbolic import symbolic_matrix
from oversmoothing.theory.proofs.kit import AA, Claim, Matrix, by, draw, exact, given


def compound(M: sp.Matrix) -> sp.Matrix:
    """C_2(M): all 2 x 2 minors, rows and columns by pairs in lexicographic order."""
    rows, columns = (list(combinations(range(size), 2)) for size in M.shape)
    return sp.Matrix([[M.extract(r, c).det() for c in columns] for r in rows])


def _cauchy_binet() -> object:
    """[1; fixed size] C_2(X), the matrix of 2 x 2 minors, has largest singular value sigma_1
    sigma_2, and C_2(A X W) = C_2(A) C_2(X) C_2(W) (Cauchy-Binet). So C_2(X_L) = C_2(A)^L C_2(X_0)
    C_2(W)^L."""
    A, X = symbolic_matrix(3, 3, "a"), symbolic_matrix(3, 2, "x")
    W = symbolic_matrix(2, 2, "w")
    return (compound(A * X * W) - compound(A) * compound(X) * compound(W)).applyfunc(sp.expand)


def _wedge() -> list[sp.Expr]:
    """[1; fixed size] Lower bound: let p = pi ^ w, w^T A = lambda_2 w^T (or pi ^ w in the invariant
    left plane of 1 and lambda_2), and z = z_1 ^ z_2, z_1, z_2 spanning the invariant plane of W for
    h_1, h_2: left and right eigenvectors of the compounds. p^T C_2(X_L) z = (lambda_2 h_1 h_2)^L
    p^T C_2(X_0) z, and p^T C_2(X_0) z = det [[pi X_0 z_1, pi X_0 z_2], [w X_0 z_1, w X_0 z_2]] is a
    polynomial in X_0 that is not identically 0, as pi, w and z_1, z_2 are independent. So
    ||C_2(X_L)||^{1/L} -> |lambda_2 h_1 h_2| for generic X_0."""
    X = symbolic_matrix(3, 2, "x")
    left, right = symbolic_matrix(2, 3, "p"), symbolic_matrix(2, 2, "z")
    value = (compound(left) * compound(X) * compound(right))[0]
    return [sp.expand(value - (left * X * right).det())]


def _special_state() -> None:
    """[instance] Generic is needed: A = [[3, 1], [1, 3]]/4, H = diag(1, 1/4), X_0 = [[1, 1], [-1,
    1]] has sigma_2/sigma_1 = 2^-L, not 8^-L."""
    X = exact.product(
        exact.power(AA, 6), exact.matrix("1 1; -1 1"), exact.power(exact.diagonal("1 1/4"), 6)
    )
    # Columns (2^-6, -2^-6) and (4^-6, 4^-6): singular values in the ratio 2^-6, not 8^-6.
    assert exact.matrix("1/64 1/4096; -1/64 1/4096") == X


def _law(attention: tuple[Matrix, Fraction], value: draw.Known, X: Matrix, depth: int) -> None:
    """n = d = 2: det X_L = (a h_1 h_2)^L det X_0, for every X_0 and any Jordan structure."""
    (A, a), (H, values) = attention, value
    assume(len(values) == 2)
    moved = exact.product(exact.power(A, depth), X, exact.power(exact.transposed(H), depth))
    assert exact.determinant(moved) == (a * values[0] * values[1]) ** depth * exact.determinant(X)


@st.composite
def _two_features(pick: st.DrawFn) -> draw.Known:
    h = pick(draw.fractions(-2, 2))
    if pick(st.booleans()):
        return pick(draw.with_jordan_blocks([(h, 2)])), [h, h]
    other = pick(draw.fractions(-2, 2))
    return pick(draw.with_jordan_blocks([(h, 1), (other, 1)])), [h, other]


def _measure(effort: by.Effort) -> by.Measurements:
    for name, (A, H, second, ratio, block) in systems.SYSTEMS.items():
        # A Jordan block of size 2 at h_1 makes sigma_1 grow by L (relative to |h_1|^L) while the
        # minors do not: L^-2, that is -2 log 2/L on this slope, up to O(1/L^2).
        predicted = math.log(second * ratio) - 2 * (block - 1) * math.log(2) / systems.DEPTH
        tolerance = systems.JORDAN if block > 1 else systems.ROUNDING
        yield by.Measurement(name, predicted, systems.slope(measured.sigma_ratio, A, H), tolerance)


CLAIM = Claim(
    name="T9b",
    clauses=(
        "X' = A X W with A > 0, n, d >= 2, H not nilpotent, |h_1| >= |h_2| >= ... its "
        "eigenvalues with multiplicity: for generic X_0 (sigma_2/sigma_1)^{1/L} -> |lambda_2| "
        "|h_2/h_1|. No diagonalisability and no gap is assumed; if |h_1| = |h_2| the rate is "
        "|lambda_2|.",
    ),
    latex=r"\lim_{L\to\infty}\Bigl(\frac{\sigma_2(X_L)}{\sigma_1(X_L)}\Bigr)^{1/L} = "
    r"|\lambda_2(A)|\,\frac{|h_2|}{|h_1|}",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.NOT_NILPOTENT, systems.TWO_FEATURES),
    evidence=(
        by.written(
            "second compound matrices",
            _cauchy_binet,
            "[1] By Schur forms the eigenvalues of C_2(A) are the products a_i a_k, i < k, of "
            "largest modulus |lambda_2| (with a = 1), and those of C_2(W) are h_j h_m, of largest "
            "modulus |h_1 h_2|.",
            "[1] Upper bound (Gelfand): limsup ||C_2(X_L)||^{1/L} <= |lambda_2 h_1 h_2|. If "
            "lambda_2 h_2 = 0, one factor is nilpotent and sigma_2 = 0 from some layer on.",
            _wedge,
            "[1] sigma_1 = ||X_L||_2 has rate |h_1| (T9a: rho(H (x) A) = |h_1|), so "
            "sigma_2/sigma_1 = sigma_1 sigma_2/sigma_1^2 has rate |lambda_2 h_2/h_1|.",
            _special_state,
        ),
        by.searched(
            "n = d = 2: det X_L = (lambda_2 h_1 h_2)^L det X_0 in fractions, H defective too",
            _law,
            draw.two_token_attention(),
            _two_features(),
            draw.states(2, 2),
            st.integers(0, 6),
            at=lambda attention, value, X, depth: (attention[0], value[0], X),
        ),
        by.Simulated(f"slope of log sigma_2/sigma_1 {systems.WINDOW}", _measure),
    ),
    further="Jordan blocks at h_1 add powers of L (measured). "
    "When |h_2/h_1| is near 1 the limit sets in slowly, like (|h_2|/|h_1|)^{2L} or worse: "
    "a near-tie needs a warning wherever rates are measured.",
)
