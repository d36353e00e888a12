"""One drawn run of the command line: its files, its words, and what came of it."""

import contextlib
import io
import os
import random
import resource
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch  # noqa: F401 -- its libraries are there before the memory of a run is limited

import oversmoothing
from oversmoothing.commands import forms
from oversmoothing.commands.main import chosen
from tests.fuzz import values
from tests.fuzz.measured import MEASURED
from tests.fuzz.rooms import ROOMS

# A drawn name is asked of no hub.
os.environ["HF_HUB_OFFLINE"] = "1"
# Seconds and bytes that no run may take.
SECONDS, BYTES = 60, 2 * 2**30
# Command -> how often it is drawn.
SHARES = {
    "verdict": 28, "certify": 12, "check": 15, "simulate": 10, "heads": 10, "sweep": 12, "train": 4,
    "prove": 5, "figures": 1, "inspect": 5, "readings": 1, "ladder": 1,
    "certified": 1, "streams": 8, "exponents": 2, "remedies": 2, "graphs": 2,
    "stability": 1, "flips": 1, "loop": 1, "tilt": 1, "enclose": 2, "study": 3,
}  # fmt: skip
# Flags that always stand there, so that no run takes its minutes.
ALWAYS = {
    "simulate": ["--n", "5", "--d", "3", "--depth", "50", "--points", "5"],
    "heads": ["--heads", "2", "--n", "4", "--d", "3", "--depth", "20", "--points", "4"],
}
# Not drawn: what would wait for a network, or take a cluster of processes.
_LEFT_OUT = {
    "help",
    "scheduler",
    "cluster",
    "workers",
    "data_dir",
    "minutes",
    "classifier",
    "thorough",
    "only",
    "copies",
    "jobs",
}


@dataclass(frozen=True)
class Run:
    """The words of a run and the files it finds in its folder, by name."""

    words: list[str]
    files: dict[str, bytes]


@dataclass(frozen=True)
class Found:
    """How it ended. wrong: in words, empty where all is well."""

    status: int
    out: str
    err: str
    seconds: float
    wrong: str


@cache
def certificates() -> tuple[dict[str, Any], ...]:
    """Honest ones, to be bent."""
    from oversmoothing.theory.certificate import make_certificate
    from oversmoothing.theory.claims.golden import golden_cases
    from oversmoothing.theory.numbers.exact import to_fraction

    eps = to_fraction("1/100", "eps")
    return tuple(
        make_certificate(golden_cases()[name].layer, golden_cases()[name].start, eps).body
        for name in ("GT1", "GT4", "GT12")
    )


def draw(seed: int, number: int, only: str | None = None) -> Run:
    """The run of that number; only: of this command."""
    rng = random.Random(f"{seed}/{number}")
    command = only or rng.choices(list(SHARES), list(SHARES.values()))[0]
    words: list[str] = list(ALWAYS.get(command, []))
    files: dict[str, bytes] = {}
    if command in ("verdict", "certify", "check"):
        words.append("input.json")
        files["input.json"] = _json(command, rng).encode("utf-8", "surrogatepass")
    elif command in ROOMS | MEASURED:
        found, files = (ROOMS | MEASURED)[command](rng)
        words += found
    if words and words[-1].startswith("input") and rng.random() < 0.08:
        # An empty configuration is a legal one: it trains the default model, for minutes.
        words[-1] = rng.choice([p for p in values.PATHS if (command, p) != ("train", "empty")])
    for _ in range(rng.choice([0, 0, 1, 1, 2, 4])):
        words += _option(command, rng)
    if rng.random() < 0.02:
        words.insert(rng.randrange(len(words) + 1), rng.choice(values.WORDS))
    return Run([word for word in typed(command, words) if "\0" not in word], files)


def typed(command: str, words: list[str]) -> list[str]:
    """The words of a command, or of a form of one: "loop" is a kind of `probe`."""
    if words[:1] == ["input.json"] and command == "streams":
        return ["verdict", *words]
    if command in forms("probe") and "--n" not in words:
        return ["probe", *(words[:1] or ["vit"]), command, *words[1:]]
    if f"--{command}" in forms("simulate"):
        return ["simulate", *[f"--{command}"] * (f"--{command}" not in words), *words]
    return [command, *words]


def _json(command: str, rng: random.Random) -> str:
    if command == "check":
        return values.mutated(rng.choice(certificates()), rng)
    return values.mutated(values.case(rng), rng)


def _option(command: str, rng: random.Random) -> list[str]:
    params = [
        p for p in chosen(typed(command, []))[0].params
        if getattr(p, "param_type_name", "") == "option" and p.name not in _LEFT_OUT
    ]  # fmt: skip
    if not params:
        return []
    one = rng.choice(params)
    flag = one.opts[0]
    if getattr(one, "is_flag", False):
        return [flag]
    kind = str(one.type_descriptor.annotation).lower()
    if one.name in ("out", "images", "text"):
        pool = values.PATHS
    elif "int" in kind:
        pool = values.INTEGERS
    elif "float" in kind:
        pool = values.REALS
    else:
        pool = [*values.WORDS, *values.REALS, *values.INTEGERS]
        pool += [
            word for word in str(one.help or "").replace(".", "").replace(",", "").split()[-12:]
        ]
    repeat = rng.choice([1, 1, 3]) if getattr(one, "multiple", False) else 1
    return [flag, *(rng.choice(pool) for _ in range(repeat))]


# -------------------------------------------------------------------------------- the run itself


class Overdue(BaseException):
    """A run took too long."""


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def late(*_: object) -> None:
        raise Overdue(f"more than {SECONDS} s")

    former = signal.signal(signal.SIGALRM, late)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + BYTES, hard))
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def furnish(folder: Path, files: dict[str, bytes]) -> None:
    """The folder of a run: its files, and the paths that `values.PATHS` names."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "folder").mkdir(parents=True)
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    (folder / "link").symlink_to("file")
    (folder / "file").write_text('{"A": [["1"]], "H": [["2"]]}')
    (folder / "empty").write_bytes(b"")
    (folder / "bytes").write_bytes(bytes(range(256)))
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def perform(run: Run, folder: Path) -> Found:
    """Run it in a folder of its own, in this process."""
    furnish(folder, run.files)
    out, err = io.StringIO(), io.StringIO()
    began = time.perf_counter()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        _limited(),
    ):
        try:
            status: Any = oversmoothing.main(run.words)
        except SystemExit as error:
            status = error.code
    seconds = time.perf_counter() - began
    said = err.getvalue()
    return Found(
        status, out.getvalue(), said, seconds, _wrong(run, folder, status, out, said, seconds)
    )


def _wrong(run: Run, folder: Path, status: Any, out: io.StringIO, said: str, seconds: float) -> str:
    if status not in (0, 1, 2):
        return f"exit status {status}"
    if "Traceback" in said + out.getvalue():
        return "a traceback"
    if status == 2 and not said.strip():
        return "bad input, and not a word"
    if status == 1 and not (said + out.getvalue()).strip():
        return "a failure, and not a word"
    if seconds > SECONDS:
        return f"{seconds:.0f} s"
    strays = [path.name for path in folder.rglob(".writing-*")]
    if strays:
        return f"left behind: {strays}"
    return (
        "" if (folder / "loop").is_symlink() and (folder / "pipe").is_fifo() else "a link replaced"
    )
