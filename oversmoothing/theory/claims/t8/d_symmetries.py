"""T8d: what the sign of LayerNorm's weights does, for every state: two exact symmetries."""

import numpy as np
import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import Claim, by, draw, equal, exact
from oversmoothing.theory.support.arrays import Array


def _even() -> None:
    """[1, 2; general] The logits N M N^T/sqrt k are quadratic in N, for every n and d: -N gives
    the same, and so does the softmax of them with any term of the positions added."""
    n, d = sp.symbols("n d", integer=True, positive=True)
    N, M = sp.MatrixSymbol("N", n, d), sp.MatrixSymbol("M", d, d)
    assert ((-N) * M * (-N).T - N * M * N.T).doit() == sp.ZeroMatrix(n, n)


def _bias_breaks() -> None:
    """[5; instance] A query bias: two tokens N = (1, -1), (-1, 1) and logits log 2/2 n_j1 that the
    bias alone makes give the weights (2/3, 1/3); of -N they are (1/3, 2/3). A(N) N = (1/3, -1/3) in
    both cases: the branch is even, and gamma -> -gamma does nothing where W -> -W does."""
    N = exact.matrix("1 -1; -1 1")
    seen, flipped = exact.matrix("2/3 1/3; 2/3 1/3"), exact.matrix("1/3 2/3; 1/3 2/3")
    branch = exact.product(seen, N)
    equal(exact.product(flipped, exact.scaled(-1, N)), branch)
    assert branch != exact.scaled(-1, branch)


def _norm(X: Array, gamma: Array, beta: Array) -> Array:
    centred = X - X.mean(1, keepdims=True)
    size = np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    moved: Array = gamma * (centred / size) + beta
    return moved


def _attended(N: Array, M: Array, positions: Array) -> Array:
    logits = N @ M @ N.T + positions
    weights = np.exp(logits - logits.max(1, keepdims=True))
    seen: Array = weights / weights.sum(1, keepdims=True) @ N
    return seen


def _law(seed: int, n: int, d: int) -> None:
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


CLAIM = Claim(
    name="T8d",
    clauses=(
        "Softmax attention A(N) without query and key biases is even, A(-N) = A(N); logits may "
        "have terms of positions alone (biases, masks, rotary).",
        "Pre-LN, X' = X + A(N) N W with N = LN(X): (gamma, beta) -> (-gamma, -beta) of that norm "
        "is the same layer as W -> -W; so with beta = 0 the sign of gamma exchanges H and -H.",
        "Post-LN, X' = LN(X + A(X) X W): (gamma, beta) -> (-gamma, -beta) turns X' into -X', "
        "whatever biases attention has.",
        "Post-LN with beta = 0, attention alone and no bias: F(-X) = -F(X). So the global sign of "
        "gamma, in any of its layers, changes every X_L at most in sign, and no HFC/LFC, cosine "
        "or rank.",
        "With a query bias (2) fails.",
    ),
    latex=r"A(-N)=A(N),\qquad F^{\mathrm{pre}}_{-\gamma,-\beta,W}=F^{\mathrm{pre}}_{\gamma,\beta,"
    r"-W},\qquad F^{\mathrm{post}}_{-\gamma,-\beta}=-F^{\mathrm{post}}_{\gamma,\beta}",
    source="ours",
    on_record=by.WRITTEN,
    setting="any state X; LayerNorm as diag(gamma) z(x) + beta with eps >= 0; one or several heads",
    evidence=(
        by.written(
            "signs",
            _even,
            "[2, 3] diag(-gamma) z + (-beta) = -(diag(gamma) z + beta): the norm changes its sign.",
            "[2] A(-N)(-N) W = A(N) N (-W), head by head.",
            "[3] The argument of the norm does not contain gamma or beta.",
            "[4] z(-x) = -z(x), and -X - A(-X) X W = -(X + A(X) X W) by (1): F is odd. A layer "
            "with -gamma is -F by (3), so by induction every X_L is the old one or its negative; "
            "HFC/LFC, cosines and ranks do not see that.",
            _bias_breaks,
        ),
        by.searched(
            "both symmetries bit for bit in float64, with positions and signs of gamma at will",
            _law,
            draw.SEEDS,
            st.integers(2, 5),
            st.integers(2, 5),
        ),
    ),
    further="A value or output bias breaks (4), not (2) with that bias kept nor (3); a norm before "
    "a feed-forward block has no such symmetry.",
)
