"""The kinds of evidence: written, symbolic, certified, simulated, counterexample (searches stand in
theory.proofs.search, statements for all reals in reals, what Coq checks in coq).

Each has a title, says which clauses of the statement it covers, and runs within an effort. Nothing
empty holds: no step, no entry, no assertion, no decided instance, no example is no evidence;
`executed` sees whether a check asserts.

In Python, `written` makes a proof as it is read. A step is a text, or a function:
its docstring is the text, its body the check, which asserts or returns what must vanish identically
(a scalar, a matrix, a list). The text begins with what it is for: "[1, 2] By T1d ..." are words for
clauses 1 and 2, "[1; fixed size] ..." is a function whose check illustrates a step of clause 1 at a
fixed size, "[instance] ..." one that proves no clause. A claim that a step names is one it rests
on.
"""

from __future__ import annotations

import ast
import math
import re
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from textwrap import shorten
from types import CodeType, FrameType
from typing import Any

import numpy as np

from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.proofs.checks import entries, simplified, vanishes
from oversmoothing.theory.proofs.claim import (
    REFERENCE,
    Effort,
    Instance,
    Kind,
    Outcome,
    Scope,
    Status,
)


@dataclass(frozen=True)
class Step:
    """One numbered step of a written proof; `check` executes it where a machine can.

    covers: the clauses whose proof it belongs to. check asserts, or returns what must vanish:
    a check that does neither does not hold. scope: what the check covers.
    """

    words: str
    check: Callable[[], object] | None = None
    scope: Scope = Scope.INSTANCE
    covers: tuple[int, ...] = ()

    @property
    def cites(self) -> tuple[str, ...]:
        """The claims on which the step rests: those that it names."""
        return tuple(dict.fromkeys(REFERENCE.findall(self.words)))

    def execute(self) -> None:
        """Raises AssertionError (or any error) where its check fails or is empty."""
        if self.check is None:
            return
        value, asserted = executed(self.check)
        left = entries(value)
        assert asserted or left, "the check executed no assertion and returned nothing"
        vanishes(left)


@dataclass(frozen=True)
class Written:
    """A proof in numbered steps, every step that a machine can check executed."""

    title: str
    steps: tuple[Step, ...]
    kind: Kind = Kind.WRITTEN

    @property
    def covers(self) -> tuple[int, ...]:
        return tuple(sorted({k for step in self.steps for k in step.covers}))

    def run(self, effort: Effort) -> Outcome:
        data = {
            "steps": [
                {
                    "words": step.words,
                    "covers": list(step.covers),
                    "check": str(step.scope) if step.check else None,
                    "by": list(step.cites),
                }
                for step in self.steps
            ]
        }
        if not self.steps:
            return Outcome(None, "a proof without steps", None, data)
        for number, step in enumerate(self.steps, 1):
            try:
                step.execute()
            except Exception as error:  # any failure of a step is the finding
                reason = f"{type(error).__name__}: {error}".strip().rstrip(":")
                words = f"step {number} fails ({step.words}): {reason}"
                return Outcome(False, words, None, data)
        scopes = Counter(step.scope for step in self.steps if step.check)
        said = {
            Scope.GENERAL: "verified",
            Scope.SIZE: "illustrated at a fixed size",
            Scope.INSTANCE: "illustrated at instances",
        }
        parts = [f"{scopes[scope]} {words}" for scope, words in said.items() if scopes[scope]]
        in_words = sum(step.check is None for step in self.steps)
        parts += [f"{in_words} in words"] * bool(in_words)
        plural = "s" * (len(self.steps) != 1)
        return Outcome(True, f"{len(self.steps)} step{plural}: {', '.join(parts)}", None, data)


