"""The house: what may import what, where a file may lie, and how long it may be.

A formula has one room and a room one floor: layers point one way, no circles of imports, nobody
reaches into another folder's private modules, no two modules of one name in one package. A noun
says what it holds.
"""

import ast
from collections import defaultdict
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("theory", "simulations", "experiments", "paper_figures", "oversmoothing")
LINES = 450
# In a docstring: why a file is longer than the rest.
REASON = "one room"


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("oversmoothing")


def sources(package: str) -> list[Path]:
    """The files of a package; of the front door's folder, those that no other package holds."""
    if package != "oversmoothing":
        return sorted((ROOT / "oversmoothing" / package).rglob("*.py"))
    found = (ROOT / package).rglob("*.py")
    return sorted(p for p in found if p.relative_to(ROOT).parts[1] not in PACKAGES)


def circles(graph: grimp.ImportGraph, package: str) -> list[tuple[str, str]]:
    """Pairs of children of a package that import each other, through any of their modules."""
    children = sorted(graph.find_children(package))
    return [
        (a, b)
        for k, a in enumerate(children)
        for b in children[k + 1 :]
        if graph.chain_exists(a, b, as_packages=True) and graph.chain_exists(b, a, as_packages=True)
    ]


def test_no_circle_of_imports_in_a_package_or_between(graph: grimp.ImportGraph) -> None:
    packages = {"oversmoothing"} | {m for m in graph.modules if graph.find_children(m)}
    found = {name: pairs for name in sorted(packages) if (pairs := circles(graph, name))}
    assert not found, found


def test_dependencies_point_one_way(graph: grimp.ImportGraph) -> None:
    for k, below in enumerate(PACKAGES[:-1]):
        for above in PACKAGES[k + 1 : -1]:
            chains = graph.find_shortest_chains(f"oversmoothing.{below}", f"oversmoothing.{above}")
            assert not chains, f"{below} imports {above}: {min(chains)}"
        assert not graph.find_modules_directly_imported_by(f"oversmoothing.{below}") & {
            "oversmoothing"
        }
        for module in graph.find_descendants(f"oversmoothing.{below}"):
            imported = graph.find_modules_directly_imported_by(module)
            front = {m for m in imported if m.split(".")[1:2] == ["commands"]}
            assert not front, f"{module} imports the front door: {front}"


def test_nobody_imports_the_private_modules_of_another_folder(graph: grimp.ImportGraph) -> None:
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            parts = imported.split(".")
            private = [k for k, part in enumerate(parts) if part.startswith("_")]
            if private and parts[-1] != "__main__":
                home = ".".join(parts[: private[0]])
                assert module.startswith(f"{home}."), f"{module} imports {imported}"


def test_no_two_modules_of_a_package_have_one_name() -> None:
    for package in PACKAGES:
        names = defaultdict(list)
        for path in sources(package):
            # The checker is the second home of what it checks, on purpose.
            if path.name != "__init__.py" and path.parent.name != "checker":
                names[path.stem].append(str(path.relative_to(ROOT)))
        twice = {name: paths for name, paths in names.items() if len(paths) > 1}
        assert not twice, twice


def test_a_file_says_what_it_is_for_and_why_it_has_more_than_450_lines() -> None:
    for path in (path for package in PACKAGES for path in sources(package)):
        text = path.read_text("utf-8")
        words = ast.get_docstring(ast.parse(text))
        assert words, path
        short = text.count("\n") <= LINES
        assert short or REASON in words, f"{path.relative_to(ROOT)} and no '{REASON}: ...'"


def test_a_noun_says_what_it_holds() -> None:
    """No variable, argument or attribute is called `found`."""
    for path in sorted([*ROOT.glob("oversmoothing/**/*.py"), *ROOT.glob("benchmarks/**/*.py")]):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            named = not isinstance(node, ast.Constant) and "found" in vars(node).values()
            assert not named, f"{path.relative_to(ROOT)}, line {getattr(node, 'lineno', '?')}"
