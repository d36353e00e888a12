"""What every experiment returns: a `Result`.

It holds tables with a unit for each column, sentences with the evidence that carries each, a
picture, the configuration, and the versions and commit it was made with. An experiment that
measures arrays keeps them in a subclass.

Its files are written together or not at all. NAME.json holds everything but the picture. Beside it
lie each table as CSV (the main one as NAME.csv), the picture as NAME.png and NAME.pdf, the
sentences as NAME.txt, and all of it as one page, NAME.html.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from oversmoothing.simulations.drawing.wording import as_html, few, plain_table
from oversmoothing.simulations.running import provenance
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import json_number, output_folder, to_json, write_together

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# How a table and its wording of numbers become text.
AsTable = Callable[[pd.DataFrame, Any], str]
Kind = Literal["number", "integer", "truth", "text"]
# Keys of the JSON that are no table and no part of the configuration.
RESERVED = ("words", "form", "provenance")
# What the form says of a table, beside its rows.
_SAID_OF_A_TABLE = ("kinds", "units", "shown", "number", "few")
NAN = math.nan
# Rows of a table beyond which a terminal does not show it: the files have it.
LONG = 100


@dataclass(frozen=True)
class Evidence:
    """What carries a sentence: a proof of `statement`, a measurement on `number` inputs (or what
    else `of` counts) with its 95 % interval where there is one, or nothing yet. told: the sentence
    itself gives the interval, as rounded and in the unit that it has."""

    kind: Literal["proved", "measured", "untested"]
    statement: str = ""
    number: int = 0
    of: str = "input"
    low: float = math.nan
    high: float = math.nan
    told: bool = False

    def __post_init__(self) -> None:
        if self.kind == "proved" and not self.statement:
            raise InputError("evidence 'proved' names no statement: say which one is proved")
        if self.kind == "measured" and self.number < 1:
            raise InputError(f"evidence 'measured' is of {self.number} {self.of}s: give at least 1")
        if math.isnan(self.low) != math.isnan(self.high) or self.low > self.high:
            raise InputError(f"the interval {self.low} to {self.high} is none: give both ends")

    def __str__(self) -> str:
        if self.kind == "untested":
            return "untested"
        if self.kind == "proved":
            return f"proved: {self.statement}"
        counted = f"{self.number} {self.of}{'s' * (self.number != 1)}"
        if self.told or math.isnan(self.low):
            return f"measured on {counted}"
        return f"measured on {counted}, 95 % interval {self.low:.3g} to {self.high:.3g}"

    def to_json_object(self) -> dict[str, Any]:
        """The fields that say something."""
        said: dict[str, Any] = {"kind": self.kind}
        if self.statement:
            said["statement"] = self.statement
        if self.number:
            said |= {"number": self.number, "of": self.of}
        if not math.isnan(self.low):
            said |= {"low": json_number(self.low), "high": json_number(self.high)}
        return said


def proved(statement: str) -> Evidence:
    """A statement of the ledger (T8d) or of a paper."""
    return Evidence("proved", statement)


def measured(
    number: int, low: float = NAN, high: float = NAN, of: str = "input", told: bool = False
) -> Evidence:
    """On `number` independent inputs; low, high: the 95 % interval of what the sentence gives."""
    return Evidence("measured", "", number, of, low, high, told)


UNTESTED = Evidence("untested")


@dataclass(frozen=True)
class Sentence:
    """What a result says, and every piece of evidence that it rests on (one at least)."""

    says: str
    evidence: tuple[Evidence, ...]

    def __init__(self, says: str, *evidence: Evidence) -> None:
        if not evidence:
            raise InputError(f"nothing carries the sentence '{says}': give its evidence")
        object.__setattr__(self, "says", says)
        object.__setattr__(self, "evidence", evidence)

    def __str__(self) -> str:
        return f"{self.says} [{'; '.join(map(str, self.evidence))}]"


@dataclass(frozen=True, eq=False)
class Table:
    """Rows with the unit of each column; a column that `units` leaves out is a plain number or
    word. shown: the columns that a terminal and a page show (none: all); means: of those whose
    names do not say it what they are, written beneath; number: how these write a float; few:
    whether a terminal shows some of the rows alone, evenly spaced.

    A column holds floats, whole numbers of any size, truth values or text (of which some may be
    missing). Raises `InputError` for a column of several kinds, columns of one name, a table
    without columns, and units or `shown` of columns that are not there.
    """

    rows: pd.DataFrame
    units: Mapping[str, str] = field(default_factory=dict)
    shown: Sequence[str] = ()
    number: str = "{:.3g}"
    few: bool = False
    means: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, Kind] = field(init=False)

    def __post_init__(self) -> None:
        names = list(self.rows.columns)
        if not names or len(set(names)) < len(names) or not all(isinstance(n, str) for n in names):
            raise InputError(f"a table needs columns with different names, not {names}")
        given = (*self.units, *self.shown, *self.means)
        if unknown := [name for name in given if name not in names]:
            raise InputError(f"the table has no column '{unknown[0]}': it has {', '.join(names)}")
        both = {name: _of_one_kind(name, self.rows[name]) for name in names}
        rows = pd.DataFrame({name: each for name, (_, each) in both.items()})
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "kinds", {name: kind for name, (kind, _) in both.items()})

    def for_reader(self, wide: bool = False) -> pd.DataFrame:
        """The columns of `shown` (wide: all), each unit behind its name; of a table of `few` some
        rows."""
        units = {name: f"{name} [{unit}]" for name, unit in self.units.items() if unit}
        rows = self.rows.iloc[few(len(self.rows))] if self.few else self.rows
        shown = () if wide else self.shown
        return rows[list(shown or self.rows)].rename(columns=units)

    def legend(self) -> list[str]:
        """`means`, a line each."""
        return [f"  {name}: {said}" for name, said in self.means.items()]

    def to_json_object(self) -> list[dict[str, Any]]:
        """A row as a JSON object, numbers as `json_number` writes them."""
        return [
            {name: json_number(row[name]) if kind == "number" else row[name]
             for name, kind in self.kinds.items()}
            for row in self.rows.to_dict("records")
        ]  # fmt: skip


def _of_one_kind(name: str, column: pd.Series) -> tuple[Kind, pd.Series]:
    """The kind of a column, and its cells as float64, int64, bool or objects."""
    if column.dtype.kind == "f":
        return "number", pd.Series(column.to_numpy(dtype=np.float64))
    column = column.reset_index(drop=True)
    known = column.astype(object)[~column.isna()]
    kind = pd.api.types.infer_dtype(known if len(known) else column)
    whole = len(known) == len(column)
    if kind == "boolean" and whole:
        return "truth", pd.Series(column.to_numpy(dtype=bool))
    if kind == "integer" and whole:
        # Python's own integers: those of a table have any size.
        cells = [int(x) for x in column]
        small = all(-(2**63) <= x < 2**63 for x in cells)
        return "integer", pd.Series(cells, dtype=np.int64 if small else object)
    # Whole numbers of which some are missing, where floats have them all.
    if kind in ("integer", "floating", "mixed-integer-float"):
        numbers = known.astype(float)
        if (numbers == known).all():
            return "number", pd.Series(numbers.reindex(column.index).to_numpy())
    if kind in ("string", "empty"):
        return "text", pd.Series([known.get(k) for k in column.index], dtype=object)
    raise InputError(f"column '{name}' holds several kinds of cells: make each a column of its own")


class Picture:
    """Drawn when it is asked for."""

    def __init__(self, draw: Callable[[], Figure], title: str) -> None:
        self.draw, self.title = draw, title

    @cached_property
    def files(self) -> dict[str, bytes]:
        """The bytes by kind, 'png' and 'pdf'."""
        from oversmoothing.simulations.drawing.picture import rendered

        figure = self.draw()
        return {kind: rendered(figure, kind, self.title) for kind in ("png", "pdf")}


class Result:
    """name: of its files, a word; title: a line. tables: by name, the first is the main one.
    sentences: what is said, in order. configuration, details: JSON values by name, what was asked
    and what else was found. made: with which versions, at which commit, on which machine.

    Raises `InputError` for no table, a name that stands twice, and a name of a file or a table that
    is no identifier.
    """

    def __init__(
        self,
        name: str,
        title: str,
        tables: Mapping[str, Table],
        sentences: Sequence[Sentence],
        configuration: Mapping[str, Any],
        *,
        details: Mapping[str, Any] | None = None,
        picture: Callable[[], Figure] | None = None,
    ) -> None:
        if not tables:
            raise InputError(f"the result '{name}' has no table: give at least one")
        if bad := [each for each in (name, *tables) if not each.isidentifier()]:
            raise InputError(f"'{bad[0]}' is no name of a file: use letters, digits and _")
        names = [*configuration, *tables, *(details or {}), *RESERVED]
        if twice := [each for each in names if names.count(each) > 1]:
            raise InputError(f"the result '{name}' has two parts '{twice[0]}': rename one")
        self.name, self.title = name, title
        self.tables = dict(tables)
        self.sentences = tuple(sentences)
        self.configuration: dict[str, Any] = _plain(configuration)
        self.details: dict[str, Any] = _plain(details or {})
        self.picture = None if picture is None else Picture(picture, title)
        self.made: dict[str, Any] = _plain(provenance())

    @property
    def table(self) -> pd.DataFrame:
        """The rows of the main table."""
        return next(iter(self.tables.values())).rows

    def to_frame(self) -> pd.DataFrame:
        """A copy of the main table."""
        return self.table.copy()

    def words(self) -> str:
        """The sentences, a line each."""
        return "\n".join(each.says for each in self.sentences)

    def text(self, as_table: AsTable | None = None, wide: bool = False) -> str:
        """What a terminal shows: what was asked, the answer (the first sentence), the tables of at
        most LONG rows that carry it, and the other sentences, each with its evidence.

        as_table: how a table and its wording of numbers become text; plain where None. wide: every
        column of the tables.
        """
        as_text = as_table or plain_table
        # The main table, and those of the others that say what of them is shown.
        main, *others = self.tables.values()
        drawn = [
            "\n".join([as_text(each.for_reader(wide), each.number.format), *each.legend()])
            for each in (main, *(other for other in others if other.shown))
            if each.few or len(each.rows) <= LONG
        ]
        said = [f"  {each}" for each in self.sentences]
        parts = ["\n".join([self.title, *said[:1]]), *drawn, "\n".join(said[1:])]
        return "\n\n".join(filter(None, parts))

    def to_json_object(self) -> dict[str, Any]:
        """Configuration, rows, details and words by name; `form` says how to read them back."""
        return {
            **self.configuration,
            **{name: table.to_json_object() for name, table in self.tables.items()},
            **self.details,
            "words": [each.says for each in self.sentences],
            "form": self.form(),
            "provenance": self.made,
        }

    def form(self) -> dict[str, Any]:
        """Names, kinds and units of columns, and the evidence of each sentence."""
        return {
            "schema_version": 1,
            "name": self.name,
            "title": self.title,
            "configuration": list(self.configuration),
            "details": list(self.details),
            "tables": {
                name: {part: _plain(getattr(table, part)) for part in _SAID_OF_A_TABLE}
                for name, table in self.tables.items()
            },
            "evidence": [[x.to_json_object() for x in each.evidence] for each in self.sentences],
            "picture": self.picture is not None,
        }

    def own_page(self) -> str | None:
        """A page of HTML in the place of that which every result has; None for that one."""
        return None

    def beside(self) -> dict[str, str | bytes]:
        """Files by name that stand beside those of every result."""
        return {}

    def _repr_html_(self) -> str:
        return as_html(self.words(), next(iter(self.tables.values())).for_reader())


def _plain(value: Any) -> Any:
    """A value as JSON has it: lists for tuples, Python's numbers for numpy's, 'inf' for infinity.

    Raises `InputError` for what JSON has no form for.
    """
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(each) for each in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return json_number(float(value))
    if value is None or isinstance(value, str):
        return value
    raise InputError(f"{value!r} has no form in JSON: give numbers, text, lists and tables")


# Rows of a table on the page; the files have all of them.
ROWS = 200


def write(result: Result, folder: Path) -> list[Path]:
    """All files of a result in a folder; returns their paths, NAME.json first.

    Raises `InputError` where a file cannot be written (then none is).
    """
    return write_together({folder / name: held for name, held in contents(result).items()})


def saved(result: Result, folder: str | os.PathLike[str]) -> dict[str, Path]:
    """Write all files; their paths by kind, 'json', 'csv', 'html' and so on, further tables by name
    and other files by theirs. Raises `InputError` where they cannot be written."""
    place, kinds = output_folder(Path(folder)), {f"{name}.csv": name for name in result.tables}
    kinds |= {f"{result.name}.{k}": k for k in ("json", "csv", "txt", "html", "png", "pdf")}
    names = {path: str(path.relative_to(place)) for path in write(result, place)}
    return {kinds.get(name, name): path for path, name in names.items()}


def contents(result: Result) -> dict[str, str | bytes]:
    """What `write` writes, by name."""
    own = result.name
    files: dict[str, str | bytes] = {f"{own}.json": to_json(result.to_json_object())}
    for place, (name, table) in enumerate(result.tables.items()):
        files[f"{name if place else own}.csv"] = table.rows.to_csv(index=False)
    files[f"{own}.txt"] = result.words().strip() + "\n"
    files[f"{own}.html"] = result.own_page() or page(result)
    if result.picture is not None:
        files |= {f"{own}.{kind}": held for kind, held in result.picture.files.items()}
    return files | result.beside()


def page(result: Result) -> str:
    """The result as one HTML page that asks no network; of long tables the first `ROWS` rows."""
    from oversmoothing.simulations.drawing.web_page import as_link, web_page

    return web_page(
        "oversmoothing.simulations.drawing",
        "result.html",
        result=result,
        image=None if result.picture is None else as_link(result.picture.files["png"]),
        most=ROWS,
    )
