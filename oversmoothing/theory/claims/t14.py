"""What the claims of t14.md execute; one room: the chapter."""

import math
from fractions import Fraction
from itertools import combinations, pairwise

import flint
import numpy as np
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.lemmas import with_state
from oversmoothing.theory.depth import recurrence as measured
from oversmoothing.theory.layer.attention import closed_classes, cyclic_groups
from oversmoothing.theory.numbers.exact import exact_stationary, to_flint, to_float
from oversmoothing.theory.proofs.kit import (
    Matrix,
    draw,
    equal,
    exact,
    given,
    search,
    spectra,
    verdict,
)
from oversmoothing.theory.verdict.cosines import CosineLimit
from oversmoothing.theory.verdict.leading import TokenGrowth


# T14a
@st.composite
def reducible(pick: st.DrawFn) -> Matrix:
    """A row-stochastic A of two or three closed classes and up to two tokens that are in none."""
    sizes = pick(draw.lists(st.integers(1, 2), 2, 3))
    total = sum(sizes) + pick(st.integers(0, 2))
    rows: Matrix = []
    for size in sizes:
        before = len(rows)
        for _ in range(size):
            weights = pick(draw.lists(st.integers(1, 4), size))
            rows.append(draw.shares([0] * before + weights + [0] * (total - before - size)))
    while len(rows) < total:
        rows.append(draw.shares(pick(draw.lists(st.integers(1, 3), total))))
    return rows


def families(A: Matrix) -> tuple[list[list[Fraction]], Matrix]:
    """The stationary distribution of each closed class, and where tokens end: W [n, m]."""
    classes = [members.tolist() for members in closed_classes(to_float(A))]
    pi = [exact_stationary(A, [members]) for members in classes]
    # The projector at 1 is W pi, and a class has the sum 1 in its pi.
    ends = spectra.projector(A, Fraction(1))
    return pi, [[sum((row[j] for j in m), Fraction(0)) for m in classes] for row in ends]


@search(reducible(), at=given.of_attention)
def law_a(A: Matrix) -> None:
    pi, W = families(A)
    m, n = len(pi), len(A)
    equal(exact.product(A, W), W)
    equal(exact.product(pi, A), pi)
    equal(exact.product(pi, W), exact.identity(m))
    assert all(sum(row) == 1 and min(row) >= 0 for row in W)
    minus = to_flint(A) - to_flint(exact.identity(n))
    assert n - int(minus.rank()) == n - int((minus * minus).rank()) == m


# T14b
@search(with_state(reducible(), draw.with_jordan_blocks([(Fraction(1, 2), 2)]), 50), at="A H")
def law_b(A: Matrix, H: Matrix, X: Matrix) -> None:
    pi, W = families(A)
    c, depth = exact.product(pi, X), 5
    R = exact.plus(X, exact.product(W, c), -1)
    step = exact.plus_identity(exact.transposed(H))
    means = exact.product(c, exact.power(step, depth))
    final = exact.layer(A, H, X, depth)
    equal(exact.product(pi, final), means)
    equal(final, exact.plus(exact.product(W, means), exact.layer(A, H, R, depth)))


# T14c
_HALF = exact.matrix("1/2")
_PAIRS = exact.matrix("1/2 1/2 0 0; 1/2 1/2 0 0; 0 0 1/2 1/2; 0 0 1/2 1/2")


def one_state() -> None:
    even = verdict(A=_PAIRS, H=_HALF, X0=exact.matrix("1; 3; 0; 4"))
    assert (even.verdict_x0, even.tends_to) == ("SMOOTHING", "zero")
    odd = verdict(A=_PAIRS, H=_HALF, X0=exact.matrix("1; 3; 0; 6"))
    assert (odd.verdict_x0, odd.tends_to) == ("TIE", "constant")
    # Class means 2 and 3 on two tokens each.
    assert odd.limit is not None and abs(odd.limit - 1 / 5) < 1e-15
    alone = verdict(A=exact.identity(9), H=_HALF, X0=exact.column(" ".join(["0"] * 8 + ["1"])))
    assert alone.limit is not None and abs(alone.limit - math.sqrt(8)) < 1e-14


