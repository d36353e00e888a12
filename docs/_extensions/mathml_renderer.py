"""Formulas of the book as MathML, set by the browser itself."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger

from oversmoothing.theory.proofs.mathml import mathml

_LOG = getLogger(__name__)


def _render(translator: Any, node: nodes.math, display: bool) -> None:
    try:
        formula = mathml(node.astext(), display)
    except ValueError as error:
        _LOG.warning(str(error), location=node)
        formula = translator.encode(node.astext())
    if not display:
        translator.body.append(formula)
    else:
        number = f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
        translator.body.append(f'<div class="formula">{number}{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(lambda translator, node: _render(translator, node, False), None),
        block_renderers=(lambda translator, node: _render(translator, node, True), None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
