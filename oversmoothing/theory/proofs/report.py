"""The ledger as a table and as JSON: what is claimed, how it stands, how we know."""

import textwrap
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from oversmoothing.theory.proofs.claim import REFERENCE, Finding, Kind, Scope, Status, tally
from oversmoothing.theory.proofs.ledger import Entry, files, recorded
from oversmoothing.theory.support.files import json_value

_HEADINGS = ("claim", "status", "evidence", "seconds", "statement")
_CODES = {
    Kind.FORMAL: "F checked by Coq",
    Kind.WRITTEN: "W written proof",
    Kind.SYMBOLIC: "Y symbolic",
    Kind.REALS: "R for all reals (z3, cvc5)",
    Kind.CERTIFIED: "C certified instances",
    Kind.SEARCHED: "S searched",
    Kind.SIMULATED: "M simulated",
    Kind.COUNTEREXAMPLE: "X counterexample",
    Kind.SHARP: "P sharp: false when changed, at a point",
}


def table(entries: Sequence[Entry], width: int = 118) -> str:
    """One line a claim, aligned; the statement is cut to the width."""
    rows = [_row(entry) for entry in entries]
    sizes = [max(len(row[k]) for row in [_HEADINGS, *rows]) for k in range(len(_HEADINGS) - 1)]
    room = max(24, width - sum(sizes) - 2 * len(sizes))
    lines = []
    for row in [_HEADINGS, *rows]:
        cells = [cell.ljust(size) for cell, size in zip(row, sizes, strict=False)]
        lines.append("  ".join([*cells, textwrap.shorten(row[-1], room, placeholder=" ...")]))
    lines.insert(1, "-" * min(width, max(len(line) for line in lines)))
    used = {finding.evidence.kind for entry in entries for finding in entry.findings}
    legend = ", ".join(words for kind, words in _CODES.items() if kind in used)
    return "\n".join([*lines, f"evidence: {legend}; numbers count pieces"] if used else lines)


def _row(entry: Entry) -> tuple[str, ...]:
    kinds = Counter(_CODES[finding.evidence.kind][0] for finding in entry.findings)
    evidence = " ".join(f"{code}{n}" if n > 1 else code for code, n in kinds.items())
    mark = "" if entry.as_recorded else f" (on record: {entry.claim.on_record})"
    return (
        entry.claim.name,
        f"{entry.standing.words}{mark}",
        evidence,
        f"{entry.seconds:.1f}",
        entry.claim.statement,
    )


_READ = (Kind.COUNTEREXAMPLE, Kind.WRITTEN)
_MEANT = {
    Status.MACHINE: " (for every clause Coq accepts a theorem, printed below)",
    Status.DECIDED: " (proved: z3 and cvc5 decide it for all reals)",
    Status.WRITTEN: " (proved in words)",
}


def details(entry: Entry, width: int = 100, ran: Collection[str] = ()) -> str:
    """A claim in full: statement, source, hypotheses, every piece of evidence, what is next.

    ran: the claims that ran beside it.
    """
    claim = entry.claim
    lines = [f"{claim.name}: {entry.standing.words}{_MEANT.get(entry.standing.status, '')}"]
    if entry.standing.status is Status.UNDECIDED and not entry.as_recorded:
        lines[0] = f"{claim.name}: undecided by what ran here (on record: {claim.on_record})"
    for k, (clause, status) in enumerate(
        zip(claim.clauses, entry.standing.clauses, strict=True), 1
    ):
        several = len(claim.clauses) > 1
        lines += _wrapped(f"({k}) {clause} [{status}]" if several else clause, width)
        if status is Status.UNDECIDED:
            lines += [line for attack in _attacks(entry, k) for line in _wrapped(attack, width, 4)]
    for reason in entry.standing.reasons:
        lines += _wrapped(f"because {reason}", width)
    for name in ("source", "wording", "setting"):
        if said := getattr(claim, name):
            lines += _wrapped(f"{name}: {said}", width)
    other = {name for name in REFERENCE.findall(claim.setting) if name not in (claim.name, *ran)}
    for name in sorted(other & files().keys()):
        lines += _wrapped(f"{name} is on record: {recorded(name)}; not run here", width, 4)
    for hypothesis in claim.hypotheses:
        lines += _wrapped(f"hypothesis: {hypothesis.words}", width)
    if claim.cites:
        lines += _wrapped(f"rests on: {', '.join(claim.cites)}", width)
    # What a person follows comes first.
    axioms: dict[str, None] = {}
    for finding in sorted(entry.findings, key=lambda each: each.evidence.kind not in _READ):
        lines += of_finding(finding, width)
        if finding.outcome.holds:
            axioms |= dict.fromkeys(finding.outcome.data.get("axioms", ()))
    if any(each.outcome.holds and "axioms" in each.outcome.data for each in entry.findings):
        named = ", ".join(axioms) or "none"
        lines += _wrapped(f"Coq's kernel accepts these theorems; axioms: {named}", width)
    if claim.repaired_by:
        lines += _wrapped(f"what holds instead: {claim.repaired_by}", width)
    if claim.further:
        lines += _wrapped(f"to go further: {claim.further}", width)
    return "\n".join(lines)


