"""`oversmoothing prove`: run the ledger of claims, or those of a user's file.

It fails if one of the ledger is not what it is on record for, or one of the user's is refuted. The
ledger's claims run in worker processes, two at a time on two cores, a user's in this one; each
query of a solver runs in a process of its own that is stopped at its limit.
"""

import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from importlib import resources
from pathlib import Path
from tempfile import gettempdir
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated

from tqdm import tqdm
from typer import Argument, Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.proofs.claim import Claim, Effort, Finding, Kind
from oversmoothing.theory.support import sizes
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import output_folder, to_json, write_atomically

if TYPE_CHECKING:
    from oversmoothing.theory.proofs.ledger import Entry, Ledger
    from oversmoothing.theory.proofs.run import MakeLedger

_EXAMPLES, _THOROUGH_EXAMPLES = 200, 100_000
_LONGEST = 1_000_000  # seconds; a process waits for no longer ones


def prove(
    what: Annotated[list[str] | None, Argument(metavar="NAME",
        help="claims of the project, T4c or all parts of T2; or FILE.py with your own claims, "
        "which is run as code (run none that you would not run with python)")] = None,
    kind: Annotated[list[str] | None, opt.one_of("kind", list(Kind),
        "kinds of evidence (default all)")] = None,
    names: opt.Listed = False,
    as_json: opt.Json = False,
    examples: Annotated[int | None, opt.whole("examples for each search (default "
        f"{_EXAMPLES}); with --thorough for each claim (default {_THOROUGH_EXAMPLES})",
        most=sizes.EXAMPLES)] = None,
    seed: opt.Seed = 0,
    init: Annotated[Path | None, Option(metavar="FILE.py",
        help="write an example of a file of your own claims, and stop")] = None,
    limit: Annotated[float, opt.positive("seconds for one query of one solver", "SECONDS")] = 60.0,
    jobs: Annotated[int, opt.whole("number of worker processes", most=64)] = min(
        2, os.cpu_count() or 1),
    thorough: Annotated[bool, Option("--thorough",
        help="search many examples for each claim, in chunks; resumes")] = False,
    minutes: Annotated[float | None, opt.real("minutes after which a thorough search stops",
        "M")] = None,
    out: opt.OutFile = None,
    report: opt.Report = None,
) -> int:  # fmt: skip
    """Check claims of the project, or claims of your own.

    FILE.py states your claims; --init writes an example. A search attacks each law on random
    instances and shrinks what violates it. Queries, written proofs and theorems of Coq prove what
    they cover. A claim that only a search supports is undecided.

    Claims that the chosen ones rest on run with them. Exit status 1 if a claim's status differs
    from the recorded one (a missing Coq is allowed), or if a claim of FILE.py is refuted or lacks
    evidence. --out writes the claims as a page, claims.html in a folder. A thorough search keeps
    its state there, in thorough.json.
    """
    from oversmoothing.simulations.against_theory.simulated_evidence import whole_ledger
    from oversmoothing.theory.proofs.own import ledger_with
    from oversmoothing.theory.proofs.report import to_json_object, whole_text

    # Else Hypothesis keeps what it reads of sources in the folder where one stands.
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", f"{gettempdir()}/oversmoothing-search")
    words = what or []
    if init is not None:
        opt.alone("--init")
        return _write_example(init)
    # The file of a user's claims among what is asked for, told by its ending.
    files = [Path(word) for word in words if word.endswith(".py")]
    if len(files) > 1:
        raise InputError(f"one file at a time: '{files[0]}' or '{files[1]}'")
    own = files[0] if files else None
    make: MakeLedger = whole_ledger if own is None else partial(ledger_with, own)
    ledger = make()
    chosen = ledger.select([word for word in words if own is None or Path(word) != own])
    opt.needs(thorough, "--thorough", "--minutes")
    if names:
        opt.alone("--list", "NAME", "--json", "--out", "--report")
        width = max(len(each.name) for each in chosen)
        wide = max(len(str(each.on_record or "")) for each in chosen)
        # A line for each; JSON has the whole statements.
        room = max(30, opt.columns() - width - wide - 3)
        rows = {}
        for each in chosen:
            said = each.statement if as_json else shorten(each.statement, room, placeholder=" ...")
            rows[each.name] = f"{each.on_record or ''!s:{wide}s}  {said}"
        opt.listed(rows, as_json, out or report, width=width)
        return 0
    if limit > _LONGEST:
        raise InputError(f"--limit must be at most {_LONGEST:,} seconds")
    opt.needs(own is None, "claims of the ledger", "--jobs")
    if thorough:
        opt.alone("--thorough", "NAME", "--examples", "--jobs", "--minutes", "--json", "--out")
        if report is not None or (out is not None and out.suffix):
            raise InputError("--thorough writes thorough.json and no page: give a folder to --out")
        much = _THOROUGH_EXAMPLES if examples is None else examples
        return _thorough(chosen, make, own, much, jobs, minutes, out or opt.RESULTS, as_json)
    page = opt.file_in(out, report, "claims.html")
    kinds = frozenset(map(Kind, kind)) if kind else None
    asks = kinds is None or Kind.REALS in kinds
    opt.needs(asks, f"--kind '{Kind.REALS}'", "--limit")
    asked = {each.name for each in chosen}
    effort = Effort(examples=examples or _EXAMPLES, seed=seed, solver_limit=limit)
    entries = _run(ledger, chosen, make, own, kinds, effort, jobs)
    if page is not None:
        from oversmoothing.simulations.against_theory import ledger_page

        write_atomically(page, ledger_page.page(entries))
    if as_json:
        print(to_json(to_json_object(entries)), end="")
    else:
        shown = [entry for entry in entries if entry.claim.name in asked or not entry.as_recorded]
        ran = [entry.claim.name for entry in entries]
        print(whole_text(shown, bool(kind or words), ran, min(100, opt.columns())))
        if page is not None:
            print(f"wrote {page}")
    if own is not None:
        return int(any(_stands_not(e, kinds is None) for e in entries if e.claim.name in asked))
    return _status(entries, whole=kinds is None)


