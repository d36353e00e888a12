"""
A tie under a magnifying glass
==============================

At h = -4/3 consensus and the other mode have the same modulus, 1/3 (T2b). You see the rate of
HFC/LFC cross 1 there, at three magnifications: however close, one side smooths and the other does
not, and at the tie itself, which only fractions can name, HFC/LFC keeps its size for ever.
"""

from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np

import oversmoothing

A = [["3/4", "1/4"], ["1/4", "3/4"]]
tie = Fraction(-4, 3)
table = {"magnification": [], "h": [], "rate_minus_1": [], "verdict": []}
figure, panels = plt.subplots(1, 3, figsize=(10.2, 3.6))
for panel, power in zip(panels, (1, 6, 12), strict=True):
    width = Fraction(1, 10**power)
    for k in range(-10, 11):
        h = tie + width * k / 10
        answer = oversmoothing.verdict(A=A, H=[[h]])
        excess = float(answer.rate.exact - 1)
        row = (10**power, float(h), excess, answer.verdict)
        for column, value in zip(table.values(), row, strict=True):
            column.append(value)
    last = slice(-21, None)
    offsets = np.linspace(-1, 1, 21)
    panel.axhline(0, color="0.7")
    panel.plot(offsets, np.array(table["rate_minus_1"][last]) * 10**power, ".-")
    panel.set(xlabel=f"(h + 4/3) × 10^{power}", title=f"magnified 10^{power} times")
panels[0].set_ylabel("(rate - 1) × magnification")
figure.tight_layout()
print(oversmoothing.verdict(A=A, H=[[tie]]))
print("as floats:", oversmoothing.verdict(A=[[0.75, 0.25], [0.25, 0.75]], H=[[-4 / 3]]).verdict)
oversmoothing.show(figure, table)
