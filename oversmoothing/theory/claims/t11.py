"""What the claims of t11.md execute; one room: the chapter."""

import math
from contextlib import suppress
from fractions import Fraction

import flint
import numpy as np
import sympy as sp
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.lemmas import dobrushin, symbolic_matrix, with_state
from oversmoothing.theory.depth.ratios import ratio_of_squares
from oversmoothing.theory.layer.attention import closed_classes, complement_basis
from oversmoothing.theory.layer.layer import softmax
from oversmoothing.theory.numbers.exact import to_flint, to_float
from oversmoothing.theory.numbers.rounding import at_precision, to_ball
from oversmoothing.theory.proofs.kit import Matrix, by, draw, exact, given, is_zero, search, verdict
from oversmoothing.theory.spectra.algebraic import factors
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.by_fractions import exact_dominance
from oversmoothing.theory.verdict.formulas import real_verdict

# T11.1
_ONE = exact.matrix("1")


def trivial() -> None:
    answer = verdict(A=_ONE, H=exact.matrix("1/2"), X0=exact.matrix("3"), depth=[0, 1, 50])
    assert answer.verdict == "TRIVIAL" and answer.rate is None and answer.rho_quotient is None
    assert exact.layer(_ONE, exact.matrix("1/2"), exact.matrix("3")) == exact.matrix("9/2")
    assert [ratio.value for ratio in answer.hfc_lfc.values()] == [0, 0, 0]


def undefined() -> None:
    answer = verdict(A=_ONE, H=exact.matrix("-1"), X0=exact.matrix("3"), depth=[0, 1, 50])
    assert (answer.verdict, answer.verdict_x0) == ("TRIVIAL", "UNDEFINED")
    assert [ratio.value for ratio in answer.hfc_lfc.values()] == [0, None, None]


@search(with_state(st.just(_ONE), draw.value_projections(3)), st.integers(0, 4), at="A H")
def law_1(A: Matrix, H: Matrix, values: list[Fraction], X: Matrix, depth: int) -> None:
    hfc, lfc = exact.squared_norms(exact.layer(A, H, X, depth))
    answer = verdict(A=A, H=H, X0=X, depth=[depth])
    assert hfc == 0
    assert answer.verdict == ("TRIVIAL" if any(X[0]) else "UNDEFINED")
    assert answer.hfc_lfc[depth].value == (0 if lfc else None)


ONE_TOKEN = given.Hypothesis("there is one token", lambda case: len(case.A) == 1, (given.case(),))

# T11.2
_DEPTHS = {2: 2069, 4: 207230, 6: 20723263}


def _rate(h: Fraction, share: Fraction) -> Fraction:
    return (1 + h * (1 - share)) / (1 + h)


def depths() -> None:
    for exponent, depth in _DEPTHS.items():
        with at_precision(256):
            log = to_ball(_rate(Fraction(1, 2), Fraction(1, 10**exponent))).log()
            goal = flint.arb(1000).log()
            assert depth * log < -goal < (depth - 1) * log, exponent
            x = to_ball(Fraction(1, 3) / 10**exponent)
            assert (1 / x - 1) * goal <= depth <= goal / x + 1, exponent


def _flat(most: Fraction) -> st.SearchStrategy[tuple[Matrix, Fraction]]:
    """(1-s) I + s 11^T/n of two to four tokens, and s."""
    shares = draw.fractions(Fraction(1, 12), most)
    return st.builds(lambda n, s: (exact.flat(1 - s, n), s), st.integers(2, 4), shares)


@search(
    with_state(_flat(Fraction(1)), 2),
    draw.fractions(Fraction(1, 12), 3),
    st.integers(0, 6),
    at="A h",
)
def law_2(A: Matrix, share: Fraction, X: Matrix, h: Fraction, depth: int) -> None:
    assert dobrushin(A) == 1 - share
    hfc, lfc = exact.squared_norms(X)
    assume(lfc != 0)
    moved = exact.squared_norms(exact.layer(A, exact.diagonal([h, h]), X, depth))
    assert moved[0] * lfc == _rate(h, share) ** (2 * depth) * hfc * moved[1]
    assert verdict(A=A, H=[[h]]).verdict == "SMOOTHING"


