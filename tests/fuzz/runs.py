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

import oversmoothing
from oversmoothing.commands.line import load
from tests.fuzz import values

# Seconds and bytes that no run may take.
SECONDS, BYTES = 60, 2 * 2**30
# Command -> how often it is drawn. Those that train or draw for minutes are asked for lists alone.
SHARES = {
    "verdict": 30, "certify": 12, "check": 16, "simulate": 10, "heads": 10, "sweep": 12, "train": 4,
    "rates": 1, "prove": 2, "figures": 1, "bench": 1, "inspect": 3, "readings": 1, "ladder": 1,
    "certify-model": 1,
}  # fmt: skip
# Flags that always stand there, so that no run takes its minutes.
ALWAYS = {
    "simulate": ["--n", "5", "--d", "3", "--depth", "50", "--points", "5"],
    "heads": ["--heads", "2", "--n", "4", "--d", "3", "--depth", "20", "--points", "4"],
    "prove": ["--list"],
    "figures": ["--list"],
    "bench": ["--list"],
    "rates": ["--nothing"],
}
# Models are no part of this: whatever stands for one is not there.
_MODELS = ("inspect", "readings", "ladder", "certify-model")
# Not drawn: what would wait for a network, or take a cluster of processes.
_LEFT_OUT = {"help", "scheduler", "cluster", "workers", "data_dir", "minutes", "thorough"}
_TOML = """{title}measures = {measures}
[fixed]
n = {n}
d = {d}
value = {value}
depth = {depth}
{more}
[axes]
{axis} = {values}
"""


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
    from oversmoothing.theory.certificates.certificate import make_certificate
    from oversmoothing.theory.layer.golden import chosen_case
    from oversmoothing.theory.numbers.rational import to_fraction

    eps = to_fraction("1/100", "eps")
    return tuple(
        make_certificate(chosen_case(None, name), eps).body for name in ("GT1", "GT4", "GT12")
    )


def draw(seed: int, number: int) -> Run:
    """The run of that number."""
    rng = random.Random(f"{seed}/{number}")
    command = rng.choices(list(SHARES), list(SHARES.values()))[0]
    words, files = [command, *ALWAYS.get(command, [])], {}
    if command in ("verdict", "certify", "check", "train"):
        words.append("input.json")
        files["input.json"] = _json(command, rng).encode("utf-8", "surrogatepass")
    elif command == "sweep":
        words.append("input.toml")
        files["input.toml"] = _toml(rng).encode("utf-8", "surrogatepass")
    elif command in _MODELS:
        words.append(rng.choice(values.PATHS))
    if len(words) > 1 and words[-1].startswith("input") and rng.random() < 0.08:
        words[-1] = rng.choice(values.PATHS)
    for _ in range(rng.choice([0, 0, 1, 1, 2, 4])):
        words += _option(command, rng)
    if rng.random() < 0.02:
        words.insert(rng.randrange(len(words) + 1), rng.choice(values.WORDS))
    return Run([word for word in words if "\0" not in word], files)


def _json(command: str, rng: random.Random) -> str:
    if command == "check":
        return values.mutated(rng.choice(certificates()), rng)
    if command == "train":
        fields: dict[str, Any] = {"variant": "vit", "epochs": 1, "depth": 1, "width": 4, "heads": 2}
        for name in ("seed", "batch_size", "learning_rate", "zoom", "patch", "ffn_ratio"):
            if rng.random() < 0.3:
                fields[name] = rng.choice(values.ODD)
        fields["nothing"] = 1  # no run trains
        return values.mutated(fields, rng)
    return values.mutated(values.case(rng), rng)


def _toml(rng: random.Random) -> str:
    odd = [
        "1", "2", "0", "-1", "3.0", "1e400", "inf", "nan", "-inf", "9" * 5000, "1" + "0" * 30,
        "true",
        '"x"', "[]", "[[1]]", "[" * 99 + "]" * 99, "[" * 10**5, "1979-05-27", "{}", "{ from = 1 }",
        "{ from = 0, to = 1e308, steps = 3 }", "{ from = 1, to = 2, steps = 99999999999 }",
        "1e-300",
        "{ from = -1e308, to = 1e308, steps = 3 }", "1.7e308", '"' + "x" * 300 + '"', '"\\ud800"',
    ]  # fmt: skip

    def one(sane: str) -> str:
        return rng.choice(odd) if rng.random() < 0.12 else sane

    axes = [
        "seed",
        "temperature",
        "high",
        "low",
        "scale",
        "radius",
        "rank",
        "size",
        "dim",
        "n",
        "heads",
    ]
    axis = rng.choice(axes)
    sane = {"seed": "[0, 1]", "rank": "[1]", "size": "[2]", "n": "[2, 3]", "heads": "[1, 2]"}
    fill = {
        "title": one("") and f"title = {one('1')}\n" if rng.random() < 0.1 else "",
        "measures": one('["ratio", "cosine", "limits"]'),
        "n": one("3"),
        "d": one("2"),
        "value": one(rng.choice(['"interval"', '"ginibre"', '"disc"', '"low_rank"', '"jordan"'])),
        "depth": one("20"),
        "more": f"{rng.choice([*axes, 'depth', 'blocks'])} = {one('1')}"
        if rng.random() < 0.3
        else "",
        "axis": axis if rng.random() < 0.95 else rng.choice(["a.b", "x" * 300, '"\\u00e9"', "n"]),
        "values": one(sane.get(axis, "[0.1, 0.5]")),
    }
    text = _TOML.format(**fill)
    slip = rng.randrange(20)
    if slip == 0:
        text = text[: rng.randrange(len(text))]
    elif slip == 1:
        text += rng.choice(
            ["\0", "\ufeff", "[axes]\n", "[" * 10**4, "a." * 10**4 + "b = 1", "\udcff"]
        )
    return text


def _option(command: str, rng: random.Random) -> list[str]:
    params = [
        p for p in load(command).params
        if getattr(p, "param_type_name", "") == "option" and p.name not in _LEFT_OUT
    ]  # fmt: skip
    if not params:
        return []
    one = rng.choice(params)
    flag = one.opts[0]
    if getattr(one, "is_flag", False):
        return [flag]
    kind = str(one.type_descriptor.annotation).lower()
    if one.name in ("out", "report", "images", "text"):
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
    if "--report" in run.words and status == 0 and "--list" not in run.words:
        path = folder / run.words[len(run.words) - 1 - run.words[::-1].index("--report") + 1]
        if not path.is_file():
            return "a report that is not there"
    strays = [path.name for path in folder.rglob(".writing-*")]
    if strays:
        return f"left behind: {strays}"
    return (
        "" if (folder / "loop").is_symlink() and (folder / "pipe").is_fifo() else "a link replaced"
    )
