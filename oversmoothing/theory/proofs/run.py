"""Claims run in worker processes, and searches in chunks that go on over several runs.

Evidence holds functions, which no process can send to another: a worker gets an importable function
that makes the ledger, and the name of the claim; what it sends back are positions and outcomes.

A chunk is (claim, title of the evidence, index); its seed is derived from these, so that chunks can
be run in any order, on any number of workers, and never twice. The record is written after every
chunk: an interrupted run loses at most the chunk in work. It carries a fingerprint of the code that
searched: what other code found says nothing of this one.
"""

import contextlib
import hashlib
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any

from oversmoothing.theory.proofs.claim import Claim, Effort, Finding, Kind, Outcome
from oversmoothing.theory.proofs.coq import share_built
from oversmoothing.theory.proofs.ledger import Entry, Ledger, run_claim, standing
from oversmoothing.theory.proofs.search import Searched
from oversmoothing.theory.proofs.workers import as_done, workers
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import read_json, to_json, write_atomically

# Examples in one chunk: some seconds of work.
CHUNK = 2000
SCHEMA_VERSION = 2
# Of examples and of seconds: more no chunk has.
_MOST = 10**12


@cache
def fingerprint() -> str:
    """SHA-256 of the code of `theory`, file by file: claims, searches, what they call."""
    total = hashlib.sha256()
    theory = Path(__file__).resolve().parents[1]
    for path in sorted([*theory.rglob("*.py"), *theory.rglob("claims/*.md")]):
        content = path.read_bytes()
        total.update(f"{path.relative_to(theory).as_posix()} {len(content)}\n".encode() + content)
    return total.hexdigest()


@dataclass(frozen=True)
class Chunk:
    """One piece of a search."""

    claim: str
    title: str
    index: int
    examples: int = CHUNK

    @property
    def seed(self) -> int:
        return zlib.crc32(f"{self.claim}|{self.title}|{self.index}".encode())

    @property
    def key(self) -> str:
        return f"{self.claim}|{self.title}|{self.index}|{self.examples}"


class Coverage:
    """The record of finished chunks, kept in one JSON file. own: the file of the claims, where they
    are not those of the ledger."""

    def __init__(self, path: Path, own: Path | None = None) -> None:
        self.path = path
        self.code = fingerprint()
        if own is not None:
            self.code = hashlib.sha256(self.code.encode() + own.read_bytes()).hexdigest()
        self.chunks: dict[str, dict[str, Any]] = {}
        if path.exists():
            try:
                data = read_json(path)
                if data["schema_version"] != SCHEMA_VERSION:
                    raise ValueError(f"schema_version {data['schema_version']}")
                code = str(data["code"])
                self.chunks = {key: _record(key, value) for key, value in data["chunks"].items()}
            except (ValueError, KeyError, AttributeError, TypeError) as error:
                raise InputError(
                    f"'{path}' is not a record of searched chunks ({error}): move it away to start "
                    "a new one, or restore it"
                ) from error
            if code != self.code:
                raise InputError(
                    f"'{path}' is the record of a search by other code ({code[:12]}, now "
                    f"{self.code[:12]}): move it away to start a new one, or go on with the "
                    "code that began it"
                )

    def add(self, chunk: Chunk, result: dict[str, Any]) -> None:
        self.chunks[chunk.key] = result
        self.save()

    def save(self) -> None:
        record = {"schema_version": SCHEMA_VERSION, "code": self.code, "chunks": self.chunks}
        write_atomically(self.path, to_json(record))

    def totals(self) -> list[dict[str, Any]]:
        """By claim and search: examples tried, seconds, violations found."""
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for key, value in self.chunks.items():
            claim, title = key.split("|")[:2]
            row = rows.setdefault(
                (claim, title),
                {"claim": claim, "search": title, "examples": 0, "seconds": 0.0, "violations": []},
            )
            row["examples"] += value["examples"]
            row["seconds"] += value["seconds"]
            if value["violation"]:
                row["violations"].append(value["violation"])
        return list(rows.values())


def _record(key: str, value: Any) -> dict[str, Any]:
    """A finished chunk as it was written; raises `ValueError` where it is none."""
    right = (
        key.count("|") == 3
        and isinstance(value, dict)
        and type(value.get("examples")) is int
        and 0 <= value["examples"] <= _MOST
        and type(value.get("seconds")) in (float, int)
        and 0 <= value["seconds"] <= _MOST
        and isinstance(value.get("violation", 0), str | NoneType)
    )
    if not right:
        raise ValueError(f"'{key[:80]}' is no finished chunk")
    return dict(value)


