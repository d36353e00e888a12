"""Every writer of results, with each step of the file system failing in turn.

Whatever fails, what was there before or what is new lies there whole, nothing else lies beside it,
the sentence says so, and the same writer is not in the way of itself afterwards.
"""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure

import oversmoothing
from oversmoothing.experiments.digits.training_state import load_run, save_run
from oversmoothing.experiments.inspection.inspect import inspect
from oversmoothing.experiments.inspection.report import Report
from oversmoothing.simulations.drawing import result as results
from oversmoothing.simulations.drawing.picture import write_figure
from oversmoothing.simulations.sweep.config import parse
from oversmoothing.simulations.sweep.runner import run_sweep
from oversmoothing.simulations.sweep.store import read_table
from oversmoothing.theory.proofs.run import Chunk, Coverage
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import write_together
from tests.support.faults import failing
from tests.support.tiny_models import random_pixels, tiny_model

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = ("depth", "log_hfc_lfc", "predicted", "cos_mean", "cos_min", "effective_rank")
TABLE = pd.DataFrame({name: [0.0, 1.0] for name in COLUMNS})
SWEEP = '[fixed]\nn = 3\nd = 2\ndepth = 5\nvalue = "interval"\n[axes]\nseed = [0, 1]\n'


@pytest.fixture(scope="module")
def report() -> Report:
    return inspect(tiny_model("vit-"), random_pixels(2), name="tiny")


def several(*before: str) -> Callable[[Path, str], None]:
    """Three files, of which so many are there before."""

    def write(folder: Path, age: str) -> None:
        names = before if age == "old" else ("a", "b", "new/c")
        write_together({folder / name: f"{age} {name}" for name in names})

    return write


def figure(folder: Path, age: str) -> None:
    write_figure(Figure(figsize=(1, 1)), TABLE, age, folder / "figure", age)


def result(folder: Path, age: str) -> None:
    said = [results.Sentence(age, results.UNTESTED)]
    tables = {"layers": results.Table(TABLE)}
    results.write(results.Result("run", age, tables, said, {"seed": age}), folder)


def thorough(folder: Path, age: str) -> None:
    coverage = Coverage(folder / "thorough.json")
    coverage.add(Chunk("T2b", age, 0), {"examples": 1, "seconds": 0.0, "violation": None})


def certificate(folder: Path, age: str) -> None:
    words = ["certify", "--example", "GT4" if age == "old" else "GT1"]
    status = oversmoothing.main([*words, "--out", str(folder / "certificate.json")])
    if status:
        raise InputError(f"exit status {status}")


# What writes the files of one result: all of them new, or all of them as they were.
TOGETHER: dict[str, Callable[[Path, str], None]] = {
    "several new files": several(),
    "several files of which one is there": several("a"),
    "several files": several("a", "b", "new/c"),
    "a figure": figure,
    "a result": result,
    "the record of a long search": thorough,
    "a certificate": certificate,
}
Write = Callable[[Path], None]
FAULTS = [OSError(28, "No space left on device"), KeyboardInterrupt()]


def held(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones too, by what it holds."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def trials(
    folder: Path, write: Write, fault: BaseException, prepare: Write = lambda place: None,
    after: bool = False,
) -> Iterator[tuple[Path, str, bool]]:  # fmt: skip
    """(folder, step, whether it was said) after each step failed in a folder of its own."""
    for step in range(500):
        place = folder / str(step)
        place.mkdir()
        prepare(place)
        said = True
        with failing(step, fault, place, after) as disk:
            try:
                write(place)
                said = False
            except (InputError, OSError, KeyboardInterrupt):
                assert disk.failed, "a failure of its own"
        if not disk.failed:
            return
        yield place, f"{step}, {disk.failed}", said
    raise AssertionError("endless")


@pytest.mark.parametrize("fault", FAULTS, ids=["full", "interrupt"])
@pytest.mark.parametrize("name", TOGETHER)
def test_the_files_of_a_result_are_all_new_or_all_old(tmp_path, name, fault, capfd):
    write = TOGETHER[name]
    (tmp_path / "unbroken").mkdir()
    write(tmp_path / "unbroken", "old")
    old = held(tmp_path / "unbroken")
    write(tmp_path / "unbroken", "new")
    new = held(tmp_path / "unbroken")
    assert old != new
    steps, failures = [], 0
    ages = (lambda place: write(place, "new")), (lambda place: write(place, "old"))
    for place, step, failed in trials(tmp_path, ages[0], fault, ages[1]):
        steps.append(step.rpartition(" ")[2])
        failures += failed
        assert held(place) == (old if failed else new), step
        write(place, "new")
        assert held(place) == new, step
    assert {"fdopen", "write", "flush", "fsync", "close", "replace"} <= set(steps)
    if name == "a certificate" and isinstance(fault, OSError):
        said = [line for line in capfd.readouterr().err.splitlines() if not line.startswith(" ")]
        assert len(said) == failures and all("No space left" in line for line in said)


