"""T9d: softmax attention without a residual connection: HFC is at most cubed at every layer."""

import mpmath as mp
import numpy as np
import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import Claim, by, draw, given
from oversmoothing.theory.support.arrays import Array


def _two_tokens_closed() -> list[sp.Expr]:
    """[1; fixed size] ||C(s)||_2 <= D^2/4, D the diameter of the e_j (Popoviciu, in each
    direction), and D^2 <= 2 ||E||_F^2. So |r_i| <= ||E||^2/2 ||M|| |e_i|/sqrt k, and ||E'|| <=
    ||R|| ||W|| <= ||M|| ||W|| ||E||^3/(2 sqrt k). For n = 2, d = 1 E' is (w e/2)(tanh((m+e) e M) -
    tanh((m-e) e M)), ~ w M e^3 at m = 0: the constant q is sharp."""
    c, e, m, w = sp.symbols("c e m w", real=True)
    X = [c + e, c - e]
    rows = []
    for x in X:
        weights = [sp.exp(x * m * y) for y in X]
        rows.append(sum(a * y for a, y in zip(weights, X, strict=True)) / sum(weights) * w)
    tanh = [sp.tanh(x * e * m).rewrite(sp.exp) for x in X]
    goal = w * e / 2 * (tanh[0] - tanh[1])
    residual = sp.simplify(sp.together(((rows[0] - rows[1]) / 2 - goal).expand()))
    # Leading order in the form with Sigma_a: variance of +-e under weights of mean tanh(c e m) is
    # e^2 (1 - tanh^2), which is its derivative in the argument.
    t = sp.Symbol("t")
    slope = sp.diff(sp.tanh(t), t) - (1 - sp.tanh(t) ** 2)
    return [residual, sp.simplify(slope)]


def _antisymmetric() -> None:
    """[4; instance] M antisymmetric, X = 1 c + s u^T: e_i M e_j^T = s_i s_j u M u^T = 0, all rows
    of A are equal, and X' is a consensus state: E' = 0."""
    # M = [[0, 1], [-1, 0]], X = 1 c + s u: every row of logits is the same up to a constant.
    M, c, u = sp.Matrix([[0, 1], [-1, 0]]), sp.Matrix([[1, 2]]), sp.Matrix([[3, -1]])
    X = sp.Matrix.vstack(*(c + s * u for s in (1, 2, -3)))
    logits = X * M * X.T
    rows = [[logits[i, j] - logits[i, 0] for j in range(3)] for i in range(3)]
    assert rows[0] == rows[1] == rows[2] and X.row(0) != X.row(1)


def _definite() -> list[sp.Expr]:
    """[3; fixed size] If |v^T M v| >= mu |v|^2 (mu > 0: M + M^T definite): with E = U S V^T the
    entry (1, 1) of U^T (E M E^T E) V is s_1^3 v_1^T M v_1, so ||E M E^T E|| >= mu s_1^3 >= mu
    r^{-3/2} ||E||^3, r = rank E. As ||m'|| <= ||W|| (||m|| + ||E||), m grows at most geometrically
    while ||E|| is doubly exponentially small: ||m_L|| ||E_L|| -> 0, so Sigma_a = E^T E/n (1 + o(1))
    in norm, and ||E'|| >= kappa ||E||^3 with kappa = mu sigma_min(W)/(2 n r^{3/2} sqrt k) if E_0 is
    small enough. So log||E'|| = 3 log||E|| + O(1)."""
    M = sp.Matrix(2, 2, lambda i, j: sp.Symbol(f"m{i}{j}"))
    v = sp.Matrix(sp.symbols("v1:3"))
    return [sp.expand((v.T * M * v)[0] - (v.T * (M + M.T) * v)[0] / 2)]


def _softmax_layer(X: Array, M: Array, W: Array) -> Array:
    logits = X @ M @ X.T / np.sqrt(len(M))
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    result: Array = weights / weights.sum(axis=1, keepdims=True) @ X @ W
    return result


