"""`make mutants`: every mutant is one change of a formula, and what is known is not done again."""

from __future__ import annotations

import ast
import json
import math
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

pytest.importorskip("mutmut", reason="mutation tests need the extra `mutants`")

from tests.mutants import __main__ as run, shares, trial, warm
from tests.mutants.mutations import mutants
from tests.mutants.trial import Baseline, Outcome

SOURCE = '''"""Text stays."""

from math import sqrt

Array = list[float]
LIMIT = 1e-9


def norm(x: float, y: float = 2.0) -> float:
    """sqrt(x + y), but not really."""
    if x > y:
        raise ValueError(f"{x + 1} is too much")
    parts = [
        x * x,
        max(x, y),
    ]
    return sqrt(sum(parts, start=0.0))
'''


def changes() -> set[str]:
    return {mutant.name for mutant in mutants(SOURCE)}


def test_each_mutant_compiles_differs_and_occurs_once():
    found = mutants(SOURCE)
    trees = {ast.dump(ast.parse(mutant.source)) for mutant in found}
    assert len(trees) == len(found) and ast.dump(ast.parse(SOURCE)) not in trees


def test_operators_numbers_conditions_extremes_and_keywords_are_changed():
    assert {
        ": LIMIT = 1e-9  ->  LIMIT = 1.000000001",
        "norm: if x > y:  ->  if x >= y:",
        "norm: if x > y:  ->  if not (x > y):",
        "norm: x * x,  ->  x / x,",
        "norm: max(x, y),  ->  min(x, y),",
        "norm: return sqrt(sum(parts, start=0.0))  ->  return sqrt(sum(parts, start=1.0))",
    } <= changes()
    assert any("start" not in name.split("->")[1] for name in changes() if "sum(parts" in name)


def test_text_annotations_aliases_imports_and_messages_stay():
    for name in changes():
        assert "Array" not in name and "import" not in name and "too much" not in name
        assert "ValueError" not in name and "but not really" not in name
    # Exchanging the arguments of max changes nothing.
    assert not any("max(y, x)" in name for name in changes())


def test_a_mutant_meets_the_tests_of_its_statement_and_on_import_those_of_its_module():
    base = Baseline(
        seconds={"slow": 2.0, "quick": 1.0, "other": 1.5},
        lines={"norm.py": {11: ["slow", "quick"], 13: ["slow"], 14: ["quick"], 17: ["other"]}},
    )
    by_name = {mutant.name: mutant for mutant in mutants(SOURCE)}
    inside = by_name["norm: max(x, y),  ->  min(x, y),"]
    assert inside.lines == range(13, 17)
    assert base.reaching("norm.py", inside.lines) == ["quick", "slow"]
    constant = by_name[": LIMIT = 1e-9  ->  LIMIT = 1.000000001"]
    assert base.reaching("norm.py", constant.lines) == ["quick", "other", "slow"]
    assert base.reaching("elsewhere.py", constant.lines) == []


def test_what_is_known_holds_until_the_tests_that_it_rests_on_change(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "WORK", tmp_path)
    first, second, third = mutants(SOURCE)[:3]
    tests = {"tests/a.py": "1", "tests/b.py": "1"}
    known = run.Results("norm.py", SOURCE, tests)
    known.put(first, Outcome("killed", "tests/a.py::test_x"))
    known.put(second, Outcome("survived"))
    (path,) = tmp_path.iterdir()
    path.write_text(path.read_text() + '{"key": "stopped in the mid')
    again = run.Results("norm.py", SOURCE, tests)
    assert again.get(first) == Outcome("killed", "tests/a.py::test_x")
    assert again.get(second) == Outcome("survived") and again.get(third) is None
    again.put(third, Outcome("timeout", "tests/b.py::test_y"))
    assert json.loads(path.read_text().splitlines()[-1])["status"] == "timeout"
    changed = run.Results("norm.py", SOURCE, tests | {"tests/b.py": "2"})
    assert changed.get(first) is not None
    assert changed.get(second) is None and changed.get(third) is None
    assert changed.killer(third) == "tests/b.py::test_y"
    assert run.Results("norm.py", SOURCE + "\n", tests).get(first) is None


