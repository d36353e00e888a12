"""```{command-help} verdict```: what the command prints for --help, when the book is built."""

from __future__ import annotations

import os
import subprocess
import sys

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class CommandHelp(SphinxDirective):
    """The help of one command of `oversmoothing`, or of all of them when none is named."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The text as printed, 88 columns wide."""
        # A width and no colours, whatever terminal the book is built in.
        environment = {**os.environ, "COLUMNS": "88", "TERMINAL_WIDTH": "88", "NO_COLOR": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "oversmoothing", *" ".join(self.arguments).split(), "--help"],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        text = "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())
        return [nodes.literal_block(text, text, language="text")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
