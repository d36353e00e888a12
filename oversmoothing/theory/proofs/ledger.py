"""The ledger: every claim by name, what running its evidence finds, and how it then stands.

    python -m oversmoothing.theory.proofs.ledger

(`make formal`) builds the Coq files of theory/formal and prints what each theorem rests on.

A claim stands in a chapter of theory/claims. Evidence that needs more than the theory (torch,
simulations) is given to `Ledger` by who runs it, under the claim's name. How a claim stands is
computed from what its evidence came to and how the claims it cites stand:

- A counterexample that holds refutes, and so does other evidence that fails with one: the clauses
  that it is for, or all where it names none; and with one of them the claim.
- Evidence that fails without one leaves the claim undecided, and so does a citation of what is not
  proved, and a hypothesis whose predicate does not know the instances that violate it; where
  nothing refutes it, evidence that decides nothing or is empty, too, and a clause that no evidence
  covers. Only a tool that is not installed is passed over, with what it alone would prove.
- A clause that Coq checks is machine-checked; otherwise all evidence that covers it proves it
  together, and it is as strong as the weakest of that. So is the claim, of its clauses.
"""

import re
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path

from oversmoothing.theory.proofs.chapter import claims_of
from oversmoothing.theory.proofs.claim import (
    STRENGTHS,
    Claim,
    Effort,
    Evidence,
    Finding,
    Kind,
    Status,
)
from oversmoothing.theory.proofs.coq import RECORD, as_record, check, coq_version, on_record
from oversmoothing.theory.proofs.items import names, source
from oversmoothing.theory.proofs.search import Searched
from oversmoothing.theory.support.errors import InputError, unknown
from oversmoothing.theory.support.files import write_atomically

_STRENGTH = {
    Kind.FORMAL: Status.MACHINE,
    Kind.REALS: Status.DECIDED,
    Kind.SYMBOLIC: Status.WRITTEN,
    Kind.WRITTEN: Status.WRITTEN,
    Kind.CERTIFIED: Status.CERTIFIED,
}


@dataclass(frozen=True)
class Standing:
    """The status of a claim, of each of its clauses, and why it is undecided, in sentences.

    machine_checked: Coq checks all of it, the refutation of a refuted one.
    """

    status: Status
    clauses: tuple[Status, ...]
    reasons: tuple[str, ...] = ()
    machine_checked: bool = False

    @property
    def words(self) -> str:
        """The status as a reader reads it."""
        by_coq = self.machine_checked and self.status.refuted
        return f"{self.status}{', machine-checked' * by_coq}"


def standing(
    claim: Claim, findings: Sequence[Finding], cited: Mapping[str, Status] | None = None
) -> Standing:
    """How the claim stands. cited: the status of each claim that it rests on."""
    refuting = [f for f in findings if _refutes(f)]
    others = [f for f in findings if f not in refuting]
    empty = (h for h in claim.hypotheses if not h.excludes)
    reasons = [f"a hypothesis excludes nothing: {h.words}" for h in empty]
    for name in claim.cites:
        status = (cited or {}).get(name)
        if status is None or not status.proved:
            how = "was not run" if status is None else f"is {status}"
            reasons.append(f"it rests on {name}, which {how}")
    reasons += _failures(others, False)
    every = range(1, len(claim.clauses) + 1)
    clauses = tuple(_clause(k, findings, claim) for k in every)
    machine = {k for f in findings if _checks(f) for k in f.evidence.covers} == {*every}
    if refuting:
        if reasons:
            return Standing(Status.UNDECIDED, clauses, tuple(reasons), machine)
        reading = getattr(refuting[0].evidence, "of", Status.REFUTED)
        named = [f.evidence.covers or getattr(f.evidence, "against", ()) for f in refuting]
        hit = {k for clauses_of in named for k in clauses_of or every}
        return Standing(
            reading, tuple(reading if k in hit else clauses[k - 1] for k in every), (), machine
        )
    reasons += _failures(others, None)
    for k, status in enumerate(clauses, 1):
        if status is Status.UNDECIDED:
            reasons.append(f"no evidence covers clause {k}: {claim.clauses[k - 1]}")
    if reasons:
        return Standing(Status.UNDECIDED, clauses, tuple(reasons), machine)
    return Standing(max(clauses, key=STRENGTHS.index), clauses, (), machine)


def _checks(finding: Finding) -> bool:
    return finding.evidence.kind is Kind.FORMAL and finding.outcome.holds is True


def _refutes(finding: Finding) -> bool:
    if finding.evidence.kind is Kind.COUNTEREXAMPLE:
        return finding.outcome.holds is True
    return finding.outcome.holds is False and finding.outcome.counterexample is not None


def _failures(findings: Sequence[Finding], holds: bool | None) -> list[str]:
    """What fails (False) or is open (None), in sentences."""
    word = "open" if holds is None else "fails"
    return [
        f"{word}: {finding.evidence.title}: {finding.outcome.detail}"
        for finding in findings
        if finding.outcome.holds is holds and not finding.outcome.absent
    ]


