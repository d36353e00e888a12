"""Writes the explorer: its scripts, its style and its examples as one file of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oversmoothing.paper_figures.explorer.presets import PRESETS
from oversmoothing.simulations.drawing.web.web_page import as_data, web_page
from oversmoothing.theory.support.files import write_atomically

# In the order in which they build on one another; the last one draws the page.
SCRIPTS = ("numbers", "layer", "dominance", "evolution", "state", "plane", "charts", "main")


def page() -> str:
    """The explorer as one file of HTML that needs no other and asks no network."""
    presets = [_preset(preset) for preset in PRESETS]
    return web_page(
        "oversmoothing.paper_figures.explorer",
        "explorer.html",
        style="explorer.css",
        scripts=[f"{name}.js" for name in SCRIPTS],
        presets=presets,
        presets_json=as_data(presets),
    )


def write_explorer(folder: Path) -> Path:
    """Write folder/explorer.html. Returns its path."""
    return write_atomically(folder / "explorer.html", page())


def _preset(preset: Any) -> dict[str, Any]:
    return {
        "key": preset.key,
        "title": preset.title,
        "says": preset.says,
        "link": preset.link,
        "exact": preset.exact(),
    }
