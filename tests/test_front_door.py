"""The front door: the command, its exit statuses, the public names, and the wheel by itself."""

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import oversmoothing
from oversmoothing.moved import MOVED
from oversmoothing.theory.verdict.formulas import Outcome
from tests.support.cases import cases
from tests.support.processes import python
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, tiny_model

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("theory", "simulations", "experiments", "paper_figures")


def run(*arguments: str, **environment: str):
    return python("-m", "oversmoothing", *arguments, env=environment)


def test_earlier_results_stay_whole_when_a_figure_cannot_be_written(tmp_path, told):
    """A file in the place of the figures' folder: refused before anything is touched."""
    (tmp_path / "figures").write_text("mine")
    told(2, "figures", "lambda_plane", "--out", tmp_path)
    assert (tmp_path / "figures").read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["figures"]


def test_the_names_of_the_package_are_those_of_its_stub_and_no_others():
    lines = ast.parse((ROOT / "oversmoothing" / "__init__.pyi").read_text("utf-8")).body
    imports = [line for line in lines if isinstance(line, ast.ImportFrom)]
    own = [line for line in imports if line.module.startswith("oversmoothing.")]
    listed = [alias for line in own for alias in line.names]
    assert {alias.asname for alias in listed} == set(oversmoothing.__all__)
    assert set(dir(oversmoothing)) == {*oversmoothing.__all__, "main", "__version__"}
    assert [alias.name for alias in listed if alias.asname != alias.name] == []
    refuses(
        "nothing_of_the_kind", getattr, oversmoothing, "nothing_of_the_kind", error=AttributeError
    )


def test_the_file_for_type_checkers_uses_every_public_name():
    text = (ROOT / "tests" / "support" / "every_name.py").read_text("utf-8")
    used = set(re.findall(r"\boversmoothing\.(\w+)", text))
    assert {*dir(oversmoothing)} <= used, {*dir(oversmoothing)} - used


def test_the_package_is_imported_before_anything_that_it_names_but_what_has_moved():
    code = "import sys, oversmoothing; print([m for m in sys.modules if 'oversmoothing.' in m])"
    done = python("-c", code, cwd=ROOT)
    assert done.stdout == "['oversmoothing.moved']\n", done.stderr


