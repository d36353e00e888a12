"""A mutant within functions against tests that are collected once: code objects are exchanged.

A server process imports the project, collects the tests and forks for each mutant; the child gives
every function of the module the code it has in the mutant, and runs the tests. That takes a tenth
of what a new session takes (see trial). What acts on import is left to that, and so is a module
whose tests fail here with its unchanged source; what a test file computes on import is that of
the unchanged code.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from tests.mutants.trial import (
    MEMORY,
    SECONDS,
    SLOWER,
    Baseline,
    Outcome,
    Plugin,
    in_child,
    module_name,
    outcome,
    run_pytest,
)

_MUTANT = "<mutant>"
_OF_IMPORT = ("__file__", "__package__", "__spec__", "__loader__", "__builtins__")
Table = dict[tuple[str, int], FunctionType]


class Server:
    """The process that keeps the tests of these files collected. Ends with `close`."""

    def __init__(self, files: Sequence[str], examples: int | None, base: Baseline) -> None:
        self._base = base
        here, there = os.pipe(), os.pipe()
        self._child = os.fork()
        if self._child == 0:
            status = 70
            try:
                os.close(here[1])
                os.close(there[0])
                null = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(null, stream)
                status = run_pytest(files, _Loop(here[0], there[1], examples, base))
            finally:
                os._exit(status)
        os.close(here[0])
        os.close(there[1])
        self._ask, self._answer = os.fdopen(here[1], "wb"), os.fdopen(there[0], "rb")
        self._sound: dict[str, bool] = {}

    def outcome(self, file: str, source: str, tests: Sequence[str]) -> Outcome | None:
        """As `trial` has it, None where it cannot be told here."""
        if file not in self._sound:
            unchanged = self._asked(file, Path(file).read_text(), tests)
            self._sound[file] = unchanged is not None and unchanged.status == "survived"
        return self._asked(file, source, tests) if self._sound[file] else None

    def _asked(self, file: str, source: str, tests: Sequence[str]) -> Outcome | None:
        request = {"file": file, "source": source, "tests": list(tests)}
        self._ask.write(json.dumps(request).encode() + b"\n")
        self._ask.flush()
        answer = self._answer.readline()
        if not answer:
            raise RuntimeError("the process that keeps the tests collected has ended")
        status, told = json.loads(answer)
        if any("other" in one for one in told):
            return None
        return outcome(status, told)

    def close(self) -> None:
        self._ask.close()
        self._answer.close()
        os.waitpid(self._child, 0)


class _Loop(Plugin):
    """In the place of pytest's loop over the tests: over the requests."""

    def __init__(self, reading: int, writing: int, examples: int | None, base: Baseline) -> None:
        super().__init__(lambda _: None, examples, None)
        self._requests, self._answers = os.fdopen(reading, "rb"), os.fdopen(writing, "wb")
        self._base = base

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        tables = functions()
        gc.collect()
        # The tables are made: what is frozen is not found again, nor copied by the forks.
        gc.freeze()
        for line in self._requests:
            one = json.loads(line)
            chosen = [items[test] for test in one["tests"]]
            answer = in_child(self._work(session, tables, one["file"], one["source"], chosen))
            self._answers.write(json.dumps(answer).encode() + b"\n")
            self._answers.flush()
        return True

    def _work(
        self,
        session: pytest.Session,
        tables: dict[str, Table],
        file: str,
        source: str,
        items: list[pytest.Item],
    ) -> Callable[[Callable[[Any], None]], int]:
        def work(tell: Callable[[Any], None]) -> int:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.setitimer(signal.ITIMER_PROF, 20.0)
            if not install(file, source, tables.get(module_name(file), {})):
                tell({"other": "functions that the module does not have"})
                return 0
            self.tell = tell
            self.limits = {i.nodeid: SLOWER * self._base.seconds[i.nodeid] + SECONDS for i in items}
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed:
                    return 1
            return 0

        return work


def functions() -> dict[str, Table]:
    """The functions of all modules that stand in their files: module -> place -> function."""
    found: dict[str, list[FunctionType]] = {}
    for one in gc.get_objects():
        if type(one) is FunctionType and isinstance(one.__module__, str):
            module = sys.modules.get(one.__module__)
            if one.__code__.co_filename == getattr(module, "__file__", None):
                found.setdefault(one.__module__, []).append(one)
    return {name: _placed(functions) for name, functions in found.items()}


def _placed(functions: list[FunctionType]) -> Table:
    """By qualified name; those that share one, in their order in the file."""
    found: Table = {}
    for function in sorted(functions, key=lambda f: f.__code__.co_firstlineno):
        name = function.__qualname__
        found[name, sum(known == name for known, _ in found)] = function
    return found


def install(file: str, source: str, table: Table) -> bool:
    """Give the functions of a module, those in the table, their code in this source. Whether they
    are the same functions, of the same variables."""
    name = module_name(file)
    fresh = ModuleType(name)
    fresh.__dict__.update({k: v for k, v in vars(sys.modules[name]).items() if k in _OF_IMPORT})
    exec(compile(source, _MUTANT, "exec"), fresh.__dict__)
    made = _placed(
        [
            one
            for one in gc.get_objects()
            if type(one) is FunctionType
            and one.__globals__ is fresh.__dict__
            and one.__code__.co_filename == _MUTANT
        ]
    )
    if made.keys() != table.keys():
        return False
    for place, function in table.items():
        code = made[place].__code__
        if code.co_freevars != function.__code__.co_freevars:
            return False
        function.__code__ = code
    return True
