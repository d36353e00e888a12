"""
Rates, predicted against measured
=================================

HFC/LFC falls at r, the second singular value at r_sigma, and angles at its square (T5a, T5b). You
see a simulation as dots on the lines that the two spectra predict.
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

rng = np.random.default_rng(5)
logits = 2 * rng.standard_normal((8, 8))
logits = logits + logits.T
layer = oversmoothing.Layer(logits=logits, H=np.diag([0.9, 0.5, -0.3]))
depths = list(range(0, 401, 16))
run = layer.evolve(rng.standard_normal((8, 3)), depths).metrics()

pairs = layer.eigenpairs()
top = abs(pairs.dominant[0].multiplier)
r = layer.verdict().rate
# The second singular value is led by the largest two pairs that share neither h nor a.
products = [
    abs(p.multiplier * q.multiplier) for p in pairs for q in pairs if p.h != q.h and p.a != q.a
]
r_sigma = max(products) / top**2
print(f"r = {r:.4f}, r_sigma = {r_sigma:.4f}")

# %%
# Lines of these slopes through the last dot.
figure, axes = plt.subplots(figsize=(6.4, 4.2))
table = {"layer": depths}
for column, rate, colour, name in (
    ("log_hfc_lfc", r, "#0072b2", "HFC/LFC: r"),
    ("log_sigma2_sigma1", r_sigma, "#009e73", "σ₂/σ₁: r_σ"),
    ("log_one_minus_cos_abs_min", r_sigma**2, "#d55e00", "largest 1 - |cos|: r_σ²"),
):
    table[column] = measured = np.array(run[column])
    line = measured[-1] + np.log(rate) * (np.array(depths) - depths[-1])
    axes.plot(depths, measured, "o", color=colour, ms=4)
    axes.plot(depths, line, color=colour, label=name)
axes.set(xlabel="layer", ylabel="logarithm")
axes.legend()
figure.tight_layout()
oversmoothing.show(figure, table)
