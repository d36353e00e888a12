"""A chapter of claims: statements and evidence in t2.md, what executes in t2.py beside it.

The Markdown file is the chapter as it is read; the Python file makes a `Chapter` and registers with
it what runs. `items` tells how a line is read. All that a claim has:

    ## T2b: consensus loses exactly on (-2/(1+a), 0)

    - status: machine-checked
    - source: ours
    - hypotheses: POSITIVE, REAL_A, one_pair        given.NAME, or a hypothesis of the Python file
    - setting, wording, instead, further: ...       each where there is one

    $$|1+h| < |1+ha| \\iff -\\tfrac{2}{1+a} < h < 0$$

    1. The first clause, and beneath it the evidence that covers it.
       - coq [1, 3]: T2_real.identity               [1, 3]: for these clauses, not for 1 alone
         - type: its closed type as Coq prints it
       - query: its title
         - given `0 < h; h < 1`, then `k < h`, at `h=1/2`, where `k := h*h`     or CORNERS
         - unless 1 is admitted: without `h < 1`, given `h <= 1`, at `h=1`
       - sharp: as a query, but each `unless` is evaluated at its point and no solver is asked

    - search: `matrix_law`: its title               beneath no clause: it covers none, or [1, 2]
      - against: 1, 2
      - box: n = 2 to 4; d = 1; entries = in sixths; instances = 200
    - certified: `at_real_size`: its title          simulated: the same
    - symbolic [2]: its title
      - verified: `residual`

    Proof: its title

    1. [1, 2] A step in words for clauses 1 and 2. The claims that it names are those it rests on.
    2. [1] A step that is executed.
       - illustrated: `function`                    or verified, or illustrated at a fixed size

    Counterexample: its title

    - at: `name`: A = [[1]], H = [[-4]]             the case of that name, and its numbers
    1. Steps as in a proof.

A line that is none of this is an error, and so is a step without its function, a function that no
line names, a clause that no evidence covers, a theorem that is not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from hypothesis.strategies import SearchStrategy

from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.proofs.claim import Claim, Effort, Instance
from oversmoothing.theory.proofs.evidence import Certified, Measurements, Settled, Simulated
from oversmoothing.theory.proofs.items import sections
from oversmoothing.theory.proofs.search import At, law, searched
from oversmoothing.theory.proofs.stated import Reader
from oversmoothing.theory.support.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])


class Chapter:
    """What a chapter executes, by the names under which its Markdown file speaks of it."""

    def __init__(self, file: str) -> None:
        self.path = Path(file).resolve().with_suffix(".md")
        self._registered: dict[str, Any] = {}
        self._named: set[str] = set()

    def _register(self, name: str, part: Any) -> None:
        if name in self._registered:
            raise ValueError(f"{self.path.stem}.py registers '{name}' twice")
        self._registered[name] = part

    def step(self, check: F) -> F:
        """The check of a step: it asserts, or returns what must vanish identically."""
        self._register(check.__name__, check)
        return check

    def search(
        self,
        *draws: SearchStrategy[Any],
        at: At | None = None,
        tolerance: Any = None,
        name: str = "",
    ) -> Callable[[F], F]:
        """The decorator of a law that takes what the strategies draw; see `search.Searched`.

        name: under which it is known, where one law is searched twice.
        """

        def register(law: F) -> F:
            found = replace(searched("", law, *draws, at=at), tolerance=tolerance)
            self._register(name or law.__name__, found)
            return law

        return register

    def law(
        self, draws: SearchStrategy[Any] | None = None, *, tolerance: Any = None
    ) -> Callable[[F], F]:
        """The decorator of a law of (A, H) or (A, H, X0) that says whether it holds there."""

        def register(holds: F) -> F:
            self._register(holds.__name__, law(holds, draws, title="", tolerance=tolerance))
            return holds

        return register

    def certified(self, certify: Callable[[Effort], Settled]) -> Callable[[Effort], Settled]:
        """Instances settled one by one, for a `certified` line."""
        self._register(certify.__name__, Certified("", certify))
        return certify

    def simulated(self, measure: Callable[[Effort], Measurements]) -> Any:
        """A table of what is predicted and measured, for a `simulated` line."""
        self._register(measure.__name__, Simulated("", measure))
        return measure

    def case(self, name: str, A: Matrix, H: Matrix, X0: Matrix | None = None) -> Instance:
        """The instance of a counterexample."""
        self._register(name, found := Instance(A, H, X0))
        return found

    def claims(self, names: Mapping[str, object]) -> dict[str, Claim]:
        """The claims of the chapter by name, in its order. names: those of its Python file.

        Raises `InputError`, with file and line, for whatever is not as it should be.
        """
        found = {}
        for section in sections(self.path):
            with section.told():
                claim = Reader(section, self._find, names).claim()
            if claim.name in found:
                raise section.error(section.line, f"{claim.name} stands here for the second time")
            found[claim.name] = claim
        if left := [name for name in self._registered if name not in self._named]:
            python = self.path.with_suffix(".py")
            line = _line_of(left[0], python)
            words = f"no line of {self.path.name} names '{left[0]}'"
            raise InputError(f"{python.name}, line {line}: {words}")
        return found

    def _find(self, name: str) -> Any:
        """What is registered under a name; None where nothing is."""
        self._named.add(name)
        return self._registered.get(name)


def _line_of(name: str, python: Path) -> int:
    lines = python.read_text("utf-8").splitlines()
    return next((k for k, line in enumerate(lines, 1) if re.search(rf"\b{name}\b", line)), 1)
