"""The report `index.html`: what is true, the ledger, every figure, and what was checked."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oversmoothing.paper_figures import FIGURES
from oversmoothing.paper_figures.comparison import Comparison, counted
from oversmoothing.paper_figures.digits_models import LABEL
from oversmoothing.paper_figures.explorer.explorer_page import write_explorer
from oversmoothing.paper_figures.figure_base import Context, make_figure
from oversmoothing.paper_figures.ledger_table import ledger, opening
from oversmoothing.paper_figures.processor_time import processor_seconds
from oversmoothing.simulations.drawing.picture import FigureFiles
from oversmoothing.simulations.drawing.web.web_page import as_link, typeset, web_page
from oversmoothing.simulations.provenance import provenance
from oversmoothing.theory.proofs.claim import tally
from oversmoothing.theory.support.files import write_atomically


@dataclass(frozen=True)
class Check:
    """A statement that the run must bear out, what was measured, and whether it held."""

    name: str
    statement: str
    measured: str
    holds: bool


@dataclass(frozen=True)
class Drawn:
    """The files of a figure, the seconds of processor time that it and its workers took, and for a
    figure of the paper what it reports beside ours."""

    files: FigureFiles
    seconds: float
    comparisons: tuple[Comparison, ...] = ()


def draw_figure(name: str, context: Context) -> Drawn:
    """Draw one figure by name into context.results/figures."""
    print(f"drawing {name}", file=sys.stderr, flush=True)
    start = processor_seconds()
    module = import_module(FIGURES[name])
    files = make_figure(module, context, context.results / "figures")
    compared = getattr(module, "compared", lambda table: ())
    found = tuple(compared(pd.read_csv(files.csv)))
    return Drawn(files, processor_seconds() - start, found)


def write_page(
    folder: Path, figures: dict[str, Drawn], checks: Sequence[Check], seed: int, preset: str = ""
) -> Path:
    """Write folder/index.html, and the explorer beside it. Returns the path of the page.

    preset: what was run, in a sentence.

    The pictures lie within the page; data, vector files and reports are links relative to it.
    """
    explorer = write_explorer(folder)
    claims = ledger()
    page = web_page(
        "oversmoothing.paper_figures",
        "page.html",
        style="page.css",
        filters={"typeset": typeset},
        figures=[_figure(name, drawn, folder) for name, drawn in figures.items()],
        observed=_observed(figures),
        checks=checks,
        opening=opening(),
        claims=claims,
        tally=tally(claim["on_record"] for claim in claims),
        names={claim["name"] for claim in claims},
        kinds=sorted({kind for claim in claims for kind in claim["evidence"]}),
        statuses=sorted({claim["status"] for claim in claims}),
        explorer=_link(explorer, folder),
        reports=[_link(path, folder) for path in sorted(folder.glob("**/report.html"))],
        seed=seed,
        preset=preset,
        provenance=provenance(),
    )
    return write_atomically(folder / "index.html", page)


def _figure(name: str, drawn: Drawn, folder: Path) -> dict[str, Any]:
    module, files = import_module(FIGURES[name]), drawn.files
    return {
        "name": name,
        "title": module.TITLE,
        "short": module.SHORT,
        "not_shown": module.NOT_SHOWN,
        "caption": files.txt.read_text("utf-8").strip().split("\n"),
        "picture": as_link(files.png.read_bytes()),
        "seconds": max(1, round(drawn.seconds)),
        "comparisons": drawn.comparisons,
        "counted": counted(drawn.comparisons),
        **{kind: _link(getattr(files, kind), folder) for kind in ("png", "pdf", "csv")},
    }


def _observed(figures: dict[str, Drawn]) -> list[dict[str, Any]]:
    """What each trained model of this run does to ln HFC/LFC from its input to its output."""
    if "observed_smoothing" not in figures:
        return []
    table = pd.read_csv(figures["observed_smoothing"].files.csv)
    first = table.groupby("model", sort=False).first()
    return [
        {
            "model": LABEL[str(name)],
            "factor": f"{np.exp(row['total_change']):.2f}",
            "low": f"{np.exp(row['total_change_low']):.2f}",
            "high": f"{np.exp(row['total_change_high']):.2f}",
        }
        for name, row in first.iterrows()
    ]


def _link(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()
