"""The report `index.html`: the answer, the paper's results one a row, every figure, the claims.

A status in the ledger is the one on record. The report runs no proof: `oversmoothing prove` does,
and the tests hold every claim to its record.
"""

import io
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup
from PIL import Image

from oversmoothing.paper_figures import figure, figure_base as base
from oversmoothing.paper_figures.explorer.explorer_page import write_explorer
from oversmoothing.paper_figures.models_shown import LABEL
from oversmoothing.simulations.drawing.picture import FigureFiles
from oversmoothing.simulations.drawing.web_page import as_link, web_page
from oversmoothing.simulations.running import provenance
from oversmoothing.theory.proofs.claim import Status, address, cited, tally
from oversmoothing.theory.proofs.ledger import claims
from oversmoothing.theory.proofs.mathml import mathml
from oversmoothing.theory.support.files import write_atomically

# The figure beside the answer.
HERO = "lambda_plane"
# How a verdict shows: its class, and its words where they are long.
SHOWN = {base.REPRODUCED: "ok", base.SAME_SIGN: "part", base.DIFFERS: "bad", base.UNCHECKED: "none"}
SHORT = {base.SAME_SIGN: "same sign"}
# Pixels across that a picture has within the page; the file beside it has them all.
_WIDTH = 1200

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
    """A statement that the run must bear out, what was measured, and whether it held.

    kept: the date of the run that it was taken over from, if it was.
    """

    name: str
    statement: str
    measured: str
    holds: bool
    kept: str = ""


@dataclass(frozen=True)
class Drawn:
    """The files of a figure, the seconds of processor time that it and its workers took, and for a
    figure of the paper what it reports beside ours. kept: as of a check."""

    files: FigureFiles
    seconds: float
    comparisons: tuple[base.Comparison, ...] = ()
    kept: str = ""


def draw_figure(name: str, context: base.Context) -> Drawn:
    """Draw one figure by name into context.results/figures."""
    print(f"drawing {name}", file=sys.stderr, flush=True)
    start = base.processor_seconds()
    own = figure(name)
    files = FigureFiles(*own.make(context, context.results / "figures"))
    comparisons = tuple(own.compared(pd.read_csv(files.csv)))
    return Drawn(files, base.processor_seconds() - start, comparisons)


def write_page(
    folder: Path, figures: dict[str, Drawn], checks: Sequence[Check], seed: int, preset: str = ""
) -> Path:
    """Write folder/index.html, and the explorer beside it. Returns the path of the page.

    The pictures lie within the page; data, vector files and reports are links relative to it.
    preset: what was run, in a sentence.
    """
    explorer = write_explorer(folder)
    rows = ledger()
    named = {row["name"]: row for row in rows}
    shown = [_figure(k, name, drawn, folder) for k, (name, drawn) in enumerate(figures.items(), 1)]
    compared = [each for drawn in figures.values() for each in drawn.comparisons]
    page = web_page(
        "oversmoothing.paper_figures",
        "page.html",
        style="page.css",
        hero=next((figure for figure in shown if figure["name"] == HERO), None),
        figures=[figure for figure in shown if figure["name"] != HERO],
        results=[group for figure in shown for group in results(figure)],
        verdicts=[
            (name, SHOWN[name], sum(each.verdict == name for each in compared))
            for name in base.VERDICTS
        ],
        strip=[SHOWN[name] for name in base.VERDICTS for each in compared if each.verdict == name],
        classes=SHOWN,
        short=SHORT,
        observed=_observed(figures),
        checks=checks,
        opening=[(words, named[name]) for name, words in OPENING.items()],
        claims=rows,
        tally=tally(row["on_record"] for row in rows),
        names=named,
        kinds=sorted({kind for row in rows for kind in row["evidence"]}),
        statuses=sorted({row["status"] for row in rows}),
        sources=sorted({row["cited"] for row in rows}),
        explorer=_link(explorer, folder),
        reports=[_link(path, folder) for path in sorted(folder.glob("**/report.html"))],
        seed=seed,
        preset=preset,
        day=f"{date.today():%-d %B %Y}",
        provenance=provenance(),
    )
    return write_atomically(folder / "index.html", page)


