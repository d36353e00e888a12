"""A small table of every figure, by the figure's own code: tiny models, few draws, no real inputs.

What is measured in seconds differs from run to run: pictures are of `timed_by_a_law` in its place.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

import oversmoothing.paper_figures.digits_models
from oversmoothing.experiments.study.protocol import protocol
from oversmoothing.experiments.study.study_files import folder_name
from oversmoothing.experiments.study.table1_models import untrained_vit
from oversmoothing.paper_figures import (
    FIGURES,
    paper_models,
    phase_diagram,
    remedy_shifts,
    scaling,
    stream_mixing,
)
from oversmoothing.paper_figures.costs import growth as bench, proofs
from oversmoothing.paper_figures.figure_base import Context
from oversmoothing.simulations.sweep.config import Config, make_config
from tests.support.tiny_models import tiny_config

SMALL_UNTRAINED = {"width": 64, "depth": 2, "heads": 1, "patch": 32}


def module_of(name: str) -> ModuleType:
    """The module of a figure."""
    return import_module(FIGURES[name])


def patched(patch: pytest.MonkeyPatch) -> None:
    """Everything that takes long, smaller."""
    here = oversmoothing.paper_figures.digits_models
    patch.setattr(here, "default_config", lambda name, seed: tiny_config(name, watch_every=4))
    patch.setattr(here, "require_accuracy", lambda model: None)
    patch.setattr(paper_models, "untrained_vit", partial(untrained_vit, **SMALL_UNTRAINED))
    patch.delenv("OVERSMOOTHING_DATA", raising=False)
    patch.setattr(remedy_shifts, "DRAWS", 3)
    for name, value in {"H_CELLS": 8, "MIX_CELLS": 4, "RUNS_H": 3, "RUNS_MIX": 2}.items():
        patch.setattr(stream_mixing, name, value)
    small = small_sweep()
    patch.setattr(phase_diagram, "configuration", lambda seed: small)
    patch.setattr(proofs, "SIZES", {"n": (6, 12), "d": (4, 8)})
    patch.setattr(scaling, "measure", lambda progress=False: scaling_of_two_sizes())


def scaling_of_two_sizes() -> pd.DataFrame:
    """Every series at its two smallest sizes, measured as the figure does."""
    rows = []
    for k, whole in enumerate(bench.SERIES):
        series = replace(whole, sizes=whole.sizes[:2])
        found = [bench.measure_one(k, size) for size in series.sizes]
        for place, quantity in enumerate(bench.QUANTITIES):
            rows += bench.rows(series, quantity, [each[place] for each in found])
    return pd.DataFrame(rows)


def small_sweep() -> Config:
    """The sweep of the phase diagram on every sixth value, with two asymmetries."""
    whole = phase_diagram.configuration(0)
    axes = {name: list(values)[::6] for name, values in whole.axes.items()}
    axes["asymmetry"] = [0.0, 1.0]
    fixed = {name: whole.fixed[name] for name in ("attention", "value", "low", "n", "d")}
    return make_config({"fixed": fixed, "axes": axes, "measures": ["ratio"]})


def a_study(folder: Path, gain: float, data: str = "digits") -> Context:
    """Runs of both tables in which ViT- errs `gain` points less than ViT, and ViT+ more."""
    chosen, rows = protocol(data), []
    shift = {"vit": 0.0, "vit+": gain, "vit-": -gain}
    for run in chosen.runs(["data-efficiency", "corruption"]):
        config = run.config
        if config.variant not in shift or config.tied:
            continue
        error = 10 - 5 * config.fraction + shift[config.variant] + 0.01 * run.seed
        errors = {f"error_at_{severity}": error + severity for severity in range(6)}
        known = {"run": run.name, "test_error": error, "corrupted_error": error + 3, **errors}
        rows.append({**config.model_dump(), **known})
    (folder / folder_name(chosen)).mkdir()
    pd.DataFrame(rows).to_csv(folder / folder_name(chosen) / "runs.csv", index=False)
    return Context(folder, progress=False)


class Tables(dict[str, pd.DataFrame]):
    """Of each figure its small table, made when it is first asked for."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context = context
        for data in ("digits", "cifar100"):
            a_study(context.results, 1.0, data)

    def __missing__(self, name: str) -> pd.DataFrame:
        with pytest.MonkeyPatch.context() as patch:
            patched(patch)
            self[name] = module_of(name).data(self.context)
        return self[name]


def timed_by_a_law() -> dict[str, pd.DataFrame]:
    """Tables of the figures that measure time, with times that follow their laws: the same on every
    machine."""
    rows = []
    for series in bench.SERIES:
        for quantity, power in (("seconds", series.time), ("MiB", series.memory)):
            rows += bench.rows(series, quantity, [1e-3 * size**power for size in series.sizes])
    costs = [
        {"variable": variable, "n": n, "d": d, "what": what, "seconds": seconds,
         "ratio": seconds / (1e-3 * size**yardstick), "verdict": said}
        for variable in ("n", "d")
        for size in (8, 16, 32, 64, 128)
        for n, d in [(size, 16) if variable == "n" else (16, size)]
        for what, power, yardstick, said in (
            ("verdict", 1, 1, "SMOOTHING"), ("certify", 2.2, 1, "SMOOTHING"), ("check", 2, 1, ""),
            ("forward", 0.5, 0.5, ""), ("enclose", 1.5, 0.5, ""),
        )
        for seconds in [1e-3 * size**power]
    ]  # fmt: skip
    return {"scaling": pd.DataFrame(rows), "proof_costs": pd.DataFrame(costs)}
