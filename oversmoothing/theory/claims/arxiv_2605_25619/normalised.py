"""The iteration with every token normalised: the power method at consensus, and what attracts."""

from fractions import Fraction

import flint
import sympy as sp
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.t8 import attention, derivative
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact, given


def _residual() -> sp.Matrix:
    """DF[D] - (D + A_b D W)(I - u u^T)/mu at 1 u^T, F the layer with x/|x| token by token; H u = h
    u for u = (3/5, 4/5), h = 1."""
    u, M, D = sp.Matrix([3, 4]) / 5, sp.Matrix([[1, 2], [0, 1]]), sp.Matrix([[1, 0], [2, -1]])
    W = (u * u.T + sp.Rational(1, 5) * (sp.eye(2) - u * u.T)).T
    bias = sp.Matrix([[0, sp.log(3)], [sp.log(2), 0]])
    X = sp.ones(2, 1) * u.T

    def layer(Z: sp.Matrix) -> sp.Matrix:
        moved = Z + attention(Z, M, bias) * Z * W
        rows = [moved.row(i) / sp.sqrt(moved.row(i).dot(moved.row(i))) for i in range(2)]
        return sp.Matrix.vstack(*rows)

    A = attention(X, sp.zeros(2), bias)
    return derivative(layer, X, D) - (D + A * D * W) * (sp.eye(2) - u * u.T) / 2


@st.composite
def _eigenpairs(pick: st.DrawFn) -> tuple[Matrix, Fraction, Matrix]:
    """H with a first eigenvalue h and its eigenvector, in fractions."""
    kinds = pick(draw.lists(draw.fractions(-4, 3), 1, 4))
    S, inverse = pick(draw.unimodular(len(kinds)))
    H = exact.product(S, exact.diagonal(kinds), inverse)
    return H, kinds[0], [[row[0]] for row in S]


def _law(pair: tuple[Matrix, Fraction, Matrix], a: Fraction) -> None:
    """(I - u u^T/|u|^2)(I + a H) has 0 in the place of 1 + a h, and the rest of the spectrum."""
    H, h, u = pair
    assume(h != -1)
    size = sum((x * x for (x,) in u), Fraction(0))
    R = exact.plus(exact.identity(len(H)), exact.product(u, exact.transposed(u)), -1 / size)
    G = exact.plus_identity(H, a)
    x, gone = flint.fmpq_poly([0, 1]), 1 + a * h
    gone_factor = x - flint.fmpq(gone.numerator, gone.denominator)
    equal(exact.characteristic(exact.product(R, G)) * gone_factor, exact.characteristic(G) * x)


CLAIM = Claim(
    name="N-2605.25619-normalised",
    clauses=(
        "Tokens normalised to length 1 after each layer, rows of X + A(X) X W divided by their "
        "norms, A(X) 1 = 1 differentiable (the normalisation of the paper's tests; with a "
        "residual, our form). Consensus is invariant, and there the layer is the power method for "
        "I + H: v -> (I + H) v/||(I + H) v||.",
        "At consensus on a unit eigenvector u, H u = h u, mu = 1 + h != 0, the linearisation in "
        "mode a_i of A_b = A(1 u^T) is (I - u u^T)(I + a_i H)/|mu|, with the eigenvalues 0 and (1 "
        "+ a_i h_j)/|mu| for the h_j other than one copy of h; a_n = 1 is the longitudinal one.",
        "So it attracts all near states, up to sign, if |1 + a_i h_j| < |1 + h| for all i and all "
        "those j, and some |1 + a_i h_j| > |1 + h| makes it unstable. The modes (a_i, h) do not "
        "count: normalisation removes them.",
        "Logits of content alone: a_i = 0, i < n, so (d >= 2) it attracts if |1 + h| > 1 and |1 "
        "+ h| > |1 + h_j|.",
    ),
    latex=r"\operatorname{spec}\Big(\tfrac{(I-uu^\top)(I+a_iH)}{|\mu|}\Big)=\{0\}\cup"
    r"\{\tfrac{1+a_ih_j}{|\mu|}:j\ne u\}",
    source="ours, for the L2-normalised layers of arXiv 2605.25619",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC,),
    setting="where mu < 0, attention that does not see the sign of the state: A(-X) = A(X)",
    evidence=(
        by.written(
            "the derivative of x/|x|",
            "[1] On 1 v^T all rows of A(X) X W are (H v)^T, and all norms are equal.",
            "[2] D(x/|x|) = (I - x x^T/|x|^2)/|x|, at x = mu u: (I - u u^T)/|mu|. Before it the "
            "derivative is D + A_b D W (T8a); on v w^T with A_b v = a_i v that is v ((I + a_i H) "
            "w)^T.",
            "[2] (I - u u^T)(I + a H) u = (1 + a h)(I - u u^T) u = 0; modulo u the factor I - u "
            "u^T is the identity, so the other eigenvalues are those of I + a H modulo u: without "
            "1 + a h.",
            "[3] mu < 0 turns the sign of all tokens in each layer: take the layer twice, or "
            "minus the layer. A fixed point attracts if the spectral radius of its linearisation "
            "is below 1, and does not if above.",
            "[4] A_b = 11^T/n has the other eigenvalues 0 (T8a).",
        ),
        by.Symbolic(
            "softmax with positions, two tokens of two features", _residual, scope=by.Scope.INSTANCE
        ),
        by.searched(
            "the spectrum at u, exactly", _law, st.tuples(_eigenpairs(), draw.fractions(-1, 1))
        ),
    ),
    further="Which tokens end at u and which at -u is not said; the linear layer has its signs in "
    "T4b. LayerNorm instead: T8c.",
)
