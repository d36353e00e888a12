"""Writes the explorer: its scripts, its style and its examples as one file of HTML."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from oversmoothing.paper_figures.explorer.presets import PRESETS
from oversmoothing.theory.support.files import write_atomically

# In the order in which they build on one another; the last one draws the page.
SCRIPTS = ("numbers", "layer", "dominance", "evolution", "state", "plane", "charts", "main")


def page() -> str:
    """The explorer as one file of HTML that needs no other and asks no network."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    presets = [_preset(preset) for preset in PRESETS]
    script = "\n".join(_source(f"{name}.js") for name in SCRIPTS)
    return environment.from_string(_source("explorer.html")).render(
        css=Markup(_source("explorer.css")),
        presets=presets,
        # Within a script element only "</" could end it.
        presets_json=Markup(json.dumps(presets).replace("</", "<\\/")),
        script=Markup(script),
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


def _source(name: str) -> str:
    return (resources.files("oversmoothing.paper_figures.explorer") / name).read_text("utf-8")