UNIFORM_MIX = given.Hypothesis(
    "A = (1-s) I + s 11^T/n with 0 < s <= 1",
    lambda case: (
        case.A[0][-1] > 0 and exact.flat(1 - case.A[0][-1] * len(case.A), len(case.A)) == case.A
    ),
    (given.case("1 0; 0 1"), given.case("1/2 1/2; 1/4 3/4")),
)
POSITIVE_MULTIPLE = given.Hypothesis(
    "H = h I with h > 0",
    lambda case: case.H[0][0] > 0 and exact.identity(len(case.H), case.H[0][0]) == case.H,
    (given.case(H="-1"), given.case(H="1 0; 0 2")),
)

# T11.3
_A = exact.flat("2/5", 4)


def golden() -> None:
    # A = .4 I + .15 11^T, H = -1/2 I_5: limit rank 3 = min(n - 1, d); distinct h: rank 1.
    assert _A[0][:2] == [Fraction(11, 20), Fraction(3, 20)]
    five = verdict(A=_A, H=exact.diagonal(["-1/2"] * 5))
    two = verdict(A=_A, H=exact.diagonal("-1/2 -1/2"))
    distinct = verdict(A=_A, H=exact.diagonal("-1/2 -2/5"))
    assert {v.verdict for v in (five, two, distinct)} == {"NON_SMOOTHING"}
    assert (five.limit_rank, two.limit_rank, distinct.limit_rank) == (3, 2, 1)
    assert verdict(A=_A, H=exact.diagonal("1/2 1/2")).limit_rank == 1


def balls_refuse() -> None:
    # Simple eigenvalues cannot be isolated where they repeat; asked for multiple ones, yes.
    with at_precision(128):
        matrix = flint.acb_mat(to_flint(_A))
        with suppress(ValueError):
            matrix.eig()
            raise AssertionError("balls separated a repeated eigenvalue")
        values = matrix.eig(multiple=True)
        near = to_ball(Fraction(2, 5))
        assert sum(bool(v.real.overlaps(near)) for v in values) == 3


@given.condition("an eigenvalue of A or of H repeats", given.case())
def repeats(instance: given.Instance) -> bool:
    return any(f.multiplicity > 1 for M in (instance.A, instance.H) for f in factors(M))


@search(
    with_state(_flat(Fraction(11, 12)), st.integers(1, 4)),
    draw.fractions(-2, 2),
    st.integers(0, 5),
    at=lambda A, share, X, h, _: (A, exact.identity(len(X[0]), h), X),
)
def law_3(A: Matrix, share: Fraction, X: Matrix, h: Fraction, depth: int) -> None:
    """P X_L = (1 + h a)^L P X_0: HFC keeps its rank for ever, unless 1 + h a = 0."""
    moved = exact.layer(A, exact.identity(len(X[0]), h), X, depth)
    factor = (1 + h * (1 - share)) ** depth
    assert exact.centred(moved) == exact.scaled(factor, exact.centred(X))
    if factor != 0:
        assert to_flint(exact.centred(moved)).rank() == to_flint(exact.centred(X)).rank()


# T11.4
MINUS_IDENTITY = given.Hypothesis(
    "H = -I", lambda case: exact.identity(len(case.H), -1) == case.H, (given.case(),)
)

# T11.5
_DEPTH = 10**6
# log(1/3) + 10^6 log(3/4) = -287683.171064069595549, rounded once.
_PREDICTED = -287683.1710640696


def naive_layers(h: float, depth: int) -> list[Array]:
    """From (1, 2) the states x + h AA x at layers 0 ... depth, with nothing split off."""
    states = [np.array([1.0, 2.0])]
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(depth):
            states.append(states[-1] + h * (to_float(exact.AA) @ states[-1]))
    return states


def closed_form() -> None:
    X = exact.layer(exact.AA, exact.matrix("1"), exact.matrix("1; 2"), 9)
    assert exact.squared_ratio(X) == Fraction(1, 9) * Fraction(3, 4) ** 18
    with at_precision(192):
        log = flint.arb(flint.fmpq(3, 4)).log() * _DEPTH - flint.arb(3).log()
        assert float(log.mid()) == _PREDICTED


