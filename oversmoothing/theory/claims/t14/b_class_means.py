"""T14b: the means of the classes run on their own, and what is left has none of them."""

from oversmoothing.theory.claims.t14.a_families import families, reducible
from oversmoothing.theory.proofs import strategies
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact, given


def _rest() -> None:
    """[2, 3; instance] X = sum_k w_k c_k^T + R with c_k = X^T pi_k has pi_k^T R = 0 for every k
    (T14a), and R' = R + A R W keeps it. R lives on the eigenvalues of A other than these 1's: its
    growth is the largest |1 + h a| over them."""
    A, H = exact.matrix("1 0 0; 0 1 0; 1/8 3/8 1/2"), exact.matrix("1/2")
    X = exact.matrix("0; 4; 100")
    pi, W = families(A)
    c = exact.product(pi, X)
    equal(exact.product(pi, exact.layer(A, H, X)), exact.scaled("3/2", c))
    R = exact.plus(X, exact.product(W, c), -1)
    equal(R, exact.matrix("0; 0; 97"))
    # a = 1/2 is what is left: 1 + h a = 5/4.
    equal(exact.layer(A, H, R), exact.scaled("5/4", R))


def _law(A: Matrix, H: Matrix, seed: int) -> None:
    X = strategies.general_state(seed, len(A), len(H), 50)
    pi, W = families(A)
    c, depth = exact.product(pi, X), 5
    R = exact.plus(X, exact.product(W, c), -1)
    step = exact.plus_identity(exact.transposed(H))
    means = exact.product(c, exact.power(step, depth))
    final = exact.layer(A, H, X, depth)
    equal(exact.product(pi, final), means)
    equal(final, exact.plus(exact.product(W, means), exact.layer(A, H, R, depth)))


CLAIM = Claim(
    name="T14b",
    clauses=(
        "With several closed classes (T14a) each class mean c_k = pi_k^T X is autonomous, c_k' ="
        " c_k (I + W),",
        "and X_L = sum_k w_k c_k(L) + R_L, where R_L has no class mean, obeys the layer itself "
        "and grows by the eigenvalues of A other than the m copies of 1.",
        "Tokens agree in the limit as far as the class means do: the deviations of sum_k w_k c_k"
        " come from c_k - c_l.",
    ),
    latex=r"X_L=\sum_k w_k\,c_k^{(0)}(I+W)^L+R_L,\qquad \pi_k^\top R_L=0",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC,),
    evidence=(
        by.written(
            "left and right families",
            "[1] pi_k^T X' = pi_k^T X + pi_k^T A X W = (pi_k^T X)(I + W), as pi_k^T A = pi_k^T.",
            _rest,
        ),
        by.searched(
            "five layers of a reducible A, exactly",
            _law,
            reducible(),
            draw.with_jordan_blocks([(exact.matrix("1/2")[0][0], 2)]),
            draw.SEEDS,
            at=lambda A, H, seed: (A, H),
        ),
    ),
)
