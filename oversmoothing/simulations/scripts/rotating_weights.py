"""
Every layer sharpens, the product smooths
=========================================

The paper's recipe clips the eigenvalues of H to [-1, 0]. With weights that change by layer that
guarantees nothing (T7b): here each layer alone is NON_SMOOTHING, with eigenvalues -1 and -1/20,
and the layers together smooth, because the weights rotate by the angle of the 3-4-5 triangle. You
see the first layer, repeated, rise, and the layers in turn fall at the rate .9187.
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

A = np.array([[0.75, 0.25], [0.25, 0.75]])
turn = np.array([[0.8, -0.6], [0.6, 0.8]])
X0, depth = np.array([[1.0, 2.0], [3.0, 5.0]]), 60

weights = [np.diag([-1.0, -0.05])]
while len(weights) < depth:
    weights.append(turn @ weights[-1] @ turn.T)
print({str(oversmoothing.verdict(A=A, W=W).verdict) for W in weights})

# %%
# One layer repeated, against the layers in turn.
layers = list(range(depth + 1))
in_turn = oversmoothing.PerLayer(weights)
runs = {
    "the first layer, repeated": oversmoothing.Layer(A=A, W=weights[0]).evolve(X0, layers),
    "the layers in turn": oversmoothing.evolve_heads(
        X0=X0, attention=A, weights=in_turn, depth=layers
    ),
}
table = {"layer": layers} | {k: list(run.metrics()["log_hfc_lfc"]) for k, run in runs.items()}
figure, axes = plt.subplots(figsize=(6.4, 3.8))
axes.plot(table["the first layer, repeated"][:13], label="the first layer, repeated")
axes.plot(table["the layers in turn"], label="the layers in turn")
axes.plot(np.log(0.9187) * np.array(layers), "k:", label="rate .9187 a layer")
axes.set(xlabel="layer", ylabel="log HFC/LFC")
axes.legend()
figure.tight_layout()
oversmoothing.show(figure, table)
