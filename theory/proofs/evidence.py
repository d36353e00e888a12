"""The kinds of evidence: written, symbolic, certified, searched, simulated, counterexample
(statements for all reals stand in theory.proofs.for_all).

Each has a title, says whether it is complete (belongs to the proof of the whole statement), and
runs within an effort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import (
    HealthCheck,
    Phase,
    Verbosity,
    given,
    seed as with_seed,
    settings,
    strategies as st,
)
from hypothesis.errors import Unsatisfiable, UnsatisfiedAssumption
from hypothesis.strategies import SearchStrategy

from oversmoothing.theory.proofs.checks import entries, simplified
from oversmoothing.theory.proofs.claim import Effort, Kind, Outcome


@dataclass(frozen=True)
class Step:
    """One numbered step of a written proof; `check` executes it where a machine can.

    check returns nothing and raises AssertionError (or any error) where the step fails.
    """

    words: str
    check: Callable[[], object] | None = None


@dataclass(frozen=True)
class Written:
    """A proof in numbered steps, every step that a machine can check executed."""

    title: str
    steps: tuple[Step, ...]
    complete: bool = True
    kind: Kind = Kind.WRITTEN

    def run(self, effort: Effort) -> Outcome:
        executed = 0
        data: dict[str, object] = {
            "steps": [
                {"words": step.words, "executed": step.check is not None} for step in self.steps
            ]
        }
        for number, step in enumerate(self.steps, 1):
            if step.check is None:
                continue
            try:
                step.check()
            except Exception as error:  # any failure of a step is the finding
                reason = f"{type(error).__name__}: {error}".strip().rstrip(":")
                words = f"step {number} fails ({step.words}): {reason}"
                return Outcome(False, words, None, data)
            executed += 1
        return Outcome(True, f"{len(self.steps)} steps, {executed} executed", None, data)


@dataclass(frozen=True)
class Symbolic:
    """Derived in sympy, hypotheses declared in the symbols: a residual that is exactly 0."""

    title: str
    residual: Callable[[], Any]
    complete: bool = True
    kind: Kind = Kind.SYMBOLIC

    def run(self, effort: Effort) -> Outcome:
        left = [simplified(entry) for entry in entries(self.residual())]
        for entry in left:
            if entry != 0:
                return Outcome(False, f"the residual is {entry}, not 0")
        return Outcome(True, f"residual exactly 0 ({len(left)} entries)")


# Of each instance in turn: True where it is certified, False where it could not be decided, or a
# counterexample in exact numbers.
Settled = Iterator[bool | str]


@dataclass(frozen=True)
class Certified:
    """Instances settled by exact or ball arithmetic, up to the first that fails."""

    title: str
    certify: Callable[[Effort], Settled]
    complete: bool = False
    kind: Kind = Kind.CERTIFIED

    def run(self, effort: Effort) -> Outcome:
        holding = undecided = 0
        for found in self.certify(effort):
            if isinstance(found, str):
                return Outcome(False, f"a certified instance contradicts it: {found}", found)
            holding, undecided = holding + found, undecided + (not found)
        detail = f"{holding} instances certified, {undecided} undecided"
        data: dict[str, object] = {"certified": holding, "undecided": undecided}
        return Outcome(True if holding else None, detail, None, data)


@dataclass(frozen=True)
class Searched:
    """hypothesis draws (spectra first, matrices from them), hunts a violation and shrinks it.

    law takes what is drawn, the entries of a tuple one by one, and raises AssertionError where the
    statement fails on it; it may call hypothesis.assume.
    """

    title: str
    draws: SearchStrategy[Any]
    law: Callable[..., object]
    complete: bool = False
    kind: Kind = Kind.SEARCHED

    def run(self, effort: Effort) -> Outcome:
        return self.search(effort.examples, effort.seed)

    def search(self, examples: int, seed: int) -> Outcome:
        """Try that many examples from that seed. Deterministic."""
        tried = 0
        worst: list[object] = []

        @with_seed(seed)
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            verbosity=Verbosity.quiet,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(self.draws)
        def attempt(value: Any) -> None:
            nonlocal tried
            try:
                self.law(*value) if isinstance(value, tuple) else self.law(value)
            except UnsatisfiedAssumption:
                raise
            except Exception:
                worst[:] = [value]
                raise
            tried += 1

        nothing = Outcome(None, "every drawn example was filtered out: nothing was searched")
        try:
            attempt()
        except Unsatisfiable:
            return nothing
        except Exception as error:  # whatever the law raises is the violation
            if not worst:
                raise
            shown = f"{show(worst[0])}: {str(error).splitlines()[0] if str(error) else 'violated'}"
            return Outcome(False, f"violated after {tried} examples: {shown}", shown)
        if tried == 0:
            return nothing
        return Outcome(True, f"{tried} examples, none violates it", None, {"examples": tried})


def searched(title: str, law: Callable[..., object], *draws: SearchStrategy[Any]) -> Searched:
    """A search in which the law takes what each strategy draws; of a single one that draws tuples,
    their entries."""
    return Searched(title, draws[0] if len(draws) == 1 else st.tuples(*draws), law)


def show(value: object) -> str:
    """Exact numbers as a reader writes them: Fraction(3, 4) is 3/4."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, list | tuple):
        inside = ", ".join(show(entry) for entry in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return str(value)


@dataclass(frozen=True)
class Counterexample:
    """Exact numbers that satisfy the hypotheses and violate the statement, checked step by step."""

    title: str
    numbers: str
    steps: tuple[Step, ...]
    complete: bool = True
    kind: Kind = Kind.COUNTEREXAMPLE

    def run(self, effort: Effort) -> Outcome:
        done = Written(self.title, self.steps).run(effort)
        if not done.holds:
            return Outcome(False, f"the counterexample does not come out: {done.detail}")
        words = " ".join(f"({k}) {step.words}" for k, step in enumerate(self.steps, 1))
        return Outcome(True, words, self.numbers)


@dataclass(frozen=True)
class Simulated:
    """A limit or a rate measured against its prediction; `measure` gives the rows of the table.

    Each row: what, predicted, measured, tolerance (absolute). Holds when every row agrees.
    """

    title: str
    measure: Callable[[Effort], Measurements]
    complete: bool = False
    kind: Kind = Kind.SIMULATED

    def run(self, effort: Effort) -> Outcome:
        rows = list(self.measure(effort))
        wrong = [row for row in rows if not row.agrees]
        data: dict[str, object] = {"measurements": [vars(row) for row in rows]}
        if wrong:
            row = wrong[0]
            return Outcome(
                False,
                f"{row.what}: predicted {row.predicted:.10g}, measured {row.measured:.10g}",
                None,
                data,
            )
        worst = max(rows, key=lambda row: abs(row.measured - row.predicted), default=None)
        if worst is None:
            return Outcome(None, "nothing was measured", None, data)
        gap = abs(worst.measured - worst.predicted)
        detail = f"{len(rows)} measurements agree, worst {worst.what}: off by {gap:.1e}"
        return Outcome(True, detail, None, data)


@dataclass(frozen=True)
class Measurement:
    """One number predicted and measured."""

    what: str
    predicted: float
    measured: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        return abs(self.measured - self.predicted) <= self.tolerance


Measurements = Iterable[Measurement]
