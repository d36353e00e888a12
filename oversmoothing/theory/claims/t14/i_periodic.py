"""T14i: periodic attention: eigenvalues of A on the unit circle beside 1."""

import math
from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.layer.periods import cyclic_groups
from oversmoothing.theory.layer.perron import closed_classes
from oversmoothing.theory.numbers.rational import to_float
from oversmoothing.theory.proofs import strategies
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact, given, verdict


def period(A: Matrix) -> int | None:
    """The period of an irreducible A, None where it is not irreducible."""
    everyone = list(range(len(A)))
    if [sorted(map(int, members)) for members in closed_classes(to_float(A))] != [everyone]:
        return None
    return len(cyclic_groups(to_float(A) > 0, everyone))


_PERIODIC = given.Hypothesis(
    "A is row-stochastic, irreducible and periodic",
    lambda case: given.is_stochastic(case.A) and (period(case.A) or 1) > 1,
    (given.case(), given.case("1 0; 0 1")),
)


def _peripheral() -> None:
    """[1; instance] A sends group r of tokens to group r + 1 mod p. With w = exp(2 pi i/p), v_k(i)
    = w^(k r(i)) has A v_k = w^k v_k: the w^k are eigenvalues, simple by Perron-Frobenius, and no
    others have modulus 1. Consensus is v_0 and pi its left vector, as ever (T1b, T1d): A^L X_0 need
    not converge, yet the pi-mean c_L = c_0 (I + W)^L does what it does without periods."""
    A = exact.matrix("0 0 1/3 2/3; 0 0 1/2 1/2; 1/4 3/4 0 0; 1 0 0 0")
    assert period(A) == 2
    v = exact.column("1 1 -1 -1")
    equal(exact.product(A, v), exact.scaled(-1, v))


def _sides() -> None:
    """[2, 3; instance] |1 + h w^k|^2 - |1 + h|^2 = 2 Re(h w^k - h) on the circle. h > 0: negative
    for every k != 0, and smaller |a| lose as well (T14d). Re h < 0: the mean over k of Re(h w^k) is
    0, so that some k gains: this h loses consensus, however large |h| is. No h < -2/(1 + a) wins
    back, as in T2b: a = -1 puts that end at minus infinity. (T4a.)"""
    A = exact.matrix("0 1; 1 0")
    for h in ("-1/2", "-2", "-3", "-100"):
        assert verdict(A=A, H=exact.matrix(h)).verdict == "NON_SMOOTHING"
    assert verdict(A=A, H=exact.matrix("1/2")).verdict == "SMOOTHING"
    flat = exact.uniform(2)
    assert verdict(A=flat, H=exact.matrix("-3")).verdict == "SMOOTHING"


def _even() -> None:
    """[4; instance] p even, h < 0 the one eigenvalue of H = [h]: |1 + h a| <= 1 + |h| |a|, equal
    only at a = -1. So 1 + |h| leads, simple and positive: x_i(L) ~ (1 + |h|)^L (-1)^r(i) g with g =
    sum over i of pi_i (-1)^r(i) x_i. Tokens of one parity agree, of two oppose: nothing depends on
    the residue of L."""
    A = exact.matrix("0 0 1/2 1/4 1/4; 0 0 1/3 1/3 1/3; 1/4 3/4 0 0 0; 1 0 0 0 0; 1/2 1/2 0 0 0")
    found = verdict(A=A, H=exact.matrix("-5"), X0=exact.column("1 2 -3 1 4"))
    assert found.limit is not None and found.cosine_limits is not None
    assert abs(found.limit - math.sqrt(25 - 1)) < 1e-12
    for (i, j), limit in found.cosine_limits.items():
        assert limit is not None and limit.values == ((1.0,) if (i < 2) == (j < 2) else (-1.0,))


def _odd() -> None:
    """[5; instance] p odd: of the w^k the pair with the least real part, k = (p - 1)/2 and (p +
    1)/2, has the largest |1 + h w^k|, h < 0. Its phases turn with L: by T14h the cosines go by
    residues of L iff a power of 1 + h w^k is real. At h = -1 it is: 1 - w^k = 2 sin(pi k/p) exp(i
    pi (k/p - 1/2)), and the 2p-th power is real. At h = -2, p = 3 none is: (2 - i sqrt 3)^2/7 is a
    unit that is no integer."""
    cycle = exact.matrix("0 1 0; 0 0 1; 1 0 0")
    for h, word in (("-1", "periodic"), ("-2", "oscillates"), ("1/2", "constant")):
        found = verdict(A=cycle, H=exact.matrix(h), X0=exact.column("1 2 5")).cosine_limits
        assert found is not None
        assert {limit.tends_to for limit in found.values() if limit} == {word}


