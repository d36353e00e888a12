"""Random and adversarial layers against what is certified of every sequence of them (T7b, T13b).

Many sequences at a time in float64: a violation counts beyond what rounding can do, and is told
with the number of its sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

STEPS = 30
# A layer rounds by some n eps; bounds that the state attains are met to that.
_ROOM = 1e-9
_BATCH = 500


@dataclass(frozen=True)
class Found:
    """sequences: how many were tried; violations: (name, margin); tightest: of value / bound."""

    sequences: int
    violations: list[tuple[str, float]]
    tightest: float


def hunt(kind: str, count: int, seed: int, first: int = 0) -> Found:
    """`count` sequences from the number `first` on, whole batches at a time."""
    violations: list[tuple[str, float]] = []
    tightest, done = 0.0, 0
    for batch in range(first // _BATCH, -(-(first + count) // _BATCH)):
        rng = np.random.default_rng([seed, batch, len(kind)])
        share = HUNTS[kind](rng, _BATCH)
        tightest = max(tightest, float(share.max()))
        for k in np.flatnonzero(~(share <= 1 + _ROOM)):
            violations.append((f"{kind} {seed}/{batch}/{k}", float(share[k])))
        done += _BATCH
    return Found(done, violations, tightest)


def dobrushin(A: Array) -> Array:
    """max over pairs of rows of half the sum of |A_ij - A_kj|, [...]."""
    return np.asarray(np.abs(A[..., :, None, :] - A[..., None, :, :]).sum(-1).max((-1, -2)) / 2)


def diameter(X: Array) -> Array:
    """max ||x_i - x_k||_2 over rows, [...]."""
    return np.asarray(
        np.sqrt(((X[..., :, None, :] - X[..., None, :, :]) ** 2).sum(-1)).max((-1, -2))
    )


def norm(W: Array) -> Array:
    """Spectral norms, [...]."""
    return np.asarray(np.linalg.norm(W, 2, axis=(-2, -1)))


# ------------------------------------------------------------------------------------ attention


def attention_of(rng: np.random.Generator, x: Array, tau: Array) -> Array:
    """Row-stochastic [b, n, n], tau(A) <= tau [b]: drawn, or the worst for the state x [b, n]."""
    b, n = x.shape
    top, bottom = x.argmax(1), x.argmin(1)
    above = x >= x.mean(1, keepdims=True)
    own = np.broadcast_to(np.arange(n), (b, n))
    targets = np.stack(
        [
            np.repeat(top[:, None], n, 1), np.repeat(bottom[:, None], n, 1),
            np.where(above, bottom[:, None], top[:, None]),
            np.where(above, top[:, None], bottom[:, None]), own, rng.permuted(own, axis=1),
        ]
    )  # fmt: skip
    kind = rng.integers(0, len(targets) + 3, size=b)
    A = np.eye(n)[targets[np.minimum(kind, len(targets) - 1), np.arange(b)]]
    sharp = 10.0 ** rng.uniform(-1, 1.5, size=(b, 1, 1))
    logits = sharp * rng.standard_normal((b, n, n))
    drawn = np.exp(logits - logits.max(-1, keepdims=True))
    drawn /= drawn.sum(-1, keepdims=True)
    A = np.where((kind >= len(targets))[:, None, None], drawn, A)
    share = np.minimum(1.0, tau / np.maximum(dobrushin(A), 1e-300))[:, None, None]
    # Towards one row for all: the mean, or the one that all attend to.
    common = np.where(
        (rng.random(b) < 0.5)[:, None, None], np.full((b, 1, n), 1 / n), np.eye(n)[top][:, None, :]
    )
    return np.asarray(share * A + (1 - share) * common)


def one_feature(rng: np.random.Generator, b: int) -> Array:
    """h_l in [-s, 0], s < 2/(1+tau): |m|/osc <= max(u_0, k s/(2 - s(1+tau))), several heads too."""
    n = int(rng.integers(2, 7))
    tau = rng.choice([0.0, 0.3, 0.7, 0.95, 0.999], size=b)
    s = 1 + (2 / (1 + tau) - 1) * rng.choice([0.0, 0.0, 0.5, 0.95], size=b)
    k = 1 - 1 / n
    x = rng.standard_normal((b, n)) + rng.choice([0.0, 1.0, 30.0], size=(b, 1))
    bound = np.maximum(_ratio(x), k * s / (2 - s * (1 + tau)))
    worst = np.zeros(b)
    for _ in range(STEPS):
        h = -s * rng.choice([0.0, 0.5, 1.0, 1.0], size=b)
        cut = rng.random(b)
        moved = sum(
            part[:, None] * np.einsum("bij,bj->bi", attention_of(rng, x, tau), x)
            for part in (h * cut, h * (1 - cut))
        )
        x = x + moved
        x = x / np.maximum(np.abs(x).max(1, keepdims=True), 1e-300)
        hfc = np.linalg.norm(x - x.mean(1, keepdims=True), axis=1)
        lfc = np.sqrt(n) * np.abs(x.mean(1))
        worst = np.maximum(worst, np.maximum(_ratio(x) / bound,
                                             lfc / (bound * np.sqrt(2 * n) * hfc)))  # fmt: skip
    return worst


def _ratio(x: Array) -> Array:
    return np.asarray(np.abs(x.mean(1)) / (x.max(1) - x.min(1)))


def matrix_form(rng: np.random.Generator, b: int) -> Array:
    """||I + S|| <= r, sum ||W_h|| <= w, r + tau w < 1: ||m||/diam <= max(u_0, k w/(1-tau w-r))."""
    n, d, heads = int(rng.integers(2, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    tau = rng.choice([0.0, 0.2, 0.5, 0.8], size=b)
    k = 1 - 1 / n
    X = rng.standard_normal((b, n, d)) + rng.choice([0.0, 3.0], size=(b, 1, 1))
    # All layers obey one r and one w: W_h = -share_h (q I + c G), ||G|| = 1.
    q = rng.uniform(0.5, 1.0, size=b)
    c = q * (1 - tau) / (1 + tau) * rng.choice([0.0, 0.5, 0.95], size=b)
    r, w = np.abs(1 - q) + c, q + c
    keep = r + tau * w < 0.999
    bound = np.maximum(_matrix_ratio(X), k * w / np.where(keep, 1 - tau * w - r, 1.0))
    worst = np.zeros(b)
    for _ in range(STEPS):
        G = rng.standard_normal((b, d, d))
        G /= norm(G)[:, None, None]
        shares = rng.dirichlet(np.ones(heads), size=b)
        W = -(q[:, None, None] * np.eye(d) + c[:, None, None] * G)
        assert (norm(np.eye(d) + W) <= r * (1 + 1e-12)).all() and (norm(W) <= w * (1 + 1e-12)).all()
        direction = X[..., int(rng.integers(d))]
        X = X + sum(
            shares[:, h, None, None] * (attention_of(rng, direction, tau) @ X @ W)
            for h in range(heads)
        )
        X = X / np.maximum(np.abs(X).max((1, 2), keepdims=True), 1e-300)
        hfc = np.linalg.norm(X - X.mean(1, keepdims=True), axis=(1, 2))
        lfc = np.sqrt(n) * np.linalg.norm(X.mean(1), axis=1)
        worst = np.maximum(worst, np.maximum(_matrix_ratio(X) / bound,
                                             lfc / (bound * np.sqrt(2 * n) * hfc)))  # fmt: skip
    return np.asarray(np.where(keep, worst, 0.0))


def _matrix_ratio(X: Array) -> Array:
    return np.asarray(np.linalg.norm(X.mean(1), axis=1) / diameter(X))


# --------------------------------------------------------------------------------------- mixing


def mixing_of(rng: np.random.Generator, X: Array) -> Array:
    """Row-stochastic R [b, s, s]: drawn, doubly stochastic, permutations, or chosen by the state.

    X [b, s, f]. Adversarial ones send streams to the two that are farthest apart.
    """
    b, s, _ = X.shape
    apart = np.linalg.norm(X[:, :, None] - X[:, None], axis=-1).reshape(b, -1).argmax(1)
    far, near = apart // s, apart % s
    pick = np.where(rng.random((b, s)) < 0.5, far[:, None], near[:, None])
    worst = np.eye(s)[pick]
    shuffled = np.eye(s)[rng.permuted(np.broadcast_to(np.arange(s), (b, s)), axis=1)]
    mixed = rng.dirichlet(np.full(s, 0.3), size=(b, s))
    weight = rng.random((b, 1, 1))
    doubly = weight * np.eye(s) + (1 - weight) * shuffled
    kinds = np.stack([worst, shuffled, mixed, doubly, 0.9 * np.eye(s) + 0.1 * mixed])
    R = kinds[rng.integers(len(kinds), size=b), np.arange(b)]
    lazy = rng.choice([0.0, 0.1, 0.6], size=(b, 1, 1))
    return np.asarray((1 - lazy) * R + lazy / s)


def streams_agree(rng: np.random.Generator, b: int) -> Array:
    """p = 1, any branch: max ||x_k - x_l|| <= tau(R_L ... R_1) times what it was, and prod tau."""
    s, f = int(rng.integers(2, 7)), int(rng.integers(1, 6))
    X = rng.standard_normal((b, s, f))
    start = diameter(X)
    product = np.broadcast_to(np.eye(s), (b, s, s))
    each, worst, size = np.ones(b), np.zeros(b), np.abs(X).max((1, 2))
    for _ in range(STEPS):
        R = mixing_of(rng, X)
        # Along the largest difference, from any of the streams, or large and unrelated.
        branch = X[:, :1] - X[:, -1:] if rng.random() < 0.5 else rng.standard_normal((b, 1, f)) * 9
        X = R @ X + branch
        size = np.maximum(size, np.abs(X).max((1, 2)))
        product, each = R @ product, each * dobrushin(R)
        together = dobrushin(product)
        # What rounding of the states themselves leaves of equal streams.
        dust = 1e-13 * size
        worst = np.maximum(worst, (diameter(X) - dust) / (together * start + 1e-300 + dust))
        worst = np.maximum(worst, (together - 1e-14) / np.maximum(each, 1e-300) * (each > 1e-13))
    return worst


def streams_apart(rng: np.random.Generator, b: int) -> Array:
    """Any p: max ||x_k - x_l|| becomes at most tau(R) times it + (max p - min p) ||branch||."""
    s, f = int(rng.integers(2, 7)), int(rng.integers(1, 6))
    X = rng.standard_normal((b, s, f))
    worst = np.zeros(b)
    for _ in range(STEPS):
        R, p = mixing_of(rng, X), rng.standard_normal((b, s))
        q = rng.standard_normal((b, 1, s))
        branch = np.tanh(q @ X) * 10.0 ** rng.uniform(-2, 1, size=(b, 1, 1))
        before = diameter(X)
        X = R @ X + p[:, :, None] * branch
        bound = dobrushin(R) * before + np.ptp(p, axis=1) * np.linalg.norm(branch[:, 0], axis=1)
        worst = np.maximum(worst, diameter(X) / np.maximum(bound, 1e-12 * np.abs(X).max((1, 2))))
        X = X / np.maximum(np.abs(X).max((1, 2), keepdims=True), 1.0)
    return worst


HUNTS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "one-feature": one_feature,
    "matrix": matrix_form,
    "streams": streams_agree,
    "streams-any-p": streams_apart,
}
