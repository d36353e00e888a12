"""
The region that smooths, from symbols
=====================================

A layer with parameters: attention of two tokens with the eigenvalue a, and an H that turns by a
complex pair h ± ik. The verdict is a condition, (1 + a)(h² + k²) + 2h > 0: tokens become alike
outside a disc. You see the disc for three values of a, bounded by the zeros of that polynomial.
"""

import matplotlib.pyplot as plt
import sympy

import oversmoothing

a, h, k = sympy.symbols("a h k", real=True)
A = [[(1 + a) / 2, (1 - a) / 2], [(1 - a) / 2, (1 + a) / 2]]
layer = oversmoothing.Layer(A=A, H=[[h, k], [-k, h]])
verdict = layer.verdict()
print(verdict)
print(verdict.latex())
print("determinant of the operator:", layer.symbolic().determinant)

region = layer.region(h=(-3, 1), k=(-2, 2), a=(-1, 1))
cells = [cell for each in region.slices for cell in each.cells]
table = {str(name): [cell.point[name] for cell in cells] for name in (a, h, k)}
table["verdict"] = [cell.outcome for cell in cells]
figure = plt.figure(region.plot())
oversmoothing.show(figure, table)
