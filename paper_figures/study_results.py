"""What `oversmoothing study` left in a folder of results, for the paper's Tables 2 and 3."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oversmoothing.experiments.study.adjudicate import adjudicated
from oversmoothing.experiments.study.protocol import protocol
from oversmoothing.paper_figures.comparison import (
    DIFFERS,
    REPRODUCED,
    UNCHECKED,
    Comparison,
    unchecked,
)
from oversmoothing.paper_figures.digits_models import COLOUR, LABEL
from oversmoothing.paper_figures.figure_base import label_panels, new_figure
from oversmoothing.theory.support.errors import InputError

# The models that the paper has: one H in each layer.
VARIANTS = ("vit", "vit+", "vit-")
PAPER = "arXiv 2401.04301 (v1), CIFAR-100, typed in"
OURS = "digits, the study's runs"
_VERDICT = {"supported": REPRODUCED, "refuted": DIFFERS}
_MARKER = {"vit": "o", "vit+": "^", "vit-": "v"}


def study_runs(results: Path, study: str) -> pd.DataFrame:
    """A row a run of that study, or none where `results` holds no study.

    Raises `InputError` for a table without the columns of a study.
    """
    for name in ("runs.csv", f"runs_{study}.csv"):
        path = results / "study" / name
        if path.exists():
            found = pd.read_csv(path)
            if not {"run", "variant", "tied", "fraction", "seed", "test_error"} <= set(found):
                raise InputError(f"'{path}' is no table of runs: delete it and run the study again")
            return found
    return pd.DataFrame()


def base_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of the paper's three models that differ from the study's base in nothing but the
    variant, the fraction and the seed."""
    chosen = protocol()
    names = {
        chosen.run({"variant": variant, "fraction": fraction}, seed).name
        for variant in VARIANTS
        for fraction in chosen.design["fractions"]
        for seed in chosen.seeds
    }
    return runs[runs["run"].isin(names)]


def joined(paper: pd.DataFrame, ours: pd.DataFrame, study: str, runs: pd.DataFrame) -> pd.DataFrame:
    """The columns kind, source, variant, x, error, sd, seeds; and where there are runs a row each
    for the study's hypotheses that quote the paper, with its verdict (`adjudicated`)."""
    parts = [paper.assign(kind="error", source=PAPER)]
    if len(ours):
        parts.append(ours.assign(kind="error", source=OURS))
        judged = adjudicated(protocol(), [study], runs)
        quoting = judged[judged["says"].str.contains("paper's Table")]
        parts.append(quoting.assign(kind="order", source=OURS))
    return pd.concat(parts, ignore_index=True)


def draw(table: pd.DataFrame, axis_label: str, study: str, *, log: bool) -> Figure:
    """The paper's numbers (left) and the study's (right), each on its own scale: other data."""
    figure, axes = new_figure(1, 2, height=2.9)
    for axis, source in zip(axes[0], (PAPER, OURS), strict=True):
        part = table[(table["kind"] == "error") & (table["source"] == source)]
        _lines(axis, part)
        axis.set_xlabel(axis_label)
        if log and len(part):
            axis.set_xscale("log")
            axis.set_xticks([0.1, 0.5, 1.0], ["10", "50", "100"])
            axis.minorticks_off()
        if not len(part):
            axis.set(xticks=[], yticks=[])
            words = f"no runs in this folder:\noversmoothing study {study}"
            axis.text(0.5, 0.5, words, ha="center", va="center", transform=axis.transAxes)
    axes[0, 0].set_title("CIFAR-100, the paper, typed in")
    axes[0, 1].set_title("digits, ours: other data")
    axes[0, 0].set_ylabel("test error (%)")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    label_panels(axes)
    return figure


def _lines(axis: Axes, part: pd.DataFrame) -> None:
    for variant, own in part.groupby("variant", sort=False):
        axis.errorbar(
            own["x"], own["error"], own["sd"].fillna(0.0), color=COLOUR[str(variant)],
            marker=_MARKER[str(variant)], label=LABEL[str(variant)], capsize=2,
        )  # fmt: skip


def compared(table: pd.DataFrame, title: str) -> list[Comparison]:
    """The order of the models by the study's verdicts, and the numbers, which are of other data."""
    rows = table[table["kind"] == "order"]
    printed = table[table["source"] == PAPER]["error"]
    span = f"{printed.min():.2f} to {printed.max():.2f} %"
    own = table[(table["source"] == OURS) & (table["kind"] == "error")]["error"]
    if not len(own):
        return [unchecked(f"{title}, errors", span, "no runs: `oversmoothing study` makes them")]
    found = [
        Comparison(
            f"{title}, {row['name']}: {row['says']}",
            "so on CIFAR-100",
            f"{row['difference']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}] points",
            "the whole interval over seeds on one side",
            _VERDICT.get(row["verdict"], UNCHECKED),
            f"{row['seeds']:.0f} seeds of digits models: the statement, not the number"
            + ("; the interval reaches to both sides" if row["verdict"] == "open" else ""),
        )
        for _, row in rows.iterrows()
    ]
    why = "digits and CIFAR-100 are other data at another size"
    found.append(unchecked(f"{title}, errors", span, why, f"{own.min():.2f} to {own.max():.2f} %"))
    return found
