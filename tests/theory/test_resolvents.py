"""T4e, T6b, T11: the resolvent of one X_0, the modes it contains, and how far it is computed."""

import math
import random
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import assume, example, given, settings, strategies as st

from oversmoothing.theory.depth.ratios import exact_state
from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers.exact import centred, from_flint, to_float
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.proofs.strategies import SEEDS
from oversmoothing.theory.spectra.algebraic import Factor
from oversmoothing.theory.spectra.heads import read_heads
from oversmoothing.theory.verdict import of_start, resolvent as resolvents
from oversmoothing.theory.verdict.cosines import TokenLimits, token_limits
from oversmoothing.theory.verdict.of_start import by_projectors
from oversmoothing.theory.verdict.resolvent import resolvent
from oversmoothing.theory.verdict.start import start_content
from oversmoothing.theory.verdict.verdict import verdict
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tables import floats, identity, matrix, rational

X3 = "1 2; 3 5; -2 1"


def found_of(A, H, X0):
    return resolvent(matrix(A), matrix(H), matrix(X0))


# --- the resolvent ---


@cases(
    "A, H, X0",
    ("AA", "-1/2", "1; 2"),
    ("A3", "1/2 1; 0 1/2", X3),
    ("C3", "1/5 -3/2; 3/2 1/5", "1 2; 3 5; -2/3 1"),
    ("1 0; 1/2 1/2", "-1", "1; 3"),
)
def test_T4e_the_resolvent_of_X_0_is_the_generating_function_of_its_states(A, H, X0):
    """The terms of N(z)/p(z) in powers of 1/z are the states, times the powers of the scale."""
    found, A, H, X0 = found_of(A, H, X0), matrix(A), matrix(H), matrix(X0)
    part = found.part(identity(len(A)))
    p, degree = part.denominator, part.denominator.degree()
    depths = range(2 * degree + 2)
    common = math.lcm(*(x.denominator for row in X0 for x in row))
    states = exact_state(A, H, X0, depths)
    below = flint.fmpz_poly([p[degree - k] for k in range(degree + 1)])
    for k, numerator in enumerate(part.numerators):
        i, j = divmod(k, len(H))
        terms = [states[L][i][j] * found.scale**L * common for L in depths]
        assert all(x.denominator == 1 for x in terms)
        above = flint.fmpz_poly([int(x) for x in terms]) * below
        right = [int(numerator[degree - 1 - L]) if degree > L else 0 for L in depths]
        assert [above[L] for L in depths] == right


@pytest.mark.parametrize("start", ["3; 6", "1; 4"])
def test_T4e_an_unlucky_prime_does_not_change_the_resolvent(monkeypatch, start):
    """Modulo 3 the states of (3, 6) are all 0, and (1, 4) is at consensus; the next prime tells."""
    assert all(flint.fmpz(p).is_prime() for p in resolvents.PRIMES)
    right = found_of("AA", "-1/2", start)
    monkeypatch.setattr(resolvents, "PRIMES", (3, 2**61 - 1))
    again = found_of("AA", "-1/2", start)
    assert right.table == again.table and right.degree == again.degree == 2
    assert [f.polynomial for f, _ in right.factors] == [f.polynomial for f, _ in again.factors]


def test_T4e_what_no_prime_tells_apart_is_no_resolvent():
    """1 + a for a = 0 and for the product of all the primes: equal modulo each of them."""
    far = (2**62 - 57) * (2**62 - 87) * (2**62 - 117) * (2**61 - 1)
    refuses("no prime", found_of, f"0 0; 0 {far}", "1", "1; 1", error=ArithmeticError)


def spread(n, kind):
    """Attention with repeated eigenvalues, or a birth-death one."""
    if kind == "uniform":
        return [[Fraction(i == j, 2) + Fraction(1, 2 * n) for j in range(n)] for i in range(n)]
    A = [[Fraction(0)] * n for _ in range(n)]
    for i in range(n):
        for j in (i - 1, i + 1):
            if kind == "cycle" or 0 <= j < n:
                A[i][j % n] = Fraction(2 + (i + j) % 3, 12)
        A[i][i] = 1 - sum(A[i])
    return A