def naive() -> None:
    # x ~ 3/2 2^L: finite at layer 1023, infinite from 1024 on, and then inf - inf.
    states = naive_layers(1.0, 1200)
    finite = [bool(np.isfinite(x).all()) for x in states]
    assert finite.index(False) == 1024 and not any(finite[1024:])


def deep() -> None:
    answer = verdict(A=exact.AA, H=exact.matrix("1"), X0=exact.matrix("1; 2"), depth=[_DEPTH])
    assert answer.verdict == "SMOOTHING"
    assert answer.hfc_lfc[_DEPTH].log == _PREDICTED
    assert answer.hfc_lfc[_DEPTH].value == 0.0  # beyond a float, and said so by the logarithm


@given.condition("the diagonal of H is positive", given.case(H="-1"))
def grows(instance: given.Instance) -> bool:
    return all(row[j] > 0 for j, row in enumerate(instance.H))


# T11.6
def naive_6() -> None:
    # (3/4)^L leaves the normal range before layer 2500; the logarithm of the ratio goes on.
    states = naive_layers(-0.5, 2500)
    assert np.abs(states[-1]).max() < np.finfo(np.float64).tiny
    answer = verdict(A=exact.AA, H=exact.matrix("-1/2"), X0=exact.matrix("1; 2"), depth=[10**6])
    expected = 10**6 * math.log(1.5) - math.log(3)
    log = answer.hfc_lfc[10**6].log
    # math.log rounds once, 10^6 times it once more.
    assert log is not None and abs(log - expected) <= 4 * 2.0**-52 * expected


def identity_is_the_exception() -> None:
    # A = I (or n = 1) and H = -I + nilpotent: M is nilpotent.
    H = exact.matrix("-1 1; 0 -1")
    M = exact.plus_identity(exact.kronecker(H, exact.diagonal("1 1")))
    assert not is_zero(M) and is_zero(exact.power(M, 2))


def special() -> None:
    # X_0 = (1, -1), h = -2, a = 1/2: X_1 = 0, and only multiples of X_0 do that.
    M = exact.plus_identity(exact.kronecker(exact.matrix("-2"), exact.AA))
    assert exact.matrix("-1/2 -1/2; -1/2 -1/2") == M
    answer = verdict(A=exact.AA, H=exact.matrix("-2"), X0=exact.matrix("1; -1"), depth=[1])
    assert answer.verdict_x0 == "UNDEFINED" and answer.hfc_lfc[1].value is None


_FALLING = st.tuples(st.sampled_from([*map(Fraction, ("-1", "-2", "-3/2"))]), st.integers(1, 2))


@search(draw.attention(2, 3), draw.lists(_FALLING, 1, 2).flatmap(draw.with_jordan_blocks), at="A H")
def law_6(A: Matrix, H: Matrix) -> None:
    assert not is_zero(exact.power(exact.plus_identity(exact.kronecker(H, A)), len(A) * len(H)))


# T11.7
# Small states, zero and zero-mean ones among them.
_SMALL = draw.attention(1, 3).flatmap(
    lambda A: st.tuples(
        st.just(A), draw.matrices(st.integers(-1, 1), len(A), 1).map(exact.from_integers)
    )
)


@search(_SMALL, draw.fractions(-2, 2, 3), at="A h X")
def law_7(A: Matrix, X: Matrix, h: Fraction) -> None:
    H = [[h]]
    answer = verdict(A=A, H=H, X0=X, depth=[0, 2])
    assert (answer.verdict == "UNDEFINED") == (not any(map(any, X)))
    for depth in (0, 2):
        hfc, lfc = exact.squared_norms(exact.layer(A, H, X, depth))
        value = answer.hfc_lfc[depth].value
        assert value == ratio_of_squares(hfc, lfc).value
        assert (value is None) == (hfc == lfc == 0)
        assert (value == math.inf) == (lfc == 0 < hfc)


SOMETHING_VANISHES = given.Hypothesis(
    "X_0 is zero, has a zero row, or has mean zero",
    lambda case: case.X0 is not None and not (all(map(any, case.X0)) and given.has_low(case.X0)),
    (given.case(), given.case(X0="1; 2")),
)


