"""
The rank law
============

The rank of the limit is the maximum matching of the graph of dominant pairs (T4c). Here A has the
eigenvalue .4 three times. You see the effective rank end at min(3, d) where H = -I/2, so that
every pair dominates, and at 1 where the eigenvalues of H are distinct.
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

A = [["11/20" if i == j else "3/20" for j in range(4)] for i in range(4)]
rng = np.random.default_rng(0)
depths = list(range(41))

figure, axes = plt.subplots(figsize=(6.4, 3.8))
table = {"layer": depths}
for H, name in (
    ([["-1/2", 0], [0, "-9/10"]], "distinct, d = 2"),
    ([["-1/2", 0], [0, "-1/2"]], "repeated, d = 2"),
    ([["-1/2" if i == j else 0 for j in range(5)] for i in range(5)], "repeated, d = 5"),
):
    X0 = [[str(x) for x in row] for row in rng.standard_normal((4, len(H))).round(2)]
    layer = oversmoothing.Layer(A=A, H=H)
    exact = layer.verdict(X0=X0)
    table[name] = list(layer.evolve(X0, depths).metrics()["effective_rank"])
    axes.plot(depths, table[name], label=f"{name}: rank {exact.limit_rank}")
    print(f"{name}: {exact.verdict}, rank of the limit {exact.limit_rank}")
axes.set(xlabel="layer", ylabel="effective rank")
axes.legend()
figure.tight_layout()
oversmoothing.show(figure, table)