def imports_of(path: Path) -> set[str]:
    """Top-level names, the project's own as `oversmoothing.theory` and so on."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return {".".join(name.split(".")[: 1 + name.startswith("oversmoothing.")]) for name in found}


def test_theory_imports_no_torch():
    for path in (ROOT / "oversmoothing" / "theory").rglob("*.py"):
        if "torch" in path.read_text("utf-8"):
            assert "torch" not in imports_of(path), path


def test_every_imported_distribution_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    of_extras = (r for name in extras if name != "dev" for r in extras[name])
    wanted = [*project["dependencies"], *of_extras]
    declared = {re.split(r"[^A-Za-z0-9_-]", requirement)[0].lower() for requirement in wanted}
    names = metadata.packages_distributions()
    for path in [p for k in (*PACKAGES, "oversmoothing") for p in (ROOT / k).rglob("*.py")]:
        foreign = {name.split(".")[0] for name in imports_of(path)} - {"oversmoothing"}
        for module in foreign - set(sys.stdlib_module_names):
            assert declared & {d.lower() for d in names[module]}, f"{path} imports {module}"


# Libraries of extras, `commands` first: those that a plain install does not have.
OF_COMMANDS = (
    *("annotated_types", "joblib", "pandas", "pydantic", "rich", "safetensors", "threadpoolctl"),
    *("tqdm", "typer"),
)
OF_EXTRAS = ("cvc5", "dask", "distributed", "pyarrow", "sklearn", "transformers", "z3")


def without(libraries: tuple[str, ...], code: str) -> subprocess.CompletedProcess[str]:
    """Python code in a process in which these libraries cannot be imported."""
    return python("-c", f"import sys; sys.modules.update(dict.fromkeys({libraries!r}))\n" + code)


def test_the_library_needs_no_extra():
    done = without(
        OF_COMMANDS + OF_EXTRAS,
        "import numpy as np, oversmoothing\n"
        "from oversmoothing.testing import Claim, by, check, draw\n"
        "A, W = np.full((4, 4), 0.25), -0.5 * np.eye(2)\n"
        "print(oversmoothing.verdict(A=A, W=W).verdict)\n"
        "print(oversmoothing.operator(A=A, W=W).eigenpairs().dominant)\n"
        "case = oversmoothing.Layer(A=[['3/4', '1/4'], ['1/4', '3/4']], H=[['h']])\n"
        "print(case.verdict()); case.region(h=(-3, 1)).plot()\n"
        "run = oversmoothing.evolve(X0=np.eye(4, 2), A=A, W=W, depth=[0, 9])\n"
        "print(len(run), oversmoothing.metrics(run.X(1)[0])['hfc_lfc'], run._repr_html_())\n"
        "law = by.law(lambda A, *_: sum(A[0]) == 1, draw.cases())\n"
        "print(check(Claim('mine', ('rows sum to 1',), evidence=(law,))))\n",
    )
    assert done.returncode == 0, done.stderr
    assert "NON_SMOOTHING" in done.stdout and "ties iff h = -4/3 or h = 0" in done.stdout


# Of the plain install: what reads models, remedies, and tables of them are of `commands`.
PLAIN = {
    *("Claim", "Drawn", "Fixed", "FromState", "InputError", "Layer", "PerLayer", "Trajectory"),
    *("Verdict", "__version__", "by", "draw", "evolve", "evolve_heads", "exact", "given"),
    *("golden_case", "heads_verdict", "main", "metrics", "operator", "parameterisation", "show"),
    *("symbolic", "value_projection", "verdict"),
}


def test_a_name_that_needs_an_extra_says_so_in_one_sentence():
    done = without(
        OF_COMMANDS + OF_EXTRAS,
        "import oversmoothing\n"
        f"for name in {dir(oversmoothing)!r}:\n"
        "    try:\n        getattr(oversmoothing, name)\n"
        "    except RuntimeError as error:\n        print(name, error, sep=': ')\n"
        "run = oversmoothing.evolve(X0=[[1.0], [2.0]], A=[[1, 0], [0, 1]], H=[[0.5]], depth=1)\n"
        "for name, ask in (('table', run.metrics), ('plot', run.plot)):\n"
        "    try:\n        ask()\n"
        "    except RuntimeError as error:\n        print(name, error, sep=': ')",
    )
    assert done.returncode == 0, done.stderr
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert set(said) == {*dir(oversmoothing), "table", "plot"} - PLAIN
    for sentence in said.values():
        assert re.fullmatch(
            r"\w+ is not installed: pip install 'oversmoothing\[commands\]', or \[all\]", sentence
        )


def test_a_plain_install_lists_what_it_has_so_that_help_and_import_star_work():
    done = without(
        OF_COMMANDS + OF_EXTRAS,
        "import pydoc, oversmoothing as o\nfrom oversmoothing import *\n"
        "print(dir(o))\nprint(pydoc.render_doc(o, renderer=pydoc.plaintext))",
    )
    assert done.returncode == 0, done.stderr
    names, _, page = done.stdout.partition("\n")
    assert set(ast.literal_eval(names)) == PLAIN and "evolve(" in page


def test_inspect_needs_the_commands_alone(tmp_path):
    done = without(
        OF_EXTRAS,
        "import torch, oversmoothing\n"
        "from oversmoothing.experiments.digits.training_config import default_config\n"
        "from oversmoothing.experiments.digits.vit import StudyNet\n"
        "config = default_config('vit-random', 0)\n"
        "model = StudyNet(config.design, config.reads, 0)\n"
        "report = oversmoothing.inspect(model, torch.zeros(2, 8, 8) + torch.eye(8))\n"
        f"print(report.summary()); report.save({str(tmp_path)!r})\n",
    )
    assert done.returncode == 0, done.stderr
    assert "tokens" in done.stdout and (tmp_path / "report.html").exists()


@cases(
    "words, libraries, extra",
    (["verdict", "--example", "GT4"], OF_COMMANDS, "commands"),
    (["--help"], OF_COMMANDS, "commands"),
    (["simulate"], ("pandas",), "commands"),
    (["sweep", "--example", "heads"], OF_EXTRAS, "sweep"),
    (["train"], OF_EXTRAS, "models"),
)
def test_a_command_without_its_extra_names_it(tmp_path, words, libraries, extra):
    out = [] if {"verdict", "--help"} & {*words} else ["--out", str(tmp_path)]
    code = f"import oversmoothing; sys.exit(oversmoothing.main({words + out!r}))"
    done = without(libraries, code)
    assert done.returncode == 1 and done.stdout == ""
    sentence = rf"\w+ is not installed: pip install 'oversmoothing\[{extra}\]', or .*\n"
    assert re.fullmatch(f"oversmoothing: {sentence}", done.stderr)


def test_the_version_stands_in_one_place():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {oversmoothing.__version__}\n" in citation
    assert run("--version").stdout == f"oversmoothing {oversmoothing.__version__}\n"


# ------------------------------------------------------------------------------ the command line


def test_completion_knows_the_commands():
    done = run(
        _OVERSMOOTHING_COMPLETE="complete_bash", COMP_WORDS="oversmoothing ver", COMP_CWORD="1"
    )
    assert done.stdout.split() == ["verdict"]


# ------------------------------------------------------------------------- installed, anywhere

THEIRS = {
    "experiments/__init__.py": "",
    "experiments/inspect.py": "OWNER = 'user'",
    "simulations.py": "OWNER = 'user'",
    "theory.py": "OWNER = 'user'",
}
IN_THEIR_REPOSITORY = """
import oversmoothing, oversmoothing.theory, theory, simulations, experiments.inspect
from fractions import Fraction
half = [[Fraction(1, 2)] * 2] * 2
assert oversmoothing.verdict(A=half, H=[["-1/2"]]).verdict == "NON_SMOOTHING"
assert oversmoothing.inspect.__module__ == "oversmoothing.experiments.inspection.inspect"
assert theory.OWNER == simulations.OWNER == experiments.inspect.OWNER == "user"
print(oversmoothing.theory.__file__)
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """The files of the repository, links as links."""
    source = tmp_path_factory.mktemp("checkout")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, source / name, follow_symlinks=False)
    return source


