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


@dataclass(frozen=True)
class DrawnFigure:
    """A figure for the page: its name, title and files."""

    name: str
    title: str
    files: FigureFiles


def draw_figure(name: str, context: Context, folder: Path) -> DrawnFigure:
    """Draw one figure by name into folder/figures."""
    module = import_module(FIGURES[name])
    print(f"drawing {name}", file=sys.stderr, flush=True)
    return DrawnFigure(name, module.TITLE, make_figure(module, context, folder / "figures"))


def write_page(
    folder: Path, figures: Sequence[DrawnFigure], checks: Sequence[Check], seed: int
) -> Path:
    """Write folder/index.html with links relative to the folder. Returns its path."""
    source = resources.files("oversmoothing.paper_figures").joinpath("page.html").read_text("utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(source).render(
        figures=[
            {
                "name": figure.name,
                "title": figure.title,
                "caption": figure.files.txt.read_text("utf-8").strip(),
                "png": _link(figure.files.png, folder),
                "pdf": _link(figure.files.pdf, folder),
                "csv": _link(figure.files.csv, folder),
            }
            for figure in figures
        ],
        checks=checks,
        seed=seed,
        provenance=provenance(),
    )
    return write_atomically(folder / "index.html", page)


def _link(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()
