"""The ledger as a text in which a changed claim shows: theory/claims/ledger.txt, under version
control and compared by a test.

    python -m oversmoothing.theory.proofs.fingerprint

writes it anew, which is right only where a claim was meant to change. A line a claim has its name,
its status and a hash: of statement, hypotheses, evidence with what each covers, queries with their
false neighbours, the statements of the Coq theorems, and the code of its chapter, without comments
and layout. What changed shows in the chapter's files. The first line is a hash of the code that all
claims share.
"""

import hashlib
import io
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from oversmoothing.theory.proofs.claim import Claim, Evidence
from oversmoothing.theory.proofs.coq import Formal, statement
from oversmoothing.theory.proofs.evidence import Counterexample, Step, Symbolic, Written
from oversmoothing.theory.proofs.ledger import claims, files
from oversmoothing.theory.proofs.reals import ForAllReals, Sharp
from oversmoothing.theory.proofs.search import Searched
from oversmoothing.theory.support.files import write_atomically

THEORY = Path(__file__).resolve().parents[1]
PATH = THEORY / "claims" / "ledger.txt"
# What only runs or shows the claims decides nothing about them.
_SHOWS = ("__init__", "fingerprint", "by", "mathml", "report", "run")
_OWN = "own"  # nor does what loads the claims of a user


def digest(source: str) -> str:
    """Of Python code without its comments and its layout: 12 hexadecimal digits of SHA-256."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    return hashlib.sha256("".join("".join(lines).split()).encode()).hexdigest()[:12]


def fingerprint(ledger: Mapping[str, Claim]) -> str:
    """The code that the claims share, and a line for each."""
    alone = {path.with_suffix(".py") for path in files().values()}
    shared = [*THEORY.glob("proofs/*.py"), *THEORY.glob("claims/*.py")]
    codes = [
        f"{path.relative_to(THEORY).as_posix()} {digest(path.read_text('utf-8'))}"
        for path in sorted(shared)
        if path not in alone and path.stem not in (*_SHOWS, _OWN)
    ]
    lines = [f"shared code {_hash(codes)}"]
    for claim in ledger.values():
        found = [*_claim(claim)]
        if path := files().get(claim.name):
            found.append(digest(path.with_suffix(".py").read_text("utf-8")))
        lines.append(f"{claim.name}: {claim.on_record} {_hash(found)}")
    return "\n".join(lines) + "\n"


def _hash(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def _claim(claim: Claim) -> Iterator[str]:
    yield f"{claim.name}: {claim.on_record}"
    for k, clause in enumerate(claim.clauses, 1):
        yield f"  ({k}) {clause}"
    yield from (f"  hypothesis: {h.words}" for h in claim.hypotheses)
    if claim.wording:
        yield f"  wording: {claim.wording}"
    if claim.setting:
        yield f"  setting: {claim.setting}"
    if claim.repaired_by:
        yield f"  what holds instead: {claim.repaired_by}"
    for evidence in claim.evidence:
        yield f"  {evidence.kind}{_clauses(evidence.covers)}: {evidence.title}"
        yield from (f"    {line}" for line in _evidence(evidence))


def _clauses(covers: tuple[int, ...]) -> str:
    return "".join(f" ({k})" for k in covers)


def _evidence(evidence: Evidence) -> Iterator[str]:
    if isinstance(evidence, Formal):
        yield statement(evidence.theorem, evidence.sources)
        yield from [f"type: {evidence.closed}"] * bool(evidence.closed)
    elif isinstance(evidence, ForAllReals | Sharp):
        stated = evidence if isinstance(evidence, ForAllReals) else evidence.stated
        yield stated.query.describe()
        for mutation in stated.mutations:
            yield f"not: {mutation.change}: {mutation.query.describe()}"
            yield from [f"at {mutation.witness}"] * isinstance(evidence, Sharp)
    elif isinstance(evidence, Searched):
        yield from [f"box: {dict(evidence.box)}"] * bool(evidence.box)
    elif isinstance(evidence, Symbolic):
        yield str(evidence.scope)
    elif isinstance(evidence, Counterexample):
        yield evidence.numbers
        yield from map(_step, evidence.steps)
    elif isinstance(evidence, Written):
        yield from map(_step, evidence.steps)


def _step(step: Step) -> str:
    scope = str(step.scope) if step.check else "words"
    by = f" by {', '.join(step.cites)}" if step.cites else ""
    return f"-{_clauses(step.covers)} [{scope}{by}] {step.words}"


def main() -> int:
    """Write the file anew."""
    write_atomically(PATH, fingerprint(claims()))
    print(f"wrote {PATH}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
