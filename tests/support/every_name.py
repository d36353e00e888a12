"""Every public name as a typed user writes it: for `mypy --strict` (`make types`) and pyright.

It is read by the checkers and never run. tests/test_front_door.py holds that no name is missing.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import sympy
import torch
from matplotlib.figure import Figure

import oversmoothing
from oversmoothing.testing import check

tensor = torch.eye(2)
array = np.full((2, 2), 0.5)
small = array.astype(np.float32)
floats = [[0.75, 0.25], [0.25, 0.75]]
text = [["3/4", "1/4"], ["1/4", "3/4"]]
fractions = [[Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 2), Fraction(1, 2)]]
symbols = sympy.Matrix([[sympy.Symbol("h", real=True)]])
stack = np.full((3, 2, 2), 0.5)
images = torch.zeros(2, 3, 8, 8)


def answers() -> list[oversmoothing.Verdict]:
    found = [
        oversmoothing.verdict(A=A, H=[[-1.5]]) for A in (array, small, floats, text, fractions)
    ]
    found.append(oversmoothing.verdict(A=tensor, W=(tensor, tensor), X0=tensor, depth=[1, 2]))
    found.append(oversmoothing.verdict(logits=[[0, "-inf"], [1, 2]], W=tensor))
    found.append(oversmoothing.heads_verdict(A=stack, W=stack))
    case = oversmoothing.golden_case("GT4")
    print([each.rate for each in found], case.verdict, oversmoothing.__version__)
    return found


def layers() -> None:
    layer = oversmoothing.Layer(A=text, H=[["h"]])
    more = oversmoothing.Layer(heads=[(array, tensor), (tensor, (tensor, tensor))])
    region = layer.region(h=(-3, 1))
    conditions = oversmoothing.symbolic(text, symbols).verdict([["x"], ["y"]])
    oversmoothing.show(region.plot(), {"h": [1.0]}, out=None)
    print(more.core.n, conditions.smooths, layer.subs(h="1/2").certify(tensor, eps="1/100"))
    print(oversmoothing.operator(A=array, W=tensor).eigenpairs().dominant, layer.eigenpairs())


def runs() -> Sequence[oversmoothing.Trajectory]:
    attention = oversmoothing.FromState(W_Q=[[1.0]], W_K=tensor)
    weights = oversmoothing.PerLayer(lambda layer: np.eye(2) / (layer + 1))
    drawn = oversmoothing.Drawn(lambda rng: rng.normal(size=(2, 2)), seed=1)
    run = oversmoothing.evolve(X0=tensor, A=floats, W=array, depth=[0, 9], dtype=torch.float64)
    other = oversmoothing.evolve_heads(X0=array, attention=attention, weights=weights, depth=3)
    third = oversmoothing.evolve_heads(
        X0=array, attention=oversmoothing.Fixed(array), weights=drawn, depth=3
    )
    values: torch.Tensor = oversmoothing.metrics(array)["hfc_lfc"]
    print(values, oversmoothing.metrics(floats), run.metrics().shape)
    return [run, other, third]


def models(module: torch.nn.Module) -> oversmoothing.Report:
    described = oversmoothing.describe(module, images)
    opened = oversmoothing.open_model("a folder")
    report = oversmoothing.inspect(opened, images)
    stages: oversmoothing.Stages = oversmoothing.inspect_stages(module, images)
    change: oversmoothing.Comparison = oversmoothing.compare(report, stages.reports[0])
    print(change.summary(), oversmoothing.readings_of({"it": opened}, images))
    print(oversmoothing.ladder(described, [*images], [*images]))
    watcher = oversmoothing.Watcher(module, every=10)
    watcher.close()
    return report


def remedies(module: torch.nn.Module) -> None:
    other: oversmoothing.Reparameterised = oversmoothing.reparameterise(module, "free")
    print(other.check(), oversmoothing.value_projection("free", 4).forward)
    print(oversmoothing.parameterisation("free"), oversmoothing.remedies.AttnScale(0.5))
    print(oversmoothing.lasting_bound([array], [array], X0=array))


def claims() -> None:
    claim = oversmoothing.Claim("mine", ("a statement",))
    try:
        check(claim)
    except oversmoothing.InputError as error:
        print(error)
    print(oversmoothing.by.law, oversmoothing.draw.cases(), oversmoothing.given.of_state)
    print(oversmoothing.exact.matrix("1/2 1/2; 0 1"), oversmoothing.main(["--version"]), Figure)
