"""One mutant against the tests: in a child process that has paid for its imports already.

The parent imports every third-party package once and no module under trial. A child is forked, the
module is replaced on import, and pytest runs the tests that reach the changed statement, quickest
first, up to the first that fails.
"""

from __future__ import annotations

import gc
import importlib
import importlib.abc
import importlib.util
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import coverage
import hypothesis
import pytest

PROJECT = ("oversmoothing", "tests", "benchmarks")
# A mutant may take this many times what a test took, in processor time, and so many seconds more.
SLOWER, SECONDS = 10.0, 3.0
MEMORY = 6 * 2**30


@dataclass
class Baseline:
    """What the unchanged code does. seconds: processor time by test; lines: module file -> line ->
    the tests that reach it; packages: the third-party modules in use."""

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    packages: list[str] = field(default_factory=list)

    @classmethod
    def from_json_object(cls, data: dict[str, Any]) -> Baseline:
        """From what `dataclasses.asdict` and JSON made of one: the line numbers became text."""
        lines = {
            file: {int(line): tests for line, tests in table.items()}
            for file, table in data["lines"].items()
        }
        return cls(data["seconds"], lines, data["packages"])

    def reaching(self, file: str, lines: Collection[int]) -> list[str]:
        """Tests that reach one of the lines; for no lines those of the test files that reach
        the module at all."""
        table = self.lines.get(file, {})
        found = {test for line in (lines or table) for test in table.get(line, [])}
        if not lines:
            # A constant or a field shows in tests that execute no line of the module, too.
            files = {test.split("::")[0] for test in found}
            found = {test for test in self.seconds if test.split("::")[0] in files}
        return sorted(found, key=lambda test: self.seconds[test])


class Plugin:
    """Selects and orders tests, fixes what Hypothesis draws, and reports to the parent."""

    def __init__(
        self, tell: Callable[[Any], None], examples: int | None, tests: Sequence[str] | None
    ) -> None:
        self.tell, self.examples, self.tests = tell, examples, tests
        self.limits: dict[str, float] = {}
        self.coverage: coverage.Coverage | None = None

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.tests is not None:
            order = {test: k for k, test in enumerate(self.tests)}
            items[:] = sorted(
                (item for item in items if item.nodeid in order), key=lambda i: order[i.nodeid]
            )
        for item in items:
            function = getattr(item, "obj", None)
            if getattr(function, "is_hypothesis_test", False):
                # A settings decorator cannot be applied twice; the suite itself is left as it is.
                name = "_hypothesis_internal_use_settings"
                setattr(function, name, self._settings(getattr(function, name)))

    def _settings(self, given: hypothesis.settings) -> hypothesis.settings:
        """The same examples each time, fewer if asked for, and no time spent on shrinking them."""
        count = given.max_examples
        return hypothesis.settings(
            given,
            derandomize=True,
            database=None,
            deadline=None,
            # The first draw pays for imports, under coverage: no sign of a poor strategy.
            suppress_health_check=(*given.suppress_health_check, hypothesis.HealthCheck.too_slow),
            phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
            max_examples=count if self.examples is None else min(count, self.examples),
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        if item.nodeid in self.limits:
            # SIGPROF ends the process, whatever C code it is in.
            signal.setitimer(signal.ITIMER_PROF, self.limits[item.nodeid])
        if self.coverage is not None:
            self.coverage.switch_context(item.nodeid)
        self.tell({"start": item.nodeid})
        before = _processor_time()
        result = yield
        self.tell({"end": item.nodeid, "seconds": _processor_time() - before})
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.tell({"failed": report.nodeid, "text": report.longreprtext[-2000:]})


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def module_name(file: str) -> str:
    """Under which name a module of this file is imported."""
    return f"oversmoothing.{file.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__")


class _Replacement(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, file: str, source: str) -> None:
        self.name, self.package = module_name(file), file.endswith("__init__.py")
        self.file, self.source = file, source

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        where = str(Path(self.file).resolve())
        return importlib.util.spec_from_file_location(
            name, where, loader=self, submodule_search_locations=[os.path.dirname(where)]
            if self.package else None,
        )  # fmt: skip

    def get_filename(self, name: str) -> str:
        return str(Path(self.file).resolve())

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.source, self.get_filename(self.name), "exec"), module.__dict__)


