"""What `oversmoothing study` found, for the paper's Tables 2 and 3: of digits and of CIFAR-100.

Runs come from the study in the folder of results; where it holds none, from the recorded run that
is part of the project, if there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oversmoothing.experiments.digits.config import TrainConfig
from oversmoothing.experiments.study.protocol import SHIPPED, Protocol, protocol
from oversmoothing.experiments.study.study_files import RecordedStudy, folder_name, recorded_study
from oversmoothing.experiments.study.study_tables import adjudicated
from oversmoothing.paper_figures.comparison import (
    DIFFERS,
    REPRODUCED,
    UNCHECKED,
    Comparison,
    at_accuracy,
    unchecked,
)
from oversmoothing.paper_figures.digits_models import COLOUR, LABEL
from oversmoothing.paper_figures.figure_base import label_panels, new_figure
from oversmoothing.simulations.drawing.wording import signed
from oversmoothing.theory.support.errors import InputError

# The models that the paper has: one H in each layer.
VARIANTS = ("vit", "vit+", "vit-")
PAPER = "the paper"
DATA = {"cifar100": "CIFAR-100", "digits": "digits"}
assert set(DATA) == set(SHIPPED)
# The paper's beside ours, in one legend.
NAMES = {**LABEL, "vit": f"ViT (paper), {LABEL['vit']} (ours)"}
_VERDICT = {"supported": REPRODUCED, "refuted": DIFFERS}
_MARKER = {"vit": "o", "vit+": "^", "vit-": "v"}


@dataclass(frozen=True)
class Study:
    """One study on one data set. runs: a row a run. base: those of the paper's three models that
    differ from the protocol's base in nothing but the variant, the fraction and the seed. recorded:
    the date of a recorded run, else ''."""

    name: str
    chosen: Protocol
    runs: pd.DataFrame
    recorded: str = ""

    @property
    def base(self) -> pd.DataFrame:
        names = {
            self.chosen.run({"variant": variant, "fraction": fraction}, seed).name
            for variant in VARIANTS
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
    found = {}
    for data in DATA:
        chosen = protocol(data)
        folder = results / folder_name(chosen)
        for path in (folder / "runs.csv", folder / f"runs_{name}.csv"):
            if path.exists():
                found[data] = Study(name, chosen, _read(path))
                break
        else:
            if (recorded := recorded_runs(data)) is not None and name in recorded.studies:
                date = str(recorded.made["date"])
                found[data] = Study(name, chosen, recorded.runs, date)
    return found


def recorded_runs(data: str) -> RecordedStudy | None:
    """The recorded study of a data set, None where there is none yet."""
    folder = resources.files("oversmoothing.experiments.study") / "results" / data
    return recorded_study(data) if folder.is_dir() else None


def _read(path: Path) -> pd.DataFrame:
    runs = pd.read_csv(path)
    if not {"run", "variant", "tied", "fraction", "seed", "test_error"} <= set(runs):
        raise InputError(f"'{path}' is no table of runs: delete it and run the study again")
    return runs


def joined(paper: pd.DataFrame, ours: dict[str, tuple[Study, pd.DataFrame]]) -> pd.DataFrame:
    """The columns kind, source, size, recorded, variant, x, error, sd, seeds; and where there are
    runs a row each for the study's hypotheses that quote the paper, with its verdict
    (`adjudicated`).

    paper, and by data set ours: variant, x, error, sd (and seeds).
    """
    parts = [paper.assign(kind="error", source=PAPER)]
    for data, (study, errors) in ours.items():
        if len(errors):
            known = {"source": data, "size": study.size, "recorded": study.recorded}
            parts.append(errors.assign(kind="error", **known))
            judged = adjudicated(study.chosen, [study.name], study.runs)
            quoting = judged[judged["says"].str.contains("paper's Table")]
            parts.append(quoting.assign(kind="order", **known))
    return pd.concat(parts, ignore_index=True)


def draw(table: pd.DataFrame, axis_label: str, study: str, *, log: bool) -> Figure:
    """The paper's numbers (left) and ours by data set, each on its own scale: other models."""
    errors = table[table["kind"] == "error"]
    sources = list(errors["source"].unique())
    figure, axes = new_figure(1, max(2, len(sources)), height=2.9)
    for axis, source in zip(axes[0], sources, strict=False):
        part = errors[errors["source"] == source]
        _lines(axis, part)
        axis.set(xlabel=axis_label, title=_title(source, part))
        if log:
            axis.set_xscale("log")
            axis.set_xticks([0.1, 0.5, 1.0], ["10", "50", "100"])
            axis.minorticks_off()
    if len(sources) == 1:
        axes[0, 1].set(xticks=[], yticks=[], title="ours")
        words = f"no runs in this folder:\noversmoothing study {study}"
        axes[0, 1].text(
            0.5, 0.5, words, ha="center", va="center", transform=axes[0, 1].transAxes
        )  # fmt: skip
    axes[0, 0].set_ylabel("test error (%)")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    label_panels(axes)
    return figure


