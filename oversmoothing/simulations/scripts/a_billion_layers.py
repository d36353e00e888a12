"""
A billion layers in closed form
===============================

Depth costs nothing where the spectra are known: X_L is read off the eigenbases (T11). You see
HFC/LFC of a layer close to a tie over nine decades of depth: flat for a million layers, and then
it falls by its rate, 1 - 4.5e-8 a layer. A run of a thousand layers says nothing about that.
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

A = [[0.75, 0.25], [0.25, 0.75]]
h = -4 / 3 - 1e-8
depths = [0, *(int(L) for L in np.unique(np.geomspace(1, 1e9, 60).astype(np.int64)))]
layer = oversmoothing.Layer(A=A, H=[[h]])
run = layer.evolve([[1.0], [2.0]], depths)
answer = layer.verdict()
print(answer)
print("method:", run.method)

table = {"layer": depths, "log_hfc_lfc": list(run.metrics()["log_hfc_lfc"])}
figure, axes = plt.subplots(figsize=(6.4, 3.8))
start = table["log_hfc_lfc"][0]
axes.semilogx(depths[1:], np.array(table["log_hfc_lfc"][1:]) - start, ".", label="in closed form")
predicted = np.array(depths[1:], dtype=float) * np.log(answer.rate)
axes.semilogx(depths[1:], predicted, label="layers × log rate")
axes.set(
    xlabel="layer", ylabel="log HFC/LFC, from the start", title=f"h = -4/3 - 1e-8: {answer.verdict}"
)
axes.legend()
figure.tight_layout()
oversmoothing.show(figure, table)
