"""A template of a page, set into the frame that all pages share: one file that asks no network."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from typing import Any

from jinja2 import DictLoader, Environment
from markupsafe import Markup

from oversmoothing.simulations.drawing.picture import PALETTE

_HOME = "oversmoothing.simulations.drawing.web"
# What every page has; beside them a page names its own.
_STYLE, _SCRIPTS = "page.css", ("page.js", "charts.js", "tables.js", "claims.js")


def web_page(
    package: str,
    template: str,
    *,
    style: str | None = None,
    scripts: Iterable[str] = (),
    filters: Mapping[str, Callable[[Any], Any]] | None = None,
    **values: Any,
) -> str:
    """The template of a package (it extends "frame"), with its style and scripts within it.

    The shared style and scripts (the name `Page`) stand in front of the page's own; style: a file
    of the package, or none.
    """
    loader = DictLoader(
        {"page": _text(package, template)}
        | {name: _text(_HOME, f"{name}.html") for name in ("frame", "claims")}
    )
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= filters or {}
    colours = "".join(f"--{name}: {colour}; " for name, colour in PALETTE.items())
    parts = [_text(_HOME, name) for name in _SCRIPTS] + [_text(package, name) for name in scripts]
    own = "" if style is None else _text(package, style)
    return environment.get_template("page").render(
        css=Markup(f":root {{ {colours}}}\n{_text(_HOME, _STYLE)}\n{own}"),
        script=Markup("\n".join(parts)),
        **values,
    )


def as_data(value: Any) -> Markup:
    """JSON to stand in a script element: no letter of it can end or open one."""
    return Markup(json.dumps(value, allow_nan=False).replace("<", "\\u003c"))


def as_link(png: bytes) -> str:
    """A PNG as the address of an image within the page."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _text(package: str, name: str) -> str:
    return (resources.files(package) / name).read_text("utf-8")
