"""What a claim is: a statement, where it comes from, its hypotheses, and how we know.

A claim states; evidence convinces. The status of a claim is computed from the outcomes of its
evidence, never declared; `on_record` is what it is expected to be, and `prove` fails when the two
differ.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from oversmoothing.theory.numbers.rational import Matrix


class Status(StrEnum):
    """How a claim stands."""

    PROVED = "proved"
    WRITTEN = "proved (written)"
    CERTIFIED = "certified"
    UNDECIDED = "undecided"
    REFUTED = "refuted"


class Kind(StrEnum):
    """The six kinds of evidence, and the counterexample."""

    WRITTEN = "written"
    SYMBOLIC = "symbolic"
    REALS = "for all reals"
    CERTIFIED = "certified"
    SEARCHED = "searched"
    SIMULATED = "simulated"
    COUNTEREXAMPLE = "counterexample"


@dataclass(frozen=True)
class Effort:
    """How much to spend.

    examples: of each searched claim; seed: of every random draw; solver_limit: seconds for one
    query of one solver; second_opinion: whether to ask cvc5 too.
    """

    examples: int = 200
    seed: int = 0
    solver_limit: float = 60.0
    second_opinion: bool = True


@dataclass(frozen=True)
class Outcome:
    """What one piece of evidence came to.

    holds: True as stated, False where it failed, None where it could not be decided. detail: what
    was done and found, in sentences; counterexample: exact numbers, where one was found. data:
    further numbers for the record (JSON values).
    """

    holds: bool | None
    detail: str
    counterexample: str | None = None
    data: dict[str, object] = field(default_factory=dict)


class Evidence(Protocol):
    """Something that can be run and comes to an outcome.

    complete: whether it belongs to the proof. All complete evidence of a claim together establishes
    the whole statement; the rest supports it.
    """

    @property
    def kind(self) -> Kind: ...

    @property
    def title(self) -> str: ...

    @property
    def complete(self) -> bool: ...

    def run(self, effort: Effort) -> Outcome: ...


@dataclass(frozen=True)
class Instance:
    """A case on which hypotheses are checked: A [n, n], H [d, d] and perhaps X0, in fractions."""

    A: Matrix
    H: Matrix
    X0: Matrix | None = None


@dataclass(frozen=True)
class Hypothesis:
    """A condition in words, and as a predicate on an instance."""

    words: str
    holds: Callable[[Instance], bool]


@dataclass(frozen=True)
class Claim:
    """One statement with its evidence.

    name: T2d, or P-v1-control for a statement of a paper. statement: in words; latex: the same as a
    formula. source: paper, version and place, or ours. on_record: the status expected. repaired_by:
    the claim that holds instead of a refuted one. further: what it would take to go further.
    """

    name: str
    statement: str
    latex: str
    source: str
    on_record: Status
    evidence: tuple[Evidence, ...]
    hypotheses: tuple[Hypothesis, ...] = ()
    repaired_by: str | None = None
    further: str = ""

    def unmet(self, instance: Instance) -> list[str]:
        """The hypotheses that this instance does not satisfy, in words."""
        return [h.words for h in self.hypotheses if not h.holds(instance)]


@dataclass(frozen=True)
class Finding:
    """One piece of evidence after it ran: the one at `index` of its claim."""

    index: int
    evidence: Evidence
    outcome: Outcome
    seconds: float


def status_of(findings: Sequence[Finding]) -> Status:
    """The status that the evidence supports.

    A counterexample that holds refutes, and so does any other evidence that fails with one. A
    failing step without a counterexample leaves the claim undecided, whatever else holds. Otherwise
    all complete evidence must hold, and the claim is as strong as the weakest of it: machine proof,
    written proof, certificates.
    """
    for finding in findings:
        refutes = finding.evidence.kind is Kind.COUNTEREXAMPLE
        if refutes and finding.outcome.holds:
            return Status.REFUTED
        if not refutes and finding.outcome.holds is False and finding.outcome.counterexample:
            return Status.REFUTED
    if any(finding.outcome.holds is False for finding in findings):
        return Status.UNDECIDED
    proof = [finding for finding in findings if finding.evidence.complete]
    kinds = {finding.evidence.kind for finding in proof}
    machine = {Kind.SYMBOLIC, Kind.REALS}
    if not proof or not all(finding.outcome.holds for finding in proof):
        return Status.UNDECIDED
    if kinds <= machine:
        return Status.PROVED
    if kinds <= machine | {Kind.WRITTEN}:
        return Status.WRITTEN
    return (
        Status.CERTIFIED if kinds <= machine | {Kind.WRITTEN, Kind.CERTIFIED} else Status.UNDECIDED
    )
