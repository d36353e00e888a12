"""
Negative, and yet it smooths
============================

A negative eigenvalue of H does not exclude oversmoothing: below -2/(1 + a) consensus wins again
(T2b). Four values of h over the same attention with a = 1/2, whose threshold is -4/3.
"""

from fractions import Fraction

import matplotlib.pyplot as plt

import oversmoothing

A = [["3/4", "1/4"], ["1/4", "3/4"]]
depths = list(range(0, 21))

figure, axes = plt.subplots(figsize=(6.4, 3.8))
for h in ("1/2", "-1/2", "-4/3", "-3/2"):
    answer = oversmoothing.verdict(A=A, H=[[h]], X0=[[1], [2]])
    run = oversmoothing.evolve(
        X0=[[1.0], [2.0]], A=[[0.75, 0.25], [0.25, 0.75]], H=[[float(Fraction(h))]], depth=depths
    )
    axes.plot(depths, run.metrics()["log_hfc_lfc"], ".-", label=f"h = {h}: {answer.verdict}")
axes.set(xlabel="layer", ylabel="log HFC/LFC", title="One eigenvalue h of H, a = 1/2")
axes.legend()
figure.tight_layout()

# %%
# h = -3/2 smooths faster than h = 1/2: its rate is 1/2 a layer against 5/6.