def test_what_survives_quick_tests_is_looked_at_again_by_all(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "WORK", tmp_path)
    first, second = mutants(SOURCE)[:2]
    tests = {"tests/a.py": "1"}
    quick = run.Results("norm.py", SOURCE, tests, 0.1)
    quick.put(first, Outcome("killed", "tests/a.py::test_x"))
    quick.put(second, Outcome("survived"))
    assert quick.get(second) == Outcome("survived")
    for again in (run.Results("norm.py", SOURCE, tests), run.Results("norm.py", SOURCE, tests, 1)):
        assert again.get(second) is None and again.get(first) is not None
    base = Baseline(seconds={"a.py::slow": 0.2, "a.py::quick": 0.1}, lines={"norm.py": {}})
    asked = []

    def asked_for(file, source, tests, examples, base):
        asked.append(tests)
        return Outcome("survived")

    monkeypatch.setattr(run, "trial", asked_for)
    for slowest, killer in ((math.inf, ""), (0.2, ""), (0.2, "a.py::slow")):
        bench = run.Bench(["a.py"], (10,), slowest)
        bench._made = [base]
        monkeypatch.setattr(bench, "_warm", lambda *_: None)
        monkeypatch.setattr(bench, "_meeting", lambda *_: ["a.py::quick", "a.py::slow"])
        bench.outcome("norm.py", first, killer)
    assert asked == [["a.py::quick", "a.py::slow"], ["a.py::quick"], ["a.py::slow", "a.py::quick"]]


def test_a_sample_is_the_same_each_time_and_part_of_every_larger_one():
    chosen = [{mutant.name for mutant in run._chosen(SOURCE, size)} for size in (3, 5, None)]
    assert len(chosen[0]) == 3 and chosen[0] < chosen[1] < chosen[2] == changes()
    assert {mutant.name for mutant in run._chosen(SOURCE, 3)} == chosen[0]


def test_a_constant_meets_the_tests_of_what_reads_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    used = SOURCE.replace("if x > y:", "if x > LIMIT:")
    (tmp_path / "norm.py").write_text(used)
    (tmp_path / "other.py").write_text("def f():\n    return norm.LIMIT\n")
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text("LIMIT" if name == "b" else "")
    base = Baseline(
        seconds={"a.py::reads": 1, "a.py::far": 2, "a.py::not": 3, "b.py::names": 4},
        lines={
            "norm.py": {11: ["a.py::reads"], 17: ["a.py::not", "b.py::names"]},
            "other.py": {2: ["a.py::far"]},
        },
    )
    bench = run.Bench(["a.py", "b.py"], (10,))
    constant = next(mutant for mutant in mutants(used) if mutant.constants)
    assert constant.constants == {"LIMIT"} and not constant.lines
    assert bench._meeting(base, "norm.py", constant) == [
        "a.py::reads", "a.py::far", "b.py::names"
    ]  # fmt: skip
    # What reads it on import is not followed: all tests of the module then.
    (tmp_path / "other.py").write_text("BOTH = (norm.LIMIT, 1)\n")
    assert len(bench._meeting(base, "norm.py", constant)) == 4


def test_a_run_of_all_mutants_of_a_module_is_on_record(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shares, "RECORD", tmp_path / "record.json")
    modules = ["a/one.py", "a/two.py", "b/three.py"]
    for file in modules:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(SOURCE)
    count = Counter({"killed": 7, "timeout": 1, "survived": 2, "neutral": 1})
    shares.record("a/two.py", SOURCE, count)
    shares.record("a/one.py", SOURCE, count)
    shares.record("a/one.py", SOURCE + "\n", Counter({"killed": 10}))
    one, two, three, _, folder, together = shares.recorded(modules).splitlines()
    assert "10 killed" in one and "changed since" in one
    assert "80.0 %,  88.9 %" in two and "changed since" not in two
    assert "not run" in three
    assert folder.startswith("a ") and together.split()[1:] == folder.split()[1:]
    shares.record("a/one.py", SOURCE, count | Counter({"carried": 5}))
    assert "5 carried over)" in shares.recorded(modules).splitlines()[0]
    shares.record("a/one.py", SOURCE + "\n", Counter({"killed": 10}))
    shares.record("a/two.py", SOURCE, count, 0.1)
    assert "by tests under 0.1 s alone)" in shares.recorded(modules).splitlines()[1]
    assert "20 mutants:   17 killed,  1 timed out,   2 survived,   1 of them neutral" in together


