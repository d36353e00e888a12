"""
The plane of an eigenvalue of H
===============================

For which complex h does consensus lose to some mode of a given A? Exactly in the union of discs
D(a), one for each eigenvalue a (T3b). There tokens stay apart: you see the union in orange, the
rims of the discs in black. Elsewhere, in blue, tokens become alike. The disc on the diameter
[-1, 0] (thick) lies within the union for every A (T3c).
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

rng = np.random.default_rng(3)
shift = np.roll(np.eye(5), 1, axis=1)  # tokens that mostly attend to the next: a complex spectrum
logits = 2.2 * shift + 0.5 * rng.standard_normal((5, 5))
a = oversmoothing.verdict(logits=logits, H=[[1.0]]).attention.values

x, y = np.meshgrid(np.linspace(-2.6, 0.6, 400), np.linspace(-1.5, 1.5, 380))
h = x + 1j * y
largest = np.max([abs(1 + h * value) for value in a], axis=0)

figure, axes = plt.subplots(figsize=(6.8, 5))
colours = ["#9ecae1", "#fdae6b"]  # as everywhere: smooths, does not smooth
axes.contourf(x, y, largest > abs(1 + h), levels=[-0.5, 0.5, 1.5], colors=colours)
circle = np.exp(1j * np.linspace(0, 2 * np.pi, 200))
centres = -(1 - a.conj()) / (1 - abs(a) ** 2)
radii = abs(1 - a) / (1 - abs(a) ** 2)
for centre, radius in zip(centres, radii, strict=True):
    axes.plot((centre + radius * circle).real, (centre + radius * circle).imag, "k", lw=0.7)
axes.plot(-0.5 + 0.5 * circle.real, 0.5 * circle.imag, color="#d55e00", lw=2)
axes.plot([-1, 0], [0, 0], color="#d55e00", lw=2)
axes.set(xlabel="Re h", ylabel="Im h", aspect="equal", xlim=(-2.6, 0.6), ylim=(-1.5, 1.5))
axes.set_title("Orange: tokens stay apart. Blue: they become alike. Thick: apart for every A")
figure.tight_layout()
columns = {"re_a": a.real, "im_a": a.imag, "re_centre": centres.real, "im_centre": centres.imag}
oversmoothing.show(figure, columns | {"radius": radii})