def _run(
    ledger: "Ledger", chosen: list[Claim], make: "MakeLedger", own: Path | None,
    kinds: frozenset[Kind] | None, effort: Effort, jobs: int,
) -> "list[Entry]":  # fmt: skip
    """The claims chosen, and those on which they rest, in the order of the ledger."""
    from oversmoothing.theory.proofs.coq import Formal, coq_version, kept
    from oversmoothing.theory.proofs.ledger import settled
    from oversmoothing.theory.proofs.own import said_of
    from oversmoothing.theory.proofs.report import of_finding
    from oversmoothing.theory.proofs.run import run_claims

    asked = chosen
    if kinds is None:
        chosen = ledger.cited(chosen)
    formal = [e for c in chosen for e in c.evidence if isinstance(e, Formal)]
    if (kinds is not None and Kind.FORMAL not in kinds) or coq_version() is None:
        formal = []
    known = [each for each in formal if kept(each.theorem, each.sources)]
    before, own_alone = len(known), [e for claim in asked for e in claim.evidence]
    waits = before < len(formal)
    if known:
        cited = "" if all(e in own_alone for e in known) else ", those of cited claims among them"
        print(
            f"Coq checked {before} of {len(formal)} theorems in an earlier run{cited}; its answers "
            "were kept",
            file=sys.stderr,
        )
    if waits:
        print(
            f"theorems for Coq to check: {len(formal) - before}; this first time it may take some "
            "minutes (--kind leaves them out, 'prove --list' shows in seconds what is on record). "
            "The whole answer follows; its first parts are:",
            file=sys.stderr,
        )

    def seen(finding: Finding) -> None:
        if waits and finding.evidence.kind is not Kind.FORMAL:
            tqdm.write(of_finding(finding, 1_000)[0], file=sys.stderr)

    entries = []
    # What evidence of a user's file raises is said with its line.
    named = nullcontext() if own is None else said_of(own)
    with tqdm(total=len(chosen), unit="claim", file=sys.stderr, disable=None) as bar, named:
        for entry in run_claims(chosen, make, effort, kinds, jobs if own is None else 1, seen):
            entries.append(entry)
            bar.set_postfix_str(entry.claim.name)
            bar.update()
    order = {name: k for k, name in enumerate(ledger)}
    return sorted(settled(entries), key=lambda entry: order[entry.claim.name])


def _status(entries: "list[Entry]", *, whole: bool) -> int:
    """The exit status of claims of the ledger; not whole: some kinds of evidence alone ran.

    A status cannot be read off these, but a failure still counts.
    """
    from oversmoothing.theory.proofs.ledger import in_want_of_coq

    failing = any(f.outcome.holds is False for entry in entries for f in entry.findings)
    wanting = in_want_of_coq(entries)
    if wanting:
        print(
            f"Coq, or a library of it, is not installed; what rests on it: {', '.join(wanting)}",
            file=sys.stderr,
        )
    wrong = [e for e in entries if whole and not e.as_recorded and e.claim.name not in wanting]
    for entry in wrong:
        print(
            f"{entry.claim.name} is {entry.status}; its recorded status is {entry.claim.on_record}",
            file=sys.stderr,
        )
    return 1 if wrong or failing else 0


def _stands_not(entry: "Entry", whole: bool) -> bool:
    """Whether a claim is refuted, or its evidence fails or comes to nothing.

    Where all of it ran and a status is on record: whether it has another.
    """
    if whole and entry.claim.on_record is not None:
        return not entry.as_recorded
    outcomes = [finding.outcome for finding in entry.findings]
    return entry.status.refuted or any(not each.holds and not each.absent for each in outcomes)


def _write_example(path: Path) -> int:
    """A file of claims that runs as it is, with every name that a claim may use."""
    from oversmoothing.theory.proofs.own import described

    if path.suffix != ".py":
        raise InputError(f"'{path}' would be no Python file: give it a name like {path.stem}.py")
    if os.path.lexists(path):
        raise InputError(f"'{path}' is there already and stays: choose another name")
    template = resources.files("oversmoothing.commands").joinpath("claim_template.py")
    text = template.read_text("utf-8").replace("FILE.py", path.name)
    write_atomically(path, "\n".join([text, *described(), ""]))
    print(f"wrote {path}, one false claim and one true; next: oversmoothing prove {path}")
    return 0


def _thorough(
    chosen: Sequence[Claim], make: "MakeLedger", own: Path | None, examples: int, jobs: int,
    minutes: float | None, out: Path, as_json: bool,
) -> int:  # fmt: skip
    from oversmoothing.simulations.running import provenance
    from oversmoothing.theory.proofs.report import searches_text
    from oversmoothing.theory.proofs.run import Coverage, pending, run_chunks

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