def of_finding(finding: Finding, width: int = 100) -> list[str]:
    """A piece of evidence and what became of it, in lines."""
    outcome, kind = finding.outcome, finding.evidence.kind
    stands = {Kind.COUNTEREXAMPLE: "verified", Kind.SEARCHED: "not violated"}.get(kind, "holds")
    word = {True: stands, False: "FAILS", None: "open"}[outcome.holds]
    steps = outcome.data.get("steps", ())
    if kind is Kind.WRITTEN and outcome.holds and not any(step["check"] for step in steps):
        word = "in words, no machine checks it"
    said = f"{'absent' if outcome.absent else word}{_for(finding.evidence.covers)}"
    head = f"[{kind}] {finding.evidence.title.removeprefix(f'{kind}: ')}: {said}"
    lines = _wrapped(f"{head} ({finding.seconds:.2f} s)", width)
    for key in ("query", "coq"):
        if key in outcome.data:
            lines += _wrapped(str(outcome.data[key]), width, 6)
    if not (outcome.holds and "axioms" in outcome.data):
        lines += _wrapped(outcome.detail, width, 6)
    for number, step in enumerate(steps, 1):
        # What its check covers, and the clauses that it is for.
        # Only a general check verifies its step.
        scope = {None: "words", Scope.GENERAL: "verified"}
        checked = scope.get(step["check"], f"illustrated: {step['check']}")
        covers = f"{checked}{_for(step['covers'])}"
        lines += _wrapped(f"{number}. {step['words']} [{covers}]", width, 6)
    if outcome.counterexample is not None:
        lines += _wrapped(f"counterexample: {outcome.counterexample}", width, 6)
    return lines


# What the words of details mean, each where it is used.
_KEY = {
    "[formal]": "a theorem as Coq prints it",
    "smooths h a": "|1 + h| > |1 + h a|; keeps h a: <; ties h a: =",
    "[sharp]": "true as it stands, and false when changed so, at the point given",
    "[searched]": "an attack on random instances; what it does not find proves nothing",
}


def _attacks(entry: Entry, k: int) -> list[str]:
    """Of the searches that attack clause k, what they did not find: it proves nothing.

    In the ledger one that names no clause need not attack any; a user's attacks all.
    """
    attacks = []
    every = tuple(range(1, len(entry.claim.clauses) + 1)) if entry.claim.on_record is None else ()
    for finding in entry.findings:
        against = getattr(finding.evidence, "against", None)
        if against is None or not finding.outcome.holds or k not in (against or every):
            continue
        data = finding.outcome.data
        others = data.get("filtered")
        filtered = f" ({others} more miss a hypothesis)" if others else ""
        examples = _counted(data.get("examples", 0), "instance")
        within = f" with {data['box']}" if data.get("box") else ""
        attacks.append(f"no counterexample in {examples}{filtered}{within}: a search, no proof")
    return attacks


def _counted(count: int, what: str) -> str:
    """ "1 claim", "2 claims", "2 queries"."""
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{count} {what if count == 1 else plural}"


def _wrapped(text: str, width: int, indent: int = 2) -> list[str]:
    space = " " * indent
    return textwrap.wrap(
        text, width, initial_indent=space, subsequent_indent=space + "  ", break_long_words=False
    )