@search(with_state(reducible(), 1, 20), draw.fractions(Fraction(1, 4), 3, 4), at="A h")
def law_c(A: Matrix, X: Matrix, h: Fraction) -> None:
    """h > 0: R_L grows by |1 + h a| < 1 + h, and the limit is that of the absorbed class means."""
    pi, W = families(A)
    c = [row[0] for row in exact.product(pi, X)]
    answer = verdict(A=A, H=[[h]], X0=X)
    ends = exact.applied(W, c)
    mean = sum(ends, Fraction(0)) / len(ends)
    spread = sum((x - mean) ** 2 for x in ends)
    if not any(c):
        return
    if not spread:
        assert answer.verdict_x0 in ("SMOOTHING", "TRIVIAL") and answer.tends_to == "zero"
    elif not mean:
        assert answer.tends_to == "infinity" and answer.verdict_x0 == "TIE"
    else:
        assert answer.verdict_x0 == "TIE" and answer.tends_to == "constant"
        expected = math.sqrt(spread / (len(ends) * mean**2))
        assert answer.limit is not None and math.isclose(answer.limit, expected, rel_tol=1e-12)


# T14d
_CYCLE = exact.matrix("0 1 0; 0 0 1; 1 0 0")


def off_one() -> None:
    # The cycle has a = 1 and the two other cube roots of 1.
    assert verdict(A=_CYCLE, H=exact.matrix("1/2")).verdict == "SMOOTHING"
    assert verdict(A=_CYCLE, H=exact.matrix("-1/2")).verdict == "NON_SMOOTHING"
    causal = exact.matrix("1 0; 1/1000000000000 999999999999/1000000000000")
    assert verdict(A=causal, H=exact.matrix("1/2")).verdict == "SMOOTHING"


@search(draw.causal_attention(4), draw.fractions(-2, 2, 8), at="A h")
def law_d(A: Matrix, h: Fraction) -> None:
    answer = verdict(A=A, H=[[h]])
    if h > 0:
        assert answer.verdict == "SMOOTHING"
    elif -1 <= h < 0:
        assert answer.verdict == "NON_SMOOTHING"


# T14e
LOST = exact.matrix("1 0 0; 1/2 1/2 0; 1/4 1/2 1/4")
_SMALL = reducible().filter(lambda A: len(A) <= 5)
_BLOCK = draw.with_jordan_blocks([(Fraction(-1, 2), 2)])


def _growth(A: Matrix, H: Matrix, X0: Matrix) -> list[tuple[float, int]]:
    """(rho, p) of each token that is not 0 for good: ||x_i|| like L^p rho^L."""
    growth = verdict(A=A, H=H, X0=X0).token_growth
    return [(each.rate, each.power) for each in growth or () if each]


def own_terms() -> None:
    # a = 1, 1/2, 1/4 and h = -1/2: the multipliers 1/2, 3/4, 7/8, and token i has the first i + 1.
    growth = _growth(LOST, exact.matrix("-1/2"), exact.column("1 3 2"))
    assert growth == [(1 / 2, 0), (3 / 4, 0), (7 / 8, 0)]
    # Row 1 is 1, 1/2, 1/4 ... (1/2)^L: the others' multipliers are not in it.
    late = exact.layer(LOST, exact.matrix("-1/2"), exact.column("1 3 2"), 9)
    assert late[0][0] == Fraction(1, 512)


def upper_limit() -> None:
    # h = -2 and a = 1, 0: the multipliers -1 and 1, and token 1 is 0 at every even depth.
    A, H, X = exact.uniform(2), exact.matrix("-2"), exact.column("0 2")
    assert _growth(A, H, X) == [(1, 0), (1, 0)]
    equal(exact.layer(A, H, X), exact.column("-2 0"))
    equal(exact.layer(A, H, X, 2), X)


def _largest(A: Matrix, H: Matrix, X: Matrix, depth: int, growth: list[TokenGrowth]) -> list[float]:
    """max of log ||x_i(L)|| - L log rho - p log L over eight depths, in balls."""
    peaks = [-math.inf] * len(A)
    for L, state in measured.states(A, H, X, range(depth, depth + 8)).items():
        for i, (row, g) in enumerate(zip(state.tolist(), growth, strict=True)):
            squared = sum((x * x for x in row), flint.arb(0))
            assert squared.contains(0) or g.rate > 0
            if squared > 0:
                foreseen = L * math.log(g.rate) + g.power * math.log(L)
                peaks[i] = max(peaks[i], measured.log(squared) / 2 - foreseen)
    return peaks


@search(with_state(_SMALL, _BLOCK, 9), at="A H")
def law_e(A: Matrix, H: Matrix, X: Matrix) -> None:
    """Over a window of depths the largest ||x_i|| / (L^p rho^L) hardly changes from L to 2 L."""
    known = [g for g in given.content(A, H, X).tokens.growth if g is not None]
    assert len(known) == len(A)
    # Where the leading terms are small ones they show late.
    for depth in (100, 800, 6400, 102400):
        early, late = (_largest(A, H, X, L, known) for L in (depth, 2 * depth))
        if all(abs(x - y) < 1 / 2 for x, y in zip(early, late, strict=True) if x > -math.inf):
            return
    raise AssertionError(f"{early} becomes {late}")


