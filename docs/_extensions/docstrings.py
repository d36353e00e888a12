"""Docstrings are plain words, written to be read in the source: here they become reStructuredText.

`name` is code; |x| and a* stand for themselves; an indented block is code.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_SIGNS = {
    "<=": "≤",
    ">=": "≥",
    "!=": "≠",
    " (x) ": " ⊗ ",
    "^T": "ᵀ",
    "||": "‖",
    "rho_": "ρ_",
    "lambda_": "λ_",
    "sigma_": "σ_",
}


def _process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    plain = list(lines)
    lines.clear()
    code = item = doctest = False
    for line in plain:
        starts = not lines or not lines[-1].strip()
        tried = line.startswith(">>>")
        indented = (line.startswith("  ") or tried or doctest) and bool(line.strip())
        doctest = indented and (tried or doctest)
        if indented and not code and starts:
            lines.extend(["::", ""])
            code = True
        elif line.strip() and not indented:
            code = False
        item = line.startswith("- ") or (item and indented)
        # A line that is indented within a paragraph or a list's item belongs to it.
        margin = "  " if item and indented else ""
        lines.append(f"    {line}" if code else margin + _escaped(line.strip()))
    lines.append("")


def _signs(words: str) -> str:
    """The signs that a terminal spells: <= is ≤, H^T is Hᵀ."""
    for spelled, sign in _SIGNS.items():
        words = words.replace(spelled, sign)
    return words


def _escaped(line: str) -> str:
    parts = re.split(r"(`+[^`]+`+)", line)
    words = [
        f"``{part.strip('`')}``" if k % 2 else re.sub(r"([\\*|_<>])", r"\\\1", _signs(part))
        for k, part in enumerate(parts)
    ]
    # A letter right behind code would keep it from ending.
    for k in range(2, len(words), 2):
        if words[k][:1].isalnum():
            words[k] = "\\ " + words[k]
    return "".join(words)


def setup(app: Sphinx) -> dict[str, bool]:
    """Read docstrings as words."""
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
