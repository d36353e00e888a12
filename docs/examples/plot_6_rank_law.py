"""
The rank law
============

The rank of the limit is the maximum matching of the graph of dominant pairs (T4c). Here A has the
eigenvalue .4 three times, so with H = -I/2 in d features every pair dominates, and the limit has
rank min(3, d). With distinct eigenvalues of H it has rank 1.
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

A = 0.4 * np.eye(4) + 0.15 * np.ones((4, 4))
rng = np.random.default_rng(0)

figure, axes = plt.subplots(figsize=(6.4, 3.8))
for H, name in (
    (np.diag([-0.5, -0.9]), "distinct, d = 2"),
    (-0.5 * np.eye(2), "repeated, d = 2"),
    (-0.5 * np.eye(5), "repeated, d = 5"),
):
    X0 = rng.standard_normal((4, len(H)))
    run = oversmoothing.evolve(X0=X0, A=A, H=H, depth=list(range(41)), method="plain")
    axes.plot(run.metrics()["effective_rank"], label=name)
    exact = oversmoothing.verdict(
        A=[["11/20" if i == j else "3/20" for j in range(4)] for i in range(4)],
        H=[[str(value) for value in row] for row in H.tolist()],
        X0=[[str(round(value, 2)) for value in row] for row in X0.tolist()],
    )
    print(f"{name}: {exact.verdict}, rank of the limit {exact.limit_rank}")
axes.set(xlabel="layer", ylabel="effective rank")
axes.legend()
figure.tight_layout()
