"""The simulation scripts: short, by public names alone, each with its picture and its numbers."""

import ast
import csv
import importlib
import runpy
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import nbclient
import nbformat
import pytest

import oversmoothing
from oversmoothing import InputError

FOLDER = Path(oversmoothing.__file__).parent / "simulations" / "scripts"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py"))
# Draws only where the folder of a trained model is named.
WITH_DATA = "deit_predicted"
LIBRARIES = {"oversmoothing", "numpy", "matplotlib", "torch", "sympy", "PIL"}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_short_says_what_one_sees_and_uses_public_names_alone(name):
    text = (FOLDER / f"{name}.py").read_text("utf-8")
    tree = ast.parse(text)
    assert text.count("\n") < 60
    title, _, rest = (ast.get_docstring(tree) or "").partition("\n\n")
    assert set(title.splitlines()[1]) == {"="} and "see" in rest.lower()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = (
                [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            )
            for each in names:
                top = str(each).split(".")[0]
                assert top in LIBRARIES or top in sys.stdlib_module_names, each
                assert each == "oversmoothing" or top != "oversmoothing"
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "oversmoothing":
            assert node.attr in oversmoothing.__all__, node.attr


@pytest.mark.parametrize("name", [s for s in SCRIPTS if s != WITH_DATA])
def test_a_script_writes_its_picture_and_its_numbers(name, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(FOLDER / f"{name}.py"), "--out", str(tmp_path)])
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    plt.close("all")
    assert {p.name for p in tmp_path.iterdir()} == {f"{name}.{k}" for k in ("csv", "pdf", "png")}
    rows = list(csv.reader((tmp_path / f"{name}.csv").open()))
    assert len(rows) > 3 and {len(row) for row in rows} == {len(rows[0])}


def test_without_its_data_a_script_says_so(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("OVERSMOOTHING_DATA", str(tmp_path))
    runpy.run_path(str(FOLDER / f"{WITH_DATA}.py"), run_name="__main__")
    assert "nothing is drawn" in capsys.readouterr().out


def test_a_table_with_columns_of_different_lengths_is_refused(tmp_path):
    with pytest.raises(InputError, match="different lengths"):
        oversmoothing.show(plt.figure(), {"x": [1, 2], "y": [1]}, tmp_path)
    plt.close("all")


@pytest.fixture
def pictures(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs" / "_extensions"))
    return importlib.import_module("pictures")


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_notebook_has_the_code_of_its_script_and_its_words(name, pictures, monkeypatch, tmp_path):
    monkeypatch.setattr(pictures, "DRAWN", tmp_path)
    (tmp_path / f"{name}.png").write_bytes(b"a picture")
    made = nbformat.read(pictures.notebook(name, "printed"), as_version=4)
    nbformat.validate(made)
    first, *cells = made.cells
    script = ast.parse((FOLDER / f"{name}.py").read_text("utf-8"))
    assert first.source.startswith("# " + ast.get_docstring(script).splitlines()[0])
    code = ast.parse("\n".join(cell.source for cell in cells))
    assert list(map(ast.dump, code.body)) == list(map(ast.dump, script.body[1:]))
    assert cells[-1].outputs[0].text == "printed"


def test_a_notebook_runs_and_draws_inline(pictures, monkeypatch, tmp_path):
    monkeypatch.setattr(pictures, "DRAWN", tmp_path)
    (tmp_path / "rates.png").write_bytes(b"a picture")
    made = nbformat.read(pictures.notebook("rates", ""), as_version=4)
    done = nbclient.NotebookClient(made, timeout=120, kernel_name="python3").execute(cwd=tmp_path)
    outputs = [output for cell in done.cells[1:] for output in cell.outputs]
    assert any(output.get("text", "").startswith("r = ") for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)