@dataclass(frozen=True)
class Symbolic:
    """Derived in sympy, hypotheses declared in the symbols: a residual that is exactly 0.

    A residual at a fixed size or an instance covers no clause: ValueError.
    """

    title: str
    residual: Callable[[], Any]
    covers: tuple[int, ...] = ()
    scope: Scope = Scope.SIZE
    kind: Kind = Kind.SYMBOLIC

    def __post_init__(self) -> None:
        if self.covers and self.scope is not Scope.GENERAL:
            raise ValueError(f"'{self.title}' ({self.scope}) covers no clause")

    def run(self, effort: Effort) -> Outcome:
        residual, data = self.residual(), {"scope": str(self.scope)}
        try:
            left = [simplified(entry) for entry in entries(residual)]
        except ValueError as error:
            return Outcome(None, str(error), None, data)
        if wrong := [entry for entry in left if entry != 0]:
            return Outcome(False, f"the residual is {wrong[0]}, not 0", None, data)
        if not left:
            return Outcome(None, "the residual has no entries", None, data)
        words = f"residual exactly 0 ({len(left)} entries, {self.scope})"
        return Outcome(True, words, None, data)


# Of each instance in turn: True where it is certified, False where it could not be decided, or a
# counterexample in exact numbers.
Settled = Iterator[bool | str]


@dataclass(frozen=True)
class Certified:
    """Instances settled by exact or ball arithmetic, up to the first that fails."""

    title: str
    certify: Callable[[Effort], Settled]
    covers: tuple[int, ...] = ()
    kind: Kind = Kind.CERTIFIED

    def run(self, effort: Effort) -> Outcome:
        holding = undecided = 0
        for answer in self.certify(effort):
            if isinstance(answer, str):
                return Outcome(False, f"a certified instance contradicts it: {answer}", answer)
            if not isinstance(answer, bool | np.bool_):
                words = f"it gave {answer!r:.40}: give True, False, or a counterexample in words"
                return Outcome(None, words)
            holding, undecided = holding + answer, undecided + (not answer)
        detail = f"{holding} instances certified, {undecided} undecided"
        data = {"certified": holding, "undecided": undecided}
        return Outcome(True if holding else None, detail, None, data)


