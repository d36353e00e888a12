"""Tables 2 and 3 of arXiv 2401.04301 (v1): errors with fewer images, and on corrupted ones.

The picture shows what ViT+ and ViT- err more than ViT, the paper and ours on one axis; errors
themselves stand in the data. Ours are the rows of `oversmoothing study core`: ordinary ViTs, ViT+
and ViT- whose heads have their own values, from the study in the folder of results, else from the
recorded one.
"""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oversmoothing.experiments.digits.corruptions import SEVERITIES
from oversmoothing.experiments.intervals import mean_interval, named
from oversmoothing.experiments.study import answers as study
from oversmoothing.experiments.study.answers import recorded_rows, table as answered
from oversmoothing.experiments.study.protocol import PAPER_SCALE, Cell, Protocol, Question, protocol
from oversmoothing.experiments.study.study_runs import ROWS, known, read_rows
from oversmoothing.experiments.study.study_tasks import CORRUPTED
from oversmoothing.paper_figures import figure_base as base
from oversmoothing.paper_figures.models_shown import COLOUR, CORRUPTION, DATA_EFFICIENCY, LABEL
from oversmoothing.simulations.drawing.picture import PALETTE, new_figure
from oversmoothing.simulations.drawing.wording import signed

TITLE = "Tables 2 and 3: what ViT+ and ViT\u2212 err more than ViT"
SHORT = (
    "Differences of the test error to that of ViT, with fewer training images and on "
    "corrupted ones: as the paper prints them for CIFAR-100, and ours of other models, from "
    "the study in this folder or the recorded runs."
)
NOT_SHOWN = (
    "Ours are other models, trained for fewer steps, or of other data and corruptions: "
    "numbers are not comparable, only which model errs less. With few seeds that often stays "
    "open."
)

# Table -> the questions of the study that ask it, and what an error of it belongs to.
TABLES = {"Table 2": (("P1", "P2", "T2"), "share of the images"), "Table 3": (("P9",), "severity")}
SHARES = {1.0: "all", 0.5: "half", 0.1: "a tenth"}
PAPER = "the paper"
DATA = {
    "cifar100-32": "CIFAR-100 at the paper's size", "cifar100": "CIFAR-100", "digits": "digits",
}  # fmt: skip
PIXELS = {"cifar100-32": "32 x 32 pixels, ", "cifar100": "16 x 16 pixels, ", "digits": ""}
# Form of H in the study -> the paper's model.
VARIANT = {"ord": "vit", "plus": "vit+", "minus": "vit-"}
# Of a question, what is kept.
_ORDER = ("question", "says", "value", "low", "high", "seeds", "planned", "decision")
# A decision: what it says of ours, and the verdict. What shows no effect was checked: the paper
# reports one.
_SMALL = "smaller than the point asked for"
_SHOWS = {"supported": ("as stated", base.REPRODUCED), "refuted": ("the other way", base.DIFFERS),
          study.SMALLER: (_SMALL, base.DIFFERS), study.OTHER_WAY: ("the other way", base.DIFFERS),
          study.NOTHING: ("no effect", base.DIFFERS)}  # fmt: skip
_MARKER = {"vit+": "^", "vit-": "v"}


def data(context: base.Context) -> pd.DataFrame:
    """Columns table, kind, source, size, recorded; of kind 'error' (a row a variant and place x,
    the paper's first) error, sd, seeds, and gap, gap_low, gap_high: the error less that of ViT, of
    ours paired by seed with its 95 % interval; of kind 'order' a question of the study that asks
    the table, with its decision (`answers.table`), place x, margin and the paper's difference."""
    rows, recorded = read_rows(context.results / "study" / ROWS), {}
    if not rows:
        rows = recorded_rows()
        when = sorted((row["made"]["date"], row["configuration"]["task"]) for row in rows)
        recorded = {task: date for date, task in when}
    asked = []
    for chosen in (protocol(PAPER_SCALE), protocol()):
        own = known(rows, chosen)
        asked.append((chosen, own, answered(chosen, own)))
    parts = []
    for title in TABLES:
        paper = _typed_in(title)
        vit = paper[paper["variant"] == "vit"].set_index("x")["error"]
        paper["gap"] = paper["error"] - paper["x"].map(vit)
        parts.append(paper.assign(table=title, kind="error", source=PAPER))
        for source in DATA:
            for each in asked:
                parts += _ours(*each, source, title, recorded.get(source, ""))
    return pd.concat(parts, ignore_index=True)