# T14f
def longest_chain(A: Matrix, i: int, a: Fraction) -> int:
    """The most tokens k with A_kk = a on one path of attention from token i, i among them."""
    beyond = [longest_chain(A, k, a) for k in range(i) if A[i][k]]
    return int(A[i][i] == a) + max(beyond, default=0)


def upper_bound() -> None:
    A = exact.matrix("1 0 0 0; 1/2 1/2 0 0; 1/4 1/4 1/2 0; 1/4 1/8 1/8 1/2")
    assert [longest_chain(A, i, Fraction(1, 2)) for i in range(4)] == [0, 1, 2, 3]
    growth = _growth(A, exact.matrix("-1/2"), exact.column("1 3 -2 5"))
    assert growth == [(0.5, 0), (0.75, 0), (0.75, 1), (0.75, 2)]


def attained() -> None:
    A = exact.matrix("1 0 0 0; 1/2 1/2 0 0; 1/2 1/4 1/4 0; 1/4 0 1/4 1/2")
    # 4 -> 3 -> 2: the diagonals 1/2, 1/4, 1/2.
    assert longest_chain(A, 3, Fraction(1, 2)) == 2
    a, rest, one = (exact.plus(A, exact.identity(4, b), -1) for b in ("1/2", "1/4", 1))
    assert any(exact.product(a, rest, one)[3])
    assert not any(exact.product(a, a, rest, one)[3])


def not_always() -> None:
    A = exact.matrix("1 0 0 0; 3/4 1/4 0 0; 1/8 1/8 3/4 0; 1/8 1/8 1/2 1/4")
    assert longest_chain(A, 3, Fraction(1, 4)) == 2
    a, rest, one = (exact.plus(A, exact.identity(4, b), -1) for b in ("1/4", "3/4", 1))
    assert not any(exact.product(a, rest, one)[3])
    assert _growth(A, exact.matrix("-1/2"), exact.column("1 3 -2 5"))[3] == (7 / 8, 0)


CAUSAL = given.Hypothesis(
    "A is causal: row-stochastic and lower triangular",
    lambda case: (
        given.is_stochastic(case.A) and not any(any(row[i + 1 :]) for i, row in enumerate(case.A))
    ),
    (given.case(),),
)


@st.composite
def chained(draw_from: st.DrawFn) -> Matrix:
    """Causal attention of diagonals 1, then two values; zeros below the diagonal now and then."""
    n = draw_from(st.integers(2, 5))
    rows: Matrix = [[Fraction(1), *[Fraction(0)] * (n - 1)]]
    for i in range(1, n):
        a = draw_from(st.sampled_from([Fraction(1, 2), Fraction(1, 2), Fraction(1, 4)]))
        weights = draw_from(draw.lists(st.integers(0, 2), i).filter(any))
        others = [(1 - a) * share for share in draw.shares(weights)]
        rows.append([*others, a, *[Fraction(0)] * (n - i - 1)])
    return rows


@search(with_state(chained(), st.integers(1, 2), 10**9), at="A")
def law_f(A: Matrix, X: Matrix) -> None:
    """h = -1/2: the smallest diagonal on the paths from i leads with the longest chain at most; the
    bound is attained where that diagonal is 1/2, the largest but for the 1."""
    h, block = Fraction(-1, 2), len(X[0])
    H = [[h * (k == m) + (m == k + 1) for m in range(block)] for k in range(block)]
    for i, growth in enumerate(given.content(A, H, X).tokens.growth):
        assert growth is not None
        # 1 + h a is exact in binary, and so is a again.
        a = (Fraction(growth.rate) - 1) / h
        assert growth.power <= longest_chain(A, i, a) + block - 2
        seen = [b for b in (Fraction(1, 4), Fraction(1, 2), Fraction(1)) if longest_chain(A, i, b)]
        assert a >= seen[0]
        if seen[0] == Fraction(1, 2):
            assert (a, growth.power) == (seen[0], longest_chain(A, i, a) + block - 2)


