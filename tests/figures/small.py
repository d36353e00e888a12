"""A small table of every figure, by the figure's own code: tiny models, few draws, no real inputs.

What is measured in seconds differs from run to run: pictures are of `timed_by_a_law` in its place.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from oversmoothing.experiments.digits.corruptions import SEVERITIES
from oversmoothing.experiments.study.protocol import protocol
from oversmoothing.experiments.study.study_runs import ROWS, write_rows
from oversmoothing.paper_figures import figure, models_shown
from oversmoothing.paper_figures.figure_base import Context
from oversmoothing.paper_figures.figures import costs, phase_diagram, remedies, stream_mixing
from oversmoothing.simulations.sweep.config import Config, make_config
from tests.support.tiny_models import study_row, tiny_config

SMALL_UNTRAINED = {"width": 64, "depth": 2, "heads": 1, "patch": 32}


def patched(patch: pytest.MonkeyPatch) -> None:
    """Everything that takes long, smaller."""
    small = partial(tiny_config, watch_every=4)
    patch.setattr(models_shown, "default_config", lambda name, seed: small(name))
    patch.setattr(models_shown, "require_accuracy", lambda model: None)
    patch.setattr(
        models_shown, "untrained_vit", partial(models_shown.untrained_vit, **SMALL_UNTRAINED)
    )
    patch.delenv("OVERSMOOTHING_DATA", raising=False)
    patch.setattr(remedies, "DRAWS", 3)
    for name, value in {"H_CELLS": 8, "MIX_CELLS": 4, "RUNS_H": 3, "RUNS_MIX": 2}.items():
        patch.setattr(stream_mixing, name, value)
    sweep = small_sweep()
    patch.setattr(phase_diagram, "configuration", lambda seed: sweep)
    patch.setattr(costs, "TOKENS", (6, 12))
    series = tuple(replace(each, sizes=each.sizes[:2]) for each in costs.SERIES)
    patch.setattr(costs, "SERIES", series)


def small_sweep() -> Config:
    """The sweep of the phase diagram on every sixth value, with two asymmetries."""
    whole = phase_diagram.configuration(0)
    axes = {name: list(values)[::6] for name, values in whole.axes.items()}
    axes["asymmetry"] = [0.0, 1.0]
    fixed = {name: whole.fixed[name] for name in ("attention", "value", "low", "n", "d")}
    return make_config({"fixed": fixed, "axes": axes, "measures": ["ratio"]})


def a_study(folder: Path, gain: float, error: float = 10.0, seeds: int = 40) -> Context:
    """Rows of both tables in which ViT- errs `gain` points less than ViT, ViT+ more, and gains
    half of that again under corruption."""
    rows = []
    for cell, planned in protocol().cells.values():
        moved = {"ord": 0.0, "plus": gain, "minus": -gain}.get(cell.design.form)
        if cell.tier != "core" or cell.task not in ("digits", "cifar100") or moved is None:
            continue
        if cell.design.start != "normal":
            continue
        for seed in range(min(seeds, planned)):
            own = error - 5 * cell.fraction + moved + 0.01 * seed + 0.001 * seed * moved
            rows.append(study_row(cell, seed, own))
            if cell.fraction == 1:
                rows[-1]["corruption"] = [own + (1 + 0.5 * moved) * s for s in SEVERITIES]
    (folder / "study").mkdir(exist_ok=True)
    write_rows(rows, folder / "study" / ROWS)
    return Context(folder, progress=False)


class Tables(dict[str, pd.DataFrame]):
    """Of each figure its small table, made when it is first asked for."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context = context
        a_study(context.results, 2.0)

    def __missing__(self, name: str) -> pd.DataFrame:
        with pytest.MonkeyPatch.context() as patch:
            patched(patch)
            self[name] = figure(name).data(self.context)
        return self[name]


def timed_by_a_law() -> dict[str, pd.DataFrame]:
    """Tables of the figures that measure time, with times that follow their laws: the same on every
    machine."""
    rows = []
    for series in costs.SERIES:
        rows += costs.growth_rows(series, [1e-3 * size**series.time for size in series.sizes])
    rows += [
        {"kind": "proof", "what": what, "variable": "n", "size": n, "seconds": 1e-3 * n**power,
         "ratio": n ** (power - yardstick), "verdict": said}
        for n in costs.TOKENS
        for what, power, yardstick, said in (
            ("verdict", 1, 1, "SMOOTHING"), ("certify", 2.2, 1, "SMOOTHING"), ("check", 2, 1, ""),
            ("forward", 0.5, 0.5, ""), ("enclose", 1.5, 0.5, ""),
        )
    ]  # fmt: skip
    return {"costs": pd.DataFrame(rows)}
