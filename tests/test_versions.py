"""The versions that the suite runs with: the lowest ones, the pinned ones, and those in CI."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.support.lowest_versions import ROOT, constraints, lowest

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_lowest_versions_are_those_of_pyproject() -> None:
    written = (ROOT / "constraints-lowest.txt").read_text("utf-8")
    assert written == constraints(), (
        "python -m tests.support.lowest_versions > constraints-lowest.txt"
    )


def test_the_pinned_versions_are_allowed_and_all_there() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    versions = {canonicalize_name(name): Version(version) for name, version in pinned.items()}
    for name, bound in lowest().items():
        # pip keeps the build tools of an environment as they are.
        if name != "setuptools":
            assert versions[canonicalize_name(name)] >= Version(bound), name


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
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    tried = set(re.findall(r'"(3\.\d+)"', text))
    allowed = SpecifierSet(project["requires-python"])
    assert tried == {"3.11", "3.12", "3.13"}
    assert all(allowed.contains(version) for version in tried) and not allowed.contains("3.10")