def _clause(k: int, findings: Sequence[Finding], claim: Claim) -> Status:
    """The status of clause k from the evidence that covers it; undecided where there is none."""
    covering = [f for f in findings if k in f.evidence.covers]
    if any(map(_checks, covering)):
        return Status.MACHINE
    rest = [f for f in covering if f.evidence.kind is not Kind.FORMAL]
    kinds = {f.evidence.kind for f in rest}
    if not rest or not kinds <= _STRENGTH.keys() or not all(f.outcome.holds for f in rest):
        return Status.UNDECIDED
    return max((_STRENGTH[kind] for kind in kinds), key=STRENGTHS.index)


# Found by their files: the claims are made of what stands here, which knows none of them.
_CONTENTS = "oversmoothing.theory.claims"
_FOLDER = Path(__file__).resolve().parents[1] / "claims"


@cache
def files() -> dict[str, Path]:
    """The chapter of each claim.

    Raises RuntimeError where two claims have one name.
    """
    pairs = [(name, path) for path in sorted(_FOLDER.glob("*.md")) for name in names(path)]
    listed = [name for name, _ in pairs]
    if repeated := {name for name in listed if listed.count(name) > 1}:
        raise RuntimeError(f"claims with the same name: {sorted(repeated)}")
    return dict(sorted(pairs, key=lambda each: _order(each[0])))


def recorded(name: str) -> str:
    """The status that a claim has on record, read from its section alone."""
    (status,) = re.findall(r"^- status: (.+)$", source(files()[name], name), re.M)
    return str(status)


@cache
def _stated_in(path: Path) -> dict[str, Claim]:
    """The claims of a chapter. Raises RuntimeError where a refuted one has no wording."""
    module = import_module(f"{_CONTENTS}.{path.stem}")
    table = claims_of(path.with_suffix(".py"), vars(module))
    for claim in table.values():
        if claim.on_record and claim.on_record.refuted and not claim.wording:
            raise RuntimeError(f"{claim.name}: it is refuted, and its wording is not said")
    return table


class Lazy(Mapping[str, Claim]):
    """Claims by name, each made when it is asked for, and so are the names."""

    def __init__(self, names: Callable[[], Collection[str]], make: Callable[[str], Claim]) -> None:
        self._names, self._make = names, cache(make)

    def __getitem__(self, name: str) -> Claim:
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __contains__(self, name: object) -> bool:
        return name in self._names()


def claims(own: Mapping[str, Claim] | None = None) -> Mapping[str, Claim]:
    """Every claim by name, in the order of T-numbers, papers last; behind them those of a user.

    A chapter is read, and its Python file run, where one of its claims is wanted.
    """
    users = own or {}
    return Lazy(
        cache(lambda: dict.fromkeys([*files(), *users])),
        lambda name: users[name] if name in users else _stated_in(files()[name])[name],
    )


