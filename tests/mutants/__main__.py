"""`make mutants`: break the verdict, limit, rate and certificate code, and see the tests notice.

Each mutant of a module (see mutations) is one forked process (see warm, and trial for what acts on
import and for what survives). Results are kept in
.mutants/, by module and hash of its source: stopped at any time, the next run goes on where this
one was, and an unchanged module is not done again. What survived is tried again once a test file
changes, and what was killed once its killer's file does. Changes of other modules are not
followed: --fresh begins anew.

Most of the time goes to survivors, which meet all tests that reach them: --quick 0.1 asks the tests
alone that take less than so many seconds, and a run without it looks again at what survived those.

survivors.json gives the reason of each known survivor. Two shares are shown: killed of all, and
killed of those that are not explained as changing no result (NEUTRAL: equivalent, performance, the
choice of random cases). Slack of a bound or tolerance, and what is open, count as survivors.

--since COMMIT takes from the record there what was killed and is the same mutant still, by name:
the same change of the same statement of the same function. It asks that survivors.json named all
that survived. record.json keeps what --all gave for each module, so that all of them can be done
over several days; --recorded shows it.

Exit status 1: the second share is below TARGET, or a survivor is not explained at all.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from oversmoothing.theory.support.files import write_atomically
from tests.mutants.mutations import Mutant, lines_of_use, mutants
from tests.mutants.shares import RECORD, hash_of, killed_at, record, recorded, row, share
from tests.mutants.trial import Baseline, Outcome, baseline, module_name, preload, trial
from tests.mutants.warm import Server

TARGET = 0.90
# Without --all, so many mutants of each module: those that come first by a hash with this seed.
SAMPLE, SEED = 25, 2401_04301
# Examples that a property test draws (never more than it asks for itself), and with --thorough
# once more for what survives them.
EXAMPLES, SECOND_LOOK = 10, 100

_FOLDERS = ("verdict", "depth", "spectra", "layer", "checker", "numbers")
_FILES = [path for folder in _FOLDERS for path in sorted(Path("theory", folder).glob("[!_]*.py"))]
MODULES = ["theory/certificate.py", *map(str, _FILES)]
# The quick tests of the theory but those of its proofs, files and pages. Which of them a mutant
# meets is read off the lines they reach.
_APART = """chapters claims files formal own_claims planted_errors symbolic testing workers"""
TESTS = [
    *(f"tests/theory/{path.name}" for path in sorted(Path("tests/theory").glob("test_*.py"))
      if path.stem.removeprefix("test_") not in _APART.split()),
    "tests/forgeries/test_forgeries.py",
    "tests/simulations/test_evolve_methods.py",
    "tests/simulations/test_states_by_hand.py",
    "tests/mutants/recorded.py",
]  # fmt: skip
WORK = Path(".mutants")
NEUTRAL = ("equivalent", "performance only", "which random")
REASONS = Path(__file__).with_name("survivors.json")


class Results:
    """What became of the mutants of one module, in one file of lines that is only appended to."""

    def __init__(
        self, file: str, source: str, tests: dict[str, str], slowest: float = math.inf
    ) -> None:
        name = file.removesuffix(".py").replace("/", ".")
        self._path = WORK / f"{name}.{hash_of(source)}.jsonl"
        asked = [] if slowest == math.inf else [f"{slowest} s"]
        self._tests, self._all = tests, hash_of(*tests.values(), *asked)
        self._known: dict[str, dict[str, Any]] = {}
        text = self._path.read_text() if self._path.exists() else ""
        for line in text.splitlines():
            try:
                one = json.loads(line)
            except json.JSONDecodeError:
                continue  # the run was stopped in the middle of a line
            self._known[one["key"]] = one
        if text and not text.endswith("\n"):
            self._path.write_text(text + "\n")

    def killer(self, mutant: Mutant) -> str:
        """The test that killed it when it was last tried, "" if none did."""
        return str(self._known.get(hash_of(mutant.source), {}).get("by", ""))

    def get(self, mutant: Mutant) -> Outcome | None:
        """What is known and still holds."""
        one = self._known.get(hash_of(mutant.source))
        if one is None or one["tests"] != self._state(one["status"], one["by"]):
            return None
        return Outcome(one["status"], one["by"])

    def put(self, mutant: Mutant, outcome: Outcome) -> None:
        one = {
            "key": hash_of(mutant.source),
            "name": mutant.name,
            "status": outcome.status,
            "by": outcome.by,
            "tests": self._state(outcome.status, outcome.by),
        }
        self._known[one["key"]] = one
        with self._path.open("a") as stream:
            stream.write(json.dumps(one) + "\n")

    def _state(self, status: str, by: str) -> str:
        return self._all if status == "survived" else self._tests.get(by.split("::")[0], "")


class Bench:
    """The baseline of each look at a mutant, made when first needed."""

    def __init__(self, tests: list[str], looks: tuple[int, ...], slowest: float = math.inf) -> None:
        self._tests, self._looks, self._slowest = tests, looks, slowest
        self._made: list[Baseline] | None = None
        self.kills: Counter[str] = Counter()
        self._servers: dict[int, Server] = {}

    def _baselines(self) -> list[Baseline]:
        if self._made is None:
            self._made = [self._baseline(examples) for examples in self._looks]
            preload(self._made[0].packages)
            early = [file for file in MODULES if module_name(file) in sys.modules]
            if early:
                raise RuntimeError(f"imported before the forks, so that no mutant is met: {early}")
        return self._made

    def _baseline(self, examples: int) -> Baseline:
        """From the last run where neither tests nor theory changed since."""
        sources = [path.read_text() for path in sorted(Path("theory").rglob("*.py"))]
        tests = [Path(file).read_text() for file in self._tests]
        path = WORK / f"baseline.{examples}.{hash_of(*sources, *tests)}.json"
        if not path.exists():
            print(f"running the tests on the unchanged code, {examples} examples", flush=True)
            found = baseline(self._tests, examples)
            for old in WORK.glob(f"baseline.{examples}.*"):
                old.unlink()
            write_atomically(path, json.dumps(asdict(found)))
        return Baseline.from_json_object(json.loads(path.read_text()))

    def outcome(self, file: str, mutant: Mutant, killer: str) -> Outcome:
        """What the first look that kills it says, or that none does."""
        found = Outcome("survived", "no test reaches it")
        for examples, base in zip(self._looks, self._baselines(), strict=True):
            tests = [
                test
                for test in self._meeting(base, file, mutant)
                if base.seconds[test] < self._slowest or test == killer
            ]
            # Those that killed before, and quick ones, come first: the outcome is the same.
            tests.sort(key=lambda t: (t != killer, base.seconds[t] / (1 + self.kills[t])))
            warm = self._warm(file, mutant, tests, examples, base)
            for some in [] if warm else _first_files(tests):
                found = trial(file, mutant.source, some, examples, base)
                if found.status != "survived":
                    break
            found = warm or found
            if found.status != "survived":
                self.kills[found.by] += 1
                return found
        return found

    def _warm(
        self, file: str, mutant: Mutant, tests: list[str], examples: int, base: Baseline
    ) -> Outcome | None:
        """What tests that are collected already say; None of what acts on import, and of what
        survives: a test file may compute on import what would show it."""
        if not (mutant.lines and tests):
            return None
        if examples not in self._servers:
            self._servers[examples] = Server(self._tests, examples, base)
        found = self._servers[examples].outcome(file, mutant.source, tests)
        return None if found == Outcome("survived") else found

    def _meeting(self, base: Baseline, file: str, mutant: Mutant) -> list[str]:
        """The tests that reach the changed statement. Of a constant: that reach a statement which
        reads it, wherever that is, and all of the test files that name it."""
        found = base.reaching(file, mutant.lines)
        if mutant.lines or not mutant.constants:
            return found
        named = re.compile(rf"\b({'|'.join(mutant.constants)})\b")
        files = {test for test in self._tests if named.search(Path(test).read_text())}
        reached = {test for test in base.seconds if test.split("::")[0] in files}
        private = all(name.startswith("_") for name in mutant.constants)
        for path in [file] if private else base.lines:
            lines = lines_of_use(Path(path).read_text(), mutant.constants)
            if lines is None:
                return found
            if lines:
                reached.update(base.reaching(path, lines))
        return [test for test in found if test in reached]


def _first_files(tests: list[str]) -> list[list[str]]:
    """The tests of the two files that come first, which kill most, and the others: to read all
    files takes longer than most tests do."""
    files = list(dict.fromkeys(test.split("::")[0] for test in tests))
    first = [test for test in tests if test.split("::")[0] in files[:2]]
    rest = [test for test in tests if test.split("::")[0] not in files[:2]]
    return [first, rest] if rest else [first]


def _chosen(source: str, sample: int | None) -> list[Mutant]:
    found = mutants(source)
    if sample is None:
        return found
    return sorted(found, key=lambda mutant: mutant.rank(SEED))[:sample]


def _explained() -> dict[str, dict[str, str]]:
    return dict(json.loads(REASONS.read_text())) if REASONS.exists() else {}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", help="module files (default: all on the list)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--sample", type=int, metavar="N", default=SAMPLE, help=f"N mutants a module ({SAMPLE})"
    )
    size.add_argument("--all", action="store_const", dest="sample", const=None, help="all of them")
    parser.add_argument(
        "--quick", type=float, metavar="S", default=math.inf, help="ask tests under S seconds alone"
    )
    parser.add_argument("--since", metavar="COMMIT", help="carry over what was killed there")
    parser.add_argument("--thorough", action="store_true", help="look twice at what survives")
    parser.add_argument(
        "--recorded", action="store_true", help=f"show {RECORD.name}: the last runs of all mutants"
    )
    parser.add_argument("--fresh", action="store_true", help="forget the results kept")
    options = parser.parse_args(arguments)
    if options.recorded:
        print(recorded(MODULES))
        return 0
    # NumPy is not imported yet; its threads would not survive the forks.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    # What each fork imports unchanged need not be compiled again, whatever the environment says.
    sys.dont_write_bytecode = False
    WORK.mkdir(exist_ok=True)
    if options.fresh:
        for old in WORK.glob("*.jsonl"):
            old.unlink()
    hashes = {file: hash_of(Path(file).read_text()) for file in TESTS}
    looks = (EXAMPLES, SECOND_LOOK) if options.thorough else (EXAMPLES,)
    bench, explained = Bench(TESTS, looks, options.quick), _explained()
    total: Counter[str] = Counter()
    rows, complaints = [], []
    for file in options.modules or MODULES:
        source = Path(file).read_text()
        results = Results(file, source, hashes, options.quick)
        count: Counter[str] = Counter()
        reasons = explained.get(file, {})
        carried = killed_at(options.since, file) if options.since else frozenset()
        for mutant in _chosen(source, options.sample):
            if mutant.name in carried:
                count.update(["killed", "carried"])
                continue
            outcome = results.get(mutant)
            if outcome is None:
                outcome = bench.outcome(file, mutant, results.killer(mutant))
                results.put(mutant, outcome)
            count[outcome.status] += 1
            if outcome.status == "survived":
                count["neutral"] += reasons.get(mutant.name, "").startswith(NEUTRAL)
            if outcome.status == "survived" and mutant.name not in reasons:
                note = f" ({outcome.by})" if outcome.by else ""
                complaints.append(f"{file}: {mutant.name}{note}")
        if options.sample is None:
            record(file, source, count, options.quick)
        total += count
        rows.append(row(file, count))
        print(rows[-1], flush=True)
    print(_report(rows, total, complaints))
    return int(bool(complaints) or share(total, total["neutral"]) < TARGET)


def _report(rows: list[str], total: Counter[str], complaints: Iterable[str]) -> str:
    lines = ["", *rows, row("together", total)]
    unexplained = [f"  {one}" for one in complaints]
    if unexplained:
        lines += ["", f"{len(unexplained)} survivors that {REASONS.name} does not explain:"]
        lines += unexplained
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