@pytest.fixture(scope="module")
def wheel(checkout) -> Path:
    """Built from the source distribution, as an index would serve it."""
    built = python("-m", "build", "--no-isolation", checkout)
    assert built.returncode == 0, built.stderr[-2000:]
    return next((checkout / "dist").glob("*.whl"))


def environment_with(place: Path, *project: str) -> Path:
    """An environment with the project alone; the libraries it depends on are lent by path."""
    venv.create(place, with_pip=False)
    site = next(place.glob("lib/python*/site-packages"))
    lent = [path for path in sys.path if path.endswith("site-packages")]
    (site / "lent.pth").write_text("\n".join(lent))
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install", "-q"]
    apart = ["--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed"]
    subprocess.run([*pip, *apart, *project], check=True)
    return place


def in_repository(folder: Path, *command: str | Path) -> str:
    """What a command prints in a repository that has folders and files of our old names."""
    for name, text in THEIRS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, capture_output=True, text=True, timeout=300,
        env=os.environ | {"PYTHONPATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_one_package_and_its_data(wheel, checkout):
    inside = zipfile.ZipFile(wheel).namelist()
    assert all(name.startswith("oversmoothing") for name in inside)
    # All but what is read in a clone alone.
    left_out = {"README.rst", "README.md", "ledger.txt"}
    files = [path for path in (checkout / "oversmoothing").rglob("*") if path.is_file()]
    wanted = {str(path.relative_to(checkout)) for path in files if path.name not in left_out}
    made = {name for name in inside if "dist-info" not in name}
    assert {name for name in wanted if "__pycache__" not in name} == made


def test_the_wheel_alone_works_in_a_repository_with_folders_of_its_names(wheel, tmp_path):
    environment = environment_with(tmp_path / "env", str(wheel))
    python, command = environment / "bin" / "python", environment / "bin" / "oversmoothing"
    assert str(environment) in in_repository(tmp_path, python, "-c", IN_THEIR_REPOSITORY)
    assert "SMOOTHING" in in_repository(tmp_path, command, "verdict", "--example", "GT4")
    assert "lambda_plane" in in_repository(tmp_path, command, "figures", "--list")
    small = ("simulate", "--n", "4", "--d", "2", "--depth", "10", "--out", "here")
    in_repository(tmp_path, command, *small)
    assert (tmp_path / "here" / "simulate.csv").exists()


def test_an_editable_checkout_works_in_a_repository_with_folders_of_its_names(checkout, tmp_path):
    python = environment_with(tmp_path / "env", "-e", str(checkout)) / "bin" / "python"
    assert str(checkout) in in_repository(tmp_path, python, "-c", IN_THEIR_REPOSITORY)


def test_a_clone_without_symbolic_links_imports_and_answers(checkout, tmp_path):
    """As on Windows: the top-level names are then four text files, which nothing reads."""
    clone = tmp_path / "clone"
    shutil.copytree(checkout, clone, symlinks=True)
    for link in ("theory", "simulations", "experiments", "paper_figures"):
        target = (clone / link).readlink()
        (clone / link).unlink()
        (clone / link).write_text(str(target))
    code = "import oversmoothing as o; print(o.verdict(A=[[.75, .25], [.25, .75]], H=[[1]]))"
    done = python("-c", code, cwd=clone, env={"PYTHONPATH": ""})
    assert done.returncode == 0 and "SMOOTHING" in done.stdout, done.stderr


CHANGES = (ROOT / "docs/reference/changes.md").read_text("utf-8")


def named_on_the_page(module: str) -> bool:
    return f"`{module.removeprefix('oversmoothing.')}`" in CHANGES


@pytest.mark.parametrize("old", [old for old, homes in MOVED.items() if homes])
def test_a_module_that_moved_loads_under_its_old_name_and_says_where_it_is(old):
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} is now oversmoothing"):
        module = importlib.import_module(old)
    for home in MOVED[old]:
        held = vars(importlib.import_module(home))
        names = [name for name, x in held.items() if getattr(x, "__module__", "") == home]
        assert names and all(hasattr(module, name) for name in names)
        assert named_on_the_page(home) or not named_on_the_page(old)
    refuses("no attribute 'nothing'", getattr, module, "nothing", error=AttributeError)


