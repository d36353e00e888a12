"""T1d: the mean over the tokens weighted by pi evolves by itself too, for ever and exactly."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.numbers.rational import to_flint
from oversmoothing.theory.proofs.instances import A3
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, spectra


def _stationary_is_a_distribution() -> None:
    """[1; instance] The averages (1/N) sum_{k<N} A^k are row-stochastic, so a subsequence
    converges, to a row-stochastic R with R A = R: each row of R is a pi. Its support is a union of
    closed classes, within each of which pi is unique up to a factor and positive
    (Perron-Frobenius). A >= 0 is needed here, not only A 1 = 1: for [[2, -1], [1, 0]] pi^T A = pi^T
    forces pi^T 1 = 0."""
    assert spectra.stationary(A3) == [Fraction(26, 40), Fraction(9, 40), Fraction(5, 40)]
    # Row sums 1 alone are not enough: here all such pi are multiples of (1, -1).
    signed, pi = exact.matrix("2 -1; 1 0"), exact.matrix("1 -1")
    assert exact.product(pi, signed) == pi
    assert to_flint(exact.plus_identity(signed, -1)).rank() == 1


def _law(case: tuple[Matrix, Matrix, Matrix], depth: int) -> None:
    A, H, X = case
    n, pi = len(A), spectra.stationary(A)
    moved = exact.layer(A, H, X, depth)
    # c_L^T = (I + H)^L c_0^T, exactly.
    start = [[entry] for entry in exact.weighted_mean(pi, X)]
    expected = to_flint(exact.power(exact.plus_identity(H), depth)) * to_flint(start)
    c = exact.weighted_mean(pi, moved)
    assert to_flint([[entry] for entry in c]) == expected
    mean = exact.weighted_mean([Fraction(1, n)] * n, moved)
    high = [[x - m for x, m in zip(row, mean, strict=True)] for row in moved]
    static = exact.weighted_mean([Fraction(1, n) - p for p in pi], high)
    assert mean == [x + y for x, y in zip(c, static, strict=True)]


CLAIM = Claim(
    name="T1d",
    clauses=(
        "Every row-stochastic A has a pi >= 0 with pi^T A = pi^T and pi^T 1 = 1 (a single one "
        "iff A has one closed class; pi > 0 if A > 0).",
        "For each such pi, c = pi^T X obeys c' = c (I + W), so c_L = c_0 (I + W)^L exactly, and "
        "the mean is m = c + (1/n - pi)^T HFC.",
        "So X is two decoupled linear systems, Y and c, and one static coupling.",
    ),
    latex=r"c' = c(I+W),\qquad c_L = c_0(I+W)^L,\qquad "
    r"m = c + \bigl(\tfrac{1}{n}\mathbf 1-\pi\bigr)^\top\mathrm{HFC}",
    source="ours",
    on_record=by.MACHINE,
    hypotheses=(given.ROW_STOCHASTIC,),
    evidence=(
        by.Formal("T1d_stationary.stationary_exists", (1,)),
        by.Formal("T1d_stationary.stationary_unique", (1,)),
        by.Formal("T1d_stationary.stationary_positive", (1,)),
        by.Formal("T1_blocks.pi_mean_autonomous", (2,)),
        by.Formal("T1_blocks.pi_mean_power", (2,)),
        by.Formal("T1_blocks.coupling", (2,)),
        by.Formal("T1c_quotient.decoupled", (3,)),
        by.written(
            "the left Perron vector",
            _stationary_is_a_distribution,
            "[2] c' = pi^T X + (pi^T A) X W = c + c W; so c_L = c_0 (I + W)^L by induction.",
            "[2] (1/n - pi)^T HFC = (1/n - pi)^T (X - 1 m) = m - c - (1 - 1) m = m - c.",
            "[3] X = HFC + 1 m = Q Y + 1 (c + (1/n - pi)^T Q Y), with Y autonomous by T1c.",
        ),
        by.searched(
            "trajectories in fractions: c_L = c_0 (I + W)^L and the coupling",
            _law,
            draw.exact_cases(),
            st.integers(0, 6),
            at=lambda case, depth: case,
        ),
    ),
)
