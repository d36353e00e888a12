"""
Tokens on a line that grow
==========================

Tokens on a line under X' = X + h A(X) X with V = I: right of 1 the largest token is proved to
keep a share of its size (Geshkovski et al. 2023; N-2305.05465-line). You see runs above the line
there; in the grey part the theorem says nothing.
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

rng = np.random.default_rng(0)
n, h, layers = 6, 1.0, 12
K = 2 * (n - 1) * (1 + h) / (np.e * (2 + h))
attention = oversmoothing.FromState(W_Q=[[1.0]], W_K=[[1.0]])

points = []
for size in np.geomspace(0.3, 5, 100):
    X = rng.uniform(-1, 1, (n, 1)) * size
    if X.max() <= 0:
        continue
    run = oversmoothing.evolve_heads(X0=X, attention=attention, weights=[[h]], depth=layers)
    last, exponent = run.X(1)
    z = float(last.max()) * 2.0 ** (float(exponent) - layers)  # X / (1 + h)^layers
    points.append((X.max() ** 2 / K, np.sign(z) * z**2 / K))
x, y = np.array(points).T
assert (y[x > 1] >= x[x > 1] - 1).all()

figure, axes = plt.subplots(figsize=(6.4, 4.2))
axes.plot(x, y, ".", ms=4, label="runs")
axes.plot([1, x.max()], [0, x.max() - 1], "k-", lw=1, label="bound")
axes.axvspan(x.min(), 1, color="0.9")
axes.set(xlabel="max(x)²/K at the start", ylabel=f"max(z)²/K after {layers} layers")
axes.legend()
figure.tight_layout()
oversmoothing.show(figure, {"start": x, "end": y})
