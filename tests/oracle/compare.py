"""The project's answers held against the oracle's: right, wrong, undecided or crashed, by field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random
from typing import Any

import oversmoothing

from .angles import Tokens
from .depths import cosines, log_ratio, norms, squared_ratio, states
from .draw import Case, as_read, draw
from .generic import drawn_start, generic_truth
from .judging import (
    AS_MEANT,
    CRASHED,
    RIGHT,
    RIGHTLY,
    UNDECIDED,
    WRONG,
    claimed,
    judged,
    judged_generic,
    ratio,
)
from .matrices import Rationals
from .moduli import TooHard
from .rounding_cell import differ, members_answers, witness
from .softmax import draw_logits, softmax
from .system import System
from .tokens import judged_onset, judged_tokens
from .truth import Truth, truth
from .worker import SECONDS, answers, patience

NUMBERS = "fractions", "dyadic", "rounded", "logits"
FIELDS = (
    *("verdict", "verdict_x0", "tends_to", "limit", "limit_rank"),
    *("generic tends_to", "generic limit", "generic limit_rank"),
    *("ratios", "cosines", "zero tokens", "evolve"),
    *("shows_from", "token_growth", "cosine_limits", "cos_min", "cos_mean"),
)
DEPTHS = (0, 1, 2, 5, 20)
# One case with logits to so many others, and the shares of drawn cases that are looked at in full.
_EVERY_LOGITS = 20
_SHARES = {"generic": 0.4, "evolve": 0.5}
# What the oracle may take for one case, in seconds.
_PATIENCE = 4.0
# And for its tokens and their cosines.
_PATIENCE_WITH_TOKENS = 2.0


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
    """`count` drawn cases of a seed, and one with logits to every so many of them."""
    return compare_all(_drawn(seed, range(first, first + count)))


def _drawn(seed: int, indices: Iterable[int]) -> Iterator[Case]:
    for index in indices:
        yield draw(seed, index)
        if index % _EVERY_LOGITS == 0:
            yield draw_logits(seed, index)


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
        expected = _agreed(case, lambda A: truth(A, H, X0))
    given = _given(case)

    def finding(name: str, outcome: str, said: object, true: object) -> Finding:
        return Finding(case, name, outcome, _words(said), _words(true))

    try:
        answer = oversmoothing.verdict(**given, X0=_entries(case, case.X0), depth=DEPTHS)
    except Exception as error:
        yield finding("verdict", CRASHED, repr(error), sorted(expected.verdict))
        return
    exact = case.numbers in ("fractions", "dyadic")
    fields = judged(answer, expected, exact)
    _excuse(case, fields, lambda true: judged(answer, true, False))
    for name, outcome in fields.items():
        yield finding(name, outcome, getattr(answer, name), _sorted(getattr(expected, name)))
    yield from _of_tokens(answer, (A, H, X0), case, finding)
    iterated = case.numbers == "dyadic" or (case.numbers == "rounded" and _takes(case, "evolve"))
    system = System(A, H)
    reached = states(system, X0, (*DEPTHS, *(case.evolved if iterated else ())))
    for L in DEPTHS:
        squared = squared_ratio(reached[L])
        said = answer.hfc_lfc[L]
        outcome = ratio(said, squared, exact=not case.binary64)
        yield finding("ratios", outcome, f"L = {L}: log {said.log}, value {said.value}", squared)
    if iterated:
        yield from _evolved(case, reached, finding)
    if _takes(case, "generic"):
        yield from _generic(case, exact, finding)


def _takes(case: Case, what: str) -> bool:
    """Named cases all, and a share of the drawn ones: the oracle's time is limited."""
    return case.kind[0] == "named" or Random(f"{what}/{case.name}").random() < _SHARES[what]


def _agreed(case: Case, true: Callable[[Rationals], Truth]) -> Truth:
    """What is true; of a softmax what its bounds from below and from above agree on."""
    found = true(as_read(case)[0])
    if case.logits is not None:
        other = true(softmax(case.logits, above=True))
        if any(differ(found, other, name) for name in ("verdict", "tends_to", "limit_rank")):
            raise TooHard("a softmax too close to a boundary")
    return found


def _excuse(case: Case, fields: dict[str, str], judge: Callable[[Truth], dict[str, str]]) -> None:
    """What is right of the fractions that were rounded, and what is rightly left undecided."""
    if WRONG in fields.values() and case.meant is not None:
        for name, outcome in judge(truth(*case.meant)).items():
            if fields[name] == WRONG and outcome == RIGHT:
                fields[name] = AS_MEANT
    if UNDECIDED in fields.values() and case.numbers in ("rounded", "logits"):
        known = members_answers(case)
        for name, outcome in fields.items():
            if outcome == UNDECIDED and witness(known, name) is not None:
                fields[name] = RIGHTLY


