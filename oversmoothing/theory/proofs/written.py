"""Proofs as they are read: the words of each step, and with them the code that executes it.

A step is a text, or a function: its docstring is the text, its body the check, which asserts or
returns what must vanish identically (a scalar, a matrix, a list). The text begins with what it is
for: "[1, 2] By T1d ..." are words for clauses 1 and 2, "[1; fixed size] ..." is a function whose
check illustrates a step of clause 1 at a fixed size, "[instance] ..." one that proves no clause. A
claim that a step names is one it rests on.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial

from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.proofs.checks import meets
from oversmoothing.theory.proofs.claim import (
    THE_PAPERS,
    Claim,
    Evidence,
    Hypothesis,
    Instance,
    Scope,
    Status,
)
from oversmoothing.theory.proofs.evidence import Counterexample, Step, Written

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
    found = _LABEL.match(text)
    if found is None:
        raise ValueError(f"for which clauses is the step '{text[:40]}'?")
    covers = tuple(int(k) for k in found[1].split(",") if k.strip())
    words, scope = text[found.end() :], found[2].strip()
    if isinstance(part, str) == bool(scope):
        raise ValueError(f"what does the check of the step '{text[:40]}' cover?")
    return Step(words, None if isinstance(part, str) else part, Scope(scope or "instance"), covers)


Case = tuple[Matrix, Matrix] | tuple[Matrix, Matrix, Matrix]


def refuted(
    *,
    name: str,
    statement: str,
    latex: str,
    source: str,
    wording: str,
    title: str,
    at: Sequence[Case],
    steps: Sequence[Part],
    hypotheses: tuple[Hypothesis, ...],
    repaired_by: str,
    formal: Evidence | None = None,
    further: str = "",
) -> Claim:
    """A statement of a paper that fails: the cases `at`, (A, H) or (A, H, X0), satisfy its
    hypotheses, and the steps lead to the contradiction that `title` announces. wording: of what
    that is a refutation, as in `Claim`; formal: the same, checked by Coq."""
    of = Status.REFUTED_WORDS if wording.startswith(THE_PAPERS) else Status.REFUTED_READING
    met = f"The hypotheses hold: {'; '.join(h.words for h in hypotheses)}."
    cases = tuple(Instance(*case) for case in at)
    first = [Step(met, partial(meets, hypotheses, case)) for case in cases]
    found = Counterexample(title, cases, (*first, *map(_part, steps)), of)
    return Claim(
        name=name,
        clauses=(statement,),
        latex=latex,
        source=source,
        on_record=of,
        evidence=(found, *([formal] if formal else [])),
        hypotheses=hypotheses,
        repaired_by=repaired_by,
        further=further,
        wording=wording,
    )


def _part(part: Part) -> Step:
    if isinstance(part, Step):
        return part
    return step(f"[] {part}") if isinstance(part, str) else Step(_words(part), part)


def _words(check: Callable[[], object]) -> str:
    assert check.__doc__, "a step needs its words: the docstring of the function"
    return " ".join(check.__doc__.split())
