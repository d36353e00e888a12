"""A model of several stages, whose tokens grow fewer and wider in between (Swin): all in one.

Every stage is a stack with a report of its own. Between two of them neighbouring patches are
merged: what HFC/LFC does there is said, and is no layer's, because n and d are others behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from torch import nn

from oversmoothing.experiments.inspection.inspect import inspect
from oversmoothing.experiments.inspection.report import Report
from oversmoothing.experiments.intervals import in_words, mean_interval
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.models.sources import open_stages
from oversmoothing.simulations.drawing.wording import signed
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import json_number, output_folder, to_json, write_together
from oversmoothing.theory.support.sizes import Array

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Stages:
    """The reports of the stages, in their order, on the same inputs."""

    model: str
    reports: tuple[Report, ...]

    @property
    def merging(self) -> Array:
        """The change of ln HFC/LFC from the end of a stage to the start of the next.

        [stages - 1, inputs]; the tokens behind are others than those in front.
        """
        ends = [report.logs[-1] for report in self.reports[:-1]]
        starts = [report.logs[0] for report in self.reports[1:]]
        none = np.empty((0, self.reports[0].images))
        return np.stack(starts) - np.stack(ends) if ends else none

    def __repr__(self) -> str:
        return f"Stages('{self.model}', {len(self.reports)} stages, {self.reports[0].inputs})"

    def to_frame(self) -> pd.DataFrame:
        """The tables of all stages under one another: stage (from 1) and tokens in front; in row 0
        of every stage but the first log_change_merging, _low and _high."""
        tables = []
        for number, report in enumerate(self.reports, 1):
            table = report.to_frame()
            table.insert(0, "stage", number)
            table.insert(2, "tokens", report.tokens)
            if number > 1:
                ends = mean_interval(self.merging[number - 2])
                for name, value in zip(("", "_low", "_high"), ends, strict=True):
                    table.loc[0, f"log_change_merging{name}"] = value
            tables.append(table)
        return pd.concat(tables, ignore_index=True)

    def short_table(self, *, wide: bool = False) -> pd.DataFrame:
        """As `Report.short_table`, stage by stage, with the merging in front of each."""
        tables = []
        for number, report in enumerate(self.reports, 1):
            table = report.short_table(wide=wide)
            table.insert(0, "stage", number)
            table.insert(2, "tokens", report.tokens)
            table["merging"] = np.nan
            if number > 1:
                table.loc[0, "merging"] = self.merging[number - 2].mean()
            tables.append(table)
        return pd.concat(tables, ignore_index=True)

    def said(self) -> list[str]:
        """What each stage does and what each merging does, then the whole; sentence by sentence."""
        first, last = self.reports[0], self.reports[-1]
        steps = []
        for number, report in enumerate(self.reports, 1):
            layers = f"{len(report.by_attention)} layers on {report.tokens} tokens"
            steps.append(f"stage {number} ({layers}) {signed(report.change.mean())}")
            if number < len(self.reports):
                mean, low, high = mean_interval(self.merging[number - 1])
                ends = in_words(low, high, len(self.merging[number - 1]), signed)
                steps.append(f"merging {report.tokens} tokens into "
                             f"{self.reports[number].tokens} {signed(mean)} ({ends})")  # fmt: skip
        start, end = (np.exp(report.logs[k].mean()) for report, k in ((first, 0), (last, -1)))
        whole = (
            f"Over the {len(self.reports)} stages of {self.model} HFC/LFC goes from {start:.3g} to "
            f"{end:.3g} on {first.inputs}; change of ln HFC/LFC: {', '.join(steps)}. Behind a "
            "merging the tokens are others, fewer and wider: its part is no layer's, and the "
            "grades are those of each stage."
        )
        own = [sentence for report in self.reports for sentence in report.said()[:2]]
        return [whole, *own]

    def summary(self) -> str:
        """A paragraph: `said`, one after the other."""
        return " ".join(self.said())

    def words(self, width: int = 100) -> str:
        """The sentences in lines of at most `width`."""
        notes = [f"Note: {note}." for note in self.reports[0].notes]
        parts = (*self.said(), *notes)
        return "\n".join(fill(part, width, break_on_hyphens=False) for part in parts)

    def to_json_object(self) -> dict[str, Any]:
        """{schema_version, model, stages: the reports' objects, merging, summary}."""
        names = ("log_change", "low", "high")
        return {
            "schema_version": SCHEMA_VERSION,
            "model": self.model,
            "stages": [report.to_json_object() for report in self.reports],
            "merging": [
                {"after_stage": number}
                | dict(zip(names, map(json_number, mean_interval(change)), strict=True))
                for number, change in enumerate(self.merging, 1)
            ],
            "summary": self.summary(),
        }

    def save(self, folder: str | Path) -> dict[str, Path]:
        """Write stages.json and stages.csv, and the report of each stage into stage-1 and so on.

        Returns the paths by kind. Raises `InputError` where the folder cannot be written.
        """
        place = output_folder(folder)
        pages = {
            f"stage-{number}": report.save(place / f"stage-{number}")["html"]
            for number, report in enumerate(self.reports, 1)
        }
        contents: dict[str, str | bytes] = {
            "json": to_json(self.to_json_object()),
            "csv": self.to_frame().to_csv(index=False),
        }
        paths = {kind: place / f"stages.{kind}" for kind in contents}
        write_together({paths[kind]: content for kind, content in contents.items()})
        return paths | pages


def inspect_stages(
    model: str | Path | nn.Module | Sequence[Model],
    inputs: Any,
    *,
    name: str | None = None,
    **settings: Any,
) -> Stages:
    """`inspect` every stage of a model on the same inputs.

    model: a folder, a hub name, a module, or its stages as `open_stages` gives them. settings: see
    `inspect`. Raises `InputError` for inputs that can be read but once, and as `inspect` does.
    """
    if not hasattr(inputs, "__len__"):
        raise InputError("the inputs are read once a stage: give a list or a tensor, no iterator")
    models = open_stages(model) if isinstance(model, str | Path | nn.Module) else model
    called = name or models[0].name
    reports = [
        inspect(each, inputs, name=f"{called} stage {number}", **settings)
        for number, each in enumerate(models, 1)
    ]
    return Stages(called, tuple(reports))
