"""What a claim is: a statement in numbered clauses, where it comes from, its hypotheses, and how we
know. A claim states; evidence convinces, each piece of it of clauses that it names.
`theory.proofs.ledger` computes the status; `on_record` is what it is expected to be, and `prove`
fails when the two differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

from oversmoothing.theory.numbers.exact import Matrix


class Status(StrEnum):
    """How a claim stands, or a clause of one.

    machine-checked: by Coq's kernel. decided: by z3 and cvc5. written: proved in words, its steps
    executed where a machine can. certified: of instances, in balls. refuted: of a paper's
    statement, in the paper's own words or as we read them (`Claim.wording` says which).
    """

    MACHINE = "machine-checked"
    DECIDED = "decided"
    WRITTEN = "written"
    CERTIFIED = "certified"
    UNDECIDED = "undecided"
    REFUTED = "refuted"
    REFUTED_WORDS = "refuted (the paper's own words)"
    REFUTED_READING = "refuted (our reading)"

    @property
    def short(self) -> str:
        """One word, as a name in a page's style."""
        return self.value.split()[0]

    @property
    def refuted(self) -> bool:
        return self.short == "refuted"

    @property
    def proved(self) -> bool:
        return self in STRENGTHS


# A claim by its name: T2d, T2d-ii, T7b-certificate, T11.10, and the claims on papers, by arXiv
# number, or where there is none by a word and the year.
REFERENCE = re.compile(
    r"\b(?:T\d+(?:\.\d+)?[a-z]?(?:-(?:ii|certificate|rotation|volume|reversal))?\b"
    r"|[PN]-(?:\d{4}\.\d{5}(?:v\d)?|[a-z]+\d{4})-[a-z0-9-]+)"
)

# From the strongest: a claim is as strong as the weakest of its clauses.
STRENGTHS = (Status.MACHINE, Status.DECIDED, Status.WRITTEN, Status.CERTIFIED)


# How the wording of a statement of a paper begins: with what it shares with the paper.
THE_PAPERS = ("in the paper's words", "with all hypotheses of")
OUR_READING = "our reading"
# A reading that leaves out a condition of the paper: what refutes it does not touch the paper.
LEFT_OUT = f"{OUR_READING}, without"

_WHOSE = {
    Status.REFUTED_WORDS: "in the paper's own words",
    Status.REFUTED_READING: "of our reading",
}


def tally(statuses: Iterable[Status]) -> str:
    """ "116 written, 38 refuted (1 in the paper's own words, 37 of our reading)"."""
    kinds = list(statuses)
    whose = [f"{count} {words}" for each, words in _WHOSE.items() if (count := kinds.count(each))]
    said = {Status.REFUTED.short: f" ({', '.join(whose)})"} if whose else {}
    counts = Counter(status.short for status in kinds).most_common()
    return ", ".join(f"{count} {short}{said.get(short, '')}" for short, count in counts)


class Scope(StrEnum):
    """What the check of a step covers: the step as stated, one size of it in symbols, or examples.

    Only a general check verifies its step; the others illustrate it.
    """

    GENERAL = "general"
    SIZE = "fixed size"
    INSTANCE = "instance"


