"""`oversmoothing rates`: rates and depths predicted against measured, in one table (T5)."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from oversmoothing.theory.depth.rates_table import RateRow, rate_rows
from oversmoothing.theory.support.files import json_number, to_json, write_atomically


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `rates`."""
    parser.add_argument("--seed", type=int, default=0, help="of the random cases")
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--csv", metavar="FILE", help="write the table too")


def run(arguments: Namespace) -> int:
    """Run `rates`: 0, or 1 where a measured depth exceeds a certified one."""
    rows = rate_rows(arguments.seed)
    if arguments.csv is not None:
        write_atomically(arguments.csv, _csv(rows))
    if arguments.json:
        print(to_json([_object(row) for row in rows]), end="")
    else:
        print(describe(rows))
    return 0 if all(row.holds for row in rows) else 1


def _object(row: RateRow) -> dict[str, object]:
    return {
        key: json_number(value) if isinstance(value, float) else value
        for key, value in vars(row).items()
    }


def _csv(rows: list[RateRow]) -> str:
    names = list(vars(rows[0]))
    lines = [",".join(names)]
    lines += [",".join(f'"{vars(row)[name]}"' for name in names) for row in rows]
    return "\n".join(lines) + "\n"


def describe(rows: list[RateRow]) -> str:
    """The table as text, a block for each case."""
    width = max(len(row.quantity) for row in rows)
    lines = []
    case = None
    for row in rows:
        if row.case != case:
            case = row.case
            lines += ["", case, f"  {'':{width}}  {'predicted':>14}  {'measured':>14}"]
        word = "holds" if row.holds else "FAILS"
        relation = f"off by {row.relative_error:.1e}" if row.kind == "equal" else "at most"
        lines.append(
            f"  {row.quantity:{width}}  {row.predicted:14.8g}  {row.measured:14.8g}  "
            f"{word} ({relation})"
        )
    held = sum(row.holds for row in rows)
    return "\n".join([*lines[1:], "", f"{held} of {len(rows)} rows hold"])
