"""
Attention without its mean
==========================

A remedy subtracts the average attention, A - 11^T/n. With one eigenvalue h of H and one a of A,
consensus then has the multiplier 1 instead of 1 + h (N-2410.07799-removal). You see that for -1
<= h < 0 the subtraction smooths what A alone does not, and for h > 0 it is the other way round.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import BoundaryNorm, ListedColormap

import oversmoothing

h, a = np.meshgrid(np.linspace(-3, 1, 201), np.linspace(0, 1, 101)[1:-1])
with_mean, without = np.abs(1 + h * a) < np.abs(1 + h), np.abs(1 + h * a) < 1

# The same from the theory, at a few points of the picture.
for at in (-2.5, -0.5, 0.5):
    A = [[0.75, 0.25], [0.25, 0.75]]  # a = 1/2
    smooths = oversmoothing.verdict(A=A, H=[[at]]).verdict == "SMOOTHING"
    assert smooths == (abs(1 + at / 2) < abs(1 + at))
    print(f"h = {at}, a = 1/2: A alone {'smooths' if smooths else 'does not smooth'}")

figure, axes = plt.subplots(figsize=(6.4, 4.2))
colours = ListedColormap(["#f2f2f2", "#9ecae1", "#fdae6b", "#bcbddc"])
shown = axes.pcolormesh(
    h, a, with_mean + 2 * without, cmap=colours, norm=BoundaryNorm(range(5), 4), rasterized=True
)
axes.set(xlabel="h", ylabel="a", title="What smooths")
bar = figure.colorbar(shown, ax=axes, ticks=[0.5, 1.5, 2.5, 3.5])
bar.ax.set_yticklabels(["none", "A alone", "A - 11ᵀ/n alone", "both"])
figure.tight_layout()
middle = len(h) // 2
columns = {"h": h[middle], "a": a[middle], "A_smooths": with_mean[middle]}
oversmoothing.show(figure, columns | {"without_mean_smooths": without[middle]})