def _title(source: str, part: pd.DataFrame) -> str:
    """Two lines, so that none runs into its neighbour's."""
    if source == PAPER:
        return "CIFAR-100, the paper,\ntyped in"
    return f"{DATA[source]}, ours ({_seeds(part)}):\n{part['size'].iloc[0]}"


def _seeds(part: pd.DataFrame) -> str:
    few, many = int(part["seeds"].min()), int(part["seeds"].max())
    return f"{many if few == many else f'{few} to {many}'} seed{'s' if many > 1 else ''}"


def _lines(axis: Axes, part: pd.DataFrame) -> None:
    for variant, own in part.groupby("variant", sort=False):
        axis.errorbar(
            own["x"], own["error"], own["sd"].fillna(0.0), color=COLOUR[str(variant)],
            marker=_MARKER[str(variant)], label=NAMES[str(variant)], capsize=2,
        )  # fmt: skip


def compared(table: pd.DataFrame, title: str, places: str) -> list[Comparison]:
    """The order of the models by the study's verdicts, and the numbers, which are of others.

    places: where along the axis the numbers are, in words.
    """
    errors = table[table["kind"] == "error"]
    paper = errors[errors["source"] == PAPER]
    found = []
    for source, rows in table[table["kind"] == "order"].groupby("source", sort=False):
        # The errors of the baselines, with all images and without corruption.
        whole = errors[(errors["variant"] == "vit") & (errors["x"] == errors["x"].iloc[0])]
        known = [whole.loc[whole["source"] == each, "error"].mean() for each in (source, PAPER)]
        for _, row in rows.iterrows():
            order = _order(row, f"{title}, {DATA[str(source)]}")
            found.append(at_accuracy(order, *known))
    for source, own in errors[errors["source"] != PAPER].groupby("source", sort=False):
        size = f"{own['size'].iloc[0]}, {_seeds(own)}{_when(own.iloc[0])}"
        why = f"a smaller model ({size}) than the paper's ViT-Ti"
        if source != "cifar100":
            why = f"{DATA[str(source)]} ({size}) and CIFAR-100 are other data at another size"
        for variant, part in own.groupby("variant", sort=False):
            what = f"{title}, errors of {NAMES[str(variant)]}, {DATA[str(source)]}: {places}"
            same = paper[paper["variant"] == variant]
            found.append(unchecked(what, _listed(same), why, _listed(part)))
    if len(errors) == len(paper):
        span = f"{paper['error'].min():.2f} to {paper['error'].max():.2f} %"
        return [unchecked(f"{title}, errors", span, "no runs: `oversmoothing study` makes them")]
    return found


def _order(row: pd.Series, where: str) -> Comparison:
    what, paper = f"{where}, {row['name']}: {row['says'].rstrip('.')}", "so on CIFAR-100"
    if not row["seeds"]:
        return unchecked(what, paper, "no runs of it: `oversmoothing study` makes them")
    seeds = "1 seed" if row["seeds"] == 1 else f"{row['seeds']:.0f} seeds"
    models = f"{seeds} of our models ({row['size']}{_when(row)})"
    why = f"{models}: the statement, not the number"
    interval = f"[{signed(row['low'])}, {signed(row['high'])}]"
    if np.isnan(row["low"]):
        why, interval = f"{models}: no interval without spread", ""
    elif row["verdict"] == "open":
        why += "; the interval reaches to both sides"
    return Comparison(
        what,
        paper,
        f"{signed(row['difference'])} {interval}".strip() + " points",
        "the whole interval over seeds on one side",
        _VERDICT.get(row["verdict"], UNCHECKED),
        why,
    )


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


def in_caption(table: pd.DataFrame) -> str:
    """Of what models ours are, a sentence each."""
    own = table[(table["kind"] == "error") & (table["source"] != PAPER)]
    return " ".join(
        f"{DATA[str(source)]}: {part['size'].iloc[0]}, mean and sd over {_seeds(part)}"
        f"{_when(part.iloc[0])}."
        for source, part in own.groupby("source", sort=False)
    )
