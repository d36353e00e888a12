"""`make nights`: every comparison that draws its cases, at the size of a night.

    python -m tests.nights                    # all of them, with the date as the seed
    python -m tests.nights --seed 20260131 --only oracle fuzz

Each is cut into chunks, and what a chunk printed is kept in .nights/SEED-CODE/, CODE being a hash
of the sources: stopped at any time, the next run of that seed and code goes on where this one was.
Exit status 1 where any chunk found something wrong.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import NamedTuple

from oversmoothing.theory.support.files import write_atomically

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / ".nights"
SOURCES = ("oversmoothing", "tests")
# What stands last in the record of a chunk that ended.
_END = "exit status "


class Tool(NamedTuple):
    """A comparison: how many cases a night draws, how many a chunk, and how it is asked."""

    cases: int
    chunk: int
    words: str


_DRAWN = "{count} --seed {seed} --first {first}"
TOOLS = {
    # One chunk: what is known of unchanged modules it keeps itself, in .mutants/.
    "mutants": Tool(1, 1, "tests.mutants --all"),
    "oracle": Tool(20_000, 500, f"tests.oracle {_DRAWN}"),
    "evolve_errors": Tool(10_000, 250, f"tests.evolve_errors --number {_DRAWN}"),
    "fuzz": Tool(20_000, 500, f"tests.fuzz {_DRAWN}"),
    "streams": Tool(10_000, 500, f"tests.streams {_DRAWN}"),
    "attention_hunt": Tool(100_000, 50_000, f"tests.hunts one-feature {_DRAWN}"),
    "matrix_hunt": Tool(100_000, 50_000, f"tests.hunts matrix {_DRAWN}"),
    "mixing_hunt": Tool(100_000, 50_000, f"tests.hunts streams {_DRAWN}"),
    "weighted_mixing_hunt": Tool(100_000, 50_000, f"tests.hunts streams-any-p {_DRAWN}"),
    "honest": Tool(1_000, 100, f"tests.forgeries.honest {_DRAWN}"),
}


class Chunk(NamedTuple):
    """`count` cases of a tool from the case `first` on."""

    tool: str
    first: int
    count: int

    @property
    def name(self) -> str:
        return f"{self.tool}-{self.first}-{self.count}"

    def words(self, seed: int) -> list[str]:
        """What follows `python -m`."""
        return TOOLS[self.tool].words.format(seed=seed, first=self.first, count=self.count).split()


def chunks(tools: list[str], share: float) -> list[Chunk]:
    """Those of a night, or of a share of one."""
    found = []
    for tool in tools:
        cases, size, _ = TOOLS[tool]
        cases = max(1, round(share * cases))
        found += [Chunk(tool, k, min(size, cases - k)) for k in range(0, cases, size)]
    return found


def code() -> str:
    """A hash of all sources: what other code passed says nothing of this one."""
    total = hashlib.sha256()
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            total.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return total.hexdigest()[:12]


def perform(chunk: Chunk, seed: int, folder: Path) -> int:
    """Its exit status: from its record, or by running it. What a signal ended leaves no record."""
    record = folder / f"{chunk.name}.txt"
    if record.exists():
        last = record.read_text("utf-8").rstrip("\n").rpartition("\n")[2]
        if last.startswith(_END):
            return int(last.removeprefix(_END))
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", *chunk.words(seed)], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, cwd=ROOT, text=True, errors="backslashreplace",
    )  # fmt: skip
    end = f"{_END}{done.returncode}"
    if done.returncode >= 0:
        write_atomically(record, f"{done.stdout.rstrip()}\n{end}\n")
    print(f"{chunk.name}: {time.monotonic() - began:.0f} s, {end}", flush=True)
    if done.returncode:
        print(f"python -m {' '.join(chunk.words(seed))}\n{done.stdout[-4000:]}", flush=True)
    return done.returncode


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make nights", description=__doc__)
    parser.add_argument("--seed", type=int, default=int(f"{date.today():%Y%m%d}"))
    parser.add_argument("--only", nargs="+", choices=TOOLS, default=list(TOOLS), metavar="NAME")
    parser.add_argument("--share", type=float, default=1.0, help="of a night's cases")
    parser.add_argument("--jobs", type=int, default=2, help="chunks at a time")
    given = parser.parse_args(arguments)
    folder = WORK / f"{given.seed}-{code()}"
    found = chunks(given.only, given.share)
    print(f"seed {given.seed}, {len(found)} chunks, kept in {folder.relative_to(ROOT)}", flush=True)
    # NumPy's own threads would only stand in each other's way.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    with ThreadPoolExecutor(given.jobs) as pool:
        try:
            ended = list(pool.map(lambda chunk: perform(chunk, given.seed, folder), found))
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    wrong = [chunk.name for chunk, status in zip(found, ended, strict=True) if status]
    for tool in given.only:
        own = [k for chunk, k in zip(found, ended, strict=True) if chunk.tool == tool]
        print(f"{tool}: {len(own)} chunks, {sum(map(bool, own))} with something wrong")
    print(f"seed {given.seed}: " + (f"wrong in {', '.join(wrong)}" if wrong else "nothing wrong"))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
