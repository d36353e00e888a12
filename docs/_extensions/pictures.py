"""```{picture} rates```: a script of simulations/scripts/, or a figure of the paper, drawn when the
book is built. The text below the name is its caption; the script and what it prints are folded.

A picture is drawn again when its script, or the figure's own file, has changed. `make clean` has
all of them drawn again.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "oversmoothing"
SCRIPTS = PACKAGE / "simulations" / "scripts"
DRAWN = ROOT / "docs" / "_build" / "pictures"
# Neither script nor figure: the command, its picture within --out, and the files it is made of.
STUDY = PACKAGE / "experiments" / "study"
OTHERS = {
    "study": (
        ["study", "answers", "--plot"],
        "study/study.png",
        [STUDY / "study_pictures.py", STUDY / "results" / "rows.jsonl"],
    )
}


def _source(name: str) -> list[Path]:
    """The files that draw it. Raises ValueError where there is none."""
    if name in OTHERS:
        return OTHERS[name][2]
    places = (SCRIPTS / f"{name}.py", PACKAGE / "paper_figures" / "figures" / f"{name}.py")
    found = next((path for path in places if path.exists()), None)
    if found is None:
        raise ValueError(f"there is no script and no figure {name}")
    return [found]


def drawn(name: str) -> tuple[Path, str]:
    """The PNG of a script or figure, and what drawing it printed."""
    script = SCRIPTS / f"{name}.py"
    key = hashlib.sha256(b"".join(path.read_bytes() for path in _source(name))).hexdigest()
    picture, marked = DRAWN / f"{name}.png", DRAWN / f"{name}.key"
    if not picture.exists() or not marked.exists() or marked.read_text().split("\n")[0] != key:
        DRAWN.mkdir(parents=True, exist_ok=True)
        asked, within, _ = OTHERS.get(name, (["figures", name], f"figures/{name}.png", []))
        what = [str(script)] if script.exists() else ["-m", "oversmoothing", *asked]
        # A picture of the book must not depend on the data that happen to lie here.
        environment = {k: v for k, v in os.environ.items() if k != "OVERSMOOTHING_DATA"}
        done = subprocess.run(
            [sys.executable, *what, "--out", str(DRAWN)],
            capture_output=True,
            text=True,
            check=False,
            env=environment | {"MPLBACKEND": "Agg"},
        )
        if done.returncode:
            raise ValueError(f"{name} was not drawn: {done.stderr.strip()[-400:]}")
        if not script.exists():
            (DRAWN / within).replace(picture)
        marked.write_text(f"{key}\n{done.stdout}", "utf-8")
    return picture, marked.read_text("utf-8").partition("\n")[2]


def notebook(name: str, printed: str) -> Path:
    """A script as a notebook: its words, its cells, and what it printed and drew in this build."""
    import base64

    import nbformat.v4 as nb

    words, _, code = (SCRIPTS / f"{name}.py").read_text("utf-8").partition('"""\n\n')
    title, _, said = words.strip('"\n').partition("\n")
    said = said.lstrip("=\n")
    cells = [nb.new_code_cell(part.strip()) for part in code.split("\n# %%\n")]
    picture = base64.b64encode((DRAWN / f"{name}.png").read_bytes()).decode()
    cells[-1].outputs = [
        *([nb.new_output("stream", name="stdout", text=printed)] if printed.strip() else []),
        nb.new_output("display_data", data={"image/png": picture}),
    ]
    path = DRAWN / f"{name}.ipynb"
    language = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    made = nb.new_notebook(
        cells=[nb.new_markdown_cell(f"# {title}\n\n{said}"), *cells], metadata=language
    )
    path.write_text(nb.writes(made) + "\n", "utf-8")
    return path


def blank(name: str) -> tuple[Path, str]:
    """An empty picture, for a book whose words and links alone are asked about."""
    from PIL import Image

    DRAWN.mkdir(parents=True, exist_ok=True)
    _source(name)
    path = DRAWN / "blank.png"
    Image.new("RGB", (900, 500), "white").save(path)
    return path, ""


class Picture(SphinxDirective):
    """A picture with its caption, and folded the script that drew it."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """A figure, and the script."""
        name = self.arguments[0]
        self.assert_has_content()
        if "alt" not in self.options:
            raise self.error(f"the picture {name} needs words for who cannot see it: :alt:")
        try:
            picture, printed = drawn(name) if self.config.draw_pictures else blank(name)
        except ValueError as error:
            raise self.error(str(error)) from error
        self.env.note_dependency(str(SCRIPTS / f"{name}.py"))
        figure = nodes.figure(classes=["picture"])
        uri = f"/{picture.relative_to(ROOT / 'docs').as_posix()}"
        figure += nodes.image(uri=uri, alt=self.options["alt"])
        caption = nodes.caption()
        held = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, held)
        for paragraph in held.findall(nodes.paragraph):
            caption += paragraph.children
        figure += caption
        return [figure, *self._folded(name, printed)]

    def _folded(self, name: str, printed: str) -> list[nodes.Node]:
        script = SCRIPTS / f"{name}.py"
        if not script.exists():
            words = nodes.paragraph(classes=["picture-source"])
            words += nodes.Text("Drawn by ")
            asked = OTHERS[name][0] if name in OTHERS else ["figures", name]
            words += nodes.literal(text=f"oversmoothing {' '.join(asked)}")
            words += nodes.Text(", with its numbers as CSV.")
            return [words]
        code = script.read_text("utf-8").partition('"""\n\n')[2].strip()
        opening = '<details class="script"><summary>The script that draws it</summary>'
        shown: list[nodes.Node] = [
            nodes.raw("", opening, format="html"),
            nodes.literal_block(code, code, language="python"),
        ]
        if printed.strip():
            words = printed.rstrip()
            shown += [
                nodes.paragraph(text="It prints:"),
                nodes.literal_block(words, words, language="text", classes=["terminal"]),
            ]
        run = nodes.paragraph(classes=["picture-source"])
        run += nodes.literal(text=f"python {script.relative_to(PACKAGE).as_posix()} --out DIR")
        run += nodes.Text(" writes the picture (PNG, PDF) and its numbers (CSV).")
        if self.config.draw_pictures:
            path = notebook(name, printed)
            run += nodes.Text(" The same as a notebook: ")
            target = f"/{path.relative_to(ROOT / 'docs').as_posix()}"
            link = addnodes.download_reference("", reftarget=target)
            link += nodes.literal(text=path.name)
            run += [link, nodes.Text(".")]
        return [*shown, run, nodes.raw("", "</details>", format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("picture", Picture)
    app.add_config_value("draw_pictures", True, "env")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