def alike(values, seed):
    """H with these eigenvalues, each of which may repeat."""
    rng = random.Random(seed)
    above = [[rng.randint(-2, 2) if j > i else 0 for j in range(10)] for i in range(10)]
    P = rational(identity(10)) + rational(above)
    return from_flint(P * rational("diag " + " ".join(values)) * P.inv())


@cases(
    "kind, values",
    ("cycle", ["1/2", "1/3", "1/5", "-1/7", "2/3"] * 2),
    ("birth", ["-1/2", "-1/3", "-1/5", "-1/7", "-2/3"] * 2),
    ("uniform", ["1/7"] * 10),
    ("birth", ["-5/2", "-1/3", "-1/5", "1/7", "2/3"] * 2),
)
def test_T4e_repeated_eigenvalues_are_decided_at_every_size(kind, values):
    """n d = 200: what floats decide, fractions do too, with the same limit."""
    A, H, rng = spread(20, kind), alike(values, 1), random.Random(2)
    X0 = [[rng.randint(-3, 3) for _ in range(10)] for _ in range(20)]
    found = verdict(A=A, H=H, X0=X0)
    rounded = verdict(**{name: to_float(M) for name, M in (("A", A), ("H", H), ("X0", X0))})
    assert found.status == "exact" and found.verdict_x0 == found.verdict == rounded.verdict
    assert found.tends_to is not None and rounded.tends_to in (found.tends_to, None)
    if found.tends_to == "constant" and rounded.limit is not None:
        assert found.limit == pytest.approx(rounded.limit, rel=1e-9)
    assert found.cos_min is not None and None not in found.token_growth


@pytest.mark.parametrize("n", [9, 12, 13, 24])
def test_T4e_what_is_left_out_for_its_cost_is_said_with_how_to_ask_for_it(n):
    """Dense layers of d = 8: limits and cosines at every size, `shows_from` on demand."""
    rng = random.Random(n)
    A = [[Fraction(rng.randint(1, 9)) for _ in range(n)] for _ in range(n)]
    A = [[x / sum(row) for x in row] for row in A]
    H = [[Fraction(rng.randint(-9, 9), 30) - (i == j) for j in range(8)] for i in range(8)]
    X0 = [[rng.randint(-3, 3) for _ in range(8)] for _ in range(n)]
    found = verdict(A=A, H=H, X0=X0)
    assert found.verdict_x0 == found.verdict != "UNDECIDED" and found.tends_to is not None
    left_out = "Left out for its cost: from which layer on this X_0 shows that"
    assert (left_out in found.reason) == (found.shows_from is None)
    if found.shows_from is None:
        assert "thorough=True (--thorough) computes it, in about " in found.reason


def test_T4e_thorough_computes_what_was_left_out(monkeypatch):
    case = {"A": matrix("A3"), "H": matrix("1/2 0; 1 -1/3"), "X0": matrix(X3)}
    whole = verdict(**case)
    monkeypatch.setattr(of_start.resolvent, "QUICK_WORK", 1)
    short = verdict(**case)
    assert short.shows_from is None and "thorough=True" in short.reason
    assert (short.verdict_x0, short.cos_min) == (whole.verdict_x0, whole.cos_min)
    assert str(verdict(**case, thorough=True)) == str(whole)