# T11.8
def golden_8() -> None:
    # All h in [-1, 0], generic verdict TIE, and this X_0 smooths: HFC/LFC = 2^-L.
    A, H, X = exact.AA, exact.diagonal("0 -1"), exact.matrix("1 1; 1 -1")
    answer = verdict(A=A, H=H, X0=X, depth=[1, 2, 10])
    assert (answer.verdict, answer.verdict_x0, answer.tends_to) == ("TIE", "SMOOTHING", "zero")
    for depth in (1, 2, 10):
        assert answer.hfc_lfc[depth].squared == Fraction(1, 4**depth)


@st.composite
def _cases_8(pick: st.DrawFn) -> tuple[Matrix, Fraction, list[Fraction], list[int], list[int]]:
    """A with a known mode v = (p, -q), H diagonal, X_0 = 1 c^T + v y^T with drawn zeros."""
    A, a = pick(draw.two_token_attention())
    values = pick(draw.lists(draw.fractions(-3, 2, 4), 1, 2))
    entries = draw.lists(st.sampled_from([0, 0, 0, 0, 1, -1, 2, -2]), len(values))
    return A, a, values, pick(entries), pick(entries)


def _state(A: Matrix, c: list[int], y: list[int]) -> Matrix:
    return [[x + v * z for x, z in zip(c, y, strict=True)] for v in (A[0][1], -A[1][0])]


@given.condition("X_0 is given and lacks the dominant modes", given.case(), given.case(X0="1; 3"))
def misses(instance: given.Instance) -> bool:
    X = instance.X0
    if X is None or not any(map(any, X)):
        return False
    content = given.content(instance.A, instance.H, X)
    generic = exact_dominance(instance.A, instance.H)
    tops = [x for x in content.radii if x is not None]
    largest = max(float(generic.radius(side).mid()) for side in (True, False))
    return content.vanishes or content.comparison != generic.comparison or max(tops) < largest


@search(_cases_8(), at=lambda A, a, values, c, y: (A, exact.diagonal(values), _state(A, c, y)))
def law_8(A: Matrix, a: Fraction, values: list[Fraction], c: list[int], y: list[int]) -> None:
    X = _state(A, c, y)
    consensus = [abs(1 + h) for h, x in zip(values, c, strict=True) if x]
    quotient = [abs(1 + h * a) for h, z in zip(values, y, strict=True) if z]
    answer = verdict(A=A, H=exact.diagonal(values), X0=X, depth=[6])
    if not any(consensus) and not any(quotient):
        expected = "UNDEFINED"
    elif not any(y):
        expected = "TRIVIAL"
    elif not consensus or max(quotient) > max(consensus):
        expected = "NON_SMOOTHING"
    else:
        expected = "TIE" if max(quotient) == max(consensus) else "SMOOTHING"
    assert answer.verdict_x0 == expected
    hfc, lfc = exact.squared_norms(exact.layer(A, exact.diagonal(values), X, 6))
    assert (answer.hfc_lfc[6].squared or 0) == (hfc / lfc if lfc else 0)


# T11.9
# A_ij v_i/v_j, v = (1, 1 + e), has the Perron vector v: HFC/LFC -> e/(2 + e), not 0.
_E = Fraction(1, 2**24)
_ROUNDED = exact.product(exact.diagonal([1, 1 + _E]), exact.AA, exact.diagonal([1, 1 / (1 + _E)]))


def exact_saturation() -> None:
    assert sum(_ROUNDED[0]) != sum(_ROUNDED[1])
    assert all(abs(sum(row, Fraction(0)) - 1) <= _E for row in _ROUNDED)
    H, X = exact.matrix("1/2"), exact.matrix("1; 2")
    states = (exact.layer(A, H, X, 200) for A in (_ROUNDED, exact.AA))
    saturated, falls = map(exact.squared_ratio, states)
    floor = (_E / (2 + _E)) ** 2
    # The other mode has decayed by (5/6)^200 < 10^-15 of its start 1/3.
    assert abs(saturated / floor - 1) < Fraction(1, 10**7)
    assert falls == Fraction(1, 9) * Fraction(5, 6) ** 400 < floor / 10**16


