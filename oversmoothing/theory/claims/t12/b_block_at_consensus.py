"""T12b: a looped block keeps consensus, and attention from content has no part across it."""

import sympy as sp

from oversmoothing.theory.claims.t8 import attention, derivative, layer_norm
from oversmoothing.theory.proofs.kit import Claim, by

# W sends N(c) to (1, 1, 1), so that c' = c + (1, 1, 1), with s = 1 at both.
_GAMMA, _BETA = sp.Matrix([2, -1, 3]), sp.Matrix([1, 0, -2])
_C, _W = sp.Matrix([1, 2, 3]), sp.Matrix([[1, 0, 2], [-1, 1, 0], [2, 1, 3]])
_V = sp.Matrix([[1, 0, 2], [0, -1, 1], [1, 1, 0]])
# Differences between two tokens, and a direction along consensus.
_ACROSS = sp.Matrix([[1, 0, 2], [-1, 0, -2]])


def _block(X: sp.Matrix) -> sp.Matrix:
    """Pre-LN, logits from the content, the FFN y -> (y o y) V."""
    norm = layer_norm(_GAMMA, _BETA, sp.Rational(1, 3))
    middle = X + attention(norm(X), sp.eye(3), sp.zeros(2, 2)) * norm(X) * _W
    return middle + norm(middle).applyfunc(lambda y: y**2) * _V


def _without_attention(X: sp.Matrix) -> sp.Matrix:
    """The FFN alone, at the point that attention leads to."""
    norm = layer_norm(_GAMMA, _BETA, sp.Rational(1, 3))
    middle = X + sp.ones(2, 3)
    return middle + norm(middle).applyfunc(lambda y: y**2) * _V


def _across() -> sp.Matrix:
    """Across consensus the block's derivative is that of its FFN alone."""
    X = sp.ones(2, 1) * _C.T
    return derivative(_block, X, _ACROSS) - derivative(_without_attention, X, _ACROSS)


def _along() -> None:
    """[2; instance] Along consensus it is not: W is seen."""
    X, D = sp.ones(2, 1) * _C.T, sp.ones(2, 1) * sp.Matrix([[1, 0, 0]])
    assert derivative(_block, X, D) != derivative(_without_attention, X, D)


CLAIM = Claim(
    name="T12b",
    clauses=(
        "A block with row-stochastic attention computed from the state, norms, FFN and biases "
        "sends equal tokens 1 c^T to 1 g(c)^T, and g depends neither on the logits nor on the "
        "number of tokens. Looped: c_t = g^t(c).",
        "Logits from the content alone, without mask and position: A = 11^T/n at consensus, P A = "
        "0, and attention has no part in the derivative across it. This is, for every n >= 2, "
        "Pre-LN: I + J_phi(N c') J_N(c'), c' = c + W^T N(c); Post-LN: J_N2 (I + J_phi) J_N1(c + "
        "W^T c), W entering only through the points.",
        "So the FFN's Jacobian alone decides, at first order, whether differences grow in a Pre-LN "
        "block, and without an FFN they neither grow nor shrink.",
        "Looped, a small difference is multiplied by the product of these along c_0, c_1, ...",
    ),
    latex=r"f(\mathbf 1c^\top)=\mathbf 1g(c)^\top,\qquad PA(\mathbf 1c^\top)=0\ \text{ for }\ "
    r"A=\operatorname{softmax}(\text{content})",
    source="ours",
    on_record=by.WRITTEN,
    setting="no term within the block differs between tokens; norms differentiable at the points",
    evidence=(
        by.written(
            "T8c with a_i = 0",
            "[1] A 1 = 1, so attention gives W^T N(c) to every token; the rest acts on tokens one "
            "by one (T8c). n = 1 has the same g.",
            "[2] Equal tokens have equal logits, softmax of a constant row is 1/n, and all other "
            "eigenvalues of 11^T/n are 0, for every head: in T8c the transverse factors with a_i ="
            " 0 are left, I for Pre-LN attention and J_N1(c + W^T c) for Post-LN.",
            _along,
            "[3] That is clause 2 without its FFN: the factor I.",
            "[4] The chain rule, consensus being invariant.",
        ),
        by.Symbolic("across consensus: the FFN alone", _across, scope=by.Scope.INSTANCE),
    ),
)
