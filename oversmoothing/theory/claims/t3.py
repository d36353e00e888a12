"""What the claims of t3.md execute."""

from fractions import Fraction
from itertools import pairwise

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.claims.lemmas import squared_frobenius
from oversmoothing.theory.depth.ratios import exact_state
from oversmoothing.theory.numbers.exact import to_flint
from oversmoothing.theory.proofs.checks import symbolic
from oversmoothing.theory.proofs.kit import Matrix, draw, exact, given, search, spectra, verdict
from oversmoothing.theory.verdict.by_fractions import Mode, compare, exact_dominance
from oversmoothing.theory.verdict.formulas import real_verdict


# T3a
@given.condition("every eigenvalue of H considered is non-zero", given.case(H="0"))
def nonsingular(instance: given.Instance) -> bool:
    return not any(value.is_zero for value in spectra.spectrum(instance.H))


# T3b
@search(
    draw.circulant_attention(), draw.gaussian_points(3), st.integers(-2, 2).map(Fraction), at="A"
)
def matrix_law(
    A: Matrix, a_values: list[spectra.Gaussian], x: Fraction, y: Fraction, s: Fraction
) -> None:
    # [[x, -y], [y, x]] in the basis (1, 0), (s, 1).
    H = [[x + s * y, -y * (1 + s * s)], [y, x - s * y]]
    expected = spectra.by_moduli([(x, y), (x, -y)], a_values)
    assert verdict(A=A, H=H).verdict == expected


# T3c
@search(
    draw.circulant_attention(),
    draw.lists(draw.gaussian_points(1).filter(lambda h: spectra.in_universal_disc(*h)), 1, 2),
    at=lambda A, _, points: (A, _turning(*points[0])),
)
def matrix_law_c(
    A: Matrix, a_values: list[spectra.Gaussian], points: list[spectra.Gaussian]
) -> None:
    values = [(x, s * y) for x, y in points for s in (1, -1)]
    assert spectra.by_moduli(values, a_values) == "NON_SMOOTHING"
    assert verdict(A=A, H=_turning(*points[0])).verdict == "NON_SMOOTHING"


def _turning(x: Fraction, y: Fraction) -> Matrix:
    """Of the eigenvalues x +- iy."""
    return [[x, -y], [y, x]]


IN_DISC = given.Hypothesis(
    "every eigenvalue of H has |h + 1/2| <= 1/2 and h != 0",
    lambda i: spectra.in_disc(i.H),
    (given.case(H="0"), given.case(), given.case(H="-1/2 -1; 1 -1/2")),
)


# T3d
@search(draw.attention(2, 4), draw.fractions(-1, 0).filter(bool), at="A h")
def matrix_law_d(A: Matrix, h: Fraction) -> None:
    value = spectra.spectrum([[h]])[0]
    for a in spectra.attention_values(A):
        assert compare(Mode(a, value), Mode(None, value))[0] == 1


# T3e
# Circulant of order 4: eigenvalues 1, 0, 1/10 +- 2i/5.
C4 = exact.scaled("1/20", exact.matrix("6 9 4 1; 1 6 9 4; 4 1 6 9; 9 4 1 6"))
_C4_OTHERS = [(Fraction(1, 10), Fraction(2, 5)), (Fraction(1, 10), Fraction(-2, 5))]


def mildest() -> None:
    x, y = Fraction(-1, 2), Fraction(9, 16)
    a = -x / (x * x + y * y)
    assert verdict(A=exact.flat(a, 2), H=[[x, -y], [y, x]]).verdict == "SMOOTHING"