def test_the_page_of_changes_names_the_modules_that_moved():
    assert sum(map(named_on_the_page, MOVED)) >= 39


# ------------------------------------------------------------------------- what arrays are read as

EVEN = {
    "A": [[0.75, 0.25], [0.5, 0.5]],
    "W": [[-0.5, 0.25], [0.0, 0.75]],
    "X0": [[1.0, 2.0], [-3.0, 0.5]],
}
READ: dict[str, Callable[[Any], Any]] = {
    "lists": lambda x: x,
    "backwards": lambda x: np.array(x)[::-1].copy()[::-1],
    "by columns": lambda x: np.array(x, order="F"),
    "of the other byte order": lambda x: np.array(x, dtype=">f8"),
    "longdouble": lambda x: np.array(x, dtype=np.longdouble),
    "halves": lambda x: np.array(x, dtype=np.float16),
    "read only": lambda x: np.broadcast_to(np.array(x), (2, 2)),
    "masked nowhere": lambda x: np.ma.masked_array(x, mask=False),
    "a table": lambda x: pd.DataFrame(x),
    "with a gradient": lambda x: torch.tensor(x, dtype=torch.float64, requires_grad=True),
    "bfloat16": lambda x: torch.tensor(x, dtype=torch.bfloat16),
    "a conjugate": lambda x: torch.tensor(x, dtype=torch.complex128).conj().real,
}
REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "masked": (lambda x: np.ma.masked_array(x, mask=[[True, False]] * 2), "masked entries: fill"),
    "truth": (lambda x: np.array(x) > 0, "truth values"),
    "dates": (lambda x: np.full((2, 2), np.datetime64("2024-01-01")), "dates"),
    "records": (lambda x: np.zeros((2, 2), dtype=[("a", float)]), "records"),
    "digits": (lambda x: np.array(x, dtype=np.longdouble) / 3, "no room for"),
    "meta": (lambda x: torch.empty(2, 2, device="meta"), "no plain numbers .meta"),
    "sparse": (lambda x: torch.tensor(x).to_sparse(), "no plain numbers .sparse"),
    "rows": (lambda x: torch.tensor(x).to_sparse_csr(), "no plain numbers .sparse"),
    "fp8": (lambda x: torch.tensor(x).to(torch.float8_e4m3fn), "no plain numbers .float8_e4m3fn"),
    "quantised": (
        lambda x: torch.quantize_per_tensor(torch.tensor(x), 0.25, 0, torch.qint8),
        "no plain numbers .quantised",
    ),
}
ENTRIES: dict[str, tuple[str, Callable[..., Any]]] = {
    "verdict": ("A W X0", lambda **given: _radii(oversmoothing.verdict(**given))),
    "heads_verdict": ("A W", lambda **given: _radii(oversmoothing.heads_verdict(**given))),
    "evolve": ("A W X0", lambda **given: oversmoothing.evolve(**given, depth=9)),
    "evolve_heads": (
        "A W X0",
        lambda A, W, X0: oversmoothing.evolve_heads(attention=A, weights=W, X0=X0, depth=9),
    ),
    "metrics": ("X0", lambda X0: list(map(float, oversmoothing.metrics(X0).values()))),
    "lasting_bound": (
        "A W X0",
        lambda A, W, X0: oversmoothing.lasting_bound([A], [W], X0).table.to_numpy(),
    ),
}  # fmt: skip