def searches(claims: Iterable[Claim]) -> list[tuple[Claim, Searched]]:
    """Every searched evidence of the claims."""
    return [
        (claim, evidence)
        for claim in claims
        for evidence in claim.evidence
        if isinstance(evidence, Searched)
    ]


def pending(claims: Iterable[Claim], examples: int, coverage: Coverage) -> list[Chunk]:
    """Chunks still to do so that every claim reaches that many examples, round by round.

    The searches of a claim share them alike. Round by round: an unfinished run has covered all
    claims alike, not the first ones only.
    """
    chosen = searches(claims)
    shares = Counter(claim.name for claim, _ in chosen)
    wanted = [
        Chunk(claim.name, evidence.title, index)
        for index in range(-(-examples // CHUNK))
        for claim, evidence in chosen
        if index < -(-examples // (CHUNK * shares[claim.name]))
    ]
    return [chunk for chunk in wanted if chunk.key not in coverage.chunks]


def run_chunk(chunk: Chunk, claims: Mapping[str, Claim]) -> dict[str, Any]:
    """Search one chunk. Returns its record; a violation is data, not an error."""
    claim = claims[chunk.claim]
    evidence = next(e for _, e in searches([claim]) if e.title == chunk.title)
    start = time.perf_counter()
    outcome = evidence.search(chunk.examples, chunk.seed, claim.hypotheses)
    unusable = "unusable" in outcome.data
    return {
        "examples": outcome.data.get("examples", 0) if outcome.holds else 0,
        "seconds": round(time.perf_counter() - start, 3),
        # A law that cannot be asked is to be seen, too.
        "violation": outcome.counterexample or (outcome.detail if unusable else None),
        "detail": outcome.detail,
    }


MakeLedger = Callable[[], Ledger]
Kinds = frozenset[Kind] | None


def _claim_in_worker(
    make: MakeLedger, name: str, effort: Effort, kinds: Kinds
) -> tuple[str, list[tuple[int, Outcome, float]], float]:
    entry = run_claim(make()[name], effort, kinds)
    return name, [(f.index, f.outcome, f.seconds) for f in entry.findings], entry.seconds


def run_claims(
    chosen: Sequence[Claim], make: MakeLedger, effort: Effort, kinds: Kinds, jobs: int,
    seen: Callable[[Finding], object] = id,
) -> Iterator[Entry]:  # fmt: skip
    """Each claim's entry as soon as it is done, on `jobs` processes, to be `settled` together; one
    claim, or with one job all of them, in this process, which then tells `seen` of each finding.

    make: an importable function; its ledger holds the evidence of the chosen claims.
    """
    known = {claim.name: claim for claim in chosen}
    if jobs == 1 or len(known) == 1:
        # A worker costs the seconds in which it loads the ledger.
        for claim in known.values():
            with contextlib.redirect_stdout(sys.stderr):
                entry = run_claim(claim, effort, kinds, seen=seen)
            yield entry
        return
    share_built()
    with workers(jobs) as submit:
        futures = [submit(_claim_in_worker, make, name, effort, kinds) for name in known]
        for future in as_done(futures):
            name, plain, seconds = future.result()
            evidence = known[name].evidence
            findings = [Finding(k, evidence[k], outcome, spent) for k, outcome, spent in plain]
            yield Entry(known[name], standing(known[name], findings), findings, seconds)


def _chunk_in_worker(make: MakeLedger, chunk: Chunk) -> tuple[Chunk, dict[str, Any]]:
    return chunk, run_chunk(chunk, make())


def run_chunks(
    chunks: Iterable[Chunk],
    make: MakeLedger,
    coverage: Coverage,
    jobs: int,
    stop: float | None = None,
) -> Iterator[Chunk]:
    """Search the chunks, each recorded in `coverage` and yielded when done.

    stop: no chunk is begun once time.monotonic() has passed it.
    """
    waiting = iter(chunks)
    running: set[Future[tuple[Chunk, dict[str, Any]]]] = set()
    share_built()
    with workers(jobs) as submit:
        while True:
            while len(running) < jobs and (stop is None or time.monotonic() < stop):
                following = next(waiting, None)
                if following is None:
                    break
                running.add(submit(_chunk_in_worker, make, following))
            if not running:
                return
            finished = next(as_done(running))
            running.discard(finished)
            chunk, result = finished.result()
            coverage.add(chunk, result)
            yield chunk
