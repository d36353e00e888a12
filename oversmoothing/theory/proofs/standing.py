"""How a claim stands: computed from what its evidence came to and how the claims it cites stand.

- A counterexample that holds refutes, and so does other evidence that fails with one: the clauses
  that it is for, or all where it names none; and with one of them the claim.
- Evidence that fails without one leaves the claim undecided, and so does a citation of what is not
  proved, and a hypothesis whose predicate does not know the instances that violate it; where
  nothing refutes it, evidence that decides nothing or is empty, too, and a clause that no evidence
  covers. Only a tool that is not installed is passed over, with what it alone would prove.
- A clause that Coq checks is machine-checked; otherwise all evidence that covers it proves it
  together, and it is as strong as the weakest of that. So is the claim, of its clauses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oversmoothing.theory.proofs.claim import STRENGTHS, Claim, Finding, Kind, Status

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
    reasons = [*_faults(claim), *_citations(claim, cited or {}), *_failures(others, False)]
    clauses = tuple(_clause(k, findings, claim) for k in range(1, len(claim.clauses) + 1))
    checked = {k for f in findings if _checks(f) for k in f.evidence.covers}
    machine = checked == set(range(1, len(claim.clauses) + 1))
    if refuting:
        if reasons:
            return Standing(Status.UNDECIDED, clauses, tuple(reasons), machine)
        reading = getattr(refuting[0].evidence, "of", Status.REFUTED)
        every = range(1, len(clauses) + 1)
        hit = {k for f in refuting for k in _against(f) or every}
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


def _against(finding: Finding) -> tuple[int, ...]:
    """The clauses that a refuting finding is for."""
    return finding.evidence.covers or getattr(finding.evidence, "against", ())


def _faults(claim: Claim) -> list[str]:
    return [f"a hypothesis excludes nothing: {h.words}" for h in claim.hypotheses if not h.excludes]


def _citations(claim: Claim, cited: Mapping[str, Status]) -> list[str]:
    found = []
    for name in claim.cites:
        status = cited.get(name)
        if status is None:
            found.append(f"it rests on {name}, which was not run")
        elif not status.proved:
            found.append(f"it rests on {name}, which is {status}")
    return found


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