def _radii(found: oversmoothing.Verdict) -> list[Any]:
    return [found.verdict, found.rho_consensus, found.rho_quotient]


def _numbers(name: str, **given: Any) -> Any:
    needed, entry = ENTRIES[name]
    made = entry(**{each: given.get(each, EVEN[each]) for each in needed.split()})
    return made.metrics().to_numpy() if hasattr(made, "metrics") else made


@pytest.mark.parametrize("form", READ)
@pytest.mark.parametrize("name", ENTRIES)
def test_one_matrix_in_any_form_is_one_matrix(name, form):
    """Numbers that every one of these types holds; of float32 and less, answers to its digits."""
    wanted = _numbers(name)
    found = _numbers(name, **{each: READ[form](x) for each, x in EVEN.items()})
    if isinstance(wanted[0], Outcome):
        assert wanted.pop(0) is found.pop(0)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("form", REFUSED)
@pytest.mark.parametrize("name", ENTRIES)
def test_what_holds_no_plain_numbers_is_refused_by_name(name, form):
    make, said = REFUSED[form]
    for each in ENTRIES[name][0].split():
        refuses(said, _numbers, name, **{each: make(EVEN[each])})


@pytest.mark.parametrize("name", [*ENTRIES, "evolve, each way", "inspect"])
def test_settings_of_numpy_and_torch_change_no_answer(name):
    """A user's np.seterr(all="raise") and a device on which torch would make its tensors."""
    rng, d = np.random.default_rng(0), 3
    A = np.tril(np.ones((5, 5))) / np.arange(1.0, 6.0)[:, None]
    given = {"A": A, "W": rng.standard_normal((d, d)), "X0": 1e-100 * rng.standard_normal((5, d))}
    model, pixels = tiny_model(), random_pixels(2)

    def answer() -> Any:
        if name == "inspect":
            return oversmoothing.inspect(model, pixels).table["hfc_lfc"].to_numpy()
        if name == "evolve, each way":
            methods = ("plain", "closed_form", "balls", "squaring")
            runs = [oversmoothing.evolve(**given, depth=50, method=each) for each in methods]
            return [x for run in runs for x in (*run.error, run.metrics()["log_hfc_lfc"].iloc[-1])]
        return _numbers(name, **given)

    wanted = answer()
    torch.set_default_device("meta")
    with np.errstate(all="raise"):
        try:
            found = answer()
        finally:
            torch.set_default_device(None)
    np.testing.assert_array_equal(found, wanted)


STARTED = """
import sys
from oversmoothing import {what}
sys.exit(", ".join(name for name in {unwanted!r} if name in sys.modules) or 0)
"""


@cases(
    "what, unwanted",
    ("__version__", ("numpy", "json", "typing_extensions")),
    ("verdict\nverdict(A=[[.75, .25], [.375, .625]], H=[[-.5, .1], [.2, .3]])",
     ("flint", "numpy.ma", "numpy.random", "pydantic", "typer", "scipy", "tempfile")),
    ("main\nmain(['verdict', {case!r}])",
     ("flint", "numpy.ma", "numpy.random", "pydantic", "scipy")),
    ("main\nmain(['verdict', '--example', 'GT1'])",
     ("torch", "scipy", "sympy", "pandas", "rich", "matplotlib", "hypothesis")),
)  # fmt: skip
def test_what_is_not_used_is_not_imported(tmp_path, what, unwanted):
    """The front door, a verdict in floats, the command: what would take most of their time."""
    case = tmp_path / "case.json"
    case.write_text('{"A": [[0.75, 0.25], [0.3, 0.7]], "H": [[-0.51, 0.1], [0.2, 0.3]]}')
    code = STARTED.format(what=what.format(case=str(case)), unwanted=unwanted)
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