def positive_real_part() -> None:
    a = sp.Rational(-7, 20) - 7 * sp.sqrt(3) / 20 * sp.I
    shift = sp.Matrix(3, 3, lambda i, j: int(j == (i + 1) % 3))
    A = symbolic(exact.C3)
    assert sp.eye(3) / 10 + shift * sp.Rational(4, 5) + shift**2 / 10 == A
    x = sp.symbols("x")
    assert sp.expand(A.charpoly(x).as_expr() - (x - 1) * (x - a) * (x - sp.conjugate(a))) == 0
    h = sp.Rational(1, 5) + sp.Rational(3, 2) * sp.I
    quotient = sp.expand((1 + h * a) * sp.conjugate(1 + h * a))
    consensus = sp.expand((1 + h) * sp.conjugate(1 + h))
    assert consensus == sp.Rational(369, 100)
    assert quotient == sp.Rational(19821, 10000) + 21 * sp.sqrt(3) / 20
    assert quotient > consensus
    assert abs(sp.N(quotient, 20) - sp.Float("3.800753", 20)) < sp.Float("5e-7")
    assert verdict(A=exact.C3, H=exact.matrix("1/5 -3/2; 3/2 1/5")).verdict == "NON_SMOOTHING"


def not_the_smallest() -> None:
    # h = -21/10 with C4: by a_1 = 0, of smallest real part, consensus would win.
    h = Fraction(-21, 10)
    assert real_verdict(h, h, Fraction(0)) == spectra.by_moduli([h], [0]) == "SMOOTHING"
    assert {spectra.squared_modulus(h, a) for a in _C4_OTHERS} == {Fraction(13297, 10000)}
    assert [spectra.squared_modulus(h, a) for a in (0, 1)] == [1, Fraction(121, 100)]
    assert verdict(A=C4, H=[[h]]).verdict == "NON_SMOOTHING"


# T3f
# H has h = -3/2 +- i with the non-orthogonal eigenvectors of a shear; -1/10 beside it.
_H_PAIR = exact.matrix("-1/2 -2 0; 1 -5/2 0; 0 0 -1/10")
_H_NORMAL = exact.matrix("-3/2 -1 0; 1 -3/2 0; 0 0 -1/10")
# A = 1 pi^T + N: pi = (1/2, 1/4, 1/4), N1 = 0, pi^T N = 0, spec N = {(1 +- 3i)/16, 0}; not normal.
_S = sp.Matrix([[1, 1, 0], [1, -1, 1], [1, -1, -1]])


def _second_symmetric(X: Matrix) -> Fraction:
    """sum_{i<j} sigma_i^2 sigma_j^2, from the traces of the Gram matrix and of its square."""
    gram = exact.product(exact.transposed(X), X)
    return (squared_frobenius(X) ** 2 - squared_frobenius(gram)) / 2


def _skew_attention() -> Matrix:
    block = sp.diag(1, sp.Matrix([[1, -3], [3, 1]]) / 16)
    A = _S * block * _S.inv()
    return [[Fraction(int(A[i, j].p), int(A[i, j].q)) for j in range(3)] for i in range(3)]


def rank_two_profiles() -> None:
    # X_0 = Re(v w^T) in the dominant subspace: X_L has rank 2, sigma_1 sigma_2 = c |mu|^(2L).
    A, H = _skew_attention(), _H_PAIR
    assert all(min(row) > 0 and sum(row) == 1 for row in A)
    # v = Re/Im columns 2, 3 of _S; w = (1, 0) + i... from (H - h) w = 0: w = (2, 1 - i, 0).
    X0 = exact.from_integers([2 * a, a + b, 0] for _, a, b in _S.tolist())
    start = _second_symmetric(X0)
    assert start > 0
    states = exact_state(A, H, X0, [0, 1, 2, 3, 8, 30])
    # h = -3/2 + i and a = (1 - 3i)/16: |mu|^2, the determinant of I + H (x) A on that plane.
    h, a = (Fraction(-3, 2), Fraction(1)), (Fraction(1, 16), Fraction(-3, 16))
    size = spectra.squared_modulus(h, a)
    ratios = []
    for depth, X in states.items():
        assert to_flint(X).rank() == 2
        assert _second_symmetric(X) == start * size ** (2 * depth)
        ratios.append(squared_frobenius(X) ** 2 / _second_symmetric(X))
    assert len(set(ratios)) == len(ratios), "both not normal: sigma_2/sigma_1 oscillates"


