"""What `loop` found: predictions and outcomes by block and input, scores, failures, words, JSON."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from oversmoothing.experiments.loops.outcomes import COLLAPSED
from oversmoothing.experiments.loops.predictors import LOCAL
from oversmoothing.experiments.loops.scoring import LINE, Chosen, LoopScore, choose, score_loops
from oversmoothing.simulations.drawing.wording import signed
from oversmoothing.theory.support.files import json_row
from oversmoothing.theory.support.sizes import Array

# HFC/LFC that the loops to it are counted for.
SMOOTHER = (0.5, COLLAPSED, 0.1)


@dataclass(frozen=True)
class LoopResult:
    """groups: layers looped, numbers from 1; rows: one a group and input, see `loop`; curves
    [groups, loops + 1, inputs]: log HFC/LFC; predictors: names, in order."""

    model: str
    groups: list[tuple[int, ...]]
    loops: int
    seed: int
    rows: list[dict[str, Any]]
    curves: Array
    predictors: tuple[str, ...]

    @property
    def inputs(self) -> int:
        return int(self.curves.shape[2])

    @property
    def measured(self) -> Array:
        """log HFC/LFC at the end [groups, inputs]."""
        found: Array = self.curves[:, -1]
        return found

    @cached_property
    def predicted(self) -> dict[str, Array]:
        """The same, predicted, by name; of the predictors that say something of every group."""
        found = {}
        for name in self.predictors:
            values = np.full(self.measured.shape, np.nan)
            for row in self.rows:
                values[row["group"], row["input"]] = row["predicted"].get(name, np.nan)
            if np.isfinite(values).all():
                found[name] = values
        return found

    @cached_property
    def scores(self) -> dict[str, LoopScore]:
        """Of every predictor on all groups and inputs, nothing chosen."""
        return {
            name: score_loops(self.measured, values, self.seed)
            for name, values in self.predicted.items()
        }

    @cached_property
    def chosen(self) -> Chosen | None:
        """The predictor chosen on one half and scored on the other; None for one group or input."""
        if min(self.measured.shape) < 2:
            return None
        return choose(self.measured, self.predicted, self.seed)

    def label(self, group: int) -> str:
        """'3', or '1-12' for layers that follow one another."""
        layers = self.groups[group]
        return f"{layers[0]}" if len(layers) == 1 else f"{layers[0]}-{layers[-1]}"

    def to_frame(self) -> pd.DataFrame:
        """One row a group and input; predicted HFC/LFC in columns of the predictors' names."""
        rows = []
        for row in self.rows:
            plain = {k: x for k, x in row.items() if k not in ("predicted", "law", "group")}
            own = {name: _exp(row["predicted"].get(name, math.nan)) for name in self.predictors}
            rows.append({"blocks": self.label(row["group"])} | plain | own)
        return pd.DataFrame(rows)

    def by_group(self) -> pd.DataFrame:
        """One row a group: medians over inputs, what became of them, and loops to HFC/LFC = .2."""
        rows = []
        for group in range(len(self.groups)):
            own = [row for row in self.rows if row["group"] == group]
            kinds = Counter(row["kind"] for row in own)
            reached = [first_below(self.curves[group, :, k], LINE) for k in range(self.inputs)]
            forecast = [row["law"].loops_to(row["start"], COLLAPSED) for row in own]
            middle = {
                name: float(np.median([row[name] for row in own]))
                for name in ("start", "exponent", "end", "slope", "turned", "clusters", "largest")
            }
            rows.append(
                {
                    "blocks": self.label(group),
                    **middle,
                    "law's end": _exp(float(np.median([r["predicted"][LOCAL] for r in own]))),
                    "collapsed": kinds["collapsed"] / len(own),
                    "outcome": ", ".join(f"{kind} {k}" for kind, k in kinds.most_common()),
                    "loops to .2": float(np.median(reached)),
                    "by the law": float(np.median(forecast)),
                }
            )
        return pd.DataFrame(rows)

    def short_table(self) -> pd.DataFrame:
        """The columns that a reader needs."""
        names = ["blocks", "start", "exponent", "law's end", "end", "slope", "clusters"]
        return self.by_group()[[*names, "loops to .2", "by the law", "outcome"]]

    def score_table(self) -> pd.DataFrame:
        """One row a predictor: its scores on everything, and on the half it was chosen on."""
        rows = []
        for name, score in self.scores.items():
            row = {"predictor": name} | asdict(score)
            if self.chosen is not None:
                row["agree on the choosing half"] = self.chosen.on_choice[name].agree
            rows.append(row)
        return pd.DataFrame(rows).drop(columns=["pairs"])

    def words(self) -> str:
        """What collapsed, the score of the chosen predictor, and what its failures do instead."""
        kinds = Counter(row["kind"] for row in self.rows)
        listed = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
        total = len(self.rows)
        lines = [
            f"After {self.loops} loops of {len(self.groups)} groups of blocks on {self.inputs} "
            f"inputs ({total} runs; collapsed: HFC/LFC <= {COLLAPSED:g}): {listed}."
        ]
        if self.chosen is not None:
            score, name = self.chosen.score, self.chosen.name
            agree = score.ends(score.agree_low, score.agree_high, "{:.0%}".format)
            rank = score.ends(score.rank_low, score.rank_high, "{:.2f}".format)
            lines.append(
                f"Chosen on half of the blocks and inputs: {name}. On the others, once: agrees on "
                f"collapse in {100 * score.agree:.0f} % of {score.pairs} runs, groups by inputs "
                f"{score.blocks} by {score.inputs} ({agree}; always guessing the more common "
                f"outcome: {100 * score.base:.0f} %), rank correlation {score.rank:.2f} ({rank})."
            )
        lines += self.failures(LOCAL)
        return "\n".join(lines)

    def failures(self, name: str) -> list[str]:
        """A sentence a group where a predictor is wrong about collapse, and what happens there."""
        found = []
        for group in range(len(self.groups)):
            for collapse in (True, False):
                wrong = [
                    row for row in self.rows
                    if row["group"] == group
                    and (row["predicted"][name] <= LINE) is collapse
                    and (math.log(row["end"]) <= LINE) is not collapse
                ]  # fmt: skip
                if wrong:
                    said = "collapse" if collapse else "no collapse"
                    found.append(f"{name} says {said} of blocks {self._failure(group, wrong)}")
        return found

    def _failure(self, group: int, wrong: list[dict[str, Any]]) -> str:
        kinds = Counter(row["kind"] for row in wrong)
        listed = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
        clusters, slope, end = (
            float(np.median([row[key] for row in wrong])) for key in ("clusters", "slope", "end")
        )
        return (
            f"{self.label(group)} and is wrong on {len(wrong)} of {self.inputs} inputs: {listed}; "
            f"median slope {signed(slope)}, clusters {clusters:.0f}, HFC/LFC {end:.2g}."
        )

    def to_json_object(self) -> dict[str, Any]:
        """Everything but the curves."""
        chosen = self.chosen
        return {
            "model": self.model,
            "groups": [list(group) for group in self.groups],
            "loops": self.loops,
            "seed": self.seed,
            "collapsed_at": COLLAPSED,
            "by_group": _records(self.by_group()),
            "runs": _records(self.to_frame()),
            "scores": {name: json_row(asdict(score)) for name, score in self.scores.items()},
            "chosen": None if chosen is None else {
                "predictor": chosen.name,
                "choosing_half": {n: json_row(asdict(s)) for n, s in chosen.on_choice.items()},
                "score_on_the_others": json_row(asdict(chosen.score)),
                "blocks": chosen.blocks,
                "inputs": chosen.inputs,
            },
            "words": self.words().split("\n"),
        }  # fmt: skip


def first_below(curve: Array, line: float) -> float:
    """The first loop at which a curve [loops + 1] is at most the line, inf where none is."""
    below = np.flatnonzero(curve <= line)
    return float(below[0]) if len(below) else math.inf


def _exp(log: float) -> float:
    """exp, 0 and inf where it leaves the floats."""
    return float(np.exp(np.clip(log, -745, 709.7)))


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [json_row(row) for row in frame.to_dict("records")]
