"""
Small cases, each in its plane
==============================

For each golden case the plane of an eigenvalue h of H: shaded where a single h keeps tokens apart
under this attention (T3b), with the eigenvalues of the case's own H as points. You see why most
cases end as they do; GT12, GT14 and GT19 are ties, and other things decide them.
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

names = [f"GT{k}" for k in (1, 2, 3, 4, 5, 8, 10, 11, 12, 14, 16, 18, 19)]
x, y = np.meshgrid(np.linspace(-4.6, 1.6, 240), np.linspace(-2.4, 2.4, 160))
plane = x + 1j * y

figure, panels = plt.subplots(3, 5, figsize=(10.6, 6.2), sharex=True, sharey=True)
table = {"case": [], "re_h": [], "im_h": [], "verdict": []}
for panel, name in zip(panels.flat, names, strict=False):
    case = oversmoothing.golden_case(name)
    A, H = (case.layer.given[key].written for key in ("A", "H"))
    word = oversmoothing.verdict(A=A, H=H).verdict
    a, h = (np.linalg.eigvals(np.array(matrix, float)) for matrix in (A, H))
    others = np.delete(a, np.argmin(abs(a - 1)))
    apart = np.max([abs(1 + plane * value) for value in others], axis=0) > abs(1 + plane) + 1e-12
    panel.contourf(x, y, apart, levels=[0.5, 1.5], colors=["#d55e00"], alpha=0.25)
    panel.plot(h.real, h.imag, "o", color="#0072b2", ms=5)
    panel.set_title(f"{name}: {word}", fontsize=8)
    for value in h:
        row = (name, value.real, value.imag, word)
        for column, entry in zip(table.values(), row, strict=True):
            column.append(entry)
for panel in panels.flat[len(names) :]:
    panel.axis("off")
for panel in panels[-1]:
    panel.set_xlabel("Re h")
for panel in panels[:, 0]:
    panel.set_ylabel("Im h")
figure.tight_layout()
oversmoothing.show(figure, table)
