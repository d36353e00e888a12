"""The ledger: every claim, the evidence registered for it, and what running it finds.

A claim is the CLAIM of one module of this package. Evidence that needs more than the theory (torch,
simulations) is registered here by the packages above, under the claim's name.
"""

from __future__ import annotations

import pkgutil
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module

import oversmoothing.theory.claims
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

_registered: dict[str, list[Evidence]] = {}


def register(claim_name: str, evidence: Evidence) -> None:
    """Add evidence to a claim from outside the theory. Raises `InputError` for an unknown claim."""
    if claim_name not in claims():
        raise InputError(f"no claim '{claim_name}' to register '{evidence.title}' with")
    kept = _registered.setdefault(claim_name, [])
    if all(known.title != evidence.title for known in kept):
        kept.append(evidence)


def claims() -> dict[str, Claim]:
    """Every claim by name, in the order of T-numbers, papers last."""
    found = []
    for module in pkgutil.walk_packages(
        oversmoothing.theory.claims.__path__, prefix="oversmoothing.theory.claims."
    ):
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


def evidence_of(claim: Claim) -> list[Evidence]:
    """The claim's own evidence, then what was registered from outside."""
    return [*claim.evidence, *_registered.get(claim.name, [])]


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


def select(names: Iterable[str] = ()) -> list[Claim]:
    """Claims by name: exactly, or all parts of a name ("T2" selects T2a ...). All when none given.

    Raises `InputError` for a name that selects nothing.
    """
    known = claims()
    wanted = list(names)
    if not wanted:
        return list(known.values())
    chosen: dict[str, Claim] = {}
    for name in wanted:
        exact = [claim for key, claim in known.items() if key.lower() == name.lower()]
        parts = [claim for key, claim in known.items() if _is_part(key.lower(), name.lower())]
        if not exact and not parts:
            raise InputError(f"no claim '{name}'; there are {', '.join(known)}")
        chosen |= {claim.name: claim for claim in exact or parts}
    return list(chosen.values())


def _is_part(key: str, name: str) -> bool:
    # "T1" has the parts T1a ..., not T11; "P-" has all of the first paper's.
    cut = name[-1:].isdigit() and key[len(name) : len(name) + 1].isdigit()
    return key.startswith(name) and not cut


def run_claim(claim: Claim, effort: Effort, kinds: frozenset[Kind] | None = None) -> Entry:
    """Run the evidence of a claim (of some kinds only, if given) and read off its status."""
    findings = []
    begin = time.perf_counter()
    for evidence in evidence_of(claim):
        if kinds is not None and evidence.kind not in kinds:
            continue
        start = time.perf_counter()
        outcome = evidence.run(effort)
        findings.append(Finding(evidence, outcome, time.perf_counter() - start))
    return Entry(claim, status_of(findings), findings, time.perf_counter() - begin)