def _ours(
    chosen: Protocol, own: dict[tuple[str, int], Any], answers: pd.DataFrame, source: str,
    title: str, recorded: str,
) -> list[pd.DataFrame]:  # fmt: skip
    """Errors and orders of a task's networks, none where the protocol trains none on it.

    own: the runs of the protocol by cell and seed; answers: what they give.
    """
    cells = [cell for cell, _ in chosen.cells.values() if cell.task == source]
    errors = _by_seed(chosen, own, cells, title) if cells else pd.DataFrame()
    if not len(errors):
        return []
    of = {"table": title, "source": source, "size": _size(cells[0]), "recorded": recorded}
    asked = [
        each
        for each in chosen.questions
        if each.name.split()[0] in TABLES[title][0]
        and chosen.cells[each.first][0].task == source
    ]  # fmt: skip
    named = answers["question"].isin([each.name for each in asked])
    orders = answers.loc[named, list(_ORDER)].assign(
        x=[0.0 if title == "Table 3" else chosen.cells[each.first][0].fraction for each in asked],
        margin=[each.margin for each in asked],
        paper=[_of_the_paper(each, chosen) for each in asked],
    )  # fmt: skip
    return [_summary(errors).assign(kind="error", **of), orders.assign(kind="order", **of)]


def _of_the_paper(question: Question, chosen: Protocol) -> float:
    """What is asked, in points, of the models of the paper."""
    said = []
    for cell, _ in (chosen.cells[name] for name in chosen.cells_of(question)):
        clean, *corrupted = CORRUPTION[variant := VARIANT[cell.design.form]]
        error = 100 - DATA_EFFICIENCY[variant][cell.fraction][0]
        said.append(error if question.measure == "error" else clean - float(np.mean(corrupted)))
    return said[0] - said[1]


def _size(cell: Cell) -> str:
    """Of its models, in words."""
    design = cell.design
    return f"{PIXELS[cell.task]}depth {design.depth}, width {design.width}, {cell.steps} steps"


def _typed_in(title: str) -> pd.DataFrame:
    """100 less the accuracies, with their sd in Table 2."""
    if title == "Table 2":
        rows = [(variant, fraction, 100 - right, sd)
                for variant, row in DATA_EFFICIENCY.items()
                for fraction, (right, sd) in row.items()]  # fmt: skip
    else:
        rows = [(variant, severity, 100 - right, np.nan)
                for variant, row in CORRUPTION.items()
                for severity, right in zip(SEVERITIES, row, strict=True)]  # fmt: skip
    return pd.DataFrame(rows, columns=["variant", "x", "error", "sd"])


def _by_seed(
    chosen: Protocol, own: dict[tuple[str, int], Any], cells: list[Cell], title: str
) -> pd.DataFrame:
    """variant, x, seed, error of each run of the cells that differ from the first in form and share
    alone; of Table 3 of those with all images, severity 0 that of the images that are corrupted."""
    ended = {name: runs for name, _, _, runs in chosen.runs(own)}
    rows = []
    for form, variant in VARIANT.items():
        design = cells[0].design.but(form=form)
        for cell in cells:
            if cell.design != design or (cell.steps, cell.tier) != (cells[0].steps, cells[0].tier):
                continue
            for run in ended[cell.name]:
                places = [(cell.fraction, run["score"]["error"])]
                if title == "Table 3":
                    places = list(enumerate(run["corruption"])) if "corruption" in run else []
                rows += [(variant, x, run["seed"], error) for x, error in places]
    return pd.DataFrame(rows, columns=["variant", "x", "seed", "error"])


