"""README, tutorial and docstrings: every command, block of Python and example runs as written."""

import doctest
import inspect
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

import oversmoothing
from oversmoothing.commands import COMMANDS
from oversmoothing.commands.main import chosen
from oversmoothing.theory.claims.golden import golden_case
from oversmoothing.theory.proofs.ledger import Ledger, claims
from tests.support.processes import python

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
TUTORIAL = (ROOT / "docs" / "guide" / "tutorial.md").read_text("utf-8")


SHELL = """
import subprocess


def shell(body):
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", body], capture_output=True, text=True)
    print(done.stdout, end="")
    assert done.returncode == 0, body + done.stderr
"""


def program(text: str) -> tuple[str, int]:
    """Every block of a page as one program, in order, and how many calls of a shell are in it."""
    lines = [SHELL]
    for kind, body in re.findall(
        r"```(console|python|\{code-cell\} ipython3)\n(.*?)```", text, re.DOTALL
    ):
        if kind == "console":
            lines.append(f"shell({re.sub(r'^[$] ', '', body, flags=re.MULTILINE)!r})")
            continue
        for line in body.splitlines():
            lines.append(f"shell({line[1:]!r})" if line.startswith("!") else line)
    return "\n".join(lines), sum(line.startswith("shell(") for line in lines)


def printed_by(source: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {"PATH": path, "OVERSMOOTHING_NO_BROWSER": "1"}
    done = python("-c", source, cwd=folder, timeout=1200, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_command_of_the_tutorial_runs(tmp_path):
    source, calls = program(TUTORIAL)
    assert calls >= 12
    printed = printed_by(source, tmp_path)
    assert "TIE" in printed and "SMOOTHING" in printed and "UNDECIDED" in printed
    assert (tmp_path / "tutorial" / "figures" / "lambda_plane.png").exists()
    assert (tmp_path / "tutorial" / "simulate.csv").exists()


def test_what_readme_asks_the_theory_runs(tmp_path):
    source, calls = program(README.split("## Ask the theory")[1].split("\n## ")[0])
    assert calls == 1
    printed = printed_by(source, tmp_path)
    assert "SMOOTHING" in printed and "NON_SMOOTHING" in printed


def commands(text: str) -> list[list[str]]:
    """Commands of `oversmoothing` in blocks of a console and lines of a notebook, in words."""
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    lines = [line.lstrip("$ ") for block in blocks for line in block.splitlines()]
    lines += [line[1:] for line in text.splitlines() if line.startswith("!")]
    words = [shlex.split(re.split(r"\s(?:[|;]|2?>|&&)", line)[0], comments=True) for line in lines]
    return [words for words in words if words and words[0] == "oversmoothing"]


def test_every_command_of_readme_and_book_has_the_options_that_it_is_given():
    """Read by the command line's own parser; what it does with them, the slow tests ask. Claims
    and cases that it names are there."""
    asked, ledger = 0, Ledger(claims())
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for _, *words in commands(page.read_text("utf-8")):
            if words and not words[0].startswith("-") and "..." not in words:
                command, rest = chosen(words)
                given = command.make_context(command.name, rest).params
                if command.name == "prove":
                    ledger.select([name for name in given["what"] if not name.endswith(".py")])
                elif command.name in ("verdict", "certify") and given["example"]:
                    golden_case(given["example"])
                asked += 1
    assert asked > 50


def test_every_command_that_a_line_of_readme_or_papers_names_exists_with_its_claims():
    ledger = Ledger(claims())
    for page in [ROOT / "README.md", *(ROOT / "docs" / "papers").glob("*.md")]:
        named = re.findall(
            r"(?:^|`)oversmoothing ([a-z-]+)([^`\n]*)", page.read_text("utf-8"), re.M
        )
        assert {name for name, _ in named} <= set(COMMANDS)
        proved = [rest.partition("--")[0].split() for name, rest in named if name == "prove"]
        for names in proved:
            ledger.select([name for name in names if name != "NAME"])


# --- docstrings ---


def succeeds(example: doctest.DocTest) -> None:
    said: list[str] = []
    assert not doctest.DocTestRunner().run(example, out=said.append).failed, "".join(said)


@pytest.mark.parametrize("name", oversmoothing.__all__)
def test_the_docstring_of_a_public_name_has_an_example_that_runs(name: str) -> None:
    value = getattr(oversmoothing, name)
    assert ">>>" in (value.__doc__ or ""), f"{name} has no example"
    finder = doctest.DocTestFinder(recurse=inspect.isclass(value))
    for example in finder.find(value, name, globs={}):  # of a class, its public methods too
        succeeds(example)


def test_the_examples_of_what_public_names_return_run() -> None:
    from oversmoothing.theory import operator
    from oversmoothing.theory.verdict.symbolic import region, symbolic_verdict as symbolic, symbols

    returned = (operator.KroneckerOperator, operator.Eigenpairs, region.Region,
                symbolic.SymbolicVerdict, symbols.symbolic)  # fmt: skip
    for value in returned:
        for example in doctest.DocTestFinder(recurse=False).find(value, globs={}):
            succeeds(example)
