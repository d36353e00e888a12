"""Record what the project answers now, or see what of it moved.

    python -m tests.corpora.take evolve streams     # these anew; without names, all
    python -m tests.corpora.take --diff evolve      # which fields of which cases moved
    python -m tests.corpora.take --tolerances       # how far each field may move, and why

Recording is right only where an answer was meant to change; the difference then belongs into the
commit, and the output of --diff, taken before, into its message. Wording is not recorded.
"""

import argparse
import json
import lzma
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tests.corpora import commands, comparing, networks, simulations, theory

HERE = Path(__file__).parent
# In this order the libraries that all need are loaded by the first.
CORPORA: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    "verdicts": theory.verdicts,
    "near_ties": theory.near_ties,
    "certificates": theory.certificates,
    "bounds": theory.bounds,
    "rates": theory.rates,
    "streams": theory.streams,
    "evolve": simulations.evolve,
    "sweep": simulations.sweep,
    "inspect": networks.inspect,
    "enclose": networks.enclose,
    "commands": commands.commands,
}

# What is known to be wrong in an answer, by corpus and case: a field, the reason, and "right" where
# that is known. A field with such a mark may be as recorded or as is right.
KNOWN_WRONG: dict[tuple[str, str], dict[str, Any]] = {}


@dataclass(frozen=True)
class Recorded:
    """A case, what was answered, and of which fields that is known to be wrong."""

    case: str
    answer: Any
    known_wrong: dict[str, Any]


def path_of(name: str) -> Path:
    return HERE / f"{name}.jsonl.xz"


def kept(name: str) -> list[Recorded]:
    """The corpus as it was recorded."""
    lines = lzma.decompress(path_of(name).read_bytes()).splitlines()
    return [Recorded(**{"known_wrong": {}, **json.loads(line)}) for line in lines]


def asked(name: str, first: int | None = None) -> list[tuple[str, Any]]:
    """The cases, all or the first so many, and what is answered now, as JSON holds it."""
    cases = islice(CORPORA[name](), first)
    return [(case, json.loads(json.dumps(answer))) for case, answer in cases]


def record(name: str) -> int:
    """Write the corpus anew; how many cases it has."""
    entries: list[dict[str, Any]] = []
    for case, answer in asked(name):
        entries.append({"case": case, "answer": answer})
        if (name, case) in KNOWN_WRONG:
            entries[-1]["known_wrong"] = KNOWN_WRONG[name, case]
    if len({entry["case"] for entry in entries}) < len(entries):
        raise RuntimeError(f"{name}: two cases of one name")
    text = "".join(json.dumps(x, sort_keys=True, separators=(",", ":")) + "\n" for x in entries)
    path_of(name).write_bytes(lzma.compress(text.encode(), preset=9))
    return len(entries)


def moved(
    name: str, old: Iterable[Recorded], new: Iterable[tuple[str, Any]]
) -> Iterator[comparing.Move]:
    """What differs by more than `comparing` allows, case by case, mended fields too."""
    before, now = {x.case: x for x in old}, dict(new)
    for case in [*before, *(case for case in now if case not in before)]:
        if case not in now or case not in before:
            gone = case not in now
            yield comparing.Move(case, "", *(("a case", None) if gone else (None, "a case")))
            continue
        was = before[case]
        yield from comparing.moves(name, case, was.answer, now[case], was.known_wrong)


def summary(name: str, found: Iterable[comparing.Move], cases: int) -> Iterator[str]:
    """A line a field: in how many cases it moved, and the first of them."""
    fields: dict[tuple[str, bool], list[comparing.Move]] = defaultdict(list)
    for move in found:
        fields[move.field, move.mended].append(move)
    for (field, mended), these in fields.items():
        number, first = len({move.case for move in these}), these[0]
        verb = "moved, known to be wrong before," if mended else "moved"
        yield (
            f"{name}: {field or 'whole cases'} {verb} in {number} of {cases}; first in "
            f"'{first.case}', {first.where}: {first.old!r} -> {first.new!r}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CORPORA))
    for flag in ("diff", "tolerances"):
        parser.add_argument(f"--{flag}", action="store_true")
    given = parser.parse_args()
    unknown = set(given.names) - set(CORPORA)
    if unknown:
        parser.error(f"no corpus {', '.join(sorted(unknown))}: there is {', '.join(CORPORA)}")
    any_moved = False
    for name in given.names or CORPORA:
        if given.tolerances:
            print("\n".join(comparing.described(name)))
            continue
        if given.diff:
            new = asked(name)
            lines = list(summary(name, moved(name, kept(name), new), len(new)))
            any_moved |= bool(lines)
            print("\n".join(lines) or f"{name}: nothing moved in {len(new)} cases", flush=True)
        else:
            print(
                f"{name}: {record(name)} cases, {path_of(name).stat().st_size:,} bytes", flush=True
            )
    return int(any_moved)


if __name__ == "__main__":
    sys.exit(main())
