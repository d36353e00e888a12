"""T7b's certificate beside a network: a floor under HFC/LFC from its own attention and products.

X' = X + sum_h A_h X W_h, any row-stochastic A_h, computed from X too. With S = sum_h W_h, tau_h the
Dobrushin coefficient of A_h, diam = max ||x_i - x_k||_2, m the mean row and u = ||m||_2 / diam,

    u' <= (||I + S|| u + g(1)) / (1 - g(tau)),    g(t) = min(sum_h t_h ||W_h||,
                                                            |t|_2 ||[W_1; ...; W_k]||),

and HFC/LFC >= 1 / (u sqrt(2n)). The sum is T7b's. The second term is ours: a row of A_h X differs
from another by at most tau_h diam (from m by at most diam), and sum_h y_h W_h = [y_1 ... y_k]
[W_1; ...; W_k] is at most sqrt(sum ||y_h||^2) times the norm of the stacked products; where heads
split the features by projections, W_h = P_h H^T, that norm is ||H|| and replaces k ||H||.

One head, H in the band [-q, -p] and tau < p/q: u stays below max(u_0, q / (p - tau q)). Norms,
biases, layer scale and FFN are left out: this is a statement on the attention sublayers iterated
beside the network, not on the network.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from oversmoothing.theory.layer.layer import check_attention, real_array
from oversmoothing.theory.support.errors import InputError

Matrix = NDArray[np.float64]
# Relative rounding of spectral norms of sides up to thousands, generously.
ROUNDING = 1e-12
SCOPE = (
    "the attention sublayers alone, iterated on the network's own attention and products, "
    "without norms, biases and FFN"
)


@dataclass(frozen=True)
class LastingBound:
    """The recursion of T7b over the layers.

    table: a row a layer (0: the start) with tau (largest over heads), factor = ||I + S|| / (1 -
    g(tau)), u and hfc_lfc as iterated, u_bound and the floor that it puts under HFC/LFC, which
    holds after that layer whatever the factor. void_at: the first layer whose factor is not below
    1 (in the band, where tau reaches p/q): from there on nothing bounds u for every depth. None
    where every layer's is.
    """

    table: pd.DataFrame
    void_at: int | None

    @property
    def floor(self) -> float:
        """What HFC/LFC stays above after each of these layers; 0 where nothing is known."""
        return float(self.table["floor"].min())

    def __str__(self) -> str:
        depth = len(self.table) - 1
        if self.void_at is None:
            return (
                f"HFC/LFC >= {self.floor:.4g} after each of {depth} layers, and a floor stays at "
                f"any depth while tau and H are like these (T7b; {SCOPE})"
            )
        row = self.table.iloc[self.void_at]
        known = f"HFC/LFC >= {self.floor:.4g} after each of these {depth} layers, no floor for more"
        return (
            f"the guarantee is void at layer {self.void_at}: with tau = {row['tau']:.4g} attention "
            f"may take as much from the differences as H does from the mean; known is "
            f"{known if self.floor else 'no floor'} (T7b; {SCOPE})"
        )


def dobrushin(A: ArrayLike) -> float:
    """tau(A) = max over pairs of rows of half their l1 distance, A [n, n]."""
    rows = real_array(A, "A")
    return max(float(np.abs(rows - row).sum(1).max()) / 2 for row in rows)


def lasting_bound(
    attention: Sequence[ArrayLike], products: Sequence[ArrayLike], X0: ArrayLike
) -> LastingBound:
    """T7b's bound on X' = X + sum_h A_h X W_h, and the iteration itself, layer by layer.

    attention: a layer's [heads, n, n] or [n, n], row-stochastic in float64; products: a layer's
    W_V,h W_O,h as [heads, d, d], or H^T as [d, d]; X0 [n, d], whose tokens must not all be equal.
    The mean and the differences are iterated apart, so that neither rounds the other away. Raises
    `InputError` where shapes do not go together and where all tokens are equal.

    >>> import numpy as np, oversmoothing
    >>> A, W = np.array([[0.75, 0.25], [0.25, 0.75]]), -0.5 * np.eye(2)
    >>> bound = oversmoothing.lasting_bound([A] * 10, [W] * 10, [[1.0, 2.0], [3.0, 5.0]])
    >>> len(bound.table)
    11
    """
    X = real_array(X0, "X0")
    if X.ndim != 2 or not X.size:
        raise InputError(f"X0 must be [n, d] with n, d >= 1; this one is {list(X.shape)}")
    if len(attention) != len(products):
        raise InputError(
            f"{len(attention)} layers of attention and {len(products)} of products: give one each"
        )
    # HFC/LFC does not see the scale; squares of very small or large numbers are no floats.
    X = np.ldexp(X, -int(np.frexp(np.abs(X).max())[1]))
    mean, Y = X.mean(0), X - X.mean(0)
    u = _u(mean, Y)
    if u == math.inf:
        raise InputError("the tokens of X0 are all equal: nothing is left that could be kept apart")
    rows, void_at = [_row(0, 0.0, 1.0, mean, Y, u)], None
    for layer, (each, weights) in enumerate(zip(attention, products, strict=True), 1):
        A, W = _heads(each, layer), _heads(weights, layer)
        if len(A) != len(W) or A.shape[-1] != len(X) or W.shape[-1] != X.shape[1]:
            raise InputError(
                f"layer {layer}: attention {list(A.shape)} and products {list(W.shape)} do not go "
                f"with X0 {list(X.shape)}: [heads, n, n] and [heads, d, d] do"
            )
        A = check_attention(A)
        taus = np.array([dobrushin(one) for one in A])
        taken = _gain(W, taus)
        kept = float(np.linalg.norm(np.eye(W.shape[-1]) + W.sum(0), 2))
        # Norms round by some eps: 1 - taken must be surely positive, and the factor surely below 1.
        factor = kept / (1 - taken) if taken < 1 - ROUNDING else math.inf
        if factor >= 1 - ROUNDING:
            void_at = void_at or layer
        u = factor * u + _gain(W, np.ones(len(W))) / (1 - taken) if factor < math.inf else math.inf
        moved = (A @ Y @ W).sum(0)
        mean, Y = mean + mean @ W.sum(0) + moved.mean(0), Y + moved
        # Centred again, or a mean of rounding's size in Y would outlive differences that decay.
        Y -= Y.mean(0)
        rows.append(_row(layer, float(taus.max()), factor, mean, Y, u))
    return LastingBound(pd.DataFrame(rows), void_at)


def _heads(value: ArrayLike, layer: int) -> Matrix:
    heads = real_array(value, f"layer {layer}")
    heads = heads[None] if heads.ndim == 2 else heads
    if heads.ndim != 3 or heads.shape[1] != heads.shape[2]:
        raise InputError(f"layer {layer}: square matrices, head by head; got {list(heads.shape)}")
    return heads


def _gain(W: Matrix, t: Matrix) -> float:
    """g(t) for products [heads, d, d]."""
    apart = float(t @ np.linalg.norm(W, 2, axis=(1, 2)))
    return min(apart, float(np.linalg.norm(t) * np.linalg.norm(W.reshape(-1, W.shape[-1]), 2)))


def _u(mean: Matrix, Y: Matrix) -> float:
    # Norms square: without a scale differences below 1e-162 would count as none.
    size = float(np.abs(Y).max())
    if not size:
        return math.inf
    Y = Y / size
    diam = max(float(np.linalg.norm(Y - row, axis=1).max()) for row in Y)
    return float(np.linalg.norm(mean / size)) / diam


def _row(
    layer: int, tau: float, factor: float, mean: Matrix, Y: Matrix, bound: float
) -> dict[str, float]:
    n, hfc = len(Y), float(np.linalg.norm(Y))
    lfc = math.sqrt(n) * float(np.linalg.norm(mean))
    return {
        "layer": layer,
        "tau": tau,
        "factor": factor,
        "u": _u(mean, Y),
        "u_bound": bound,
        "hfc_lfc": hfc / lfc if lfc else math.inf if hfc else math.nan,
        "floor": 1 / (bound * math.sqrt(2 * n)) if bound else math.inf,
    }