def _generic(case: Case, exact: bool, finding: Callable[..., Finding]) -> Iterator[Finding]:
    """The limits for generic X_0."""
    _, H, X0 = as_read(case)
    rng = Random(f"start/{case.name}")
    seeds = rng.random()
    with patience(_PATIENCE, TooHard(f"generic, over {_PATIENCE:g} s")):
        expected = _agreed(case, lambda A: generic_truth(A, H, Random(seeds)))
    try:
        answer = oversmoothing.verdict(**_given(case))
    except Exception as error:
        yield finding("generic tends_to", CRASHED, repr(error), expected.tends_to)
        return
    fields = judged_generic(answer, expected, exact)
    start = drawn_start(len(X0), len(H), rng)
    meant = case.meant and (*case.meant[:2], start)
    varies = expected.tends_to == "constant" and expected.limit is None

    def judge(true: Truth) -> dict[str, str]:
        known = replace(true, limit=None) if varies else true
        return judged_generic(answer, known, False)

    _excuse(replace(case, X0=start, meant=meant), fields, judge)
    for name, outcome in fields.items():
        yield finding(f"generic {name}", outcome, getattr(answer, name), getattr(expected, name))


def _sorted(true: object) -> object:
    return sorted(true) if isinstance(true, frozenset) else true


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


def _given(case: Case) -> dict[str, Any]:
    H = _entries(case, case.H)
    if case.logits is None:
        return {"A": _entries(case, case.A), "H": H}
    table = [["-inf" if x is None else float(x) for x in row] for row in case.logits]
    return {"logits": table, "H": H}


def _entries(case: Case, M: Rationals) -> list[list[Any]]:
    return [[float(x) if case.binary64 else x for x in row] for row in M]


def _of_tokens(
    answer: Any, case: tuple[Rationals, ...], of: Case, finding: Callable[..., Finding]
) -> Iterator[Finding]:
    """Growth, cosines, `shows_from`; nothing where the oracle gives up, or of rounded numbers."""
    if of.numbers in ("rounded", "logits"):
        return
    try:
        with patience(_PATIENCE_WITH_TOKENS, TooHard("tokens")):
            tokens = Tokens(*case)
            found = [*judged_onset(answer, tokens), *judged_tokens(answer, tokens)]
    except TooHard:
        return
    for name, outcome, said, true in found:
        yield finding(name, outcome, said, true)


def _evolved(case: Case, reached: dict, finding: Callable[..., Finding]) -> Iterator[Finding]:
    """`evolve` on binary64 input, the rows of A over their sums, by its own claimed errors."""
    given = ([[float(x) for x in row] for row in M] for M in (case.A, case.H, case.X0))
    try:
        A, H, X0 = given
        run = oversmoothing.evolve(X0=X0, A=A, H=H, depth=case.evolved)
        table = run.metrics()
    except Exception as error:
        yield finding("evolve", CRASHED, repr(error), "")
        return
    claims = zip(run.error, run.cosine_error, strict=True)
    rows = table.to_dict("records")
    for L, (error, turned), row in zip(case.evolved, claims, rows, strict=True):
        words = f"L = {L} ({run.method}, error {error:.1e}, {turned:.1e})"
        true = _numbers(reached[L])
        outcomes = _claims(row, true, error, turned)
        if WRONG in outcomes.values() and case.meant is not None:
            A, H, X0 = case.meant
            # Doubly stochastic up to rounding counts as such, whatever X_0 rounds to.
            for system, start in ((System(A, H), X0), (System(A, case.H), case.X0)):
                meant = _claims(row, _numbers(states(system, start, [L])[L]), error, turned)
                for name, outcome in meant.items():
                    if outcomes[name] == WRONG and outcome == RIGHT:
                        outcomes[name] = AS_MEANT
        for name, outcome in outcomes.items():
            kind = "cosines" if all(map(any, reached[L])) else "zero tokens"
            field = "evolve" if name == "log_hfc_lfc" else kind
            yield finding(field, outcome, f"{words}: {name} {row[name]}", true[name])


def _numbers(state: list[list[int]]) -> dict[str, float]:
    return {"log_hfc_lfc": log_ratio(*norms(state)), **cosines(state)}


def _claims(row: dict, true: dict[str, float], error: float, turned: float) -> dict[str, str]:
    return {
        name: claimed(row[name], value, error if name == "log_hfc_lfc" else turned)
        for name, value in true.items()
    }
