"""The budgets of pyproject.toml hold: lines and files of each part, what answers enter and import.

    python -m tests.test_budgets            # what is measured, beside the budgets
    python -m tests.test_budgets --write    # take what is measured as budgets: a commit says why

Lines are all lines of .py, .js, .css and .html; prose and data have no budget. A file is entered
where one of its functions runs, `__init__.py` apart and `moved.py`, which numpy asks for its own;
modules are those of the package in `sys.modules` afterwards. Both are counted in a process of its
own, by `sys.setprofile`.
"""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, TESTS = ROOT / "oversmoothing", ROOT / "tests"
CORE = ("layer", "numbers", "spectra", "verdict", "certificate.py", "checker", "support")
COUNTED = {".py", ".js", ".css", ".html"}
# The oracle shares nothing with the program; what runs by night has no budget.
APART = ("oracle", "mutants", "hunts", "fuzz", "evolve_errors", "nights.py")

_A = "A=[['1/2', '1/4', '1/4'], ['1/5', '2/5', '2/5'], ['1/3', '1/6', '1/2']]"
_H = "H=[['1', '2', '0'], ['-1', '1/2', '1'], ['0', '1', '-1/3']]"
_FLOATS = (
    "A=[[.5, .25, .25], [.2, .5, .3], [.3, .1, .6]], H=[[1., 2., 0.], [-1., .5, 1.], [0., 1., -.3]]"
)
_WITHOUT_COQ = [
    word for kind in ("for all reals", "written", "searched") for word in ("--kind", kind)
]
ASKED = {
    "exact_verdict": f"oversmoothing.verdict({_A}, {_H})",
    "float_verdict": f"oversmoothing.verdict({_FLOATS})",
    "verdict_of_a_start": f"oversmoothing.verdict({_A}, {_H}, depth=[1, 100], "
    "X0=[['1', '2', '0'], ['0', '3', '1'], ['-1', '2', '5']])",
    "claim": f"oversmoothing.main({['prove', 'T2b', *_WITHOUT_COQ]!r} + "
    "['--examples', '5', '--jobs', '1'])",
}
TRACED = """
import os, sys
entered = set()
def seen(frame, event, _):
    # Of 1, CO_OPTIMIZED: functions, and no bodies of classes and modules.
    if event == "call" and frame.f_code.co_flags & 1 and frame.f_code.co_name[0] != "<":
        entered.add(frame.f_code.co_filename)
sys.setprofile(seen)
import oversmoothing
{asked}
sys.setprofile(None)
root = os.path.dirname(oversmoothing.__file__)
apart = ("__init__.py", "moved.py")
print(sum(f.startswith(root) and not f.endswith(apart) for f in entered))
print(sum(name.split(".")[0] == "oversmoothing" for name in sys.modules))
"""


def files_of(part: str) -> Iterator[Path]:
    """The counted files of the core, the package or the tests."""
    roots = {
        "core": [PACKAGE / "theory" / name for name in CORE],
        "package": [PACKAGE],
        "tests": [path for path in TESTS.iterdir() if path.name not in APART],
    }
    for root in roots[part]:
        for path in [root] if root.is_file() else root.rglob("*"):
            # Scripts are written as a user writes, and read one by one.
            if path.suffix in COUNTED and path.is_file() and path.parent.name != "scripts":
                yield path


@cache
def measured(name: str) -> int:
    """What a budget of that name is about, now."""
    part, _, what = name.rpartition("_")
    if what == "lines":
        return sum(path.read_text("utf-8").count("\n") for path in files_of(part))
    if what == "files":
        return len(list(files_of(part)))
    return traced(part)[what]


@cache
def traced(part: str) -> dict[str, int]:
    """Files entered and modules of the package, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", TRACED.format(asked=ASKED[part])],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    entered, modules = done.stdout.split()[-2:]
    return {"entered": int(entered), "modules": int(modules)}


def budgets() -> dict[str, int]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    found: dict[str, int] = table["tool"]["oversmoothing"]["budgets"]
    return found


def unit(name: str) -> str:
    what = name.rpartition("_")[2]
    return {"entered": "files entered", "modules": "modules imported"}.get(what, what)


@pytest.mark.parametrize("name", budgets())
def test_a_budget_holds(name: str) -> None:
    most, now = budgets()[name], measured(name)
    part = name.rpartition("_")[0].replace("_", " ")
    assert now <= most, (
        f"{part}: {now:,} {unit(name)}, {now - most:,} more than the {most:,} that pyproject.toml "
        "allows; take something out, or raise the budget in a commit that says why"
    )


def test_every_part_has_its_budgets() -> None:
    wanted = {
        f"{part}_{what}" for part in ("core", "package", "tests") for what in ("lines", "files")
    }
    wanted |= {f"{asked}_{what}" for asked in ASKED for what in ("entered", "modules")}
    assert set(budgets()) == wanted


def write() -> None:
    """The budgets of pyproject.toml become what is measured; all else in it stays."""
    path = ROOT / "pyproject.toml"
    text = path.read_text("utf-8")
    for name in budgets():
        text = re.sub(rf"^{name} = \d+", f"{name} = {measured(name)}", text, flags=re.MULTILINE)
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        write()
    for each, allowed in budgets().items():
        print(f"{each}: {measured(each):,} {unit(each)} of {allowed:,}")
