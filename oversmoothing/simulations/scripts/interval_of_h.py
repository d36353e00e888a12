"""
Which h keeps tokens apart
==========================

One eigenvalue h of H, and a, the smallest eigenvalue of the attention of two tokens. Tokens stay
apart exactly for -2/(1 + a) < h < 0 (T2b). You see that region shaded, random pairs (h, a) as
dots in the colour of their exact verdict, and dashed [-1, 0), which keeps tokens apart for every a.
"""

from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

rng = np.random.default_rng(0)
colours = {"SMOOTHING": "#0072b2", "NON_SMOOTHING": "#d55e00", "TIE": "black"}
a = np.linspace(-0.99, 0.99, 300)

figure, axes = plt.subplots(figsize=(7.6, 4.4))
axes.fill_betweenx(a, np.maximum(-2 / (1 + a), -4), 0, color="#d55e00", alpha=0.18, lw=0)
table = {"h": [], "a": [], "verdict": []}
for _ in range(110):
    h, value = Fraction(int(rng.integers(-395, 96)), 100), Fraction(int(rng.integers(-94, 95)), 100)
    A = [[(1 + value) / 2, (1 - value) / 2], [(1 - value) / 2, (1 + value) / 2]]
    word = oversmoothing.verdict(A=A, H=[[h]]).verdict
    for column, entry in zip(table.values(), (float(h), float(value), word), strict=True):
        column.append(entry)
for word, colour in colours.items():
    chosen = [k for k, each in enumerate(table["verdict"]) if each == word]
    if chosen:
        points = [[table[name][k] for k in chosen] for name in ("h", "a")]
        axes.plot(*points, "o", ms=4, color=colour, label=f"{word}: {len(chosen)}")
low, high = np.array(table["h"]) > -2 / (1 + np.array(table["a"])), np.array(table["h"]) < 0
agree = (low & high) == (np.array(table["verdict"]) == "NON_SMOOTHING")
print(f"{agree.sum()} of {len(agree)} verdicts are as the region says")
for edge in (-1, 0):
    axes.axvline(edge, color="0.3", ls="--", lw=1)
axes.set(xlabel="h, the eigenvalue of H", ylabel="a, the smallest eigenvalue of A")
axes.set(xlim=(-4, 1), ylim=(-1, 1))
axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
figure.tight_layout()
oversmoothing.show(figure, table)