@settings(max_examples=150)
@given(seed=SEEDS, n=st.integers(2, 5), d=st.integers(1, 4))
@example(seed=1411, n=5, d=4)  # one real a leads, with an h whose phases are not known
@example(seed=157, n=3, d=2)  # consensus by h = -1 +- sqrt(13)/2 together: tokens become alike
def test_T4e_projectors_and_the_resolvent_tell_the_same(seed, n, d):
    rng = random.Random(seed)
    causal, even = rng.random() < 0.3, rng.random() < 0.3
    weights = [[rng.randint(0, 3) + (i == j) for j in range(n)] for i in range(n)]
    rows = np.tril(weights).tolist() if causal else weights
    A = [[Fraction(x, sum(row)) for x in row] for row in rows]
    A = spread(n, "uniform") if even else A
    H = [[Fraction(rng.randint(-4, 3), 2) for _ in range(d)] for _ in range(d)]
    if rng.random() < 0.5:
        values = [Fraction(rng.randint(-7, 4), 3)] * d
        H = [[Fraction(values[i]) * (i == j) for j in range(d)] for i in range(d)]
    X0 = [[Fraction(rng.randint(-2, 2)) for _ in range(d)] for _ in range(n)]
    if rng.random() < 0.3:
        X0 = centred(X0)
    assume(len(set(map(tuple, X0))) > 1)
    case = Layer.of(A, H)
    found, content = by_projectors(case, X0), start_content(A, H, X0)
    assert found.outcome in (content.outcome, "UNDECIDED")
    told, known = found.limits, content.limits
    assert told.tends_to in (known.tends_to, None) and told.limit_rank in (known.limit_rank, None)
    if None not in (told.limit, known.limit):
        assert told.limit == pytest.approx(known.limit, rel=1e-14)
    tokens = token_limits(content.tokens.growth, content.tokens.cosines, d)
    told_of = found.tokens or TokenLimits(None, None, None, None)
    for one, other in zip(told_of.token_growth or (), tokens.token_growth, strict=False):
        assert one is None or (one.rate, one.power) == (pytest.approx(other.rate), other.power)
    for pair, limit in (told_of.cosine_limits or {}).items():
        if limit is not None:
            right = tokens.cosine_limits[pair]
            assert (limit.tends_to, limit.values) == (right.tends_to, pytest.approx(right.values))


@settings(max_examples=150)
@given(seed=SEEDS, n=st.integers(2, 5), d=st.integers(1, 3), heads=st.integers(1, 3))
def test_T4e_projectors_decide_Jordan_blocks_closed_classes_and_heads(seed, n, d, heads):
    rng = random.Random(seed)
    # Few shares and values: they repeat, with Jordan blocks; a share 1 is a closed class.
    shares, values = [[Fraction(x, 4) for x in rng.sample(range(-5, 5), 2)] for _ in range(2)]
    shares = [abs(x) if abs(x) <= 1 else Fraction(1) for x in shares]
    dense = rng.random() < 0.3
    A, W = [], []
    for _ in range(heads):
        rows = [[Fraction(rng.randint(0, 3)) for _ in range(n if dense else i)] for i in range(n)]
        for i, row in enumerate(rows):
            left = Fraction(1) if i == 0 and not dense else rng.choice(shares)
            total = sum(row)
            rows[i] = [x * (1 - left) / total if total else Fraction(0) for x in row]
            rows[i] += [Fraction(0)] * (n - len(row))
            rows[i][i] += 1 - sum(rows[i])
        A.append(rows)
        block = [[Fraction(rng.randint(-1, 1)) * (i < j) for j in range(d)] for i in range(d)]
        turned = [[Fraction(rng.randint(-2, 2), 2) for _ in range(d)] for _ in range(d)]
        for i in range(d):
            block[i][i] = rng.choice(values)
        W.append(turned if rng.random() < 0.2 else block)
    few = rng.choice((0, 1, 2))
    X0 = [[Fraction(rng.randint(-few, few)) for _ in range(d)] for _ in range(n)]
    X0 = centred(X0) if rng.random() < 0.3 else X0
    assume(len(set(map(tuple, X0))) > 1)
    case, start = read_heads(A, W, X0, True)
    found = by_projectors(case, start.fractions)
    content = start_content(case.rational_A, case.rational_H, start.fractions, False, case.others)
    assert found.outcome == content.outcome
    assert found.limits.tends_to in (content.limits.tends_to, None)


