"""The page `index.html`: every figure with its caption, and what was checked, in words."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module, resources
from pathlib import Path

from jinja2 import Environment

from oversmoothing.paper_figures import FIGURES
from oversmoothing.paper_figures.figure_base import Context, make_figure
from oversmoothing.simulations.drawing.picture import FigureFiles
from oversmoothing.theory.support.files import write_atomically
from oversmoothing.theory.support.provenance import provenance


@dataclass(frozen=True)
class Check:
    """A statement that the run must bear out, what was measured, and whether it held."""

    name: str
    statement: str
    measured: str
    holds: bool


def draw_figure(name: str, context: Context) -> FigureFiles:
    """Draw one figure by name into context.results/figures."""
    print(f"drawing {name}", file=sys.stderr, flush=True)
    return make_figure(import_module(FIGURES[name]), context, context.results / "figures")


def write_page(
    folder: Path, figures: dict[str, FigureFiles], checks: Sequence[Check], seed: int
) -> Path:
    """Write folder/index.html with links relative to the folder. Returns its path."""
    source = resources.files("oversmoothing.paper_figures").joinpath("page.html").read_text("utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(source).render(
        figures=[
            {
                "name": name,
                "title": import_module(FIGURES[name]).TITLE,
                "caption": files.txt.read_text("utf-8").strip(),
                **{kind: _link(getattr(files, kind), folder) for kind in ("png", "pdf", "csv")},
            }
            for name, files in figures.items()
        ],
        checks=checks,
        seed=seed,
        provenance=provenance(),
    )
    return write_atomically(folder / "index.html", page)


def _link(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()
