"""
A causal mask
=============

With a causal mask token i has the multiplier 1 + h A_ii of its own (T1h), and all tokens are
drawn to the first, which sees itself alone. You see their distances from the first token: for h =
1/2 all of them vanish beside it, for h = -1/2 each leaves it behind.
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

n = 5
logits = np.where(np.tri(n) > 0, np.random.default_rng(1).standard_normal((n, n)), -np.inf)
X0 = np.random.default_rng(2).standard_normal((n, 2))
depths = list(range(41))

figure, panels = plt.subplots(1, 2, figsize=(9.4, 3.8))
table = {"layer": depths}
for panel, h in zip(panels, (0.5, -0.5), strict=True):
    layer = oversmoothing.Layer(logits=logits, W=h * np.eye(2))
    run = layer.evolve(X0, depths)
    answer = layer.verdict()
    states = np.array([run.X(k)[0].numpy() for k in range(len(depths))])  # scaled by powers of 2
    for token in range(1, n):
        apart = np.linalg.norm(states[:, token] - states[:, 0], axis=1)
        table[f"h = {h}: token {token + 1}"] = values = apart / np.linalg.norm(states[:, 0], axis=1)
        panel.semilogy(depths, values, label=f"token {token + 1}")
    panel.set(xlabel="layer", title=f"h = {h}: {answer.verdict}, rate {answer.rate:.3f}")
panels[0].set_ylabel("|x_i - x_1| / |x_1|")
panels[1].legend()
figure.tight_layout()
oversmoothing.show(figure, table)
