"""The front door: the command, its exit statuses, the public names, and the wheel by itself."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import oversmoothing

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("theory", "simulations", "experiments", "paper_figures")
ORDER = {name: rank for rank, name in enumerate(PACKAGES)}


def run(*arguments: str, cwd: Path | None = None, **environment: str):
    return subprocess.run(
        [sys.executable, "-m", "oversmoothing", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
        env={**os.environ, **environment},
    )


def verdict_json(capsys, *arguments: str) -> dict:
    assert oversmoothing.main(["verdict", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


FIELDS = {
    "schema_version",
    "verdict",
    "status",
    "rho_consensus",
    "rho_quotient",
    "rate",
    "margin",
    "reason",
    "tends_to",
    "limit",
    "limit_rank",
}
X0_FIELDS = {"verdict_x0", "hfc_lfc_squared", "hfc_lfc", "log_hfc_lfc"}


def test_verdict_prints_one_json_object_with_the_agreed_fields(capsys, tmp_path):
    found = verdict_json(capsys, "--example", "GT4", "--depth", "1", "5", "100")
    assert set(found) == FIELDS | X0_FIELDS
    assert found["verdict"] == "SMOOTHING" and found["status"] == "exact"
    assert found["hfc_lfc_squared"] == {"1": "1/36", "5": "1/9216"}
    assert set(found["hfc_lfc"]) == {"1", "5", "100"}
    case = tmp_path / "case.json"
    case.write_text('{"A": [[0.75, 0.25], [0.25, 0.75]], "H": [[-0.5]]}')
    assert set(verdict_json(capsys, str(case))) == FIELDS


def test_json_writes_unknown_as_null_and_infinite_as_inf(capsys):
    found = verdict_json(capsys, "--example", "GT2")
    assert found["limit"] == "inf"
    found = verdict_json(capsys, "--example", "GT17")
    assert found["rho_quotient"] is None and found["rate"] is None
    found = verdict_json(capsys, "--example", "GT18", "--depth", "3")
    assert found["log_hfc_lfc"]["3"] == "-inf"


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ({"A": [["1"]], "H": [["2"]]}, "TRIVIAL"),
        ({"A": [["1/2", "1/2"], ["1/2", "1/2"]], "H": [["2"]], "X0": [[0], [0]]}, "UNDEFINED"),
    ],
)
def test_degenerate_cases_are_verdicts_with_exit_status_0(tmp_path, case, expected):
    path = tmp_path / "case.json"
    path.write_text(json.dumps(case))
    done = run("verdict", str(path), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["verdict"] == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verdict"], "give either a CASE.json or --example"),
        (["verdict", "absent.json"], "cannot read 'absent.json'"),
        (["verdict", "--example", "GT99"], "no example 'GT99'"),
        (["verdict", "--example", "GT4", "--depth", "-3"], "depth -3"),
        (["figures", "--only", "nothing"], "no figure 'nothing'"),
        (["figures", "--out", "/proc/nowhere"], "cannot write to the output folder"),
        (["simulate", "--out", "/proc/nowhere"], "cannot write to the output folder"),
        (["train", "--out", "/proc/nowhere"], "cannot write to the output folder"),
        (["reproduce", "--out", "/proc/nowhere"], "cannot write to the output folder"),
        (["inspect", "no-such-model"], "there is no model 'no-such-model'"),
        (["simulate", "--device", "abacus"], "abacus"),
    ],
)
def test_bad_input_gives_one_sentence_and_exit_status_2(tmp_path, arguments, message):
    done = run(*arguments, cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


@pytest.mark.parametrize(
    "case",
    [
        {"A": [[0.5, 0.6], [0.5, 0.5]], "H": [[1.0]]},
        {"A": [[1.5, -0.5], [0.5, 0.5]], "H": [[1.0]]},
        {"A": [[0.5, 0.5], [0.5, 0.5]], "H": [[1.0, 2.0]]},
    ],
)
def test_an_illegal_case_leaves_with_status_2(tmp_path, case):
    path = tmp_path / "case.json"
    path.write_text(json.dumps(case))
    done = run("verdict", str(path))
    assert done.returncode == 2 and "Traceback" not in done.stderr


def test_earlier_results_stay_whole_when_a_figure_cannot_be_written(tmp_path):
    """A file in the place of the figures' folder: refused before anything is touched."""
    (tmp_path / "figures").write_text("mine")
    done = run("figures", "--only", "lambda_plane", "--out", str(tmp_path))
    assert done.returncode == 2
    assert (tmp_path / "figures").read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["figures"]


