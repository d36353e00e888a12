"""`make formal`: the Coq files of theory/formal, built, and what each theorem rests on."""

import sys

from oversmoothing.theory.proofs.claim import Kind
from oversmoothing.theory.proofs.coq import check, coq_version
from oversmoothing.theory.proofs.ledger import claims
from oversmoothing.theory.support.errors import InputError


def theorems() -> dict[str, tuple[str, ...]]:
    """Claim: the theorems that its evidence names."""
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