def test_what_was_killed_at_a_commit_is_carried_over_where_all_survivors_were_named(monkeypatch):
    names = [mutant.name for mutant in mutants(SOURCE)]
    record = {"norm.py": {"source": shares.hash_of(SOURCE), "survived": 2}}
    kept = {
        "tests/mutants/record.json": json.dumps(record),
        "tests/mutants/survivors.json": json.dumps({"norm.py": dict.fromkeys(names[:2], "why")}),
        "norm.py": SOURCE,
    }

    def shown(command, **_):
        return SimpleNamespace(stdout=kept[command[-1].removeprefix("abc:")])

    monkeypatch.setattr(shares.subprocess, "run", shown)
    assert shares.killed_at("abc", "norm.py") == frozenset(names[2:])
    record["norm.py"]["survived"] = 3
    kept["tests/mutants/record.json"] = json.dumps(record)
    assert not shares.killed_at("abc", "norm.py")
    record["norm.py"] |= {"survived": 2, "source": "of another source"}
    kept["tests/mutants/record.json"] = json.dumps(record)
    assert not shares.killed_at("abc", "norm.py")


def test_the_tests_of_two_files_come_first_and_none_is_left_out():
    tests = ["a::1", "b::1", "c::1", "a::2", "d::1"]
    assert run._first_files(tests) == [["a::1", "b::1", "a::2"], ["c::1", "d::1"]]
    assert run._first_files(tests[:2]) == [tests[:2]] and run._first_files([]) == [[]]


MODULE = """
from functools import cache

LIMIT = 3


class Box:
    @property
    def size(self):
        return LIMIT

    @cache
    def twice(self):
        return 2 * self.size

    def grown(self, by=LIMIT):
        return [x + by for x in range(self.size)]


def size(box):
    return box.size
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A module that others have imported from, and what gives its functions other code."""
    monkeypatch.chdir(tmp_path)
    name = warm.module_name("theory/made.py")
    found = ModuleType(name)
    found.__file__ = str(tmp_path / "made.py")
    exec(compile(MODULE, found.__file__, "exec"), found.__dict__)
    monkeypatch.setitem(sys.modules, name, found)
    table = warm.functions()[name]
    return found, lambda source: warm.install("theory/made.py", source, table)


def test_functions_have_the_code_of_a_mutant_wherever_they_were_imported(installed):
    module, install = installed
    size, box = module.size, module.Box()
    assert (size(box), box.grown()) == (3, [3, 4, 5])
    assert install(MODULE.replace("return LIMIT", "return LIMIT - 1"))
    assert (size(box), box.twice(), box.grown()) == (2, 4, [3, 4])
    assert install(MODULE.replace("x + by", "x * by").replace("2 * self", "self"))
    assert (module.Box().twice(), box.grown()) == (3, [0, 3, 6])
    # What acts on import is as it was.
    assert install(MODULE.replace("LIMIT = 3", "LIMIT = 4")) and size(box) == 3


def test_a_module_of_other_functions_is_not_installed(installed):
    _, install = installed
    assert not install(MODULE.replace("def grown", "def shrunk"))
    assert not install(MODULE + "\n\ndef more():\n    return 1\n")


def test_tests_that_are_collected_once_kill_mutants_one_after_the_other():
    file, tests = "theory/verdict/formulas.py", ["tests/theory/test_outcome.py"]

    def collected(tell):
        return trial.run_pytest(tests, trial.Plugin(tell, 2, None))

    status, told = trial.in_child(collected)
    base = Baseline(seconds={one["end"]: one["seconds"] for one in told if "end" in one})
    assert status == 0 and base.seconds
    server, known = warm.Server(tests, 2, base), list(base.seconds)
    source = Path(file).read_text()
    try:
        assert server.outcome(file, source, known) == Outcome("survived")
        for mutant in [one for one in mutants(source) if one.name.startswith("outcome_of:")]:
            found = server.outcome(file, mutant.source, known)
            assert found is not None and found.status == "killed" and found.by in known
        # A module whose tests fail with its unchanged source is left to new sessions.
        server._sound[file] = False
        assert server.outcome(file, source, known) is None
    finally:
        server.close()