def test_figures_are_listed(capsys):
    assert oversmoothing.main(["figures", "--list"]) == 0
    printed = capsys.readouterr().out
    for name in ("metrics_against_depth", "lambda_plane", "dominance_table", "observed_smoothing"):
        assert name in printed


def test_every_public_name_exists_and_is_documented():
    for name in oversmoothing.__all__:
        value = getattr(oversmoothing, name)
        assert value.__doc__, name
    with pytest.raises(AttributeError):
        oversmoothing.nothing_of_the_kind  # noqa: B018


def test_a_verdict_does_not_wait_for_torch():
    code = (
        "import oversmoothing, sys; oversmoothing.main(['verdict', '--example', 'GT1']); "
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0


def imports_of(path: Path) -> set[str]:
    """Top-level names, the project's own as `oversmoothing.theory` and so on."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return {".".join(name.split(".")[: 1 + name.startswith("oversmoothing.")]) for name in found}


def test_dependencies_point_one_way():
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            found = imports_of(path)
            below = {f"oversmoothing.{name}" for name in PACKAGES[: ORDER[package] + 1]}
            above = {name for name in found if name.split(".")[0] == "oversmoothing"} - below
            assert not above, f"{path} imports {above}"
            if package == "theory":
                assert "torch" not in found, f"{path} imports torch"


def test_every_imported_distribution_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [
        *project["dependencies"],
        *(r for name in extras if name != "dev" for r in extras[name]),
    ]
    declared = {re.split(r"[^A-Za-z0-9_-]", requirement)[0].lower() for requirement in wanted}
    names = metadata.packages_distributions()
    for path in [p for k in (*PACKAGES, "oversmoothing") for p in (ROOT / k).rglob("*.py")]:
        foreign = {name.split(".")[0] for name in imports_of(path)} - {"oversmoothing"}
        for module in foreign - set(sys.stdlib_module_names):
            assert declared & {d.lower() for d in names[module]}, f"{path} imports {module}"


def test_the_wheel_alone_works_from_another_folder(tmp_path):
    """Built, installed in an environment of its own, run elsewhere; no tests inside.

    The libraries it depends on are lent by path, the project itself is not.
    """
    source = tmp_path / "source"
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for name in listed:
        place = source / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            place.symlink_to((ROOT / name).readlink())
        elif (ROOT / name).is_file():
            place.write_bytes((ROOT / name).read_bytes())
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path / "dist"), str(source)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert built.returncode == 0, built.stderr[-2000:]
    wheel = next((tmp_path / "dist").glob("*.whl"))
    inside = zipfile.ZipFile(wheel).namelist()
    assert not any(name.startswith("tests") for name in inside)
    assert {
        "oversmoothing/theory/layer/golden.json",
        "oversmoothing/paper_figures/page.html",
        "oversmoothing/simulations/sweep/examples/heads.toml",
        "oversmoothing/__init__.py",
    } <= set(inside)
    assert all(name.startswith("oversmoothing") for name in inside)
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)],
        check=True,
    )
    site = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    lent = [path for path in sys.path if path.endswith("site-packages")]
    (site / "lent.pth").write_text("\n".join(lent))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def installed(*arguments: str) -> str:
        command = [tmp_path / "env" / "bin" / "oversmoothing", *arguments]
        done = subprocess.run(
            command, cwd=elsewhere, capture_output=True, text=True, timeout=300, env=environment
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "SMOOTHING" in installed("verdict", "--example", "GT4")
    assert "lambda_plane" in installed("figures", "--list")
    installed("simulate", "--n", "4", "--d", "2", "--depth", "10", "--out", "here")
    assert (elsewhere / "here" / "simulate.csv").exists()
    where = subprocess.run(
        [python, "-c", "import oversmoothing.theory as theory; print(theory.__file__)"],
        cwd=elsewhere,
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert str(tmp_path / "env") in where.stdout
