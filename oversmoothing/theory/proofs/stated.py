"""One claim from its section of a chapter: fields, clauses, evidence, proofs; see `chapter`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from oversmoothing.theory.proofs import hypotheses as shared
from oversmoothing.theory.proofs.checks import meets
from oversmoothing.theory.proofs.claim import Claim, Evidence, Hypothesis, Instance, Scope, Status
from oversmoothing.theory.proofs.evidence import (
    Certified,
    Counterexample,
    Simulated,
    Step,
    Symbolic,
    Written,
)
from oversmoothing.theory.proofs.for_all import CORNERS, ForAllReals, Sharp, for_all
from oversmoothing.theory.proofs.formal import Formal, statement
from oversmoothing.theory.proofs.items import Item, Section
from oversmoothing.theory.proofs.search import Searched

E = TypeVar("E", Searched, Certified, Simulated)
_FIELDS = ("setting", "wording", "further")
_SCOPES = {
    "verified": Scope.GENERAL,
    "illustrated at a fixed size": Scope.SIZE,
    "illustrated": Scope.INSTANCE,
}
_READING = {Status.REFUTED_WORDS, Status.REFUTED_READING, Status.REFUTED}
_PART = r"(given|without|then|at|where) `([^`]+)`"
_NAMED = re.compile(r"`(\w+)`(?:: (.+))?")
_BOX = ("n", "d", "entries", "instances")


class Reader:
    """One claim. named: what its Python file registers under a name; names: all names of that."""

    def __init__(
        self, section: Section, named: Callable[[str], Any], names: Mapping[str, object]
    ) -> None:
        self.section, self.named, self.names = section, named, names

    def claim(self) -> Claim:
        fields = self._fields()
        status = Status(fields.pop("status"))
        clauses = tuple(item.text for item in self.section.clauses)
        hypotheses = self._hypotheses(fields.pop("hypotheses", ""))
        evidence = [*self._evidence(), *self._proofs(hypotheses, status)]
        found = Claim(
            name=self.section.name,
            clauses=clauses,
            latex=self.section.latex,
            source=fields.pop("source"),
            on_record=status,
            evidence=tuple(evidence),
            hypotheses=hypotheses,
            repaired_by=fields.pop("instead", None),
            **fields,
        )
        covered = {k for each in evidence for k in each.covers}
        for k, item in enumerate(self.section.clauses, 1):
            if k not in covered and not status.refuted:
                raise self.section.error(item.line, f"no evidence covers clause {k}")
        titles = [each.title for each in evidence]
        if twice := next((title for title in titles if titles.count(title) > 1), None):
            raise self.section.error(self.section.line, f"two pieces of evidence are '{twice}'")
        return found

    def _fields(self) -> dict[str, Any]:
        known = {"status", "source", "hypotheses", "instead", *_FIELDS}
        found: dict[str, Any] = {}
        for item in self.section.fields:
            key, _, value = item.read(*known)
            if key in found:
                raise self.section.error(item.line, f"a second '{key}'")
            found[key] = value
        if left := {"status", "source"} - found.keys():
            raise self.section.error(self.section.line, f"without {' and '.join(sorted(left))}")
        return found

    def _hypotheses(self, listed: str) -> tuple[Hypothesis, ...]:
        found = []
        for name in filter(None, re.split(r",\s*", listed)):
            one = self.names.get(name, common := getattr(shared, name, None))
            if isinstance(common, Hypothesis) and one is not common:
                raise self.section.error(self.section.line, f"{name} is a shared hypothesis, too")
            if not isinstance(one, Hypothesis):
                raise self.section.error(self.section.line, f"there is no hypothesis {name}")
            found.append(one)
        return tuple(found)

    def _evidence(self) -> Iterator[Evidence]:
        placed = [
            ((k,), item) for k, c in enumerate(self.section.clauses, 1) for item in c.children
        ]
        for default, item in [*placed, *(((), item) for item in self.section.beside)]:
            key, covers, value = item.read(
                "coq", "query", "sharp", "search", "certified", "simulated", "symbolic"
            )
            make: Callable[[Item, tuple[int, ...], str], Evidence] = getattr(self, f"_{key}")
            with self.section.told(item.line):
                yield make(item, default if covers is None else covers, value)

    def _coq(self, item: Item, covers: tuple[int, ...], theorem: str) -> Formal:
        statement(theorem)
        closed = self._children(item, "type").get("type", "")
        return Formal(theorem, covers, closed=closed)

    def _query(self, item: Item, covers: tuple[int, ...], title: str) -> ForAllReals:
        stated, *neighbours = item.children or [item]
        parts = self._parts(stated, stated.text, "given", "then", "at", "where")
        if "where" in parts:
            parts["where"] = _abbreviations(parts["where"])
        found = for_all(title, **parts, covers=covers)
        for child in neighbours:
            words = re.fullmatch(rf"unless (.+?): ({_PART}(?:, {_PART})*)", child.text)
            if words is None:
                raise self.section.error(child.line, f"no false neighbour: '{child.text[:60]}'")
            with self.section.told(child.line):
                given = self._parts(child, words[2], "without", "given", "then", "at")
                found = found.unless(words[1], **given)
        return found

    def _sharp(self, item: Item, covers: tuple[int, ...], title: str) -> Sharp:
        return Sharp(self._query(item, (), title))

    def _parts(self, item: Item, text: str, *known: str) -> dict[str, Any]:
        if not re.fullmatch(rf"{_PART}(?:, {_PART})*", text):
            raise self.section.error(
                item.line, f"'{text[:60]}' is no `given ..., then ..., at ...`"
            )
        found = dict(re.findall(_PART, text))
        if unknown := found.keys() - set(known):
            raise self.section.error(item.line, f"'{unknown.pop()}' stands in the wrong place")
        return found

    def _search(self, item: Item, covers: tuple[int, ...], value: str) -> Searched:
        beneath = self._children(item, "against", "box")
        against = tuple(int(k) for k in beneath.get("against", "").split(",") if k.strip())
        box = dict(part.split(" = ", 1) for part in beneath.get("box", "").split("; ") if part)
        if box and tuple(box) != _BOX:
            raise self.section.error(item.line, f"a box has {', '.join(_BOX)}, in this order")
        found, title = self._runs(item, value, Searched)
        return replace(found, title=title, covers=covers, against=against, box=box)

    def _certified(self, item: Item, covers: tuple[int, ...], value: str) -> Certified:
        found, title = self._runs(item, value, Certified)
        return replace(found, title=title, covers=covers)

    def _simulated(self, item: Item, covers: tuple[int, ...], value: str) -> Simulated:
        found, title = self._runs(item, value, Simulated)
        return replace(found, title=title, covers=covers)

    def _symbolic(self, item: Item, covers: tuple[int, ...], title: str) -> Symbolic:
        check, scope = self._check(item)
        if check is None:
            raise self.section.error(item.line, "no function gives the residual")
        return Symbolic(title, check, covers, scope)

    def _runs(self, item: Item, value: str, kind: type[E]) -> tuple[E, str]:
        named = _NAMED.fullmatch(value)
        if named is None or named[2] is None:
            raise self.section.error(item.line, "it needs a name and a title: `law`: in fractions")
        found = self.named(named[1])
        if not isinstance(found, kind):
            raise self.section.error(item.line, f"the chapter registers no such '{named[1]}'")
        return found, named[2]

    def _children(self, item: Item, *known: str) -> dict[str, str]:
        return {child.read(*known)[0]: child.read(*known)[2] for child in item.children}

    def _check(self, item: Item) -> tuple[Callable[[], object] | None, Scope]:
        """The function of a step, and what it covers."""
        if not item.children:
            return None, Scope.INSTANCE
        child, *more = item.children
        scope, _, value = child.read(*_SCOPES)
        named = _NAMED.fullmatch(value)
        check = self.named(named[1]) if named and named[2] is None else None
        if more or not callable(check):
            raise self.section.error(child.line, f"{value} is not one step that is registered")
        return check, _SCOPES[scope]

    def _step(self, item: Item) -> Step:
        found = re.fullmatch(r"(?:\[([\d, ]+)\] )?(.+)", item.text)
        assert found is not None
        covers = tuple(int(k) for k in (found[1] or "").split(",") if k.strip())
        return Step(found[2], *self._check(item), covers)

    def _proofs(self, hypotheses: Sequence[Hypothesis], status: Status) -> Iterator[Evidence]:
        for proof in self.section.proofs:
            steps = tuple(self._step(item) for item in proof.steps)
            if not steps:
                raise self.section.error(proof.line, "a proof without steps")
            if proof.kind == "Proof":
                yield Written(proof.title, steps)
                continue
            if status not in _READING:
                raise self.section.error(proof.line, f"a counterexample to what is {status}")
            cases = tuple(self._case(item) for item in proof.cases)
            met = f"The hypotheses hold: {'; '.join(h.words for h in hypotheses)}."
            first = tuple(Step(met, partial(meets, hypotheses, case)) for case in cases)
            yield Counterexample(proof.title, cases, (*first, *steps), status)

    def _case(self, item: Item) -> Instance:
        _, _, value = item.read("at")
        named = _NAMED.fullmatch(value)
        found = self.named(named[1]) if named else None
        if named is None or not isinstance(found, Instance):
            raise self.section.error(item.line, "it needs the name of a case, and its numbers")
        numbers = Counterexample("", (found,), ()).numbers
        if named[2] != numbers:
            raise self.section.error(item.line, f"the case '{named[1]}' is {numbers}")
        return found


def _abbreviations(text: str) -> dict[str, str]:
    """CORNERS, or "q1 := (1+q)**2; p1 := (1+p)**2"."""
    if text == "CORNERS":
        return CORNERS
    parts = [part.partition(" := ") for part in text.split("; ")]
    if not all(meaning for _, _, meaning in parts):
        raise ValueError(f"'{text}' is neither CORNERS nor `name := formula; ...`")
    return {name: meaning for name, _, meaning in parts}
