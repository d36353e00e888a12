"""`oversmoothing rates`: rates and depths predicted against measured, in one table (T5)."""

from oversmoothing.commands import options as opt


def rates(seed: opt.Seed = 0, as_json: opt.Json = False, report: opt.ReportFile = None) -> int:
    """Rates and depths, predicted against measured.

    Exit status 1: a measured depth exceeds a certified one. --report writes the table as CSV.
    """
    from oversmoothing.theory.depth.rates import describe, rate_rows, to_csv
    from oversmoothing.theory.support.files import to_json, write_atomically

    rows = rate_rows(seed)
    if report is not None:
        write_atomically(report, to_csv(rows))
    print(to_json([row.to_json_object() for row in rows]) if as_json else describe(rows), end="")
    return 0 if all(row.holds for row in rows) else 1
