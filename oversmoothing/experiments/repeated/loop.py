"""Does a looped block of a trained model bring its tokens together: `loop(model, inputs)`.

Every block, or group of blocks in turn, is predicted before its tokens are looped, then looped with
attention recomputed, and both are held against each other (T12): outcomes and predictions by block
and input, scores, failures, a picture.

With recall, X <- f(X) + B X_0: is there a fixed point, is it one, do tokens differ there? A fixed
point is said to be found where the last loop moved the stream by less than MOVED of its length; it
is one as far as three starts tell (the stream itself, its mean for every token, the stream of
another input or a shuffled one); it attracts where the derivative of the loop there has spectral
radius < 1, estimated by its powers on a drawn direction. Observations: T12 proves such things for
one linear layer alone.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from oversmoothing.experiments.inspection.extract import count, extract
from oversmoothing.experiments.ladder.recording import GAP_NAMES, spectral_gaps
from oversmoothing.experiments.models.model import Model, evaluating
from oversmoothing.experiments.repeated import blocks as maps
from oversmoothing.experiments.repeated.blocks import BlockMap, own_blocks
from oversmoothing.experiments.repeated.growth import lengths
from oversmoothing.experiments.repeated.predictors import (
    COLLAPSED,
    LINE,
    LOCAL,
    MEANS,
    choose,
    looped,
    of_group,
    score_loops,
)
from oversmoothing.simulations.drawing.picture import FULL_WIDTH, PALETTE, new_figure, style
from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured
from oversmoothing.simulations.drawing.wording import signed
from oversmoothing.simulations.running import Bar
from oversmoothing.simulations.state import one_thread
from oversmoothing.theory.support.errors import InputError, whole_number
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
        self, model: str, groups: list[tuple[int, ...]], seed: int, rows: pd.DataFrame,
        curves: Array, predictors: tuple[str, ...],
    ) -> None:  # fmt: skip
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
        chosen = choose(ends, self.predicted, seed) if min(ends.shape) > 1 else None
        self.chosen = chosen
        table = pd.DataFrame([{"predictor": name} | asdict(s) for name, s in scores.items()])
        table = table.drop(columns="pairs")
        if chosen is not None:
            table["agree on the choosing half"] = [chosen.on_choice[name].agree for name in scores]
        title = f"{model}: do its tokens collapse if a block is repeated {loops} times?"
        super().__init__(
            "loop",
            title,
            {
                "by_group": Table(self._by_group(rows), UNITS, SHOWN, means=MEANS["by_group"]),
                "runs": Table(runs),
                "predictors": Table(table, {}, [*map(str, table)], "{:.2f}", means=MEANS["scores"]),
            },
            list(self._sentences(rows)),
            {"model": model, "groups": groups, "loops": loops, "seed": seed},
            details={
                "collapsed_at": COLLAPSED,
                "scores": {name: json_row(asdict(score)) for name, score in scores.items()},
                "chosen": None if chosen is None else {
                    "predictor": chosen.name,
                    "choosing_half": {n: json_row(asdict(s)) for n, s in chosen.on_choice.items()},
                    "score_on_the_others": json_row(asdict(chosen.score)),
                    "blocks": chosen.blocks, "inputs": chosen.inputs,
                },
            },
            picture=lambda: self._drawn(title, rows),
        )  # fmt: skip

    def _by_group(self, rows: pd.DataFrame) -> pd.DataFrame:
        """One row a group: medians over inputs (of the exponent over those whose law has settled),
        what became of them, and loops to HFC/LFC = .2."""
        rows = rows.assign(exponent=rows["exponent"].where(rows["settled"]))
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

    def _sentences(self, rows: pd.DataFrame) -> Iterator[Sentence]:
        """What collapsed, the score of the chosen predictor, and where the local law is wrong."""
        groups, _, inputs = self.curves.shape
        gone = int((rows["kind"] == "collapsed").sum())
        start = "Yes" if gone == len(rows) else "In part" if gone else "No"
        yield Sentence(
            f"{start}: tokens collapse in {gone} of {len(rows)} runs, {groups} groups of blocks on "
            f"{inputs} inputs. Collapse means that the differences between tokens over what they "
            f"share (HFC/LFC) are at most {COLLAPSED:g} at the end.",
            measured(inputs),
        )
        yield Sentence(
            f"What became of the runs: {_listed(rows.kind)}. The table has medians; the exponent "
            "is that of the runs whose law has settled.",
            measured(inputs),
        )
        if self.chosen is not None:
            score, name = self.chosen.score, self.chosen.name
            agree = score.ends(100 * score.agree_low, 100 * score.agree_high, "{:.0f} %".format)
            rank = score.ends(score.rank_low, score.rank_high, "{:.2f}".format)
            ranked = f" Its rank correlation with HFC/LFC at the end is {score.rank:.2f} ({rank})."
            ranked *= not math.isnan(score.rank)
            yield Sentence(
                f"Best predictor, chosen on half of the blocks and inputs: {name}. On the others "
                f"(groups: {score.blocks}, inputs: {score.inputs}) it is right on collapse in "
                f"{100 * score.agree:.0f} % of runs ({agree}). Always guessing the more common "
                f"outcome is right in {100 * score.base:.0f} %.{ranked}",
                measured(score.inputs, score.agree_low, score.agree_high, told=True),
            )
        for group, blocks in enumerate(self.labels):
            own = rows[rows["group"] == group]
            for collapse in (True, False):
                foreseen = (self.predicted[LOCAL][group] <= LINE) == collapse
                wrong = own[foreseen & ((np.log(own["end"]) <= LINE) != collapse)]
                if wrong.empty:
                    continue
                clusters, slope, end = wrong[["clusters", "slope", "end"]].median()
                yield Sentence(
                    f"Block{'s' * (not blocks.isdigit())} {blocks}: {LOCAL} predicts "
                    f"{'collapse' if collapse else 'no collapse'}, wrongly on {len(wrong)} of "
                    f"{inputs} inputs ({_listed(wrong['kind'])}). Medians there: slope "
                    f"{signed(slope)}, {clusters:.0f} cluster{'s' * (round(clusters) != 1)}, "
                    f"HFC/LFC {end:.2g}.",
                    measured(inputs),
                )

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
                panel.plot(loops, np.median(np.exp(curves), axis=1), color=PALETTE["black"])
                law = float(np.exp(np.clip(np.median(self.predicted[LOCAL][group]), -6.2, 5.2)))
                panel.plot([points - 1], [law], "D", color=PALETTE["blue"], clip_on=False)
                panel.axhline(COLLAPSED, color=PALETTE["grey"], linewidth=0.7, linestyle=":")
                panel.set(xscale="log", yscale="log", ylim=(2e-3, 200))
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
            last.set(xlabel=f"predicted by {name}", ylabel="measured HFC/LFC")
            last.legend(fontsize=5.5)
            figure.supxlabel(
                f"loops (log); black: median of {inputs} inputs; diamond: end by the local law, "
                f"on the frame where beyond; dotted: HFC/LFC = {COLLAPSED:g}", fontsize=8,
            )  # fmt: skip
            figure.suptitle(title)
        return figure


def label(layers: tuple[int, ...]) -> str:
    """'3', or '1-12' for layers that follow one another."""
    return f"{layers[0]}" if len(layers) == 1 else f"{layers[0]}-{layers[-1]}"


def _listed(kinds: pd.Series) -> str:
    """'collapsed 3, a cycle 1'."""
    return ", ".join(f"{kind} {count}" for kind, count in Counter(kinds).most_common())


LOOPS = 200
# Of the stream's length: what a loop at a fixed point still moves, and how near two ends are one.
MOVED = 1e-4
SAME = 1e-2
POWERS = 30

Group = tuple[int, ...]


@one_thread()
def loop(
    model: Model, inputs: Iterable[Any], *, groups: Sequence[Group] | None = None,
    loops: int = LOOPS, seed: int = 0,
) -> Loops:  # fmt: skip
    """Loop each group of layers (numbers from 1, in turn) `loops` times from the stream in front of
    its first on every input; None: every block of the model by itself, each once.

    With two or more groups and inputs a predictor is chosen on half of both and scored on the
    others, by the seed. Raises `InputError` for fewer than 20 loops, groups that the model does not
    have, inputs of different lengths, and blocks without an invariant consensus.
    """
    chosen = _chosen(model, groups, loops)
    rows: list[dict[str, Any]] = []
    curves: list[list[np.ndarray]] = [[] for _ in chosen]
    names: dict[str, None] = {}
    seen = 0
    with _shown(model, inputs, chosen) as shown:
        for batch, run in maps.runs(model, inputs):
            traces = extract(model, batch, verify=False).traces
            gaps = spectral_gaps(model.layers, traces)[GAP_NAMES[0]]
            with torch.no_grad(), evaluating(model.module):
                for place, group in enumerate(chosen):
                    blocks = [run.blocks[number - 1] for number in group]
                    X, gap = run.states[group[0] - 1], gaps[:, [k - 1 for k in group]].sum(1)
                    own, predicted, logs = of_group(model, blocks, X, gap, loops)
                    curves[place].append(logs)
                    names |= dict.fromkeys(predicted)
                    for k, row in enumerate(own):
                        said = {name: float(values[k]) for name, values in predicted.items()}
                        rows.append({"group": place, "input": seen + k} | row | said)
                    shown.update()
            seen += len(run.states[0])
    joined = [np.concatenate(each, axis=1) for each in curves]
    return Loops(model.name, chosen, seed, pd.DataFrame(rows), np.stack(joined), tuple(names))


def _chosen(model: Model, groups: Sequence[Group] | None, loops: int) -> list[Group]:
    """The groups that are looped; raises `InputError` for too few loops, and for other layers."""
    whole_number("loops", loops, 20)
    chosen = own_blocks(model) if groups is None else list(groups)
    for group in chosen:
        if not group or not all(1 <= number <= model.depth for number in group):
            named = "-".join(map(str, group[:9])) + "-..." * (len(group) > 9)
            raise InputError(
                f"the group {named or '(none)'} names layers that "
                f"'{model.name}' does not have: it has layers 1 to {model.depth}"
            )
    return chosen


def _shown(model: Model, inputs: Any, groups: list[Group]) -> Bar:
    """A bar of the groups, batch by batch."""
    size = 1 if model.modality == "text" else maps.BATCH
    return Bar(len(groups) * math.ceil((count(inputs) or 1) / size), "block")


@one_thread()
def recalled(
    model: Model, inputs: Iterable[Any], recall: float, *, groups: Sequence[Group] | None = None,
    loops: int = LOOPS, seed: int = 0,
) -> Result:  # fmt: skip
    """The table `runs`, one row a group and input: moved (by the last loop, relative), growth (log
    of ||X|| over the last half, in log 2: 1 is linear), apart (the largest relative distance of the
    three ends), start and end (HFC/LFC), radius (of the derivative at the end, NaN where there is
    no fixed point), outcome. Raises `InputError` for recall that is 0 or not finite, and as `loop`.
    """
    if not math.isfinite(recall) or recall == 0:
        raise InputError(f"recall is {recall}: give a finite number other than 0")
    chosen = _chosen(model, groups, loops)
    generator = torch.Generator().manual_seed(seed)
    rows: list[dict[str, Any]] = []
    seen = 0
    with _shown(model, inputs, chosen) as shown:
        for _, run in maps.runs(model, inputs):
            with torch.no_grad(), maps.plain_attention(model.module):
                for group in chosen:
                    blocks = [run.blocks[number - 1] for number in group]
                    X = run.states[group[0] - 1]
                    for k, row in enumerate(_rows(blocks, X, recall, loops, generator)):
                        rows.append({"blocks": label(group), "input": seen + k} | row)
                    shown.update()
            seen += len(run.states[0])
    table = pd.DataFrame(rows)
    return Result(
        "recall",
        f"{model.name}: blocks looped {loops} times with recall {recall:g}",
        {"runs": Table(table, dict.fromkeys(("start", "end"), "HFC/LFC"), means=MEANS["recall"])},
        [Sentence(_words(table, recall), measured(seen))],
        {"model": model.name, "recall": recall, "loops": loops, "seed": seed},
    )


def _words(table: pd.DataFrame, recall: float) -> str:
    """What became of the runs, and how tokens differ where there is a fixed point."""
    fixed = table[table["outcome"].str.startswith("one fixed point")]
    more = ""
    if len(fixed):
        ratio = float(np.exp(np.log(fixed["end"] / fixed["start"]).mean()))
        more = (
            f" At the fixed points HFC/LFC is {ratio:.2g} times that of X_0 (geometric mean), and "
            f"the derivative's radius is estimated at {fixed['radius'].max():.2f} at most."
        )
    return f"X <- f(X) + {recall:g} X_0 in {len(table)} runs: {_listed(table['outcome'])}.{more}"


def _rows(
    blocks: list[BlockMap], X: Tensor, recall: float, loops: int, generator: torch.Generator
) -> list[dict[str, Any]]:
    shuffled = X[:, torch.randperm(X.shape[1], generator=generator)]
    other = X.roll(1, 0) if len(X) > 1 else shuffled
    starts = X, maps.at_consensus(X), other
    runs = [looped(blocks, X, loops, recall, start) for start in starts]
    ends = [run.tail[-1] for run in runs]
    size = lengths(ends[0])
    moved = torch.stack([lengths(r.tail[-1] - r.tail[-2]) / lengths(r.tail[-1]) for r in runs])
    apart = torch.stack([lengths(each - ends[0]) / size for each in ends[1:]]).amax(0)
    sizes = runs[0].lengths
    growth = (sizes[-1] - sizes[loops // 2]) / math.log(loops / (loops // 2))
    radius = _radius(blocks, ends[0], generator)
    start, end = np.exp(runs[0].logs[[0, -1]])
    rows = []
    for k in range(len(X)):
        still, far = float(moved[:, k].max()), float(apart[k])
        fixed = still <= MOVED
        if fixed:
            outcome = "one fixed point from three starts" if far <= SAME else "several fixed points"
        else:
            outcome = "none: the stream grows" if growth[k] > 0.5 else "none reached"
        row = {
            "start": float(start[k]), "end": float(end[k]), "moved": still,
            "growth": float(growth[k]), "apart": far,
            "radius": float(radius[k]) if fixed else math.nan, "outcome": outcome,
        }  # fmt: skip
        rows.append(row)
    return rows


def _radius(blocks: list[BlockMap], X: Tensor, generator: torch.Generator) -> Tensor:
    """The growth of a drawn direction under the derivative at X, over the last half of POWERS."""
    D = torch.randn(X.shape, generator=generator, dtype=X.dtype)
    logs = []
    for _ in range(POWERS):
        at = X
        for f in blocks:
            D, at = maps.jvp(f, at, D), f(at)
        size = lengths(D)
        logs.append(size.log())
        D = D / size[:, None, None]
    return torch.stack(logs[POWERS // 2 :]).mean(0).exp()
