"""Coq: its files built, each once for all processes of a run, and its theorems as evidence.

A theorem counts as checked where Coq's kernel accepts its file, the file admits nothing and
declares no axiom, and `Print Assumptions` names no axiom beyond ALLOWED: those with which Coq's
standard library builds the real numbers. Its statement is its closed type, as Coq prints it outside
of all sections: what a section assumes is part of it. Where a section assumes something, the file
must apply the theorem to an instance that has it all, NAME_instance: no contradiction proves.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path

from oversmoothing.theory.proofs.claim import Effort, Kind, Outcome
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import read_json, write_atomically

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
RECORD = SOURCES / "types.json"
SECONDS = 600  # of the processor, for one file or for what is asked of its theorems
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
    """A theorem that Coq's kernel accepts: its closed type as Coq prints it, its axioms, and which
    hypotheses of its sections no instance has been shown to meet."""

    theorem: str
    type: str
    axioms: list[str]
    unmet: list[str] = field(default_factory=list)


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
    return [checked(theorem, sources) for theorem in theorems]


def _source(module: str, sources: Path) -> Path | None:
    """The file of a module: beside the others, or one of theory/formal, which those may import."""
    paths = (folder / f"{module}.v" for folder in (sources, SOURCES))
    return next((path for path in paths if path.is_file()), None)


def files_behind(module: str, sources: Path = SOURCES) -> list[Path]:
    """The file of a module and those of what it imports of ours, imported ones first."""
    begun: set[Path] = set()

    def visit(path: Path) -> Iterator[Path]:
        if path in begun:
            return
        begun.add(path)
        for line in re.findall(r"^Require Import ([\w ]+)\.", path.read_text(), re.M):
            for needed in line.split():
                if imported := _source(needed, sources):
                    yield from visit(imported)
        yield path

    if (path := _source(module, sources)) is None:
        raise InputError(f"{sources} has no {module}.v")
    return list(visit(path))


def _build(path: Path, built: Path, imported: Sequence[Path]) -> None:
    """Build a file into the folder `built`; what it imports lies there or in `imported`."""
    text = path.read_text()
    bare = without_comments(text)
    if match := _NOT_A_PROOF.search(bare):
        line = bare[: match.start()].count("\n") + 1
        raise InputError(f"{path.name}, line {line}: '{match[0]}' is no proof")
    (built / path.name).write_text(text)
    _coq([*_found_in(imported), path.name], built, f"{path.name} is not accepted")


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
    # By the shell, which has no need of a fork within threads. A busy machine takes none of it.
    limited = ["sh", "-c", f'ulimit -t {SECONDS}; exec coqc "$@"', "coqc", *arguments]
    done = subprocess.run(limited, cwd=folder, capture_output=True, text=True)
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise InputError(f"{problem}: more than {SECONDS} s of the processor")
    if done.returncode:
        if missing := _NO_LIBRARY.search(" ".join(done.stderr.split())):
            raise NoLibrary(f"Coq is without {missing[2]}.{missing[1]}")
        raise InputError(f"{problem}: {' '.join((done.stderr or done.stdout).split())[:500]}")
    return done.stdout


# What a file reads its text with: the notations of its statements.
_READS = re.compile(
    r"^(?:From \w+ )?Require .*\.$|^(?:Local )?Open Scope .*\.$|^(?:Im|Ex)port .*\.$", re.M
)
# Every hypothesis that is introduced, by its name.
_PREMISES = """Goal ltac:(let t := type of (@{0}) in exact t).
intros; try (match goal with H : ?P |- _ =>
  match type of P with Prop => idtac "{1}" H end; fail end).
