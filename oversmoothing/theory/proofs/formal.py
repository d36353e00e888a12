"""Theorems of theory/formal as evidence: what Coq's kernel checks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from oversmoothing.theory.proofs.claim import Effort, Kind, Outcome
from oversmoothing.theory.proofs.coq import (
    SOURCES,
    NoLibrary,
    checked,
    coq_version,
    without_comments,
)
from oversmoothing.theory.support.errors import InputError


@cache
def _bare(text: str) -> str:
    return without_comments(text)


def statement(theorem: str, sources: Path = SOURCES) -> str:
    """The statement of module.theorem as it stands in its file, from its keyword to its proof.

    Raises `InputError` where there is none.
    """
    module, name = theorem.split(".")
    path = sources / f"{module}.v"
    text = _bare(path.read_text()) if path.is_file() else ""
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
    closed: its type as Coq prints it outside of all sections, where the claim shows that.
    Raises ValueError where theorem is not module.theorem.
    """

    theorem: str
    covers: tuple[int, ...]
    kind: Kind = Kind.FORMAL
    beside: str | None = None
    closed: str = ""

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
            if self.closed and not _same(self.closed, found.statement):
                return Outcome(False, f"its type is {found.statement}", None, data)
        except NoLibrary as error:
            return Outcome(None, f"absent: {error}", absent=True)
        except InputError as error:
            return Outcome(False, str(error))
        axioms = ", ".join(found.axioms) or "none"
        return Outcome(True, f"Coq's kernel accepts it; axioms: {axioms}", None, data)


def _same(closed: str, printed: str) -> bool:
    """Whether Coq prints this type, after the name of the theorem."""
    return closed.split() == printed.partition(":")[2].split()
