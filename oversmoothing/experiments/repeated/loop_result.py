"""What `loop` gives: outcomes and predictions by block and input, scores, failures, a picture."""

import math
from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from oversmoothing.experiments.repeated.predictors import (
    COLLAPSED,
    LINE,
    LOCAL,
    choose,
    score_loops,
)
from oversmoothing.simulations.drawing.picture import FULL_WIDTH, PALETTE, new_figure, style
from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured
from oversmoothing.simulations.drawing.wording import signed
from oversmoothing.theory.support.files import json_row
from oversmoothing.theory.support.sizes import Array

SHOWN = ("blocks", "start", "exponent", "law's end", "end", "slope", "clusters", "loops to .2",
         "by the law", "outcome")  # fmt: skip
UNITS = dict.fromkeys(("start", "law's end", "end"), "HFC/LFC")
COLUMNS = 4
KINDS = {
    "collapsed": "blue",
    "falling as a power": "sky",
    "at rest elsewhere": "vermillion",
    "still moving": "orange",
    "a cycle": "purple",
}


class Loops(Result):
    """Tables `by_group` (medians over inputs), `runs` (a row a group and input) and `predictors`.

    groups: layers looped, numbers from 1; rows: one a group (its place) and input, see `loop`, log
    HFC/LFC predicted in columns of the predictors' names; curves [groups, loops + 1, inputs]: log
    HFC/LFC. predicted: [groups, inputs] by name, of those that say something of every group;
    chosen: the one chosen on one half and scored on the other, None for one group or one input.
    """

    def __init__(
        self,
        model: str,
        groups: list[tuple[int, ...]],
        seed: int,
        rows: pd.DataFrame,
        curves: Array,
        predictors: tuple[str, ...],
    ) -> None:
        self.curves, self.labels = curves, [label(group) for group in groups]
        ends, loops = curves[:, -1], curves.shape[1] - 1
        placed = rows.pivot(index="group", columns="input")
        self.predicted: dict[str, Array] = {
            name: placed[name].to_numpy() for name in predictors if np.isfinite(rows[name]).all()
        }
        # exp, 0 and inf where it leaves the floats.
        rows = rows.assign(**{name: np.exp(rows[name].clip(-745, 709.7)) for name in predictors})
        runs = rows.drop(columns=["group", "by the law"])
        runs.insert(0, "blocks", [self.labels[group] for group in rows["group"]])
        # Of every predictor on all groups and inputs, nothing chosen.
        scores = {name: score_loops(ends, p, seed) for name, p in self.predicted.items()}
        self.chosen = choose(ends, self.predicted, seed) if min(ends.shape) > 1 else None
        chosen = self.chosen
        table = pd.DataFrame([{"predictor": name} | asdict(s) for name, s in scores.items()])
        table = table.drop(columns="pairs")
        if chosen is not None:
            table["agree on the choosing half"] = [chosen.on_choice[name].agree for name in scores]
        title = f"{model}: do its tokens collapse if a block is repeated {loops} times?"
        super().__init__(
            "loop",
            title,
            {
                "by_group": Table(self._by_group(rows), UNITS, SHOWN),
                "runs": Table(runs),
                "predictors": Table(table, shown=[*map(str, table)], number="{:.2f}"),
            },
            self._sentences(rows),
            {"model": model, "groups": groups, "loops": loops, "seed": seed},
            details={
                "collapsed_at": COLLAPSED,
                "scores": {name: json_row(asdict(score)) for name, score in scores.items()},
                "chosen": None if chosen is None else {
                    "predictor": chosen.name,
                    "choosing_half": {n: json_row(asdict(s)) for n, s in chosen.on_choice.items()},
                    "score_on_the_others": json_row(asdict(chosen.score)),
                    "blocks": chosen.blocks,
                    "inputs": chosen.inputs,
                },
            },
            picture=lambda: self._drawn(title, rows),
        )  # fmt: skip

    def _by_group(self, rows: pd.DataFrame) -> pd.DataFrame:
        """One row a group: medians over inputs, what became of them, and loops to HFC/LFC = .2."""
        grouped = rows.groupby("group")
        middle = ["start", "exponent", "end", "slope", "turned", "clusters", "largest"]
        below = self.curves <= LINE
        reached = np.where(below.any(1), below.argmax(1), math.inf)
        more = {
            "law's end": np.exp(np.median(self.predicted[LOCAL], 1).clip(-745, 709.7)),
            "collapsed": grouped["kind"].agg(lambda kinds: (kinds == "collapsed").mean()),
            "outcome": grouped["kind"].agg(_listed),
            "loops to .2": np.median(reached, axis=1),
            "by the law": grouped["by the law"].median(),
        }
        table = grouped[middle].median().assign(**more)
        table.insert(0, "blocks", self.labels)
        return table.reset_index(drop=True)

    def _sentences(self, rows: pd.DataFrame) -> list[Sentence]:
        """What collapsed, the score of the chosen predictor, and where the local law is wrong."""
        groups, _, inputs = self.curves.shape
        gone = int((rows["kind"] == "collapsed").sum())
        start = "Yes" if gone == len(rows) else "In part" if gone else "No"
        said = [
            Sentence(
                f"{start}: tokens collapse in {gone} of {len(rows)} runs, {groups} groups of "
                f"blocks on {inputs} inputs. Collapse means that the differences between tokens "
                f"over what they share (HFC/LFC) are at most {COLLAPSED:g} at the end.",
                measured(inputs),
            ),
            Sentence(f"What became of the runs: {_listed(rows.kind)}. The table has medians.",
                     measured(inputs)),
        ]  # fmt: skip
        if self.chosen is not None:
            score, name = self.chosen.score, self.chosen.name
            agree = score.ends(score.agree_low, score.agree_high, "{:.0%}".format)
            rank = score.ends(score.rank_low, score.rank_high, "{:.2f}".format)
            ranked = f" Its rank correlation with HFC/LFC at the end is {score.rank:.2f} ({rank})."
            ranked *= not math.isnan(score.rank)
            said.append(
                Sentence(
                    f"Best predictor, chosen on half of the blocks and inputs: {name}. On the "
                    f"others (groups: {score.blocks}, inputs: {score.inputs}) it is right on "
                    f"collapse in {100 * score.agree:.0f} % of runs ({agree}). Always guessing "
                    f"the more common outcome is right in {100 * score.base:.0f} %.{ranked}",
                    measured(score.inputs, score.agree_low, score.agree_high),
                )
            )
        for group, blocks in enumerate(self.labels):
            own = rows[rows["group"] == group]
            for collapse in (True, False):
                foreseen = (self.predicted[LOCAL][group] <= LINE) == collapse
                wrong = own[foreseen & ((np.log(own["end"]) <= LINE) != collapse)]
                if len(wrong):
                    clusters, slope, end = wrong[["clusters", "slope", "end"]].median()
                    said.append(
                        Sentence(
                            f"Blocks {blocks}: {LOCAL} predicts "
                            f"{'collapse' if collapse else 'no collapse'}, wrongly on {len(wrong)} "
                            f"of {inputs} inputs ({_listed(wrong['kind'])}). Medians there: "
                            f"slope {signed(slope)}, {clusters:.0f} clusters, HFC/LFC {end:.2g}.",
                            measured(inputs),
                        )
                    )
        return said

    def _drawn(self, title: str, rows: pd.DataFrame) -> Figure:
        """HFC/LFC against the number of loops, a panel a group, and predicted against measured."""
        panels = len(self.labels) + 1
        lines = math.ceil(panels / COLUMNS)
        groups, points, inputs = self.curves.shape
        loops = np.arange(1, points)
        with style():
            height = 2.1 * lines + 0.5
            figure, axes = new_figure(lines, COLUMNS, width=FULL_WIDTH + 2, height=height)
            for spare in axes.ravel()[panels:]:
                spare.set_axis_off()
            for group, panel in enumerate(axes.ravel()[:groups]):
                curves = self.curves[group, 1:]
                panel.plot(loops, np.exp(curves), color=PALETTE["light"], linewidth=0.6)
                panel.plot(loops, np.exp(np.median(curves, axis=1)), color=PALETTE["black"])
                law = float(np.exp(np.clip(np.median(self.predicted[LOCAL][group]), -20, 5)))
                panel.plot([points - 1], [law], "D", color=PALETTE["blue"], clip_on=False)
                panel.axhline(COLLAPSED, color=PALETTE["grey"], linewidth=0.7, linestyle=":")
                panel.set(xscale="log", yscale="log", ylim=(2e-3, 20))
                panel.set_title(f"blocks {self.labels[group]}", loc="left", fontsize=8)
            for panel in axes[:, 0]:
                panel.set_ylabel("HFC/LFC")
            last: Any = axes.ravel()[groups]
            name = LOCAL if self.chosen is None else self.chosen.name
            for kind, colour in KINDS.items():
                own = rows[rows["kind"] == kind]
                if len(own):
                    x = own[name].clip(np.exp(-6), np.exp(3))
                    last.plot(x, own["end"], "o", markersize=2, color=PALETTE[colour], label=kind)
            last.plot([2e-3, 20], [2e-3, 20], color=PALETTE["grey"], linewidth=0.7)
            last.set(xscale="log", yscale="log", xlim=(2e-3, 20), ylim=(2e-3, 20))
            last.set_title(f"measured against\n{name}", loc="left", fontsize=8)
            last.legend(fontsize=5.5)
            figure.supxlabel(
                f"loops (log); black: median of {inputs} inputs; diamond: end by the local law; "
                f"dotted: HFC/LFC = {COLLAPSED:g}", fontsize=8,
            )  # fmt: skip
            figure.suptitle(title)
        return figure


def label(layers: tuple[int, ...]) -> str:
    """'3', or '1-12' for layers that follow one another."""
    return f"{layers[0]}" if len(layers) == 1 else f"{layers[0]}-{layers[-1]}"


def _listed(kinds: pd.Series) -> str:
    """'collapsed 3, a cycle 1'."""
    return ", ".join(f"{kind} {count}" for kind, count in Counter(kinds).most_common())