def test_an_interrupt_right_after_a_step_leaves_all_new_or_all_old(tmp_path):
    write = TOGETHER["several files"]
    whole = []
    for age in ("old", "new"):
        (tmp_path / age).mkdir()
        write(tmp_path / age, age)
        whole.append(held(tmp_path / age))
    for place, step, _ in trials(
        tmp_path, lambda p: write(p, "new"), FAULTS[1], lambda p: write(p, "old"), after=True
    ):
        if step.endswith((" open", " mkstemp")):  # its name never came back
            for stray in place.rglob(".writing-*"):
                stray.unlink()
        assert held(place) in whole, step


@pytest.mark.parametrize("fault", FAULTS, ids=["full", "interrupt"])
def test_a_report_of_a_model_is_all_new_or_all_old(tmp_path, report, monkeypatch, fault):
    monkeypatch.setattr(Report, "plot", lambda self: Figure(figsize=(1, 1)))
    report.save(tmp_path / "unbroken")
    new = held(tmp_path / "unbroken")
    for place, step, _ in trials(tmp_path, report.save, fault):
        assert held(place) in ({}, new), step


@pytest.mark.parametrize("fault", FAULTS, ids=["full", "interrupt"])
def test_a_trained_run_is_there_whole_or_not_at_all(tmp_path, fault):
    def write(place: Path) -> None:
        save_run(
            place / "run", config={"seed": 0}, weights={"w": torch.ones(2)}, log=TABLE, metrics={}
        )

    steps = set()
    for place, step, _ in trials(tmp_path, write, fault):
        steps.add(step.rpartition(" ")[2])
        assert {path.name for path in place.iterdir()} <= {"run"}, step
        write(place)
        assert load_run(place / "run").weights["w"].tolist() == [1.0, 1.0]
    assert {"mkdtemp", "chmod", "write", "fsync", "replace", "rename"} <= steps


def test_a_sweep_goes_on_and_gives_the_table_of_an_unbroken_run(tmp_path):
    config = parse(SWEEP, "faults")

    def write(place: Path) -> None:
        run_sweep(config, place, chunk=1)

    (tmp_path / "unbroken").mkdir()
    write(tmp_path / "unbroken")
    whole = held(tmp_path / "unbroken")
    for place, step, _ in trials(tmp_path, write, FAULTS[0]):
        names = {Path(name).name for name in held(place)}
        assert not any(name.startswith(".") for name in names), step
        # No lock is left, and what was finished is taken as it is.
        write(place)
        assert held(place) == whole, step
        read_table(place / "sweep.parquet")


# ---------------------------------------------------------------------- no writer is left out

# Calls that bring something to the disk, by the last part of their name.
_WRITES = {
    "write_text", "write_bytes", "savetxt", "to_parquet", "to_pickle", "to_excel", "save_file",
    "fdopen", "mkstemp", "mkdtemp", "NamedTemporaryFile", "copy", "copy2", "copytree", "touch",
}  # fmt: skip
# Where such a call stands, and why it is no writer of its own. What fails there is tested above.
_ALLOWED = {
    "theory/support/files.py",
    "experiments/digits/training_state.py",
    "commands/ending.py",  # standard output and error
    "theory/proofs/coq.py",  # what Coq is asked, in a folder that goes with the question
}


def _writes(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        last = called.rpartition(".")[2]
        modes = [
            each.value for each in [*node.args, *(k.value for k in node.keywords)]
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]  # fmt: skip
        opened = last == "open" and any(set(mode) & set("wax+") for mode in modes if len(mode) < 4)
        moved = called in {"os.rename", "os.replace", "os.link", "os.open", "shutil.move"}
        # A copy of an array or a dictionary is none of a file.
        copied = last.startswith("copy") and not called.startswith("shutil.")
        if (last in _WRITES and not copied) or opened or moved:
            found.add(called)
    return found


def test_nothing_else_writes_a_file():
    found = {}
    package = ROOT / "oversmoothing"
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name not in _ALLOWED and _writes(path):
            found[name] = _writes(path)
    assert (package / "theory" / "certificate.py").is_file()
    # The lock of a sweep opens its folder to read it.
    assert found == {"simulations/sweep/store.py": {"os.open"}}
