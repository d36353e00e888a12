"""
Rates, predicted against measured
=================================

HFC/LFC falls at r, the second singular value at r_sigma, and angles at its square (T5a, T5b). The
lines are predictions from the spectra, the dots are a simulation.
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

rng = np.random.default_rng(5)
logits = 2 * rng.standard_normal((8, 8))
logits = logits + logits.T
A = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
H = np.diag([0.9, 0.5, -0.3])
depths = list(range(0, 61, 4))
run = oversmoothing.evolve(X0=rng.standard_normal((8, 3)), A=A, H=H, depth=depths).metrics()

a = np.sort(np.linalg.eigvals(A).real)
mu = abs(1 + np.outer(a, np.diag(H)))
r = mu[:-1].max() / mu[-1].max()
order = [(i, j) for i in range(8) for j in range(3)]
products = [mu[i, j] * mu[k, m] for i, j in order for k, m in order if i != k and j != m]
r_sigma = max(products) / mu.max() ** 2
print(f"r = {r:.4f}, r_sigma = {r_sigma:.4f}")

# %%
figure, axes = plt.subplots(figsize=(6.4, 4.2))
for column, rate, colour, name in (
    ("log_hfc_lfc", r, "#0072b2", "HFC/LFC: r"),
    ("log_sigma2_sigma1", r_sigma, "#009e73", "σ₂/σ₁: r_σ"),
    ("log_one_minus_cos_abs_min", r_sigma**2, "#d55e00", "largest 1 - |cos|: r_σ²"),
):
    measured = np.array(run[column])
    axes.plot(depths, measured, "o", color=colour, ms=4)
    axes.plot(
        depths,
        measured[-1] + np.log(rate) * (np.array(depths) - depths[-1]),
        color=colour,
        label=name,
    )
axes.set(xlabel="layer", ylabel="logarithm")
axes.legend()
figure.tight_layout()