def test_T4e_a_decoder_of_many_tokens_with_Jordan_blocks_is_decided_for_each_X_0():
    """pi = e_1: whether X_0 contains consensus is seen in its first token."""
    rng, n = random.Random(1), 48
    A = [[Fraction(1)] + [Fraction(0)] * (n - 1)]
    for i in range(1, n):
        weights, own = [rng.randint(0, 5) for _ in range(i - 1)] + [1], Fraction(1 + i % 2, 4)
        A.append([(1 - own) * x / sum(weights) for x in weights])
        A[i] += [own] + [Fraction(0)] * (n - 1 - i)
    H = matrix("1/2 1 0 0; 0 1/2 0 0; 0 0 -1 1; 0 0 0 -1")
    X0 = [[rng.randint(-9, 9) for _ in range(4)] for _ in range(n)]
    for first, expected in ((X0[0], "SMOOTHING"), ([0] * 4, "NON_SMOOTHING")):
        found = verdict(A=A, H=H, X0=[first, *X0[1:]])
        assert (found.verdict, found.verdict_x0) == ("SMOOTHING", expected)
        assert "and what is not told of HFC/LFC and tokens." in found.reason


# --- what X_0 contains ---


@cases(
    "A, H, X0, consensus, quotient, comparison",
    ("AA", "1/2", "1; 2", 1.5, 1.25, 1),
    ("AA", "-1/2", "1; 2", 0.5, 0.75, -1),
    ("AA", "-4/3", "1; 2", 1 / 3, 1 / 3, 0),
    ("AA", "-1/2", "2; 2", 0.5, None, 1),
    ("AA", "1/2", "1; -1", None, 1.25, -1),
    # a = 1/2 and a = 1/5 under h = 1/2: 5/4 and 11/10.
    ("A3", "1/2", "1; 2; 4", 1.5, 1.25, 1),
    ("AA", "-2", "1; 2", 1.0, 0.0, 1),
    ("AA", "-2", "1; -1", None, 0.0, None),
    ("7/10 3/10; 3/10 7/10", "-5/2", "1; -1", None, 0.0, None),
)
def test_T4e_the_radii_of_a_start_are_those_of_the_modes_it_contains(
    A, H, X0, consensus, quotient, comparison
):
    found = start_content(matrix(A), matrix(H), matrix(X0))
    assert found.comparison == comparison and found.vanishes == (comparison is None)
    assert found.at_consensus == (quotient is None)
    for seen, radius in zip(found.radii, (consensus, quotient), strict=True):
        assert seen == (radius if radius is None else pytest.approx(radius, rel=1e-15))


def test_T4_roots_that_agree_to_hundreds_of_bits_lie_one_in_each_ball():
    """(x - 1)^3 - t and its kin around 2: roots of known places, conjugate pairs among them."""
    tiny = 10**150
    for shift in (0, 2):
        y = flint.fmpz_poly([-shift, 1])
        # tiny^3 y^3 = 2, so that y = 2^(1/3) w / tiny, w^3 = 1.
        factor = Factor(tiny**3 * y**3 - 2, 1, (1,))
        assert factor.conjugate_index in ([0, 2, 1], [1, 0, 2], [2, 1, 0])
        for bits in (64, 4096):
            roots = factor.roots(bits)
            assert not any(x.overlaps(z) for k, x in enumerate(roots) for z in roots[:k])
            with at_precision(8192):
                places = [((x - shift) * tiny) ** 3 for x in roots]
            assert all(place.overlaps(2) for place in places)
        # Three roots 1e-150 apart cost some 1,500 of the 4,096 bits.
        assert all(place.real.rel_accuracy_bits() > 2048 for place in places)


# --- the finite horizon ---


@pytest.mark.parametrize("H", ["1 0; 0 -1/2", "1/2 0; 0 0"])
def test_T4e_in_floats_the_finite_horizon_depends_on_no_basis_of_a_repeated_eigenvalue(H):
    """A = 2/7 I + 5/7 1 p^T: the eigenvectors of 2/7 are any basis of a plane."""
    p = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    A = [[Fraction(5, 7) * p[j] + Fraction(2, 7) * (i == j) for j in range(3)] for i in range(3)]
    X0 = "5/1024 2; -3/1024 1; 1/1024 0"
    exact = verdict(A=A, H=matrix(H), X0=matrix(X0))
    found = verdict(A=floats(A), H=floats(H), X0=floats(X0))
    assert found.status == "certified" and found.shows_from == exact.shows_from > 0
