"""A chapter of claims: statements and evidence in t2.md, what executes in t2.py beside it.

The Markdown file is the chapter as it is read; it names the functions of the Python file that run.
`items` tells how a line is read. All that a claim has:

    ## T2b: consensus loses exactly on (-2/(1+a), 0)

    - status: machine-checked
    - source: ours
    - hypotheses: POSITIVE, REAL_A, one_pair        given.NAME, or a hypothesis of the Python file;
      REAL_H ("every W has real eigenvalues")       the same in words of the claim's own
    - setting, wording, instead, further: ...       each where there is one

    $$|1+h| < |1+ha| \\iff -\\tfrac{2}{1+a} < h < 0$$

    1. The first clause, and beneath it the evidence that covers it.
       - coq [1, 3]: T2_real.identity               [1, 3]: for these clauses, not for 1 alone
       - query: its title
         - given `0 < h; h < 1`, then `k < h`, at `h=1/2`, where `k := h*h`     or CORNERS
         - unless 1 is admitted: without `h < 1`, given `h <= 1`, at `h=1`
       - sharp: as a query, but each `unless` is evaluated at its point and no solver is asked

    - search: `matrix_law`: its title               beneath no clause: it covers none, or [1, 2]
    - certified: `at_real_size`: its title          simulated: the same
    - symbolic [2]: its title
      - verified: `residual`

    Proof: its title

    1. [1, 2] A step in words for clauses 1 and 2. The claims that it names are those it rests on.
    2. [1] A step that is executed.
       - illustrated: `function`                    or verified, or illustrated at a fixed size
    3. [2] A step that is one equation or several, n/m a fraction in it.
       - illustrated: `spectra.values(exact.AA) == [1/2, 1]`
    4. [2] A step that is executed at instances that the search of a law draws.
       - illustrated: `matrix_law`

    Counterexample: its title

    - at: A = [[1]], H = [[-4]]                     the numbers; X_0 behind them where there is one
    1. Steps as in a proof, whose functions take A, H and X0 of the case; A_1 ... of several.

A line that is none of this is an error, and so is a step without its function, a search or a public
function without arguments that no line names, a clause that no evidence covers, a theorem that is
not there.
"""

from __future__ import annotations

import ast
import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from inspect import signature
from itertools import chain
from pathlib import Path
from types import FunctionType
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.proofs import (
    exact_spectrum as spectra,
    hypotheses as shared,
    instances as exact,
)
from oversmoothing.theory.proofs.checks import meets
from oversmoothing.theory.proofs.claim import Claim, Evidence, Hypothesis, Instance, Scope, Status
from oversmoothing.theory.proofs.coq import Formal, statement
from oversmoothing.theory.proofs.evidence import (
    Certified,
    Counterexample,
    Simulated,
    Step,
    Symbolic,
    Written,
    read,
    traced,
)
from oversmoothing.theory.proofs.items import Item, Section, sections
from oversmoothing.theory.proofs.reals import CORNERS, ForAllReals, Sharp, for_all
from oversmoothing.theory.proofs.search import At, Searched, searched
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict.verdict import verdict

Law = Callable[..., object]
_FIELDS = ("setting", "wording", "further")
_SCOPES = {
    "verified": Scope.GENERAL,
    "illustrated at a fixed size": Scope.SIZE,
    "illustrated": Scope.INSTANCE,
}
_READING = {Status.REFUTED_WORDS, Status.REFUTED_READING, Status.REFUTED}
_PART = r"(given|without|then|at|where) `([^`]+)`"
_NAMED = re.compile(r"`(\w+)`(?:: (.+))?")
_EQUATION = re.compile(r"`(.+ == .+)`")
_IN_EQUATIONS = {
    "Fraction": Fraction, "exact": exact, "given": shared, "spectra": spectra, "verdict": verdict,
}  # fmt: skip
_CASE = re.compile(r"A = (\[\[.+?\]\]), H = (\[\[.+?\]\])(?:, X_0 = (\[\[.+?\]\]))?")


