"""`python -m tests.oracle N --seed S`: the project against the oracle on N drawn cases."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from .compare import FIELDS, NUMBERS, Report, compare_all, run
from .judging import OUTCOMES
from .named import NAMED


def table(report: Report) -> str:
    """Counts by field and kind of numbers, and the oracle's own failures."""
    lines = [" " * 24 + "".join(f"{o:>11}" for o in OUTCOMES)]
    for name in FIELDS:
        for numbers in NUMBERS:
            found = [report.counts[name, numbers, o] for o in OUTCOMES]
            if any(found):
                lines.append(f"{name}, {numbers}".ljust(24) + "".join(f"{k:11}" for k in found))
    if report.too_hard:
        lines.append(f"{len(report.too_hard)} cases are too hard for the oracle")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("count", type=int, help="how many drawn cases; 0: the named ones alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--show", type=int, default=20, help="how many wrong answers are printed")
    options = parser.parse_args(arguments)
    if options.count:
        report = run(options.count, options.seed, options.first)
    else:
        report = compare_all(NAMED)
    shown: Counter[tuple[str, ...]] = Counter()
    left = options.show
    for bad in report.bad:
        drawn = "/" in bad.case.name
        key = bad.field, bad.outcome, *(bad.case.kind if drawn else (bad.case.name,))
        shown[key] += 1
        if shown[key] == 1 and left:
            left -= 1
            print(f"{bad.case.name} {bad.case.kind}: {bad.field} {bad.outcome}:")
            print(f"  said {bad.said}\n  true {bad.true}")
    print(table(report))
    return int(bool(report.bad))


if __name__ == "__main__":
    sys.exit(main())
