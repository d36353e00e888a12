"""The project's answers held against the oracle's: right, wrong, undecided or crashed, by field."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import oversmoothing

from .depths import cosines, log_ratio, norms, squared_ratio, states
from .draw import Case, as_read, draw
from .matrices import Rationals
from .moduli import TooHard
from .rounding_cell import members_answers, witness
from .system import System
from .tokens import judged_tokens
from .truth import Truth, truth
from .worker import SECONDS, answers, patience

RIGHT, WRONG, UNDECIDED, CRASHED = "right", "wrong", "UNDECIDED", "crashed"
# Not true of the floats given, and true of the fractions that were rounded to them.
AS_MEANT = "as meant"
# UNDECIDED where cases that round to the same floats have different answers: two of them are shown.
RIGHTLY = "rightly"
OUTCOMES = RIGHT, WRONG, UNDECIDED, CRASHED, AS_MEANT, RIGHTLY
NUMBERS = "fractions", "dyadic", "rounded"
FIELDS = (
    *("verdict", "verdict_x0", "tends_to", "limit", "limit_rank"),
    *("ratios", "cosines", "zero tokens", "evolve"),
    *("token_growth", "cosine_limits", "cos_min", "cos_mean"),
)
DEPTHS = (0, 1, 2, 5, 20)
# What the oracle may take for one case, in seconds.
_PATIENCE = 4.0
# And for its tokens and their cosines.
_PATIENCE_WITH_TOKENS = 2.0
# A claimed error may be too small by this factor.
_SLACK = 10
# Nothing is said about the last digits of a float.
_FLOOR = 1e-13
# Errors above this are no answer.
_USELESS = 1e-6


@dataclass(frozen=True)
class Finding:
    """One field of one case: what came of it, what the project said, what is true."""

    case: Case
    field: str
    outcome: str
    said: str
    true: str


@dataclass
class Report:
    """Counts by (field, numbers, outcome), and the findings that are wrong or crashed."""

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    bad: list[Finding] = field(default_factory=list)
    too_hard: list[str] = field(default_factory=list)

    def add(self, finding: Finding) -> None:
        self.counts[finding.field, finding.case.numbers, finding.outcome] += 1
        if finding.outcome in (WRONG, CRASHED):
            self.bad.append(finding)

    def count(self, name: str, *outcomes: str) -> int:
        return sum(k for (f, _, o), k in self.counts.items() if f == name and o in outcomes)


def run(count: int, seed: int, first: int = 0) -> Report:
    """`count` drawn cases of a seed."""
    return compare_all(draw(seed, index) for index in range(first, first + count))


def compare_all(cases: Iterable[Case]) -> Report:
    """All of them, in another process: what gives no answer in time counts as crashed."""
    report = Report()
    for case, found in answers(_attempt, cases):
        if isinstance(found, str):
            report.too_hard.append(f"{case.name}: {found}")
        elif found is None:
            report.add(Finding(case, "verdict", CRASHED, f"no answer in {SECONDS:g} s", ""))
        else:
            for finding in found:
                report.add(finding)
    return report


def _attempt(case: Case) -> list[Finding] | str:
    try:
        return list(compare(case))
    except TooHard as reason:
        return str(reason)


def compare(case: Case) -> Iterator[Finding]:
    """The findings of one case, field by field. Raises `TooHard` where the oracle gives up."""
    A, H, X0 = as_read(case)
    with patience(_PATIENCE, TooHard(f"over {_PATIENCE:g} s")):
        expected = truth(A, H, X0)
    system = System(A, H)
    given = {"A": _given(case, case.A), "H": _given(case, case.H), "X0": _given(case, case.X0)}

    def finding(name: str, outcome: str, said: object, true: object) -> Finding:
        return Finding(case, name, outcome, _words(said), _words(true))

    try:
        answer = oversmoothing.verdict(**given, depth=DEPTHS)
    except Exception as error:
        yield finding("verdict", CRASHED, repr(error), sorted(expected.verdict))
        return
    fields = _judged(answer, expected, case.numbers != "rounded")
    if WRONG in fields.values() and case.meant is not None:
        for name, outcome in _judged(answer, truth(*case.meant), False).items():
            if fields[name] == WRONG and outcome == RIGHT:
                fields[name] = AS_MEANT
    if UNDECIDED in fields.values() and case.numbers == "rounded":
        known = members_answers(case)
        for name, outcome in fields.items():
            if outcome == UNDECIDED and witness(known, name) is not None:
                fields[name] = RIGHTLY
    for name, outcome in fields.items():
        true = getattr(expected, name)
        said = getattr(answer, name)
        yield finding(name, outcome, said, sorted(true) if isinstance(true, frozenset) else true)
    yield from _of_tokens(answer, (A, H, X0), case, finding)
    reached = states(system, X0, (*DEPTHS, *case.evolved))
    for L in DEPTHS:
        squared = squared_ratio(reached[L])
        said = answer.hfc_lfc[L]
        outcome = _ratio(said, squared, exact=not case.binary64)
        yield finding("ratios", outcome, f"L = {L}: log {said.log}, value {said.value}", squared)
    if case.numbers == "dyadic":
        yield from _evolved(case, system, reached, finding)


def _words(x: object) -> str:
    """Short, whatever the number of digits."""
    if isinstance(x, tuple):
        return " to ".join(map(_words, x))
    if isinstance(x, Fraction):
        return (
            "0"
            if not x
            else f"{'-' * (x < 0)}exp({2 * log_ratio(abs(x.numerator), x.denominator):.12g})"
        )
    return str(x)


def _given(case: Case, M: Rationals) -> list[list[Any]]:
    return [[float(x) if case.binary64 else x for x in row] for row in M]


def _judged(answer: Any, expected: Truth, exact: bool) -> dict[str, str]:
    assert expected.verdict_x0 is not None
    return {
        "verdict": _outcome(answer.verdict, expected.verdict),
        "verdict_x0": _outcome(answer.verdict_x0, expected.verdict_x0),
        "tends_to": _same(answer.tends_to, expected.tends_to),
        "limit": _limit(answer.limit, expected, exact),
        "limit_rank": _same(answer.limit_rank, expected.limit_rank),
    }


def _outcome(said: Any, true: frozenset[str]) -> str:
    if said in true:
        return RIGHT
    return UNDECIDED if said == "UNDECIDED" else WRONG


def _same(said: object, true: object) -> str:
    if said == true:
        return RIGHT
    return UNDECIDED if said is None else WRONG


def _limit(said: float | None, expected: Truth, exact: bool) -> str:
    if not isinstance(expected.limit, tuple):
        return _same(said, expected.limit)
    if said is None:
        return UNDECIDED
    if not math.isfinite(said):
        return WRONG
    low, high = expected.limit
    near = Fraction(1, 10**9 if exact else 10**6)
    return RIGHT if low * (1 - near) <= Fraction(said) <= high * (1 + near) else WRONG


def _ratio(said: Any, squared: Fraction | float | None, exact: bool) -> str:
    if squared is None:
        return RIGHT if said.value is None and said.log is None else WRONG
    if said.log is None:
        return UNDECIDED
    if exact and isinstance(squared, Fraction) and said.squared != squared:
        return WRONG
    true = squared if squared == math.inf else log_ratio(squared.numerator, squared.denominator)
    return _close(said.log, true, 1e-9 if exact else 1e-6)


def _close(said: float, true: float, tolerance: float) -> str:
    if math.isinf(true) or math.isinf(said):
        return RIGHT if said == true else WRONG
    return RIGHT if abs(said - true) <= tolerance * max(1.0, abs(true)) else WRONG


def _of_tokens(
    answer: Any, case: tuple[Rationals, ...], of: Case, finding: Callable[..., Finding]
) -> Iterator[Finding]:
    """Growth and cosines; nothing where the oracle gives up. What binary64 means is not asked."""
    if of.numbers == "rounded":
        return
    try:
        with patience(_PATIENCE_WITH_TOKENS, TooHard("tokens")):
            found = list(judged_tokens(answer, *case))
    except TooHard:
        return
    for name, outcome, said, true in found:
        yield finding(name, outcome, said, true)


def _evolved(
    case: Case, system: System, reached: dict, finding: Callable[..., Finding]
) -> Iterator[Finding]:
    """`evolve` on binary64 input that means itself exactly, by its own claimed errors."""
    A, H, X0 = ([[float(x) for x in row] for row in M] for M in (case.A, case.H, case.X0))
    try:
        run = oversmoothing.evolve(X0=X0, A=A, H=H, depth=case.evolved)
        table = run.metrics()
    except Exception as error:
        yield finding("evolve", CRASHED, repr(error), "")
        return
    claims = zip(run.error, run.cosine_error, strict=True)
    rows = table.to_dict("records")
    for L, (error, turned), row in zip(case.evolved, claims, rows, strict=True):
        state, words = reached[L], f"L = {L} ({run.method}, error {error:.1e}, {turned:.1e})"
        true, said = log_ratio(*norms(state)), row["log_hfc_lfc"]
        yield finding("evolve", _claimed(said, true, error), f"{words}: {said}", true)
        kind = "cosines" if all(map(any, state)) else "zero tokens"
        for name, value in cosines(state).items():
            outcome = _claimed(row[name], value, turned)
            yield finding(kind, outcome, f"{words}: {name} {row[name]}", value)


def _claimed(said: float, true: float, error: float) -> str:
    """Whether a number is as exact as is said of it."""
    if math.isfinite(true) and not error <= _USELESS:
        return UNDECIDED
    if math.isnan(true) or math.isinf(true) or not math.isfinite(said):
        return RIGHT if said == true or (math.isnan(said) and math.isnan(true)) else WRONG
    return RIGHT if abs(said - true) <= _SLACK * error + _FLOOR * max(1.0, abs(true)) else WRONG