def _order(name: str) -> tuple[object, ...]:
    """T2 before T11, T11.2 before T11.10; the theory's own before those of papers."""
    parts = [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
    return (not name.startswith("T"), *parts)


class Ledger(Lazy):
    """Claims by name, some with evidence from outside the theory; each made when it is asked for.

    Raises `InputError` where `extra` names no claim; where a claim that is asked for repeats a
    title of its evidence; and, of the claims that are to run, where a proof cites what is no claim,
    or cites itself through others.
    """

    def __init__(
        self, stated: Mapping[str, Claim], extra: Mapping[str, tuple[Evidence, ...]] | None = None
    ) -> None:
        def with_extra(name: str) -> Claim:
            evidence = (*stated[name].evidence, *beside.get(name, ()))
            if len({one.title for one in evidence}) < len(evidence):
                raise InputError(f"claim '{name}' has two pieces of evidence of one title")
            return replace(stated[name], evidence=evidence)

        super().__init__(stated.keys, with_extra)
        beside = extra or {}
        for name, added in beside.items():
            if name not in stated:
                raise InputError(f"no claim '{name}' for the evidence '{added[0].title}'")

    def cited(self, chosen: Iterable[Claim]) -> list[Claim]:
        """These claims and all that they rest on, the cited ones first."""
        done: dict[str, Claim] = {}

        def visit(claim: Claim, path: tuple[str, ...]) -> None:
            if claim.name in path:
                raise InputError(f"a circle of proofs: {' cites '.join([*path, claim.name])}")
            for name in claim.cites:
                if name not in self:
                    raise InputError(f"{claim.name} cites '{name}', which is no claim")
                if name not in done:
                    visit(self[name], (*path, claim.name))
            done[claim.name] = claim

        for claim in chosen:
            visit(claim, ())
        return list(done.values())

    def select(self, names: Iterable[str] = ()) -> list[Claim]:
        """Claims by name: exactly, or all parts of one ("T2" selects T2a ...); all if none given.

        Raises `InputError` for a name that selects nothing.
        """
        wanted = list(names)
        if not wanted:
            return list(self.values())
        chosen: dict[str, Claim] = {}
        for name in wanted:
            exact = [key for key in self if key.lower() == name.lower()]
            parts = [key for key in self if _is_part(key.lower(), name.lower())]
            if not name or not (exact or parts):
                raise self._no_claim(name)
            chosen |= {key: self[key] for key in exact or parts}
        return list(chosen.values())

    def _no_claim(self, name: str) -> InputError:
        todo = f"'oversmoothing prove --list' shows all {len(self)}."
        for chapter in (name[:cut] for cut in range(len(name) - 1, 1, -1)):
            parts = [key for key in self if _is_part(key.lower(), chapter.lower())]
            if 1 < len(parts) < 8:
                few = f"{', '.join(parts[:-1])} and {parts[-1]}"
                return InputError(f"no claim '{name}'. Chapter {chapter} has {few}.\n{todo}")
        return unknown("claim", name, self, todo)


@dataclass(frozen=True)
class Entry:
    """A claim after its evidence ran."""

    claim: Claim
    standing: Standing
    findings: list[Finding]
    seconds: float

    @property
    def status(self) -> Status:
        return self.standing.status

    @property
    def as_recorded(self) -> bool:
        """Whether the status is the one on record, where one is."""
        return self.claim.on_record in (None, self.status)


def _is_part(key: str, name: str) -> bool:
    # "T1" has the parts T1a ..., not T11; "P-" has all of the first paper's.
    cut = name[-1:].isdigit() and key[len(name) : len(name) + 1].isdigit()
    return key.startswith(name) and not cut


def run_claim(
    claim: Claim,
    effort: Effort,
    kinds: frozenset[Kind] | None = None,
    cited: Mapping[str, Status] | None = None,
    seen: Callable[[Finding], object] = id,
) -> Entry:
    """Run the evidence of a claim (of some kinds only, if given) and read off its status.

    cited: how the claims stand on which it rests; `settled` does that for many. seen: is told of
    each finding as it comes, those of Coq last, which may take minutes.
    """
    findings = []
    begin = time.perf_counter()
    for index, evidence in sorted(
        enumerate(claim.evidence), key=lambda each: each[1].kind is Kind.FORMAL
    ):
        if kinds is not None and evidence.kind not in kinds:
            continue
        start = time.perf_counter()
        if isinstance(evidence, Searched):
            outcome = evidence.search(effort.examples, effort.seed, claim.hypotheses)
        else:
            outcome = evidence.run(effort)
        findings.append(Finding(index, evidence, outcome, time.perf_counter() - start))
        seen(findings[-1])
    findings.sort(key=lambda finding: finding.index)
    reading = standing(claim, findings, cited)
    return Entry(claim, reading, findings, time.perf_counter() - begin)


def settled(entries: Iterable[Entry]) -> list[Entry]:
    """The same, cited ones first, each status read off anew from how those stand."""
    given = {entry.claim.name: entry for entry in entries}
    table: dict[str, Entry] = {}

    def settle(name: str) -> Status:
        if name not in table:
            entry = given[name]
            cited = {other: settle(other) for other in entry.claim.cites if other in given}
            table[name] = replace(entry, standing=standing(entry.claim, entry.findings, cited))
        return table[name].status

    for name in given:
        settle(name)
    return list(table.values())


def in_want_of_coq(entries: Iterable[Entry]) -> list[str]:
    """The claims with evidence that only Coq gives, where it is not installed, and all that rest on
    them."""
    wanting: list[str] = []
    for entry in settled(entries):
        absent = any(finding.outcome.absent for finding in entry.findings)
        if absent or any(name in wanting for name in entry.claim.cites):
            wanting.append(entry.claim.name)
    return wanting


def theorems() -> dict[str, tuple[str, ...]]:
    """Claim: the theorems that its evidence names."""
    titles = {
        name: tuple(e.title for e in claim.evidence if e.kind is Kind.FORMAL)
        for name, claim in claims().items()
    }
    return {name: named for name, named in titles.items() if named}


def main(arguments: Sequence[str]) -> int:
    """Check every theorem that a claim names and print it; with --record, write what Coq says anew.

    Exit status 1: one is not accepted, or is not as it is on record.
    """
    named = theorems()
    wanted = tuple(dict.fromkeys(theorem for needed in named.values() for theorem in needed))
    if not wanted:
        print("no claim names a theorem", file=sys.stderr)
        return 1
    try:
        said = {one.theorem: one for one in check(wanted)}
    except InputError as error:
        print(error, file=sys.stderr)
        return 1
    for claim, needed in named.items():
        for theorem in needed:
            axioms = ", ".join(said[theorem].axioms) or "none"
            print(f"{claim}  {theorem}  axioms: {axioms}")
    print(f"{len(wanted)} theorems checked by Coq {coq_version()}")
    unmet = [name for name, one in said.items() if one.unmet]
    if unmet:
        print(f"without an instance of what they assume: {', '.join(unmet)}", file=sys.stderr)
    elif "--record" in arguments:
        write_atomically(RECORD, as_record(said.values()))
        print(f"wrote {RECORD}")
        return 0
    kept = on_record()
    changed = sorted(name for name in {*said, *kept} if said.get(name) != kept.get(name))
    if changed:
        print(f"not as on record in {RECORD}: {', '.join(changed)}", file=sys.stderr)
    return 1 if unmet or changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