class Reader:
    """Claims from their sections. names: those of the Python file; named: those that lines name."""

    section: Section
    hypotheses: tuple[Hypothesis, ...]

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = names
        self.named: set[str] = set()
        # Those of the cases of a counterexample, by name, and the names that steps take.
        self.numbers: dict[str, Matrix] = {}
        self.taken: set[str] = set()

    def find(self, name: str) -> Any:
        """What has this name in the Python file; None where nothing has."""
        self.named.add(name)
        return self.names.get(name)

    def claim(self, section: Section) -> Claim:
        self.section, self.numbers = section, {}
        fields = self._fields()
        status = Status(fields.pop("status"))
        clauses = tuple(item.text for item in self.section.clauses)
        self.hypotheses = self._hypotheses(fields.pop("hypotheses", ""))
        evidence = [*self._evidence(), *self._proofs(status)]
        claim = Claim(
            name=self.section.name,
            clauses=clauses,
            latex=self.section.latex,
            source=fields.pop("source"),
            on_record=status,
            evidence=tuple(evidence),
            hypotheses=self.hypotheses,
            repaired_by=fields.pop("instead", None),
            **fields,
        )
        covered = {k for each in evidence for k in each.covers}
        for k, item in enumerate(self.section.clauses, 1):
            if k not in covered and not status.refuted:
                raise item.error(f"no evidence covers clause {k}")
        titles = [each.title for each in evidence]
        if twice := next((title for title in titles if titles.count(title) > 1), None):
            raise self.section.error(f"two pieces of evidence are '{twice}'")
        return claim

    def _fields(self) -> dict[str, Any]:
        known = {"status", "source", "hypotheses", "instead", *_FIELDS}
        values: dict[str, Any] = {}
        for item in self.section.fields:
            key, _, value = item.read(*known)
            if key in values:
                raise item.error(f"a second '{key}'")
            values[key] = value
        if left := {"status", "source"} - values.keys():
            raise self.section.error(f"without {' and '.join(sorted(left))}")
        return values

    def _hypotheses(self, listed: str) -> tuple[Hypothesis, ...]:
        hypotheses = []
        # Words in brackets have commas of their own.
        for part in filter(None, re.split(r",\s*(?![^(]*\))", listed)):
            name, _, words = part.partition(" (")
            one = self.names.get(name, common := getattr(shared, name, None))
            if isinstance(common, Hypothesis) and one is not common:
                raise self.section.error(f"{name} is a shared hypothesis, too")
            if not isinstance(one, Hypothesis):
                raise self.section.error(f"there is no hypothesis {name}")
            hypotheses.append(one.said(words[1:-2]) if words else one)
        return tuple(hypotheses)

    def _evidence(self) -> Iterator[Evidence]:
        clauses = enumerate(self.section.clauses, 1)
        placed = [((k,), item) for k, clause in clauses for item in clause.children]
        for default, item in [*placed, *(((), item) for item in self.section.beside)]:
            key, covers, value = item.read(
                "coq", "query", "sharp", "search", "certified", "simulated", "symbolic"
            )
            with item.told(self.section.name):
                yield self._piece(key, item, default if covers is None else covers, value)

    def _piece(self, key: str, item: Item, covers: tuple[int, ...], value: str) -> Evidence:
        """One piece of evidence; value: what stands behind its key."""
        if key == "query":
            return self._query(item, covers, value)
        if key == "sharp":
            return Sharp(self._query(item, (), value))
        if key == "symbolic":
            check, scope = self._check(item)
            if check is None:
                raise item.error("no function gives the residual")
            return Symbolic(value, check, covers, scope)
        for child in item.children:
            child.read()  # there is to be none
        if key == "coq":
            statement(value)
            return Formal(value, covers)
        named = _NAMED.fullmatch(value)
        if named is None or named[2] is None:
            raise item.error("it needs a name and a title: `law`: in fractions")
        runs = self.find(named[1])
        if not callable(runs):
            raise item.error(f"the Python file has no such '{named[1]}'")
        if key != "search":
            return (Certified if key == "certified" else Simulated)(named[2], runs, covers)
        if not isinstance(runs, Searched):
            raise item.error(f"{value} is no search")
        return replace(runs, title=named[2], covers=covers)

    def _query(self, item: Item, covers: tuple[int, ...], title: str) -> ForAllReals:
        stated, *neighbours = item.children or [item]
        parts = self._parts(stated, stated.text, "given", "then", "at", "where")
        if "where" in parts:
            parts["where"] = _abbreviations(parts["where"])
        query = for_all(title, **parts, covers=covers)
        for child in neighbours:
            words = re.fullmatch(rf"unless (.+?): ({_PART}(?:, {_PART})*)", child.text)
            if words is None:
                raise child.error(f"no false neighbour: '{child.text[:60]}'")
            with child.told(self.section.name):
                given = self._parts(child, words[2], "without", "given", "then", "at")
                query = query.unless(words[1], **given)
        return query

    def _parts(self, item: Item, text: str, *known: str) -> dict[str, Any]:
        if not re.fullmatch(rf"{_PART}(?:, {_PART})*", text):
            raise item.error(f"'{text[:60]}' is no `given ..., then ..., at ...`")
        parts = dict(re.findall(_PART, text))
        if unknown := parts.keys() - set(known):
            raise item.error(f"'{unknown.pop()}' stands in the wrong place")
        return parts

    def _check(self, item: Item) -> tuple[Callable[[], object] | None, Scope]:
        """The function of a step, with the numbers that it takes, and what it covers."""
        if not item.children:
            return None, Scope.INSTANCE
        child, *more = item.children
        scope, _, value = child.read(*_SCOPES)
        if _EQUATION.fullmatch(value):
            equations = [self._equation(each, scope) for each in item.children]
            return lambda: [equation() for equation in equations], _SCOPES[scope]
        named = _NAMED.fullmatch(value)
        check = self.find(named[1]) if named and named[2] is None else None
        if more or not callable(check):
            raise child.error(f"{value} is not one function of the Python file")
        if isinstance(check, Searched):
            return partial(_at_drawn, check, self.hypotheses), _SCOPES[scope]
        takes = signature(check).parameters
        if lacking := [name for name in takes if name not in self.numbers]:
            raise child.error(f"{value} takes {lacking[0]}, and no case has it")
        self.taken |= takes.keys()
        return partial(check, **{name: self.numbers[name] for name in takes}), _SCOPES[scope]

    def _equation(self, item: Item, scope: str) -> Callable[[], None]:
        """The check that it holds, of the numbers of a case and what the Python file has."""
        text = item.read(scope)[2].strip("`")
        try:
            tree = ast.parse(text, mode="eval")
        except SyntaxError as error:
            raise item.error(f"`{text}` is no equation") from error
        self.taken |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        code = compile(ast.fix_missing_locations(_Quotients().visit(tree)), text, "eval")
        names = {**_IN_EQUATIONS, **self.names, **self.numbers}

        def holds() -> None:
            assert eval(code, names), f"not so: {text}"

        return holds

    def _step(self, item: Item) -> Step:
        match = re.fullmatch(r"(?:\[([\d, ]+)\] )?(.+)", item.text)
        assert match is not None
        covers = tuple(int(k) for k in (match[1] or "").split(",") if k.strip())
        return Step(match[2], *self._check(item), covers)

    def _proofs(self, status: Status) -> Iterator[Evidence]:
        for proof in self.section.proofs:
            cases = [self._case(item) for item in proof.cases]
            mark = "_{}" if len(cases) > 1 else ""
            of_cases = [
                {name + mark.format(k): value for name, value in vars(case).items() if value}
                for k, case in enumerate(cases, 1)
            ]
            self.numbers, self.taken = dict(ChainMap(*of_cases)), set()
            steps = tuple(map(self._step, proof.steps))
            if not steps:
                raise proof.error("a proof without steps")
            if proof.kind == "Proof":
                yield Written(proof.title, steps)
                continue
            if status not in _READING:
                raise proof.error(f"a counterexample to what is {status}")
            for item, numbers in zip(proof.cases, of_cases, strict=True):
                if not self.taken & numbers.keys():
                    raise item.error("no step takes the numbers of this case")
            listed = "; ".join(h.words for h in self.hypotheses)
            met = [f"The hypotheses hold: {listed}."]
            met += [f"Layer {k} meets them too." for k in range(2, len(cases) + 1)]
            first = tuple(
                Step(words, partial(meets, self.hypotheses, case))
                for words, case in zip(met, cases, strict=True)
            )
            yield Counterexample(proof.title, tuple(cases), (*first, *steps), status)

    def _case(self, item: Item) -> Instance:
        line = _CASE.fullmatch(item.read("at")[2])
        if line is None:
            raise item.error("a case is A = [[...]], H = [[...]], X_0 = [[...]]")
        return Instance(*(read(part) for part in line.groups() if part))


