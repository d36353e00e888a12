"""
A layer is two systems
======================

The matrix of a layer, I + H (x) A, for 5 tokens and 2 features. Left as it is, right in
coordinates that begin with what all tokens share. You see zeros below the first block (white):
differences between tokens never hear of what tokens share (T1c).
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

n, d = 5, 2
rng = np.random.default_rng(7)
layer = oversmoothing.Layer(
    logits=rng.standard_normal((n, n)), H=rng.standard_normal((d, d)) - np.eye(d)
)
operator = layer.operator
matrix = np.column_stack([operator @ unit for unit in np.eye(n * d)])

# Orthonormal, the first vector along (1, ..., 1); then all shared coordinates stand first.
basis, _ = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))
change = np.kron(np.eye(d), basis)
order = np.argsort(np.arange(n * d) % n != 0, kind="stable")
split = (change.T @ matrix @ change)[np.ix_(order, order)]
print("largest entry below the block of what tokens share:", f"{abs(split[d:, :d]).max():.0e}")

figure, panels = plt.subplots(1, 2, figsize=(9.4, 4.3))
for panel, shown, title in zip(
    panels, (matrix, split), ("as it is", "what is shared | differences"), strict=True
):
    size = np.where(abs(shown) > 1e-12, abs(shown), np.nan)
    image = panel.imshow(size, cmap="Blues", vmin=-0.4, vmax=2)
    panel.set(title=title, xticks=[], yticks=[])
panels[1].axhline(d - 0.5, color="#d55e00")
panels[1].axvline(d - 0.5, color="#d55e00")
figure.colorbar(image, ax=panels, label="size of an entry")
rows, columns = np.indices(split.shape)
table = {"row": rows.ravel(), "column": columns.ravel(), "as_it_is": matrix.ravel()}
oversmoothing.show(figure, table | {"split": split.ravel()})