def show(value: object) -> str:
    """Exact numbers as a reader writes them: Fraction(3, 4) is 3/4."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, list | tuple):
        inside = ", ".join(show(entry) for entry in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return str(value)


def read(text: str) -> Matrix:
    """A matrix of fractions as `show` writes it."""
    rows = text.removeprefix("[[").removesuffix("]]").split("], [")
    return [[Fraction(entry) for entry in row.split(", ")] for row in rows]


@dataclass(frozen=True)
class Counterexample:
    """Exact numbers that satisfy the hypotheses and violate the statement, checked step by step.

    cases: the instances themselves; what is printed is printed from them. of: whether it refutes
    the paper's own words or our reading of them.
    """

    title: str
    cases: tuple[Instance, ...]
    steps: tuple[Step, ...]
    of: Status = Status.REFUTED
    covers: tuple[int, ...] = (1,)
    kind: Kind = Kind.COUNTEREXAMPLE

    @property
    def numbers(self) -> str:
        """The cases, each matrix once."""
        matrices = (
            (name, dict.fromkeys(show(M) for case in self.cases if (M := getattr(case, field))))
            for name, field in (("A", "A"), ("H", "H"), ("X_0", "X0"))
        )
        return ", ".join(f"{name} = {' and '.join(each)}" for name, each in matrices if each)

    def run(self, effort: Effort) -> Outcome:
        if not self.cases:
            return Outcome(None, "no instance is given")
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
    covers: tuple[int, ...] = ()
    kind: Kind = Kind.SIMULATED

    def run(self, effort: Effort) -> Outcome:
        rows = list(self.measure(effort))
        data = {"measurements": [vars(row) for row in rows]}
        for row in rows:
            if not row.agrees:
                said = f"{row.what}: predicted {row.predicted:.10g}, measured {row.measured:.10g}"
                return Outcome(False, said, None, data)
        if not rows:
            return Outcome(None, "nothing was measured", None, data)
        if any(row.tolerance == math.inf for row in rows):
            return Outcome(None, "an infinite tolerance agrees with every number", None, data)
        gap, worst = max((abs(row.measured - row.predicted), row.what) for row in rows)
        detail = f"{len(rows)} measurements agree, worst {worst}: off by {gap:.1e}"
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


Part = Step | str | Callable[[], object]

_LABEL = re.compile(r"\[([\d, ]*)(?:; )?([a-z ]*)\] ")


def written(title: str, *parts: Part) -> Written:
    """A written proof; it covers the clauses that its steps cover."""
    return Written(title, tuple(part if isinstance(part, Step) else step(part) for part in parts))


def step(part: str | Callable[[], object]) -> Step:
    """The step that a text or a function is.

    Raises ValueError where it does not say what it is for, or what its check covers.
    """
    text = " ".join(((part if isinstance(part, str) else part.__doc__) or "").split())
    label = _LABEL.match(text)
    if label is None:
        raise ValueError(f"for which clauses is the step '{text[:40]}'?")
    covers = tuple(int(k) for k in label[1].split(",") if k.strip())
    words, scope = text[label.end() :], label[2].strip()
    if isinstance(part, str) == bool(scope):
        raise ValueError(f"what does the check of the step '{text[:40]}' cover?")
    return Step(words, None if isinstance(part, str) else part, Scope(scope or "instance"), covers)


# ---------------------------------------------------------------------------- what was executed

# Assertions count where they stand in a claim, in the checks that claims share, or in the file of
# the check itself.
_OURS = ("/theory/claims/", "/theory/proofs/checks.py")


@cache
def _counted(path: str, own: str) -> frozenset[int]:
    """The lines of a file on which an assertion stands, whole; none where they do not count."""
    if path != own and not any(part in path for part in _OURS):
        return frozenset()
    try:
        tree = ast.parse(Path(path).read_text("utf-8"))
    except (OSError, SyntaxError):
        return frozenset()
    assertions = (node for node in ast.walk(tree) if isinstance(node, ast.Assert))
    return frozenset(
        k for node in assertions for k in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    )


def executed(check: Callable[..., Any], *arguments: Any) -> tuple[Any, bool]:
    """What the check returns, and whether a line of an assertion ran while it did."""
    own = file_of(check)
    ran = False

    def within(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal ran
        if event == "line" and frame.f_lineno in _counted(frame.f_code.co_filename, own):
            ran = True
            sys.settrace(None)  # what runs from here on need not be seen
        return within

    def entering(frame: FrameType, event: str, _: Any) -> Any:
        return within if _counted(frame.f_code.co_filename, own) else None

    with traced(entering):
        return check(*arguments), ran


@contextmanager
def traced(by: Any) -> Iterator[None]:
    """What runs within is seen by this function alone, by none where it is None."""
    before = sys.gettrace()
    sys.settrace(by)
    try:
        yield
    finally:
        sys.settrace(before)


def raised_in(error: BaseException, file: str) -> str:
    """Where in this file the error arose: "mine.py, line 12 (`return a / b`): "; empty where it
    arose elsewhere."""
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if not lines:
        return ""
    code = shorten(lines[-1].line or "", 80, placeholder=" ...")
    return f"{Path(file).name}, line {lines[-1].lineno} (`{code}`): "


def stated_at(check: Any) -> str:
    """Where the check begins: "mine.py, line 10: "; empty where nothing says so."""
    code = _code(check)
    return f"{Path(code.co_filename).name}, line {code.co_firstlineno}: " if code else ""


def _code(check: Any) -> CodeType | None:
    while hasattr(check, "func"):
        check = check.func
    code = getattr(check, "__code__", None)
    return code if isinstance(code, CodeType) else None


def file_of(check: Any) -> str:
    """The file of a function; empty where it has none."""
    code = _code(check)
    return code.co_filename if code else ""
