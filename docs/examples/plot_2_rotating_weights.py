"""
Every layer sharpens, the product smooths
=========================================

The paper's recipe clips the eigenvalues of H to [-1, 0]. With weights that change by layer that
guarantees nothing (T7b): here each layer alone is NON_SMOOTHING, its eigenvalues are -1 and -1/20,
and the layers together smooth, because the weights rotate by the angle of the 3-4-5 triangle.
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

A = np.array([[0.75, 0.25], [0.25, 0.75]])
R = np.array([[0.8, -0.6], [0.6, 0.8]])
depth = 60
weights, turn = [], np.eye(2)
for _ in range(depth):
    weights.append(turn @ np.diag([-1.0, -0.05]) @ turn.T)
    turn = R @ turn

print({oversmoothing.verdict(A=A, W=W).verdict for W in weights})

# %%
# One layer repeated, against the layers in turn.
X0 = np.array([[1.0, 2.0], [3.0, 5.0]])


def log_ratios(layers):
    """log HFC/LFC after each layer."""
    X, logs = X0.copy(), []
    for W in [None, *layers]:
        X = X if W is None else X + A @ X @ W
        spread = X - X.mean(axis=0)
        logs.append(np.log(np.linalg.norm(spread) / np.linalg.norm(X - spread)))
    return np.array(logs)


tied, turning = log_ratios([weights[0]] * depth), log_ratios(weights)
figure, axes = plt.subplots(figsize=(6.4, 3.8))
axes.plot(tied[:13], label="the first layer, repeated")
axes.plot(turning, label="the layers in turn")
axes.plot(np.log(0.9187) * np.arange(depth + 1), "k:", label="rate .9187 a layer")
axes.set(xlabel="layer", ylabel="log HFC/LFC")
axes.legend()
figure.tight_layout()
