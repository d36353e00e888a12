"""Certificates are sound: the answer is chosen exactly, the input built from it, and what comes out
must contain it, over thousands of draws.

As FLINT tests its enclosures: a failure or UNDECIDED is legal, a wrong inclusion never is.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import flint
import numpy as np
import pytest

from oversmoothing.theory.layer.cell import EXP_ERROR, bounded_exp, softmax_within
from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers.rounding import (
    TINY,
    UNIT,
    at_precision,
    gamma,
    upper_product,
    upper_sum,
)
from oversmoothing.theory.spectra.discs import Discs, Failure, enclose_all
from oversmoothing.theory.spectra.layer_discs import attention_discs_all
from oversmoothing.theory.verdict.formulas import real_verdict, threshold
from oversmoothing.theory.verdict.stages import certify_spectra, decide
from tests.support.tables import rational

U = Fraction(UNIT)
KINDS = ("plain", "graded", "cancelling", "subnormal", "huge", "integers")


# ------------------------------------------------------------------------------ rounding bounds


def draw_factors(rng, kind, rows, k, columns):
    P, Q = rng.standard_normal((rows, k)), rng.standard_normal((k, columns))
    if kind == "graded":
        P = P * 10.0 ** rng.integers(-12, 12, size=P.shape)
    elif kind == "cancelling":
        # The second half undoes the first up to a few units in the last place.
        half = k // 2
        P[:, half : 2 * half] = -P[:, :half] * (1 + UNIT * rng.integers(-4, 5, size=(rows, half)))
        Q[half : 2 * half] = Q[:half]
    elif kind == "subnormal":
        P, Q = P * 2.0**-1000, Q * 2.0 ** rng.integers(-74, 10, size=Q.shape)
    elif kind == "huge":
        P, Q = P * 1e150, Q * 1e140
    elif kind == "integers":
        P, Q = np.rint(9 * P), np.rint(9 * Q)
    return P, Q


def table(M):
    return [[Fraction(int(x.p), int(x.q)) for x in row] for row in M.tolist()]


@pytest.mark.parametrize("kind", KINDS)
def test_products_stay_within_their_bounds_exactly(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    tried = 0
    for _ in range(60):
        rows, k, columns = (int(x) for x in rng.integers(1, (5, 60, 5)))
        P, Q = draw_factors(rng, kind, rows, k, columns)
        computed, upper = P @ Q, upper_product(np.abs(P), np.abs(Q))
        exact = table(rational(P.tolist()) * rational(Q.tolist()))
        moduli = table(rational(np.abs(P).tolist()) * rational(np.abs(Q).tolist()))
        for i in range(rows):
            for j in range(columns):
                bound = Fraction(gamma(k)) * Fraction(upper[i, j]) + k * Fraction(TINY)
                assert abs(Fraction(computed[i, j]) - exact[i][j]) <= bound
                assert moduli[i][j] <= Fraction(upper[i, j])
                tried += 1
        sums = upper_sum(np.abs(P))
        for i in range(rows):
            assert Fraction(sums[i]) >= sum(map(Fraction, np.abs(P[i])))
    assert tried > 300


def test_the_exponential_is_within_its_error():
    rng = np.random.default_rng(2)
    t = -np.concatenate(
        [
            rng.uniform(0, 1, 1500),
            rng.uniform(0, 760, 2500),
            10.0 ** rng.uniform(-320, 2.9, 1000),
            np.log(2) * (np.arange(800) + 0.5),
            [0.0, 800.0, 745.1, 745.2, 744.4],
        ]
    )
    with at_precision(200):
        for x, value in zip(t, bounded_exp(t), strict=True):
            truth = flint.arb(float(x)).exp()
            error = abs(truth - flint.arb(float(value)))
            assert error < flint.arb(EXP_ERROR) * truth + flint.arb(TINY)
    assert bounded_exp(np.zeros(1))[0] == 1.0


def softmax_truth(logits):
    rows = []
    for row in logits:
        top = flint.arb(float(max(row)))
        weights = [0 if np.isneginf(x) else (flint.arb(float(x)) - top).exp() for x in row]
        total = sum(weights, flint.arb(0))
        rows.append([x / total for x in weights])
    return rows


def test_the_float_softmax_contains_the_softmax():
    rng = np.random.default_rng(3)
    with at_precision(200):
        for trial in range(400):
            n = int(rng.integers(1, 7))
            logits = 10.0 ** rng.uniform(-3, 3) * rng.standard_normal((n, n))
            if trial % 3 == 0:
                logits[np.triu_indices(n, 1)] = -np.inf
            if trial % 7 == 0:
                logits = logits * 1e290
            A, error = softmax_within(logits)
            for i, row in enumerate(softmax_truth(logits)):
                for j, truth in enumerate(row):
                    gap = abs(truth - flint.arb(float(A[i, j])))
                    assert not gap > flint.arb(float(error[i, j]))
                    assert not np.isneginf(logits[i, j]) or A[i, j] == error[i, j] == 0


# ------------------------------------------------------------------------------- chosen spectra

# Eigenvalues are integers times this, so that everything stays exact in binary64.
STEP = 2.0**-20


def unimodular(rng, m, k):
    """(S, S^-1), stacks of integer matrices of determinant 1."""
    lower = np.tril(rng.integers(-1, 2, size=(m, k, k)), -1) + np.eye(k)
    upper = np.triu(rng.integers(-1, 2, size=(m, k, k)), 1) + np.eye(k)
    S = lower @ upper
    inverse = np.rint(np.linalg.inv(S))
    assert (S @ inverse == np.eye(k)).all()
    return S, inverse


def chosen(rng, m, kind, largest=3.0):
    """m real matrices of side 4 in exact floats, and their eigenvalues [m, 4], exact too.

    real: any four; repeated: semisimple doubles; clustered: a few steps apart; defective: Jordan
    blocks of size 2 and 3; nearly: the same with eigenvalues a few steps apart; turning: two
    complex pairs, coupled; mixed: one pair and two real ones.
    """
    grid = int(largest / STEP)
    values = rng.integers(-grid, grid, size=(m, 4)).astype(float)
    near = rng.integers(1, 4, size=m)
    J = np.zeros((m, 4, 4))
    if kind in ("repeated", "defective"):
        values[:, 1] = values[:, 0]
    if kind in ("clustered", "nearly"):
        values[:, 1] = values[:, 0] + near
    if kind in ("defective", "nearly", "clustered"):
        values[::2, 2] = values[::2, 1]
    spectrum = values.astype(complex)
    J[:, range(4), range(4)] = values
    if kind in ("defective", "nearly"):
        J[:, 0, 1] = 1 / STEP
        J[::2, 1, 2] = 1 / STEP
    pairs = {"turning": ((0, 1), (2, 3)), "mixed": ((0, 1),)}.get(kind, ())
    for p, q in pairs:
        turn = rng.integers(1, grid, size=m)
        J[:, q, q] = values[:, p]
        J[:, p, q], J[:, q, p] = -turn, turn
        spectrum[:, p], spectrum[:, q] = values[:, p] + 1j * turn, values[:, p] - 1j * turn
    if kind == "turning":
        J[:, 0, 3] = rng.integers(-grid, grid, size=m)
    S, inverse = unimodular(rng, m, 4)
    M = S @ J @ inverse
    assert np.abs(M).max() < 2**50
    return M * STEP, spectrum * STEP


def holds(discs, values):
    """Every value in a disc, every component with as many values as discs, exactly."""
    home = []
    for value in values:
        inside = [
            bool(within(c, r, value)) for c, r in zip(discs.centres, discs.radii, strict=True)
        ]
        found = set(discs.component[inside].tolist())
        if len(found) != 1:
            return False
        home += found
    return sorted(home) == sorted(discs.component.tolist())


def within(centre, radius, value):
    if abs(centre - value) <= radius * (1 - 16 * UNIT):
        return True
    x, y = (Fraction(a) - Fraction(b) for a, b in ((centre.real, value.real),
                                                   (centre.imag, value.imag)))  # fmt: skip
    return x * x + y * y <= Fraction(radius) ** 2


KINDS_OF_SPECTRA = ("real", "repeated", "clustered", "defective", "nearly", "turning", "mixed")


def attentions(rng, m, kind):
    """m row-stochastic A > 0 on 5 tokens in exact floats, and spec(A) without one copy of 1.

    A = 1 pi^T + E C F with F = [I, -1], E = [I; 0] - 1 pi'^T (pi' = pi without its last entry):
    F E = I, F 1 = 0 and pi^T E = 0, so that spec(A) is 1 and spec(C), Jordan blocks and all.
    """
    C, spectra = chosen(rng, m, kind)
    # A power of two under which every entry stays below 1/32.
    scale = 2.0 ** -np.ceil(np.log2(256 * np.abs(C).max(axis=(1, 2))))
    C, spectra = C * scale[:, None, None], spectra * scale[:, None]
    pi = np.array([4, 3, 3, 2, 4]) / 16
    E = np.vstack([np.eye(4), np.zeros((1, 4))]) - np.outer(np.ones(5), pi[:4])
    F = np.hstack([np.eye(4), -np.ones((4, 1))])
    A = pi + E @ C @ F
    assert (A > 0).all() and (A.sum(axis=-1) == 1).all()
    for each in A[:3]:
        assert all(sum(map(Fraction, row)) == 1 for row in each)
    return A, spectra


@pytest.mark.parametrize("kind", KINDS_OF_SPECTRA)
def test_chosen_spectra_of_attention_are_contained(kind):
    rng = np.random.default_rng([11, KINDS_OF_SPECTRA.index(kind)])
    A, spectra = attentions(rng, 600, kind)
    found = attention_discs_all(A)
    proved = [(d, v) for d, v in zip(found, spectra, strict=True) if isinstance(d, Discs)]
    assert all(holds(discs, values) for discs, values in proved)
    assert len(proved) >= 60


def squared(h, a):
    """|1 + h a|^2 of exact complex floats, as a fraction."""
    (x, y), (u, v) = ((Fraction(z.real), Fraction(z.imag)) for z in (h, a))
    return (1 + x * u - y * v) ** 2 + (x * v + y * u) ** 2


def truth(a_values, h_values):
    consensus = max(squared(h, 1 + 0j) for h in h_values)
    quotient = max(squared(h, a) for h in h_values for a in a_values)
    word = {True: "SMOOTHING", False: "NON_SMOOTHING"}[consensus > quotient]
    return ("TIE" if consensus == quotient else word), consensus, quotient


@pytest.mark.parametrize("kind", KINDS_OF_SPECTRA)
def test_certified_verdicts_on_chosen_spectra_are_true(kind):
    rng = np.random.default_rng([12, KINDS_OF_SPECTRA.index(kind)])
    A, a_spectra = attentions(rng, 400, kind)
    H, h_spectra = chosen(rng, 400, str(rng.permutation(KINDS_OF_SPECTRA)[0]))
    decided = 0
    for attention, value, a, h in zip(
        attention_discs_all(A), enclose_all(H), a_spectra, h_spectra, strict=True
    ):
        found = certify_spectra(attention, value)
        word, consensus, quotient = truth(a, h)
        assert found.verdict in (word, "UNDECIDED")
        decided += found.verdict == word
        if found.consensus is not None and found.quotient is not None:
            for radius, exact in ((found.consensus, consensus), (found.quotient, quotient)):
                assert Fraction(radius.low) ** 2 <= exact <= Fraction(radius.high) ** 2
            low, high = found.margin
            assert consensus >= quotient or low < 0
            assert consensus <= quotient or high > 0
    assert decided >= 40


# ------------------------------------------------------------------------------------ near-ties


@cache
def near_ties(count):
    """(A, h, true verdict): 2 x 2 attention in sixteenths, h a float at 1e-2 ... 1e-16 from the
    threshold -2/(1+a), or beside it."""
    rng = np.random.default_rng(13)
    found = []
    for _ in range(count):
        p, q = (int(k) for k in rng.integers(1, 16, size=2))
        A = np.array([[16 - p, p], [q, 16 - q]]) / 16
        a = 1 - Fraction(p + q, 16)
        edge = threshold(a)
        size = Fraction(int(rng.integers(0, 100)), 10 ** int(rng.integers(2, 17)))
        h = float(edge + rng.choice([-1, 1]) * size)
        found.append((A, h, real_verdict(Fraction(h), Fraction(h), a)))
    return found


def test_near_ties_are_never_certified_wrongly_by_float_discs():
    A, h, truths = zip(*near_ties(4000), strict=True)
    attention, value = (attention_discs_all(np.stack(A)), enclose_all(np.array(h)[:, None, None]))
    found = [certify_spectra(a, v).verdict for a, v in zip(attention, value, strict=True)]
    assert all(f in (true, "UNDECIDED") for f, true in zip(found, truths, strict=True))
    assert found.count("UNDECIDED") < 2000


def test_near_ties_are_all_decided_by_the_stages():
    for A, h, true in near_ties(4000)[:400]:
        assert decide(Layer.of(A.tolist(), [[h]]))[0].verdict == true


def test_near_ties_of_a_softmax_are_decided_in_balls():
    """The threshold of a softmax is no float: one side of it, at any distance."""
    rng = np.random.default_rng(14)
    stages = set()
    for _ in range(300):
        s, t = rng.uniform(-3, 3, size=2)
        with at_precision(300):
            x, y = (1 / (1 + (-flint.arb(float(z))).exp()) for z in (s, t))
            edge = -2 / (x + y)
            h = float(edge.mid()) * (1 + rng.choice([-1, 1]) * 10.0 ** -rng.integers(2, 18))
            true = "NON_SMOOTHING" if flint.arb(h) > edge else "SMOOTHING"
        found, _ = decide(Layer.of(logits=[[s, 0.0], [0.0, t]], H=[[h]]))
        assert found.verdict == true
        stages.add(found.method.split(" ")[0])
    assert stages == {"float64", "balls:"}


def test_failures_give_their_reasons():
    nan, jordan = np.full((2, 2), np.nan), np.array([[1.0, 1.0], [0.0, 1.0]])
    huge = np.array([[1e308, 1e308], [-1e308, 1e308]])
    good, *rest = enclose_all(np.stack([np.diag([1.0, 2.0]), nan, jordan, huge]))
    assert isinstance(good, Discs) and set(good.component) == {0, 1}
    assert all(isinstance(each, Failure | Discs) for each in rest)
    assert isinstance(rest[0], Failure) and "not finite" in rest[0].reason
    assert isinstance(rest[1], Failure) or len(set(rest[1].component)) == 1
    # Of a spectrum 1e308 (1 +- i) every bound is a number, too.
    assert isinstance(rest[2], Discs) and (rest[2].radii < 1e294).all()
