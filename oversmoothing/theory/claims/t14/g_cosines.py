"""T14g: the cosine of a pair of tokens where one multiplier leads each: a limit, or two in turn."""

import math
from fractions import Fraction

from oversmoothing.theory.claims.t14.e_token_growth import LOST
from oversmoothing.theory.claims.t14.f_chains import chained
from oversmoothing.theory.proofs import strategies
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, verdict


def _directions() -> None:
    """[1, 2; instance] A single leading multiplier is real, its conjugate being none: x_i(L) = C(L,
    p) mu^(L-p) (g_i + O(1/L)) with g_i != 0 (T14e). So cos(x_i, x_j) = sgn(mu)^(L-p) sgn(nu)^(L-q)
    (cos(g_i, g_j) + O(1/L)): of one sign s the powers of L cancel and s^(p+q) is left; of two signs
    it is that of mu's token or the other, by the parity of L."""
    # Token 3 of the causal case turns by 7/8, against the others: the limits 1, -1, -1.
    found = verdict(A=LOST, H=exact.matrix("-1/2"), X0=exact.column("1 3 2"))
    assert found.cosine_limits is not None and found.cos_min is not None
    values = [limit.values for limit in found.cosine_limits.values() if limit]
    assert values == [(1.0,), (-1.0,), (-1.0,)] and found.cos_min.values == (-1.0,)
    # Two classes, h = 1 and h = -3: 2 and -2 by turns.
    apart = verdict(A=exact.identity(2), H=exact.diagonal("1 -3"), X0=exact.matrix("1 0; 1 1"))
    assert apart.cosine_limits is not None
    limit = apart.cosine_limits[0, 1]
    assert limit is not None and limit.tends_to == "periodic"
    for L in (6, 7):
        x, y = exact.layer(exact.identity(2), exact.diagonal("1 -3"), exact.matrix("1 0; 1 1"), L)
        value = limit.values[L % 2]
        assert value is not None and abs(_cosine(x, y) - value) < 1e-12


def _defective() -> None:
    """[1; instance] mu < 0 and p + q odd: the limit is -cos(g_i, g_j)."""
    # H = -3 on a chain of tokens of diagonal 1/2 after token 1: multipliers -2 and -1/2.
    A, H, X = exact.matrix("1 0; 0 1"), exact.matrix("-3 1; 0 -3"), exact.matrix("1 0; 1 1")
    found = verdict(A=A, H=H, X0=X)
    assert found.token_growth is not None and found.cosine_limits is not None
    assert [g.power for g in found.token_growth if g] == [0, 1]
    limit, (x, y) = found.cosine_limits[0, 1], exact.layer(A, H, X, 400)
    assert limit is not None and limit.values == (-1.0,) and _cosine(x, y) < -0.99


def _cosine(x: list[Fraction], y: list[Fraction]) -> float:
    inner = exact.dot(x, y)
    squared = inner**2 / (exact.dot(x, x) * exact.dot(y, y))
    return math.copysign(math.sqrt(squared), inner)


def _law(A: Matrix, H: Matrix, seed: int) -> None:
    """Cosines of the states after 600 layers, by hand, are near the limits said of them."""
    X = strategies.general_state(seed, len(A), len(H), 9)
    limits = given.content(A, H, X).tokens.cosines
    for depth in (600, 601):
        state = exact.layer(A, H, X, depth)
        for (i, j), limit in limits.items():
            if not any(state[i]) or not any(state[j]):
                continue
            assert limit is not None and limit.tends_to in ("constant", "periodic")
            value = limit.values[depth % len(limit.values)]
            assert value is not None and abs(_cosine(state[i], state[j]) - value) < 0.1


CLAIM = Claim(
    name="T14g",
    clauses=(
        "Let one multiplier alone lead each of two tokens (T14e), mu with C(L, p) and direction "
        "g_i, nu with C(L, q) and g_j; both are real. If mu and nu have one sign s, cos(x_i, "
        "x_j) tends to s^(p+q) cos(g_i, g_j), in [-1, 1];",
        "if they have two, it alternates between two limits c and -c by the parity of L, and has"
        " a limit only if c = 0.",
        "If a token is exactly 0 from some depth on it is undefined.",
        "Where all pairs are so, cos_min and cos_mean over the tokens that are not 0 tend to the"
        " smallest and to the mean of these limits.",
    ),
    latex=r"\cos(x_i,x_j)\to s^{p_i+p_j}\,\frac{g_i\cdot g_j}{\|g_i\|\,\|g_j\|}",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC,),
    evidence=(
        by.written(
            "directions and signs",
            _directions,
            _defective,
            "[3, 4] A token that is 0 has no direction, so no cosine. The smallest and the mean of"
            " finitely many cosines are continuous in them: they tend to those of the limits.",
        ),
        by.searched(
            "600 layers of causal attention and a Jordan block, exactly",
            _law,
            chained(),
            draw.with_jordan_blocks([(Fraction(-1, 2), 2)]),
            draw.SEEDS,
            at=lambda A, H, seed: (A, H),
        ),
    ),
)
