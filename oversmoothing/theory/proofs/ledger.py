"""The ledger: every claim by name, and what running its evidence finds.

A claim is the CLAIM of one module of theory/claims. Evidence that needs more than the theory
(torch, simulations) is given to `Ledger` by who runs it, under the claim's name.
"""

import pkgutil
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from oversmoothing.theory.proofs.claim import (
    Claim,
    Effort,
    Evidence,
    Finding,
    Kind,
    Outcome,
    Status,
)
from oversmoothing.theory.proofs.search import Searched
from oversmoothing.theory.proofs.standing import Standing, standing
from oversmoothing.theory.support.errors import InputError

# Found by walking: the claims are made of what stands here, which knows none of them.
_CONTENTS = "oversmoothing.theory.claims"


def _modules() -> Iterator[ModuleType]:
    """The modules that state a claim."""
    contents = import_module(_CONTENTS)
    for module in pkgutil.walk_packages(contents.__path__, prefix=f"{_CONTENTS}."):
        if not module.ispkg and hasattr(stated := import_module(module.name), "CLAIM"):
            yield stated


@cache
def files() -> dict[str, Path]:
    """The file of each claim."""
    return {module.CLAIM.name: Path(str(module.__file__)).resolve() for module in _modules()}


def claims() -> dict[str, Claim]:
    """Every claim by name, in the order of T-numbers, papers last."""
    found = [module.CLAIM for module in _modules()]
    names = [claim.name for claim in found]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise RuntimeError(f"claims with the same name: {sorted(repeated)}")
    if bare := [each.name for each in found if not (each.latex and each.source and each.on_record)]:
        raise RuntimeError(f"claims without formula, source or status on record: {bare}")
    if unsaid := [c.name for c in found if c.on_record and c.on_record.refuted and not c.wording]:
        raise RuntimeError(f"refuted, and whose wording is not said: {unsaid}")
    return {claim.name: claim for claim in sorted(found, key=_order)}


def _order(claim: Claim) -> tuple[object, ...]:
    """T2 before T11, T11.2 before T11.10; the theory's own before those of papers."""
    parts = [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", claim.name)]
    return (not claim.name.startswith("T"), *parts)


class Ledger(dict[str, Claim]):
    """Claims by name, some with evidence from outside the theory.

    Raises `InputError` where `extra` names no claim, or repeats a title of its evidence; where a
    proof cites what is no claim, or cites itself through others.
    """

    def __init__(
        self, stated: Mapping[str, Claim], extra: Mapping[str, tuple[Evidence, ...]] | None = None
    ) -> None:
        super().__init__(stated)
        for name, added in (extra or {}).items():
            if name not in self:
                raise InputError(f"no claim '{name}' for the evidence '{added[0].title}'")
            evidence = (*self[name].evidence, *added)
            if len({one.title for one in evidence}) < len(evidence):
                raise InputError(f"claim '{name}' has two pieces of evidence of one title")
            self[name] = replace(self[name], evidence=evidence)
        self.cited(self.values())

    def cited(self, chosen: Iterable[Claim]) -> list[Claim]:
        """These claims and all that they rest on, the cited ones first."""
        done: dict[str, Claim] = {}

        def visit(claim: Claim, path: tuple[str, ...]) -> None:
            if claim.name in path:
                raise InputError(f"a circle of proofs: {' cites '.join([*path, claim.name])}")
            for name in claim.cites:
                if name not in self:
                    raise InputError(f"{claim.name} cites '{name}', which is no claim")
                if name not in done:
                    visit(self[name], (*path, claim.name))
            done[claim.name] = claim

        for claim in chosen:
            visit(claim, ())
        return list(done.values())

    def select(self, names: Iterable[str] = ()) -> list[Claim]:
        """Claims by name: exactly, or all parts of one ("T2" selects T2a ...); all if none given.

        Raises `InputError` for a name that selects nothing.
        """
        wanted = list(names)
        if not wanted:
            return list(self.values())
        chosen: dict[str, Claim] = {}
        for name in wanted:
            exact = [claim for key, claim in self.items() if key.lower() == name.lower()]
            parts = [claim for key, claim in self.items() if _is_part(key.lower(), name.lower())]
            if not name or not (exact or parts):
                raise InputError(f"no claim '{name}'; there are {', '.join(self)}")
            chosen |= {claim.name: claim for claim in exact or parts}
        return list(chosen.values())


@dataclass(frozen=True)
class Entry:
    """A claim after its evidence ran."""

    claim: Claim
    standing: Standing
    findings: list[Finding]
    seconds: float

    @property
    def status(self) -> Status:
        return self.standing.status

    @property
    def absent(self) -> bool:
        """Whether the tool of some of its evidence is not installed."""
        return any(finding.outcome.absent for finding in self.findings)

    @property
    def as_recorded(self) -> bool:
        """Whether the status is the one on record, where one is."""
        return self.claim.on_record in (None, self.status)


def _is_part(key: str, name: str) -> bool:
    # "T1" has the parts T1a ..., not T11; "P-" has all of the first paper's.
    cut = name[-1:].isdigit() and key[len(name) : len(name) + 1].isdigit()
    return key.startswith(name) and not cut


def run_claim(
    claim: Claim,
    effort: Effort,
    kinds: frozenset[Kind] | None = None,
    cited: Mapping[str, Status] | None = None,
) -> Entry:
    """Run the evidence of a claim (of some kinds only, if given) and read off its status.

    cited: how the claims stand on which it rests; `settled` does that for many.
    """
    findings = []
    begin = time.perf_counter()
    for index, evidence in enumerate(claim.evidence):
        if kinds is not None and evidence.kind not in kinds:
            continue
        start = time.perf_counter()
        outcome = _outcome(claim, evidence, effort)
        findings.append(Finding(index, evidence, outcome, time.perf_counter() - start))
    found = standing(claim, findings, cited)
    return Entry(claim, found, findings, time.perf_counter() - begin)


def _outcome(claim: Claim, evidence: Evidence, effort: Effort) -> Outcome:
    if isinstance(evidence, Searched):
        return evidence.search(effort.examples, effort.seed, claim.hypotheses)
    return evidence.run(effort)


def settled(entries: Iterable[Entry]) -> list[Entry]:
    """The same, cited ones first, each status read off anew from how those stand."""
    given = {entry.claim.name: entry for entry in entries}
    found: dict[str, Entry] = {}

    def settle(name: str) -> Status:
        if name not in found:
            entry = given[name]
            cited = {other: settle(other) for other in entry.claim.cites if other in given}
            found[name] = replace(entry, standing=standing(entry.claim, entry.findings, cited))
        return found[name].status

    for name in given:
        settle(name)
    return list(found.values())


def in_want_of_coq(entries: Iterable[Entry]) -> list[str]:
    """The claims with evidence that only Coq gives, where it is not installed, and all that rest on
    them."""
    wanting: list[str] = []
    for entry in settled(entries):
        if entry.absent or any(name in wanting for name in entry.claim.cites):
            wanting.append(entry.claim.name)
    return wanting
