"""`oversmoothing prove`: run the ledger of claims, and fail if one is not what it is on record for.

Claims run in worker processes, two at a time on two cores; each query of a solver runs in a process
of its own that is stopped at its limit.
"""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from oversmoothing.theory.proofs.claim import Claim, Effort, Kind, Status
from oversmoothing.theory.proofs.ledger import Entry, Ledger, claims
from oversmoothing.theory.proofs.report import (
    details,
    table,
    to_json_object,
    totals,
    without_second_opinion,
)
from oversmoothing.theory.proofs.running import run_chunks, run_claims
from oversmoothing.theory.proofs.thorough import Coverage, pending
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import output_folder, to_json, write_atomically
from oversmoothing.theory.support.provenance import provenance

_EXAMPLES = 200
_THOROUGH_EXAMPLES = 100_000


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `prove`."""
    add = parser.add_argument
    add(
        "--claim",
        action="append",
        metavar="NAME",
        help="this claim, or all parts of T2 (repeatable)",
    )
    add(
        "--kind",
        action="append",
        choices=[str(kind) for kind in Kind],
        help="this kind of evidence",
    )
    add("--list", action="store_true", help="name the claims and stop")
    add("--json", action="store_true", help="print a JSON list instead of the table")
    add("--html", metavar="FILE", help="write the ledger as a page too")
    add(
        "--examples",
        type=int,
        default=_EXAMPLES,
        help="for each search (default %(default)s); thorough: for each claim",
    )
    add("--seed", type=int, default=0, help="of the searches (default %(default)s)")
    add("--limit", type=float, default=60.0, metavar="SECONDS", help="for one query of one solver")
    add("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="worker processes")
    add(
        "--thorough",
        action="store_true",
        help=f"{_THOROUGH_EXAMPLES} examples for each claim, in chunks, resumed where they stopped",
    )
    add("--minutes", type=float, metavar="M", help="thorough: stop after the chunk in work then")
    add("--out", default="results", metavar="DIR", help="folder of thorough.json")


def run(arguments: Namespace) -> int:
    """Run `prove`: 0, or 1 where a claim is not what it is on record for."""
    chosen = whole_ledger().select(arguments.claim or [])
    if arguments.list:
        for claim in chosen:
            print(f"{claim.name:28s} {claim.on_record!s:17s} {claim.statement}")
        return 0
    if arguments.examples < 1 or arguments.jobs < 1 or arguments.limit <= 0:
        raise InputError("--examples, --jobs and --limit must be positive")
    if arguments.thorough:
        return _thorough(arguments, chosen)
    effort = Effort(examples=arguments.examples, seed=arguments.seed, solver_limit=arguments.limit)
    kinds = None if arguments.kind is None else frozenset(Kind(kind) for kind in arguments.kind)
    entries = []
    with tqdm(total=len(chosen), unit="claim", file=sys.stderr, disable=None) as bar:
        for entry in run_claims(chosen, whole_ledger, effort, kinds, arguments.jobs):
            entries.append(entry)
            bar.set_postfix_str(entry.claim.name)
            bar.update()
    order = {claim.name: k for k, claim in enumerate(chosen)}
    entries.sort(key=lambda entry: order[entry.claim.name])
    if arguments.html is not None:
        from oversmoothing.theory.proofs.page import page

        write_atomically(arguments.html, page(entries))
    if arguments.json:
        print(to_json(to_json_object(entries)), end="")
    else:
        _print(entries, kinds is None and arguments.claim is None)
        if arguments.html is not None:
            print(f"wrote {arguments.html}")
    failing = any(f.outcome.holds is False for entry in entries for f in entry.findings)
    # With some kinds of evidence only, a status cannot be read off; a failure still counts.
    wrong = [] if kinds is not None else [entry for entry in entries if not entry.as_recorded]
    for entry in wrong:
        print(
            f"{entry.claim.name} is {entry.status}, on record as {entry.claim.on_record}",
            file=sys.stderr,
        )
    return 1 if wrong or failing else 0


def whole_ledger() -> Ledger:
    """Every claim, with the evidence that simulations add; workers make it anew."""
    from oversmoothing.simulations.against_theory.simulated_evidence import SIMULATED

    return Ledger(claims(), extra=SIMULATED)


def _print(entries: Sequence[Entry], whole: bool) -> None:
    print(table(entries))
    # Of the whole ledger, what a reader must see in full: counterexamples, and what is not as it
    # should be.
    for entry in entries:
        if not whole or entry.status is Status.REFUTED or not entry.as_recorded:
            print(f"\n{details(entry)}")
    print()
    print(totals(entries))
    for line in without_second_opinion(entries):
        print(f"no answer from cvc5: {line}")


def _thorough(arguments: Namespace, chosen: Sequence[Claim]) -> int:
    folder = output_folder(arguments.out)
    coverage = Coverage(Path(folder) / "thorough.json")
    examples = max(arguments.examples, _THOROUGH_EXAMPLES)
    chunks = pending(chosen, examples, coverage)
    stop = None if arguments.minutes is None else time.monotonic() + 60 * arguments.minutes
    print(f"{len(chunks)} chunks to do, {len(coverage.chunks)} done before", file=sys.stderr)
    with tqdm(total=len(chunks), unit="chunk", file=sys.stderr, disable=None) as bar:
        for chunk in run_chunks(chunks, whole_ledger, coverage, arguments.jobs, stop):
            bar.set_postfix_str(chunk.claim)
            bar.update()
    rows = coverage.totals()
    if arguments.json:
        print(to_json({"searches": rows, **provenance()}), end="")
    else:
        for row in rows:
            print(
                f"{row['claim']:28s} {row['examples']:>9d} examples {row['seconds']:>9.1f} s "
                f"{len(row['violations'])} violations  {row['search']}"
            )
        total = sum(row["examples"] for row in rows)
        print(f"{total} examples in {sum(row['seconds'] for row in rows):.0f} s of work")
    violations = [v for row in rows for v in row["violations"]]
    for violation in violations:
        print(f"violated: {violation}", file=sys.stderr)
    return 1 if violations else 0
