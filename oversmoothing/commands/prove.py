"""`oversmoothing prove`: run the ledger of claims, and fail if one is not what it is on record for.

Claims run in worker processes, two at a time on two cores; each query of a solver runs in a process
of its own that is stopped at its limit.
"""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from tqdm import tqdm
from typer import Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.proofs.claim import Claim, Kind
from oversmoothing.theory.support.errors import InputError

_THOROUGH_EXAMPLES = 100_000
_JOBS = min(2, os.cpu_count() or 1)


def prove(
    claim: Annotated[
        list[str] | None, Option(metavar="NAME", help="This claim, or all parts of T2 (several).")
    ] = None,
    kind: Annotated[list[Kind] | None, Option(help="This kind of evidence (several).")] = None,
    names: Annotated[bool, Option("--list", help="Name the claims and stop.")] = False,
    as_json: opt.Json = False,
    report: opt.ReportFile = None,
    examples: Annotated[
        int, Option(metavar="N", min=1, help="For each search; thorough: for each claim.")
    ] = 200,
    seed: opt.Seed = 0,
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
    """Run the ledger of claims: proofs, counterexamples, searches, simulations.

    Claims on which those chosen rest are run with them. Exit status 1: a claim is not what it is
    on record for, but for want of Coq. --report writes the ledger as a page;
    a thorough search keeps its state in thorough.json of the folder of results.
    """
    from oversmoothing.simulations.against_theory.simulated_evidence import whole_ledger
    from oversmoothing.theory.proofs.claim import Effort
    from oversmoothing.theory.proofs.ledger import in_want_of_coq, settled
    from oversmoothing.theory.proofs.report import to_json_object, whole_text
    from oversmoothing.theory.proofs.running import run_claims
    from oversmoothing.theory.support.files import to_json, write_atomically

    ledger = whole_ledger()
    chosen = ledger.select(claim or [])
    if names:
        opt.only_named(report, as_json)
        for each in chosen:
            print(f"{each.name:28s} {each.on_record!s:31s} {each.statement}")
        return 0
    if limit <= 0:
        raise InputError(f"--limit is {limit}: it must be positive")
    if thorough:
        if report is not None:
            raise InputError("--thorough writes thorough.json and no page: leave --report out")
        return _thorough(chosen, max(examples, _THOROUGH_EXAMPLES), jobs, minutes, out, as_json)
    effort = Effort(examples=examples, seed=seed, solver_limit=limit)
    kinds = frozenset(kind) if kind else None
    asked = {each.name for each in chosen}
    if kinds is None:
        chosen = ledger.cited(chosen)
    entries = []
    with tqdm(total=len(chosen), unit="claim", file=sys.stderr, disable=None) as bar:
        for entry in run_claims(chosen, whole_ledger, effort, kinds, jobs):
            entries.append(entry)
            bar.set_postfix_str(entry.claim.name)
            bar.update()
    order = {name: k for k, name in enumerate(ledger)}
    entries = sorted(settled(entries), key=lambda entry: order[entry.claim.name])
    if report is not None:
        from oversmoothing.theory.proofs.page import page

        write_atomically(report, page(entries))
    if as_json:
        print(to_json(to_json_object(entries)), end="")
    else:
        shown = [entry for entry in entries if entry.claim.name in asked or not entry.as_recorded]
        print(whole_text(shown, in_full=bool(kind or claim)))
        if report is not None:
            print(f"wrote {report}")
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


def _thorough(
    chosen: Sequence[Claim],
    examples: int,
    jobs: int,
    minutes: float | None,
    out: Path,
    as_json: bool,
) -> int:
    from oversmoothing.simulations.against_theory.simulated_evidence import whole_ledger
    from oversmoothing.theory.proofs.report import searches_text
    from oversmoothing.theory.proofs.running import run_chunks
    from oversmoothing.theory.proofs.thorough import Coverage, pending
    from oversmoothing.theory.support.files import output_folder, to_json
    from oversmoothing.theory.support.provenance import provenance

    coverage = Coverage(output_folder(out) / "thorough.json")
    chunks = pending(chosen, examples, coverage)
    stop = None if minutes is None else time.monotonic() + 60 * minutes
    print(f"{len(chunks)} chunks to do, {len(coverage.chunks)} done before", file=sys.stderr)
    with tqdm(total=len(chunks), unit="chunk", file=sys.stderr, disable=None) as bar:
        for chunk in run_chunks(chunks, whole_ledger, coverage, jobs, stop):
            bar.set_postfix_str(chunk.claim)
            bar.update()
    rows = coverage.totals()
    print(to_json({"searches": rows, **provenance()}) if as_json else searches_text(rows), end="")
    violations = [v for row in rows for v in row["violations"]]
    for violation in violations:
        print(f"violated: {violation}", file=sys.stderr)
    return 1 if violations else 0
