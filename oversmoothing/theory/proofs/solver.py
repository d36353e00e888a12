"""SMT solvers, each call in a process of its own that can be stopped.

`python -m oversmoothing.theory.proofs.solver NAME PARENT` reads SMT-LIB 2 from standard input and
prints one JSON object. `solve` runs that with a time limit: what is not answered by then is killed,
and counts as unanswered, never as a proof. It ends with the process PARENT that asked, too.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
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


def solve(smtlib: str, solver: str = "z3", limit: float = TIME_LIMIT) -> Answer:
    """Ask one solver about one set of assertions, within `limit` seconds."""
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "oversmoothing.theory.proofs.solver", solver, str(os.getpid())],
            input=smtlib,
            capture_output=True,
            text=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return Answer(solver, "timeout", time.perf_counter() - start)
    if done.returncode == 3:
        return Answer(solver, "absent", 0.0)
    if done.returncode != 0:
        raise RuntimeError(f"{solver} failed: {done.stderr.strip()[-500:]}")
    answer = json.loads(done.stdout)
    return Answer(solver, answer["result"], answer["seconds"], answer["model"])


def _z3(smtlib: str) -> dict[str, Any]:
    import z3

    start = time.perf_counter()
    # The incremental core answers most queries in milliseconds where the portfolio needs seconds
    # (the universal disc: 0.1 s against 14 s); the portfolio decides what the core gives up on.
    solver = z3.SimpleSolver()
    solver.set("timeout", 4000)
    solver.from_string(smtlib)
    if solver.check() == z3.unknown:
        solver = z3.Solver()
        solver.from_string(smtlib)
    result = str(solver.check())
    seconds = time.perf_counter() - start
    model = {}
    if result == "sat":
        solution = solver.model()
        for variable in solution.decls():
            value = solution[variable]
            if z3.is_rational_value(value):
                model[variable.name()] = str(value.as_fraction())
            else:
                model[variable.name()] = str(value)
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
    while True:
        command = parser.nextCommand()
        if command.isNull():
            break
        command.invoke(solver, symbols)
    outcome = solver.checkSat()
    seconds = time.perf_counter() - start
    result = "unsat" if outcome.isUnsat() else "sat" if outcome.isSat() else "unknown"
    return {"result": result, "seconds": seconds, "model": {}}


def _main(name: str, parent: str) -> int:
    end_at_once_with(int(parent))
    run = {"z3": _z3, "cvc5": _cvc5}[name]
    try:
        answer = run(sys.stdin.read())
    except ImportError:
        return 3
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