def normal_is_constant() -> None:
    # H normal (w^T w = 0): sigma_2/sigma_1 of the same plane is constant.
    X0 = exact.from_integers([a, b, 0] for _, a, b in _S.tolist())
    states = exact_state(_skew_attention(), _H_NORMAL, X0, [0, 1, 2, 3, 8, 30])
    assert len({squared_frobenius(X) ** 2 / _second_symmetric(X) for X in states.values()}) == 1


def generic_start() -> None:
    # From a generic X_0 the exact dominant pairs are (h, a), Im h Im a < 0, and the rank is 2.
    H = _H_NORMAL
    dominance = exact_dominance(C4, H)
    assert dominance.comparison == -1 and len(dominance.quotient) == 2
    for mode in dominance.quotient:
        assert mode.attention is not None
        a, h = complex(mode.attention.ball(64).mid()), complex(mode.value.ball(64).mid())
        assert a.imag * h.imag < 0
    X0 = exact.matrix("1 2 1; 3 5 -1; -1 4 2; 2 -3 1")
    result = verdict(A=C4, H=H, X0=X0)
    assert result.limit_rank == 2
    X = exact.layer(C4, H, X0, 160)
    # sigma_2^2/sigma_1^2 >= e_2/||X||^4 stays away from 0.
    assert _second_symmetric(X) / squared_frobenius(X) ** 2 > Fraction(1, 100)


def real_feature() -> None:
    A, H = _skew_attention(), [[Fraction(-1)]]
    X0 = exact.matrix("1; 2; 4")
    states = exact_state(A, H, X0, list(range(40, 60)))
    ratios = [exact.squared_ratio(X) for X in states.values()]
    # n delta^2 = n |pi|^2 - 1 = 1/8 for pi = (1/2, 1/4, 1/4).
    floor = 1 / Fraction(1, 8)
    assert min(ratios) > floor * (1 - Fraction(1, 10**6))
    rises = [b > a for a, b in pairwise(ratios)]
    assert True in rises and False in rises


def real_token() -> None:
    H = exact.matrix("1/2 -1; 1 1/2")
    assert verdict(A=exact.AA, H=H).verdict == "SMOOTHING"
    first, second = (exact.layer(exact.AA, H, exact.matrix("1 2; 3 5"), L) for L in (80, 81))
    for X in (first, second):
        assert _second_symmetric(X) < squared_frobenius(X) ** 2 / 10**12
        assert exact.dot(*X) > 0
    turn = first[0][0] * second[0][1] - first[0][1] * second[0][0]
    assert turn**2 * 100 > squared_frobenius(first) * squared_frobenius(second)
    # a = 0: the differences stand still, whatever h is.
    H = exact.matrix("-1/2 -1/2; 1/2 -1/2")
    assert one_pair.holds(given.Instance(A=exact.J2, H=H))
    for L in (0, 1, 7):
        x, y = exact.layer(exact.J2, H, exact.matrix("1 2; 3 5"), L)
        assert [x[0] - y[0], x[1] - y[1]] == [-2, -3]


@given.condition(
    "one dominant pair up to conjugation, of simple eigenvalues", given.case(H="-1/2 0; 0 -1/2")
)
def one_pair(instance: given.Instance) -> bool:
    modes = exact_dominance(instance.A, instance.H).dominant()
    factors = [value.factor for m in modes for value in (m.value, m.attention) if value is not None]
    simple = all(factor.multiplicity == 1 for factor in factors)
    return simple and len({mode.structural for mode in modes}) == 1


@search(draw.attention(3, 4), draw.with_complex_pair(), at="A H")
def winner_law(A: Matrix, H: Matrix, value: complex) -> None:
    for mode in exact_dominance(A, H).quotient:
        assert mode.attention is not None
        if mode.value.is_real or mode.attention.is_real:
            continue
        a, h = mode.attention.ball(64).imag, mode.value.ball(64).imag
        assert a * h < 0
