"""Proofs as they are read: the words of each step, and with them the code that executes it.

A step is a string (words alone) or a function: its docstring is the words, its body the check. The
body asserts, or returns a sympy residual (scalar, matrix or list) that must vanish identically.
"""

from collections.abc import Callable, Sequence
from functools import partial

from oversmoothing.theory.numbers.rational import Matrix
from oversmoothing.theory.proofs.checks import meets, vanishes
from oversmoothing.theory.proofs.claim import Claim, Hypothesis, Status
from oversmoothing.theory.proofs.evidence import Counterexample, Step, Written

Part = Step | str | Callable[[], object]


def written(title: str, *parts: Part, complete: bool = True) -> Written:
    """A written proof; complete: whether it belongs to the proof of the whole statement."""
    return Written(title, tuple(_step(part) for part in parts), complete)


def _step(part: Part) -> Step:
    if isinstance(part, Step):
        return part
    if isinstance(part, str):
        return Step(_on_one_line(part))
    assert part.__doc__, "a step needs its words: the docstring of the function"
    return Step(_on_one_line(part.__doc__), lambda: vanishes(part()))


def _on_one_line(words: str) -> str:
    return " ".join(words.split())


Case = tuple[Matrix, Matrix] | tuple[Matrix, Matrix, Matrix]


def refuted(
    *,
    name: str,
    statement: str,
    latex: str,
    source: str,
    title: str,
    numbers: str,
    at: Sequence[Case],
    steps: Sequence[Part],
    hypotheses: tuple[Hypothesis, ...],
    repaired_by: str,
    further: str = "",
) -> Claim:
    """A statement of a paper that fails: the cases `at`, (A, H) or (A, H, X0), satisfy its
    hypotheses, and the steps lead to the contradiction that `title` and `numbers` announce."""
    words = f"The hypotheses hold: {'; '.join(h.words for h in hypotheses)}."
    first = [Step(words, partial(meets, hypotheses, *case)) for case in at]
    return Claim(
        name=name,
        statement=statement,
        latex=latex,
        source=source,
        on_record=Status.REFUTED,
        evidence=(Counterexample(title, numbers, (*first, *map(_step, steps))),),
        hypotheses=hypotheses,
        repaired_by=repaired_by,
        further=further,
    )