@st.composite
def periodic(draw_from: st.DrawFn) -> Matrix:
    """Two to four groups of one or two tokens, each attending to the next alone."""
    sizes = draw_from(st.lists(st.integers(1, 2), min_size=2, max_size=4))
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    rows: Matrix = []
    for k, size in enumerate(sizes):
        into = (k + 1) % len(sizes)
        for _ in range(size):
            weights = draw_from(
                st.lists(st.integers(1, 3), min_size=sizes[into], max_size=sizes[into])
            )
            row = [Fraction(0)] * sum(sizes)
            for j, w in enumerate(weights):
                row[starts[into] + j] = Fraction(w, sum(weights))
            rows.append(row)
    return rows


def _law(A: Matrix, h: Fraction, seed: int) -> None:
    n, p = len(A), period(A)
    assert p is not None and p > 1
    X = strategies.general_state(seed, n, 1)
    found = verdict(A=A, H=[[h]], X0=X)
    assert found.verdict == ("SMOOTHING" if h > 0 else "NON_SMOOTHING")
    assert found.cosine_limits is not None
    limits = [limit for limit in found.cosine_limits.values() if limit]
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
        for (i, j), limit in found.cosine_limits.items():
            sign = 1.0 if (group[i] - group[j]) % 2 == 0 else -1.0
            assert limit is not None and limit.values == (sign,)
        apart = abs(sum((-1) ** r for r in group.values()))
        expected = math.inf if not apart else math.sqrt(n * n - apart**2) / apart
        assert found.limit is not None and math.isclose(found.limit, expected, rel_tol=1e-12)


CLAIM = Claim(
    name="T14i",
    clauses=(
        "Let A be row-stochastic, irreducible and of period p > 1, r(i) the group of token i: "
        "its eigenvalues of modulus 1 are w^k, w = exp(2 pi i/p), each simple, with v_k(i) = "
        "w^(k r(i)); consensus is k = 0.",
        "An h with Re h < 0 has |1 + h w^k| > |1 + h| for some k: if all h do, the verdict is "
        "NON_SMOOTHING, however large |h|.",
        "All h > 0: SMOOTHING, and for generic X_0 all cosines tend to 1.",
        "For H = [h] (d = 1), h < 0, p even and generic X_0 the eigenvalue -1 alone leads, by 1 "
        "+ |h|: cosines tend to (-1)^(r(i)-r(j)), and HFC/LFC to sqrt(n^2 - m^2)/m, m the "
        "difference of the numbers of tokens in even and odd groups (infinity for m = 0).",
        "For p odd and A the cycle of p tokens a pair of conjugates leads: the cosines go by the"
        " residue of L iff a power of 1 + h w^((p-1)/2) is real, as at h = -1, and have no limit"
        " else.",
    ),
    latex=r"|1+h\omega^k|^2-|1+h|^2=2\,\mathrm{Re}\,h(\omega^k-1),\qquad "
    r"\cos(x_i,x_j)\to(-1)^{r(i)-r(j)}",
    source="Perron and Frobenius; as used here ours",
    on_record=by.WRITTEN,
    hypotheses=(_PERIODIC,),
    evidence=(
        by.for_all(
            "Q35: h < 0, |a| = 1, a != 1: |1+ha| > |1+h|",
            given="u*u + v*v == 1; u < 1; h < 0",
            then="(1+h*u)**2 + (h*v)**2 > (1+h)**2",
            at="h=-3, u=-1, v=0",
            covers=(2,),
        )
        .unless("h <= 0", without="h < 0", given="h <= 0", at="h=0, u=-1, v=0")
        .unless("|a| <= 1", without="u*u + v*v == 1", given="u*u + v*v <= 1", at="h=-4, u=0, v=0"),
        by.for_all(
            "Q36: h < 0, |a| <= 1, a != -1: |1+ha| < 1 + |h|",
            given="u*u + v*v <= 1; u > -1; h < 0",
            then="(1+h*u)**2 + (h*v)**2 < (1-h)**2",
            at="h=-3, u=0, v=1",
            covers=(4,),
        ).unless("a = -1 too", without="u > -1", at="h=-3, u=-1, v=0"),
        by.written("peripheral eigenvalues", _peripheral, _sides, _even, _odd),
        by.searched(
            "drawn groups, exactly",
            _law,
            periodic(),
            draw.fractions(-4, 2, 2).filter(bool),
            draw.SEEDS,
            at=lambda A, h, seed: (A, [[h]]),
        ),
    ),
)