def to_json_object(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """A list of {name, statement, status, evidence, seconds} and what else is known of each."""
    return [
        _fields(entry.claim, "name", "statement")
        | {
            "clauses": [
                {"words": words, "status": str(status)}
                for words, status in zip(entry.claim.clauses, entry.standing.clauses, strict=True)
            ]
        }
        | _fields(entry.claim, "latex", "source", "wording")
        | {"status": str(entry.status), "machine_checked": entry.standing.machine_checked}
        | {"because": list(entry.standing.reasons)}
        | _fields(entry.claim, "cites", "setting", "on_record")
        | {"hypotheses": [hypothesis.words for hypothesis in entry.claim.hypotheses]}
        | _fields(entry.claim, "repaired_by", "further")
        | {
            "evidence": [
                _fields(finding.evidence, "kind", "title", "covers")
                | _fields(finding.outcome, "absent", "holds", "detail", "counterexample")
                | {"data": finding.outcome.data, "seconds": round(finding.seconds, 3)}
                for finding in entry.findings
            ],
            "seconds": round(entry.seconds, 3),
        }
        for entry in entries
    ]


def _fields(part: Any, *names: str) -> dict[str, Any]:
    return {name: json_value(getattr(part, name)) for name in names}


def totals(entries: Sequence[Entry]) -> str:
    """Counts by status, and of the solvers' answers."""
    lines = [
        f"1 claim: {entries[0].status}"
        if len(entries) == 1
        else f"{len(entries)} claims: {tally(entry.status for entry in entries)}"
    ]
    findings = [finding for entry in entries for finding in entry.findings]
    queries = [f.outcome.data for f in findings if f.evidence.kind is Kind.REALS]
    if queries:
        answers = [(_answer(data, "z3"), _answer(data, "cvc5")) for data in queries]
        second = [by_cvc5 for by_z3, by_cvc5 in answers if by_z3 == "unsat"]
        mutated = sum(len(data.get("mutations", ())) for data in queries)
        lines.append(
            f"{_counted(len(queries), 'query')} for all reals: z3 unsat on {len(second)}, cvc5 "
            f"agrees on {second.count('unsat')}; {mutated} mutated ones sat"
        )
    formal = [f.outcome for f in findings if f.evidence.kind is Kind.FORMAL]
    if formal:
        checked, missing = sum(bool(o.holds) for o in formal), sum(o.absent for o in formal)
        by_coq = [e.standing.machine_checked for e in entries if e.status.refuted]
        of = f"; machine-checked refutations: {sum(by_coq)} of {len(by_coq)}" if by_coq else ""
        absent = f", {missing} not checked: Coq is missing" if missing else ""
        refused = f", {left} refused" if (left := len(formal) - checked - missing) else ""
        lines.append(f"{_counted(checked, 'theorem')} checked by Coq{absent}{refused}{of}")
    return "\n".join(lines)


def whole_text(
    entries: Sequence[Entry], in_full: bool, ran: Collection[str] = (), width: int = 100
) -> str:
    """The table, the claims that a reader must see in full (or all of them), and the totals.

    ran: the claims that ran, shown or not.

    Of the whole ledger those are the counterexamples and what is not as it should be. One claim in
    full needs no table.
    """
    shown = [e for e in entries if in_full or e.status.refuted or not e.as_recorded]
    blocks = [details(entry, width, ran) for entry in shown]
    key = [f"{word}: {said}" for word, said in _KEY.items() if any(word in b for b in blocks)]
    if len(entries) > 1 or not shown:
        blocks.insert(0, table(entries))
    unsure = (f"no answer from cvc5: {line}" for line in without_second_opinion(entries))
    return "\n\n".join([*blocks, "\n".join([*key, totals(entries), *unsure])])


def searches_text(rows: Sequence[dict[str, Any]]) -> str:
    """The searches of several runs: a line each, and their sum."""
    lines = [
        f"{row['claim']:28s} {row['examples']:>9d} examples {row['seconds']:>9.1f} s "
        f"{len(row['violations'])} violations  {row['search']}"
        for row in rows
    ]
    total = sum(row["examples"] for row in rows)
    seconds = sum(row["seconds"] for row in rows)
    return "\n".join([*lines, f"{total} examples in {seconds:.0f} s of work"]) + "\n"


def without_second_opinion(entries: Sequence[Entry]) -> list[str]:
    """The queries on which cvc5 gave no answer, with both times."""
    lines = []
    for entry in entries:
        for finding in entry.findings:
            data = finding.outcome.data
            if finding.evidence.kind is Kind.REALS and _answer(data, "cvc5") not in ("unsat", None):
                times = {name: data[name] for name in ("z3", "cvc5") if name in data}
                lines.append(f"{entry.claim.name}, {finding.evidence.title}: {times}")
    return lines


def _for(covers: Sequence[int]) -> str:
    return f", for {' '.join(f'({k})' for k in covers)}" if covers else ""


def _answer(data: dict[str, Any], solver: str) -> str | None:
    answer: str | None = data.get(solver, {}).get("result")
    return answer