class Kind(StrEnum):
    """The kinds of evidence, and the counterexample."""

    FORMAL = "formal"
    WRITTEN = "written"
    SYMBOLIC = "symbolic"
    REALS = "for all reals"
    CERTIFIED = "certified"
    SEARCHED = "searched"
    SIMULATED = "simulated"
    SHARP = "sharp"
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

    holds: True as stated, False where it failed, None where it could not be decided or nothing was
    there to decide. detail: what was done and found, in sentences; counterexample: exact numbers,
    where one was found. data: further numbers for the record (JSON values). absent: the tool that
    would decide is not installed.
    """

    holds: bool | None
    detail: str
    counterexample: str | None = None
    data: dict[str, Any] = field(default_factory=dict)
    absent: bool = False


class Evidence(Protocol):
    """Something that can be run and comes to an outcome.

    covers: the clauses that it proves, together with the other evidence that covers them; none
    where it stands beside the proof.
    """

    @property
    def kind(self) -> Kind: ...

    @property
    def title(self) -> str: ...

    @property
    def covers(self) -> tuple[int, ...]: ...

    def run(self, effort: Effort) -> Outcome: ...


@dataclass(frozen=True)
class Instance:
    """A case on which hypotheses are checked: A [n, n], H [d, d] and perhaps X0, in fractions."""

    A: Matrix
    H: Matrix
    X0: Matrix | None = None


@dataclass(frozen=True)
class Hypothesis:
    """A condition in words, and as a predicate on an instance.

    violated: instances of which the predicate must say no; one that says yes to them excludes
    nothing, and no claim with it stands.
    """

    words: str
    holds: Callable[[Instance], bool]
    violated: tuple[Instance, ...]

    def said(self, words: str) -> Hypothesis:
        """The same condition in other words, as of every layer."""
        return replace(self, words=words)

    @property
    def excludes(self) -> bool:
        """Whether the predicate knows the instances that violate it."""
        return bool(self.violated) and not any(map(self.holds, self.violated))


# What stands in these fields of a claim: how to know it, and what to call it.
_PARTS: dict[str, tuple[Callable[[object], bool], str]] = {
    "evidence": (
        lambda one: all(hasattr(one, part) for part in ("run", "covers", "title", "kind")),
        "evidence (by.law(...), ...)",
    ),
    "hypotheses": (lambda one: isinstance(one, Hypothesis), "a hypothesis (given.NAME)"),
}


@dataclass(frozen=True)
class Claim:
    """One statement with its evidence.

    name: T2d, or P-v1-control for a statement of a paper. clauses: the statement in words, counted
    from 1; latex: the same as a formula. source: paper, version and place, or ours. wording: of a
    statement of a paper, what a refutation of it is of: it begins as THE_PAPERS or OUR_READING do,
    and says which hypotheses of the paper it has, leaves out or does not know. setting: what
    is assumed of more than A, H and X_0, in words. on_record: the status expected; a claim of the
    ledger has one. repaired_by: the claim that holds instead of a refuted one. further: what it
    would take to go further.

    Raises ValueError where a part is not what it must be, or evidence is for a clause that is not
    there.

    >>> from oversmoothing import Claim, by, draw, exact, given
    >>> def rises(A, H, X0):
    ...     return exact.squared_norms(exact.layer(A, H, X0))[0] >= exact.squared_norms(X0)[0]
    >>> claim = Claim(
    ...     name="rises",
    ...     clauses=("No layer makes HFC smaller.",),
    ...     hypotheses=(given.POSITIVE,),
    ...     evidence=(by.law(rises, draw.cases()),),
    ... )
    >>> claim
    Claim('rises', 1 clause, 1 hypothesis, 1 piece of evidence)
    """

    name: str
    clauses: tuple[str, ...]
    latex: str = ""
    source: str = ""
    on_record: Status | None = None
    evidence: tuple[Evidence, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()
    setting: str = ""
    repaired_by: str | None = None
    further: str = ""
    wording: str = ""

    def __repr__(self) -> str:
        counts = (
            (len(self.clauses), "clause", "clauses"),
            (len(self.hypotheses), "hypothesis", "hypotheses"),
            (len(self.evidence), "piece of evidence", "pieces of evidence"),
        )
        words = (f"{k} {one if k == 1 else many}" for k, one, many in counts)
        return f"Claim({self.name!r}, {', '.join(words)})"

    def __post_init__(self) -> None:
        if self.wording and not self.wording.startswith((*THE_PAPERS, OUR_READING)):
            raise ValueError(
                f"{self.name}: the wording begins {', '.join(map(repr, THE_PAPERS))} or "
                f"{OUR_READING!r}, not {self.wording!r:.60}"
            )
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"a claim's name is a text that is not empty, not {self.name!r}")
        if not isinstance(self.clauses, tuple) or not self.clauses or not all(self.clauses):
            raise ValueError(
                f"{self.name} needs a tuple of clauses; of one, with a comma: ('A clause.',)"
            )
        for what, (is_one, called) in _PARTS.items():
            given = getattr(self, what)
            if not isinstance(given, tuple):
                raise ValueError(f"{self.name}: {what} is a tuple; of one, with a comma: (it,)")
            if wrong := [one for one in given if not is_one(one)]:
                raise ValueError(
                    f"{self.name}: {what} holds {wrong[0]!r:.80}, where {called} stands"
                )
        for one in self.evidence:
            for k in (*one.covers, *getattr(one, "against", ())):
                if not 1 <= k <= len(self.clauses):
                    raise ValueError(f"{self.name}, {one.title}: there is no clause {k}")

    @property
    def statement(self) -> str:
        """All clauses, numbered where there are several."""
        if len(self.clauses) == 1:
            return self.clauses[0]
        return " ".join(f"({k}) {clause}" for k, clause in enumerate(self.clauses, 1))

    @property
    def cites(self) -> tuple[str, ...]:
        """The claims on which steps of its proofs rest."""
        names = (n for e in self.evidence for step in getattr(e, "steps", ()) for n in step.cites)
        return tuple(dict.fromkeys(names))

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