def _law(n: int, d: int, spread: int, size: int, seed: int) -> None:
    """||HFC'|| <= ||M|| ||W||/(2 sqrt k) ||HFC||^3 for any X, up to the rounding of one layer.

    spread: of the tokens, and size: of their mean, as powers of ten.
    """
    rng = np.random.default_rng(seed)
    M, W = rng.standard_normal((d, d)), rng.standard_normal((d, d))
    X = 10.0**spread * rng.standard_normal((n, d)) + 10.0**size * rng.standard_normal(d)
    moved = _softmax_layer(X, M, W)
    first, second = (float(np.linalg.norm(Z - Z.mean(axis=0))) for Z in (X, moved))
    m, w = np.linalg.norm(M, 2), np.linalg.norm(W, 2)
    # A logit of size s rounds by s d eps, so a weight by that relatively; then products of n, d.
    largest = float(np.linalg.norm(X))
    logits = m * largest**2 / np.sqrt(d)
    rounding = 8 * (n + d) * (2 + d * logits) * 2.0**-52 * w * largest * np.sqrt(n)
    assert second <= m * w / (2 * np.sqrt(d)) * first**3 + rounding


# In thousands of digits: HFC that is cubed at every layer needs them.


def high_and_mean(X: mp.matrix) -> tuple[mp.matrix, mp.matrix]:
    """(HFC, mean over the tokens [1, d])."""
    mean = mp.ones(1, X.rows) * X / X.rows
    return X - mp.ones(X.rows, 1) * mean, mean


def norm(X: mp.matrix) -> mp.mpf:
    return mp.sqrt(mp.fsum(x * x for x in X))


def attention(X: mp.matrix, M: mp.matrix, k: int) -> mp.matrix:
    """softmax(X M X^T/sqrt k) by rows."""
    logits = X * M * X.T / mp.sqrt(k)
    rows = []
    for i in range(X.rows):
        weights = [mp.exp(logits[i, j]) for j in range(X.rows)]
        rows.append([w / mp.fsum(weights) for w in weights])
    return mp.matrix(rows)


def covariance(E: mp.matrix, c: mp.matrix, M: mp.matrix) -> mp.matrix:
    """Sigma_a: covariance of the rows of E under a = softmax(c M E^T/sqrt k)."""
    weights = [mp.exp(x) for x in c * M * E.T / mp.sqrt(2)]
    a = [w / mp.fsum(weights) for w in weights]
    apart = E - mp.ones(E.rows, 1) * mp.matrix([a]) * E
    return apart.T * mp.diag(a) * apart


def _example() -> tuple[mp.matrix, mp.matrix, mp.matrix]:
    """X = 1 c + E with ||E|| = 0.3, M with a definite symmetric part, W nonsingular."""
    E = mp.matrix([["0.1", "0.15"], ["-0.15", "0.05"], ["0.05", "-0.2"]])
    E = E * (mp.mpf("0.3") / norm(E))
    X = mp.matrix([[E[i, 0] + 1, E[i, 1] - mp.mpf("0.5")] for i in range(3)])
    M, W = [["1", "0.5"], ["-0.25", "2"]], [["0.75", "0.25"], ["0", "-0.5"]]
    return X, mp.matrix(M), mp.matrix(W)


def _tripling(effort: by.Effort) -> by.Measurements:
    """log||E|| over eight layers: each triples the one before, up to a constant."""
    with mp.workdps(4000):
        X, M, W = _example()
        sizes = []
        for _ in range(8):
            sizes.append(mp.log(norm(high_and_mean(X)[0])))
            X = attention(X, M, 2) * X * W
        for layer in (4, 5, 6):
            # |log||E'|| - 3 log||E||| <= K: above log(||M|| ||W||/(2 sqrt 2)), below the log of
            # mu sigma_min(W)/(2 n r^{3/2} sqrt 2) = log 0.0188 > -4 (mu = .985, r = 2, n = 3).
            gap = 4 / abs(sizes[layer])
            ratio = float(sizes[layer + 1] / sizes[layer])
            yield by.Measurement(
                f"log||E|| at layer {layer + 1} over layer {layer}", 3.0, ratio, float(gap)
            )