class _Quotients(ast.NodeTransformer):
    """n/m as a fraction."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        match node:
            case ast.BinOp(
                left=ast.Constant() | ast.UnaryOp(operand=ast.Constant()),
                op=ast.Div(),
                right=ast.Constant(),
            ):
                return ast.Call(ast.Name("Fraction", ast.Load()), [node.left, node.right], [])
        return self.generic_visit(node)


def _at_drawn(law: Searched, hypotheses: Sequence[Hypothesis]) -> None:
    """A step at instances that the search of its law draws."""
    # The search has assertions of its own, whose lines take seconds to see.
    with traced(None):
        outcome = law.search(20, 0, hypotheses)
    assert outcome.holds, outcome.detail


def _abbreviations(text: str) -> dict[str, str]:
    """CORNERS, or "q1 := (1+q)**2; p1 := (1+p)**2"."""
    if text == "CORNERS":
        return CORNERS
    parts = [part.partition(" := ") for part in text.split("; ")]
    if not all(meaning for _, _, meaning in parts):
        raise ValueError(f"'{text}' is neither CORNERS nor `name := formula; ...`")
    return {name: meaning for name, _, meaning in parts}


def search(*draws: SearchStrategy[Any], at: At | str = "") -> Callable[[Law], Searched]:
    """The decorator of a law for a `search` line: it takes what the strategies draw, a tuple entry
    by entry.

    at: which parameters are the instance, A and perhaps H and X_0 ("A H"; a number h is the matrix
    [[h]]), or a function of all of them.
    """
    drawn = st.tuples(*draws).map(_flat)

    def made(law: Law) -> Searched:
        if not isinstance(at, str):
            return searched("", law, drawn, at=at)
        places = [[*signature(law).parameters].index(name) for name in at.split()]

        def instance(*entries: Any) -> tuple[Any, ...]:
            parts = (entries[place] for place in places)
            A, *others = (part if isinstance(part, list) else [[part]] for part in parts)
            return (A, *others) if others else shared.of_attention(A)

        return searched("", law, drawn, at=instance if at else None)

    return made


def _flat(drawn: tuple[Any, ...]) -> tuple[Any, ...]:
    entries = (_flat(part) if isinstance(part, tuple) else (part,) for part in drawn)
    return tuple(chain.from_iterable(entries))


def claims_of(python: Path, names: Mapping[str, Any]) -> dict[str, Claim]:
    """The claims of a chapter by name, in its order. names: those of its Python file.

    Raises `InputError`, with file and line, for whatever is not as it should be.
    """
    claims = {}
    reader, path = Reader(names), python.with_suffix(".md")
    for section in sections(path):
        with section.told(section.name):
            claim = reader.claim(section)
        if claim.name in claims:
            raise section.error(f"{claim.name} stands here for the second time")
        claims[claim.name] = claim
    wanted = {name for name in names if _executes(name, names)}
    if left := sorted(wanted - reader.named):
        lines = enumerate(python.read_text("utf-8").splitlines(), 1)
        line = next((k for k, text in lines if re.search(rf"\b{left[0]}\b", text)), 1)
        raise InputError(f"{python.name}, line {line}: no line of {path.name} names '{left[0]}'")
    return claims


def _executes(name: str, names: Mapping[str, Any]) -> bool:
    """Whether a name of a Python file is there for a line of the chapter: a search, or a public
    function of its own that takes nothing, or the effort alone."""
    law = getattr(names[name], "law", names[name])
    if not isinstance(law, FunctionType) or law.__globals__ is not names:
        return False
    takes = [*signature(law).parameters] in ([], ["effort"])
    return isinstance(names[name], Searched) or (takes and not name.startswith("_"))