# T14g
def directions() -> None:
    # Token 3 of the causal case turns by 7/8, against the others: the limits 1, -1, -1.
    answer = verdict(A=LOST, H=exact.matrix("-1/2"), X0=exact.column("1 3 2"))
    assert answer.cosine_limits is not None and answer.cos_min is not None
    values = [limit.values for limit in answer.cosine_limits.values() if limit]
    assert values == [(1.0,), (-1.0,), (-1.0,)] and answer.cos_min.values == (-1.0,)
    # Two classes, h = 1 and h = -3 with directions that are not orthogonal: 2 and -2 by turns.
    apart = exact.identity(2), exact.matrix("1 4; 0 -3"), exact.matrix("1 0; 1 1")
    limit = _between(*apart)
    assert limit.tends_to == "periodic"
    for L in (6, 7):
        x, y = exact.layer(*apart, L)
        value = limit.values[L % 2]
        assert value is not None and abs(_cosines([x, y])[0, 1] - value) < 1e-12


def defective() -> None:
    # H = -3 on a chain of tokens of diagonal 1/2 after token 1: multipliers -2 and -1/2.
    A, H, X = exact.matrix("1 0; 0 1"), exact.matrix("-3 1; 0 -3"), exact.matrix("1 0; 1 1")
    assert [power for _, power in _growth(A, H, X)] == [0, 1]
    far = exact.layer(A, H, X, 400)
    assert _between(A, H, X).values == (-1.0,) and _cosines(far)[0, 1] < -0.99


def _between(A: Matrix, H: Matrix, X0: Matrix) -> CosineLimit:
    """The limit of the cosine of the first two tokens."""
    cosines = verdict(A=A, H=H, X0=X0).cosine_limits
    assert cosines is not None and cosines[0, 1] is not None
    return cosines[0, 1]


def _cosines(state: Matrix) -> dict[tuple[int, int], float]:
    """Of the pairs i < j of tokens that are not 0."""
    rows, _ = to_flint(state).numer_denom()
    inner = [[int(x) for x in row] for row in (rows * rows.transpose()).tolist()]
    return {
        (i, j): math.sqrt(inner[i][j] ** 2 / square) * (1 if inner[i][j] > 0 else -1)
        for i, j in combinations(range(len(state)), 2)
        if (square := inner[i][i] * inner[j][j])
    }


@search(with_state(chained(), _BLOCK, 9), at="A H")
def law_g(A: Matrix, H: Matrix, X: Matrix) -> None:
    """Cosines of the states after 600 layers, by hand, are near the limits said of them."""
    limits = given.content(A, H, X).tokens.cosines
    for depth in (600, 601):
        for pair, cosine in _cosines(exact.layer(A, H, X, depth)).items():
            limit = limits[pair]
            assert limit is not None and limit.tends_to in ("constant", "periodic")
            value = limit.values[depth % len(limit.values)]
            assert value is not None and abs(cosine - value) < 0.1


# T14h
def residues() -> None:
    # Multipliers -1 and 1: one token is 0 at the even depths, the other at the odd ones.
    A, H, X = exact.uniform(2), exact.matrix("-2"), exact.column("0 2")
    assert _between(A, H, X).tends_to == "undefined"
    equal(exact.layer(A, H, X, 5), exact.column("-2 0"))
    equal(exact.layer(A, H, X, 6), exact.column("0 2"))
    # The cycle of three with h = -1: mu^6 = -27 for both leading mu = 1 - w.
    H, start = exact.matrix("-1"), exact.column("1 2 5")
    equal(exact.layer(_CYCLE, H, start, 7), exact.scaled(-27, exact.layer(_CYCLE, H, start)))
    assert _between(_CYCLE, H, start).values == (1.0, 1.0, -1.0, -1.0, -1.0, -1.0)


def recurrence() -> None:
    # mu = 2 +- i sqrt 2, no power of which is real: h = 1 - i sqrt 2 and its conjugate.
    A, H, X = exact.identity(2), exact.matrix("1 -2; 1 1"), exact.matrix("1 0; 1 1")
    assert _between(A, H, X).tends_to == "oscillates"


def constant() -> None:
    # A rotation turns all tokens alike: 45 degrees stay 45 degrees, at every depth.
    A, H = exact.identity(2), exact.matrix("1 -2; 2 1")
    X = exact.matrix("1 0; 1 1")
    limit = _between(A, H, X)
    assert limit.tends_to == "constant" and limit.values == (0.5**0.5,)
    for depth in (1, 2, 9):
        x, y = exact.layer(A, H, X, depth)
        assert 2 * exact.dot(x, y) ** 2 == exact.dot(x, x) * exact.dot(y, y)
    # Consensus leads by a complex h: its direction turns for ever, and the tokens agree.
    smooth = _between(exact.uniform(2), exact.matrix("1 -2; 1 1"), X)
    assert (smooth.tends_to, smooth.values) == ("constant", (1.0,))


