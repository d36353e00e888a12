"""Tables 2 and 3 of arXiv 2401.04301 (v1): errors with fewer images, and on corrupted ones.

The picture shows what ViT+ and ViT- err more than ViT, the paper and ours on one axis; errors
themselves stand in the data. Ours are of `oversmoothing study`, of digits and of CIFAR-100: from
the study in the folder of results, else from the recorded run that is part of the project.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from oversmoothing.experiments.digits.corruptions import SEVERITIES
from oversmoothing.experiments.digits.training_config import TRAINED, TrainConfig
from oversmoothing.experiments.intervals import mean_interval
from oversmoothing.experiments.study.protocol import (
    CORRUPTION,
    DATA_EFFICIENCY,
    SHIPPED,
    Protocol,
    protocol,
)
from oversmoothing.experiments.study.study_files import folder_name
from oversmoothing.experiments.study.study_tables import adjudicated
from oversmoothing.paper_figures.figure_base import (
    DIFFERS,
    PALETTE,
    REPRODUCED,
    UNCHECKED,
    Comparison,
    Context,
    PaperFigure,
    at_accuracy,
    label_panels,
    new_figure,
    unchecked,
)
from oversmoothing.paper_figures.models_shown import COLOUR, LABEL, SHARED_VALUE, recorded_study_of
from oversmoothing.simulations.drawing.wording import signed
from oversmoothing.theory.support.errors import InputError

# Table -> its study, and where along the axis the numbers are, in words.
STUDIES = {
    "Table 2": ("data-efficiency", "100, 50 and 10 % of the images"),
    "Table 3": ("corruption", "severities 0 to 5"),
}
PAPER = "the paper"
DATA = {"cifar100": "CIFAR-100", "digits": "digits"}
assert set(DATA) == set(SHIPPED)
# The paper's beside ours.
NAMES = {**LABEL, "vit": f"ViT (paper), {LABEL['vit']} (ours)"}
_VERDICT = {"supported": REPRODUCED, "refuted": DIFFERS}
_MARKER = {"vit+": "^", "vit-": "v"}


@dataclass(frozen=True)
class Study:
    """The runs of one protocol, a row a run. recorded: the date of a recorded study, else ''."""

    chosen: Protocol
    runs: pd.DataFrame
    recorded: str = ""

    @property
    def base(self) -> pd.DataFrame:
        """Runs of the paper's three models, the protocol's base in all but variant, fraction and
        seed."""
        names = {
            self.chosen.run({"variant": variant, "fraction": fraction}, seed).name
            for variant in TRAINED
            for fraction in self.chosen.design["fractions"]
            for seed in self.chosen.seeds
        }
        return self.runs[self.runs["run"].isin(names)]

    @property
    def size(self) -> str:
        """Of its models, in words."""
        fields = {**TrainConfig().model_dump(), **self.chosen.base}
        return f"depth {fields['depth']}, width {fields['width']}, {fields['epochs']} epochs"


def studies(results: Path, name: str) -> dict[str, Study]:
    """By data set the study of that name: of `results`, or as recorded.

    Raises `InputError` for a table without the columns of a study.
    """
    known = {}
    for data in DATA:
        chosen = protocol(data)
        folder = results / folder_name(chosen)
        for path in (folder / "runs.csv", folder / f"runs_{name}.csv"):
            if path.exists():
                known[data] = Study(chosen, _read(path))
                break
        else:
            recorded = recorded_study_of(data)
            if recorded is not None and name in recorded.studies:
                known[data] = Study(chosen, recorded.runs, str(recorded.made["date"]))
    return known


def _read(path: Path) -> pd.DataFrame:
    runs = pd.read_csv(path)
    if not {"run", "variant", "tied", "fraction", "seed", "test_error"} <= set(runs):
        raise InputError(f"'{path}' is no table of runs: delete it and run the study again")
    return runs


def data(context: Context) -> pd.DataFrame:
    """Columns table, kind, source, size, recorded; of kind 'error' (a row a variant and place x,
    the paper's first) error, sd, seeds, and gap, gap_low, gap_high: the error less that of ViT, of
    ours paired by seed with its 95 % interval; of kind 'order' a hypothesis of the study that
    quotes the paper, with its verdict (`adjudicated`)."""
    parts = []
    for title, paper in (("Table 2", _table_2()), ("Table 3", _table_3())):
        study = STUDIES[title][0]
        vit = paper[paper["variant"] == "vit"].set_index("x")["error"]
        paper["gap"] = paper["error"] - paper["x"].map(vit)
        parts.append(paper.assign(table=title, kind="error", source=PAPER))
        for source, own in studies(context.results, study).items():
            errors = _summary(_by_seed(own.base, title))
            if not len(errors):
                continue
            known = {"table": title, "source": source, "size": own.size, "recorded": own.recorded}
            judged = adjudicated(own.chosen, [study], own.runs)
            quoting = judged[judged["says"].str.contains("paper's Table")]
            parts += [errors.assign(kind="error", **known), quoting.assign(kind="order", **known)]
    return pd.concat(parts, ignore_index=True)


def _table_2() -> pd.DataFrame:
    """Typed in: 100 less the accuracies, with their sd."""
    rows = [
        (variant, fraction, 100 - right, sd)
        for variant, row in DATA_EFFICIENCY.items()
        for fraction, (right, sd) in row.items()
    ]
    return pd.DataFrame(rows, columns=["variant", "x", "error", "sd"])


def _table_3() -> pd.DataFrame:
    rows = [
        (variant, severity, 100 - right)
        for variant, row in CORRUPTION.items()
        for severity, right in zip(SEVERITIES, row, strict=True)
    ]
    return pd.DataFrame(rows, columns=["variant", "x", "error"]).assign(sd=np.nan)


def _by_seed(base: pd.DataFrame, title: str) -> pd.DataFrame:
    """variant, x, seed, error of each base run; of Table 3 of those with all images."""
    if title == "Table 2":
        rows = base.rename(columns={"fraction": "x", "test_error": "error"})
        rows = rows.sort_values(["variant", "x"], ascending=[True, False])
        return rows[["variant", "x", "seed", "error"]]
    whole = base[base["fraction"] == 1.0]
    parts = [
        whole[["variant", "seed"]].assign(x=severity, error=whole[f"error_at_{severity}"])
        for severity in SEVERITIES
        if f"error_at_{severity}" in whole
    ]
    return pd.concat([pd.DataFrame(columns=["variant", "x", "error"]), *parts]).dropna()


def _summary(errors: pd.DataFrame) -> pd.DataFrame:
    rows = []
    vit = errors[errors["variant"] == "vit"].set_index(["x", "seed"])["error"] if len(errors) else 0
    for (variant, x), own in errors.groupby(["variant", "x"], sort=False):
        gap = (own.set_index(["x", "seed"])["error"] - vit).dropna().to_numpy(dtype=np.float64)
        interval = mean_interval(gap, fewest=2)
        rows.append(
            {"variant": variant, "x": x, "error": own["error"].mean(), "sd": own["error"].std(),
             "seeds": len(own), **dict(zip(("gap", "gap_low", "gap_high"), interval, strict=True))}
        )  # fmt: skip
    return pd.DataFrame(rows)


# ------------------------------------------------------------------------------- the picture


def draw(table: pd.DataFrame) -> Figure:
    """Difference to ViT in points: a panel a table, the paper black, CIFAR-100 filled, digits
    open."""
    figure, axes = new_figure(1, 2, height=3.4, sharey=True)
    errors = table[table["kind"] == "error"]
    sources = list(dict.fromkeys(errors["source"]))
    for axis, title in zip(axes[0], STUDIES, strict=True):
        _panel(axis, errors[errors["table"] == title], sources)
    first, second = axes[0]
    first.set_title("Table 2: fewer training images")
    second.set_title("Table 3: corrupted images")
    first.set(ylabel="test error less that of ViT (points)", xlabel="training images used (%)")
    second.set_xlabel("severity of the corruption")
    if len(sources) == 1:
        words = "no runs of ours in this folder:\noversmoothing study NAME"
        second.text(0.5, 0.9, words, ha="center", va="top", transform=second.transAxes)
    handles = [
        Line2D(
            [], [], linestyle="none", label=_whose(source), **_look(source, PALETTE["grey"], "s")
        )
        for source in sources
    ]
    handles += [
        Line2D([], [], linestyle="none", label=LABEL[variant], marker=marker, color=COLOUR[variant])
        for variant, marker in _MARKER.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5)
    label_panels(axes)
    return figure


def _whose(source: str) -> str:
    return "CIFAR-100, the paper" if source == PAPER else f"{DATA[source]}, ours"


def _look(source: str, colour: str, marker: str) -> dict[str, Any]:
    if source == PAPER:
        colour = PALETTE["black"]
    return {"marker": marker, "color": colour, "markersize": 4.5,
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


# ------------------------------------------------------------------------------- the verdicts


def compared(table: pd.DataFrame) -> list[Comparison]:
    """The order of the models by the study's verdicts, and the numbers, which are of others."""
    return [each for title in STUDIES for each in _compared(table[table["table"] == title], title)]


def _compared(table: pd.DataFrame, title: str) -> list[Comparison]:
    errors = table[table["kind"] == "error"]
    paper = errors[errors["source"] == PAPER]
    study, places = STUDIES[title]
    said = []
    for source, rows in table[table["kind"] == "order"].groupby("source", sort=False):
        # The errors of the baselines, with all images and without corruption.
        whole = errors[(errors["variant"] == "vit") & (errors["x"] == errors["x"].iloc[0])]
        known = [whole.loc[whole["source"] == each, "error"].mean() for each in (source, PAPER)]
        for _, row in rows.iterrows():
            said.append(at_accuracy(_order(row, f"{title}, {DATA[str(source)]}"), *known))
    for source, own in errors[errors["source"] != PAPER].groupby("source", sort=False):
        size = f"{own['size'].iloc[0]}, {_seeds(own)}{_when(own.iloc[0])}"
        why = f"a smaller model ({size}) than the paper's ViT-Ti"
        if source != "cifar100":
            why = f"{DATA[str(source)]} ({size}) and CIFAR-100 are other data at another size"
        for variant, part in own.groupby("variant", sort=False):
            what = f"{title}, errors of {NAMES[str(variant)]}, {DATA[str(source)]}: {places}"
            same = paper[paper["variant"] == variant]
            said.append(unchecked(what, _listed(same), why, _listed(part)))
    if len(errors) == len(paper):
        span = f"{paper['error'].min():.2f} to {paper['error'].max():.2f} %"
        why = f"no runs: `oversmoothing study {study}` makes them"
        return [unchecked(f"{title}, errors", span, why)]
    return said


def _order(row: pd.Series, where: str) -> Comparison:
    what, paper = f"{where}, {row['name']}: {row['says'].rstrip('.')}", "so on CIFAR-100"
    if not row["seeds"]:
        return unchecked(what, paper, "no runs of it: `oversmoothing study` makes them")
    seeds = "1 seed" if row["seeds"] == 1 else f"{row['seeds']:.0f} seeds"
    models = f"{seeds} of our models ({row['size']}{_when(row)})"
    why = f"{models}: the statement, not the number"
    interval = f"[{signed(row['low'])}, {signed(row['high'])}]"
    ends: tuple[float, float, float] | None = (row["difference"], row["low"], row["high"])
    if np.isnan(row["low"]):
        why, interval, ends = f"{models}: no interval without spread", "", None
    elif row["verdict"] == "open":
        why += "; the interval reaches to both sides"
    return Comparison(
        what,
        paper,
        f"{signed(row['difference'])} {interval}".strip() + " points",
        "the whole interval over seeds on one side",
        _VERDICT.get(row["verdict"], UNCHECKED),
        why,
        ends,
    )


def _seeds(part: pd.DataFrame) -> str:
    few, many = int(part["seeds"].min()), int(part["seeds"].max())
    return f"{many if few == many else f'{few} to {many}'} seed{'s' if many > 1 else ''}"


def _when(row: pd.Series) -> str:
    """', recorded run of 2026-01-01' where it is none of the folder of results."""
    date = row["recorded"]
    return f", recorded run of {date}" if isinstance(date, str) and date else ""


def _listed(part: pd.DataFrame) -> str:
    """'33.22 ± 0.10, 43.62 ± 0.50 %', in the order of the table."""
    said = [
        f"{error:.2f}" + ("" if np.isnan(sd) else f" ± {sd:.2f}")
        for error, sd in part[["error", "sd"]].to_numpy(float)
    ]
    return f"{', '.join(said)} %"


def words(table: pd.DataFrame) -> str:
    """What is shown, and of what models ours are."""
    own = table[(table["kind"] == "error") & (table["source"] != PAPER)]
    of = " ".join(
        f"{DATA[str(source)]}: {part['size'].iloc[0]}, mean and sd over {_seeds(part)}"
        f"{_when(part.iloc[0])}."
        for source, part in own.groupby("source", sort=False)
    )
    return (
        "Above 0 a model errs more than ViT. Black: the paper (arXiv 2401.04301, v1), CIFAR-100, "
        "typed in, 100 less its accuracies. Colours: ours, of `oversmoothing study "
        "data-efficiency` and `corruption`, paired by seed, bars 95 % intervals; as many steps at "
        "a smaller share of the images; corruptions in the style of CIFAR-C, means over the kinds. "
        f"{of} {SHARED_VALUE}"
    )


FIGURE = PaperFigure(
    title="Tables 2 and 3: what ViT+ and ViT\u2212 err more than ViT (ours: shared-value)",
    short=(
        "Differences of the test error to that of ViT, with fewer training images and on "
        "corrupted ones: as the paper prints them for CIFAR-100, and ours of other models, from "
        "the study in this folder or the recorded runs."
    ),
    not_shown=(
        "Ours are other models, trained for fewer steps, or of other data and corruptions: "
        "numbers are not comparable, only which model errs less. With few seeds that often stays "
        "open."
    ),
    data=data,
    draw=draw,
    words=words,
    compared=compared,
)
