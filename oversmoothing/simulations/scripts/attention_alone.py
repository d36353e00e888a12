"""
Attention alone collapses doubly exponentially
==============================================

Two layers of attention without the residual, X' = A X W, against the bound (c D^2)^4 on the
diameter D of the tokens, c by the norms of the weights (Dong et al. 2021; N-2103.03404-doubly-
exponential). You see runs below the line; in the grey part the bound is above 1 and says nothing.
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

rng = np.random.default_rng(0)


def diameter(X):
    return max(np.linalg.norm(x - X, axis=1).max() for x in X)


points = []
for size in np.geomspace(0.05, 3, 100):
    X, M, W = rng.standard_normal((8, 4)) * size, *rng.standard_normal((2, 4, 4)) / 2
    c = np.linalg.norm(M, 2) * np.linalg.norm(W, 2) / 4
    # The logits are X M X^T: FromState divides by sqrt(r) = 2.
    attention = oversmoothing.FromState(W_Q=2 * M, W_K=np.eye(4))
    run = oversmoothing.evolve_heads(X0=X, attention=attention, weights=W, depth=2, residual=False)
    last, exponent = run.X(1)
    after = diameter(last.numpy()) * 2.0 ** float(exponent)
    points.append((c * diameter(X) ** 2, after / diameter(X)))
x, y = np.array(points).T
assert (y <= x**4).all()

figure, axes = plt.subplots(figsize=(6.4, 4.2))
line = np.geomspace(x.min(), x.max(), 50)
axes.loglog(x, y, ".", ms=4, label="runs")
axes.loglog(line, line**4, "k-", lw=1, label="bound")
axes.axvspan(1, x.max(), color="0.9")
axes.set(xlabel="c D²", ylabel="diameter after two layers / before", ylim=(y.min() / 2, 30))
axes.legend()
figure.tight_layout()
oversmoothing.show(figure, {"c_D2": x, "ratio": y})
