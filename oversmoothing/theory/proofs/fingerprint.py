"""The ledger as a text in which a changed claim shows: theory/claims/ledger.txt, under version
control and compared by a test.

    python -m oversmoothing.theory.proofs.fingerprint

writes it anew, which is right only where a claim was meant to change. A line a claim has its name,
its status and a hash: of its section of the chapter, of the closed types and axioms of the Coq
theorems that it names and of the files behind them, and of the code of its chapter, without
comments and layout. What changed shows in the
chapter's files. The first line is a hash of the code that all claims share.
"""

import hashlib
import io
import re
import sys
import tokenize
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from oversmoothing.theory.proofs.coq import files_behind, on_record, without_comments
from oversmoothing.theory.proofs.items import source
from oversmoothing.theory.proofs.ledger import files
from oversmoothing.theory.support.files import read_text, write_atomically

THEORY = Path(__file__).resolve().parents[1]
PATH = THEORY / "claims" / "ledger.txt"
# What only runs or shows the claims decides nothing about them, nor what loads those of a user.
_SHOWS = ("__init__", "fingerprint", "by", "mathml", "report", "run", "own")
_STATUS = re.compile(r"^- status: (.+)$", re.M)
_THEOREM = re.compile(r"^ *- coq(?: \[[\d, ]*\])?: (\S+)$", re.M)


@cache
def digest(code: str) -> str:
    """Of Python code without its comments and its layout: 12 hexadecimal digits of SHA-256."""
    lines = code.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    return _hash(["".join("".join(lines).split())])


def line(name: str, section: str, code: str) -> str:
    """Of a claim: its section of a chapter's Markdown, and the code of the chapter."""
    (status,) = _STATUS.findall(section)
    parts = [" ".join(section.split())]
    for theorem in _THEOREM.findall(section):
        # What is on record of it, and the files that prove it, without their comments.
        texts = (without_comments(read_text(path)) for path in files_behind(theorem.split(".")[0]))
        parts += [str(on_record().get(theorem)), *(" ".join(text.split()) for text in texts)]
    return f"{name}: {status} {_hash([*parts, digest(code)])}"


def fingerprint() -> str:
    """The code that the claims share, and a line for each."""
    chapters = files()
    alone = {path.with_suffix(".py") for path in chapters.values()}
    codes = [
        f"{path.relative_to(THEORY).as_posix()} {digest(read_text(path))}"
        for path in sorted([*THEORY.glob("proofs/*.py"), *THEORY.glob("claims/*.py")])
        if path not in alone and path.stem not in _SHOWS
    ]
    lines = [f"shared code {_hash(codes)}"]
    for name, path in chapters.items():
        lines.append(line(name, source(path, name), read_text(path.with_suffix(".py"))))
    return "\n".join(lines) + "\n"


def _hash(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def main() -> int:
    """Write the file anew."""
    write_atomically(PATH, fingerprint())
    print(f"wrote {PATH}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
