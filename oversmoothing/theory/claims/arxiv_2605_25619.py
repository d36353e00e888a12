"""What the claims of arxiv_2605_25619.md execute."""

from fractions import Fraction

import sympy as sp
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.lemmas import with_state
from oversmoothing.theory.claims.t8 import attention, derivative
from oversmoothing.theory.proofs.checks import L, induction, symbolic
from oversmoothing.theory.proofs.kit import Matrix, draw, equal, exact, search, spectra, vanishes


# N-2605.25619-direction
@search(with_state(draw.two_token_attention(), draw.value_projections(3)), at="A H")
def law_direction(A: Matrix, a: Fraction, H: Matrix, kinds: list[Fraction], X: Matrix) -> None:
    """X_L - mu^L 1 c_0 E^T is made of modes of smaller modulus, exactly."""
    top = max(kinds, key=lambda h: abs(1 + h))
    others = [(b, h) for b in (Fraction(1), a) for h in {*kinds} if b != 1 or h != top]
    assert all(abs(1 + b * h) < abs(1 + top) for b, h in others)
    c = [exact.weighted_mean(spectra.stationary(A), X)]
    row = exact.product(c, exact.transposed(spectra.projector(H, top)))
    for depth in (0, 1, 4):
        rest = exact.scaled((1 + top) ** depth, [row[0], row[0]])
        for b, h in others:
            part = spectra.block(A, b, X, H, h)
            rest = exact.plus(rest, exact.scaled((1 + b * h) ** depth, part))
        equal(exact.layer(A, H, X, depth), rest)


# N-2605.25619-modulus
def state(A: Matrix, H: Matrix, X0: Matrix) -> None:
    mean = sp.Matrix([[2 * 2**L, sp.Rational(7, 2) * sp.Rational(-1, 2) ** L]])
    state = sp.ones(2, 1) * mean + sp.Matrix([-1, 1]) * sp.Matrix([[1, sp.Rational(3, 2)]])
    induction(A, H, X0, state)


def direction(H: Matrix) -> None:
    assert sp.limit(5 / (2 * 2**L - 1), L, sp.oo) == 0
    assert abs(H[1][1]) > abs(H[0][0]) and abs(1 + H[1][1]) < abs(1 + H[0][0])


# N-2605.25619-normalised
def residual() -> sp.Matrix:
    u, M, D = sp.Matrix([3, 4]) / 5, sp.Matrix([[1, 2], [0, 1]]), sp.Matrix([[1, 0], [2, -1]])
    W = (u * u.T + sp.Rational(1, 5) * (sp.eye(2) - u * u.T)).T
    bias = sp.Matrix([[0, sp.log(3)], [sp.log(2), 0]])
    X = sp.ones(2, 1) * u.T

    def layer(Z: sp.Matrix) -> sp.Matrix:
        moved = Z + attention(Z, M, bias) * Z * W
        rows = [moved.row(i) / sp.sqrt(moved.row(i).dot(moved.row(i))) for i in range(2)]
        return sp.Matrix.vstack(*rows)

    A = attention(X, sp.zeros(2), bias)
    return derivative(layer, X, D) - (D + A * D * W) * (sp.eye(2) - u * u.T) / 2


@st.composite
def _eigenpairs(pick: st.DrawFn) -> tuple[Matrix, Fraction, Matrix]:
    """H with a first eigenvalue h and its eigenvector, in fractions."""
    kinds = pick(draw.lists(draw.fractions(-4, 3), 1, 4))
    S, inverse = pick(draw.unimodular(len(kinds)))
    H = exact.product(S, exact.diagonal(kinds), inverse)
    return H, kinds[0], [[row[0]] for row in S]


@search(_eigenpairs(), draw.fractions(-1, 1))
def law_normalised(H: Matrix, h: Fraction, u: Matrix, a: Fraction) -> None:
    """(I - u u^T/|u|^2)(I + a H) has 0 in the place of 1 + a h, and the rest of the spectrum."""
    assume(h != -1)
    size = sum((x * x for (x,) in u), Fraction(0))
    R = exact.plus(exact.identity(len(H)), exact.product(u, exact.transposed(u)), -1 / size)
    G = exact.plus_identity(H, a)
    left = exact.characteristic(exact.product(R, G)) * exact.characteristic([[1 + a * h]])
    equal(left, exact.characteristic(G) * exact.characteristic([[Fraction(0)]]))


# N-2605.25619-steering
@st.composite
def _steered(pick: st.DrawFn) -> tuple[Matrix, Fraction, Matrix, Matrix, Fraction]:
    """F with F u = f u, w with w^T u = 1, and alpha."""
    F, f, u = pick(_eigenpairs())
    w = pick(draw.lists(draw.fractions(-3, 3), len(F)))
    at = sum(x * y for (x,), y in zip(u, w, strict=True))
    assume(at != 0)
    return F, f, u, [[y / at for y in w]], pick(draw.fractions(-5, 5))


@search(_steered())
def law_steering(F: Matrix, f: Fraction, u: Matrix, w: Matrix, alpha: Fraction) -> None:
    """(1) at the eigenvector u, and (2) at a vector that is none: u plus a unit vector."""
    polynomial = exact.characteristic(exact.plus(F, exact.product(u, w), alpha))
    before, after = (exact.characteristic([[x]]) for x in (f, f + alpha))
    equal(polynomial * before, exact.characteristic(F) * after)
    v = [[x + (k == 0)] for k, (x,) in enumerate(u)]
    at = exact.product(w, v)[0][0]
    assume(at != 0)
    row = exact.scaled(1 / at, w)
    wanted = exact.plus(exact.scaled(alpha, v), exact.product(F, v), -1)
    steered = exact.plus(F, exact.product(wanted, row))
    equal(exact.product(steered, v), exact.scaled(alpha, v))
    left = exact.plus(exact.identity(len(F)), exact.product(v, row), -1)
    rest = exact.characteristic(exact.product(left, F)) * exact.characteristic([[alpha]])
    equal(exact.characteristic(steered) * exact.characteristic([[Fraction(0)]]), rest)


# N-2605.25619-steering-any
# F = [[0, 0], [1, 0]], u = w = (1, 0), alpha = 9.


def another(H: Matrix) -> None:
    alpha = sp.Symbol("alpha", nonzero=True)
    steered = sp.Matrix([[0, 0], [1, 0]]) + alpha * sp.Matrix([[1, 0], [0, 0]])
    equal(steered.subs(alpha, 9), symbolic(H))
    principal = sp.Matrix([alpha, 1])
    vanishes(steered * principal - alpha * principal)
    assert (steered * sp.Matrix([1, 0]))[1] == 1
