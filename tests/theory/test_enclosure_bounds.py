"""T10: roundings stay within the bounds that are proved of them; softmax in floats and in balls."""

from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given, strategies as st

from oversmoothing.theory.layer.attention import (
    EXP_ERROR,
    bounded_exp,
    softmax_balls,
    softmax_within,
)
from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers.exact import from_flint
from oversmoothing.theory.numbers.rounding import (
    TINY,
    UNIT,
    at_precision,
    gamma,
    inflated,
    upper_product,
    upper_sum,
)
from oversmoothing.theory.spectra import layer_discs
from oversmoothing.theory.spectra.discs import components
from oversmoothing.theory.verdict import stages
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tables import fractions_of, rational

U = Fraction(1, 2**53)
SMALL = Fraction(1, 2**1074)
KINDS = ("plain", "graded", "cancelling", "subnormal", "huge", "integers")


def exact_gamma(k: int) -> Fraction:
    return k * U / (1 - k * U)


def exactly_inflated(x: Fraction, operations: int) -> Fraction:
    return x * (1 + 2 * exact_gamma(operations + 2)) + operations * SMALL


# --- the elementary bounds ---


@given(st.integers(1, 2**40))
def test_gamma_is_its_quotient_rounded_up(k):
    assert exact_gamma(k) <= Fraction(gamma(k)) <= exact_gamma(k) * (1 + 16 * U)


def test_gamma_means_nothing_from_half_on():
    assert gamma(2**52 - 1) < 1.01
    refuses("no useful rounding bound", gamma, 2**52, error=ValueError)


@given(st.integers(0, 60), st.floats(2.0**-500, 2.0**500))
def test_a_bound_is_inflated_by_twice_the_roundings_that_made_it(operations, x):
    found = Fraction(float(inflated(np.array(x), operations)))
    assert abs(found - exactly_inflated(Fraction(x), operations)) <= 2 * U * found
    assert float(inflated(np.array(0.0), operations)) == operations * TINY


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


def exact_product(P, Q):
    return np.array(from_flint(rational(P.tolist()) * rational(Q.tolist())))