def _summary(errors: pd.DataFrame) -> pd.DataFrame:
    rows = []
    vit = errors[errors["variant"] == "vit"].set_index(["x", "seed"])["error"]
    for (variant, x), own in errors.groupby(["variant", "x"], sort=False):
        gap = (own.set_index(["x", "seed"])["error"] - vit).dropna().to_numpy(dtype=np.float64)
        rows.append(
            {"variant": variant, "x": x, "error": own["error"].mean(), "sd": own["error"].std(),
             "seeds": len(own), **named("gap", mean_interval(gap, fewest=2))}
        )  # fmt: skip
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame) -> Figure:
    """Difference to ViT in points: a panel a table, the paper black, CIFAR-100 filled, large at
    the paper's size, digits open."""
    figure, axes = new_figure(1, 2, height=3.4, sharey=True)
    errors = table[table["kind"] == "error"]
    sources = list(dict.fromkeys(errors["source"]))
    for axis, title in zip(axes[0], TABLES, strict=True):
        _panel(axis, errors[errors["table"] == title], sources)
    first, second = axes[0]
    first.set_title("Table 2: fewer training images")
    second.set_title("Table 3: corrupted images")
    first.set(ylabel="test error minus that of ViT (points)", xlabel="training images used (%)")
    second.set_xlabel("severity of the corruption")
    if len(sources) == 1:
        words = "no runs of ours in this folder:\noversmoothing study core"
        second.text(0.5, 0.9, words, ha="center", va="top", transform=second.transAxes)
    whose = {PAPER: "CIFAR-100, the paper"} | {name: f"{said}, ours" for name, said in DATA.items()}
    handles = [base.mark(whose[each], **_look(each, PALETTE["grey"], "s")) for each in sources]
    handles += [
        base.mark(LABEL[each], marker, color=COLOUR[each]) for each, marker in _MARKER.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    base.label_panels(axes)
    return figure


def _look(source: str, colour: str, marker: str) -> dict[str, Any]:
    if source == PAPER:
        colour = PALETTE["black"]
    large = source == "cifar100-32"
    return {"marker": marker, "color": colour, "markersize": 7 if large else 4.5,
            "markeredgecolor": PALETTE["black"] if large else colour,
            "markerfacecolor": "white" if source == "digits" else colour}  # fmt: skip


def _panel(axis: Axes, part: pd.DataFrame, sources: list[str]) -> None:
    # Table 2 from all images to a tenth, as Table 3 from clean to severe.
    places = {x: place for place, x in enumerate(dict.fromkeys(part["x"]))}
    axis.axhline(0, color=PALETTE["grey"], linewidth=0.8)
    series = [(source, variant) for source in sources for variant in _MARKER]
    for number, (source, variant) in enumerate(series):
        own = part[(part["source"] == source) & (part["variant"] == variant)]
        aside = 0.11 * (number - (len(series) - 1) / 2)
        where = own["x"].map(places) + aside
        reach = None
        if source != PAPER:
            reach = [own["gap"] - own["gap_low"], own["gap_high"] - own["gap"]]
        axis.errorbar(
            where, own["gap"], reach, linestyle="none", linewidth=0.8,
            **_look(source, COLOUR[variant], _MARKER[variant]),
        )  # fmt: skip
    share = part["x"].max() <= 1
    axis.set_xticks(list(places.values()), [f"{100 * x if share else x:g}" for x in places])
    axis.grid(False, axis="x")


def compared(table: pd.DataFrame) -> list[base.Comparison]:
    """The order of the models by the study's decisions, and the numbers, which are of others."""
    return [each for title in TABLES for each in _compared(table[table["table"] == title], title)]


def _compared(table: pd.DataFrame, title: str) -> list[base.Comparison]:
    errors = table[table["kind"] == "error"]
    paper = errors[errors["source"] == PAPER]
    _, places = TABLES[title]
    said = []
    for source, rows in table[table["kind"] == "order"].groupby("source", sort=False):
        for _, row in rows.iterrows():
            # The errors of the baselines with as many images, without corruption.
            vit = errors[(errors["variant"] == "vit") & (errors["x"] == row["x"])]
            known = [vit.loc[vit["source"] == each, "error"].mean() for each in (source, PAPER)]
            of = f" of ViT with {SHARES.get(row['x'], 'all')} of the images"
            order = _order(row, f"{title}, {DATA[str(source)]}")
            said.append(base.at_accuracy(order, known[0], known[1], of))
    for source, own in errors[errors["source"] != PAPER].groupby("source", sort=False):
        size = f"{own['size'].iloc[0]}, {_seeds(own)}{_when(own.iloc[0])}"
        why = f"asked at small scale ({size}), not with the paper's ViT-Ti"
        if source == "digits":
            why = f"{DATA[str(source)]} ({size}) and CIFAR-100 are other data at another size"
        elif source == "cifar100-32":
            why = f"the paper's model, data and share, but our own recipe ({size})"
        for variant, part in own.groupby("variant", sort=False):
            errors_of = f"{title}, errors of {LABEL[str(variant)]}, {DATA[str(source)]}"
            same = paper[paper["variant"] == variant]
            each = base.unchecked(
                f"{errors_of}: in %, by {places}", _listed(same), why, _listed(part)
            )
            said.append(replace(each, recorded=bool(_when(own.iloc[0]))))
    if len(errors) == len(paper):
        span = f"{paper['error'].min():.2f} to {paper['error'].max():.2f} %"
        why = "no runs: `oversmoothing study core` makes them"
        return [base.unchecked(f"{title}, errors", span, why)]
    return said


def _order(row: pd.Series, where: str) -> base.Comparison:
    # The row has table and data of its own; the question need not say them again.
    asked = row["question"].removesuffix(where.partition(", ")[2]).rstrip(", ")
    again = r"^(The paper's Table \d[^:]*: |Digits, )|(?<=images):| \(the paper: yes\)"
    says = re.sub(again, "", row["says"])
    what = f"{where}, {asked}: {says[0].upper()}{says.rstrip('.')[1:]}"
    small = abs(row["paper"]) < row["margin"]
    paper = f"{signed(row['paper'])} points on CIFAR-100, {_SMALL if small else 'as stated'}"
    if row["decision"] in ("not run", "void"):
        why = f"{row['seeds']:.0f} of {row['planned']:.0f} seeds are there"
        return base.unchecked(what, paper, f"{why}: `oversmoothing study core` makes them")
    models = f"{row['seeds']:.0f} seeds of our models ({row['size']}{_when(row)})"
    why = f"{models}: the statement, not the number"
    ends = None if np.isnan(row["low"]) else (row["value"], row["low"], row["high"])
    shows, verdict = _SHOWS.get(row["decision"], (row["decision"], base.UNCHECKED))
    if small and row["decision"] == study.SMALLER:
        verdict = base.REPRODUCED
    elif small and row["decision"] == study.NOTHING:
        inside = row["low"] <= row["paper"] <= row["high"]
        verdict = base.UNCHECKED if inside else base.DIFFERS
        why = f"{why}; the paper's lies {'within' if inside else 'outside'} our interval"
    return base.Comparison(
        what,
        paper,
        f"{signed(row['value'])} [{signed(row['low'])}, {signed(row['high'])}] points, {shows}",
        "written before the runs, oversmoothing study answers",
        verdict,
        why,
        ends,
        bool(_when(row)),
    )


def _seeds(part: pd.DataFrame) -> str:
    few, many = int(part["seeds"].min()), int(part["seeds"].max())
    return f"{many if few == many else f'{few} to {many}'} seed{'s' if many > 1 else ''}"


def _when(row: pd.Series) -> str:
    """', recorded run of 2026-01-01' where it is none of the folder of results."""
    date = row["recorded"]
    return f", recorded run of {date}" if isinstance(date, str) and date else ""


def _listed(part: pd.DataFrame) -> str:
    """'all: 33.22 ± 0.10, half: 43.62 ± 0.50', in the order of the table; severities by number."""
    named = SHARES if part["table"].iloc[0] == "Table 2" else {}
    said = [
        f"{named.get(x, f'{x:g}')}: {error:.2f}" + ("" if np.isnan(sd) else f" ± {sd:.2f}")
        for x, error, sd in part[["x", "error", "sd"]].to_numpy(float)
    ]
    return ", ".join(said)


def words(table: pd.DataFrame) -> str:
    own = table[(table["kind"] == "error") & (table["source"] != PAPER)]
    of = " ".join(
        f"{DATA[str(source)]}: {part['size'].iloc[0]}, mean and sd over {_seeds(part)}"
        f"{_when(part.iloc[0])}."
        for source, part in own.groupby("source", sort=False)
    )
    ours = (
        "Colours: ours, of `oversmoothing study core`, heads with values of their own, paired by "
        "seed, bars 95 % intervals; as many steps at a smaller share of the images; corruptions in "
        f"the style of CIFAR-C on the first {CORRUPTED:,} test images, means over the kinds. {of}"
    )
    return (
        "Above 0 a model errs more than ViT. Black: the paper (arXiv 2401.04301, v1), CIFAR-100, "
        f"typed in, 100 minus its accuracies. {ours if len(own) else 'No runs of ours are there.'}"
    )
