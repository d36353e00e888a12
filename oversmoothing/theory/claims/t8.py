"""What the claims of t8.md execute."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.layer.layer import softmax
from oversmoothing.theory.proofs.kit import Matrix, draw, exact, given, search, spectra, verdict
from oversmoothing.theory.support.sizes import Array

# linearised
Map = Callable[[sp.Matrix], sp.Matrix]


def attention(X: sp.Matrix, M: sp.Matrix, bias: sp.Matrix) -> sp.Matrix:
    """softmax(X M X^T + bias), row by row."""
    return _normalised(X * M * X.T + bias)


def _normalised(logits: sp.Matrix) -> sp.Matrix:
    weights = logits.applyfunc(sp.exp)
    return sp.Matrix(*logits.shape, lambda i, j: weights[i, j] / sum(weights.row(i)))


def derivative(F: Map, X: sp.Matrix, D: sp.Matrix) -> sp.Matrix:
    """DF at X in the direction D, by the chain rule over what its entries share."""
    e = sp.Symbol("e")
    named, (Y,) = sp.cse(F(X + e * D))
    at, slope = {e: sp.Integer(0)}, {e: sp.Integer(1)}

    def changes(x: sp.Expr) -> sp.Expr:
        moved = x.free_symbols & slope.keys()
        return sum((x.diff(s).xreplace(at) * slope[s] for s in moved), sp.Integer(0))

    for name, part in named:
        slope[name], at[name] = changes(part), part.xreplace(at)
    return Y.applyfunc(changes).applyfunc(sp.simplify)


# T8a
def residual() -> sp.Matrix:
    c, W = sp.Matrix(1, 2, sp.symbols("c:2")), sp.Matrix([[1, -2], [3, sp.Rational(1, 2)]])
    M, D = sp.Matrix([[1, 2], [-1, 3]]), sp.Matrix(2, 2, sp.symbols("d:4"))
    bias = sp.Matrix([[0, sp.log(3)], [sp.log(2), 0]])
    X = sp.ones(2, 1) * c
    change = derivative(lambda Z: Z + attention(Z, M, bias) * Z * W, X, D)
    return change - D - attention(X, M, bias) * D * W


# T8b
# The expansion is checked up to the power before this one.
_ORDER = 5


@st.composite
def _cases(pick: st.DrawFn) -> tuple[Matrix, Matrix, Matrix]:
    """(c, E, M): a mean [1, d], differences [n, d] that sum to 0, logits x M x^T."""
    n, d = pick(st.integers(2, 4)), pick(st.integers(1, 2))
    c, X = pick(draw.states(1, d)), pick(draw.states(n, d))
    return c, exact.centred(X), pick(draw.states(d, d))


def _series(*coefficients: Fraction) -> Any:
    """The power series in s of these coefficients."""
    terms = [flint.fmpq(x.numerator, x.denominator) for x in coefficients]
    return flint.fmpq_series(terms, prec=_ORDER + 1)


# Of a row of entries the series of each; the last dimension is that of the coefficients.
_each = np.vectorize(_series, otypes=[object])


@search(_cases())
def law_b(c: Matrix, E: Matrix, M: Matrix) -> None:
    """Differences s E: the rows of A X, less their mean, are s E M Sig_a up to s^4, exactly."""
    (near,), far = (exact.product(X, M, exact.transposed(E)) for X in (c, E))
    D = _each(0, E)
    # exp of the logits, those of c and those of a token: s times near, s^2 times far.
    plain, seen = (
        np.vectorize(lambda x: x.exp(), otypes=[object])(_each(0, near, square))
        for square in (0, far)
    )
    a = plain / plain.sum(keepdims=True)
    covariance = (D.T * a) @ D - np.outer(a @ D, a @ D)
    moved = seen / seen.sum(axis=1, keepdims=True) @ D
    left = moved - moved.sum(axis=0) / len(E) - D @ _each(M) @ covariance
    assert not any(any(entry.coeffs()[:_ORDER]) for entry in left.flat)


# T8c
# Gamma of both signs; c and eps such that s = sqrt(var + eps) = 1 at c.
_GAMMA, _C, _EPS = sp.Matrix([2, -1, 3]), sp.Matrix([1, 2, 3]), sp.Rational(1, 3)
_W = sp.Matrix([[1, 0, 2], [-1, 1, 0], [0, 3, 1]])
_BIAS = sp.Matrix([[0, sp.log(3)], [sp.log(2), 0]])


def layer_norm(X: sp.Matrix) -> sp.Matrix:
    """diag(gamma) (x - mean)/sqrt(var + eps) + beta, row by row."""
    rows = []
    for i in range(X.rows):
        centred = X.row(i).T - sp.ones(X.cols, 1) * sum(X.row(i)) / X.cols
        size = sp.sqrt(centred.dot(centred) / X.cols + _EPS)
        rows.append((sp.diag(*_GAMMA) * centred / size + sp.Matrix([1, 0, -2])).T)
    return sp.Matrix.vstack(*rows)


def jacobian(c: sp.Matrix, gamma: sp.Matrix = _GAMMA, eps: sp.Expr = _EPS) -> sp.Matrix:
    """J_N(c) = diag(gamma) (I - 11^T/d - z z^T/d)/s of LayerNorm."""
    d = c.rows
    centred = c - sp.ones(d, 1) * sum(c) / d
    s = sp.sqrt(centred.dot(centred) / d + eps)
    z = centred / s
    return sp.diag(*gamma) * (sp.eye(d) - sp.ones(d) / d - z * z.T / d) / s


# 1 c^T and a direction, for two tokens.
_X, _D3 = sp.ones(2, 1) * _C.T, sp.Matrix([[1, 0, 2], [3, -1, 1]])


def norm() -> object:
    return derivative(layer_norm, _X, _D3) - _D3 * jacobian(_C).T


def pre_norm() -> object:
    def F(Z: sp.Matrix) -> sp.Matrix:
        return Z + attention(layer_norm(Z), sp.eye(3), _BIAS) * layer_norm(Z) * _W

    A = attention(_X, sp.zeros(3), _BIAS)
    return derivative(F, _X, _D3) - _D3 - A * _D3 * jacobian(_C).T * _W


def post_norm() -> object:
    A = attention(_X, sp.zeros(3), _BIAS)
    change = derivative(lambda Z: layer_norm(Z + attention(Z, sp.eye(3), _BIAS) * Z * _W), _X, _D3)
    return change - (_D3 + A * _D3 * _W) * jacobian(_C + _W.T * _C).T


# T8d
def even() -> None:
    n, d = sp.symbols("n d", integer=True, positive=True)
    N, M = sp.MatrixSymbol("N", n, d), sp.MatrixSymbol("M", d, d)
    assert ((-N) * M * (-N).T - N * M * N.T).doit() == sp.ZeroMatrix(n, n)


def bias_breaks() -> None:
    N = exact.matrix("1 -1; -1 1")
    seen, flipped = exact.matrix("2/3 1/3; 2/3 1/3"), exact.matrix("1/3 2/3; 1/3 2/3")
    branch = exact.product(seen, N)
    assert exact.product(flipped, exact.scaled(-1, N)) == branch != exact.scaled(-1, branch)


def _norm(X: Array, gamma: Array, beta: Array) -> Array:
    centred = X - X.mean(1, keepdims=True)
    size = np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    moved: Array = gamma * (centred / size) + beta
    return moved


def _attended(N: Array, M: Array, positions: Array) -> Array:
    seen: Array = softmax(N @ M @ N.T + positions) @ N
    return seen


@search(draw.SEEDS, st.integers(2, 5), st.integers(2, 5))
def law_d(seed: int, n: int, d: int) -> None:
    """Bit for bit in float64: rounding is odd, so both sides round alike."""
    rng = np.random.default_rng(seed)
    X, gamma, beta = rng.standard_normal((n, d)), rng.standard_normal(d), rng.standard_normal(d)
    M, W = rng.standard_normal((2, d, d))
    positions = rng.standard_normal((n, n))

    def before(g: Array, b: Array, W: Array) -> Array:
        moved: Array = X + _attended(_norm(X, g, b), M, positions) @ W
        return moved

    def after(X: Array, g: Array, b: Array) -> Array:
        return _norm(X + _attended(X, M, positions) @ W, g, b)

    assert np.array_equal(before(-gamma, -beta, W), before(gamma, beta, -W))
    assert np.array_equal(after(X, -gamma, -beta), -after(X, gamma, beta))
    assert np.array_equal(after(-X, gamma, 0 * beta), -after(X, gamma, 0 * beta))


# T8e-reversal
@given.condition(
    "H has exactly one non-zero eigenvalue, and it is real",
    given.case(H="0"),
    given.case(H="1 0; 0 2"),
)
def one_real_value(instance: given.Instance) -> bool:
    values = [value for value in spectra.spectrum(instance.H) if not value.is_zero]
    return len(values) == 1 and values[0].is_real


@search(
    draw.circulant_attention(),
    draw.fractions(-6, 6),
    at=lambda A, _, h: (A, [[h, -h], [Fraction(0), Fraction(0)]]),
)
def matrix_law(A: Matrix, a_values: list[spectra.Gaussian], h: Fraction) -> None:
    """W^T = [[2h, 0], [0, 0]] gives W^T C = [[h, -h], [0, 0]], with the eigenvalues h and 0."""
    H = [[h, -h], [Fraction(0), Fraction(0)]]
    differ = verdict(A=A, H=H).verdict != verdict(A=A, H=exact.scaled(-1, H)).verdict
    # -h, h > 0, does not beat some a_i iff h <= max 2 (1 - Re a_i)/(1 - |a_i|^2).
    reach = max(2 * (1 - u) / (1 - u * u - v * v) for u, v in a_values)
    assert differ == (0 < abs(h) <= max(Fraction(2), reach))


# T8f
# d = 4: z has mean 0 and variance 1; v, u are orthogonal to 1 and z.
_Z, _SIDES = exact.column("1 1 -1 -1"), exact.matrix("1 -1 0 0; 0 0 1 -1")


def product() -> sp.Expr:
    L, t, a = sp.symbols("L t a", positive=True)
    quotient = sp.gamma(L + t + a) * sp.gamma(t) / (sp.gamma(t + a) * sp.gamma(L + t))
    return sp.gammasimp(quotient.subs(L, L + 1) / quotient) - (1 + a / (L + t))


@search(draw.fractions(-1, 1), draw.fractions(0, 3).filter(bool), draw.fractions(0, 3).filter(bool))
def law_f(a: Fraction, w: Fraction, s0: Fraction) -> None:
    """(2), (3): the consensus state moves along z by w, a side by 1 + a w/s, 1 and z by 1."""
    c, s, grown = exact.scaled(s0, _Z), s0, Fraction(1)
    directions = [exact.transposed([row]) for row in _SIDES] + [[[Fraction(1)]] * 4, _Z]
    moved = directions
    # s J_N(c) = I - 11^T/d - z z^T/d of T8c, gamma = 1, eps = 0.
    J = exact.plus(exact.identity(4), exact.uniform(4), -1)
    J = exact.plus(J, exact.product(_Z, exact.transposed(_Z)), Fraction(-1, 4))
    for _ in range(4):
        step = exact.plus_identity(J, a * w / s)
        moved = [exact.product(step, d) for d in moved]
        c, grown = exact.plus(c, exact.scaled(w, _Z)), grown * (1 + a * w / s)
        s += w
        assert c == exact.scaled(s, _Z)
    for side, image in zip(directions, moved, strict=True):
        assert image == exact.scaled(grown if side in directions[:2] else 1, side)


# T8g
# The rotation by a right angle a position, a state of two tokens, weights.
_TURN_G = sp.Matrix([[0, -1], [1, 0]])
_C_G, _W_G = sp.Matrix(sp.symbols("x y", real=True)), sp.Matrix([[1, 2], [-1, 1]])
_D = sp.Matrix([[1, 0], [3, -1]])


def _rotary(X: sp.Matrix) -> sp.Matrix:
    """softmax of (Q^i x_i)^T (Q^j x_j), i and j the positions."""
    turned = sp.Matrix.vstack(*((_TURN_G**i * X.row(i).T).T for i in range(X.rows)))
    return _normalised(turned * turned.T)


def linear() -> sp.Matrix:
    X = sp.ones(2, 1) * _C_G.T
    change = derivative(lambda Z: Z + _rotary(Z) * Z * _W_G, X, _D)
    return (change - _D - _rotary(X) * _D * _W_G).applyfunc(sp.simplify)


def not_uniform() -> None:
    c = sp.Matrix(sp.symbols("x y", real=True))
    assert sp.expand((c.T * _TURN_G * c)[0]) == 0
    assert sp.expand((c.T * c)[0] - ((_TURN_G * c).T * (_TURN_G * c))[0]) == 0


def value_bias() -> None:
    b, X = [Fraction(x) for x in (1, -1, 0)], exact.matrix("2 -1 -1; 0 1 -1")
    seen = []
    for sign in (1, -1):
        u, v = ([sign * x + y for x, y in zip(row, b, strict=True)] for row in X)
        assert sum(u) == sum(v) == 0
        seen.append(exact.dot(u, v) ** 2 / (exact.dot(u, u) * exact.dot(v, v)))
    assert seen == [Fraction(4, 7), 0]