def _remainder(effort: by.Effort) -> by.Measurements:
    """||E' - E M Sigma_a W/sqrt k|| falls like ||E||^5 and stays under its bound."""
    errors = []
    with mp.workdps(120):
        X, M, W = _example()
        E, mean = high_and_mean(X)
        m, w = (max(mp.svd_r(Z, compute_uv=False)) for Z in (M, W))
        scales = [mp.mpf(10) ** -k for k in (3, 4)]
        for s in scales:
            small = E * s
            state = small + mp.ones(3, 1) * mean
            high, _ = high_and_mean(attention(state, M, 2) * state * W)
            error = norm(high - small * M * covariance(small, mean, M) * W / mp.sqrt(2))
            bound = mp.sqrt(2) / 2 * w * m**2 * norm(small) ** 5
            if error > bound:
                raise ArithmeticError(f"the remainder {error} exceeds its bound {bound}")
            errors.append(error)
        order = float(mp.log(errors[0] / errors[1]) / mp.log(10))
    # The next order is a relative O(||E||) with factors of |c| |M| < 10 at the first scale.
    return [by.Measurement("order of the remainder", 5.0, order, 10 * float(scales[0]))]


CLAIM = Claim(
    name="T9d",
    clauses=(
        "X' = A X W with A = softmax(X M X^T/sqrt k) by rows, E = HFC. For EVERY X: ||E'||_F <= "
        "q ||E||_F^3, q = ||M||_2 ||W||_2/(2 sqrt k); so sqrt(q) ||E_L|| <= (sqrt(q) "
        "||E_0||)^{3^L}, doubly exponential once sqrt(q) ||E|| < 1.",
        "To leading order E' = E M Sigma_a W/sqrt k, Sigma_a the covariance of the rows of E "
        "under a = softmax(m M E^T/sqrt k), m the mean; the remainder is at most (sqrt 2/k) "
        "||W|| ||M||^2 ||E||^5.",
        "If M + M^T is definite, W nonsingular and E_0 != 0 small enough (for the given m_0), "
        "log||E_{L+1}||/log||E_L|| -> 3.",
        "Without definiteness HFC may fall faster: for antisymmetric M and E_0 of rank 1 it is 0"
        " after one layer.",
    ),
    latex=r"\|E'\|_F \le \frac{\|M\|\,\|W\|}{2\sqrt k}\,\|E\|_F^3,\qquad "
    r"E' = \frac{1}{\sqrt k}EM\Sigma_aW + O(\|E\|^5)",
    source="ours, sharpening the doubly exponential bound of arXiv 2103.03404",
    on_record=by.WRITTEN,
    hypotheses=(
        given.TWO_TOKENS,
        given.Hypothesis(
            "X_0 is given: attention is computed from it",
            lambda case: case.X0 is not None,
            (given.case(),),
        ),
    ),
    evidence=(
        by.written(
            "exponential tilting",
            "[1, 2] Let X = 1 m + E. Logits of row i: (m + e_i) M (m + e_j)^T/sqrt k; what does "
            "not depend on j cancels, so A_ij is proportional to a_j exp(e_i M e_j^T/sqrt k): the "
            "weights a tilted by v_i = M^T e_i^T/sqrt k. a is the same for all rows.",
            "[1, 2] Let a^s be a tilted by s v_i, with mean g(s) and covariance C(s) of the rows "
            "e_j. g' = C(s) v_i, so row i of A X is m + g(0) + r_i, r_i = integral over [0, 1] of "
            "C(s) v_i ds. m + g(0) is common to all rows: E' = P R W.",
            _two_tokens_closed,
            "[1] By induction sqrt(q) ||E_L|| <= (sqrt(q) ||E_0||)^{3^L}.",
            "[2] C'(s) is the third central moment contracted with v_i: |C'(s) v_i| <= D E<v_i, e "
            "- g>^2 <= D^3 |v_i|^2. So |r_i - Sigma_a v_i| <= D^3 |v_i|^2/2, and summed over rows "
            "||R - E M Sigma_a/sqrt k|| <= D^3 ||M||^2 ||E||^2/(2k) <= sqrt 2 ||M||^2 ||E||^5/k. "
            "P E = E. With Sigma_a = E^T E/n + O(||E||^3) the cubic term is E M E^T E W/(n sqrt "
            "k). (T8b expands the same rows of A X as power series, exactly.)",
            _definite,
            _antisymmetric,
        ),
        by.searched(
            "the cubic bound on random layers in float64",
            _law,
            st.integers(2, 6),
            st.integers(1, 4),
            st.integers(-3, 1),
            st.integers(-2, 1),
            draw.SEEDS,
        ),
        by.Simulated("log||E|| triples, in 4000 digits", _tripling),
        by.Simulated("the remainder is of fifth order", _remainder),
    ),
    further="Which M that are neither definite nor antisymmetric triple exactly; LayerNorm.",
)
