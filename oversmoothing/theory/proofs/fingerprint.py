"""The ledger as a text in which a weakened claim shows: theory/claims/ledger.txt, under version
control and compared by a test.

    python -m oversmoothing.theory.proofs.fingerprint

writes it anew, which is right only where a claim was meant to change. It holds statements,
hypotheses, evidence with what each covers, queries with their false neighbours, the statements of
the Coq theorems; and of the code a digest, file by file, without comments and layout.
"""

import hashlib
import io
import sys
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path

from oversmoothing.theory.proofs.claim import Claim, Evidence
from oversmoothing.theory.proofs.evidence import Counterexample, Step, Symbolic, Written
from oversmoothing.theory.proofs.for_all import ForAllReals
from oversmoothing.theory.proofs.formal import Formal, statement
from oversmoothing.theory.proofs.ledger import claims, files
from oversmoothing.theory.support.files import write_atomically

THEORY = Path(__file__).resolve().parents[1]
PATH = THEORY / "claims" / "ledger.txt"
# What only runs or shows the claims decides nothing about them.
_SHOWS = ("__init__", "fingerprint", "kit", "by", "mathml", "page", "report", "running", "thorough")
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
    """The claims, one paragraph each, after the code that they share."""
    named = {path: name for name, path in files().items()}
    shared = [*THEORY.glob("proofs/*.py"), *THEORY.glob("claims/**/*.py")]
    lines = [
        f"code {path.relative_to(THEORY).as_posix()} {digest(path.read_text('utf-8'))}"
        for path in sorted(shared)
        if path not in named and path.stem not in (*_SHOWS, _OWN)
    ]
    for claim in ledger.values():
        lines += ["", *_claim(claim)]
        if path := files().get(claim.name):
            lines.append(f"  code {digest(path.read_text('utf-8'))}")
    return "\n".join(lines) + "\n"


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
    elif isinstance(evidence, ForAllReals):
        yield evidence.query.describe()
        for mutation in evidence.mutations:
            yield f"not: {mutation.change}: {mutation.query.describe()}"
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
