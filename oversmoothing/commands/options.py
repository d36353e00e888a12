"""What several commands share: options, whose name means one thing everywhere, and their tables."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, BadParameter, Option

from oversmoothing.theory.support import sizes
from oversmoothing.theory.support.errors import InputError, unknown
from oversmoothing.theory.support.files import output_folder, to_json

if TYPE_CHECKING:
    import pandas as pd

    from oversmoothing.simulations.drawing.result import Result


# ------------------------------------------------------------------------------ kinds of options


def whole(help: str, least: int = 1, most: int = sizes.SEED, metavar: str = "N") -> Any:
    """An option that is a whole number from `least` to `most`."""

    def read(given: str | int) -> int:
        try:
            number = int(given)
        except ValueError as error:
            raise BadParameter("must be a whole number") from error
        if number < least:
            raise BadParameter(f"must be at least {least:,}")
        if number > most:
            said = "2^63 - 1" if most == sizes.SEED else f"{most:,}"
            raise BadParameter(f"must be at most {said}")
        return number

    return Option(metavar=metavar, parser=read, help=help)


def real(help: str, metavar: str, least: float = 0.0, most: float = sizes.REAL) -> Any:
    """An option that is a number from `least` to `most`; above 0 where `least` is tiny."""

    def read(given: str | float) -> float:
        try:
            number = float(given)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            raise BadParameter("must be a number")
        if number < least:
            tiny = 0 < least < 1e-200 and number <= 0
            raise BadParameter("must be above 0" if tiny else f"must be at least {least:g}")
        if number > most:
            raise BadParameter(f"must be at most {most:g}")
        return number

    return Option(metavar=metavar, parser=read, help=help)


def positive(help: str, metavar: str) -> Any:
    """An option that is a number above 0."""
    return real(help, metavar, least=1 / sizes.REAL)


def checked(kind: str, names: Iterable[str], todo: str = "") -> Callable[[Any], Any]:
    """A callback that refuses a value, or one of several, that is none of these names."""
    known = list(names)

    def check(value: Any) -> Any:
        for each in value if isinstance(value, list) else [value]:
            if each is not None and each not in known:
                raise unknown(kind, each, known, todo)
        return value

    return check


def one_of(kind: str, names: Iterable[str], help: str, *, todo: str = "") -> Any:
    """An option whose value, or each of whose values, is one of these names, all of them said."""
    known = list(names)
    return Option(
        metavar="NAME",
        help=help if todo else f"{help}: {', '.join(known)}",
        callback=checked(kind, known, todo),
        autocompletion=lambda: known,
    )


# While a command runs: the options and operands that were typed, each as it is typed.
TYPED: ContextVar[frozenset[str]] = ContextVar("typed", default=frozenset())


def unread(why: str, *flags: str) -> None:
    """Raise `InputError` for one of these options that was typed: nothing that is given is dropped.

    why: completes "--x does nothing ...".
    """
    given = sorted(TYPED.get() & set(flags))
    if given:
        does, it = ("does", "it") if len(given) == 1 else ("do", "them")
        raise InputError(f"{' and '.join(given)} {does} nothing {why}: leave {it} out")


def alone(flag: str, *beside: str) -> None:
    """Raise `InputError` for all that was typed but `flag` and what it reads beside itself."""
    unread(f"beside {flag}", *(TYPED.get() - {flag, *beside}))


def needs(holds: bool, what: str, *flags: str) -> None:
    """Raise `InputError` for one of these options that was typed where `what` does not hold."""
    if not holds:
        unread(f"without {what}", *flags)


def layers(given: str | int) -> int:
    """A number of layers, also written as 1e6; a default comes as the number that it is."""
    text = str(given)
    try:
        number = int(text) if text.lstrip("+-").isdigit() else float(text)
        if number == int(number) and 0 <= number <= sizes.DEPTH:
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise BadParameter(f"must be a whole number of layers from 0 to {sizes.DEPTH:,} (1e6 will do)")


# --------------------------------------------------------------------- the same in every command

RESULTS = Path("results")
Out = Annotated[Path, Option(metavar="DIR", help="folder for results")]
OutFile = Annotated[Path | None, Option(
    "--out", metavar="DIR", help="folder for results, or one file for the result")]  # fmt: skip
Report = Annotated[Path | None, Option("--report", hidden=True, help="the old name of --out FILE")]
Json = Annotated[bool, Option("--json", help="print the result as JSON and nothing else")]
Plot = Annotated[bool, Option("--plot", help="draw it too: PNG, PDF and a caption")]
Seed = Annotated[int, whole("seed of everything random", least=0)]
Device = Annotated[str, Option(metavar="NAME", help="device to compute on: auto, cpu or cuda")]
DryRun = Annotated[bool, Option("--dry-run", help="say what it would do and take, and stop")]
Listed = Annotated[bool, Option("--list", help="list the names and stop")]
DataDir = Annotated[Path | None, Option(
    metavar="DIR", help="folder of models and data (or $OVERSMOOTHING_DATA)")]  # fmt: skip

Tokens = Annotated[int, whole("number of tokens", most=sizes.SIZE)]
Features = Annotated[int, whole("number of features", most=sizes.SIZE, metavar="D")]
Depth = Annotated[int, Option(metavar="L", parser=layers, help="number of layers")]
Points = Annotated[int, whole("number of log-spaced layers to measure", 2, sizes.POINTS)]
Temperature = Annotated[float, positive("temperature of the softmax; below 1 is sharper", "T")]
Causal = Annotated[bool, Option("--causal", help="let token i see the tokens up to i alone")]
Precision = Annotated[str, one_of(
    "precision", ("float32", "float64"), "precision of the iteration")]  # fmt: skip
Heads = Annotated[int, whole("number of heads", most=sizes.SIZE)]
Scale = Annotated[float, real("norm of the (summed) weights", "S")]
Agree = Annotated[float, real(
    "count streams as one below this share of their initial difference", "SHARE",
    most=1)]  # fmt: skip
Draws = Annotated[int, whole("number of draws", most=sizes.POINTS)]
Workers = Annotated[int, whole("number of processes at work at the same time", most=64)]

CaseFile = Annotated[str | None, Argument(
    metavar="CASE.json",
    help='"A" (or its "logits"), "H" (or the factors "W_V", "W_proj" of a head), for X\' = X + A X '
    'H^T, and optionally "X0", as nested lists; strings ("3/4") are exact; - reads them from '
    "standard input")]  # fmt: skip
Example = Annotated[str | None, Option(
    metavar="NAME", help="case that comes with the package instead, e.g. GT4")]  # fmt: skip

Model = Annotated[str, Argument(
    metavar="MODEL",
    help="vit, vit+, vit-, vit-random, the folder of a run; a Hugging Face folder or hub name; a "
    "timm-named checkpoint or a GGUF file; or a folder within --data-dir")]  # fmt: skip
Images = Annotated[str | None, Option(
    metavar="DIR",
    help="folder of image files, here or within --data-dir; cifar100: its test images"
)]  # fmt: skip
Text = Annotated[Path | None, Option(
    metavar="FILE", help="file of texts, one a line (- for standard input)")]  # fmt: skip
# Each command has its default; None: of the inputs that are named 200.
Count = Annotated[int, whole("take the first N inputs (inspect draws N by --seed)")]
Sample = Annotated[int | None, whole(
    "take the first N inputs (inspect draws N by --seed) (default 200)")]  # fmt: skip
CutTexts = Annotated[int | None, whole(
    "longest text in tokens (default: what the model reads)", least=2)]  # fmt: skip
Part = Annotated[str | None, Option(
    metavar="NAME", help="stack of a model that has several, e.g. vision_model")]  # fmt: skip


def file_in(out: Path | None, report: Path | None, name: str) -> Path | None:
    """The file that --out (or the old --report) names: itself, or NAME in the folder; or none."""
    if report is not None or out is None:
        return report
    return out if out.suffix and not os.path.isdir(out) else output_folder(out) / name


def show_progress() -> None:
    """Show from here on how far what takes long is, but beside --json."""
    from oversmoothing.simulations.running import show

    show("--json" not in TYPED.get())


def look_up(images: str | None, text: Path | None, data_dir: Path | None) -> None:
    """Raise `InputError` where the folder of images or the file of texts is not there."""
    from oversmoothing.experiments.models.pictures import looked_in, named_pictures, within

    if images is not None:
        named_pictures(images, 1, data_dir)
    if text is not None and str(text) != "-" and not Path(within(str(text), data_dir)).exists():
        raise InputError(
            f"no file '{text}' was found {looked_in(data_dir)}.\nGive a file to --text, one text a "
            "line."
        )


def new_folder(folder: Path) -> Path:
    """The folder, or one beside it where an earlier result lies in it, made."""
    number, free = 1, folder
    while free.is_dir() and any(free.iterdir()):
        number += 1
        free = folder.with_name(f"{folder.name}-{number}")
    return output_folder(free)


# ------------------------------------------------------------------------------- what is printed


def listed(
    rows: Mapping[str, str], as_json: bool, out: Path | None = None, width: int = 24
) -> None:
    """Names, each with what is said of it; as JSON one object. Raises `InputError` for --out."""
    if out is not None:
        raise InputError("--list names what there is and writes nothing: leave --out out")
    for name, said in {} if as_json else rows.items():
        line, indent = f"{name:{width}s} {said}", " " * (width + 1)
        print(fill(line, columns(), subsequent_indent=indent) if sys.stdout.isatty() else line)
    if as_json:
        print(to_json(dict(rows)), end="")


def shown(as_json: bool, value: Any, text: str, unpiped: bool = True) -> None:
    """Print the value as JSON and nothing else, or the text."""
    print(to_json(value).rstrip("\n") if as_json else wrapped(text, unpiped))


def columns() -> int:
    """Of the terminal, 40 at least; 100 where there is none."""
    return max(40, get_terminal_size((100, 24)).columns)


def wrapped(text: str, unpiped: bool = False) -> str:
    """Long lines go on in the next, indented, but rows of tables, and in a pipe `unpiped` text."""
    # A row has two spaces within, or the escapes of colours.
    lines, width = [], len(text) if unpiped and not sys.stdout.isatty() else columns()
    for line in text.splitlines():
        inner = line.lstrip()
        if len(line) > width and "  " not in inner and "\x1b" not in inner:
            indent = line[: len(line) - len(inner)]
            line = fill(inner, width, initial_indent=indent, subsequent_indent=f"{indent}  ",
                        break_long_words=False, break_on_hyphens=False)  # fmt: skip
        lines.append(line)
    return "\n".join(lines)


def table_text(frame: pd.DataFrame, number: Callable[[float], str] | None = None) -> str:
    """The table without its index; `number` words a float, '-' stands for one that is missing.

    In a terminal, columns for which there is no room go on beneath, behind the first one again.
    """
    from oversmoothing.simulations.drawing.wording import in_column, plain_table

    if not sys.stdout.isatty():
        return plain_table(frame, number)
    import pandas as pd
    from rich import box, console, table, text

    terminal = console.Console()
    parts: list[list[tuple[int, Literal["left", "right"], list[str]]]] = [[]]
    for name, held in ((str(key), each) for key, each in frame.items()):
        cells = [_cell(each, number and in_column(name, number)) for each in held]
        longest = max([8, *map(len, "\n".join(cells).split("\n"))])
        head = fill(name.replace("_", "_ "), longest, break_long_words=False).replace("_ ", "_")
        width = max(map(len, "\n".join([head, *cells]).split("\n"))) + 2
        if parts[-1][1:] and sum(each for each, *_ in parts[-1]) + width >= terminal.width:
            parts.append(parts[0][:1])
        numeric = pd.api.types.is_numeric_dtype(held)
        parts[-1].append((width, "right" if numeric else "left", [head, *cells]))
    with terminal.capture() as capture:
        for part in parts:
            drawn = table.Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="bold")
            for _, side, column in part:
                drawn.add_column(text.Text(column[0]), justify=side, overflow="fold")
            for row in zip(*(column[1:] for _, _, column in part), strict=True):
                drawn.add_row(*map(text.Text, row))
            terminal.print(drawn)
    return capture.get().strip("\n")


def _cell(value: object, number: Callable[[float], str] | None) -> str:
    if isinstance(value, float):
        return "-" if value != value else number(value) if number else f"{value}"
    return fill(str(value), 16, break_long_words=False, break_on_hyphens=False)


def finish(
    result: Result, folder: Path, as_json: bool, plot: bool = True, wide: bool = False
) -> None:
    """All files of a result in a folder, and its JSON on the output, or its tables and sentences.

    Raises `InputError` where a file cannot be written.
    """
    from oversmoothing.simulations.drawing.result import saved

    if result.picture is None:
        unread("where nothing can be drawn", "--plot")
    if not plot:
        result.picture = None
    first, *more = saved(result, folder).values()
    if as_json:
        print(to_json(result.to_json_object()), end="")
        return
    print(wrapped(result.text(table_text, wide)))
    beside = ", ".join(str(path.relative_to(first.parent)) for path in more)
    print(f"wrote {first} (and {beside} beside it)")
