"""The report `index.html`: what is true, the ledger, every figure, and what was checked.

A status in the ledger is the one on record. The report runs no proof: `oversmoothing prove` does,
and the tests hold every claim to its record.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from oversmoothing.paper_figures import figure
from oversmoothing.paper_figures.explorer.explorer_page import write_explorer
from oversmoothing.paper_figures.figure_base import Comparison, Context, counted, processor_seconds
from oversmoothing.paper_figures.models_shown import LABEL
from oversmoothing.simulations.drawing.picture import FigureFiles
from oversmoothing.simulations.drawing.web.web_page import as_link, typeset, web_page
from oversmoothing.simulations.provenance import provenance
from oversmoothing.theory.proofs.claim import Claim, tally
from oversmoothing.theory.proofs.ledger import claims
from oversmoothing.theory.proofs.mathml import mathml
from oversmoothing.theory.support.files import write_atomically

# The statements that open the report, each in one sentence of its own.
OPENING = {
    "T2b": "One real eigenvalue h of H, against the smallest real eigenvalue a of the attention:",
    "T3b": "The same in the complex plane, for any other eigenvalue a: inside a disc h loses.",
    "T3c": "One disc lies in all of these: there h loses whatever the attention is.",
    "T5a": "How fast: the factor of HFC/LFC per layer, in the long run.",
    "T4c": "Rank is another matter: it collapses where one pair dominates, smoothing or not.",
    "T7b-rotation": "Weights that change by layer can smooth though each layer alone does not.",
}


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
    own = figure(name)
    files = own.make(context, context.results / "figures")
    comparisons = tuple(own.compared(pd.read_csv(files.csv)))
    return Drawn(files, processor_seconds() - start, comparisons)


def write_page(
    folder: Path, figures: dict[str, Drawn], checks: Sequence[Check], seed: int, preset: str = ""
) -> Path:
    """Write folder/index.html, and the explorer beside it. Returns the path of the page.

    preset: what was run, in a sentence.

    The pictures lie within the page; data, vector files and reports are links relative to it.
    """
    explorer = write_explorer(folder)
    rows = ledger()
    page = web_page(
        "oversmoothing.paper_figures",
        "page.html",
        style="page.css",
        filters={"typeset": typeset},
        figures=[_figure(name, drawn, folder) for name, drawn in figures.items()],
        observed=_observed(figures),
        checks=checks,
        opening=opening(),
        claims=rows,
        tally=tally(row["on_record"] for row in rows),
        names={row["name"] for row in rows},
        kinds=sorted({kind for row in rows for kind in row["evidence"]}),
        statuses=sorted({row["status"] for row in rows}),
        explorer=_link(explorer, folder),
        reports=[_link(path, folder) for path in sorted(folder.glob("**/report.html"))],
        seed=seed,
        preset=preset,
        provenance=provenance(),
    )
    return write_atomically(folder / "index.html", page)


def _figure(name: str, drawn: Drawn, folder: Path) -> dict[str, Any]:
    own, files = figure(name), drawn.files
    return {
        "name": name,
        "title": own.title,
        "short": own.short,
        "not_shown": own.not_shown,
        "caption": files.txt.read_text("utf-8").strip().split("\n"),
        "picture": as_link(files.png.read_bytes()),
        "seconds": max(1, round(drawn.seconds)),
        "comparisons": drawn.comparisons,
        "counted": counted(drawn.comparisons),
        **{kind: _link(getattr(files, kind), folder) for kind in ("png", "pdf", "csv")},
    }


def _observed(figures: dict[str, Drawn]) -> list[dict[str, Any]]:
    """What each digits model of this run does to ln HFC/LFC from its input to its output."""
    if "metrics_by_layer" not in figures:
        return []
    table = pd.read_csv(figures["metrics_by_layer"].files.csv)
    first = table[table["data"] == "digits"].groupby("variant", sort=False).first()
    return [
        {"model": LABEL[str(name)], "factor": f"{np.exp(row['change']):.2f}"}
        for name, row in first.iterrows()
    ]


def _link(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def opening() -> list[dict[str, Any]]:
    """The statements of `OPENING` with their formulas, in its order."""
    known = claims()
    return [
        {
            "name": name,
            "words": words,
            "status": _status(known[name]),
            "formula": _formula(known[name]),
        }
        for name, words in OPENING.items()
    ]


def ledger() -> list[dict[str, Any]]:
    """Every claim, in the order of T-numbers, papers last."""
    return [_row(claim) for claim in claims().values()]


def _row(claim: Claim) -> dict[str, Any]:
    kinds: dict[str, list[Markup]] = {}
    for piece in claim.evidence:
        kinds.setdefault(str(piece.kind), []).append(typeset(piece.title))
    return {
        "name": claim.name,
        "on_record": claim.on_record,
        "status": _status(claim),
        "short": _status(claim).split()[0],
        "clauses": [typeset(clause) for clause in claim.clauses],
        "formula": _formula(claim),
        "source": typeset(claim.source),
        "wording": typeset(claim.wording),
        "of": "paper" if claim.name.startswith(("P-", "N-")) else "theory",
        "hypotheses": [typeset(hypothesis.words) for hypothesis in claim.hypotheses],
        "evidence": kinds,
        "repaired_by": claim.repaired_by,
    }


def _status(claim: Claim) -> str:
    return str(claim.on_record)


def _formula(claim: Claim) -> Markup:
    return Markup(mathml(claim.latex, display=True))
