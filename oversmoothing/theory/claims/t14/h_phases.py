"""T14h: several multipliers lead a token: limits by residues of L, none, or a constant angle."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.t14.a_families import reducible
from oversmoothing.theory.proofs import strategies
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact, given, verdict


def _residues() -> None:
    """[1; instance] If x^N > 0 for every leading x of both tokens, y(L + N) = y(L): along L = r mod
    N the cosine tends to that of y_i(r) and y_j(r), where neither is 0. Where one is 0, x_i(N k +
    r) is a sequence in k of its own, with what grows more slowly for its leading terms, or 0 from
    some depth on."""
    # Multipliers -1 and 1: one token is 0 at the even depths, the other at the odd ones.
    A, H, X = exact.uniform(2), exact.matrix("-2"), exact.column("0 2")
    found = verdict(A=A, H=H, X0=X)
    assert found.cosine_limits is not None and found.cosine_limits[0, 1] is not None
    assert found.cosine_limits[0, 1].tends_to == "undefined"
    equal(exact.layer(A, H, X, 5), exact.column("-2 0"))
    equal(exact.layer(A, H, X, 6), exact.column("0 2"))
    # The cycle of three with h = -1: mu^6 = -27 for both leading mu = 1 - w.
    cycle = exact.matrix("0 1 0; 0 0 1; 1 0 0")
    start = exact.column("1 2 5")
    equal(exact.layer(cycle, exact.matrix("-1"), start, 7), exact.scaled(
        -27, exact.layer(cycle, exact.matrix("-1"), start, 1)
    ))  # fmt: skip
    turning = verdict(A=cycle, H=exact.matrix("-1"), X0=start).cosine_limits
    assert turning is not None and turning[0, 1] is not None
    assert turning[0, 1].values == (1.0, 1.0, -1.0, -1.0, -1.0, -1.0)


def _recurrence() -> None:
    """[2; instance] All phases come back together: for every depth L0 and every distance there are
    depths L beyond any bound with y(L) as near y(L0), by Dirichlet. So the cosine of y_i(L0) and
    y_j(L0), neither 0, is a limit point for each L0, and two different ones are no limit. The limit
    points are a closed set; if |y_i| and |y_j| stay away from 0 it is the closure of these
    values."""
    # mu = 2 +- i sqrt 2, no power of which is real: h = 1 - i sqrt 2 and its conjugate.
    A, H, X = exact.identity(2), exact.matrix("1 -2; 1 1"), exact.matrix("1 0; 1 1")
    found = verdict(A=A, H=H, X0=X).cosine_limits
    assert found is not None and found[0, 1] is not None
    assert found[0, 1].tends_to == "oscillates"


def _constant() -> None:
    """[3; instance] Independent directions g_x keep |sum of e^(i phi_x) g_x| away from 0, over all
    phases. Then the cosine has a limit where y_i = c y_j: with one real simple a that leads both
    tokens, row i of the eigenvector's terms is v_i w(L). And where one pair of conjugates leads
    both with g_i . g_i = g_i . g_j = g_j . g_j = 0: sizes and inner product of the y are those of
    all phases (Q34)."""
    # A rotation turns all tokens alike: 45 degrees stay 45 degrees, at every depth.
    A, H = exact.identity(2), exact.matrix("1 -2; 2 1")
    X = exact.matrix("1 0; 1 1")
    found = verdict(A=A, H=H, X0=X).cosine_limits
    assert found is not None and found[0, 1] is not None
    assert found[0, 1].tends_to == "constant" and found[0, 1].values == (0.5**0.5,)
    for depth in (1, 2, 9):
        x, y = exact.layer(A, H, X, depth)
        assert 2 * exact.dot(x, y) ** 2 == exact.dot(x, x) * exact.dot(y, y)
    # Consensus leads by a complex h: its direction turns for ever, and the tokens agree.
    smooth = verdict(A=exact.uniform(2), H=exact.matrix("1 -2; 1 1"), X0=X).cosine_limits
    assert smooth is not None and smooth[0, 1] is not None
    assert (smooth[0, 1].tends_to, smooth[0, 1].values) == ("constant", (1.0,))


def _law(A: Matrix, x: Fraction, y: Fraction, seed: int) -> None:
    """A turning H on several classes: limits are met at depth, and no limit shows two values."""
    H = [[x, -y], [y, x]]
    # 0.97^300 = 1e-4: what grows nearly as fast as the leading part hides its limit for longer.
    moduli = sorted(abs(1 + complex(x, y) * a) for a in np.linalg.eigvals(np.array(A, dtype=float)))
    assume(not any(0.97 < low / high < 1 - 1e-4 for low, high in pairwise(moduli) if high))
    X = strategies.general_state(seed, len(A), 2, 9)
    found = given.content(A, H, X).tokens.cosines
    depths = range(300, 312)
    states = [exact.layer(A, H, X, depths[0])]
    for _ in depths[1:]:
        states.append(exact.layer(A, H, states[-1]))
    for (i, j), limit in found.items():
        if limit is None or not limit.values:
            continue
        for depth, state in zip(depths, states, strict=True):
            value = limit.values[depth % len(limit.values)]
            inner, sizes = (
                exact.dot(state[i], state[j]),
                exact.dot(state[i], state[i]) * exact.dot(state[j], state[j]),
            )
            assert (
                value is not None
                and abs(float(inner * abs(inner) / sizes) - value * abs(value)) < 0.1
            )


CLAIM = Claim(
    name="T14h",
    clauses=(
        "Let several multipliers lead a token (T14e), with leading sums y_i(L), y_j(L). If x^N >"
        " 0 for all of both tokens, each residue of L modulo N has a limit of its own: "
        "cos(y_i(r), y_j(r)) where neither is 0, else that of what grows more slowly, or none "
        "where a token is 0 at all these depths from some on.",
        "Else every value cos(y_i(L), y_j(L)), neither 0, is a limit point: two different values"
        " are no limit, and the limit points are a closed set in [-1, 1].",
        "There is a limit where the directions of each token's leading multipliers are "
        "independent and y_i = c y_j (one real simple a leads both), or one pair of conjugates "
        "leads both with g_i . g_i = g_i . g_j = g_j . g_j = 0.",
    ),
    latex=r"\{\cos(y_i(L),y_j(L)):L\ge0\}\subseteq\text{limit points of }\cos(x_i,x_j)",
    source="almost periodic sums; as used here ours",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC,),
    evidence=(
        by.for_all(
            "Q33: Re(e^(i phi) (a + ib)) != 0 for independent a, b in the plane",
            given="c*c + s*s == 1; a1*b2 - a2*b1 != 0",
            then="(c*a1 - s*b1)**2 + (c*a2 - s*b2)**2 > 0",
            at="c=1, s=0, a1=1, a2=0, b1=0, b2=1",
            covers=(3,),
        ).unless(
            "a and b dependent", without="a1*b2 - a2*b1 != 0", at="c=0, s=1, a1=1, a2=0, b1=0, b2=0"
        ),
        by.for_all(
            "Q34: |a| = |b|, a . b = 0: |Re(e^(i phi) (a + ib))| = |a|; aa = |a|^2, ab = a . b",
            given="c*c + s*s == 1; aa == bb; ab == 0",
            then="c*c*aa - 2*c*s*ab + s*s*bb == aa",
            at="c=0, s=1, aa=1, bb=1, ab=0",
            covers=(3,),
        )
        .unless("a . b != 0", without="ab == 0", at="c=3/5, s=4/5, aa=1, bb=1, ab=1")
        .unless("|a| != |b|", without="aa == bb", at="c=0, s=1, aa=1, bb=4, ab=0"),
        by.written("residues, recurrence, constant angles", _residues, _recurrence, _constant),
        by.searched(
            "some 300 layers of a turning H on several classes, exactly",
            _law,
            reducible().filter(lambda A: len(A) <= 5),
            draw.fractions(-2, 2, 2),
            st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(2)]),
            draw.SEEDS,
            at=lambda A, x, y, seed: (A, [[x, -y], [y, x]]),
        ),
    ),
)
