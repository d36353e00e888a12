"""Two reports on the same inputs, paired: where does the second smooth less, and can one tell?

Inputs are the independent observations, and both models saw the same ones: every interval is of the
mean difference over inputs (Student's t), so that what inputs have in common cancels.

Below it a model of several stages, whose tokens grow fewer and wider in between (Swin). Every stage
is a stack with a report of its own. Between two of them neighbouring patches are merged: what
HFC/LFC does there is said, and is no layer's, because n and d are others behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from torch import Tensor, nn

from oversmoothing.experiments.inspection.answer import MILD
from oversmoothing.experiments.inspection.inspect import inspect
from oversmoothing.experiments.inspection.report import Report
from oversmoothing.experiments.inspection.sentences import NARROW
from oversmoothing.experiments.intervals import NAN, in_words, mean_interval, mean_intervals, named
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.models.sources import open_stages
from oversmoothing.simulations.drawing import result
from oversmoothing.simulations.drawing.result import Sentence, Table, measured
from oversmoothing.simulations.drawing.wording import signed
from oversmoothing.simulations.state import undisturbed
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SCHEMA_VERSION = 2
CONVENTIONS = {
    "difference": "second minus first, input by input; the mean over inputs",
    "intervals": "_low and _high: 95 % interval of the mean difference (Student's t over inputs), "
    "for each layer by itself; missing below five inputs",
    "log_hfc_lfc": "natural log of HFC/LFC after each layer; layer 0: in front of all",
    "since_input": "change of log HFC/LFC from the input to that layer",
    "cos_mean": "signed cosine, mean over pairs of distinct tokens",
    "log_change": "of log HFC/LFC over the sublayers of a layer; where the depths differ, over all "
    "of them, in the last row",
}
# Of a difference in the JSON.
ENDS = ("change", "low", "high")
# Columns of the terminal's table.
SHOWN = ("layer", "first_hfc_lfc", "second_hfc_lfc", "since_input", "since_input_low",
         "since_input_high", "cos_mean", "log_change_attention", "log_change_ffn")  # fmt: skip


class Comparison(result.Result):
    """What two reports on the same inputs say of each other; differences are second less first.

    Its table has one row a layer, from layer 0 (the input), each difference with _low and _high; of
    models of different depth the input and the end alone. change [inputs]: the difference of what
    the stacks do to ln HFC/LFC; interval: (mean, low, high) of it.

    >>> import torch, oversmoothing
    >>> part = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    >>> model = torch.nn.TransformerEncoder(part, 2, enable_nested_tensor=False).eval()
    >>> X = torch.randn(4, 6, 8, generator=torch.Generator().manual_seed(0))
    >>> report = oversmoothing.inspect(model, X)
    >>> oversmoothing.compare(report, report).change.tolist()
    [0.0, 0.0, 0.0, 0.0]
    """

    def __init__(self, first: Report, second: Report, rows: pd.DataFrame) -> None:
        self.first, self.second = first, second
        self.change = second.change - first.change
        self.interval = mean_interval(self.change)
        shown = [name for name in SHOWN if name in rows]
        self.tables = {"layers": Table(rows, {}, shown, "{:.3f}")}
        about = (
            f"Second ({second.model}) minus first ({first.model}), means over {first.inputs}; "
            "since_input: change of ln HFC/LFC since the input, with the 95 % interval of that "
            "layer; log_change_attention, log_change_ffn: of ln HFC/LFC over the sublayers."
        )
        if "second_layer" in rows:
            about += " The depths differ: the input and the end are compared alone."
        known = measured(first.images, *self.interval[1:], told=True)
        asked = {"schema_version": SCHEMA_VERSION, "first": first.model, "second": second.model,
                 "modality": first.modality, "inputs": first.images}  # fmt: skip
        outcome = {"outcome": self.outcome} | dict(zip(ENDS, self.interval, strict=True))
        super().__init__(
            "compare",
            f"{second.model} minus {first.model}: {first.inputs}",
            self.tables,
            [Sentence(self.summary(), known), Sentence(about, measured(first.images))],
            asked,
            details=outcome | {"conventions": CONVENTIONS, "summary": self.summary()},
            picture=self.plot,
        )

    save = result.saved

    def __repr__(self) -> str:
        return f"Comparison('{self.first.model}', '{self.second.model}', {self.first.inputs})"

    @property
    def outcome(self) -> str:
        """Whether the second 'smooths more', 'smooths less', 'the same', or 'cannot tell'.

        More and less are said only where the interval leaves no other sign, the same only where all
        of it is within a factor of 1.25.
        """
        _, low, high = self.interval
        if low > -MILD and high < MILD:
            return "the same"
        if low > 0:
            return "smooths less"
        return "smooths more" if high < 0 else "cannot tell"

    def summary(self) -> str:
        """One sentence: does the second smooth more or less than the first, and how surely."""
        mean, low, high = self.interval
        first, second, on = self.first.model, self.second.model, f"on the same {self.first.inputs}"
        own = [float(np.mean(report.change)) for report in (self.first, self.second)]
        both = self.table[["first_hfc_lfc", "second_hfc_lfc"]].iloc[[0, -1]].to_numpy().T
        ratios = " and from ".join(f"{start:.3g} to {end:.3g}" for start, end in both)
        said = (
            f"HFC/LFC goes from {ratios}, ln HFC/LFC changes by {signed(own[0])} and "
            f"{signed(own[1])}, the difference is {signed(mean)}"
        )
        span = in_words(low, high, len(self.change), signed)
        said = f"{span} ({said})" if np.isnan(low) else f"{said}, {span}"
        if self.outcome == "cannot tell":
            return f"Whether {second} smooths more or less than {first} is not known {on}: {said}."
        if self.outcome == "the same":
            sure = "" if low <= 0 <= high else ", though measurably not equally"
            return (
                f"{second} changes HFC/LFC as {first} does, to within a factor of 1.25{sure}, "
                f"{on}: {said}."
            )
        less = (self.outcome == "smooths less") != (min(own) > 0)
        verb = "sharpens" if min(own) > 0 else "smooths"
        where = "" if "second_layer" in self.table else self._where()
        return f"{second} {verb} {'less' if less else 'more'} than {first} {on}: {said}{where}."

    def _where(self) -> str:
        """The layer in which the largest part arises, where that has its sign for sure."""
        inner = self.table.iloc[1:]
        sign = np.sign(float(np.mean(self.change)))
        row = inner.iloc[int(np.argmax(inner["log_change"] * sign))]
        if not (row[["log_change_low", "log_change_high"]] * sign).min() > 0:
            return ", from no one layer for sure"
        parts = {"attention": row["log_change_attention"], "FFN": row["log_change_ffn"]}
        mover = max(parts, key=lambda name: sign * parts[name])
        part = f"{mover} {signed(parts[mover])}"
        return f", the largest part of it in layer {int(row['layer'])} ({part})"

    def plot(self) -> Figure:
        """Both models against depth, and their difference with its intervals."""
        from oversmoothing.experiments.inspection.plots import draw_comparison

        return draw_comparison(self.table, (self.first.model, self.second.model), self.title)


@undisturbed()
def compare(first: Report, second: Report) -> Comparison:
    """Compare two reports on the same inputs, in the same order.

    Raises `InputError` where their inputs differ in kind or number, and for what is no report.

    >>> import torch, oversmoothing
    >>> part = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    >>> model = torch.nn.TransformerEncoder(part, 2, enable_nested_tensor=False).eval()
    >>> X = torch.randn(4, 6, 8, generator=torch.Generator().manual_seed(0))
    >>> first, second = (oversmoothing.inspect(model, X, name=name) for name in ("a", "b"))
    >>> oversmoothing.compare(first, second)
    Comparison('a', 'b', 4 inputs)
    """
    for each in (first, second):
        if not isinstance(each, Report):
            raise InputError(f"{type(each).__name__} is no report: give two that inspect returned")
    if (first.modality, first.images) != (second.modality, second.images):
        raise InputError(
            f"{first.model} was inspected on {first.inputs}, {second.model} on {second.inputs}: "
            "inspect both on the same inputs, in the same order"
        )
    depths = len(first.by_attention), len(second.by_attention)
    whole = depths[0] == depths[1]
    columns: dict[str, Any] = {"layer": range(depths[0] + 1) if whole else (0, depths[0])}
    if not whole:
        columns["second_layer"] = (0, depths[1])
    own, others = (_numbers(report, whole) for report in (first, second))
    for name, held in (("first", own), ("second", others)):
        columns[f"{name}_hfc_lfc"] = np.exp(held["log_hfc_lfc"].mean(1))
        columns[f"{name}_cos_mean"] = held["cos_mean"].mean(1)
    for name, values in others.items():
        columns |= named(name, mean_intervals(values - own[name]))
    return Comparison(first, second, pd.DataFrame(columns))


def _numbers(report: Report, whole: bool) -> dict[str, Array]:
    """By name [layers + 1, inputs]; not whole: of the input and the end, all layers as one."""
    logs, cosines, by = report.logs, report.cosines, (report.by_attention, report.by_ffn)
    if not whole:
        logs, cosines = logs[[0, -1]], cosines[[0, -1]]
        by = (by[0].sum(0, keepdims=True), by[1].sum(0, keepdims=True))
    attention, ffn = (np.pad(each, ((1, 0), (0, 0)), constant_values=NAN) for each in by)
    return {
        "log_hfc_lfc": logs,
        "since_input": logs - logs[0],
        "cos_mean": cosines,
        "log_change": attention + ffn,
        "log_change_attention": attention,
        "log_change_ffn": ffn,
    }


class Stages(result.Result):
    """The reports of the stages, in their order, on the same inputs.

    Its table has the tables of all stages under one another: stage (from 1) and tokens in front; in
    row 0 of every stage but the first log_change_merging, _low and _high.
    merging [stages - 1, inputs]: the change of ln HFC/LFC from the end of a stage to the start of
    the next; the tokens behind are others than those in front.

    >>> import torch, oversmoothing
    >>> part = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    >>> model = torch.nn.TransformerEncoder(part, 2, enable_nested_tensor=False).eval()
    >>> X = torch.randn(4, 6, 8, generator=torch.Generator().manual_seed(0))
    >>> models = [oversmoothing.open_model(model), oversmoothing.open_model(model)]
    >>> oversmoothing.inspect_stages(models, X, name="twice")
    Stages('twice', 2 stages, 4 inputs)
    """

    def __init__(self, model: str, reports: tuple[Report, ...]) -> None:
        self.model, self.reports = model, reports
        merged = [behind.logs[0] - front.logs[-1] for front, behind in pairwise(reports)]
        self.merging: Array = np.reshape(merged, (len(merged), reports[0].images))
        tables = []
        for number, report in enumerate(reports, 1):
            table = report.to_frame()
            table.insert(0, "stage", number)
            table.insert(2, "tokens", report.tokens)
            if number > 1:
                ends = mean_interval(self.merging[number - 2])
                for name, value in named("log_change_merging", ends).items():
                    table.loc[0, name] = value
            tables.append(table)
        rows = pd.concat(tables, ignore_index=True)
        shown = ("stage", "tokens", *NARROW, "log_change_merging")
        seen = measured(reports[0].images)
        super().__init__(
            "stages",
            f"{model}, stage by stage: {reports[0].inputs}",
            {"layers": Table(rows, {}, [name for name in shown if name in rows], "{:.3f}")},
            [
                *(Sentence(each, seen) for each in self.said()),
                *(Sentence(f"Note: {note}.", result.UNTESTED) for note in reports[0].notes),
            ],
            {"schema_version": SCHEMA_VERSION, "model": model},
            details={
                "stages": [report.to_json_object() for report in reports],
                "merging": [
                    {"after_stage": number}
                    | dict(zip(("log_change", *ENDS[1:]), mean_interval(change), strict=True))
                    for number, change in enumerate(self.merging, 1)
                ],
                "summary": self.summary(),
            },
        )

    save = result.saved

    def __repr__(self) -> str:
        return f"Stages('{self.model}', {len(self.reports)} stages, {self.reports[0].inputs})"

    def said(self) -> list[str]:
        """What each stage does and what each merging does, then the whole; sentence by sentence."""
        first, last = self.reports[0], self.reports[-1]
        steps = []
        for number, report in enumerate(self.reports, 1):
            layers = f"{len(report.by_attention)} layers on {report.tokens} tokens"
            steps.append(f"stage {number} ({layers}) {signed(report.change.mean())}")
            if number < len(self.reports):
                mean, low, high = mean_interval(self.merging[number - 1])
                ends = in_words(low, high, first.images, signed)
                into = f"{report.tokens} tokens into {self.reports[number].tokens}"
                steps.append(f"merging {into} {signed(mean)} ({ends})")
        start, end = (np.exp(report.logs[k].mean()) for report, k in ((first, 0), (last, -1)))
        whole = (
            f"Over the {len(self.reports)} stages of {self.model} HFC/LFC goes from {start:.3g} to "
            f"{end:.3g} on {first.inputs}; change of ln HFC/LFC: {', '.join(steps)}. Behind a "
            "merging the tokens are others, fewer and wider: its part is no layer's, and the "
            "grades are those of each stage."
        )
        own = [sentence for report in self.reports for sentence in report.said()[:3]]
        return [whole, *own]

    def summary(self) -> str:
        """A paragraph: `said`, one after the other."""
        return " ".join(self.said())

    def beside(self) -> dict[str, str | bytes]:
        """The files of each stage's report, in stage-1 and so on."""
        return {
            f"stage-{number}/{name}": held
            for number, report in enumerate(self.reports, 1)
            for name, held in result.contents(report).items()
        }


@undisturbed()
def inspect_stages(
    model: str | Path | nn.Module | Sequence[Model],
    inputs: Tensor | Iterable[Any] | dict[str, Tensor],
    *,
    name: str | None = None,
    **settings: Any,
) -> Stages:
    """`inspect` every stage of a model on the same inputs.

    model: a folder, a hub name, a module, or its stages as `open_stages` gives them. settings: see
    `inspect`. Raises `InputError` for inputs that can be read but once, and as `inspect` does.

    >>> import torch, oversmoothing
    >>> part = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    >>> model = torch.nn.TransformerEncoder(part, 2, enable_nested_tensor=False).eval()
    >>> X = torch.randn(4, 6, 8, generator=torch.Generator().manual_seed(0))
    >>> stages = oversmoothing.inspect_stages([oversmoothing.open_model(model)] * 2, X)
    >>> stages.merging.shape
    (1, 4)
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
