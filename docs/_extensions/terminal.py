"""A cell that asks a shell is shown as a terminal: "$ command", and what it answers."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx


def _terminal(app: Sphinx, tree: nodes.document) -> None:
    for cell in tree.findall(nodes.container):
        if "cell" not in cell["classes"]:
            continue
        inputs = [c for c in cell.children if "cell_input" in c.get("classes", [])]
        blocks = [b for one in inputs for b in one.findall(nodes.literal_block)]
        lines = [line for b in blocks for line in b.astext().splitlines()]
        if not lines or not all(line.startswith("!") for line in lines):
            continue
        cell["classes"].append("terminal")
        for block in blocks:
            text = "\n".join(f"$ {line[1:]}" for line in block.astext().splitlines())
            block.clear()
            block += nodes.Text(text)
            block.rawsource = text
            block["language"] = "console"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the change of the tree."""
    app.connect("doctree-read", _terminal)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
