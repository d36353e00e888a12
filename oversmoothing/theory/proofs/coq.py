"""Coq: its files built, each once for all processes of a run, and its theorems as evidence.

A theorem counts as checked where Coq's kernel accepts its file, the file admits nothing and
declares no axiom, and `Print Assumptions` names no axiom beyond ALLOWED: those with which Coq's
standard library builds the real numbers.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from oversmoothing.theory.proofs.claim import Effort, Kind, Outcome
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import write_atomically

SOURCES = Path(__file__).resolve().parent.parent / "formal"
# What the reals of Coq's standard library, and Coquelicot's on top of them, are built with.
ALLOWED = frozenset(
    {
        "ClassicalDedekindReals.sig_forall_dec",
        "ClassicalDedekindReals.sig_not_dec",
        "FunctionalExtensionality.functional_extensionality_dep",
        "Classical_Prop.classic",
    }
)
SECONDS = 300  # for one file
_NOT_A_PROOF = re.compile(
    r"\b(Admitted|admit|give_up|Axioms?|Conjectures?|Parameters?|Unset\s+(Guard|Positivity|Universe)"
    r"\s+Checking|bypass_check)\b"
)


# Of others; a file of ours that is not there is an error.
_NO_LIBRARY = re.compile(
    r"Cannot find a physical path bound to logical path (\w+) with prefix "
    r"((?:mathcomp|Coquelicot|Flocq|Interval)(?:\.\w+)*)"
)


class NoLibrary(InputError):
    """A library that a file needs is not installed."""


@dataclass(frozen=True)
class Checked:
    """A theorem that Coq's kernel accepts: its statement as Coq prints it, and its axioms."""

    theorem: str
    statement: str
    axioms: tuple[str, ...]


def coq_version() -> str | None:
    """The version of the installed Coq; None where there is none."""
    if shutil.which("coqc") is None:
        return None
    return subprocess.run(
        ["coqc", "--print-version"], capture_output=True, text=True, check=True
    ).stdout.split()[0]


def check(theorems: tuple[str, ...], sources: Path = SOURCES) -> list[Checked]:
    """Build what these theorems (module.theorem) need of the .v files in `sources`.

    Raises `InputError` where there is no Coq, where a file is not accepted, admits something or
    declares an axiom, where a theorem is not there, or rests on an axiom that is not allowed.
    """
    if coq_version() is None:
        raise InputError("coqc is not on the PATH: install Coq, see theory/formal/README.md")
    with tempfile.TemporaryDirectory() as name:
        built = Path(name)
        for module in _in_order({theorem.split(".")[0] for theorem in theorems}, sources):
            _build(module, sources, built)
        return _asked(theorems, [built])


def _source(module: str, sources: Path) -> Path | None:
    """The file of a module: beside the others, or one of theory/formal, which those may import."""
    found = (folder / f"{module}.v" for folder in (sources, SOURCES))
    return next((path for path in found if path.is_file()), None)


def _in_order(modules: set[str], sources: Path) -> Iterator[str]:
    """These modules and what they import of ours, imported ones first."""
    done: set[str] = set()

    def visit(module: str) -> Iterator[str]:
        if module in done:
            return
        done.add(module)
        path = _source(module, sources)
        if path is None:
            raise InputError(f"{sources} has no {module}.v")
        for line in re.findall(r"^Require Import ([\w ]+)\.", path.read_text(), re.M):
            for needed in line.split():
                if _source(needed, sources):
                    yield from visit(needed)
        yield module

    for module in sorted(modules):
        yield from visit(module)


def _build(module: str, sources: Path, built: Path, imported: Sequence[Path] = ()) -> None:
    """Build a module into the folder `built`; what it imports lies there or in `imported`."""
    path = _source(module, sources)
    assert path is not None, f"{module}.v was there a moment ago"
    text = path.read_text()
    bare = without_comments(text)
    if found := _NOT_A_PROOF.search(bare):
        line = bare[: found.start()].count("\n") + 1
        raise InputError(f"{module}.v, line {line}: '{found[0]}' is no proof")
    (built / f"{module}.v").write_text(text)
    _coq([*_found_in(imported), f"{module}.v"], built, f"{module}.v is not accepted")


def _found_in(folders: Sequence[Path]) -> list[str]:
    """What tells coqc where the modules are that are built."""
    return ["-w", "none", *(word for folder in folders for word in ("-Q", str(folder), ""))]


@cache
def without_comments(text: str) -> str:
    """Coq's comments nest; their line breaks stay."""
    kept, depth, place = [], 0, 0
    while place < len(text):
        if text.startswith("(*", place):
            depth, place = depth + 1, place + 2
        elif depth and text.startswith("*)", place):
            depth, place = depth - 1, place + 2
        else:
            kept.append(text[place] if not depth or text[place] == "\n" else "")
            place += 1
    return "".join(kept)