def first_order() -> list[sp.Expr]:
    free, G = symbolic_matrix(3, 2, "a"), symbolic_matrix(3, 3, "g")
    z, lam = symbolic_matrix(3, 1, "z"), sp.Symbol("l")
    one, e = sp.ones(3, 1), sp.Symbol("e")
    # Rows that sum to 1, and an orthonormal basis of the vectors orthogonal to 1.
    A = sp.Matrix.hstack(free, one - free * sp.ones(2, 1))
    Q = sp.Matrix.hstack(*sp.GramSchmidt([sp.Matrix([1, -1, 0]), sp.Matrix([1, 1, -2])], True))
    whole = (A + e * G) * (one + e * z) - (1 + e * lam) * (one + e * z)
    order = whole.applyfunc(lambda x: sp.expand(x).coeff(e, 1))
    B = Q.T * A * Q
    claimed = Q.T * G * one - (sp.eye(2) - B) * Q.T * z
    return [sp.simplify(sp.expand(x)) for x in Q.T * order - claimed]


def measure_9(effort: by.Effort) -> by.Measurements:
    """Iterating X with A rounded to single precision: saturation at ||Pv||/(sqrt n |mean v|)."""
    for n in (4, 8, 16):
        weights = np.random.default_rng(effort.seed + n).uniform(0.5, 1.5, size=(n, n))
        A = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32).astype(np.float64)
        x = np.random.default_rng(n).standard_normal(n) + 1
        for _ in range(300):
            x = x + 0.5 * (A @ x)
            x = x / np.abs(x).max()
        # Q^T (A - 1 mean) 1 = (I - B) Q^T z: the row sums are differences of 53-bit numbers.
        Q = complement_basis(n)
        excess = Q.T @ np.array([math.fsum([*row, -1.0]) for row in A])
        predicted = np.linalg.norm(np.linalg.solve(np.eye(n - 1) - Q.T @ A @ Q, excess))
        measured = np.linalg.norm(x - x.mean()) / (np.sqrt(n) * abs(x.mean()))
        # Rounding of float64 saturates at about n eps by the same law, and the second order is
        # 2^-24 of the first.
        allowed = 8 * n * 2.0**-52 + float(predicted) / np.sqrt(n) * n * 2.0**-23
        predicted_ratio = float(predicted / np.sqrt(n))
        yield by.Measurement(f"saturation, n = {n}", predicted_ratio, float(measured), allowed)


def no_leak() -> None:
    # The same rounded entries, used through B' = A_11 - A_21 and c: no saturation.
    rate = (1 + (_ROUNDED[0][0] - _ROUNDED[1][0]) / 2) / Fraction(3, 2)
    assert Fraction(1, 3) * rate**200 < _E / (2 + _E) / 10**8


# T11.10
def masked() -> None:
    A = softmax(np.array([[0.0, -math.inf], [1.0, 2.0]]))
    assert A[0].tolist() == [1.0, 0.0]
    assert verdict(A=A, H=[[0.5]]).verdict == "SMOOTHING"
    assert verdict(A=A, H=[[-0.5]]).verdict == "NON_SMOOTHING"


def nothing_left() -> None:
    with np.errstate(invalid="ignore"):
        A = softmax(np.array([[-math.inf, -math.inf], [1.0, 2.0]]))
    refused = 0
    for bad in (A, [[0, 0], ["1/2", "1/2"]]):
        try:
            verdict(A=bad, H=[[1]])
        except InputError:
            refused += 1
    assert refused == 2, "a row without weights passed as attention"


@search(draw.causal_attention(), draw.fractions(-4, 2), at="A h")
def law_10(A: Matrix, h: Fraction) -> None:
    smallest = min(A[i][i] for i in range(1, len(A)))
    assert verdict(A=A, H=[[h]]).verdict == real_verdict(h, h, smallest)


@search(draw.attention(1, 4, zeros=True), at=given.of_attention)
def masks_law(A: Matrix) -> None:
    """Any mask that leaves each row an entry: k closed classes, k - 1 further eigenvalues 1."""
    classes = len(closed_classes(to_float(A)))
    answer = verdict(A=A, H=[["1/2"]])
    assert answer.attention is not None
    ones = int(np.count_nonzero(answer.attention.exact & (answer.attention.values == 1)))
    assert ones == classes - 1 or len(A) == 1
    if classes > 1:
        assert answer.verdict != "SMOOTHING"
