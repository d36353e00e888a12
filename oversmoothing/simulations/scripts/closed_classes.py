"""
Several closed classes of tokens
================================

Tokens 1 and 2 attend to each other, tokens 3 and 4 to each other, and token 5 to all. A then has
the eigenvalue 1 twice, and consensus is not the only fixed family (T1d). You see each class agree
within itself, and the two classes keep apart for ever: HFC/LFC tends to a constant that X_0
decides.
"""

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

A = [
    ["1/2", "1/2", 0, 0, 0],
    ["1/4", "3/4", 0, 0, 0],
    [0, 0, "2/3", "1/3", 0],
    [0, 0, "1/2", "1/2", 0],
    ["1/5", "1/5", "1/5", "1/5", "1/5"],
]
X0 = [[3], [-1], [-2], [1], [0]]
layer = oversmoothing.Layer(A=A, H=[["1/2"]])
answer = layer.verdict(X0=X0)
print(answer)
for pair in layer.eigenpairs():
    print(pair)

depths = list(range(31))
run = layer.evolve(X0, depths)
tokens = np.array([run.X(k)[0].numpy()[:, 0] * 2.0 ** float(run.X(k)[1]) for k in depths])
tokens /= 1.5 ** np.array(depths)[:, None]  # beside the growth (1 + h)^L
figure, axes = plt.subplots(figsize=(6.4, 3.8))
table = {"layer": depths}
for token, colour in enumerate(["#0072b2", "#0072b2", "#d55e00", "#d55e00", "0.4"]):
    table[f"token {token + 1}"] = tokens[:, token]
    axes.plot(depths, tokens[:, token], color=colour, label=f"token {token + 1}")
axes.set(xlabel="layer", ylabel="token / (1 + h)^layer", title=f"{answer.verdict}")
axes.legend()
figure.tight_layout()
oversmoothing.show(figure, table)
