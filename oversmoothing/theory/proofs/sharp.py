"""A statement that Coq proves is sharp: beside it, at a point, its false neighbours fail.

What is evaluated are fractions at the points that are given; no solver is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from oversmoothing.theory.proofs.claim import Effort, Kind, Outcome
from oversmoothing.theory.proofs.for_all import ForAllReals


@dataclass(frozen=True)
class Sharp:
    """A query whose false neighbours are evaluated, each at its witness; it covers no clause.

    At a witness every hypothesis of the neighbour holds, its conclusion fails, and the statement
    itself is not violated; at the example the statement holds, hypotheses and conclusion.
    """

    stated: ForAllReals
    covers: tuple[int, ...] = ()
    kind: Kind = Kind.SHARP

    def __post_init__(self) -> None:
        """Raises ValueError where there is no neighbour, or a neighbour without a witness."""
        if not self.stated.mutations:
            raise ValueError(f"'{self.title}' has no false neighbour")
        for mutation in self.stated.mutations:
            if not mutation.witness:
                raise ValueError(f"the neighbour '{mutation.change}' has no point: add at `...`")

    @property
    def title(self) -> str:
        return f"sharp: {self.stated.title}"

    def run(self, effort: Effort) -> Outcome:
        query = self.stated.query
        data: dict[str, object] = {"query": query.describe()}
        example = _point(self.stated.example)
        if not (query.hypotheses_hold(example) and query.conclusion_holds(example)):
            return Outcome(False, f"it does not hold at its example {self.stated.example}")
        shown = []
        for mutation in self.stated.mutations:
            at, words = _point(mutation.witness), _said(mutation.witness)
            if query.hypotheses_hold(at) and not query.conclusion_holds(at):
                return Outcome(False, f"it is violated at {words}", words, data)
            if not mutation.query.hypotheses_hold(at) or mutation.query.conclusion_holds(at):
                return Outcome(False, f"{words} does not violate: {mutation.change}", None, data)
            shown.append(f"false with {mutation.change}: at {words}")
        return Outcome(True, "; ".join(shown), None, data)


def _point(values: dict[str, str]) -> dict[str, Fraction]:
    return {name: Fraction(value) for name, value in values.items()}


def _said(values: dict[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())