def preload(packages: Iterable[str]) -> None:
    """Import third-party modules before the forks."""
    for name in packages:
        try:
            importlib.import_module(name)
        except Exception:
            # A private or lazily made submodule: the child will find its own way to it.
            continue
    gc.collect()
    gc.freeze()


def in_child(work: Callable[[Callable[[Any], None]], int]) -> tuple[int, list[Any]]:
    """Exit status (minus the signal that ended it) of `work` in a fork, and what it told."""
    reading, writing = os.pipe()

    def tell(what: Any) -> None:
        os.write(writing, json.dumps(what).encode() + b"\n")

    child = os.fork()
    if child == 0:
        status = 70
        try:
            os.close(reading)
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            status = work(tell)
        except BaseException:
            tell({"crash": traceback.format_exc()[-2000:]})
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = [json.loads(line) for line in pipe if line.endswith(b"\n")]
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), told


def run_pytest(files: Iterable[str], plugin: Plugin) -> int:
    sys.path.insert(0, os.getcwd())
    # No other plugins and no rewritten assertions: a quarter of the time that a quick test takes.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    # What is slow every survivor would pay for, and quick tests beside it reach the same.
    arguments = ["-x", "--assert=plain", "--capture=no", "-p", "no:cacheprovider", "-m", "not slow"]
    arguments += files
    return int(pytest.main(arguments, plugins=[plugin]))


def baseline(files: Sequence[str], examples: int | None) -> Baseline:
    """Run the quick tests of the files on the unchanged code.

    Raises RuntimeError unless all of them pass.
    """

    def work(tell: Callable[[Any], None]) -> int:
        plugin = Plugin(tell, examples, None)
        known = set(sys.modules)
        plugin.coverage = coverage.Coverage(data_file=None, source=["theory"])
        plugin.coverage.start()
        status = run_pytest(files, plugin)
        plugin.coverage.stop()
        data = plugin.coverage.get_data()
        for file in sorted(data.measured_files()):
            table = data.contexts_by_lineno(file)
            lines = {line: [t for t in tests if t] for line, tests in table.items() if line}
            # Modules go by their names at the top, which are links into the package.
            name = os.path.relpath(file).removeprefix("oversmoothing/")
            tell({"file": name, "lines": lines})
        tell({"packages": [name for name in sys.modules if name not in known]})
        return status

    status, told = in_child(work)
    found = Baseline()
    for one in told:
        if "end" in one:
            found.seconds[one["end"]] = one["seconds"]
        elif "file" in one:
            found.lines[one["file"]] = {int(line): tests for line, tests in one["lines"].items()}
        elif "packages" in one:
            found.packages = [n for n in one["packages"] if n.split(".")[0] not in PROJECT]
        elif "failed" in one or "crash" in one:
            raise RuntimeError(f"the tests must pass on the unchanged code: {one}")
    if status != 0:
        raise RuntimeError(f"pytest ended with {status} on the unchanged code")
    return found


@dataclass(frozen=True)
class Outcome:
    """status: killed, timeout (counted as killed) or survived. by: the test that did it."""

    status: str
    by: str = ""


def trial(
    file: str, source: str, tests: Sequence[str], examples: int | None, base: Baseline
) -> Outcome:
    """Whether a test fails, crashes or never ends with `source` in the place of `file`."""
    if not tests:
        return Outcome("survived", "no test reaches it")

    def work(tell: Callable[[Any], None]) -> int:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.setitimer(signal.ITIMER_PROF, 20.0)
        sys.meta_path.insert(0, _Replacement(file, source))
        plugin = Plugin(tell, examples, tests)
        plugin.limits = {test: SLOWER * base.seconds[test] + SECONDS for test in tests}
        return run_pytest(sorted({test.split("::")[0] for test in tests}), plugin)

    status, told = in_child(work)
    if status == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise RuntimeError(f"none of {tests[:3]}... was collected")
    return outcome(status, told)


def outcome(status: int, told: Sequence[Any]) -> Outcome:
    """By the exit status of a child, minus the signal that ended it, and what its plugin told."""
    running = next((one["start"] for one in reversed(told) if "start" in one), "import")
    if status == 0:
        return Outcome("survived")
    if status == -signal.SIGPROF:
        return Outcome("timeout", running)
    if status < 0:
        return Outcome("killed", f"{running} (signal {-status})")
    failed = next((one["failed"] for one in told if "failed" in one), None)
    return Outcome("killed", failed or running)