@search(
    with_state(_SMALL, 2, 9),
    draw.fractions(-2, 2, 2),
    st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(2)]),
    at=lambda A, X, x, y: (A, [[x, -y], [y, x]]),
)
def law_h(A: Matrix, X: Matrix, x: Fraction, y: Fraction) -> None:
    """A turning H on several classes: limits are met at depth, and no limit shows two values."""
    H = [[x, -y], [y, x]]
    # 0.97^300 = 1e-4: what grows nearly as fast as the leading part hides its limit for longer.
    moduli = sorted(abs(1 + complex(x, y) * a) for a in np.linalg.eigvals(np.array(A, dtype=float)))
    assume(not any(0.97 < low / high < 1 - 1e-4 for low, high in pairwise(moduli) if high))
    cosines = given.content(A, H, X).tokens.cosines
    state = exact.layer(A, H, X, 300)
    for depth in range(300, 312):
        seen = _cosines(state)
        for pair, limit in cosines.items():
            if limit is None or not limit.values:
                continue
            value, cosine = limit.values[depth % len(limit.values)], seen[pair]
            assert value is not None
            assert abs(cosine * abs(cosine) - value * abs(value)) < 0.1
        state = exact.layer(A, H, state)


# T14i
def period(A: Matrix) -> int | None:
    """The period of an irreducible A, None where it is not irreducible."""
    everyone = list(range(len(A)))
    if [sorted(map(int, members)) for members in closed_classes(to_float(A))] != [everyone]:
        return None
    return len(cyclic_groups(to_float(A) > 0, everyone))


PERIODIC = given.Hypothesis(
    "A is row-stochastic, irreducible and periodic",
    lambda case: given.is_stochastic(case.A) and (period(case.A) or 1) > 1,
    (given.case(), given.case("1 0; 0 1")),
)


def peripheral() -> None:
    A = exact.matrix("0 0 1/3 2/3; 0 0 1/2 1/2; 1/4 3/4 0 0; 1 0 0 0")
    assert period(A) == 2
    v = exact.column("1 1 -1 -1")
    equal(exact.product(A, v), exact.scaled(-1, v))


def odd() -> None:
    for h, word in (("-1", "periodic"), ("-2", "oscillates"), ("1/2", "constant")):
        cosines = verdict(A=_CYCLE, H=exact.matrix(h), X0=exact.column("1 2 5")).cosine_limits
        assert cosines is not None
        assert {limit.tends_to for limit in cosines.values() if limit} == {word}


@st.composite
def periodic(draw_from: st.DrawFn) -> Matrix:
    """Two to four groups of one or two tokens, each attending to the next alone."""
    sizes = draw_from(draw.lists(st.integers(1, 2), 2, 4))
    rows: Matrix = []
    for k, size in enumerate(sizes):
        into = (k + 1) % len(sizes)
        before, after = sum(sizes[:into]), sum(sizes[into + 1 :])
        for _ in range(size):
            weights = draw_from(draw.lists(st.integers(1, 3), sizes[into]))
            rows.append(draw.shares([0] * before + weights + [0] * after))
    return rows


@search(with_state(periodic(), 1, 10**9), draw.fractions(-4, 2, 2).filter(bool), at="A h")
def law_i(A: Matrix, X: Matrix, h: Fraction) -> None:
    n, p = len(A), period(A)
    assert p is not None and p > 1
    answer = verdict(A=A, H=[[h]], X0=X)
    assert answer.verdict == ("SMOOTHING" if h > 0 else "NON_SMOOTHING")
    assert answer.cosine_limits is not None
    limits = [limit for limit in answer.cosine_limits.values() if limit]
    if h > 0:
        assert len(limits) == n * (n - 1) // 2
        assert all(limit.values == (1.0,) for limit in limits)
    elif p % 2 == 0:
        # The opposite groups' tokens: twice the parity of the walk from token 0.
        group, walk = {0: 0}, [0]
        for i in walk:
            for j in range(n):
                if A[i][j] and j not in group:
                    group[j] = group[i] + 1
                    walk.append(j)
        for (i, j), limit in answer.cosine_limits.items():
            sign = 1.0 if (group[i] - group[j]) % 2 == 0 else -1.0
            assert limit is not None and limit.values == (sign,)
        apart = abs(sum((-1) ** r for r in group.values()))
        expected = math.inf if not apart else math.sqrt(n * n - apart**2) / apart
        assert answer.limit is not None and math.isclose(answer.limit, expected, rel_tol=1e-12)
