"""`python -m tests.streams N --seed S`: verdicts on N drawn mixings against iteration."""

import argparse
import sys

from .comparing import run


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.streams", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    options = parser.parse_args(arguments)
    report = run(options.count, options.seed, options.first)
    for finding in report.bad[:20]:
        print(f"{finding.case}\n  {finding.field}: said {finding.said}, true {finding.true}")
    for (name, numbers, outcome), number in sorted(report.counts.items()):
        print(f"{name:24}{numbers:12}{outcome:24}{number:8}")
    return int(bool(report.bad))


if __name__ == "__main__":
    sys.exit(main())
