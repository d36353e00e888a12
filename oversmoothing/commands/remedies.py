"""`oversmoothing remedies`: what each remedy against oversmoothing does to the spectrum."""

from typing import Annotated

from typer import Argument, Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support import sizes


def remedies(
    only: Annotated[
        list[str] | None, Argument(metavar="NAME", help="These remedies alone (default: all).")
    ] = None,
    names: Annotated[
        bool, Option("--list", help="Print the remedies, their papers and what is our reading.")
    ] = False,
    draws: Annotated[
        int, Option(metavar="N", min=1, max=sizes.POINTS, help="How many layers are drawn.")
    ] = 100,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    report: opt.ReportFile = None,
) -> int:
    """What each remedy against oversmoothing does to the spectrum, and its cost.

    Exit status 1: a predicted radius is not the measured one. --report writes all columns as CSV.
    """
    from oversmoothing.commands.tables import table_text
    from oversmoothing.experiments.remedies.by_name import REMEDIES
    from oversmoothing.experiments.remedies.shifts import MOST, remedies_table, short, words
    from oversmoothing.theory.support.files import to_json, write_atomically

    if names:
        opt.only_named(report, as_json)
        for name, each in REMEDIES.items():
            reading = f"; our reading: {each.reading}" if each.reading else ""  # type: ignore[attr-defined]
            print(f"{name:22s} {each.paper}{reading}")  # type: ignore[attr-defined]
        return 0
    table = remedies_table(only, draws=draws, seed=seed)
    if report is not None:
        write_atomically(report, table.to_csv(index=False))
    if as_json:
        rows = table.astype(object).where(table.notna(), None).to_dict("records")
        print(to_json(rows), end="")
    else:
        print(f"{table_text(short(table), '{:.3f}'.format)}\n\n{words(table)}")
        if report is not None:
            print(f"wrote {report}")
    return int(not (table["error"] < MOST).all())
