"""The files of a `Result`, written together or not at all.

NAME.json holds everything but the picture. Beside it lie each table as CSV (the main one as
NAME.csv), the picture as NAME.png and NAME.pdf, the sentences as NAME.txt, and all of it as one
page, NAME.html.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from oversmoothing.simulations.drawing.result import Result
from oversmoothing.theory.support.files import output_folder, to_json, write_together

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
