"""The files of a `Result`, written together or not at all, and read back.

NAME.json holds everything but the picture. Beside it lie each table as CSV (the main one as
NAME.csv), the picture as NAME.png and NAME.pdf, the sentences as NAME.txt, and all of it as one
page, NAME.html.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oversmoothing.simulations.drawing.result import Evidence, Picture, Result, Sentence, Table
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import (
    output_folder,
    read_bytes,
    read_json,
    to_json,
    write_together,
)

SCHEMA = 1
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
        files |= {f"{own}.{kind}": result.picture.file(kind) for kind in ("png", "pdf")}
    return files | result.beside()


def read(path: str | os.PathLike[str]) -> Result:
    """The result of a NAME.json, with its picture from beside it.

    Raises `InputError` for a file that is no result, of another form, or damaged.
    """
    record, place = read_json(path), Path(path)
    try:
        form = record["form"]
        if form["schema_version"] != SCHEMA:
            raise InputError(f"'{path}' has another form ({form['schema_version']}) than {SCHEMA}")
        tables = {}
        for name, own in form["tables"].items():
            columns = {
                each: _cells([row[each] for row in record[name]], kind)
                for each, kind in own["kinds"].items()
            }
            look = own["units"], own["shown"], own["number"], own.get("few", False)
            tables[name] = Table(pd.DataFrame(columns), *look)
            if tables[name].kinds != own["kinds"]:
                raise InputError(f"'{path}' is damaged: table '{name}' has other kinds of columns")
        evidence = [[Evidence(**_ends(each)) for each in one] for one in form["evidence"]]
        picture = None
        if form["picture"]:
            files = {k: read_bytes(place.with_suffix(f".{k}")) for k in ("png", "pdf")}
            picture = Picture(title=form["title"], files=files)
        return Result(
            form["name"],
            form["title"],
            tables,
            [Sentence(said, *own) for said, own in zip(record["words"], evidence, strict=True)],
            {name: record[name] for name in form["configuration"]},
            details={name: record[name] for name in form["details"]},
            picture=picture,
            made=record["provenance"],
        )
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(f"'{path}' is no result, or damaged: {error!r}") from error


def page(result: Result) -> str:
    """The result as one HTML page that asks no network; of long tables the first `ROWS` rows."""
    from oversmoothing.simulations.drawing.web_page import as_link, typeset, web_page

    return web_page(
        "oversmoothing.simulations.drawing",
        "result.html",
        filters={"typeset": typeset},
        title=result.title,
        sentences=[(each.says, list(map(str, each.evidence))) for each in result.sentences],
        image=None if result.picture is None else as_link(result.picture.file("png")),
        tables=[
            {
                "name": name,
                "columns": [(each, table.units.get(each, "")) for each in table.kinds],
                "rows": [
                    [_shown(cell, table.number) for cell in row.values()]
                    for row in table.rows.head(ROWS).to_dict("records")
                ],
                "left": max(0, len(table.rows) - ROWS),
            }
            for name, table in result.tables.items()
        ],
        configuration=result.configuration,
        provenance=result.made,
    )


def _shown(cell: Any, number: str) -> str:
    if cell is None or cell != cell:
        return "-"
    return number.format(cell) if isinstance(cell, float) else str(cell)


def _cells(cells: list[Any], kind: str) -> pd.Series:
    """A column as it was before it was written."""
    if kind == "number":
        return pd.Series([np.nan if x is None else float(x) for x in cells], dtype=np.float64)
    if kind == "integer":
        whole = [int(x) for x in cells]
        small = all(-(2**63) <= x < 2**63 for x in whole)
        return pd.Series(whole, dtype=np.int64 if small else object)
    return pd.Series(cells, dtype=bool if kind == "truth" else object)


def _ends(evidence: dict[str, Any]) -> dict[str, Any]:
    """The ends of an interval as floats, infinite ones too."""
    return {k: float(x) if k in ("low", "high") else x for k, x in evidence.items()}
