"""
Attention that follows the state
================================

In a network A is the softmax of X W_Q W_K^T X^T and changes with X. You see HFC/LFC of that run
beside the run with the first attention kept: the two part, and the eigenvalues of the first layer
alone predict the second.
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

rng = np.random.default_rng(0)
n, d = 8, 4
X0 = rng.standard_normal((n, d))
W_Q, W_K = rng.standard_normal((2, d, d))
depths = list(range(26))
scores = X0 @ W_Q @ W_K.T @ X0.T / np.sqrt(d)

figure, panels = plt.subplots(1, 2, figsize=(9.4, 3.8))
table = {"layer": depths}
for panel, h in zip(panels, (0.3, -0.3), strict=True):
    W = h * np.eye(d)
    frozen = oversmoothing.Layer(logits=scores, W=W)
    following = oversmoothing.evolve_heads(
        X0=X0, attention=oversmoothing.FromState(W_Q=W_Q, W_K=W_K), weights=W, depth=depths
    )
    runs = {
        "attention follows the state": following,
        "the first attention, kept": frozen.evolve(X0, depths),
    }
    for name, run in runs.items():
        table[f"h = {h}: {name}"] = values = run.metrics()["log_hfc_lfc"]
        panel.plot(depths, values, label=name)
    panel.set(xlabel="layer", title=f"h = {h}: kept, {frozen.verdict().verdict}")
panels[0].set_ylabel("log HFC/LFC")
panels[0].legend()
figure.tight_layout()
oversmoothing.show(figure, table)
