"""Shares of killed mutants: in a line for each module, and on record (record.json)."""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from oversmoothing.theory.support.files import write_atomically
from tests.mutants.mutations import mutants

# What the last run of all mutants of each module gave: --all writes it, --recorded shows it.
RECORD = Path(__file__).with_name("record.json")


def hash_of(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def share(count: Counter[str], without: int = 0) -> float:
    killed = count["killed"] + count["timeout"]
    return killed / max(killed + count["survived"] - without, 1)


def row(name: str, count: Counter[str]) -> str:
    total = count["killed"] + count["timeout"] + count["survived"]
    return (
        f"{name:36}{total:5} mutants:{count['killed']:5} killed,{count['timeout']:3} timed out,"
        f"{count['survived']:4} survived, {count['neutral']:3} of them neutral:"
        f"{100 * share(count):6.1f} %,{100 * share(count, count['neutral']):6.1f} % of the others"
    )


def record(file: str, source: str, count: Counter[str], slowest: float = math.inf) -> None:
    """Keep what a run of all mutants of a module gave, beside that of the others.

    slowest: seconds from which on tests were not asked, so that more may have survived.
    """
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    known[file] = {"source": hash_of(source), "date": datetime.now(UTC).date().isoformat()}
    known[file] |= {name: count[name] for name in ("killed", "timeout", "survived", "neutral")}
    if count["carried"]:
        known[file]["carried"] = count["carried"]
    if slowest < math.inf:
        known[file]["slowest"] = float(slowest)
    write_atomically(RECORD, json.dumps(dict(sorted(known.items())), indent=2) + "\n")


def recorded(modules: Iterable[str]) -> str:
    """The record, module by module, by folder and together; what changed since is marked."""
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    folders: dict[str, Counter[str]] = {}
    total: Counter[str] = Counter()
    lines = []
    for file in modules:
        if file not in known:
            lines.append(f"{file:36} not run in full yet")
            continue
        one = known[file]
        count = Counter({name: n for name, n in one.items() if isinstance(n, int)})
        asked = f", by tests under {one['slowest']} s alone" if "slowest" in one else ""
        if "carried" in one:
            asked += f", {one['carried']} carried over"
        changed = "" if one["source"] == hash_of(Path(file).read_text()) else ", changed since"
        lines.append(f"{row(file, count)}  ({one['date']}{asked}{changed})")
        folders.setdefault(file.rpartition("/")[0], Counter()).update(count)
        total += count
    rows = [row(name, count) for name, count in folders.items()]
    return "\n".join([*lines, "", *rows, row("together", total)])


def killed_at(commit: str, file: str) -> frozenset[str]:
    """Names of the mutants of a module that the run on record at a commit killed; none where its
    survivors were not all named, or where the module had changed since that run."""

    def text(path: str) -> str:
        git = ["git", "show", f"{commit}:{path}"]
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout

    one = json.loads(text("tests/mutants/record.json")).get(file)
    source = text(file)
    if one is None or one["source"] != hash_of(source):
        return frozenset()
    names = frozenset(mutant.name for mutant in mutants(source))
    survivors = names & json.loads(text("tests/mutants/survivors.json")).get(file, {}).keys()
    return names - survivors if len(survivors) == one["survived"] else frozenset()