@pytest.mark.parametrize("kind", KINDS)
def test_products_stay_within_their_bounds_exactly(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(60):
        rows, k, columns = (int(x) for x in rng.integers(1, (5, 60, 5)))
        P, Q = draw_factors(rng, kind, rows, k, columns)
        upper = fractions_of(upper_product(np.abs(P), np.abs(Q)))
        off = np.abs(fractions_of(P @ Q) - exact_product(P, Q))
        assert (off <= Fraction(gamma(k)) * upper + k * Fraction(TINY)).all()
        assert (exact_product(np.abs(P), np.abs(Q)) <= upper).all()
        exact = fractions_of(np.abs(P)).sum(axis=1)
        assert (fractions_of(upper_sum(np.abs(P))) >= exact).all()
    # Of a stack too as many terms count as are summed.
    assert (upper_sum(np.zeros((9, 2, 5))) == 5 * TINY).all()


def test_the_exponential_is_within_its_error():
    rng = np.random.default_rng(2)
    drawn = rng.uniform(0, 1, 1500), rng.uniform(0, 760, 2500), 10.0 ** rng.uniform(-320, 2.9, 1000)
    halves = np.log(2) * (np.arange(800) + 0.5)
    t = -np.concatenate([*drawn, halves, [0.0, 800.0, 745.1, 745.2, 744.4]])
    with at_precision(200):
        for x, value in zip(t, bounded_exp(t), strict=True):
            truth = flint.arb(float(x)).exp()
            error = abs(truth - flint.arb(float(value)))
            assert error < flint.arb(EXP_ERROR) * truth + flint.arb(TINY)
    assert bounded_exp(np.zeros(1))[0] == 1.0


# --- the bounds of an enclosure ---


@pytest.mark.parametrize("scale", [1.0, -1.0, 2.0**300])
def test_discs_that_touch_within_rounding_are_joined(scale):
    """|1 - (1 + t)| <= 8 u + (r + s)(1 + 8 u)."""
    apart = ((10 * UNIT, 0.0), (0.5 + 32 * UNIT, 0.25))
    for gap, radius in ((2 * UNIT, 0.0), (8 * UNIT, 0.0), (0.5, 0.25), *apart):
        centres = scale * np.array([1.0, 1.0 + gap])
        label = components(centres + 0j, np.full(2, radius * abs(scale)))
        assert (label[0] == label[1]) == ((gap, radius) not in apart)


def test_T1h_a_weight_that_underflows_is_not_taken_for_a_zero():
    """The diagonal of a causal A is known to n + 2 roundings, a quotient to eleven at least."""
    causal, near = (
        layer_discs.attention_discs(np.array([[2.0, weight], [1.0, 1.0]]))
        for weight in (0.0, 5e-324)
    )
    assert causal.radii[0] < gamma(5) / 2 and near.radii[0] > gamma(11) / 2


# --- softmax ---


@cases(
    "size, moved",
    *((size, moved) for size in (0.5, 5.0, 60.0, 900.0) for moved in (0, 1)),
    (1e292, 0),
    (1e292, 1),
)
def test_T10_a_softmax_within_holds_those_of_all_logits_that_round_to_the_same(size, moved):
    """In balls of 200 bits, the logits moved by half a unit in the last place and masks kept."""
    rng = np.random.default_rng(5)
    logits = np.round(rng.standard_normal((5, 5)) * size, 3)
    logits[0, 3] = -np.inf
    A, error = softmax_within(logits, UNIT * moved)
    assert A[0, 3] == error[0, 3] == 0 and (error <= (1e-9 if size < 1e3 else 1)).all()
    with at_precision(200):
        for _ in range(20):
            ends = moved * rng.integers(-1, 2, logits.shape)
            for row, end, its, off in zip(logits, ends, A, error, strict=True):
                weights = [
                    (flint.arb(float(x)) * (1 + flint.arb(int(e)) / 2**53)).exp()
                    for x, e in zip(row, end, strict=True)
                ]
                total = sum(weights, flint.arb(0))
                for weight, a, width in zip(weights, its, off, strict=True):
                    assert not abs(weight / total - flint.arb(float(a))) > flint.arb(float(width))


def test_T10_a_stack_of_attentions_is_enclosed_as_each_of_it_is():
    logits = np.random.default_rng(3).standard_normal((2, 7, 3, 3))
    logits[..., 0, 2] = -np.inf
    A, error = softmax_within(logits)
    for i, j in np.ndindex(2, 7):
        one, its = softmax_within(logits[i, j])
        assert (A[i, j] == one).all() and (error[i, j] == its).all()
        assert one[0, 2] == its[0, 2] == 0


def test_a_softmax_in_balls_does_not_change_when_a_row_is_shifted():
    base = softmax_balls([[0, 1], [2, None]], 128)
    for shift in (10**4, -(10**4), 10**300):
        moved = softmax_balls([[shift, shift + 1], [shift, None]], 128)
        for x, y in zip(base.entries(), moved.entries(), strict=True):
            assert abs(x - y) < 1e-30


# --- stages ---


@pytest.mark.parametrize(("n", "stage"), [(24, "exact"), (25, "balls")])
def test_T10_a_tie_of_binary64_numbers_is_decided_exactly_up_to_24_tokens(n, stage):
    """Two tokens that look at each other: a = -1, and |1 + i| = |1 - i|."""
    A = np.zeros((n, n))
    A[:, 0] = A[0, 1] = 1.0
    A[0, 0] = 0.0
    found, exact = stages.decide(Layer.of(A.tolist(), [[0.0, -1.0], [1.0, 0.0]]))
    assert found.method.startswith(stage) and (exact is not None) == (stage == "exact")
    assert found.verdict in ("TIE", "UNDECIDED")
    assert found.verdict == "TIE" or stage == "balls"
