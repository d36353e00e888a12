"""SMT solvers, in a process of their own that can be stopped.

`python -m oversmoothing.theory.proofs.solver PARENT` reads requests from standard input, one a line
in JSON, and answers each with such a line. `solve` starts it, and keeps it for what is asked next:
to load a solver takes longer than most queries. Each query has its terms for itself. What is not
answered within a limit is killed, and counts as unanswered, never as a proof. The process ends with
the process PARENT that asked, too.
"""

import atexit
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any

from oversmoothing.theory.proofs.workers import end_at_once_with

TIME_LIMIT = 60.0


@dataclass(frozen=True)
class Answer:
    """result: "unsat", "sat", "unknown" (gave up), "timeout" or "absent" (not installed).

    seconds: of the solver alone, or of the whole process where it was stopped. model: variable ->
    value as an exact text ("3/8"), where the solver gave one.
    """

    solver: str
    result: str
    seconds: float
    model: dict[str, str] = field(default_factory=dict)


_LOCK = threading.Lock()
# The process that answers, one request after the other.
_running: list[subprocess.Popen[str]] = []


def _start() -> None:
    words = [sys.executable, "-m", "oversmoothing.theory.proofs.solver", str(os.getpid())]
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    _running.append(subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=nowhere, text=True))


@atexit.register
def _stop() -> None:
    while _running:
        process = _running.pop()
        process.kill()
        process.wait()


def _ask(solver: str, smtlib: str, end: float) -> Any:
    """The answer, None where there is none by this time: the process is then to be stopped."""
    process = _running[0]
    assert process.stdout is not None
    with suppress(BrokenPipeError):
        print(json.dumps([solver, smtlib]), file=process.stdin, flush=True)
    # The kernel may hand an interrupt to another thread: this one looks up now and then.
    while (left := end - time.perf_counter()) > 0:
        if wait([process.stdout.fileno()], min(left, 0.5)):
            return json.loads(process.stdout.readline() or '{"error": "it ended"}')
    return None


def solve(smtlib: str, solver: str = "z3", limit: float = TIME_LIMIT) -> Answer:
    """Ask one solver about one set of assertions, within `limit` seconds."""
    start = time.perf_counter()
    with _LOCK:
        if not _running or _running[0].poll() is not None:
            _stop()
            _start()
        answer = None
        try:
            answer = _ask(solver, smtlib, start + limit)
        finally:
            if answer is None or "error" in answer:
                _stop()
    if answer is None:
        return Answer(solver, "timeout", time.perf_counter() - start)
    if "error" in answer:
        raise RuntimeError(f"{solver} failed: {answer['error']}")
    return Answer(solver, **answer)


def _z3(smtlib: str) -> dict[str, Any]:
    import z3

    start = time.perf_counter()
    # The incremental core answers most queries in milliseconds where the portfolio needs seconds
    # (the universal disc: 0.1 s against 14 s); the portfolio decides what the core gives up on.
    terms = z3.Context()
    solver = z3.SimpleSolver(ctx=terms)
    solver.set("timeout", 4000)
    solver.from_string(smtlib)
    if solver.check() == z3.unknown:
        solver = z3.Solver(ctx=terms)
        solver.from_string(smtlib)
    result = str(solver.check())
    seconds = time.perf_counter() - start
    solution = solver.model() if result == "sat" else {}
    values = {variable.name(): solution[variable] for variable in solution}
    model = {
        name: str(value.as_fraction() if z3.is_rational_value(value) else value)
        for name, value in values.items()
    }
    return {"result": result, "seconds": seconds, "model": model}


def _cvc5(smtlib: str) -> dict[str, Any]:
    import cvc5

    terms = cvc5.TermManager()
    solver = cvc5.Solver(terms)
    solver.setOption("produce-models", "true")
    # Cylindrical algebraic coverings: a decision procedure for these queries.
    solver.setOption("nl-cov", "true")
    solver.setLogic("QF_NRA")
    symbols = cvc5.SymbolManager(terms)
    parser = cvc5.InputParser(solver, symbols)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, smtlib, "query")
    start = time.perf_counter()
    while not (command := parser.nextCommand()).isNull():
        command.invoke(solver, symbols)
    outcome = solver.checkSat()
    seconds = time.perf_counter() - start
    result = "unsat" if outcome.isUnsat() else "sat" if outcome.isSat() else "unknown"
    return {"result": result, "seconds": seconds, "model": {}}


def _main(parent: str) -> int:
    end_at_once_with(int(parent))
    run = {"z3": _z3, "cvc5": _cvc5}
    for line in sys.stdin:
        name, smtlib = json.loads(line)
        try:
            answer = run[name](smtlib)
        except ImportError:
            answer = {"result": "absent", "seconds": 0.0}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[-500:]}
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
