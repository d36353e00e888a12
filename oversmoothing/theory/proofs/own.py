"""Claims of one's own, in a Python file: loaded, or refused in a sentence that names its line.

The file holds claims as the ledger's modules do, under whatever names, made by what
`from oversmoothing import Claim, by, draw, exact, given` brings. To load it runs its code.
"""

import contextlib
import difflib
import linecache
import re
import sys
import textwrap
import traceback
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from oversmoothing.theory.proofs import by, hypotheses, kit, strategies
from oversmoothing.theory.proofs.claim import REFERENCE, Claim, Hypothesis
from oversmoothing.theory.proofs.evidence import raised_in
from oversmoothing.theory.proofs.ledger import Ledger, claims
from oversmoothing.theory.support.errors import InputError, RequirementError
from oversmoothing.theory.support.files import read_text

# The names under which a claim's file has them.
_PARTS = {"given": hypotheses, "draw": strategies, "by": by, "exact": kit.exact}


def names_of(part: str) -> dict[str, str]:
    """The names in given, draw, by or exact, each with the first line of what it says."""
    module = _PARTS[part]
    words = {}
    for name, value in vars(module).items():
        home = getattr(value, "__module__", None)
        if isinstance(value, Hypothesis):
            words[name] = value.words
        elif callable(value) and not name.startswith("_") and _belongs(name, str(home), part):
            words[name] = " ".join((value.__doc__ or "").split("\n\n")[0].split())
    return words


def _belongs(name: str, home: str, part: str) -> bool:
    # Of the functions beside the hypotheses these two make what a claim alone needs; `by` brings
    # its names together, and what the others import is not theirs.
    if part == "given":
        return name in ("case", "condition")
    return home.startswith("oversmoothing") if part == "by" else home == _PARTS[part].__name__


class OwnLedger(Ledger):
    """The claims of a file, with those of the ledger where one of them rests on any."""

    def __init__(self, own: dict[str, Claim]) -> None:
        cited = any(name not in own for claim in own.values() for name in claim.cites)
        super().__init__(claims(own) if cited else own)
        self.own = own
        self.cited(own.values())

    def select(self, names: Iterable[str] = ()) -> list[Claim]:
        """Those of the file by name, or all of them. Raises `InputError` for a name of none."""
        wanted = list(names)
        if unknown := [name for name in wanted if name not in self.own]:
            raise InputError(
                f"the file has no claim '{unknown[0]}'; there are {', '.join(self.own)}"
            )
        return [self.own[name] for name in wanted] or list(self.own.values())


def ledger_with(path: Path) -> OwnLedger:
    """The claims that the file defines, by name, in its order. Runs its code, once a process.

    What it prints goes to standard error. Raises `InputError` where it cannot be read or run, or
    defines no claim; where a claim has a name of the ledger's or of another, or has no evidence.
    """
    if not path.is_file():
        raise InputError(
            f"there is no file '{path}': `oversmoothing prove --init {path.name}` writes an example"
        )
    return _loaded(path.resolve(), read_text(path))


@cache
def _loaded(path: Path, code: str) -> OwnLedger:
    module = _run(path, code)
    stated = {id(value): value for value in vars(module).values() if isinstance(value, Claim)}
    if not stated:
        raise InputError(
            f"{path.name} defines no claim: give one a name, as in CLAIM = Claim(...); "
            "`oversmoothing prove --init FILE.py` writes an example"
        )
    table: dict[str, Claim] = {}
    for claim in stated.values():
        if claim.name in table:
            raise InputError(f"{path.name} has two claims of the name '{claim.name}'")
        if problem := _problem(claim):
            raise InputError(f"{path.name}, claim '{claim.name[:80]}': {problem}")
        table[claim.name] = claim
    return OwnLedger(table)


def _problem(claim: Claim) -> str:
    """What is wrong with a claim that was made, if anything."""
    if not re.fullmatch(r"[\w.+-]{1,80}", claim.name):
        return "its name may have letters, digits and . + - _, up to 80 of them, and no blank"
    if REFERENCE.fullmatch(claim.name):
        return "names like T2b and P-2401.04301v1-psi are the ledger's: choose another"
    if not claim.evidence:
        return "it has no evidence: give it a law, evidence=(by.law(...),)"
    titles = [one.title for one in claim.evidence]
    if twice := [title for title in titles if titles.count(title) > 1]:
        return f"two pieces of its evidence have the title '{twice[0]}': name one, title=..."
    return ""


def _run(path: Path, code: str) -> ModuleType:
    """The file as a module."""
    name = f"claims of {path}"
    module = ModuleType(name)
    module.__file__ = str(path)
    # Dataclasses look their module up; helpers may stand beside the file, and hide nothing.
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    linecache.checkcache(str(path))
    with _refused(path), contextlib.redirect_stdout(sys.stderr):
        exec(compile(code, str(path), "exec", dont_inherit=True), vars(module))
    return module


@contextlib.contextmanager
def _refused(path: Path) -> Iterator[None]:
    """Whatever the file raises, as one sentence with its line."""
    try:
        yield
    except (InputError, RequirementError):
        raise
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno else ""
        code = f" (`{error.text.strip()}`)" if error.text else ""
        raise InputError(f"{path.name}{line}{code} is no Python: {error.msg}") from error
    except (Exception, SystemExit) as error:
        place = raised_in(error, str(path)) or f"{path.name}: "
        raise InputError(f"{place}{_said(error)}") from error


@contextlib.contextmanager
def said_of(path: Path) -> Iterator[None]:
    """An error that arises in the code of the file, in what it calls, or where an instance is drawn
    from what it gave, as one sentence with its line if it has one; another stays what it is."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        place = raised_in(error, str(path.resolve()))
        frames = traceback.extract_tb(error.__traceback__)
        drawing = any("hypothesis" in Path(f.filename).parts and f.name == "draw" for f in frames)
        if drawing and not place:
            raise InputError(
                f"{path.name}: no instance can be drawn from what a law was given "
                f"({_said(error)}): by.law and draw.cases take strategies, as draw.attention()"
            ) from error
        if not place:
            raise
        raise InputError(f"{place}{_said(error)}") from error


def _said(error: BaseException) -> str:
    """What went wrong, and of a name that is not there, the names that are."""
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        for part, module in _PARTS.items():
            if module is error.obj:
                wanted, known = f"{part}.{error.name}", [f"{part}.{n}" for n in names_of(part)]
                near = difflib.get_close_matches(wanted, known, n=1, cutoff=0.6)
                perhaps = f"; {near[0]} perhaps" if near else ""
                return f"there is no {wanted}{perhaps}; there are {', '.join(known)}"
    if isinstance(error, ImportError) and error.name == "oversmoothing":
        return (
            f"{str(error).partition(' (')[0]}; for a claim there are Claim, by, draw, exact, given"
        )
    if isinstance(error, ValueError) and "given.NAME" in str(error):
        return f"{error}; there are {', '.join(f'given.{name}' for name in names_of('given'))}"
    if type(error) is ValueError:
        last = traceback.extract_tb(error.__traceback__)[-1].filename
        # What a claim is made with refuses.
        if Path(last).parent == Path(__file__).parent:
            return str(error)
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")


def described() -> Iterator[str]:
    """Of given, draw, by and exact: every name with what it says, as the lines of a comment."""
    for part in _PARTS:
        for name, words in names_of(part).items():
            named = f"{part}.{name}"
            for line in textwrap.wrap(words, 72) or [""]:
                yield f"# {named:24s} {line}".rstrip()
                named = ""
