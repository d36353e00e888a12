"""`oversmoothing prove`: run the ledger of claims, or those of a user's file.

It fails if one of the ledger is not what it is on record for, or one of the user's is refuted. The
ledger's claims run in worker processes, two at a time on two cores, a user's in this one; each
query of a solver runs in a process of its own that is stopped at its limit.
"""

import os
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tqdm import tqdm
from typer import Argument, Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.proofs.claim import Claim, Kind
from oversmoothing.theory.support import sizes
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import write_atomically

if TYPE_CHECKING:
    from oversmoothing.theory.proofs.ledger import Entry, Ledger
    from oversmoothing.theory.proofs.run import MakeLedger

_THOROUGH_EXAMPLES = 100_000
_LONGEST = 1_000_000  # seconds; a process waits for no longer ones
_JOBS = min(2, os.cpu_count() or 1)


def prove(
    what: Annotated[
        list[str] | None,
        Argument(
            metavar="NAME|FILE.py",
            help="Claims of the ledger, T4c or all parts of T2; or a file of your own claims, "
            "which is run as code: run none that you would not run with python.",
        ),
    ] = None,
    claim: Annotated[
        list[str] | None, Option(metavar="NAME", help="As NAME; of FILE.py, one of its claims.")
    ] = None,
    kind: Annotated[list[Kind] | None, Option(help="This kind of evidence (several).")] = None,
    names: Annotated[bool, Option("--list", help="Name the claims and stop.")] = False,
    as_json: opt.Json = False,
    report: opt.ReportFile = None,
    examples: Annotated[
        int,
        Option(
            metavar="N",
            min=1,
            max=sizes.EXAMPLES,
            help="For each search; thorough: for each claim.",
        ),
    ] = 200,
    seed: opt.Seed = 0,
    init: Annotated[
        Path | None,
        Option(metavar="FILE.py", help="Write an example of a file of your own claims and stop."),
    ] = None,
    limit: Annotated[float, Option(metavar="SECONDS", help="For one query of one solver.")] = 60.0,
    jobs: Annotated[int, Option(metavar="N", min=1, help="Worker processes.")] = _JOBS,
    thorough: Annotated[
        bool,
        Option(
            "--thorough",
            help=f"{_THOROUGH_EXAMPLES} examples for each claim, in chunks, resumed where they "
            "stopped.",
        ),
    ] = False,
    minutes: Annotated[
        float | None, Option(metavar="M", help="Thorough: stop after the chunk in work then.")
    ] = None,
    out: opt.Out = opt.RESULTS,
) -> int:
    """Run the ledger of claims, or put claims of your own to the test.

    FILE.py states claims (--init writes an example, with all hypotheses and strategies by name):
    a search attacks each law on drawn instances and shrinks what violates it; queries, proofs and
    theorems of Coq prove what they cover. What only a search supports is undecided.

    Of the ledger, claims on which those chosen rest are run with them. Exit status 1: a claim is
    not what it is on record for, but for want of Coq; of FILE.py, one is refuted, or a piece of its
    evidence fails or comes to nothing. --report writes the claims as a page; a thorough search
    keeps its state in thorough.json (thorough-FILE.json) of the folder of results.
    """
    from oversmoothing.theory.proofs.claim import Effort
    from oversmoothing.theory.proofs.ledger import in_want_of_coq, settled
    from oversmoothing.theory.proofs.report import to_json_object, whole_text
    from oversmoothing.theory.proofs.run import run_claims
    from oversmoothing.theory.support.files import to_json, write_atomically

    words = [*(what or []), *(claim or [])]
    if init is not None:
        if words:
            raise InputError("--init writes an example and runs nothing: leave the rest out")
        return _write_example(init)
    own = _own_file(words)
    make = _ledger if own is None else partial(_ledger_with, own)
    ledger = make()
    chosen = ledger.select([word for word in words if own is None or Path(word) != own])
    if names:
        opt.only_named(report, as_json)
        for each in chosen:
            print(f"{each.name:28s} {each.on_record or ''!s:31s} {each.statement}")
        return 0
    if not 0 < limit <= _LONGEST:
        raise InputError(f"--limit is {limit:g}: it must be positive, and at most {_LONGEST:,}")
    if thorough:
        if report is not None:
            raise InputError("--thorough writes thorough.json and no page: leave --report out")
        much = max(examples, _THOROUGH_EXAMPLES)
        return _thorough(chosen, make, own, much, jobs, minutes, out, as_json)
    effort = Effort(examples=examples, seed=seed, solver_limit=limit)
    kinds = frozenset(kind) if kind else None
    asked = {each.name for each in chosen}
    if kinds is None:
        chosen = ledger.cited(chosen)
    entries = []
    with tqdm(total=len(chosen), unit="claim", file=sys.stderr, disable=None) as bar, _said_of(own):
        for entry in run_claims(chosen, make, effort, kinds, jobs if own is None else 1):
            entries.append(entry)
            bar.set_postfix_str(entry.claim.name)
            bar.update()
    order = {name: k for k, name in enumerate(ledger)}
    entries = sorted(settled(entries), key=lambda entry: order[entry.claim.name])
    if report is not None:
        from oversmoothing.simulations.against_theory.ledger_page import page

        write_atomically(report, page(entries))
    if as_json:
        print(to_json(to_json_object(entries)), end="")
    else:
        shown = [entry for entry in entries if entry.claim.name in asked or not entry.as_recorded]
        print(whole_text(shown, in_full=bool(kind or words)))
        if report is not None:
            print(f"wrote {report}")
    if own is not None:
        return int(any(_stands_not(e, kinds is None) for e in entries if e.claim.name in asked))
    failing = any(f.outcome.holds is False for entry in entries for f in entry.findings)
    # With some kinds of evidence only, a status cannot be read off; a failure still counts.
    wanting = in_want_of_coq(entries)
    wrong = [entry for entry in entries if kinds is None and not entry.as_recorded]
    if wanting:
        print(
            f"Coq, or a library of it, is not installed; what rests on it: {', '.join(wanting)}",
            file=sys.stderr,
        )
        wrong = [entry for entry in wrong if entry.claim.name not in wanting]
    for entry in wrong:
        print(
            f"{entry.claim.name} is {entry.status}, on record as {entry.claim.on_record}",
            file=sys.stderr,
        )
    return 1 if wrong or failing else 0


