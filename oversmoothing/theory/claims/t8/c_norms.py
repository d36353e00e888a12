"""T8c: LayerNorm and feed-forward blocks at consensus: one Jacobian for all modes of attention."""

import sympy as sp

from oversmoothing.theory.claims.t8.linearised import Map, attention, derivative, layer_norm
from oversmoothing.theory.proofs.kit import Claim, by

# Gamma of both signs; c and eps such that s = sqrt(var + eps) = 1 at c.
_GAMMA, _BETA = sp.Matrix([2, -1, 3]), sp.Matrix([1, 0, -2])
_C, _EPS = sp.Matrix([1, 2, 3]), sp.Rational(1, 3)
_W = sp.Matrix([[1, 0, 2], [-1, 1, 0], [0, 3, 1]])
_BIAS = sp.Matrix([[0, sp.log(3)], [sp.log(2), 0]])


def jacobian(c: sp.Matrix) -> sp.Matrix:
    """J_N(c) = diag(gamma) (I - 11^T/d - z z^T/d)/s."""
    d = c.rows
    centred = c - sp.ones(d, 1) * sum(c) / d
    s = sp.sqrt(centred.dot(centred) / d + _EPS)
    z = centred / s
    return sp.diag(*_GAMMA) * (sp.eye(d) - sp.ones(d) / d - z * z.T / d) / s


def _at(c: sp.Matrix) -> tuple[sp.Matrix, sp.Matrix, Map]:
    """(1 c^T, a direction, LayerNorm) for two tokens."""
    D = sp.Matrix([[1, 0, 2], [3, -1, 1]])
    return sp.ones(2, 1) * c.T, D, layer_norm(_GAMMA, _BETA, _EPS)


def _norm() -> object:
    """J_N is the derivative of LayerNorm."""
    X, D, N = _at(_C)
    return derivative(N, X, D) - D * jacobian(_C).T


def _pre_norm() -> object:
    """X + A(N) N W: D + A_b D J_N(c)^T W."""
    X, D, N = _at(_C)

    def F(Z: sp.Matrix) -> sp.Matrix:
        return Z + attention(N(Z), sp.eye(3), _BIAS) * N(Z) * _W

    A = attention(X, sp.zeros(3), _BIAS)
    return derivative(F, X, D) - D - A * D * jacobian(_C).T * _W


def _post_norm() -> object:
    """N(X + A X W): (D + A_b D W) J_N(c + W^T c)^T."""
    X, D, N = _at(_C)
    A = attention(X, sp.zeros(3), _BIAS)
    found = derivative(lambda Z: N(Z + attention(Z, sp.eye(3), _BIAS) * Z * _W), X, D)
    return found - (D + A * D * _W) * jacobian(_C + _W.T * _C).T


CLAIM = Claim(
    name="T8c",
    clauses=(
        "Consensus is invariant under LayerNorm, feed-forward blocks, biases and every map of "
        "tokens one by one.",
        "N = LayerNorm has J_N(c) = diag(gamma)(I - 11^T/d - z z^T/d)/s, s = sqrt(var + eps), z "
        "= (c - mean)/s.",
        "At consensus, with a_i the eigenvalues of A_b: Pre-LN attention has transverse I + a_i "
        "W^T J_N(c) and longitudinal I + W^T J_N(c); Post-LN attention J_N(c + W^T c)(I + a_i "
        "W^T) and J_N(c + W^T c)(I + W^T).",
        "Feed-forward blocks multiply both by the same: Pre-LN I + J_phi(N c') J_N(c') at c' = c"
        " + W^T N(c), Post-LN J_N (I + J_phi).",
        "RMSNorm: J = diag(gamma)(I - z z^T/d)/s, z = c/s, s^2 = mean(c^2) + eps.",
        "Only attention tells the transverse from the longitudinal.",
    ),
    latex=r"J_N(c)=\operatorname{diag}(\gamma)\,\tfrac1s\Big(I-\tfrac{\mathbf 1\mathbf 1^\top}{d}"
    r"-\tfrac{zz^\top}{d}\Big),\qquad I+a_iW^\top J_N(c)\ \text{against}\ I+W^\top J_N(c)",
    source="ours",
    on_record=by.WRITTEN,
    setting="one head at consensus, LayerNorm with eps > 0 or var > 0",
    evidence=(
        by.written(
            "chain rule at consensus",
            "[1, 4, 6] A map applied to each token sends 1 c^T to 1 phi(c)^T, and its derivative "
            "there is D -> D J_phi(c)^T: it acts on the right, the same for every direction over "
            "the tokens.",
            "[2, 5] N(x) = diag(gamma) C x/s + beta, C = I - 11^T/d, and ds = (C x)^T dx/(d s) = "
            "z^T dx/d: J = diag(gamma)(C - z z^T/d)/s. RMSNorm: the same without the mean.",
            "[3] Pre-LN: X' = X + A(N X) N(X) W. By T8a with DN = D J^T: D + A_b D J^T W, on a "
            "mode v u^T with A_b v = a v: v ((I + a W^T J) u)^T. a = 1 is the longitudinal "
            "direction.",
            "[3, 4] Post-LN: X' = N(X + A(X) X W), at 1 (c + W^T c)^T after attention: v (J_N(c + "
            "W^T c) (I + a W^T) u)^T. Feed-forward blocks are maps of tokens, so their factor has "
            "no a.",
        ),
        by.Symbolic("the Jacobian of LayerNorm", _norm, scope=by.Scope.INSTANCE),
        by.Symbolic("Pre-LN attention at consensus", _pre_norm, scope=by.Scope.INSTANCE),
        by.Symbolic("Post-LN attention at consensus", _post_norm, scope=by.Scope.INSTANCE),
    ),
    further="Several heads: a_i needs commuting A_b,h, else I + sum_h W_h^T (x) Q^T A_h Q.",
)
