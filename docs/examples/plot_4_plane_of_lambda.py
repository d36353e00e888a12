"""
The plane of an eigenvalue of H
===============================

For which complex h does consensus lose to some mode of a given A? Exactly in the union of discs
D(a), one for each eigenvalue a (T3b). The disc on [-1, 0] lies within it for every A (T3c).
"""

import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(3)
shift = np.roll(np.eye(5), 1, axis=1)  # tokens that mostly attend to the next: a complex spectrum
logits = 2.2 * shift + 0.5 * rng.standard_normal((5, 5))
A = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
a = sorted(np.linalg.eigvals(A), key=abs)[:-1]

x, y = np.meshgrid(np.linspace(-2.6, 0.6, 400), np.linspace(-1.5, 1.5, 380))
h = x + 1j * y
largest = np.max([abs(1 + h * value) for value in a], axis=0)

figure, axes = plt.subplots(figsize=(6.8, 5))
axes.contourf(x, y, largest > abs(1 + h), levels=[0.5, 1.5], colors=["#56b4e9"], alpha=0.5)
angle = np.linspace(0, 2 * np.pi, 200)
for value in a:
    centre = -(1 - np.conj(value)) / (1 - abs(value) ** 2)
    radius = abs(1 - value) / (1 - abs(value) ** 2)
    axes.plot(
        *np.c_[
            np.real(centre + radius * np.exp(1j * angle)),
            np.imag(centre + radius * np.exp(1j * angle)),
        ].T,
        "k",
        lw=0.7,
    )
axes.plot(-0.5 + 0.5 * np.cos(angle), 0.5 * np.sin(angle), color="#d55e00", lw=2)
axes.plot([-1, 0], [0, 0], color="#d55e00", lw=2)
axes.set(
    xlabel="Re h",
    ylabel="Im h",
    aspect="equal",
    xlim=(-2.6, 0.6),
    ylim=(-1.5, 1.5),
    title="Blue: a mode beats consensus. Black: D(a). Orange: universal",
)
figure.tight_layout()
