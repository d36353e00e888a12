"""Proofs as they are read: the words of each step, and with them the code that executes it.

A step is words alone (`words`), or a function under one of the decorators `general`, `fixed_size`
and `instance`, which say what its check covers: its docstring is the words, its body the check. The
body asserts, or returns what must vanish identically (a scalar, a matrix, a list).
"""

from collections.abc import Callable, Sequence
from functools import partial

from oversmoothing.theory.numbers.rational import Matrix
from oversmoothing.theory.proofs.checks import meets
from oversmoothing.theory.proofs.claim import Claim, Evidence, Hypothesis, Instance, Scope, Status
from oversmoothing.theory.proofs.evidence import Counterexample, Step, Written

Part = Step | str | Callable[[], object]


def written(title: str, *steps: Step) -> Written:
    """A written proof; it covers the clauses that its steps cover."""
    return Written(title, steps)


def words(text: str, *covers: int, by: Sequence[str] = ()) -> Step:
    """A step that no machine executes. by: the claims on which it rests."""
    return Step(" ".join(text.split()), None, Scope.INSTANCE, covers, tuple(by))


def _decorator(scope: Scope, covers: tuple[int, ...], by: Sequence[str]) -> Callable[..., Step]:
    def step(check: Callable[[], object]) -> Step:
        assert check.__doc__, "a step needs its words: the docstring of the function"
        return Step(" ".join(check.__doc__.split()), check, scope, covers, tuple(by))

    return step


def general(*covers: int, by: Sequence[str] = ()) -> Callable[[Callable[[], object]], Step]:
    """A step whose check verifies it as stated."""
    return _decorator(Scope.GENERAL, covers, by)


def fixed_size(*covers: int, by: Sequence[str] = ()) -> Callable[[Callable[[], object]], Step]:
    """A step whose check, in symbols of a fixed size, illustrates it."""
    return _decorator(Scope.SIZE, covers, by)


def instance(*covers: int, by: Sequence[str] = ()) -> Callable[[Callable[[], object]], Step]:
    """A step whose check, of examples, illustrates it."""
    return _decorator(Scope.INSTANCE, covers, by)


Case = tuple[Matrix, Matrix] | tuple[Matrix, Matrix, Matrix]


def refuted(
    *,
    name: str,
    statement: str,
    latex: str,
    source: str,
    title: str,
    at: Sequence[Case],
    steps: Sequence[Part],
    hypotheses: tuple[Hypothesis, ...],
    repaired_by: str,
    of: Status = Status.REFUTED_READING,
    formal: Evidence | None = None,
    further: str = "",
) -> Claim:
    """A statement of a paper that fails: the cases `at`, (A, H) or (A, H, X0), satisfy its
    hypotheses, and the steps lead to the contradiction that `title` announces. of: whether the
    statement is the paper's own words or our reading of them; formal: the same, checked by Coq."""
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
    )


def _part(part: Part) -> Step:
    if isinstance(part, Step):
        return part
    return words(part) if isinstance(part, str) else instance()(part)
