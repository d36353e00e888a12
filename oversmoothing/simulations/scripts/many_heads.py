"""
Many heads, one operator
========================

I + sum_h H_h (x) A_h of several heads is no Kronecker product, and averaging the heads is not
what a layer does. You see the measured fall of HFC/LFC, the rate of the operator of all heads
together, and the rate that averaged heads would give, which is another.
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

rng = np.random.default_rng(4)
n, d, count = 8, 4, 3
A = np.array([rng.dirichlet(np.full(n, 0.3), size=n) for _ in range(count)])
W = rng.standard_normal((count, d, d)) / 3
layer = oversmoothing.Layer(heads=list(zip(A, W, strict=True)))
together = layer.verdict()
averaged = oversmoothing.verdict(A=A.mean(axis=0), W=W.sum(axis=0))
print(together)
print(f"averaged heads: {averaged.verdict}, rate {averaged.rate:.4f}")

depths = list(range(41))
measured = np.array(layer.evolve(rng.standard_normal((n, d)), depths).metrics()["log_hfc_lfc"])
figure, axes = plt.subplots(figsize=(6.4, 3.8))
axes.plot(depths, measured, ".", label="measured")
table = {"layer": depths, "measured": measured}
for name, rate in (("all heads together", together.rate), ("averaged heads", averaged.rate)):
    table[name] = measured[0] + np.log(rate) * np.array(depths)
    axes.plot(depths, table[name], label=f"{name}: rate {rate:.3f}")
axes.set(xlabel="layer", ylabel="log HFC/LFC")
axes.legend()
figure.tight_layout()
oversmoothing.show(figure, table)
