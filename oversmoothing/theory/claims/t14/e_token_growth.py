"""T14e: each token grows by itself, like L^p rho^L with its own (rho, p)."""

import math
from fractions import Fraction

from oversmoothing.theory.claims.t14.a_families import reducible
from oversmoothing.theory.proofs import strategies
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact, given, verdict
from oversmoothing.theory.verdict.tokens import TokenGrowth

LOST = exact.matrix("1 0 0; 1/2 1/2 0; 1/4 1/2 1/4")


def _own_terms() -> None:
    """[1, 2, 3; instance] For L >= n d, X_L = sum over mu != 0 and k of C(L, k) mu^(L-k) G_mu,k.
    Row i has the rows e_i^T G_mu,k: a term that the others have may be 0 in it. Among its terms
    that are not 0 those of the largest |mu| and then the largest k outgrow the rest: x_i(L) = C(L,
    p) rho^(L-p) (y_i(L) + O(1/L)), y_i(L) = sum (mu/rho)^(L-p) g_mu. Without terms x_i(L) = 0 for L
    >= n d."""
    # a = 1, 1/2, 1/4 and h = -1/2: the multipliers 1/2, 3/4, 7/8, and token i has the first i + 1.
    found = verdict(A=LOST, H=exact.matrix("-1/2"), X0=exact.column("1 3 2")).token_growth
    assert found is not None and [(g.rate, g.power) for g in found if g] == [
        (1 / 2, 0), (3 / 4, 0), (7 / 8, 0)
    ]  # fmt: skip
    # Row 1 is 1, 1/2, 1/4 ... (1/2)^L: the others' multipliers are not in it.
    assert exact.layer(LOST, exact.matrix("-1/2"), exact.column("1 3 2"), 9)[0][0] == Fraction(
        1, 512
    )


def _upper_limit() -> None:
    """[1; instance] y_i does not tend to 0: the mean of |y_i(L)|^2 over the depths is the sum of
    the |g_mu|^2, as different phases average to 0. So ||x_i(L)||/(L^p rho^L) is bounded, with a
    positive upper limit: (rho, p) is determined. Its lower limit can be 0, where several
    multipliers cancel now and then."""
    # h = -2 and a = 1, 0: the multipliers -1 and 1, and token 1 is 0 at every even depth.
    A, H, X = exact.uniform(2), exact.matrix("-2"), exact.column("0 2")
    found = verdict(A=A, H=H, X0=X).token_growth
    assert found is not None and [(g.rate, g.power) for g in found if g] == [(1, 0), (1, 0)]
    equal(exact.layer(A, H, X), exact.column("-2 0"))
    equal(exact.layer(A, H, X, 2), X)


def log_size(row: list[Fraction]) -> float:
    """log ||x|| of a row that is not 0, whatever its size."""
    squared = sum(x * x for x in row)
    return (math.log(squared.numerator) - math.log(squared.denominator)) / 2


def _law(A: Matrix, H: Matrix, seed: int) -> None:
    """Over a window of depths the largest ||x_i|| / (L^p rho^L) hardly changes from L to 2 L."""
    X = strategies.general_state(seed, len(A), len(H), 9)
    known = [g for g in given.content(A, H, X).tokens.growth if g is not None]
    assert len(known) == len(A)
    # Where the leading terms are small ones they show late.
    for depth in (100, 800):
        early, late = (
            _largest(exact.layer(A, H, X, L), A, H, L, known) for L in (depth, 2 * depth)
        )
        if all(abs(x - y) < 1 / 2 for x, y in zip(early, late, strict=True) if x > -math.inf):
            return
    raise AssertionError(f"{early} becomes {late}")


def _largest(
    state: Matrix, A: Matrix, H: Matrix, depth: int, growth: list[TokenGrowth]
) -> list[float]:
    """max of log ||x_i(L)|| - L log rho - p log L over eight depths."""
    found = [-math.inf] * len(A)
    for L in range(depth, depth + 8):
        for i, (row, g) in enumerate(zip(state, growth, strict=True)):
            assert any(row) <= (g.rate > 0)
            if any(row):
                size = log_size(row) - L * math.log(g.rate) - g.power * math.log(L)
                found[i] = max(found[i], size)
        state = exact.layer(A, H, state)
    return found


CLAIM = Claim(
    name="T14e",
    clauses=(
        "For every A, H and X_0 a token x_i(L) is exactly 0 from depth n d on, or ||x_i(L)|| / "
        "(L^p rho^L) is bounded with a positive upper limit for one rho > 0 and one integer p >="
        " 0: rho is the largest |mu| of the terms C(L, k) mu^(L-k) that the token itself has, p "
        "the largest k among them.",
        "Then x_i(L) = C(L, p) rho^(L-p) (y_i(L) + O(1/L)) with y_i(L) the sum of (mu/rho)^(L-p)"
        " g_mu over these mu.",
        "Different tokens of one X_0 can have different (rho, p).",
    ),
    latex=r"x_i(L)=\binom{L}{p_i}\rho_i^{L-p_i}\Bigl(\sum_\mu(\mu/\rho_i)^{L-p_i}g_{i,\mu}+O(1/L)"
    r"\Bigr),\qquad \limsup_L\frac{\|x_i(L)\|}{L^{p_i}\rho_i^L}\in(0,\infty)",
    source="linear recurrences; as used here ours",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC,),
    evidence=(
        by.written("terms of a row, and their mean square", _own_terms, _upper_limit),
        by.searched(
            "200 layers, or 1600, of a reducible A and a Jordan block, exactly",
            _law,
            reducible().filter(lambda A: len(A) <= 5),
            draw.with_jordan_blocks([(exact.matrix("-1/2")[0][0], 2)]),
            draw.SEEDS,
            at=lambda A, H, seed: (A, H),
        ),
    ),
)
