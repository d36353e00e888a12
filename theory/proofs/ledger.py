"""The ledger: every claim by name, and what running its evidence finds.

A claim is the CLAIM of one module of theory/claims. Evidence that needs more than the theory
(torch, simulations) is given to `Ledger` by who runs it, under the claim's name.
"""

import pkgutil
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module

from oversmoothing.theory.proofs.claim import (
    Claim,
    Effort,
    Evidence,
    Finding,
    Kind,
    Status,
    status_of,
)
from oversmoothing.theory.support.errors import InputError

# Found by walking: the claims are made of what stands here, which knows none of them.
_CONTENTS = "oversmoothing.theory.claims"


def claims() -> dict[str, Claim]:
    """Every claim by name, in the order of T-numbers, papers last."""
    found = []
    contents = import_module(_CONTENTS)
    for module in pkgutil.walk_packages(contents.__path__, prefix=f"{_CONTENTS}."):
        if not module.ispkg and hasattr(stated := import_module(module.name), "CLAIM"):
            found.append(stated.CLAIM)
    names = [claim.name for claim in found]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise RuntimeError(f"claims with the same name: {sorted(repeated)}")
    return {claim.name: claim for claim in sorted(found, key=_order)}


def _order(claim: Claim) -> tuple[object, ...]:
    """T2 before T11, T11.2 before T11.10; the theory's own before those of papers."""
    parts = [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", claim.name)]
    return (not claim.name.startswith("T"), *parts)


class Ledger(dict[str, Claim]):
    """Claims by name, some with evidence from outside the theory.

    Raises `InputError` where `extra` names no claim, or repeats a title of its evidence.
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
            if not exact and not parts:
                raise InputError(f"no claim '{name}'; there are {', '.join(self)}")
            chosen |= {claim.name: claim for claim in exact or parts}
        return list(chosen.values())


@dataclass(frozen=True)
class Entry:
    """A claim after its evidence ran."""

    claim: Claim
    status: Status
    findings: list[Finding]
    seconds: float

    @property
    def as_recorded(self) -> bool:
        """Whether the status is the one on record."""
        return self.status is self.claim.on_record


def _is_part(key: str, name: str) -> bool:
    # "T1" has the parts T1a ..., not T11; "P-" has all of the first paper's.
    cut = name[-1:].isdigit() and key[len(name) : len(name) + 1].isdigit()
    return key.startswith(name) and not cut


def run_claim(claim: Claim, effort: Effort, kinds: frozenset[Kind] | None = None) -> Entry:
    """Run the evidence of a claim (of some kinds only, if given) and read off its status."""
    findings = []
    begin = time.perf_counter()
    for index, evidence in enumerate(claim.evidence):
        if kinds is not None and evidence.kind not in kinds:
            continue
        start = time.perf_counter()
        outcome = evidence.run(effort)
        findings.append(Finding(index, evidence, outcome, time.perf_counter() - start))
    return Entry(claim, status_of(findings), findings, time.perf_counter() - begin)
