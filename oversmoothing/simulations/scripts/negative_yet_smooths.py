"""
Negative, and yet it smooths
============================

One eigenvalue h of H over attention with the eigenvalue a = 1/2. Tokens become alike for h > 0,
and again below the threshold -2/(1 + a) = -4/3 (T2b): you see HFC/LFC fall for h = 1/2 and h =
-3/2, stay at the threshold, and grow for h = -1/2.
"""

from fractions import Fraction

import matplotlib.pyplot as plt

import oversmoothing

A = [["3/4", "1/4"], ["1/4", "3/4"]]
depths = list(range(21))

figure, axes = plt.subplots(figsize=(6.4, 3.8))
table = {"layer": depths}
for h in ("1/2", "-1/2", "-4/3", "-3/2"):
    layer = oversmoothing.Layer(A=A, H=[[h]])
    answer = layer.verdict(X0=[[1], [2]])
    table[f"h = {h}"] = list(layer.evolve([[1], [2]], depths).metrics()["log_hfc_lfc"])
    axes.plot(depths, table[f"h = {h}"], ".-", label=f"h = {h}: {answer.verdict}")
    print(f"h = {h}: rate {answer.rate.text()} a layer, |1 + h| = {abs(1 + Fraction(h))}")
axes.set(xlabel="layer", ylabel="log HFC/LFC", title="One eigenvalue h of H, a = 1/2")
axes.legend()
figure.tight_layout()
oversmoothing.show(figure, table)

# %%
# h = -3/2 smooths faster than h = 1/2: its rate is 1/2 a layer against 5/6.