def _ledger() -> "Ledger":
    from oversmoothing.simulations.against_theory.simulated_evidence import whole_ledger

    return whole_ledger()


def _ledger_with(path: Path) -> "Ledger":
    from oversmoothing.theory.proofs.own import ledger_with

    return ledger_with(path)


def _own_file(words: Sequence[str]) -> Path | None:
    """The file of a user's claims among what is asked for, told by its ending."""
    files = [Path(word) for word in words if word.endswith(".py")]
    if len(files) > 1:
        raise InputError(f"one file at a time: '{files[0]}' or '{files[1]}'")
    return files[0] if files else None


def _stands_not(entry: "Entry", whole: bool) -> bool:
    """Whether a claim is refuted, or its evidence fails or comes to nothing.

    Where all of it ran and a status is on record: whether it has another.
    """
    if whole and entry.claim.on_record is not None:
        return not entry.as_recorded
    outcomes = [finding.outcome for finding in entry.findings]
    return entry.status.refuted or any(not found.holds and not found.absent for found in outcomes)


def _said_of(own: Path | None) -> AbstractContextManager[None]:
    """What evidence of a user's file raises is said with its line."""
    if own is None:
        return nullcontext()
    from oversmoothing.theory.proofs.own import said_of

    return said_of(own)


def _write_example(path: Path) -> int:
    """A file of claims that runs as it is, with every name that a claim may use."""
    from oversmoothing.theory.proofs.own import described

    if path.suffix != ".py":
        raise InputError(f"'{path}' would be no Python file: give it a name like {path.stem}.py")
    text = (
        resources.files("oversmoothing.commands").joinpath("claim_template.py").read_text("utf-8")
    )
    listed = "\n".join(described())
    if os.path.lexists(path):
        raise InputError(f"'{path}' is there already and stays: choose another name")
    write_atomically(path, f"{text.replace('FILE.py', path.name)}\n{listed}\n")
    print(f"wrote {path}, one false claim and one true; next: oversmoothing prove {path}")
    return 0


def _thorough(
    chosen: Sequence[Claim],
    make: "MakeLedger",
    own: Path | None,
    examples: int,
    jobs: int,
    minutes: float | None,
    out: Path,
    as_json: bool,
) -> int:
    from oversmoothing.simulations.provenance import provenance
    from oversmoothing.theory.proofs.report import searches_text
    from oversmoothing.theory.proofs.run import Coverage, pending, run_chunks
    from oversmoothing.theory.support.files import output_folder, to_json

    record = "thorough.json" if own is None else f"thorough-{own.stem}.json"
    coverage = Coverage(output_folder(out) / record, own)
    chunks = pending(chosen, examples, coverage)
    stop = None if minutes is None else time.monotonic() + 60 * minutes
    print(f"{len(chunks)} chunks to do, {len(coverage.chunks)} done before", file=sys.stderr)
    with tqdm(total=len(chunks), unit="chunk", file=sys.stderr, disable=None) as bar:
        for chunk in run_chunks(chunks, make, coverage, jobs, stop):
            bar.set_postfix_str(chunk.claim)
            bar.update()
    rows = coverage.totals()
    print(to_json({"searches": rows, **provenance()}) if as_json else searches_text(rows), end="")
    violations = [v for row in rows for v in row["violations"]]
    for violation in violations:
        print(f"violated: {violation}", file=sys.stderr)
    return 1 if violations else 0
