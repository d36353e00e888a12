"""The versions that the suite runs with: the lowest ones, the pinned ones, and those in CI."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import oversmoothing
from tests.support.lowest_versions import ROOT, constraints, lowest

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LINES = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
# Every line that is no comment says one version.
PINS = (line.split("==") for line in LINES if not line.startswith("#"))
PINNED = {canonicalize_name(name): version for name, version in PINS}
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_lowest_versions_are_those_of_pyproject() -> None:
    written = (ROOT / "constraints-lowest.txt").read_text("utf-8")
    assert written == constraints(), (
        "python -m tests.support.lowest_versions > constraints-lowest.txt"
    )


def test_the_pinned_versions_are_allowed_and_all_there() -> None:
    for name, bound in lowest().items():
        # pip keeps the build tools of an environment as they are.
        if name != "setuptools":
            assert Version(PINNED[canonicalize_name(name)]) >= Version(bound), name


def test_the_lock_has_the_pinned_versions_and_a_hash_for_each_file() -> None:
    """uv wrote it, its first lines say how; what it has beyond is of other systems and of CUDA."""
    text = (ROOT / "constraints-hashes.txt").read_text("utf-8").replace("\\\n", "")
    form = r"([\w.-]+)==(\S+)( ;.*?)?((\s+--hash=sha256:[0-9a-f]{64})+)\s*"
    locked: dict[str, str] = {}
    for entry in (line for line in text.splitlines() if not line.startswith("#")):
        match = re.fullmatch(form, entry)
        assert match is not None, entry[:80]
        locked[canonicalize_name(match[1])] = match[2]
    for name, version in PINNED.items():
        assert locked.get(name) == version, name
    assert {canonicalize_name(name) for name in lowest()} <= set(locked)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_a_workflow_calls_exists(path: Path) -> None:
    text = path.read_text("utf-8")
    targets = re.findall(r"- run: make ([a-z-]+)", text)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    # A release builds the package and nothing else.
    assert targets or path.name == "release.yml"
    assert all(re.search(rf"^{name}:", makefile, re.M) for name in targets)
    assert all((ROOT / script).exists() for script in re.findall(r"- run: (\.\S+)", text))


def test_ci_runs_the_lowest_python_and_the_next_two() -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    tried = set(re.findall(r'"(3\.\d+)"', text))
    allowed = SpecifierSet(PROJECT["requires-python"])
    assert tried == {"3.11", "3.12", "3.13"}
    assert all(allowed.contains(version) for version in tried) and not allowed.contains("3.10")


def test_books_of_releases_lie_beside_one_another_and_the_newest_comes_first(tmp_path) -> None:
    html, site = tmp_path / "html", tmp_path / "site"
    html.mkdir()
    publish = [sys.executable, str(ROOT / ".github" / "publish_docs.py"), str(html), str(site)]
    assert subprocess.run([*publish, "1.0", "https://a.b"], capture_output=True).returncode == 1
    for version in ("1.9", "1.10", "2.0rc1", "1.9"):
        (html / "index.html").write_text(version, "utf-8")
        subprocess.run([*publish, version, "https://a.b"], check=True, capture_output=True)
    entries = json.loads((site / "switcher.json").read_text("utf-8"))
    assert [each["version"] for each in entries] == ["1.10", "1.9", "2.0rc1"]
    assert [each["preferred"] for each in entries] == [True, False, False]
    assert entries[1]["url"] == "https://a.b/1.9/"
    assert (site / "1.10" / "index.html").read_text("utf-8") == "1.10"
    assert "url=1.10/index.html" in (site / "index.html").read_text("utf-8")


def test_the_conda_recipe_needs_what_the_library_and_its_commands_need() -> None:
    recipe = (ROOT / ".github" / "conda" / "recipe.yaml").read_text("utf-8")
    listed = set(re.findall(r"^    - (.*)$", recipe.split("  run:")[1].split("tests:")[0], re.M))
    needed = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["commands"]]
    spelled = {re.sub(r"^torch>", "pytorch>", each).replace(">=", " >=") for each in needed}
    assert listed == spelled | {"python " + PROJECT["requires-python"]}
    assert f'version: "{oversmoothing.__version__}"' in recipe
