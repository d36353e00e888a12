"""A small looped block in numbers: attention from the state, a norm, an FFN; and its derivative."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from oversmoothing.theory.consensus.jacobians import (
    AtConsensus,
    TokenMap,
    TokenNorm,
    layer_at_consensus,
)
from oversmoothing.theory.support.arrays import Array


@dataclass(frozen=True)
class LoopedBlock:
    """One head with logits N(x_i) . N(x_j), causal or not, W [d, d], FFN x -> B tanh(x) + b."""

    placement: Literal["pre", "post"]
    W: Array
    B: Array
    b: Array
    norm: TokenNorm
    causal: bool

    def __call__(self, X: Array) -> Array:
        """The states X [n, d] one loop on."""
        pre = self.placement == "pre"
        N = self._rows(X) if pre else X
        middle = X + self._attention(N) @ N @ self.W
        if not pre:
            middle = self._rows(middle)
        out: Array = middle + self._ffn(self._rows(middle) if pre else middle)
        return out if pre else self._rows(out)

    def linearised(self, c: Array, n: int) -> AtConsensus:
        """The derivative at 1 c^T by T8c's closed form."""
        A = self._attention(np.tile(self.norm(c) if self.placement == "pre" else c, (n, 1)))
        ffn = TokenMap(lambda x: self._ffn(x[None])[0], lambda x: self.B * (1 - np.tanh(x) ** 2))
        return layer_at_consensus(
            c, A[None], self.W[None], np.zeros(len(c)), placement=self.placement,
            norm=self.norm, norm_ffn=self.norm, ffn=ffn,
        )  # fmt: skip

    def _rows(self, X: Array) -> Array:
        centred = X - X.mean(-1, keepdims=True)
        s = np.sqrt((centred**2).mean(-1, keepdims=True) + self.norm.eps)
        found: Array = self.norm.gain * centred / s
        return found

    def _ffn(self, X: Array) -> Array:
        found: Array = np.tanh(X) @ self.B.T + self.b
        return found

    def _attention(self, N: Array) -> Array:
        logits = N @ N.T
        if self.causal:
            logits = np.where(np.tri(len(N), dtype=bool), logits, -np.inf)
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        found: Array = weights / weights.sum(-1, keepdims=True)
        return found


def small_block(placement: Literal["pre", "post"], causal: bool, seed: int) -> LoopedBlock:
    """Drawn weights, d = 4, with a bias that gives equal tokens a direction to settle in."""
    rng = np.random.default_rng(seed)
    d = 4
    W, B = 0.4 * rng.standard_normal((2, d, d))
    norm = TokenNorm("layer", 1 + 0.3 * rng.standard_normal(d), np.zeros(d), 1e-6)
    return LoopedBlock(placement, W, B, rng.standard_normal(d), norm, causal)


def slopes(f: LoopedBlock, seed: int, n: int = 3, loops: int = 400) -> tuple[float, float]:
    """The slope of log HFC/LFC predicted (T12c, T12d) and measured after the last token of 1 c^T
    was moved by 1e-4 |c| along the leading eigenvector; c: where `loops` loops have led.

    Pre-LN: over log loops, by kappa/c - 1, from `loops` to twice as many. Post-LN: a loop, by the
    log of the largest modulus, over 20 loops.
    """
    c = np.random.default_rng([seed, 1]).standard_normal(len(f.b))
    for _ in range(loops):
        c = f(c[None])[0]
    at = f.linearised(c, n)
    values, vectors = np.linalg.eig(at.block(at.A[:, -1, -1] if f.causal else np.zeros(1)))
    k = int(np.argmax(np.abs(values)))
    size, top = float(np.linalg.norm(c)), float(np.abs(values[k]))
    X = np.tile(c, (n, 1))
    X[-1] += 1e-4 * size * vectors[:, k].real
    pre = f.placement == "pre"
    predicted = size * (top - 1) / float(np.linalg.norm(at.image - c)) - 1 if pre else np.log(top)
    before, number = _log_ratio(X), loops if pre else 20
    for _ in range(number):
        X = f(X)
    span = np.log(2) if pre else number
    return float(predicted), (_log_ratio(X) - before) / span


def _log_ratio(X: Array) -> float:
    mean = X.mean(0)
    hfc, lfc = np.linalg.norm(X - mean), np.sqrt(len(X)) * np.linalg.norm(mean)
    return float(np.log(hfc) - np.log(lfc))
