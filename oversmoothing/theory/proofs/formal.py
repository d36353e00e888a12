"""`make formal`: the Coq files of theory/formal, built, and what each theorem rests on."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from oversmoothing.theory.proofs.claim import Effort, Kind, Outcome
from oversmoothing.theory.proofs.coq import (
    SOURCES,
    NoLibrary,
    check,
    checked,
    coq_version,
    without_comments,
)
from oversmoothing.theory.support.errors import InputError


def statement(theorem: str, sources: Path = SOURCES) -> str:
    """The statement of module.theorem as it stands in its file, from its keyword to its proof.

    Raises `InputError` where there is none.
    """
    module, name = theorem.split(".")
    path = sources / f"{module}.v"
    text = without_comments(path.read_text()) if path.is_file() else ""
    found = re.search(_STATED.format(re.escape(name)), text, re.M | re.S)
    if found is None:
        raise InputError(f"{sources} has no theorem {theorem}")
    return " ".join(found[0].split())


_STATED = r"^\s*(?:Theorem|Lemma|Corollary)\s+{}\b.*?\.(?=\s*Proof\b)"


@dataclass(frozen=True)
class Formal:
    """A theorem of theory/formal, as module.theorem, that Coq's kernel checks.

    It holds where Coq is installed and accepts its file, on the axioms that are allowed; where Coq
    or a library of it is not installed it is absent, and proves nothing. beside: a file, like the
    `__file__` of a claim, in whose folder module.v stands instead; it may import theory/formal's.
    Raises ValueError where theorem is not module.theorem.
    """

    theorem: str
    covers: tuple[int, ...]
    kind: Kind = Kind.FORMAL
    beside: str | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w+\.[\w']+", self.theorem):
            raise ValueError(f"'{self.theorem}' is no module.theorem, as Control.beats is one")

    @property
    def sources(self) -> Path:
        """The folder of its file."""
        return SOURCES if self.beside is None else Path(self.beside).resolve().parent

    @property
    def title(self) -> str:
        return self.theorem

    def run(self, effort: Effort) -> Outcome:
        if coq_version() is None:
            return Outcome(None, "absent: Coq is not installed", absent=True)
        try:
            found = checked(self.theorem, self.sources)
            said = statement(self.theorem, self.sources)
            data: dict[str, object] = {"coq": said, "axioms": list(found.axioms)}
        except NoLibrary as error:
            return Outcome(None, f"absent: {error}", absent=True)
        except InputError as error:
            return Outcome(False, str(error))
        axioms = ", ".join(found.axioms) or "none"
        return Outcome(True, f"Coq's kernel accepts it; axioms: {axioms}", None, data)


def theorems() -> dict[str, tuple[str, ...]]:
    """Claim: the theorems that its evidence names."""
    from oversmoothing.theory.proofs.ledger import claims

    # By kind: under `python -m` this module's own class is another than the one that claims use.
    found = {
        name: tuple(e.title for e in claim.evidence if e.kind is Kind.FORMAL)
        for name, claim in claims().items()
    }
    return {name: named for name, named in found.items() if named}


def main() -> int:
    """Check every theorem that a claim names and print it. Exit status 1: one is not accepted."""
    named = theorems()
    wanted = tuple(dict.fromkeys(theorem for names in named.values() for theorem in names))
    if not wanted:
        print("no claim names a theorem", file=sys.stderr)
        return 1
    try:
        found = {one.theorem: one for one in check(wanted)}
    except InputError as error:
        print(error, file=sys.stderr)
        return 1
    for claim, names in named.items():
        for theorem in names:
            axioms = ", ".join(found[theorem].axioms) or "none"
            print(f"{claim}  {theorem}  axioms: {axioms}")
    print(f"{len(wanted)} theorems checked by Coq {coq_version()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