def _coq(arguments: list[str], folder: Path, problem: str) -> str:
    try:
        done = subprocess.run(
            ["coqc", *arguments], cwd=folder, capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"{problem}: more than {SECONDS} s") from None
    if done.returncode:
        if missing := _NO_LIBRARY.search(" ".join(done.stderr.split())):
            raise NoLibrary(f"Coq is without {missing[2]}.{missing[1]}")
        raise InputError(f"{problem}: {' '.join((done.stderr or done.stdout).split())[:500]}")
    return done.stdout


def _asked(theorems: tuple[str, ...], built: Sequence[Path]) -> list[Checked]:
    """Of each theorem, its statement and its axioms, asked of Coq in one run."""
    with tempfile.TemporaryDirectory() as name:
        return _asked_in(Path(name), theorems, built)


def _asked_in(folder: Path, theorems: tuple[str, ...], built: Sequence[Path]) -> list[Checked]:
    asked = [f"Require {module}." for module in sorted({name.split(".")[0] for name in theorems})]
    for number, theorem in enumerate(theorems):
        asked.append(f'Redirect "statement{number}" Check {theorem}.')
        asked.append(f'Redirect "axioms{number}" Print Assumptions {theorem}.')
    (folder / "Ask.v").write_text("\n".join(asked) + "\n")
    _coq([*_found_in(built), "Ask.v"], folder, "there is no such theorem")
    found = []
    for number, theorem in enumerate(theorems):
        statement = (folder / f"statement{number}.out").read_text().strip()
        said = (folder / f"axioms{number}.out").read_text()
        names = tuple(re.findall(r"^([\w.']+)\s*(?=:|$)", said.partition("Axioms:")[2], re.M))
        if not names and "Closed under the global context" not in said:
            raise InputError(f"{theorem}: Coq says neither axioms nor that there are none: {said}")
        if beyond := sorted(set(names) - ALLOWED):
            raise InputError(f"{theorem} rests on {', '.join(beyond)}, which is not allowed")
        found.append(Checked(theorem, statement, names))
    return found


# Where the process that began, and every one that it starts, finds what is built: each file once.
_BUILT = "OVERSMOOTHING_COQ_BUILT"


def share_built() -> None:
    """From here on the processes that this one starts build no file of Coq's that one of them has.

    What is built is gone when this process ends.
    """
    if not _ours_alone(Path(os.environ.get(_BUILT, ""))):
        folder = tempfile.mkdtemp(prefix="oversmoothing-coq-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ[_BUILT] = folder


def _ours_alone(folder: Path) -> bool:
    """Nobody else can have put a theorem there."""
    try:
        found = folder.stat()
    except OSError:
        return False
    private = found.st_uid == os.geteuid() and not found.st_mode & 0o077
    return folder.is_absolute() and folder.is_dir() and private


def _folder(module: str, sources: Path) -> Path:
    """Where this text of a module, with these texts of all that it imports, is built."""
    needed = _in_order({module}, sources)
    texts = [path.read_bytes() for name in needed if (path := _source(name, sources))]
    digest = sha256(b"\0".join([str(coq_version()).encode(), *texts])).hexdigest()
    folder = Path(os.environ[_BUILT]) / f"{module}-{digest[:32]}"
    folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """The lock is on the folder itself: it leaves no file, and ends with the process."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _built_once(module: str, sources: Path) -> list[Path]:
    """The folders of a module and of what it imports, each built by the first process that asks."""
    share_built()
    folders: list[Path] = []
    for needed in _in_order({module}, sources):
        folder = _folder(needed, sources)
        with _alone_in(folder):
            accepted = folder / "accepted"
            if not accepted.is_file():
                _build(needed, sources, folder, folders)
                accepted.touch()
        folders.append(folder)
    return folders


@cache
def _module(module: str, sources: Path) -> dict[str, Checked]:
    """The theorems of a file, asked in one run, once as well."""
    built = _built_once(module, sources)
    path = _source(module, sources)
    text = without_comments(path.read_text()) if path else ""
    names = re.findall(r"^\s*Theorem\s+(\w+)", text, re.M)
    with _alone_in(built[-1]):
        answers = built[-1] / "theorems.json"
        if not answers.is_file():
            found = _asked(tuple(f"{module}.{n}" for n in names), built)
            write_atomically(answers, json.dumps([asdict(one) for one in found]))
        kept = json.loads(answers.read_text())
    return {
        one["theorem"]: Checked(one["theorem"], one["statement"], tuple(one["axioms"]))
        for one in kept
    }


def checked(theorem: str, sources: Path) -> Checked:
    of_module = _module(theorem.split(".")[0], sources)
    if theorem not in of_module:
        module = theorem.split(".")[0]
        of_module[theorem] = _asked((theorem,), _built_once(module, sources))[0]
    return of_module[theorem]


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
            data = {"coq": said, "axioms": list(found.axioms)}
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
