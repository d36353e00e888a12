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

# The papers that claims are about, by arXiv number: authors and year, and what the title begins
# with.
PAPERS = {
    "2103.03404": ("Dong et al. 2021", "Attention is not all you need"),
    "2203.05962": ("Wang et al. 2022", "Anti-oversmoothing in deep vision transformers"),
    "2206.03126": ("Noci et al. 2022", "Signal propagation in transformers"),
    "2206.10991": ("Di Giovanni et al. 2022", "Understanding convolution on graphs via energies"),
    "2305.05465": (
        "Geshkovski et al. 2023",
        "The emergence of clusters in self-attention dynamics",
    ),
    "2308.16800": ("Roth and Liebig 2023", "Rank collapse causes over-smoothing"),
    "2312.06182": ("Yu and Zhang 2023", "Why “classic” Transformers are shallow"),
    "2312.10794": ("Geshkovski et al. 2023", "A mathematical perspective on transformers"),
    "2401.04301": (
        "Dovonon et al. 2024",
        "Setting the Record Straight on Transformer Oversmoothing",
    ),
    "2405.18781": ("Wu et al. 2024", "On the role of attention masks and LayerNorm"),
    "2407.11876": ("Roth 2024", "Simplifying the theory on over-smoothing"),
    "2410.07799": ("Naderi et al. 2024", "Mind the gap"),
    "2410.10609": ("Arangath Joseph et al. 2024", "Lambda-skip connections"),
    "2502.04591": ("Zhang et al. 2025", "Are we measuring oversmoothing correctly?"),
    "2502.05795": ("Sun et al. 2025", "The curse of depth in large language models"),
    "2505.24333": ("Giorlandino and Goldt 2025", "Two failure modes of deep transformers"),
    "2510.22026": ("Karagodin et al. 2025", "Normalization in attention dynamics"),
    "2604.07925": ("Lapenna et al. 2026", "Sinkhorn doubly stochastic attention"),
    "2604.19028": ("Choi et al. 2026", "NodePFN"),
    "2604.23681": ("Cirrincione 2026", "Rank, head-channel non-identifiability"),
    "2605.25619": ("Li and Altafini 2026", "Analogies between Transformer layers and power method"),
}
_NUMBER = re.compile(r"^[PN]-(\d{4}\.\d{5})(v\d+)?-")


def cited(claim: str) -> str:
    """Whom a claim of that name is about, "Dovonon et al. 2024", or "this project".

    Raises KeyError for a paper that is not listed.
    """
    number = _NUMBER.match(claim)
    if number is not None:
        return PAPERS[number[1]][0]
    return "Lean preprint 2026" if claim.startswith("N-clustering2026") else "this project"


def address(claim: str) -> str:
    """Where that paper stands, in the version that the claim is about; "" where it has none."""
    number = _NUMBER.match(claim)
    return "" if number is None else f"https://arxiv.org/abs/{number[1]}{number[2] or ''}"


# From the strongest: a claim is as strong as the weakest of its clauses.
STRENGTHS = (Status.MACHINE, Status.DECIDED, Status.WRITTEN, Status.CERTIFIED)


# How the wording of a statement of a paper begins: with what it shares with the paper.
THE_PAPERS = ("in the paper's words", "with all hypotheses of")
OUR_READING = "our reading"
# A reading that leaves out a condition of the paper: what refutes it does not touch the paper.
LEFT_OUT = f"{OUR_READING}, without"


def tally(statuses: Iterable[Status]) -> str:
    """ "116 proved in writing, 38 refuted (1 in the paper's own words, 37 of our reading)"."""
    kinds = list(statuses)
    words, reading = kinds.count(Status.REFUTED_WORDS), kinds.count(Status.REFUTED_READING)
    whose = [f"{words} in the paper's own words"] * bool(words)
    whose += [f"{reading} of our reading"] * bool(reading)
    said = {"written": "proved in writing"}
    said |= {"refuted": f"refuted ({', '.join(whose)})"} if whose else {}
    counts = Counter(status.short for status in kinds).most_common()
    return ", ".join(f"{count} {said.get(short, short)}" for short, count in counts)


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


# What a part of these fields of a claim has, and what to call it.
_PARTS = {
    "evidence": (("run", "covers", "title", "kind"), "evidence (by.law(...), ...)"),
    "hypotheses": (("words", "holds", "violated"), "a hypothesis (given.NAME)"),
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
        for what, (has, called) in _PARTS.items():
            given = getattr(self, what)
            if not isinstance(given, tuple):
                raise ValueError(f"{self.name}: {what} is a tuple; of one, with a comma: (it,)")
            for one in given:
                if not all(hasattr(one, part) for part in has):
                    raise ValueError(
                        f"{self.name}: {what} holds {one!r:.80}, where {called} stands"
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
