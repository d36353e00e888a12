"""
Rank, angles, inputs: three collapses
=====================================

Three things are called oversmoothing: the rank of X falls to 1, all tokens point the same way,
and different inputs end in the same state. You see a layer with each: left both rank and angles
collapse, in the middle the rank alone (tokens end on one line, in both directions), right no rank
collapses, and two inputs stay as far apart in direction as they were.
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

rng = np.random.default_rng(2)
A = 0.4 * np.eye(4) + 0.15 * np.ones((4, 4))  # eigenvalues 1 and .4, three times
layers = {
    "h = 1 and 1/2": np.diag([1.0, 0.5]),
    "h = -3/4 and -1/2": np.diag([-0.75, -0.5]),
    "h = -1/2 twice": np.diag([-0.5, -0.5]),
}
X0, Y0 = rng.standard_normal((2, 4, 2))
depths = list(range(0, 61, 2))


def direction(run, place):
    state = run.X(place)[0].numpy()
    return state / np.linalg.norm(state)


figure, panels = plt.subplots(1, 3, figsize=(10.4, 3.6), sharey=True)
table = {"layer": depths}
for panel, (name, H) in zip(panels, layers.items(), strict=True):
    layer = oversmoothing.Layer(A=A, H=H)
    first, second = layer.evolve(X0, depths), layer.evolve(Y0, depths)
    apart = [
        min(np.linalg.norm(direction(first, k) - s * direction(second, k)) for s in (1, -1))
        for k in range(len(depths))
    ]
    metrics = first.metrics()
    curves = {
        "effective rank - 1": metrics["effective_rank"] - 1,
        "1 - smallest cosine": 1 - metrics["cos_min"],
        "two inputs, apart": np.array(apart),
    }
    for word, values in curves.items():
        table[f"{name}: {word}"] = list(values)
        panel.plot(depths, values, label=word)
    panel.set(xlabel="layer", title=f"{name}: {layer.verdict().verdict}")
panels[0].legend()
figure.tight_layout()
oversmoothing.show(figure, table)
