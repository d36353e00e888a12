"""
Graphs in the place of attention
================================

The random walk of a graph with two labels, edges more often within labels (homophily above 1/2) or
between them (below). You see for each graph how far below 0 an h may go before nodes become alike,
-2/(1 + a) by its smallest eigenvalue a (T2b): edges between labels widen the interval.
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

rng = np.random.default_rng(0)
n = 40
same = np.equal.outer(np.arange(n) % 2, np.arange(n) % 2)
table = {"homophily": [], "a": [], "edge": [], "above": [], "below": []}
for wanted in np.linspace(0.05, 0.95, 61):
    chance = np.where(same, wanted, 1 - wanted) * 8 / (n / 2)
    edges = np.triu(rng.random((n, n)) < chance, 1)
    edges = edges | edges.T
    walk = (edges + np.eye(n)) / (edges.sum(1, keepdims=True) + 1)
    a = np.linalg.eigvals(walk).real.min()
    edge = -2 / (1 + a)
    verdicts = [oversmoothing.verdict(A=walk, H=[[edge * s]]).verdict for s in (0.99, 1.01)]
    row = ((edges & same).sum() / edges.sum(), a, edge, *verdicts)
    for column, value in zip(table.values(), row, strict=True):
        column.append(value)
right = sum(p == "NON_SMOOTHING" for p in table["above"])
print(f"1 % inside the interval: {right} of {len(table['a'])} keep nodes apart")
print(f"1 % outside: {sum(p == 'SMOOTHING' for p in table['below'])} become alike")

figure, axes = plt.subplots(figsize=(6.6, 4))
axes.plot(table["homophily"], table["edge"], "o", ms=4, label="-2/(1 + a), one graph each")
axes.axhline(-1, color="0.3", ls="--", lw=1, label="-1: safe on every graph")
axes.set(
    xlabel="homophily: share of edges within labels", ylabel="h below which nodes become alike"
)
axes.legend()
figure.tight_layout()
oversmoothing.show(figure, table)