Abort."""


def _asked(theorems: Sequence[str], sources: Path, built: Sequence[Path]) -> list[Checked]:
    """Of theorems of one file, what Coq says of each, asked in one run."""
    module = theorems[0].split(".")[0]
    text = without_comments(files_behind(module, sources)[-1].read_text())
    asked = [*_READS.findall(text), f"Require Import {module}.", "Set Printing Width 90."]
    for number, theorem in enumerate(theorems):
        asked.append(f'Redirect "type{number}" Check @{theorem}.')
        asked.append(f'Redirect "axioms{number}" Print Assumptions {theorem}.')
        asked.append(f'Redirect "about{number}" About {theorem}.')
        asked.append(_PREMISES.format(theorem, f"premise of {number}"))
        if _applied(theorem, text):
            asked.append(_PREMISES.format(f"{theorem}_instance", f"left of {number}"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "Ask.v").write_text("\n".join(asked) + "\n")
        said = _coq([*_found_in(built), "Ask.v"], folder, "there is no such theorem")
        return [_answer(folder, k, theorem, text, said) for k, theorem in enumerate(theorems)]


def _answer(folder: Path, number: int, theorem: str, text: str, said: str) -> Checked:
    """What Coq said of one of them."""
    closed = (folder / f"type{number}.out").read_text().partition(":")[2].strip("\n")
    axioms = (folder / f"axioms{number}.out").read_text()
    names = re.findall(r"^([\w.']+)\s*(?=:|$)", axioms.partition("Axioms:")[2], re.M)
    if not names and "Closed under the global context" not in axioms:
        raise InputError(f"{theorem}: Coq says neither axioms nor that there are none: {axioms}")
    if beyond := sorted(set(names) - ALLOWED):
        raise InputError(f"{theorem} rests on {', '.join(beyond)}, which is not allowed")

    def premises(which: str) -> list[str]:
        return re.findall(rf"^{which} of {number} (\S+)$", said, re.M)

    # Named premises that its own statement does not show come from a section.
    about = (folder / f"about{number}.out").read_text().partition("Arguments ")[2]
    named = set(re.findall(r"[\w']+", re.sub(r"%\w+", "", about)))
    shown = set(re.findall(r"[\w']+", _stated(theorem, text)))
    assumed = [name for name in reversed(premises("premise")) if name in named - shown]
    left = premises("left") if _applied(theorem, text) else assumed
    unmet = [name for name in assumed if name in left]
    return Checked(theorem, textwrap.dedent("       " + closed.lstrip()), names, unmet)


def _applied(theorem: str, text: str) -> bool:
    """Whether the file applies the theorem to an instance."""
    name = re.escape(theorem.split(".")[1])
    pattern = rf"^Definition {name}_instance\b[^.]*?:=\s*@(?:\w+\.)?{name}\s"
    return re.search(pattern, text, re.M | re.S) is not None


# Where the process that began, and every one that it starts, finds what is built: each file once.
_BUILT = "OVERSMOOTHING_COQ_BUILT"


def share_built() -> None:
    """From here on no process of this user builds a file of Coq's that one of them has built.

    It is kept by the digest of its text, of all that it imports and of Coq's version, in
    $OVERSMOOTHING_COQ_BUILT, else in oversmoothing/coq of the user's cache; where that cannot be,
    or others can write to it, in a folder that is gone when this process ends.
    """
    folder = Path(os.environ.get(_BUILT, ""))
    # RuntimeError: there is no home. What is no absolute path is no place of the user's.
    with suppress(OSError, RuntimeError):
        if _BUILT not in os.environ:
            cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
            folder = Path(cache) / "oversmoothing" / "coq"
        if folder.is_absolute():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _ours_alone(folder):
        folder = Path(tempfile.mkdtemp(prefix="oversmoothing-coq-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[_BUILT] = str(folder)


def _ours_alone(folder: Path) -> bool:
    """Nobody else can have put a theorem there."""
    try:
        info = folder.stat()
    except OSError:
        return False
    private = info.st_uid == os.geteuid() and not info.st_mode & 0o077
    return folder.is_absolute() and folder.is_dir() and private


def _folder(module: str, sources: Path) -> Path:
    """Where this text of a module, with these texts of all that it imports, is built; elsewhere
    where Coq or what counts as no proof are others."""
    parts = [str(coq_version()), _NOT_A_PROOF.pattern]
    parts += [path.read_text() for path in files_behind(module, sources)]
    digest = sha256("\0".join(parts).encode()).hexdigest()
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
    for path in files_behind(module, sources):
        folder = _folder(path.stem, sources)
        accepted = folder / "accepted"
        with _alone_in(folder):
            if not accepted.is_file():
                _build(path, folder, folders)
                accepted.touch()
        folders.append(folder)
    return folders


@cache
def _module(module: str, sources: Path) -> dict[str, Checked]:
    """The theorems of a file, asked in one run, once as well."""
    built = _built_once(module, sources)
    answers = built[-1] / "theorems.json"
    with _alone_in(built[-1]):
        if not answers.is_file():
            text = without_comments(files_behind(module, sources)[-1].read_text())
            named = [f"{module}.{n}" for n in re.findall(r"^\s*Theorem\s+(\w+)", text, re.M)]
            theorems = _asked(named, sources, built) if named else []
            write_atomically(answers, json.dumps([asdict(one) for one in theorems]))
        kept = [Checked(**one) for one in json.loads(answers.read_text())]
    return {one.theorem: one for one in kept}


def checked(theorem: str, sources: Path) -> Checked:
    module = theorem.split(".")[0]
    of_module = _module(module, sources)
    if theorem not in of_module:
        of_module[theorem] = _asked((theorem,), sources, _built_once(module, sources))[0]
    return of_module[theorem]


def kept(theorem: str, sources: Path = SOURCES) -> bool:
    """Whether Coq, which must be installed, accepted its file before."""
    share_built()
    return (_folder(theorem.split(".")[0], sources) / "theorems.json").is_file()


def statement(theorem: str, sources: Path = SOURCES) -> str:
    """What stands of module.theorem in its file, without what its sections assume.

    Raises `InputError` where there is none.
    """
    path = sources / f"{theorem.split('.')[0]}.v"
    text = without_comments(path.read_text()) if path.is_file() else ""
    if stated := _stated(theorem, text):
        return " ".join(stated.split())
    raise InputError(f"{sources} has no theorem {theorem}")


def _stated(theorem: str, text: str) -> str:
    """What stands in the file, from its keyword to its proof; nothing where it is not there."""
    name = re.escape(theorem.split(".")[1])
    pattern = rf"^\s*(?:Theorem|Lemma|Corollary)\s+{name}\b.*?\.(?=\s*Proof\b)"
    stated = re.search(pattern, text, re.M | re.S)
    return "" if stated is None else stated[0]


@cache
def on_record() -> dict[str, Checked]:
    """What Coq says of each theorem that a claim of ours names; `make formal` holds it to Coq."""
    rows = read_json(RECORD)
    return {
        name: Checked(name, "\n".join(row["type"]), row["axioms"]) for name, row in rows.items()
    }


def as_record(answers: Iterable[Checked]) -> str:
    """The text of the record."""
    rows = {one.theorem: {"axioms": one.axioms, "type": one.type.splitlines()} for one in answers}
    return json.dumps(dict(sorted(rows.items())), indent=1) + "\n"


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
            proof = checked(self.theorem, self.sources)
        except NoLibrary as error:
            return Outcome(None, f"absent: {error}", absent=True)
        except InputError as error:
            return Outcome(False, str(error))
        data = {"coq": proof.type, "axioms": proof.axioms}
        if proof.unmet:
            name = self.theorem.split(".")[1]
            return Outcome(
                None,
                f"Coq's kernel accepts it, but nothing shows that all it assumes can hold together "
                f"({', '.join(proof.unmet)}): apply it to an instance, Definition {name}_instance "
                f":= @{name} ...",
                None,
                data,
            )
        if self.beside is None and on_record().get(self.theorem) != proof:
            return Outcome(False, "what Coq says of it is not what is on record", None, data)
        axioms = ", ".join(proof.axioms) or "none"
        return Outcome(True, f"Coq's kernel accepts it; axioms: {axioms}", None, data)
