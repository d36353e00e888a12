"""
The defective zero
==================

All eigenvalues of H are 0, inside [-1, 0], and tokens become alike all the same: H is a Jordan
block, LFC grows like L and HFC stays (T2e, T6b). The moduli tie, so only exact input can tell.
You see a straight line of slope -1 in logarithmic axes: not exponential, and HFC/LFC constant for
H = 0.
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

half = [["1/2", "1/2"], ["1/2", "1/2"]]
layers = {
    "Jordan block at 0": oversmoothing.Layer(A=half, H=[[0, 1], [0, 0]]),
    "H = 0": oversmoothing.Layer(A=half, H=[[0, 0], [0, 0]]),
}
answer = layers["Jordan block at 0"].verdict(X0=[[1, 2], [3, 5]])
print(answer.verdict, answer.tends_to)
print(answer.reason)
for pair in layers["Jordan block at 0"].eigenpairs():
    print(pair, pair.right)

# %%
# From 1 to 1000 layers.
depths = [0, *(int(L) for L in np.unique(np.logspace(0, 3, 40).astype(int)))]
figure, axes = plt.subplots(figsize=(6.4, 3.8))
table = {"layer": depths}
for name, layer in layers.items():
    run = layer.evolve([[1, 2], [3, 5]], depths).metrics()
    table[name] = list(np.exp(run["log_hfc_lfc"]))
    axes.loglog(depths[1:], table[name][1:], ".-", label=name)
axes.set(xlabel="layer", ylabel="HFC/LFC")
axes.legend()
figure.tight_layout()
oversmoothing.show(figure, table)
