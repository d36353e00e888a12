"""A layer in sympy with attention computed from the state, and its derivative at a state."""

from collections.abc import Callable

import sympy as sp

Map = Callable[[sp.Matrix], sp.Matrix]


def attention(X: sp.Matrix, M: sp.Matrix, bias: sp.Matrix) -> sp.Matrix:
    """softmax(X M X^T + bias), row by row."""
    weights = (X * M * X.T + bias).applyfunc(sp.exp)
    return sp.Matrix(X.rows, X.rows, lambda i, j: weights[i, j] / sum(weights.row(i)))


def derivative(F: Map, X: sp.Matrix, D: sp.Matrix) -> sp.Matrix:
    """DF at X in the direction D."""
    e = sp.Symbol("e")
    return F(X + e * D).diff(e).subs(e, 0).applyfunc(sp.simplify)


def layer_norm(gamma: sp.Matrix, beta: sp.Matrix, eps: sp.Expr) -> Map:
    """diag(gamma) (x - mean)/sqrt(var + eps) + beta, row by row."""

    def normalised(X: sp.Matrix) -> sp.Matrix:
        rows = []
        for i in range(X.rows):
            centred = X.row(i).T - sp.ones(X.cols, 1) * sum(X.row(i)) / X.cols
            size = sp.sqrt(centred.dot(centred) / X.cols + eps)
            rows.append((sp.diag(*gamma) * centred / size + beta).T)
        return sp.Matrix.vstack(*rows)

    return normalised
