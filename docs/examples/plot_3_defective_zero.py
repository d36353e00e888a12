"""
The defective zero
==================

All eigenvalues of H are 0, inside [-1, 0], and the tokens become alike all the same: H is a
Jordan block, LFC grows like L, and HFC stays (T2e, T6b; golden case GT12). The moduli tie, so only
exact input can tell.
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

answer = oversmoothing.verdict(
    A=[["1/2", "1/2"], ["1/2", "1/2"]], H=[[0, 1], [0, 0]], X0=[[1, 2], [3, 5]]
)
print(answer.verdict, answer.tends_to)
print(answer.reason)

# %%
# Not exponential: a straight line in log-log axes, of slope -1.
depths = np.unique(np.logspace(0, 3, 40).astype(int))
case = {
    "A": [[0.5, 0.5], [0.5, 0.5]],
    "X0": [[1.0, 2.0], [3.0, 5.0]],
    "depth": [0, *map(int, depths)],
}
figure, axes = plt.subplots(figsize=(6.4, 3.8))
for h, name in ((1.0, "Jordan block at 0"), (0.0, "H = 0")):
    H = [[0.0, h], [0.0, 0.0]]
    run = oversmoothing.evolve(H=H, **case).metrics()
    axes.loglog(run["depth"][1:], np.exp(run["log_hfc_lfc"][1:]), ".-", label=name)
axes.set(xlabel="layer", ylabel="HFC/LFC")
axes.legend()
figure.tight_layout()
