"""What a cell asks of a shell is shown as a terminal: "$ command", and what it answers.

Progress bars that a command drew over themselves are left out, and so are codes of a terminal.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

_BAR = re.compile(r"^.*(?:\d+%\||\d+step \[).*\n?|\x1b\[[\d;]*m", re.MULTILINE)


def _said(block: nodes.literal_block, text: str, language: str) -> None:
    block.clear()
    block += nodes.Text(text)
    block.rawsource = text
    block["language"] = language


def _terminal(app: Sphinx, tree: nodes.document) -> None:
    for cell in list(tree.findall(nodes.container)):
        if "cell" not in cell["classes"]:
            continue
        parts = {kind: [c for c in cell if kind in c.get("classes", [])] for kind in _PARTS}
        blocks = [b for one in parts["cell_input"] for b in one.findall(nodes.literal_block)]
        lines = "\n".join(block.astext() for block in blocks).splitlines()
        asked = [line for line in lines if line.startswith("!")]
        code = lines[: len(lines) - len(asked)]
        # Commands among the code, and not behind it, are what Python makes of their answers.
        if not asked or len(blocks) != 1 or any(line.startswith("!") for line in code):
            continue
        text = "\n".join(f"$ {line[1:]}" for line in asked)
        if code:
            _said(blocks[0], "\n".join(code).rstrip(), "python")
            shown = nodes.literal_block(text, text, language="console", classes=["asked"])
            place = nodes.container("", shown, classes=["terminal", "cell_input"])
            cell.insert(cell.index(parts["cell_input"][0]) + 1, place)
        else:
            _said(blocks[0], text, "console")
            parts["cell_input"][0]["classes"].append("terminal")
        for answer in parts["cell_output"]:
            answer["classes"].append("terminal")
            for block in answer.findall(nodes.literal_block):
                _said(block, _BAR.sub("", block.astext()).strip("\n"), "text")


_PARTS = ("cell_input", "cell_output")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the change of the tree."""
    app.connect("doctree-read", _terminal)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
