"""Normalised attention has equilibria of every rank, for suitable values."""

from fractions import Fraction

import flint
from hypothesis import strategies as st

from oversmoothing.theory.claims.binary_softmax import binary_softmax, logits
from oversmoothing.theory.numbers.rational import from_flint, to_flint
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact


def _values(sizes: list[int], q: Fraction, E: Matrix) -> Matrix:
    """E^T B^-1 E/|e|^2, B the weights between the groups."""
    k = len(sizes)
    rows = [[size * (q if a == b else 1) for b, size in enumerate(sizes)] for a in range(k)]
    B = [[Fraction(entry) / sum(row) for entry in row] for row in rows]
    inverse: flint.fmpq_mat = to_flint(B).inv()
    W = exact.product(exact.transposed(E), from_flint(inverse), E)
    return exact.scaled(1 / exact.dot(E[0], E[0]), W)


def _fixed(sizes: list[int], power: int, E: Matrix) -> None:
    """Attention computed from X: every layer gives X again."""
    norm = exact.dot(E[0], E[0])
    X = [E[a] for a, size in enumerate(sizes) for _ in range(size)]
    L = exact.scaled(power / norm, logits(X, exact.identity(len(E[0]))))
    W = _values(sizes, Fraction(2) ** power, E)
    equal(exact.product(binary_softmax(L), X, W), X)
    equal(to_flint(X).rank(), len(sizes))


def _law(sizes: list[int], power: int, extra: int) -> None:
    k = len(sizes)
    E = [[Fraction(int(a == j)) for j in range(k + extra)] for a in range(k)]
    _fixed(sizes, power, E)


def _centred() -> None:
    """[2; instance] d = 4, three tokens (1, 1, -1, -1), (1, -1, 1, -1), (1, -1, -1, 1), mean 0 and
    variance 1, e^m = 2: the layer returns them, rank 3."""
    _fixed([1, 1, 1], 1, exact.matrix("1 1 -1 -1; 1 -1 1 -1; 1 -1 -1 1"))


CLAIM = Claim(
    name="N-2405.18781-equilibria",
    clauses=(
        "X' = the rows of A X W divided by their norms, A the softmax of m X X^T, m > 0. For "
        "every k <= min(n, d) and all sizes of k groups of tokens there is a W for which n unit "
        "tokens, equal within groups and orthogonal between them, are a fixed point: rank k. With "
        "a residual, X + A X W, too.",
        "With LayerNorm (gain 1, no bias, centring) in the place of the division the same for "
        "every k <= min(n, d-1). (Equilibria of any rank for suitable values: abstract, our "
        "reading; this family is ours.)",
    ),
    latex=r"X=ZE,\quad W=E^\top B^{-1}E:\qquad A(X)XW=X,\quad \operatorname{rank}X=k",
    source="arXiv 2405.18781, LayerNorm (abstract), our reading",
    on_record=by.WRITTEN,
    setting="one fixed W for all layers; whether the fixed points attract is not said",
    evidence=(
        by.written(
            "attention between groups is invertible",
            "[1] X = Z E, Z the groups as indicators, n x k, the rows of E orthonormal. The "
            "logits are m within a group and 0 between: A Z = Z B, B_ab = n_b q^[a=b]/sum_c n_c "
            "q^[a=c], q = e^m > 1. B = D^-1 (11^T + (q-1) I) diag(n_b) with D > 0 is invertible, "
            "the middle factor being positive definite.",
            "[1] W = E^T B^-1 E: A X W = A Z E E^T B^-1 E = Z B B^-1 E = X, unit rows. X + A X W "
            "= 2 X has the same directions. rank Z E = k.",
            "[2] Rows of E of mean 0, variance 1, orthogonal (d - 1 of them exist): E E^T = d I, "
            "logits m d within groups, W = E^T B^-1 E/d. A X W = X, and LayerNorm leaves rows of "
            "mean 0 and variance 1.",
            _centred,
        ),
        by.searched(
            "groups of tokens, attention computed from them, in fractions",
            _law,
            draw.lists(st.integers(1, 3), 1, 4),
            st.integers(1, 4),
            st.integers(0, 2),
        ),
    ),
    further="Orthogonal W do collapse tokens of one hemisphere: N-2405.18781-hemisphere.",
)
