"""
Where three theorems hold
=========================

Bounds beside runs. Left: two layers of attention alone, against (c D^2)^4, which says something
below 1 only (N-2103.03404-doubly-exponential). Middle: tokens on a line that grow under V = I;
right of 1 the largest is proved to keep a share (N-2305.05465-line). Right: with one eigenvalue h
of H and one a of A, where HFC/LFC -> 0 with A and with A - 11^T/n (N-2410.07799-removal).
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import BoundaryNorm, ListedColormap

rng = np.random.default_rng(0)


def attention(X, M):
    logits = X @ M @ X.T
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def diameter(X):
    return max(np.linalg.norm(x - X, axis=1).max() for x in X)


figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10.2, 3.6))

# Attention alone: X' = A X W, the same M and W in both layers.
found = []
for size in np.geomspace(0.05, 3, 400):
    X, M, W = rng.standard_normal((8, 4)) * size, *rng.standard_normal((2, 4, 4)) / 2
    c = np.linalg.norm(M, 2) * np.linalg.norm(W, 2) / 4
    Z = X
    for _ in range(2):
        Z = attention(Z, M) @ Z @ W
    found.append((c * diameter(X) ** 2, diameter(Z) / diameter(X)))
x, y = np.array(found).T
line = np.geomspace(x.min(), x.max(), 50)
assert (y <= x**4).all()
left.loglog(x, y, ".", ms=3, label="runs")
left.loglog(line, line**4, "k-", lw=1, label="bound")
left.axvspan(1, x.max(), color="0.9")
left.set(xlabel="c D²", ylabel="diameter after two layers / before", ylim=(y.min() / 2, 30))
left.set_title("Attention alone")
left.legend()

# Growing tokens, V = I, h = 1, m = 1: z = X / 2^L after 12 layers.
n, h = 6, 1.0
K = 2 * (n - 1) * (1 + h) / (np.e * (2 + h))
found = []
for size in np.geomspace(0.3, 5, 400):
    X = rng.uniform(-1, 1, (n, 1)) * size
    start = X.max()
    if start <= 0:
        continue
    for _ in range(12):
        X = X + h * attention(X, np.eye(1)) @ X
    found.append((start**2 / K, np.sign(X.max()) * (X.max() / 2.0**12) ** 2 / K))
x, y = np.array(found).T
assert (y[x > 1] >= x[x > 1] - 1).all()
middle.plot(x, y, ".", ms=3, label="runs")
middle.plot([1, x.max()], [0, x.max() - 1], "k-", lw=1, label="bound")
middle.axvspan(x.min(), 1, color="0.9")
middle.set(xlabel="m max(x)²/K at the start", ylabel="m max(z)²/K after 12 layers")
middle.set_title("Tokens that grow")
middle.legend()

# One h, one 0 < a < 1: consensus has 1 + h with A and 1 without 11^T/n; the other mode 1 + h a.
H, a = np.meshgrid(np.linspace(-3, 1, 401), np.linspace(0, 1, 201)[1:-1])
with_a, without = np.abs(1 + H * a) < np.abs(1 + H), np.abs(1 + H * a) < 1
colours = ListedColormap(["#f2f2f2", "#9ecae1", "#fdae6b", "#bcbddc"])
shown = right.pcolormesh(H, a, with_a + 2 * without, cmap=colours, norm=BoundaryNorm(range(5), 4))
right.set(xlabel="h", ylabel="a", title="What smooths")
bar = figure.colorbar(shown, ax=right, ticks=[0.5, 1.5, 2.5, 3.5])
bar.ax.set_yticklabels(["none", "A alone", "A - 11ᵀ/n alone", "both"])
figure.tight_layout()

# %%
# In the grey parts of the first two pictures the theorem says nothing; runs still do something
# there. On the right, for -1 <= h < 0 the subtraction smooths what A alone does not, and for h > 0
# it is the other way round.
