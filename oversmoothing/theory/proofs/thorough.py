"""Searches that go on over several runs: seeded chunks, and a record of what has been covered.

A chunk is (claim, title of the evidence, index); its seed is derived from these, so that chunks can
be run in any order, on any number of workers, and never twice. The record is written after every
chunk: an interrupted run loses at most the chunk in work. It carries a fingerprint of the code that
searched: what other code found says nothing of this one.
"""

import hashlib
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any

from oversmoothing.theory.proofs.claim import Claim, Kind
from oversmoothing.theory.proofs.search import Searched
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

    def add(self, chunk: Chunk, found: dict[str, Any]) -> None:
        self.chunks[chunk.key] = found
        self.save()

    def save(self) -> None:
        record = {"schema_version": SCHEMA_VERSION, "code": self.code, "chunks": self.chunks}
        write_atomically(self.path, to_json(record))

    def totals(self) -> list[dict[str, Any]]:
        """By claim and search: examples tried, seconds, violations found."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for key, value in self.chunks.items():
            claim, title = key.split("|")[:2]
            row = found.setdefault(
                (claim, title),
                {"claim": claim, "search": title, "examples": 0, "seconds": 0.0, "violations": []},
            )
            row["examples"] += value["examples"]
            row["seconds"] += value["seconds"]
            if value["violation"]:
                row["violations"].append(value["violation"])
        return list(found.values())


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
        if evidence.kind is Kind.SEARCHED and isinstance(evidence, Searched)
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
        "examples": int(str(outcome.data.get("examples", 0))) if outcome.holds else 0,
        "seconds": round(time.perf_counter() - start, 3),
        # A law that cannot be asked is to be seen, too.
        "violation": outcome.counterexample or (outcome.detail if unusable else None),
        "detail": outcome.detail,
    }