def _figure(place: int, name: str, drawn: Drawn, folder: Path) -> dict[str, Any]:
    files = drawn.files
    return {
        **vars(figure(name)),
        **vars(drawn),
        "place": place,
        "caption": files.txt.read_text("utf-8").strip().split("\n"),
        "picture": _smaller(files.png.read_bytes()),
        "seconds": max(1, round(drawn.seconds)),
        **{kind: _link(getattr(files, kind), folder) for kind in ("png", "pdf", "csv")},
    }


def _smaller(png: bytes) -> str:
    """A picture for the page: no wider than a screen shows it, as WebP."""
    with Image.open(io.BytesIO(png)) as opened:
        picture = opened.convert("RGB")
        picture.thumbnail((_WIDTH, _WIDTH))
        out = io.BytesIO()
        picture.save(out, "WEBP", quality=80, method=6)
    return as_link(out.getvalue(), "webp")


def results(figure: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The comparisons of a figure by the table of the paper that they are about, what was decided
    first, and what cannot be checked apart. Rows with an interval share one axis."""
    groups: dict[str, list[base.Comparison]] = {}
    for each in figure["comparisons"]:
        named = re.match(r"(Table \d), (.*)", each.what)
        title, what = named.groups() if named else (figure["title"], each.what)
        groups.setdefault(title, []).append(replace(each, what=what))
    for title, rows in groups.items():
        ends = [x for row in rows for x in row.interval or ()]
        span = (min(0.0, *ends), max(0.0, *ends)) if ends else None
        ordered = [row for name in base.VERDICTS for row in rows if row.verdict == name]
        drawn = [(row, _bar(row.interval, span)) for row in ordered]
        yield {
            "title": title,
            "figure": figure,
            "decided": [pair for pair in drawn if pair[0].verdict != base.UNCHECKED],
            "open": [pair for pair in drawn if pair[0].verdict == base.UNCHECKED],
        }


def _bar(interval: tuple[float, float, float] | None, span: tuple[float, float] | None) -> Markup:
    """A mean with its interval on the axis that the rows of a table share, and 0 on it."""
    if interval is None or span is None or span[0] == span[1]:
        return Markup("")
    zero, mean, low, high = (
        8 + 134 * (x - span[0]) / (span[1] - span[0]) for x in (0.0, *interval)
    )
    return Markup(
        f'<svg class="bar" viewBox="0 0 150 14" aria-hidden="true"><path d="M{zero:.1f} 0V14" '
        f'class="zero"/><path d="M{low:.1f} 7H{high:.1f}" class="iv"/>'
        f'<circle cx="{mean:.1f}" cy="7" r="3.4"/></svg>'
    )


def _observed(figures: dict[str, Drawn]) -> list[dict[str, Any]]:
    """What each digits model of this run does to ln HFC/LFC from its input to its output."""
    if "metrics_by_layer" not in figures:
        return []
    table = pd.read_csv(figures["metrics_by_layer"].files.csv)
    changes = table[table["data"] == "digits"].groupby("variant", sort=False)["change"].first()
    return [{"model": LABEL[str(k)], "factor": f"{np.exp(x):.2f}"} for k, x in changes.items()]


def _link(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def ledger() -> list[dict[str, Any]]:
    """Every claim, in the order of T-numbers, papers last, with its evidence by kind."""
    rows = []
    for claim in claims().values():
        kinds: dict[str, list[str]] = {}
        for piece in claim.evidence:
            kinds.setdefault(str(piece.kind), []).append(piece.title)
        # A clause may go on in the next.
        ends = next(k for k, words in enumerate(claim.clauses, 1) if words[-1] not in ",;:")
        more = {
            "said": " ".join(claim.clauses[:ends]),
            "status": str(claim.on_record),
            "short": str(claim.on_record).split()[0],
            "formula": Markup(mathml(claim.latex, display=True)),
            "cited": cited(claim.name),
            "address": address(claim.name),
            "first": claim.name in OPENING or claim.on_record is Status.REFUTED_WORDS,
            "evidence": kinds,
        }
        rows.append(vars(claim) | more)
    return rows
